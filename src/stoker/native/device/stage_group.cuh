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

// Element `e` of unsigned numbers of one or two bytes as a float. The bits become the last ones of the float 2^23, which
// is subtracted: two instructions, where a conversion takes up to three of a slower unit.
template <class M>
inline float unpack_as_float(const uint32_t* words, int e) {
  static_assert(std::is_same_v<M, uint8_t> || std::is_same_v<M, uint16_t>);
#if defined(__CUDA_ARCH__)
  constexpr int kEach = 4 / sizeof(M);
  const uint32_t at = static_cast<uint32_t>(e % kEach);
  const uint32_t selector = sizeof(M) == 1 ? 0x7440 + at : 0x7410 + 0x22 * at;
  return __uint_as_float(gpu::choose_bytes(words[e / kEach], 0x4B000000, selector)) - 8388608.0f;
#else
  return static_cast<float>(unpack<M>(words, e));
#endif
}

// Words of `size` elements from numbers that are saturated to unsigned or signed elements of one or two bytes.
template <int size, bool is_signed>
inline uint32_t saturated_word(const int32_t* x) {
  if constexpr (size == 1) {
    if constexpr (is_signed) return gpu::saturated_signed_four(x[0], x[1], x[2], x[3]);
    else return gpu::saturated_four(x[0], x[1], x[2], x[3]);
  } else {
    if constexpr (is_signed) return gpu::saturated_pair16(x[0], x[1]);
    else return gpu::saturated_unsigned_pair16(x[0], x[1]);
  }
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

// Call f.template operator()<i>() for each i from `first` on.
template <int first, int count, class F>
inline void each(const F& f) {
  if constexpr (first < count) {
    f.template operator()<first>();
    each<first + 1, count>(f);
  }
}

// Instructions that collect a word's four bytes from several words.
struct ByteChoice {
  int words[4] = {}, count = 0;  // the source words that have any of the bytes
  uint32_t selectors[4] = {};    // of choose_bytes: the first two words, then what was collected and another word
};
// The choice for word `word` of a result whose byte i is byte Map::of(i) of the source.
template <class Map>
constexpr ByteChoice byte_choice(int word) {
  ByteChoice choice;
  const auto index = [&](int source) {
    int i = 0;
    while (i < choice.count && choice.words[i] != source) ++i;
    return i;
  };
  for (int b = 0; b < 4; ++b) {
    const int source = Map::of(4 * word + b) / 4, i = index(source);
    if (i == choice.count) choice.words[choice.count++] = source;
  }
  for (int i = 1; i == 1 || i < choice.count; ++i) {
    for (int b = 0; b < 4; ++b) {
      const int from = Map::of(4 * word + b), owner = index(from / 4);
      const int pick = owner == i ? 4 + from % 4 : i == 1 ? from % 4 : b;
      choice.selectors[i] |= static_cast<uint32_t>(pick) << (4 * b);
    }
  }
  return choice;
}
// Move bytes between words: byte i of `to` is byte Map::of(i) of `from`.
template <class Map, int words>
inline void move_bytes(const uint32_t* from, uint32_t* to) {
  each<0, words>([&]<int w>() {
    constexpr ByteChoice kChoice = byte_choice<Map>(w);
    if constexpr (kChoice.count == 1 && kChoice.selectors[1] == 0x3210) {
      to[w] = from[kChoice.words[0]];
    } else {
      uint32_t word = gpu::choose_bytes(from[kChoice.words[0]], from[kChoice.words[kChoice.count > 1 ? 1 : 0]],
                                        kChoice.selectors[1]);
      if constexpr (kChoice.count > 2) word = gpu::choose_bytes(word, from[kChoice.words[2]], kChoice.selectors[2]);
      if constexpr (kChoice.count > 3) word = gpu::choose_bytes(word, from[kChoice.words[3]], kChoice.selectors[3]);
      to[w] = word;
    }
  });
}

// Kinds of groups of a program's lanes. A lane has kInner times its program's channels; a thread reads kTogether groups
// before it computes the first.
template <class Program_>
struct Groups {
  using Program = Program_;
  static constexpr int kLanes = Program::kGroup, kInner = 1, kTogether = Program::kTogether;
  static constexpr bool kSame = true;
};
// Groups of contiguous lanes, of which one access moves 16 bytes.
template <class Program_>
struct WideGroups {
  using Program = Program_;
  static constexpr int kLanes = Program::kWide, kInner = 1, kTogether = Program::kWideTogether;
  static constexpr bool kSame = true;
};
// A flat program's groups of pixels; see kPixel in shared/stage_slot.hpp. If kSame is set, a pixel's channels have the same
// coordinates, so that the compiler computes once per pixel what depends on them alone, as random numbers do.
template <class Program_, bool same = false>
struct PixelGroups {
  using Program = Program_;
  static constexpr bool kSame = same;
  static constexpr int kLanes = Program::kGroup, kInner = kPixel;
  static constexpr int kTogether = same ? Program::kSharedTogether : Program::kPixelsTogether;
};
// Its groups of points; see kPoint there.
template <class Program_>
struct PointGroups {
  using Program = Program_;
  static constexpr bool kSame = false;
  static constexpr int kLanes = Program::kGroup, kInner = kPoint;
  static constexpr int kTogether = Program::kPointsTogether;
};

// How a group's elements lie in memory.
enum class Order : int {
  Scattered,         // anywhere: elements are accessed one by one
  Packed,            // pixel by pixel, without gaps and aligned
  Reversed,          // likewise, from the last pixel to the first
  Planar,            // channel by channel, likewise
  Unaligned,         // packed, but not aligned to accesses
  UnalignedReverse,  // likewise, from the last pixel to the first
};

// Addresses of the first byte of a row's input and after its last one.
struct Bounds {
  uint64_t first, last;
};
template <class Program>
struct InputBounds {
  Bounds of[Program::kPorts];
};
template <class Program>
inline Bounds bounds_of(const Row<Program>& row, int port, int64_t pixel) {
  const Port& p = row.port(port);
  Bounds bounds{p.data, p.data + static_cast<uint64_t>(pixel)};
  for (int d = 0; d < row.slot().axes; ++d) {
    const int64_t reach = (row.slot().extent[d] - 1) * p.stride[d];
    (reach < 0 ? bounds.first : bounds.last) += static_cast<uint64_t>(reach);
  }
  return bounds;
}

// A port's part of a group: the elements of kLanes lanes, kept pixel by pixel.
template <class Kind, int port>
struct GroupPort {
  using Program = typename Kind::Program;
  static constexpr int kLanes = Kind::kLanes, kSize = Program::size(port);
  static constexpr int kChannels = Program::channels(port) * Kind::kInner;
  static constexpr int kWords = (kLanes * kSize * kChannels + 3) / 4;
  using Bits = BitsOf<kSize>;

  // Words that one access moves, out of `words` adjacent ones.
  static constexpr int vector_of(int words) { return words % 4 == 0 ? 4 : words % 2 == 0 ? 2 : 1; }
  static constexpr int kPlaneWords = (kLanes * kSize + 3) / 4;
  static_assert(kLanes % 4 == 0);
  // Whether a group may begin at any byte. Groups of pixels, and programs of several inputs, have no registers left for it.
  static constexpr bool kUnaligned = port < Program::kInputs && Program::kInputs == 1 && Kind::kInner == 1;

  static Order order_of(const Row<Program>& row) {
    constexpr int64_t kStep = kSize * kChannels;
    const Port& p = row.port(port);
    uint64_t strides = 0;
    for (int d = 1; d < row.slot().axes; ++d) strides |= static_cast<uint64_t>(p.stride[d]);
    const auto aligned = [&](uint64_t start, int words) { return (start | strides) % (4 * vector_of(words)) == 0; };
    const bool together = kChannels == 1 || p.channel == kSize;
    if (together && p.stride[0] == kStep)
      return aligned(p.data, kWords) ? Order::Packed : kUnaligned ? Order::Unaligned : Order::Scattered;
    if (together && p.stride[0] == -kStep) {
      if (aligned(p.data - (kLanes - 1) * kStep, kWords)) return Order::Reversed;
      return kUnaligned ? Order::UnalignedReverse : Order::Scattered;
    }
    strides |= static_cast<uint64_t>(p.channel);
    return p.stride[0] == kSize && aligned(p.data, kPlaneWords) ? Order::Planar : Order::Scattered;
  }

  // Read `count` lanes; the others become 0.
  static void read(const uint8_t* at, int64_t channel, int64_t step, Order order, int count, const Bounds& bounds,
                   uint32_t* words) {
    if (order == Order::Packed && count == kLanes) return read_words<kWords>(at, words);
    if constexpr (kUnaligned) {
      if (order >= Order::Unaligned && count == kLanes && read_unaligned(at, step, order, bounds, words)) return;
    }
#pragma unroll
    for (int i = 0; i < kWords; ++i) words[i] = 0;
    if (order == Order::Reversed && count == kLanes) {
      uint32_t backwards[kWords];
      read_words<kWords>(at + (kLanes - 1) * step, backwards);
      return move_bytes<ReversedMap, kWords>(backwards, words);
    }
    if (order == Order::Planar && count == kLanes) {
      uint32_t planes[kWords];
#pragma unroll
      for (int c = 0; c < kChannels; ++c) read_words<kPlaneWords>(at + c * channel, planes + c * kPlaneWords);
      return move_bytes<PlanesToPixels, kWords>(planes, words);
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
      uint32_t backwards[kWords];
      move_bytes<ReversedMap, kWords>(words, backwards);
      return write_words<kWords>(at + (kLanes - 1) * step, backwards);
    }
    if (order == Order::Planar && count == kLanes) {
      uint32_t planes[kWords];
      move_bytes<PixelsToPlanes, kWords>(words, planes);
#pragma unroll
      for (int c = 0; c < kChannels; ++c) write_words<kPlaneWords>(at + c * channel, planes + c * kPlaneWords);
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

  // Move the words of contiguous and aligned lanes.
  static void read_all(const uint8_t* at, uint32_t* words) { read_words<kWords>(at, words); }
  static void write_all(uint8_t* at, const uint32_t* words) { write_words<kWords>(at, words); }

 private:
  // The source of a byte: for pixels in the opposite order, for pixels from planes, and for planes from pixels.
  struct ReversedMap {
    static constexpr int kPixel = kChannels * kSize;
    static constexpr int of(int byte) { return (kLanes - 1 - byte / kPixel) * kPixel + byte % kPixel; }
  };
  struct PlanesToPixels {
    static constexpr int of(int byte) {
      const int element = byte / kSize;
      return (element % kChannels * kLanes + element / kChannels) * kSize + byte % kSize;
    }
  };
  struct PixelsToPlanes {
    static constexpr int of(int byte) {
      const int element = byte / kSize;
      return (element % kLanes * kChannels + element / kLanes) * kSize + byte % kSize;
    }
  };
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
  // Read the aligned words around a group, which may lie partly outside of the row's input: then return false.
  static bool read_unaligned(const uint8_t* at, int64_t step, Order order, const Bounds& bounds, uint32_t* words) {
    const auto address = reinterpret_cast<uint64_t>(order == Order::Unaligned ? at : at + (kLanes - 1) * step);
    const uint64_t start = address & ~uint64_t{3};
    const bool shifted = address % 4 != 0;
    if (start < bounds.first || start + 4 * kWords + (shifted ? 4 : 0) > bounds.last) return false;
    const auto* source = reinterpret_cast<const uint32_t*>(start);
    uint32_t around[kWords + 1], found[kWords];
#pragma unroll
    for (int i = 0; i < kWords; ++i) around[i] = source[i];
    around[kWords] = shifted ? source[kWords] : 0;
    const uint32_t shift = static_cast<uint32_t>(address) % 4 * 8;
#pragma unroll
    for (int i = 0; i < kWords; ++i) found[i] = gpu::funnel_right(around[i + 1], around[i], shift);
    if (order == Order::UnalignedReverse) {
      move_bytes<ReversedMap, kWords>(found, words);
    } else {
#pragma unroll
      for (int i = 0; i < kWords; ++i) words[i] = found[i];
    }
    return true;
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

// What a thread keeps of its row's descriptor while it computes groups, which need other strides once for many lanes.
template <class Program>
using GroupPorts = HeldPorts<Program, 1>;

// The table of a program that bytes choose from, in shared memory: a copy for each lane of a warp, in a memory bank of its
// own, so that the lanes of a warp never wait for each other. Elements past the table's length are 0. All threads of a
// block make it together.
template <class Program, bool = (Program::kByteTable >= 0)>
struct ByteTable {
  ByteTable(const GroupPorts<Program>&, const typename Program::Numbers&) {}
};
template <class Program>
struct ByteTable<Program, true> {
  using Memory = typename Program::TableElement::Memory;
  static constexpr uint32_t kEntries = 256, kCopies = gpu::kWarp;
  static_assert(kThreads == kEntries && sizeof(Memory) <= 4);
  struct alignas(16) Copies {
    uint32_t word[kEntries][kCopies];
  };
  const uint8_t* copies;

  ByteTable(const GroupPorts<Program>& held, const typename Program::Numbers& numbers) {
    STOKER_SHARED(Copies, shared);
    const uint32_t entry = gpu::thread_index();
    Memory value = 0;
    if (static_cast<int32_t>(entry) < Program::table_length(numbers))
      value = reinterpret_cast<const Memory*>(held.data[Program::kByteTable])[entry];
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    constexpr uint32_t kVectors = kCopies / 4;
#pragma unroll
    for (uint32_t i = 0; i < kVectors; ++i)  // neighbouring threads write to different banks
      *reinterpret_cast<Vector<4>*>(&shared.word[entry][(i + entry) % kVectors * 4]) = {{bits, bits, bits, bits}};
    copies = reinterpret_cast<const uint8_t*>(shared.word);
    gpu::block_barrier();
  }
  Memory at(int32_t index) const {
    const uint32_t place = static_cast<uint32_t>(index) * (4 * kCopies) | gpu::thread_index() % gpu::kWarp * 4;
    return *reinterpret_cast<const Memory*>(copies + place);
  }
};

// Lane k of a group: the interface that generated code reads and writes. Inputs that the program does not load, which
// are tables and coordinates, keep their addresses.
template <class Kind>
struct GroupLane {
  using Program = typename Kind::Program;
  // The maximum over the ports.
  template <int port = 0>
  static constexpr int words_of_ports() {
    if constexpr (port == Program::kPorts) {
      return 1;
    } else {
      constexpr int kOwn = GroupPort<Kind, port>::kWords, kOthers = words_of_ports<port + 1>();
      return kOwn > kOthers ? kOwn : kOthers;
    }
  }
  static constexpr int kWords = words_of_ports();
  using Words = uint32_t[Program::kPorts][kWords];
  // Numbers that are stored with saturation, until all of them are packed; see run_group.
  template <int port = 0>
  static constexpr int saturated_elements() {
    if constexpr (port == Program::kPorts) {
      return 1;
    } else {
      constexpr int kOwn = Program::saturates(port) ? Kind::kLanes * GroupPort<Kind, port>::kChannels : 1;
      constexpr int kOthers = saturated_elements<port + 1>();
      return kOwn > kOthers ? kOwn : kOthers;
    }
  }
  using Whole = int32_t[Program::kPorts][saturated_elements()];
  Words& words;
  Whole& whole;
  uint8_t* const* at;
  const GroupPorts<Program>& held;
  const ByteTable<Program>& table;
  int k, inner;

  template <class E>
  typename E::Register load(int port, int c) const {
    return from_memory<E>(unpack<typename E::Memory>(words[port], element(port, c)));
  }
  template <class E>
  float load_as_float(int port, int c) const {
    return unpack_as_float<typename E::Memory>(words[port], element(port, c));
  }
  template <class E>
  typename E::Register lookup(int port, int32_t index, int32_t length) const {
    if (static_cast<uint32_t>(index) >= static_cast<uint32_t>(length)) return 0;
    return from_memory<E>(reinterpret_cast<const typename E::Memory*>(place(port))[index]);
  }
  template <class E>
  typename E::Register lookup_byte(int port, int32_t index, int32_t length) const {
    if constexpr (Program::kByteTable >= 0) {
      if (port == Program::kByteTable) return from_memory<E>(table.at(index));
    }
    return lookup<E>(port, index, length);
  }
  int32_t coordinate(int port) const { return coordinate_at(Kind::kSame ? lane_of(port) : place(port)); }
  template <class E>
  void store(int output, int c, typename E::Register x) const {
    const int port = Program::kInputs + output;
    pack<typename E::Memory>(words[port], element(port, c), in_memory<E>(x));
  }
  template <class E, class From>
  void store_cast(int output, int c, From x) const {
    const int port = Program::kInputs + output;
    whole[port][element(port, c)] = op::cast<I32>(x);
  }

 private:
  int element(int port, int c) const { return (k * Kind::kInner + inner) * Program::channels(port) + c; }
  uint8_t* lane_of(int port) const { return at[port] + k * held.stride[port][0]; }
  uint8_t* place(int port) const {
    if constexpr (Kind::kInner > 1) return lane_of(port) + inner * held.channel[port];
    return lane_of(port);
  }
};

// Compute the lanes of a group from the words of its inputs.
template <class Kind>
inline void run_group(const GroupPorts<typename Kind::Program>& held, const typename Kind::Program::Numbers& numbers,
                      const ByteTable<typename Kind::Program>& table, const Lane<typename Kind::Program>& first,
                      int count, typename GroupLane<Kind>::Words& words, bool& fault) {
  using Program = typename Kind::Program;
#pragma unroll
  for (int p = Program::kInputs; p < Program::kPorts; ++p) {
#pragma unroll
    for (int i = 0; i < GroupLane<Kind>::kWords; ++i) words[p][i] = 0;
  }
  typename GroupLane<Kind>::Whole whole = {};
#pragma unroll
  for (int k = 0; k < Kind::kLanes; ++k) {
    // The other lanes of a part of a group have zeros, which only a division must not see.
    if (Program::kDivides && k >= count) continue;
#pragma unroll
    for (int c = 0; c < Kind::kInner; ++c)
      Program::run(GroupLane<Kind>{words, whole, first.at, held, table, k, c}, numbers, fault);
  }
  // Two instructions convert, saturate and pack four bytes, if no other instruction comes between.
  each<Program::kInputs, Program::kPorts>([&]<int port>() {
    if constexpr (Program::saturates(port) != 0) {
      using Own = GroupPort<Kind, port>;
#pragma unroll
      for (int i = 0; i < Own::kWords; ++i)
        words[port][i] = saturated_word<Own::kSize, Program::saturates(port) == 2>(whole[port] + 4 / Own::kSize * i);
    }
  });
}

// Compute one lane, with all of its inner elements.
template <class Program, int axes>
inline void run_inner(const Row<Program>& row, const HeldPorts<Program, axes>& held,
                      const typename Program::Numbers& numbers, Lane<Program>& lane, bool& fault) {
  if constexpr (!Program::kFlat) {
    Program::run(lane, numbers, fault);
  } else {
    for (int64_t c = 0; c < row.slot().inner; ++c) {
      Program::run(lane, numbers, fault);
#pragma unroll
      for (int p = 0; p < Program::kPorts; ++p) lane.at[p] += held.channel[p];
    }
  }
}

constexpr int64_t kMostGroupedLanes = 0xFFFF0000;  // numbers of lanes and groups have 32 bits

// A block's part of a row: its number, and the lanes of every part but the last.
struct Part {
  uint32_t number;
  int64_t lanes;
};

// The number of a row's parts: the row's lane_blocks().
inline uint32_t part_count(const Slot& slot, const Part& part) {
  const uint32_t lanes = static_cast<uint32_t>(slot.lanes), most = static_cast<uint32_t>(part.lanes);
  return (lanes + most - 1) / most;
}

// The groups of a block, of a row with `groups` of them in all parts.
struct GroupsOfBlock {
  uint32_t begin, end;
  GroupsOfBlock(const Slot& slot, uint32_t groups, const Part& part) {
    const uint32_t blocks = part_count(slot, part);
    const uint32_t each = (groups + blocks - 1) / blocks;
    begin = part.number * each;
    end = begin + each < groups ? begin + each : groups;
  }
};

// Compute a block's part of a row, all of whose elements are contiguous, in groups whose words are aligned. Return false, and
// compute nothing, for any other row. `lead` lanes come before the first aligned group of the first output; the last block
// computes them and those after the last whole group. A thread reads its next groups before it computes those that it has.
template <class Kind>
inline bool run_contiguous(const Row<typename Kind::Program>& row, const Part& part, bool& fault) {
  using Program = typename Kind::Program;
  constexpr int kLanes = Kind::kLanes, kTogether = Kind::kTogether;
  constexpr int kInputs = Program::kInputs, kPorts = Program::kPorts;
  using First = GroupPort<Kind, kInputs>;
  const Slot& slot = row.slot();
  constexpr uint32_t kBytes = 4 * First::vector_of(First::kWords), kLane = First::kSize * First::kChannels;
  bool good = slot.axes == 1 && slot.lanes >= 2 * kLanes && slot.lanes <= kMostGroupedLanes;
  const auto start = static_cast<uint32_t>(row.port(kInputs).data);
  uint32_t lead = 0;
  while (lead < kBytes && (start + lead * kLane) % kBytes != 0) ++lead;
  each<0, kPorts>([&]<int port>() {
    if constexpr (Program::channels(port) > 0) {
      using Own = GroupPort<Kind, port>;
      constexpr int64_t kStep = Own::kSize * Own::kChannels;
      const Port& p = row.port(port);
      good &= p.stride[0] == kStep && (Own::kChannels == 1 || p.channel == Own::kSize);
      good &= (p.data + lead * static_cast<uint64_t>(kStep)) % (4 * Own::vector_of(Own::kWords)) == 0;
    }
  });
  if (!good) return false;
  const auto lanes = static_cast<uint32_t>(slot.lanes), groups = (lanes - lead) / kLanes;
  const GroupsOfBlock own(slot, groups, part);
  const GroupPorts<Program> held(row);
  const typename Program::Numbers numbers(row);
  const ByteTable<Program> table(held, numbers);
  // Addresses of the thread's next group, one for each port. Only ports that the program does not load, which are tables
  // and coordinates, have other strides than contiguous ones.
  const uint32_t begin = own.begin + gpu::thread_index();
  Lane<Program> first;
  first.channel = held.channel;
  const auto step_of = [&]<int port>() {
    if constexpr (Program::channels(port) > 0) return int64_t{kLanes} * Program::size(port) * Program::channels(port);
    else return kLanes * held.stride[port][0];
  };
  each<0, kPorts>([&]<int port>() {
    const auto before = static_cast<int64_t>(lead) * (step_of.template operator()<port>() / kLanes);
    first.at[port] = held.data[port] + before + begin * step_of.template operator()<port>();
  });
  typename GroupLane<Kind>::Words words[kTogether];
  // Read the groups from number g on, `ahead` batches after the thread's addresses.
  const auto read = [&](uint32_t g, int ahead) {
#pragma unroll
    for (int t = 0; t < kTogether; ++t) {
      if (g + t * kThreads >= own.end) break;
      each<0, kInputs>([&]<int port>() {
        if constexpr (Program::channels(port) > 0)
          GroupPort<Kind, port>::read_all(
              first.at[port] + (ahead * kTogether + t) * kThreads * step_of.template operator()<port>(),
              words[t][port]);
      });
    }
  };
  read(begin, 0);
  for (uint32_t g = begin; g < own.end; g += kTogether * kThreads) {
    typename GroupLane<Kind>::Words now[kTogether];
#pragma unroll
    for (int t = 0; t < kTogether; ++t) {
#pragma unroll
      for (int p = 0; p < kInputs; ++p) {
#pragma unroll
        for (int i = 0; i < GroupLane<Kind>::kWords; ++i) now[t][p][i] = words[t][p][i];
      }
    }
    read(g + kTogether * kThreads, 1);
#pragma unroll
    for (int t = 0; t < kTogether; ++t) {
      if (t > 0 && g + t * kThreads >= own.end) break;
      Lane<Program> lane;
      lane.channel = held.channel;
      each<0, kPorts>(
          [&]<int port>() { lane.at[port] = first.at[port] + t * kThreads * step_of.template operator()<port>(); });
      run_group<Kind>(held, numbers, table, lane, kLanes, now[t], fault);
      each<kInputs, kPorts>([&]<int port>() { GroupPort<Kind, port>::write_all(lane.at[port], now[t][port]); });
    }
    each<0, kPorts>([&]<int port>() { first.at[port] += kTogether * kThreads * step_of.template operator()<port>(); });
  }
  if (own.begin >= own.end || own.end < groups) return true;
  const uint32_t past = lead + groups * kLanes, edges = lead + lanes - past;
  for (uint32_t i = gpu::thread_index(); i < edges; i += kThreads) {
    locate(row, held, i < lead ? i : past + i - lead, 0u, first);
    run_inner(row, held, numbers, first, fault);
  }
  return true;
}

// Whether the inner elements of a lane have the same coordinates. kShared is the number of coordinates of programs that
// compute much from them, such as random numbers, which pays for a loop of its own, and 0 for others.
template <class Program>
inline bool has_same_coordinates(const Row<Program>& row) {
  int64_t strides = 0;
#pragma unroll
  for (int p = Program::kInputs - Program::kShared; p < Program::kInputs; ++p) strides |= row.port(p).channel;
  return strides == 0;
}

// The orders of a row's ports, and whether groups pay: outputs are not scattered, and scattered inputs run forwards.
template <class Kind>
struct GroupOrders {
  using Program = typename Kind::Program;
  Order order[Program::kPorts];
  bool good, unaligned = false;

  explicit GroupOrders(const Row<Program>& row)
      : good(row.slot().extent[0] >= Kind::kLanes && row.slot().lanes <= kMostGroupedLanes) {
    each<0, Program::kPorts>([&]<int port>() {
      order[port] = Order::Scattered;
      if constexpr (Program::channels(port) > 0) {
        order[port] = GroupPort<Kind, port>::order_of(row);
        unaligned |= order[port] >= Order::Unaligned;
        good &= order[port] != Order::Scattered || (port < Program::kInputs && row.port(port).stride[0] >= 0);
      }
    });
  }
};

// Compute the groups of a row that belong to a block, or return false if groups do not pay. The groups of a line are divided into
// segments of up to kTogether groups per lane of a warp, and a warp computes one after the other: their addresses differ by
// constants. A thread reads kTogether groups before it computes the first, so that much memory is on its way. Of lines with fewer
// groups than a warp has lanes, a warp computes several together.
template <class Kind>
inline bool run_groups(const Row<typename Kind::Program>& row, const Part& part, bool& fault) {
  using Program = typename Kind::Program;
  const GroupOrders<Kind> orders(row);
  if (!orders.good) return false;
  STOKER_SHARED(InputBounds<Program>, bounds);
  if (orders.unaligned) {
    each<0, Program::kInputs>([&]<int port>() {
      constexpr int64_t kPixel = Program::size(port) * Program::channels(port) * Kind::kInner;
      if (gpu::thread_index() == port) bounds.of[port] = bounds_of(row, port, kPixel);
    });
    gpu::block_barrier();
  }
  constexpr int kLanes = Kind::kLanes, kTogether = Kind::kTogether;
  constexpr int kPorts = Program::kPorts, kInputs = Program::kInputs;
  constexpr uint32_t kSegment = kTogether * gpu::kWarp;
  const Slot& slot = row.slot();
  const auto lanes = static_cast<uint32_t>(slot.lanes), width = static_cast<uint32_t>(slot.extent[0]);
  const uint32_t across = (width + kLanes - 1) / kLanes, lines = lanes / width;
  const uint32_t segments = (across + kSegment - 1) / kSegment;
  const uint32_t each_segment = ((across + segments - 1) / segments + gpu::kWarp - 1) / gpu::kWarp * gpu::kWarp;
  uint32_t per_line = gpu::kWarp;  // lanes of a warp for each of its lines
  while (per_line / 2 >= across && per_line > 1) per_line /= 2;
  const uint32_t together = gpu::kWarp / per_line;  // lines
  const GroupsOfBlock own(slot, segments * ((lines + together - 1) / together), part);
  const GroupPorts<Program> held(row);
  const typename Program::Numbers numbers(row);
  const ByteTable<Program> table(held, numbers);
  const uint32_t warp = gpu::thread_index() / gpu::kWarp, own_lane = gpu::thread_index() % per_line;
  const uint32_t own_line = gpu::thread_index() % gpu::kWarp / per_line;
  Lane<Program> lane;
  typename GroupLane<Kind>::Words words[kTogether];
  for (uint32_t task = own.begin + warp; task < own.end; task += kThreads / gpu::kWarp) {
    const uint32_t lines_before = lines == 1 ? 0 : task / segments, segment = task - lines_before * segments;
    const uint32_t line = lines_before * together + own_line;
    if (line >= lines) continue;
    const uint32_t first = segment * each_segment + own_lane;
    const uint32_t after = (segment + 1) * each_segment, end = after < across ? after : across;
    // The lanes of the t-th group of the segment.
    const auto count = [&](int t) {
      const uint32_t x = (first + t * gpu::kWarp) * kLanes;
      return width - x < kLanes ? static_cast<int>(width - x) : kLanes;
    };
    if constexpr (kPorts > 2)
      locate(row, GroupPorts<Program>(row), first * kLanes, line, lane);  // read again: registers
    else locate(row, held, first * kLanes, line, lane);
    uint8_t* at[kPorts];
#pragma unroll
    for (int p = 0; p < kPorts; ++p) at[p] = lane.at[p];
#pragma unroll
    for (int t = 0; t < kTogether; ++t) {
      if (first + t * gpu::kWarp >= end) break;
      each<0, kInputs>([&]<int port>() {
        if constexpr (Program::channels(port) > 0) {
          GroupPort<Kind, port>::read(at[port], held.channel[port], held.stride[port][0], orders.order[port], count(t),
                                      bounds.of[port], words[t][port]);
          at[port] += kLanes * gpu::kWarp * held.stride[port][0];
        }
      });
    }
#pragma unroll
    for (int t = 0; t < kTogether; ++t) {
      if (first + t * gpu::kWarp >= end) break;
      run_group<Kind>(held, numbers, table, lane, count(t), words[t], fault);
      each<kInputs, kPorts>([&]<int port>() {
        GroupPort<Kind, port>::write(lane.at[port], held.channel[port], held.stride[port][0], orders.order[port],
                                     count(t), words[t][port]);
      });
#pragma unroll
      for (int p = 0; p < kPorts; ++p) lane.at[p] += kLanes * gpu::kWarp * held.stride[p][0];
    }
  }
  return true;
}

}  // namespace stoker::stage
