// SPDX-License-Identifier: Apache-2.0
// Random numbers of the elements of a tensor, as kernels/draw.cpp draws them one after the other. A block draws
// kElements numbers.
#pragma once
#include "device/own.cuh"
#include "shared/draws.hpp"
#include "shared/philox.hpp"

namespace stoker::own {

// Numbers: those of the distribution, then the five words that name the row's stream. A number of the normal
// distribution takes one block of random words, numbers of the others take half of one.
template <class Ports, int kDistribution>
struct Draw {
  static constexpr auto kKind = static_cast<draws::Distribution>(kDistribution);
  static constexpr bool kIsNormal = kKind == draws::Distribution::Normal,
                        kIsEven = kKind == draws::Distribution::Uniform,
                        kHasValues = kKind == draws::Distribution::Values;
  static constexpr int kStream = kHasValues ? 0 : kKind == draws::Distribution::Coin ? 1 : 2;
  using Given = typename Ports::template At<0>;  // if there are values
  using Element = typename Ports::template At<kHasValues ? 1 : 0>;
  using Memory = typename Element::Memory;
  static constexpr int64_t kElements = 2048;  // also in ops/random/_drawn.py
  static constexpr int64_t kItem = sizeof(Memory);
  static constexpr int kTogether = kIsNormal ? 1 : kItem == 8 ? 2 : 4;  // elements that a thread stores at a time

  struct alignas(kItem* kTogether) Group {
    Memory values[kTogether];
  };

  static void draw(const Row& row, uint32_t block) {
    const Port& out = row.port(kHasValues ? 1 : 0);
    const int64_t count = extent_of(out, 0, static_cast<int>(out.rank));
    const int64_t begin = block * kElements, end = begin + kElements < count ? begin + kElements : count;
    const bool is_flat = is_contiguous(out, kItem), in_groups = is_flat && out.data % sizeof(Group) == 0;
    auto* const to = reinterpret_cast<uint8_t*>(out.data);
    const Numbers numbers(row);
    for (int64_t i = begin + gpu::thread_index() * kTogether; i < end; i += gpu::thread_count() * kTogether) {
      Group group;
      if constexpr (kIsNormal) group.values[0] = memory_of(numbers.normal(i));
      else
        for (int k = 0; k < kTogether; k += 2) {
          const philox::Block words = numbers.words((i + k) / 2);
          group.values[k] = memory_of(numbers.other(philox::uniform(words.w[0], words.w[1])));
          group.values[k + 1] = memory_of(numbers.other(philox::uniform(words.w[2], words.w[3])));
        }
      if (in_groups && i + kTogether <= end) {
        *reinterpret_cast<Group*>(to + i * kItem) = group;
        continue;
      }
      for (int k = 0; k < kTogether; ++k)
        if (i + k < end)
          *reinterpret_cast<Memory*>(to + (is_flat ? (i + k) * kItem : offset_of(out, i + k))) = group.values[k];
    }
  }

 private:
  static Memory memory_of(double x) {
    Memory result;
    store<Element>(reinterpret_cast<uint8_t*>(&result), op::cast<Element>(x));
    return result;
  }

  static constexpr draws::Rounding rounding() {
    if constexpr (std::is_same_v<Element, F16>) return draws::Rounding::Half;
    else if constexpr (std::is_same_v<Element, F32>) return draws::Rounding::Float;
    else return std::is_same_v<Element, F64> ? draws::Rounding::Double : draws::Rounding::Other;
  }

  class Numbers {
   public:
    explicit Numbers(const Row& row)
        : row_(row),
          first_(kStream > 0 ? row.number(0) : 0),
          second_(kStream > 1 ? row.number(1) : 0),
          range_(first_, second_, rounding()),
          epoch_key_(wide(row, kStream)),
          row_key_(wide(row, kStream + 2)),
          draw_(word(row, kStream + 4)) {}
    philox::Block words(int64_t number) const {
      return philox::generate(epoch_key_, (uint64_t{draw_} << 32) | static_cast<uint32_t>(number), row_key_);
    }
    double normal(int64_t i) const {
      const philox::Block block = words(i);
      const double first = philox::uniform(block.w[0], block.w[1]), second = philox::uniform(block.w[2], block.w[3]);
      return first_ + second_ * draws::normal(first, second);
    }
    // A number of another distribution.
    double other(double u) const {
      if constexpr (kIsEven) return range_.at(u);
      else if constexpr (kHasValues) {
        const Port& values = row_.port(0);
        const int64_t count = extent_of(values, 0, static_cast<int>(values.rank));
        const auto* const from = reinterpret_cast<const uint8_t*>(values.data);
        return static_cast<double>(load<Given>(from + offset_of(values, draws::index_below(u, count))));
      } else return u < first_ ? 1 : 0;
    }

   private:
    static uint32_t word(const Row& row, int i) { return static_cast<uint32_t>(static_cast<int64_t>(row.number(i))); }
    static uint64_t wide(const Row& row, int i) { return word(row, i) | (uint64_t{word(row, i + 1)} << 32); }
    const Row& row_;
    double first_, second_;
    draws::Range range_;
    uint64_t epoch_key_, row_key_;
    uint32_t draw_;
  };
};

}  // namespace stoker::own
