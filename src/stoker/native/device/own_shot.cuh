// SPDX-License-Identifier: Apache-2.0
// Shot noise. A block computes kElements elements. Bytes have a table of everything that depends on their value.
#pragma once
#include "device/own.cuh"
#include "shared/poisson.hpp"

namespace stoker::own {

// Numbers: factor, and the two words that name the row's stream. Memory of a row of bytes: a Table.
template <class Ports>
struct Shot {
  using Element = typename Ports::template At<0>;
  using Memory = typename Element::Memory;
  static constexpr bool kBytes = sizeof(Memory) == 1;
  // Also in ops/image/noise_shot.py. A larger block of bytes loads the table less often.
  static constexpr int64_t kElements = kBytes ? 4096 : 1024;
  static constexpr int kValues = 256, kFactorials = 256;

  // Numbers for a mean from poisson::kSmall on.
  struct Large {
    poisson::Rejection rejection;
    double log_mean, log_inverse_alpha;
  };
  // By the byte's value. Its size is also in ops/image/noise_shot.py.
  struct Table {
    double mean[kValues];
    Large large[kValues];
    double log_factorial[kFactorials];
    uint32_t thresholds[kValues][poisson::kThresholds];
  };
  static_assert(sizeof(Table) == kValues * (8 + 7 * 8 + 8 + 64 * 4));
  struct TableLogs {
    const Large& large;
    const double* factorials;
    double mean() const { return large.log_mean; }
    double inverse_alpha() const { return large.log_inverse_alpha; }
    double factorial(double k) const {
      return k < kFactorials ? factorials[static_cast<int>(k)] : poisson::log_factorial(k);
    }
  };

  static uint32_t word(double number) { return static_cast<uint32_t>(static_cast<int64_t>(number)); }
  static bool is_small(double mean) { return mean > 0 && mean < poisson::kSmall; }
  static bool is_large(double mean) { return mean >= poisson::kSmall && mean < 1e300; }

  // The table of a row of bytes: a thread for a value.
  static void table(const Row& row, uint32_t) {
    auto& table = *row.scratch<Table>();
    const double factor = row.number(0);
    for (uint32_t i = gpu::thread_index(); i < kValues; i += gpu::thread_count()) {
      const auto x = static_cast<double>(static_cast<Memory>(i));
      const double mean = factor == 0 ? 0 : xm::detail::div(x, factor);
      table.mean[i] = mean;
      table.log_factorial[i] = poisson::log_factorial(i);
      if (is_small(mean)) poisson::find_thresholds(mean, table.thresholds[i]);
      if (!is_large(mean)) continue;
      const poisson::Rejection r(mean);
      const poisson::Logarithms logs{r};
      table.large[i] = {r, logs.mean(), logs.inverse_alpha()};
    }
  }

  // poisson::shot by the table.
  static double shot(const Table& table, Memory value, double factor, uint32_t element, uint32_t key, uint32_t stream) {
    const auto x = static_cast<double>(value);
    const auto i = static_cast<uint8_t>(value);
    if (factor == 0) return x;
    const double mean = table.mean[i];
    if (is_small(mean)) {
      const uint32_t word = element_random::word(element, key, stream);
      return xm::detail::mul(poisson::by_thresholds(table.thresholds[i], word), factor);
    }
    if (!is_large(mean)) return xm::detail::mul(mean <= 0 ? 0 : mean, factor);
    const Large& large = table.large[i];
    poisson::Uniforms draws(element, key, stream);
    const TableLogs logs{large, table.log_factorial};
    return xm::detail::mul(poisson::by_rejection(large.rejection, logs, draws), factor);
  }

  static void draw(const Row& row, uint32_t block) {
    const Port &in = row.port(0), &out = row.port(1);
    const double factor = row.number(0);
    const uint32_t key = word(row.number(1)), stream = word(row.number(2));
    constexpr int64_t kItem = sizeof(typename Element::Memory);
    const bool flat = is_contiguous(in, kItem) && is_contiguous(out, kItem);
    const int64_t count = extent_of(out, 0, static_cast<int>(out.rank));
    const int64_t begin = block * kElements, end = begin + kElements < count ? begin + kElements : count;
    for (int64_t i = begin + gpu::thread_index(); i < end; i += gpu::thread_count()) {
      const int64_t from = flat ? i * kItem : offset_of(in, i), to = flat ? i * kItem : offset_of(out, i);
      const uint8_t* const at = reinterpret_cast<const uint8_t*>(in.data) + from;
      const auto element = static_cast<uint32_t>(i);
      double noisy;
      if constexpr (kBytes)
        noisy = shot(*row.scratch<const Table>(), *reinterpret_cast<const Memory*>(at), factor, element, key, stream);
      else noisy = poisson::shot(static_cast<double>(load<Element>(at)), factor, element, key, stream);
      store<Element>(reinterpret_cast<uint8_t*>(out.data) + to, op::cast<Element>(noisy));
    }
  }
};

}  // namespace stoker::own
