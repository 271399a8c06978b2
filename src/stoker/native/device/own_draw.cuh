// SPDX-License-Identifier: Apache-2.0
// Random numbers of the elements of a tensor, as kernels/draw.cpp draws them one after the other. A block draws
// kElements numbers.
#pragma once
#include "device/own.cuh"
#include "shared/draws.hpp"
#include "shared/normal_near.hpp"
#include "shared/philox.hpp"

namespace stoker::own {

// A number of the standard normal distribution. It is a call, since few numbers of a loop need it.
STOKER_CALLED double standard_normal(philox::Block words) {
  return draws::normal(philox::uniform(words.w[0], words.w[1]), philox::uniform(words.w[2], words.w[3]));
}

// Numbers: those of the distribution, then the five words that name the row's stream. A number of the normal
// distribution takes one block of random words, numbers of the others take half of one.
template <class Ports, int kDistribution>
struct Draw {
  static constexpr auto kKind = static_cast<draws::Distribution>(kDistribution);
  static constexpr bool kIsNormal = kKind == draws::Distribution::Normal,
                        kIsEven = kKind == draws::Distribution::Uniform, kIsCoin = kKind == draws::Distribution::Coin,
                        kHasValues = kKind == draws::Distribution::Values;
  static constexpr int kStream = kHasValues ? 0 : kIsCoin ? 1 : 2;
  using Given = typename Ports::template At<0>;  // if there are values
  using Element = typename Ports::template At<kHasValues ? 1 : 0>;
  using Memory = typename Element::Memory;
  static constexpr bool kIsFloat = std::is_same_v<Element, F32>;
  // Whether a number within a known error of the exact one may round to the same element. Conversions but that to BOOL,
  // for which all numbers but 0 are true, increase with the number.
  static constexpr bool kIsRounded = !std::is_same_v<Element, F64> && !std::is_same_v<Element, Bool>;
  static constexpr int64_t kElements = 8192;  // also in ops/random/_drawn.py
  static constexpr int64_t kItem = sizeof(Memory);
  static constexpr int kTogether = kIsNormal || kItem == 8 ? 2 : 4;  // elements that a thread stores at a time

  struct alignas(kItem* kTogether) Group {
    Memory values[kTogether];
  };

  static void draw(const Row& row, uint32_t block) {
    const Port& out = row.port(kHasValues ? 1 : 0);
    const int64_t count = extent_of(out, 0, static_cast<int>(out.rank));
    const int64_t begin = block * kElements, end = begin + kElements < count ? begin + kElements : count;
    const bool is_flat = is_contiguous(out, kItem);
    auto* const to = reinterpret_cast<uint8_t*>(out.data);
    const Numbers numbers(row);
    const int64_t grouped =
        is_flat && out.data % sizeof(Group) == 0 ? begin + (end - begin) / kTogether * kTogether : begin;
    for (int64_t i = begin + gpu::thread_index() * kTogether; i < grouped; i += gpu::thread_count() * kTogether) {
      Group group;
      numbers.group(i, group.values);
      *reinterpret_cast<Group*>(to + i * kItem) = group;
    }
    for (int64_t i = grouped + gpu::thread_index(); i < end; i += gpu::thread_count()) {
      Memory pair[2];
      numbers.group(i & ~int64_t{1}, pair);
      *reinterpret_cast<Memory*>(to + (is_flat ? i * kItem : offset_of(out, i))) = pair[i & 1];
    }
  }

 private:
  static Memory memory_of(double x) {
    Memory result;
    store<Element>(reinterpret_cast<uint8_t*>(&result), op::cast<Element>(x));
    return result;
  }
  static bool is_same(Memory a, Memory b) {
    if constexpr (kIsFloat) return gpu::bits_of(a) == gpu::bits_of(b);
    else return a == b;
  }

  static constexpr draws::Rounding rounding() {
    if constexpr (std::is_same_v<Element, F16>) return draws::Rounding::Half;
    else if constexpr (kIsFloat) return draws::Rounding::Float;
    else return std::is_same_v<Element, F64> ? draws::Rounding::Double : draws::Rounding::Other;
  }

  class Numbers {
   public:
    explicit Numbers(const Row& row)
        : row_(row),
          first_(kStream > 0 ? row.number(0) : 0),
          second_(kStream > 1 ? row.number(1) : 0),
          range_(first_, second_, rounding()),
          end_(range_.least_float()),
          heads_(draws::coin_threshold(first_)),
          one_(memory_of(1)),
          zero_(memory_of(0)),
          epoch_key_(wide(row, kStream)),
          row_key_(wide(row, kStream + 2)),
          draw_(word(row, kStream + 4)) {
      const double mean = std::fabs(first_), deviation = std::fabs(second_);
      is_near_ = mean < 0x1p500 && deviation > 0x1p-500 && deviation < 0x1p500;
      error_ = 2 * (deviation * draws::kNearError + mean * 0x1p-50);
    }
    // Compute the n elements from i on, an even number.
    template <int n>
    void group(int64_t i, Memory (&values)[n]) const {
      if constexpr (kIsNormal) {
        philox::Block words[n];
        draws::Near near[n];
        for (int k = 0; k < n; ++k) {
          words[k] = block(i + k);
          if constexpr (kIsRounded) near[k] = draws::normal_near(words[k]);
        }
        for (int k = 0; k < n; ++k)
          if (!kIsRounded || !is_rounded(near[k], values[k]))
            values[k] = memory_of(first_ + second_ * standard_normal(words[k]));
      } else {
        for (int k = 0; k < n; k += 2) {
          const philox::Block words = block((i + k) / 2);
          values[k] = other(words.w[0], words.w[1]);
          values[k + 1] = other(words.w[2], words.w[3]);
        }
      }
    }

   private:
    philox::Block block(int64_t number) const {
      return philox::generate(epoch_key_, (uint64_t{draw_} << 32) | static_cast<uint32_t>(number), row_key_);
    }
    // Whether the exact number is rounded to `value`: all numbers within the error are.
    bool is_rounded(const draws::Near& near, Memory& value) const {
      const double x = draws::near::fused(second_, near.value, first_), low = x - error_, high = x + error_;
      value = memory_of(low);
      return is_near_ && near.known && is_same(value, memory_of(high));
    }
    // An element of another distribution, from two words.
    Memory other(uint32_t first, uint32_t second) const {
      if constexpr (kIsCoin) return philox::bits53(first, second) < heads_ ? one_ : zero_;
      const double u = philox::uniform(first, second);
      if constexpr (kIsEven && kIsFloat) return range_.at(u, end_);
      else if constexpr (kIsEven) return memory_of(range_.at(u));
      else {
        const Port& values = row_.port(0);
        const int64_t count = extent_of(values, 0, static_cast<int>(values.rank));
        const auto* const from = reinterpret_cast<const uint8_t*>(values.data);
        return memory_of(static_cast<double>(load<Given>(from + offset_of(values, draws::index_below(u, count)))));
      }
    }

    static uint32_t word(const Row& row, int i) { return static_cast<uint32_t>(static_cast<int64_t>(row.number(i))); }
    static uint64_t wide(const Row& row, int i) { return word(row, i) | (uint64_t{word(row, i + 1)} << 32); }
    const Row& row_;
    double first_, second_;
    draws::Range range_;
    float end_;
    uint64_t heads_;     // numbers of 53 bits below it are heads
    Memory one_, zero_;  // heads and tails
    uint64_t epoch_key_, row_key_;
    uint32_t draw_;
    double error_;  // of a number of the normal distribution, and of its sum with the mean
    bool is_near_;
  };
};

}  // namespace stoker::own
