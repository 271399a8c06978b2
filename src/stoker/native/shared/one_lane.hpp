// SPDX-License-Identifier: Apache-2.0
// The `Lanes` of shared/xmath_float.hpp for one number. It is apart from that file, which is also compiled for targets
// with vectors: the linker might keep their copy of an inline function for all machines.
#pragma once
#include <cstdint>
#include <cstring>

namespace stoker::xm {

struct OneLane {
  using F = float;
  using I = int32_t;
  static I bits(F x) {
    I i;
    memcpy(&i, &x, sizeof i);
    return i;
  }
  static F from_bits(I i) {
    F x;
    memcpy(&x, &i, sizeof x);
    return x;
  }
  static F to_float(I x) { return static_cast<float>(x); }
  static F where(bool c, F a, F b) { return c ? a : b; }
};

}  // namespace stoker::xm
