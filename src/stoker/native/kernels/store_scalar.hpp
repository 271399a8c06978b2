// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "base/tensor.hpp"

namespace stoker {

// Write x as dtype: rounded half to even, saturated; NaN gives 0.
void store_scalar(uint8_t* p, DType dtype, double x);

}  // namespace stoker
