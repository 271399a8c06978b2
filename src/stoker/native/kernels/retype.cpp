// SPDX-License-Identifier: Apache-2.0
// The bytes of a tensor as elements of another type.
#include "base/copy_view.hpp"
#include "kernels/registry.hpp"
#include "plan/check.hpp"
#include "run/job.hpp"

namespace stoker {

namespace {

class Retype : public Kernel {
 public:
  Ports ports() const override { return {.kernel = "retype", .in = {{}}, .out = {{}}}; }
  void check(const StepFacts& step) const override {
    const bool truth = step.out_type(0) == DType::Bool && step.in_type(0) != DType::Bool;
    step.require(!truth, "output", "a type of which any bytes are elements", "bool");
  }
  bool fits(const Call& c) const override {
    const View &from = *c.in[0], &to = *c.out[0];
    if (from.elements() * size_of(from.dtype) == to.elements() * size_of(to.dtype)) return true;
    *c.error = "expected an output of as many bytes as the input";
    return false;
  }
  Outcome run(const Call& c) const override {
    copy_contiguous(*c.in[0], c.out[0]->data);
    return Outcome::Ok;
  }
};

std::shared_ptr<Kernel> make_retype() { return std::make_shared<Retype>(); }

const Registered kRetype{"retype", "The bytes of a tensor as elements of another type.", make_retype};

}  // namespace

}  // namespace stoker
