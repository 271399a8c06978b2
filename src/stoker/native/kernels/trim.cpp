// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <limits>

#include "base/copy_view.hpp"
#include "base/whole.hpp"
#include "kernels/registry.hpp"

namespace stoker {

namespace {

// Inputs: a signal, the first sample of a region, its number of samples. Parameter: samples to keep on both sides.
// Outputs: the samples, and how many these are.
class Trim : public Kernel {
 public:
  Ports ports() const override {
    constexpr PortRule kCount = port_of(DType::I32, 0);
    return {.kernel = "trim",
            .in = {{.least_rank = 1, .most_rank = 1}, kCount, kCount},
            .out = {{.least_rank = 1, .most_rank = 1, .same_type = 0}, kCount},
            .params = 1};
  }
  bool fits(const Call& c) const override {
    if (c.in[0]->shape[0] <= std::numeric_limits<int32_t>::max() && c.out[0]->shape[0] >= c.in[0]->shape[0] &&
        offset_of(c.params[0]) >= 0)
      return true;
    *c.error = "expected a signal of at most 2**31 - 1 samples, memory for all, and no negative margin";
    return false;
  }
  Outcome run(const Call& c) const override {
    const View& x = *c.in[0];
    const int64_t length = number(*c.in[2]), margin = length > 0 ? offset_of(c.params[0]) : 0;
    const int64_t first = std::clamp<int64_t>(number(*c.in[1]) - margin, 0, x.shape[0]);
    const int64_t last = std::clamp<int64_t>(number(*c.in[1]) + length + margin, first, x.shape[0]);
    View part = x;
    part.data += first * x.stride[0];
    part.shape[0] = last - first;
    copy_contiguous(part, c.out[0]->data);
    const auto count = static_cast<int32_t>(last - first);
    std::memcpy(c.out[1]->data, &count, sizeof count);
    return Outcome::Ok;
  }

 private:
  static int64_t number(const View& v) {
    int32_t x;
    std::memcpy(&x, v.data, sizeof x);
    return x;
  }
};

std::shared_ptr<Kernel> make_trim() { return std::make_shared<Trim>(); }

const Registered kTrim{"trim", "The samples of a region, and their number.", make_trim};

}  // namespace

}  // namespace stoker
