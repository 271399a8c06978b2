// SPDX-License-Identifier: Apache-2.0
// A tensor at the start of a larger one that is filled with a number.
#include <cstring>

#include "kernels/registry.hpp"
#include "kernels/store_scalar.hpp"
#include "run/job.hpp"

namespace stoker {

namespace {

// Copy axis `axis` and those after it.
void place(const View& from, const uint8_t* p, const View& to, uint8_t* q, int axis) {
  const int64_t item = size_of(from.dtype);
  if (axis == from.rank) {
    std::memcpy(q, p, static_cast<size_t>(item));
    return;
  }
  const int64_t n = from.shape[axis];
  if (axis == from.rank - 1 && from.stride[axis] == item && to.stride[axis] == item) {
    std::memcpy(q, p, static_cast<size_t>(item * n));
    return;
  }
  for (int64_t i = 0; i < n; ++i, p += from.stride[axis], q += to.stride[axis]) place(from, p, to, q, axis + 1);
}

// Parameter: the number.
class Pad : public Kernel {
 public:
  Ports ports() const override {
    return {.kernel = "pad", .in = {{}}, .out = {{.same_type = 0, .same_rank = 0}}, .params = 1};
  }
  bool fits(const Call& c) const override {
    for (int i = 0; i < c.in[0]->rank; ++i)
      if (c.out[0]->shape[i] < c.in[0]->shape[i]) {
        *c.error = "expected an output with at least the input's extents";
        return false;
      }
    return true;
  }
  Outcome run(const Call& c) const override {
    const View &from = *c.in[0], &to = *c.out[0];
    const int64_t item = size_of(to.dtype), n = to.elements();
    uint8_t fill[8];
    store_scalar(fill, to.dtype, c.params[0]);
    for (int64_t i = 0; i < n; ++i) std::memcpy(to.data + i * item, fill, static_cast<size_t>(item));
    if (from.elements() > 0) place(from, from.data, to, to.data, 0);
    return Outcome::Ok;
  }
};

std::shared_ptr<Kernel> make_pad() { return std::make_shared<Pad>(); }

const Registered kPad{"pad", "A tensor at the start of a larger one that is filled with a number.", make_pad};

}  // namespace

}  // namespace stoker
