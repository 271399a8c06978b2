// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "base/whole.hpp"
#include "kernels/registry.hpp"
#include "run/job.hpp"

namespace stoker {

namespace {

// Region of a signal whose short-term power reaches a threshold. Parameters: samples of the window, the threshold
// relative to the reference, the reference (0: the largest power). Outputs: first sample and number of samples.
class NonsilentRegion : public Kernel {
 public:
  Ports ports() const override {
    return {.kernel = "nonsilent_region",
            .in = {port_of(DType::F32, 1)},
            .out = {port_of(DType::I32, 0), port_of(DType::I32, 0)},
            .params = 3};
  }
  bool fits(const Call& c) const override {
    if (offset_of(c.params[0]) >= 1 && c.in[0]->shape[0] <= std::numeric_limits<int32_t>::max()) return true;
    *c.error = "expected a window of at least one sample, and a signal of at most 2**31 - 1";
    return false;
  }
  Outcome run(const Call& c) const override {
    const int64_t n = c.in[0]->shape[0], window = std::min(offset_of(c.params[0]), n);
    int32_t begin = 0, length = 0;
    if (n > 0) {
      auto* sums = reinterpret_cast<double*>(c.work[0].get(static_cast<size_t>(n) * sizeof(double)));
      const Samples x{c.in[0]->data, c.in[0]->stride[0]};
      moving_sums(x, n, window, sums);
      double reference = c.params[2] * static_cast<double>(window);
      if (c.params[2] == 0)
        reference = *std::max_element(sums, sums + n, [](double a, double b) { return a < b || a != a; });
      const double least = reference * c.params[1];
      int64_t first = 0, last = n - 1;
      while (first < n && !(sums[first] >= least)) ++first;
      while (last > first && !(sums[last] >= least)) --last;
      if (first < n) {
        const int64_t from = std::max<int64_t>(first - (window - 1), 0);
        begin = static_cast<int32_t>(from);
        length = static_cast<int32_t>(last - from + 1);
      }
    }
    std::memcpy(c.out[0]->data, &begin, sizeof begin);
    std::memcpy(c.out[1]->data, &length, sizeof length);
    return Outcome::Ok;
  }

 private:
  static constexpr int64_t kPart = 8192;  // samples after which a new sum begins, so that errors and NaNs end
  static constexpr int kAtOnce = 4;       // parts, because each addition waits for the one before

  struct Samples {
    const uint8_t* data;
    int64_t stride;
    double square(int64_t i) const {
      float v;
      std::memcpy(&v, data + i * stride, sizeof v);
      return static_cast<double>(v) * static_cast<double>(v);
    }
  };

  // sums[i]: the squares of the last `window` samples up to sample i.
  static void moving_sums(const Samples& x, int64_t n, int64_t window, double* sums) {
    for (int64_t base = 0; base < n; base += kAtOnce * kPart) {
      double sum[kAtOnce] = {};
      for (int p = 0; p < kAtOnce; ++p) {
        const int64_t begin = base + p * kPart;
        for (int64_t i = std::max<int64_t>(begin - window, 0); i < std::min(begin, n); ++i) sum[p] += x.square(i);
      }
      for (int64_t k = 0; k < kPart; ++k)
        for (int p = 0; p < kAtOnce; ++p) {
          const int64_t i = base + p * kPart + k;
          if (i >= n) break;
          sum[p] += x.square(i);
          if (i >= window) sum[p] -= x.square(i - window);
          sums[i] = sum[p] < 0 ? 0 : sum[p];
        }
    }
  }
};

std::shared_ptr<Kernel> make_nonsilent_region() { return std::make_shared<NonsilentRegion>(); }

const Registered kNonsilentRegion{"nonsilent_region", "First and last loud sample of a signal.", make_nonsilent_region};

}  // namespace

}  // namespace stoker
