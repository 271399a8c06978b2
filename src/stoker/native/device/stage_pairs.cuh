// SPDX-License-Identifier: Apache-2.0
// Stage that warps words (AffineSlot::quick of four bytes) to outputs with adjacent neighbours: a thread computes two
// horizontal neighbours and stores them together. Positions, weights and values are fixed-point integers.
#pragma once
#include "device/stage.cuh"

namespace stoker::stage {

// Conversion to fixed point with 32 fraction bits: half_before(), and a step (|v| < 2^19).
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
// Inline assembly, because the compiler would merge the shift with the following operations into more instructions.
inline uint32_t whole_part(int64_t v) {
  uint32_t fraction, whole;
  asm("mov.b64 {%0, %1}, %2;" : "=r"(fraction), "=r"(whole) : "l"(v));
  return whole;
}
// The upper 32 of the 64 bits of a product.
inline uint32_t upper_product(uint32_t a, uint32_t b) { return __umulhi(a, b); }
// sum + products of bytes.
inline uint32_t add_products(uint32_t bytes, uint32_t more, uint32_t sum) { return __dp4a(bytes, more, sum); }
// sum + products of two 16-bit halves with the lower two bytes; below, with the upper two.
inline uint32_t add_lower_products(uint32_t halves, uint32_t bytes, uint32_t sum) {
  return __dp2a_lo(halves, bytes, sum);
}
inline uint32_t add_upper_products(uint32_t halves, uint32_t bytes, uint32_t sum) {
  return __dp2a_hi(halves, bytes, sum);
}
// Store two adjacent elements as unsigned numbers, the first at the lower address, which is a multiple of their total
// size.
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
inline uint32_t upper_product(uint32_t a, uint32_t b) { return static_cast<uint32_t>(uint64_t{a} * b >> 32); }
inline uint32_t add_products(uint32_t bytes, uint32_t more, uint32_t sum) {
  for (int i = 0; i < 32; i += 8) sum += (bytes >> i & 0xFF) * (more >> i & 0xFF);
  return sum;
}
inline uint32_t add_lower_products(uint32_t halves, uint32_t bytes, uint32_t sum) {
  return sum + (halves & 0xFFFF) * (bytes & 0xFF) + (halves >> 16) * (bytes >> 8 & 0xFF);
}
inline uint32_t add_upper_products(uint32_t halves, uint32_t bytes, uint32_t sum) {
  return add_lower_products(halves, bytes >> 16, sum);
}
template <class T>
inline void store_two(uint8_t* p, T first, T second) {
  reinterpret_cast<T*>(p)[0] = first;
  reinterpret_cast<T*>(p)[1] = second;
}
#endif

// Pairs of a thread: columns x and x + 1 of every kPairStep-th row from y0 to y1. A warp processes four rows of eight
// pairs at a time, so that it touches few rows of a rotated image.
constexpr int kPairStep = 4;
struct PairPlace {
  int32_t x, y0, y1;
  PairPlace(uint32_t tile, int64_t width, int64_t height) {
    const auto across = (static_cast<uint32_t>(width) + kTileWidth - 1) / kTileWidth;
    const uint32_t down = tile / across, thread = gpu::thread_index(), warp = thread / gpu::kWarp;
    // Rows of a tile, and of a warp.
    const uint32_t rows = pair_tile_rows(static_cast<uint32_t>(height)), part = rows / kPairStep;
    x = static_cast<int32_t>((tile - down * across) * kTileWidth + 16 * (warp % 2) + thread % 8 * 2);
    const auto first = static_cast<int32_t>(down * rows + warp / 2 * part), end = first + static_cast<int32_t>(part);
    y0 = first + static_cast<int32_t>(thread % gpu::kWarp / 8);
    y1 = x < width ? (end < height ? end : static_cast<int32_t>(height)) : y0;
  }
};

// In units of 2^-24; kFixedDoubt is zero only below 2048.
constexpr uint32_t kFixedSlack = 1200, kFixedDoubt = 0xFFF800;

// Weights of four neighbours, the upper two first, with 24 fraction bits: their upper 16 bits in pairs, and their lower
// 8 bits in one word.
class FixedWeights {
 public:
  // From weights with 32 fraction bits.
  FixedWeights(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
      : top_(gpu::choose_bytes(a, b, 0x7632)),
        bottom_(gpu::choose_bytes(c, d, 0x7632)),
        last_(gpu::choose_bytes(gpu::choose_bytes(a, b, 0x0051), gpu::choose_bytes(c, d, 0x0051), 0x5410)) {}
  // Return the weighted sum of four bytes, plus kFixedSlack.
  uint32_t sum(uint32_t bytes) const {
    const uint32_t first = add_upper_products(bottom_, bytes, add_lower_products(top_, bytes, 0));
    return (first << 8) + add_products(last_, bytes, kFixedSlack);
  }

 private:
  uint32_t top_, bottom_, last_;
};

// Source position of a pixel: the offset of its upper left neighbour from the first pixel, and the weights.
struct FixedPlace {
  uint32_t at;
  FixedWeights weights;
};
// kOutside: the pixel is filled. kUnsure: the position is too close to the edge to decide.
constexpr uint32_t kOutside = 1, kUnsure = 2;

// Column of pixels like QuickColumn in fixed point: positions are accumulated with 32 fraction bits, weights and values
// have 24. Error bounds: accumulated steps are off by less than 2^-27 (half of 2^-32 each, plus rounding in double), so
// values are off by less than 72 2^-24 (255 2 2^-27) either way, and the neighbours may be different ones where a
// weight is almost 0 or 1. Each of four weights is rounded down to 24 bits, so values are too low by up to 1020 2^-24,
// and by 4 more for the last bits of the weights. kFixedSlack compensates for this, so that truncation is correct
// unless the fraction is less than the slack plus 72. In that case the value is computed again in double, except where
// all neighbours are equal, which is exact.
class FixedColumn {
 public:
  FixedColumn(const QuickColumn<4>& column, int32_t y)
      : column_(column),
        y_(y),
        x_at_(fixed_before(column.source_x(y_))),
        y_at_(fixed_before(column.source_y(y_))),
        x_step_(fixed_step(kPairStep * column.reader().s.matrix[1])),
        y_step_(fixed_step(kPairStep * column.reader().s.matrix[4])) {}

  FixedPlace place() const { return place(whole_part(x_at_), whole_part(y_at_), x_weight(), y_weight()); }
  // Return whether all neighbours of the position are inside of the source.
  bool inner() const {
    return (whole_part(x_at_) < static_cast<uint32_t>(column_.source().right)) &
           (whole_part(y_at_) < static_cast<uint32_t>(column_.source().bottom));
  }
  // Replace neighbours outside of the source as QuickColumn does; return kOutside, kUnsure or 0.
  uint32_t settle(FixedPlace& at) const {
    uint32_t x, y, right = x_weight(), below = y_weight();
    const uint32_t rare =
        settle(x_at_, column_.source().right, x, right) | settle(y_at_, column_.source().bottom, y, below);
    at = place(x, y, right, below);
    return column_.source().clamp ? 0 : rare;
  }
  void step() {
    y_ += kPairStep;
    x_at_ += x_step_;
    y_at_ += y_step_;
  }
  const QuickColumn<4>& column() const { return column_; }
  int32_t y() const { return y_; }
  // Return whether the neighbours may be different ones.
  bool edge() const { return edge(x_weight()) || edge(y_weight()); }

 private:
  // Weights of the right and the lower neighbours, with 32 fraction bits.
  uint32_t x_weight() const { return static_cast<uint32_t>(x_at_); }
  uint32_t y_weight() const { return static_cast<uint32_t>(y_at_); }
  static bool edge(uint32_t weight) { return weight + 64 < 128; }  // 2^-27 is 32
  FixedPlace place(uint32_t x, uint32_t y, uint32_t right, uint32_t below) const {
    const uint32_t both = upper_product(right, below);
    return {y * static_cast<uint32_t>(column_.source().row) + x * 4,
            FixedWeights(upper_product(~right, ~below), right - both, below - both, both)};
  }
  static uint32_t settle(int64_t at, int32_t last, uint32_t& first, uint32_t& weight) {
    const auto before = static_cast<int32_t>(whole_part(at));
    const int32_t most = before < last - 1 ? before : last - 1, least = most > 0 ? most : 0;
    if (before != least) weight = before < 0 ? 0 : 0xFFFFFFFFu;
    first = static_cast<uint32_t>(least);
    const int64_t place = at + (int64_t{1} << 31);
    if (edge(static_cast<uint32_t>(place))) return kUnsure;
    return whole_part(place) > static_cast<uint32_t>(last) ? kOutside : 0;
  }

  const QuickColumn<4>& column_;
  int32_t y_;
  int64_t x_at_, y_at_;
  const int64_t x_step_, y_step_;
};

// Pixel of such a column. Its neighbours are loaded by the constructor, and interpolated when it is taken.
class FixedPixel {
 public:
  FixedPixel(const FixedColumn& column, const FixedPlace& place) : weights_(place.weights) {
    const uint8_t *upper = column.column().source().data + place.at,
                  *lower = upper + static_cast<uint32_t>(column.column().source().row);
    word_[0] = load_word(upper), word_[1] = load_word(upper + 4);
    word_[2] = load_word(lower), word_[3] = load_word(lower + 4);
  }

  // Compute the channels with 8 integer and 24 fraction bits. The lowest two bits of `rare` are kOutside, kUnsure or 0;
  // `any` is set if either pixel of the pair has one of them.
  void take(const FixedColumn& column, uint32_t rare, bool any, uint32_t (&value)[3]) const {
    interpolate(value);
    const bool doubt = doubtful(value[0]) | doubtful(value[1]) | doubtful(value[2]);
    if (!(doubt | any)) return;
    rare &= 3;
    const uint8_t fill = column.column().reader().fill;
    uint8_t exact[3] = {fill, fill, fill};
    if (rare != kOutside) {
      if (rare == 0 && !(doubt && (column.edge() || undecided(value)))) return;
      column.column().compute(column.y(), exact);
    }
#pragma unroll
    for (int c = 0; c < 3; ++c) value[c] = uint32_t{exact[c]} << 24;
  }

 private:
  void interpolate(uint32_t (&value)[3]) const {
    // Reds, greens and blues of the neighbours.
    const uint32_t top = gpu::choose_bytes(word_[0], word_[1], 0x5140);
    const uint32_t bottom = gpu::choose_bytes(word_[2], word_[3], 0x5140);
    const uint32_t blue = gpu::choose_bytes(gpu::choose_bytes(word_[0], word_[1], 0x0062),
                                            gpu::choose_bytes(word_[2], word_[3], 0x0062), 0x5410);
    value[0] = weights_.sum(gpu::choose_bytes(top, bottom, 0x5410));
    value[1] = weights_.sum(gpu::choose_bytes(top, bottom, 0x7632));
    value[2] = weights_.sum(blue);
  }
  static bool doubtful(uint32_t value) { return (value & kFixedDoubt) == 0; }
  // Return whether a channel's value is in doubt and its neighbours are not all equal.
  bool undecided(const uint32_t (&value)[3]) const {
    const uint32_t different = (word_[0] ^ word_[1]) | (word_[0] ^ word_[2]) | (word_[0] ^ word_[3]);
    bool is_doubtful = false;
#pragma unroll
    for (int c = 0; c < 3; ++c) is_doubtful |= doubtful(value[c]) && (different & 0xFFu << (8 * c)) != 0;
    return is_doubtful;
  }

  const FixedWeights weights_;
  uint32_t word_[4];
};

// Values of a pair's first pixel, which are stored together with the second's.
template <class Program>
struct DeferredStore {
  static constexpr int kOutputs = Program::kPorts - Program::kInputs;
  uint64_t bits[kOutputs][Program::kFlat ? 3 : Program::kStored];
};

// Lane of a pair's first or second pixel.
template <class Program, bool kSecond>
struct PairLane : Lane<Program> {
  uint32_t value_at[3];  // from FixedPixel
  int offset = 0;        // channel of a flat program
  DeferredStore<Program>* left;

  template <class E>
  typename E::Register sample(int c) const {
    return static_cast<typename E::Register>(value_at[c + offset] >> 24);
  }
  float sample_as_float(int c) const { return biased(value_at[c + offset], 3) - kByteBias; }
  template <class E>
  void store(int output, int c, typename E::Register x) const {
    using Memory = typename E::Memory;
    using Bits = std::conditional_t<
        sizeof(Memory) == 8, uint64_t,
        std::conditional_t<sizeof(Memory) == 4, uint32_t, std::conditional_t<sizeof(Memory) == 2, uint16_t, uint8_t>>>;
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

// Compute one pixel of a pair. `at` has the addresses of the first one's channel 0; `step` is the distance to the
// second.
template <bool kSecond, class Program>
inline void run_second(const HeldPorts<Program>& held, const typename Program::Numbers& numbers,
                       const FixedColumn& column, const FixedPixel& pixel, uint32_t rare,
                       uint8_t* const (&at)[Program::kPorts], const int64_t (&step)[Program::kPorts],
                       DeferredStore<Program>& left, bool& fault) {
  PairLane<Program, kSecond> lane;
  lane.channel = held.channel;
  lane.left = &left;
  pixel.take(column, rare >> (kSecond ? 2 : 0), rare != 0, lane.value_at);
#pragma unroll
  for (int p = 1; p < Program::kPorts; ++p)
    // Outputs are stored at the first pixel's address.
    lane.at[p] = at[p] + (kSecond && p < Program::kInputs ? step[p] : 0);
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

// Compute a thread's pairs of rows [y0, y1), in steps of kPairStep.
template <class Program>
inline void run_pair_columns(const HeldPorts<Program>& held, const typename Program::Numbers& numbers,
                             const QuickColumn<4>& first_column, const QuickColumn<4>& second_column, int32_t y0,
                             int32_t y1, uint8_t* (&at)[Program::kPorts], const int64_t (&step)[Program::kPorts],
                             bool& fault) {
  FixedColumn first(first_column, y0), second(second_column, y0);
  for (int32_t y = y0; y < y1; y += kPairStep) {
    FixedPlace a = first.place(), b = second.place();
    uint32_t rare = 0;  // two bits for each of the pair
    if (!(first.inner() & second.inner())) rare = first.settle(a) | second.settle(b) << 2;
    // Both pixels are loaded before the first one is used.
    const FixedPixel one(first, a), other(second, b);
    DeferredStore<Program> left;
    run_second<false, Program>(held, numbers, first, one, rare, at, step, left, fault);
    run_second<true, Program>(held, numbers, second, other, rare, at, step, left, fault);
    first.step();
    second.step();
#pragma unroll
    for (int p = 1; p < Program::kPorts; ++p) at[p] += kPairStep * held.stride[p][1];
  }
}

// Compute a tile of a row's pairs, by one block.
template <class Program>
inline void run_pairs(const uint8_t* slots, uint64_t slot_bytes, const AffineScratch* scratches, uint32_t* report,
                      const gpu::RowBlock& work) {
  const Row<Program> row{slots + work.row * slot_bytes};
  const PairPlace place(work.number, row.slot().extent[0], row.slot().extent[1]);
  const HeldPorts<Program> held(row);
  const typename Program::Numbers numbers(row);
  const WarpReader<uint8_t> reader(row.interpolator(), scratches[work.row]);
  const int32_t mirrored = held.stride[Program::kInputs][0] < 0;  // the second column's elements come first
  const QuickColumn<4> first(reader, place.x + mirrored), second(reader, place.x + 1 - mirrored);
  uint8_t* at[Program::kPorts];
  int64_t step[Program::kPorts];
#pragma unroll
  for (int p = 1; p < Program::kPorts; ++p) {
    const int64_t across = held.stride[p][0];
    at[p] = held.data[p] + (place.x + mirrored) * across + place.y0 * held.stride[p][1];
    step[p] = mirrored ? -across : across;
  }
  bool fault = false;
  run_pair_columns<Program>(held, numbers, first, second, place.y0, place.y1, at, step, fault);
  if (Program::kDivides && fault) report[work.row] = 1;
}

}  // namespace stoker::stage

// From compute capability 10.0 on, 64 registers are not enough.
#define STOKER_PAIRS(Program, blocks)                                                                \
  STOKER_STAGE_KERNEL(stoker_pairs, stoker::stage::run_pairs<Program>, stoker::stage::AffineScratch, \
                      __CUDA_ARCH__ >= 1000 && blocks > 3 ? 3 : blocks)
