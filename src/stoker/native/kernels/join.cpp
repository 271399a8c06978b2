// SPDX-License-Identifier: Apache-2.0
// Tensors of one type, one after another along an axis.
#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "base/copy_view.hpp"
#include "kernels/registry.hpp"
#include "plan/check.hpp"
#include "run/job.hpp"

namespace stoker {

namespace {

class Join : public Kernel {
 public:
  Join(int count, int axis) : count_(count), axis_(axis) {}
  Ports ports() const override {
    Ports ports{.kernel = "join", .out = {{.least_rank = axis_ + 1, .same_type = 0, .same_rank = 0}}};
    for (int i = 0; i < count_; ++i) ports.in.push_back({.least_rank = axis_ + 1, .same_type = 0, .same_rank = 0});
    return ports;
  }
  bool fits(const Call& c) const override {
    const View& out = *c.out[0];
    int64_t along = 0;
    bool equal = true;
    for (int i = 0; i < count_; ++i) {
      along += c.in[i]->shape[axis_];
      for (int k = 0; k < out.rank; ++k) equal = equal && (k == axis_ || c.in[i]->shape[k] == out.shape[k]);
    }
    if (equal && along == out.shape[axis_]) return true;
    *c.error = "expected tensors of one shape but along the axis, and memory for all of them";
    return false;
  }
  Outcome run(const Call& c) const override {
    const View& out = *c.out[0];
    int64_t outer = 1;
    for (int k = 0; k < axis_; ++k) outer *= out.shape[k];
    uint8_t* to = out.data;
    for (int64_t i = 0; i < outer; ++i)
      for (int part = 0; part < count_; ++part) {
        View block = *c.in[part];  // what lies at place i of the axes before
        for (int64_t k = axis_ - 1, rest = i; k >= 0; --k) {
          block.data += (rest % out.shape[k]) * block.stride[k];
          rest /= out.shape[k];
        }
        block.rank -= axis_;
        std::copy(c.in[part]->shape + axis_, c.in[part]->shape + out.rank, block.shape);
        std::copy(c.in[part]->stride + axis_, c.in[part]->stride + out.rank, block.stride);
        if (block.elements() == 0) continue;
        copy_contiguous(block, to);
        to += block.elements() * size_of(block.dtype);
      }
    return Outcome::Ok;
  }

 private:
  int count_, axis_;
};

std::shared_ptr<Kernel> make_join(int count, int axis) {
  if (count < 1 || count > kMaxStepInputs || axis < 0 || axis >= kMaxRank)
    throw std::invalid_argument("expected 1 to 64 tensors and an axis");
  return std::make_shared<Join>(count, axis);
}

const Registered kJoin{"join",
                       "Tensors, one after another along an axis.",
                       make_join,
                       {{"count", "number of tensors"}, {"axis", "the axis"}}};

}  // namespace

}  // namespace stoker
