// SPDX-License-Identifier: Apache-2.0
// Groups of adjacent lanes, which a thread of a stage without an interpolator computes together: it reads and writes
// words where a port's elements follow each other in memory, and computes addresses once per group.
#pragma once
#include <cstring>

#include "device/stage_lane.cuh"

namespace stoker::stage {

// Unsigned numbers of `size` bytes, and memory that one instruction accesses.
template <int size>
using BitsOf =
    std::conditional_t<size == 1, uint8_t,
                       std::conditional_t<size == 2, uint16_t, std::conditional_t<size == 4, uint32_t, uint64_t>>>;
template <int words>
struct alignas(4 * words) Vector {
  uint32_t word[words];
};

// Element `e` of elements that are packed in words. Where `e` is a constant, the words stay in registers.
template <class M>
inline M unpack(const uint32_t* words, int e) {
  M x;
  if constexpr (sizeof(M) == 8) {
    const uint64_t bits = words[2 * e] | uint64_t{words[2 * e + 1]} << 32;
    std::memcpy(&x, &bits, sizeof x);
  } else if constexpr (sizeof(M) == 4) {
    std::memcpy(&x, &words[e], sizeof x);
  } else {
    constexpr int kEach = 4 / sizeof(M), kBits = 8 * sizeof(M);
    x = static_cast<M>(words[e / kEach] >> (e % kEach * kBits));
  }
  return x;
}

// Write element `e`, whose bits are 0.
template <class M>
inline void pack(uint32_t* words, int e, M x) {
  BitsOf<sizeof(M)> bits;
  std::memcpy(&bits, &x, sizeof bits);
  if constexpr (sizeof(M) == 8) {
    words[2 * e] = static_cast<uint32_t>(bits);
    words[2 * e + 1] = static_cast<uint32_t>(bits >> 32);
  } else {
    constexpr int kEach = 4 / sizeof(M), kBits = 8 * sizeof(M);
    words[e / kEach] |= uint32_t{bits} << (e % kEach * kBits);
  }
}

// How a group's elements lie in memory.
enum class Order : int {
  Scattered,  // anywhere: elements are accessed one by one
  Packed,     // pixel by pixel, without gaps and aligned
  Reversed,   // likewise, from the last pixel to the first
  Planar,     // channel by channel, likewise
};

// A port's part of a group: the elements of kLanes lanes, kept pixel by pixel.
template <class Program, int port>
struct GroupPort {
  static constexpr int kLanes = Program::kGroup, kSize = Program::size(port), kChannels = Program::channels(port);
  static constexpr int kWords = (kLanes * kSize * kChannels + 3) / 4;
  using Bits = BitsOf<kSize>;

  // Words that one access moves, out of `words` adjacent ones.
  static constexpr int vector_of(int words) { return words % 4 == 0 ? 4 : words % 2 == 0 ? 2 : 1; }
  static constexpr int kPlaneWords = (kLanes * kSize + 3) / 4;
  static_assert(kLanes % 4 == 0);

  static Order order_of(const Row<Program>& row) {
    constexpr int64_t kStep = kSize * kChannels;
    const Port& p = row.port(port);
    uint64_t strides = 0;
    for (int d = 1; d < row.slot().axes; ++d) strides |= static_cast<uint64_t>(p.stride[d]);
    const auto aligned = [&](uint64_t start, int words) { return (start | strides) % (4 * vector_of(words)) == 0; };
    const bool together = kChannels == 1 || p.channel == kSize;
    if (together && p.stride[0] == kStep) return aligned(p.data, kWords) ? Order::Packed : Order::Scattered;
    if (together && p.stride[0] == -kStep)
      return aligned(p.data - (kLanes - 1) * kStep, kWords) ? Order::Reversed : Order::Scattered;
    strides |= static_cast<uint64_t>(p.channel);
    return p.stride[0] == kSize && aligned(p.data, kPlaneWords) ? Order::Planar : Order::Scattered;
  }

  // Read `count` lanes; the others become 0.
  static void read(const uint8_t* at, int64_t channel, int64_t step, Order order, int count, uint32_t* words) {
    if (order == Order::Packed && count == kLanes) return read_words<kWords>(at, words);
#pragma unroll
    for (int i = 0; i < kWords; ++i) words[i] = 0;
    if (order == Order::Reversed && count == kLanes) {
      uint32_t backwards[kWords];
      read_words<kWords>(at + (kLanes - 1) * step, backwards);
      return reverse(backwards, words);
    }
    if (order == Order::Planar && count == kLanes) {
#pragma unroll
      for (int c = 0; c < kChannels; ++c) {
        uint32_t plane[kPlaneWords];
        read_words<kPlaneWords>(at + c * channel, plane);
#pragma unroll
        for (int k = 0; k < kLanes; ++k) pack(words, k * kChannels + c, unpack<Bits>(plane, k));
      }
      return;
    }
#pragma unroll
    for (int k = 0; k < kLanes; ++k) {
      if (k >= count) break;
#pragma unroll
      for (int c = 0; c < kChannels; ++c)
        pack(words, k * kChannels + c, *reinterpret_cast<const Bits*>(at + k * step + c * channel));
    }
  }

  static void write(uint8_t* at, int64_t channel, int64_t step, Order order, int count, const uint32_t* words) {
    if (order == Order::Packed && count == kLanes) return write_words<kWords>(at, words);
    if (order == Order::Reversed && count == kLanes) {
      uint32_t backwards[kWords] = {};
      reverse(words, backwards);
      return write_words<kWords>(at + (kLanes - 1) * step, backwards);
    }
    if (order == Order::Planar && count == kLanes) {
#pragma unroll
      for (int c = 0; c < kChannels; ++c) {
        uint32_t plane[kPlaneWords] = {};
#pragma unroll
        for (int k = 0; k < kLanes; ++k) pack(plane, k, unpack<Bits>(words, k * kChannels + c));
        write_words<kPlaneWords>(at + c * channel, plane);
      }
      return;
    }
#pragma unroll
    for (int k = 0; k < kLanes; ++k) {
      if (k >= count) break;
#pragma unroll
      for (int c = 0; c < kChannels; ++c)
        *reinterpret_cast<Bits*>(at + k * step + c * channel) = unpack<Bits>(words, k * kChannels + c);
    }
  }

 private:
  // Write the pixels in the opposite order into words that are 0.
  static void reverse(const uint32_t* from, uint32_t* to) {
#pragma unroll
    for (int k = 0; k < kLanes; ++k) {
#pragma unroll
      for (int c = 0; c < kChannels; ++c)
        pack(to, k * kChannels + c, unpack<Bits>(from, (kLanes - 1 - k) * kChannels + c));
    }
  }
  template <int count>
  static void read_words(const uint8_t* at, uint32_t* words) {
    constexpr int kVector = vector_of(count);
#pragma unroll
    for (int i = 0; i < count / kVector; ++i) {
      const auto v = reinterpret_cast<const Vector<kVector>*>(at)[i];
#pragma unroll
      for (int k = 0; k < kVector; ++k) words[i * kVector + k] = v.word[k];
    }
  }
  template <int count>
  static void write_words(uint8_t* at, const uint32_t* words) {
    constexpr int kVector = vector_of(count);
#pragma unroll
    for (int i = 0; i < count / kVector; ++i) {
      Vector<kVector> v;
#pragma unroll
      for (int k = 0; k < kVector; ++k) v.word[k] = words[i * kVector + k];
      reinterpret_cast<Vector<kVector>*>(at)[i] = v;
    }
  }
};

// Call f.template operator()<port>() for each port from `port` on.
template <int port, int ports, class F>
inline void each_port(const F& f) {
  if constexpr (port < ports) {
    f.template operator()<port>();
    each_port<port + 1, ports>(f);
  }
}

// Lane k of a group: the interface that generated code reads and writes. Inputs that the program does not load, which
// are tables and coordinates, keep their addresses.
template <class Program>
struct GroupLane {
  using Words = uint32_t[Program::kPorts][Program::kWords];
  Words& words;
  uint8_t* const* at;
  const int64_t (*stride)[HeldPorts<Program>::kAxesHeld];
  int k;

  template <class E>
  typename E::Register load(int port, int c) const {
    return from_memory<E>(unpack<typename E::Memory>(words[port], k * Program::channels(port) + c));
  }
  template <class E>
  typename E::Register lookup(int port, int32_t index, int32_t length) const {
    if (static_cast<uint32_t>(index) >= static_cast<uint32_t>(length)) return 0;
    return from_memory<E>(reinterpret_cast<const typename E::Memory*>(place(port))[index]);
  }
  int32_t coordinate(int port) const { return coordinate_at(place(port)); }
  template <class E>
  void store(int output, int c, typename E::Register x) const {
    const int port = Program::kInputs + output;
    pack<typename E::Memory>(words[port], k * Program::channels(port) + c, in_memory<E>(x));
  }

 private:
  uint8_t* place(int port) const { return at[port] + k * stride[port][0]; }
};

// The orders of a row's ports, and whether groups pay: outputs are not scattered, and scattered inputs run forwards.
template <class Program>
struct GroupOrders {
  Order order[Program::kPorts];
  bool good;

  explicit GroupOrders(const Row<Program>& row)
      : good(row.slot().extent[0] >= Program::kGroup && row.slot().lanes <= kMostGroupedLanes) {
    each_port<0, Program::kPorts>([&]<int port>() {
      order[port] = Order::Scattered;
      if constexpr (Program::channels(port) > 0) {
        order[port] = GroupPort<Program, port>::order_of(row);
        good &= order[port] != Order::Scattered || (port < Program::kInputs && row.port(port).stride[0] >= 0);
      }
    });
  }
  static constexpr int64_t kMostGroupedLanes = 0xFFFFF000;  // numbers of lanes and groups have 32 bits
};

// Compute the groups of a row that belong to block `tile` of the row's lane_blocks() blocks. A thread reads kTogether
// groups, kThreads apart, before it computes the first, so that much memory is on its way.
template <class Program>
inline void run_groups(const Row<Program>& row, const GroupOrders<Program>& orders, uint32_t tile, bool& fault) {
  using Count = uint32_t;
  constexpr int kLanes = Program::kGroup, kTogether = Program::kTogether;
  constexpr int kPorts = Program::kPorts, kInputs = Program::kInputs;
  const Slot& slot = row.slot();
  const auto lanes = static_cast<Count>(slot.lanes), width = static_cast<Count>(slot.extent[0]);
  const Count across = (width + kLanes - 1) / kLanes, groups = across * (lanes / width);
  const Count blocks = (lanes + kTileLanes - 1) / kTileLanes, each = (groups + blocks - 1) / blocks;
  const Count begin = tile * each, end = begin + each < groups ? begin + each : groups;
  const HeldPorts<Program> held(row);
  const typename Program::Numbers numbers(row);
  Lane<Program> first[kTogether];
  typename GroupLane<Program>::Words words[kTogether];
  int count[kTogether];
  for (Count g = begin + gpu::thread_index(); g < end; g += kTogether * kThreads) {
#pragma unroll
    for (int t = 0; t < kTogether; ++t) {
      const Count number = g + t * kThreads < end ? g + t * kThreads : g;
      const Count line = number / across, x = (number - line * across) * kLanes;
      count[t] = width - x < kLanes ? static_cast<int>(width - x) : kLanes;
      locate(row, held, line * width + x, first[t]);
      each_port<0, kInputs>([&]<int port>() {
        if constexpr (Program::channels(port) > 0)
          GroupPort<Program, port>::read(first[t].at[port], held.channel[port], held.stride[port][0],
                                         orders.order[port], count[t], words[t][port]);
      });
    }
#pragma unroll
    for (int t = 0; t < kTogether; ++t) {
      if (t > 0 && g + t * kThreads >= end) break;
      each_port<kInputs, kPorts>([&]<int port>() {
#pragma unroll
        for (int i = 0; i < Program::kWords; ++i) words[t][port][i] = 0;
      });
#pragma unroll
      for (int k = 0; k < kLanes; ++k) {
        // The other lanes of the last group have zeros, which only a division must not see.
        if (!Program::kDivides || k < count[t])
          Program::run(GroupLane<Program>{words[t], first[t].at, held.stride, k}, numbers, fault);
      }
      each_port<kInputs, kPorts>([&]<int port>() {
        GroupPort<Program, port>::write(first[t].at[port], held.channel[port], held.stride[port][0], orders.order[port],
                                        count[t], words[t][port]);
      });
    }
  }
}

}  // namespace stoker::stage
