// SPDX-License-Identifier: Apache-2.0
#include "pixel/halves.hpp"

#include <algorithm>

#include "pixel/kernels.hpp"

namespace stoker {
namespace {

constexpr int64_t kPart = 1 << 20;  // kernels count elements in int

}  // namespace

void floats_to_halves(uint16_t* dst, const float* src, int64_t n) {
  const auto convert = pixel::kernels().store[pixel::at(DType::F16)][pixel::at(pixel::Type::F32)];
  for (int64_t i = 0; i < n; i += kPart) convert(dst + i, src + i, static_cast<int>(std::min(kPart, n - i)));
}

void halves_to_floats(float* dst, const uint16_t* src, int64_t n) {
  const auto convert = pixel::kernels().load[pixel::at(DType::F16)][pixel::at(pixel::Type::F32)];
  for (int64_t i = 0; i < n; i += kPart) convert(dst + i, src + i, static_cast<int>(std::min(kPart, n - i)));
}

}  // namespace stoker
