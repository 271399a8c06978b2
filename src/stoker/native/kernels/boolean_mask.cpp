// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "base/copy_view.hpp"
#include "kernels/registry.hpp"

namespace stoker {

namespace {

// Inputs: data, a mask. Outputs: the elements of the first axis that the mask keeps, and how many these are.
class BooleanMask : public Kernel {
 public:
  Ports ports() const override {
    return {.kernel = "boolean_mask",
            .in = {{.least_rank = 1}, port_of(DType::Bool, 1)},
            .out = {{.least_rank = 1, .same_type = 0, .same_rank = 0}, port_of(DType::I32, 0)}};
  }
  bool fits(const Call& c) const override {
    const View &x = *c.in[0], &mask = *c.in[1], &out = *c.out[0];
    if (mask.shape[0] != x.shape[0] || x.shape[0] > std::numeric_limits<int32_t>::max()) {
      *c.error = "expected a mask of type bool with an element for each of the first axis, at most 2**31 - 1";
      return false;
    }
    if (std::equal(x.shape + 1, x.shape + x.rank, out.shape + 1)) return true;
    *c.error = "expected memory for elements of the input's extents";
    return false;
  }
  Outcome run(const Call& c) const override {
    const View &x = *c.in[0], &mask = *c.in[1], &out = *c.out[0];
    View item = x;
    item.rank = x.rank - 1;
    std::copy(x.shape + 1, x.shape + x.rank, item.shape);
    std::copy(x.stride + 1, x.stride + x.rank, item.stride);
    const int64_t bytes = item.elements() * size_of(x.dtype);
    int32_t kept = 0;
    for (int64_t i = 0; i < x.shape[0]; ++i) {
      if (mask.data[i * mask.stride[0]] == 0) continue;
      item.data = x.data + i * x.stride[0];
      if (kept < out.shape[0]) copy_contiguous(item, out.data + kept * bytes);  // else the run loop refuses the count
      ++kept;
    }
    std::memcpy(c.out[1]->data, &kept, sizeof kept);
    return Outcome::Ok;
  }
};

std::shared_ptr<Kernel> make_boolean_mask() { return std::make_shared<BooleanMask>(); }

const Registered kBooleanMask{"boolean_mask", "The elements of the first axis where a mask is true, and their count.",
                              make_boolean_mask};

}  // namespace

}  // namespace stoker
