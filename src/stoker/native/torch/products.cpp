// SPDX-License-Identifier: Apache-2.0
#include "torch/products.hpp"

#include <algorithm>
#include <cmath>

#include "base/elements.hpp"
#include "base/fused_forms.hpp"
#include "shared/xmath.hpp"

namespace stoker::torch_products {

namespace {

// Some pixels of a row: the first value for each weight, and the number of weights.
struct Run {
  const float* const* at;
  const float* weights;
  int64_t count;
};

template <bool kHardware>
[[gnu::always_inline]] inline float pair(const Run& r, int64_t first, int64_t x) {
  return fused<kHardware>(r.at[first][x], r.weights[first], r.at[first + 2][x] * r.weights[first + 2]);
}

template <bool kHardware>
[[gnu::always_inline]] inline float four(const Run& r, int64_t first, int64_t x) {
  return pair<kHardware>(r, first, x) + pair<kHardware>(r, first + 1, x);
}

// Sum of pixels [x0, x1), together or one by one.
struct Sum {
  template <bool kHardware>
  [[gnu::always_inline]] static inline void run(const Run& r, int64_t x0, int64_t x1, bool together, float* out) {
    int64_t done = together ? r.count / 8 * 8 : 0;
    if (done) {
      for (int64_t x = x0; x < x1; ++x) out[x] = four<kHardware>(r, 0, x) + four<kHardware>(r, 4, x);
    } else {
      for (int64_t x = x0; x < x1; ++x) out[x] = r.at[0][x] * r.weights[0];
      done = 1;
    }
    for (; done < r.count; ++done) {
      const float* from = r.at[done];
      const float w = r.weights[done];
      for (int64_t x = x0; x < x1; ++x) out[x] = fused<kHardware>(from[x], w, out[x]);
    }
  }
};

bool fits(const View& v) { return v.rank == 3 && v.shape[2] == 1 && (v.dtype == DType::U8 || v.dtype == DType::F32); }

float value(const View& v, int64_t y, int64_t x) {
  const uint8_t* p = v.data + y * v.stride[0] + x * v.stride[1];
  return v.dtype == DType::U8 ? static_cast<float>(*p) : load_element<float>(p);
}

void put(const View& v, int64_t y, int64_t x, float sum) {
  uint8_t* p = v.data + y * v.stride[0] + x * v.stride[1];
  if (v.dtype == DType::F32) return store_element(p, sum);
  const auto whole = static_cast<float>(xm::round_even(static_cast<double>(sum)));
  *p = static_cast<uint8_t>(whole > 0.0f ? (whole < 255.0f ? whole : 255.0f) : 0.0f);  // NaN: 0
}

}  // namespace

bool correlate(const View& src, const correlate::Window& window, const View& dst, Scratch& scratch) {
  const int64_t count = window.height * window.width;
  if (!fits(src) || !fits(dst) || src.elements() == 0 || window.height < 1 || window.width < 1 || count > kMaxWeights)
    return false;
  if (window.border == Border::Constant || dst.elements() == 0) return false;
  const int64_t height = dst.shape[0], width = dst.shape[1];
  const int64_t rows = height + window.height - 1, columns = width + window.width - 1;
  auto* values = reinterpret_cast<float*>(scratch.get(static_cast<size_t>(rows * columns + width) * sizeof(float)));
  float* out = values + rows * columns;
  for (int64_t y = 0; y < rows; ++y) {
    const int64_t from = border_position(y - window.top, src.shape[0], window.border);
    for (int64_t x = 0; x < columns; ++x)
      values[y * columns + x] = value(src, from, border_position(x - window.left, src.shape[1], window.border));
  }
  const auto run = form_of<Sum>();
  const int64_t end = height * width / kTogether * kTogether;
  for (int64_t y = 0; y < height; ++y) {
    const float* at[kMaxWeights];
    for (int64_t k = 0; k < count; ++k) at[k] = values + (y + k / window.width) * columns + k % window.width;
    const Run of{at, window.weights, count};
    const int64_t together = std::clamp<int64_t>(end - y * width, 0, width);
    run(of, 0, together, true, out);
    run(of, together, width, false, out);
    for (int64_t x = 0; x < width; ++x) put(dst, y, x, out[x]);
  }
  return true;
}

}  // namespace stoker::torch_products
