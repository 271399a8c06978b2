// SPDX-License-Identifier: Apache-2.0
// A stage that warps words (AffineSlot::quick of four bytes) to outputs whose neighbours lie beside each other: a thread
// makes two neighbours of a row at a time, and stores them at once. Where all that a warp of threads makes comes from
// inside of the source, and that is nearly everywhere, no edge is looked for, and places are added up in whole numbers.
#pragma once
#include "stage.cuh"

namespace stoker::stage {

// As whole numbers with 32 bits behind the point: half_before, and a step (|v| < 2^19).
inline int64_t fixed_before(double v) {
  int32_t whole;
  uint32_t fraction;
  half_before(v, whole, fraction);
  return static_cast<int64_t>(static_cast<uint64_t>(static_cast<uint32_t>(whole)) << 32 | fraction);
}
#if defined(__CUDA_ARCH__)
inline int64_t fixed_step(double v) {
  return __double_as_longlong(v + 1572864.0) - 0x4138000000000000ll;  // 1.5 * 2^20: the last bit is 2^-32
}
// Written out, because the compiler puts the shift and what is done with the result together, in more instructions.
inline uint32_t whole_part(int64_t v) {
  uint32_t fraction, whole;
  asm("mov.b64 {%0, %1}, %2;" : "=r"(fraction), "=r"(whole) : "l"(v));
  return whole;
}
// Two elements, as unsigned numbers, beside each other, the first at the lower address, which is a multiple of both's size.
template <class T>
inline void store_two(uint8_t* p, T first, T second) {
  if constexpr (sizeof(T) == 1) {
    const auto both = static_cast<uint16_t>(first | second << 8);
    asm volatile("st.global.u16 [%0], %1;" ::"l"(p), "h"(both));
  } else if constexpr (sizeof(T) == 2) {
    const uint32_t both = first | static_cast<uint32_t>(second) << 16;
    asm volatile("st.global.u32 [%0], %1;" ::"l"(p), "r"(both));
  } else {
    struct alignas(2 * sizeof(T)) Two {
      T first, second;
    };
    *reinterpret_cast<Two*>(p) = {first, second};
  }
}
#else
inline int64_t fixed_step(double v) { return static_cast<int64_t>(std::floor(v * 4294967296.0)); }
inline uint32_t whole_part(int64_t v) { return static_cast<uint32_t>(v >> 32); }
template <class T>
inline void store_two(uint8_t* p, T first, T second) {
  reinterpret_cast<T*>(p)[0] = first;
  reinterpret_cast<T*>(p)[1] = second;
}
#endif

// The pairs of a thread: columns x and x + 1 of every kPairStep-th row from y0 to y1. A warp goes through four rows of
// eight pairs at a time, so that few rows of a turned image are under it.
constexpr int kPairStep = 4;
struct PairPlace {
  int32_t x, y0, y1;
  PairPlace(uint32_t tile, int64_t width, int64_t height) {
    const auto across = (static_cast<uint32_t>(width) + kTileWidth - 1) / kTileWidth;
    const uint32_t down = tile / across, thread = gpu::thread_index(), warp = thread / gpu::kWarp;
    const uint32_t rows = pair_tile_rows(static_cast<uint32_t>(height)), part = rows / kPairStep;  // a tile's, a warp's
    x = static_cast<int32_t>((tile - down * across) * kTileWidth + 16 * (warp % 2) + thread % 8 * 2);
    const auto first = static_cast<int32_t>(down * rows + warp / 2 * part), end = first + static_cast<int32_t>(part);
    y0 = first + static_cast<int32_t>(thread % gpu::kWarp / 8);
    y1 = x < width ? (end < height ? end : static_cast<int32_t>(height)) : y0;
  }
  int32_t last() const { return y1 - 1 - (y1 - 1 - y0) % kPairStep; }
};

// A column of pixels whose neighbours are all in the source: QuickColumn, without its edges. Sums of the steps are wrong
// by less than 2^-27 (half of 2^-32 each, and what rounding does in double), so that values are by less than 4e-6 more,
// and neighbours may be others where a weight is almost 0 or 1.
class InnerColumn {
 public:
  static constexpr bool kAhead = true;

  InnerColumn(const QuickColumn<4>& column, int32_t y)
      : column_(column), y_(y), x_at_(fixed_before(column.source_x(y_))),
        y_at_(fixed_before(column.source_y(y_))), x_step_(fixed_step(kPairStep * column.reader().s.matrix[1])),
        y_step_(fixed_step(kPairStep * column.reader().s.matrix[4])) {}

  // Whether a place of a column is a pixel away from the edges.
  static bool within(const QuickColumn<4>& column, int32_t y) {
    return within(column.source_x(y), column.right()) && within(column.source_y(y), column.bottom());
  }

  class Pixel : public Quad<4> {
   public:
    explicit Pixel(const InnerColumn& column) : y_(column.y_) {
      weight_x_ = fraction_as_float(static_cast<uint32_t>(column.x_at_));
      weight_y_ = fraction_as_float(static_cast<uint32_t>(column.y_at_));
      const auto row = static_cast<uint32_t>(column.column_.row());
      const uint32_t at = whole_part(column.y_at_) * row + whole_part(column.x_at_) * 4;
      load(column.column_.data() + at, static_cast<int32_t>(row));
    }
    void take_digits(const InnerColumn& column, uint32_t (&digits)[3]) const {
      interpolate(digits);
      if (in_doubt(digits) && (undecided(digits) || edge(weight_x_) || edge(weight_y_)))
        column.column_.compute(y_, digits);
    }

   private:
    static bool edge(float weight) { return weight <= 0.0f || weight >= 1.0f - 0x1p-22f; }
    int32_t y_;
  };
  Pixel pixel() const { return Pixel(*this); }
  void step() {
    y_ += kPairStep;
    x_at_ += x_step_;
    y_at_ += y_step_;
  }

 private:
  static bool within(double at, int32_t last) {
    const auto whole = static_cast<int32_t>(whole_part(fixed_before(at)));
    return whole >= 1 && whole <= last - 2;
  }

  const QuickColumn<4>& column_;
  int32_t y_;
  int64_t x_at_, y_at_;
  const int64_t x_step_, y_step_;
};

// The same of any column; its pixels are made one by one, for which fewer registers are enough.
class AnyColumn {
 public:
  static constexpr bool kAhead = false;

  AnyColumn(const QuickColumn<4>& column, int32_t y) : column_(column), y_(y) {}
  class Pixel {
   public:
    explicit Pixel(const AnyColumn& column) : pixel_(column.column_, column.y_) {}
    void take_digits(const AnyColumn& column, uint32_t (&digits)[3]) const { pixel_.take_digits(column.column_, digits); }

   private:
    QuickColumn<4>::Pixel pixel_;
  };
  Pixel pixel() const { return Pixel(*this); }
  void step() { y_ += kPairStep; }

 private:
  const QuickColumn<4>& column_;
  int32_t y_;
};

// Whether all that the calling thread's warp makes comes from inside of the source: if the outermost places do, since what
// is between them is between these. A pair's second column is between the first ones of this pair and of the next, if there
// is one.
inline bool inner_warp(const WarpReader<uint8_t>& reader, const PairPlace& place, int64_t width) {
  bool inner = true;
  if (place.y0 < place.y1) {
    const bool outermost = gpu::thread_index() % 8 == 7 || place.x + 2 >= width;
    const QuickColumn<4> column(reader, place.x + (outermost ? 1 : 0));
    inner = InnerColumn::within(column, place.y0) && InnerColumn::within(column, place.last());
  }
  return gpu::ballot(!inner) == 0;
}

// What the first pixel of a pair leaves for the second to store.
template <class Program>
struct Left {
  static constexpr int kOutputs = Program::kPorts - Program::kInputs;
  uint64_t bits[kOutputs][Program::kFlat ? 3 : Program::kStored];
};

// The lane of a pair's first pixel, and that of its second.
template <class Program, bool kSecond>
struct PairLane : Lane<Program> {
  uint32_t digits[3];
  int offset = 0;  // the channel of a flat program
  Left<Program>* left;

  template <class E>
  typename E::Register sample(int c) const { return static_cast<typename E::Register>(whole_of(digits[c + offset])); }
  float sample_as_float(int c) const { return value_of(digits[c + offset]); }
  template <class E>
  void store(int output, int c, typename E::Register x) const {
    using Memory = typename E::Memory;
    using Bits = std::conditional_t<sizeof(Memory) == 8, uint64_t, std::conditional_t<sizeof(Memory) == 4, uint32_t,
                 std::conditional_t<sizeof(Memory) == 2, uint16_t, uint8_t>>>;
    const Memory value = in_memory<E>(x);
    Bits bits;
    std::memcpy(&bits, &value, sizeof bits);
    if constexpr (!kSecond) {
      left->bits[output][c + offset] = bits;
    } else {
      const int port = Program::kInputs + output;
      store_two<Bits>(this->at[port] + (c ? c * this->channel[port] : 0),
                      static_cast<Bits>(left->bits[output][c + offset]), bits);
    }
  }
};

// One pixel of a pair. `at`: where the first one's channel 0 lies; `beside`: the second is so far from it.
template <bool kSecond, class Program, class Column>
inline void run_beside(const Held<Program>& held, const typename Program::Numbers& numbers, const Column& column,
                       const typename Column::Pixel& pixel, uint8_t* const (&at)[Program::kPorts],
                       const int64_t (&beside)[Program::kPorts], Left<Program>& left, bool& fault) {
  PairLane<Program, kSecond> lane;
  lane.channel = held.channel;
  lane.left = &left;
  pixel.take_digits(column, lane.digits);
#pragma unroll
  for (int p = 1; p < Program::kPorts; ++p)
    lane.at[p] = at[p] + (kSecond && p < Program::kInputs ? beside[p] : 0);  // outputs are stored at the first
  if constexpr (!Program::kFlat) {
    Program::run(lane, numbers, fault);
  } else {
#pragma unroll
    for (int c = 0; c < 3; ++c) {
      lane.offset = c;
      Program::run(lane, numbers, fault);
#pragma unroll
      for (int p = 1; p < Program::kPorts; ++p) lane.at[p] += held.channel[p];
    }
  }
}

template <class Column, class Program>
inline void run_pair_columns(const Held<Program>& held, const typename Program::Numbers& numbers,
                             const QuickColumn<4>& first_column, const QuickColumn<4>& second_column,
                             const PairPlace& place, uint8_t* (&at)[Program::kPorts],
                             const int64_t (&beside)[Program::kPorts], bool& fault) {
  Column first(first_column, place.y0), second(second_column, place.y0);
  for (int32_t y = place.y0; y < place.y1; y += kPairStep) {
    Left<Program> left;
    if constexpr (Column::kAhead) {  // both are loaded before the first is used
      const auto a = first.pixel(), b = second.pixel();
      run_beside<false, Program>(held, numbers, first, a, at, beside, left, fault);
      run_beside<true, Program>(held, numbers, second, b, at, beside, left, fault);
    } else {
      run_beside<false, Program>(held, numbers, first, first.pixel(), at, beside, left, fault);
      run_beside<true, Program>(held, numbers, second, second.pixel(), at, beside, left, fault);
    }
    first.step();
    second.step();
#pragma unroll
    for (int p = 1; p < Program::kPorts; ++p) at[p] += kPairStep * held.stride[p][1];
  }
}

// One block: a tile of a row's pairs.
template <class Program>
inline void run_pairs(const uint8_t* slots, uint64_t slot_bytes, const Work* work, const AffineRoom* rooms,
                      uint32_t* report) {
  const Work item = work[gpu::block_index()];
  const Row<Program> row{slots + item.row * slot_bytes};
  const PairPlace place(item.tile, row.slot().extent[0], row.slot().extent[1]);
  const Held<Program> held(row);
  const typename Program::Numbers numbers(row);
  const WarpReader<uint8_t> reader(row.sampler(), rooms[item.row]);
  const int32_t mirrored = held.stride[Program::kInputs][0] < 0;  // then the second column's elements come first
  const QuickColumn<4> first(reader, place.x + mirrored), second(reader, place.x + 1 - mirrored);
  uint8_t* at[Program::kPorts];
  int64_t beside[Program::kPorts];
#pragma unroll
  for (int p = 1; p < Program::kPorts; ++p) {
    const int64_t across = held.stride[p][0];
    at[p] = held.data[p] + (place.x + mirrored) * across + place.y0 * held.stride[p][1];
    beside[p] = mirrored ? -across : across;
  }
  bool fault = false;
  if (inner_warp(reader, place, row.slot().extent[0]))
    run_pair_columns<InnerColumn, Program>(held, numbers, first, second, place, at, beside, fault);
  else
    run_pair_columns<AnyColumn, Program>(held, numbers, first, second, place, at, beside, fault);
  if (Program::kDivides && fault) report[item.row] = 1;
}

}  // namespace stoker::stage

// From 10.0 on, 64 registers are not enough.
#define STOKER_PAIRS(Program, blocks)                                                                               \
  STOKER_KERNEL STOKER_LAUNCH_BOUNDS(stoker::stage::kThreads, __CUDA_ARCH__ >= 1000 && blocks > 3 ? 3 : blocks)     \
      stoker_pairs(uint64_t slots, uint64_t slot_bytes, uint64_t work, uint64_t rooms, uint64_t report) {           \
    stoker::stage::run_pairs<Program>(reinterpret_cast<const uint8_t*>(slots), slot_bytes,                          \
                                      reinterpret_cast<const stoker::stage::Work*>(work),                           \
                                      reinterpret_cast<const stoker::stage::AffineRoom*>(rooms),                    \
                                      reinterpret_cast<uint32_t*>(report));                                         \
  }
