// SPDX-License-Identifier: Apache-2.0
// Kernels that show a part of their record's bytes without copying them.
#pragma once
#include <cstdint>

#include "kernels/registry.hpp"
#include "plan/check.hpp"

namespace stoker {

// Base class of such kernels, over a base class of their own. The record comes twice: as bytes to read, and as memory to
// show.
template <class Base = Kernel>
class RecordPart : public Base {
 public:
  using Base::Base;
  void check(const StepFacts& step) const override {
    step.require(step.in_value(0) == step.in_value(1), "inputs", "one record twice", "two values");
  }
  bool aliases() const override { return true; }

 protected:
  static Ports ports_of(const char* kernel) {
    return {.kernel = kernel,
            .in = {port_of(DType::U8, 1), port_of(DType::U8, 1)},
            .out = {port_of(DType::U8, 1)},
            .shows = 0b10};
  }
  // Give `size` bytes at `data` to the output. They stay unchanged as long as the record.
  static Outcome show(const Call& c, const uint8_t* data, uint64_t size) {
    View& out = *c.out[0];
    out.data = const_cast<uint8_t*>(data);
    out.shape[0] = static_cast<int64_t>(size);
    out.stride[0] = 1;
    return Outcome::Ok;
  }
};

}  // namespace stoker
