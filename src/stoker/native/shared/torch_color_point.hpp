// SPDX-License-Identifier: Apache-2.0
// Colour changes of one pixel as in torchvision's tensor kernels (torch/color.hpp). Plain C++ that compiles for the CPU
// and for a GPU. For `kHardware` see fused.hpp. "First generation" is torchvision.transforms, "second" transforms.v2.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "shared/fused.hpp"

namespace stoker::torch_color {

template <bool kHardware>
STOKER_INLINED inline float luma(const uint8_t* p, int64_t step) {
  const auto at = [&](int c) { return static_cast<float>(p[c * step]); };
  return fused<kHardware>(at(2), 0.114f, fused<kHardware>(at(1), 0.587f, at(0) * 0.2989f));
}

// Grey value of the first generation.
STOKER_INLINED inline int first_luma(const uint8_t* p, int64_t step) {
  const auto at = [&](int c) { return static_cast<float>(p[c * step]); };
  return static_cast<int>((0.2989f * at(0) + 0.587f * at(1)) + 0.114f * at(2));
}

STOKER_INLINED inline uint8_t byte(float v) {
  return static_cast<uint8_t>(v > 0.0f ? (v < 255.0f ? v : 255.0f) : 0.0f);  // NaN: 0
}

// Blend of the first generation.
STOKER_INLINED inline uint8_t first_blend(float v, float other, float ratio, float rest) {
  return byte(ratio * v + rest * other);
}

// Blend of the second generation, for a value that is not multiplied with `ratio` yet.
template <bool kHardware>
STOKER_INLINED inline uint8_t blend(float v, float grey, float ratio, float rest) {
  return byte(fused<kHardware>(grey, rest, v * ratio));
}

// torchvision's `adjust_hue` for one pixel, operation by operation. The first generation divides, and computes one of
// the products differently. `rgb` may equal `to`.
template <bool kFirst>
STOKER_INLINED inline void turned_floats(const float* rgb, float shift, float* to) {
  const float r = rgb[0], g = rgb[1], b = rgb[2];
  const float most = std::max(r, std::max(g, b)), least = std::min(r, std::min(g, b)), range = most - least;
  const bool flat = most == least;
  const float s = range / (flat ? 1.0f : most), divisor = flat ? 1.0f : range;
  const float rc = (most - r) / divisor, gc = (most - g) / divisor, bc = (most - b) / divisor;
  const bool by_red = most == r, by_green = most == g && !by_red;
  const float hr = (bc - gc) * (by_red ? 1.0f : 0.0f);
  const float hg = ((rc + 2.0f) - bc) * (by_green ? 1.0f : 0.0f);
  const float hb = ((gc + 4.0f) - rc) * (!by_red && !by_green ? 1.0f : 0.0f);
  float h = (hr + hg) + hb;
  // Remainder of a division by 1: the subtrahend is whole, so nothing is rounded.
  h = (kFirst ? h / 6.0f : h * static_cast<float>(1.0 / 6.0)) + 1.0f;
  h -= std::floor(h);
  h += shift;
  h -= std::trunc(h);
  if (h < 0) h += 1.0f;
  const float h6 = h * 6.0f, whole = std::floor(h6), f = h6 - whole;
  const auto unit_range = [](float v) { return std::clamp(v, 0.0f, 1.0f); };
  const float sxf = s * f, rest = 1.0f - s;
  const float q = unit_range((1.0f - sxf) * most), v = most;
  const float t = unit_range((kFirst ? 1.0f - s * (1.0f - f) : sxf + rest) * most);
  const float low = unit_range(rest * most);
  const float of[6][3] = {{v, t, low}, {q, v, low}, {low, v, t}, {low, q, v}, {t, low, v}, {v, low, q}};
  const float* mixed =
      // 6 wraps to 0; the index for NaN does not matter.
      of[whole > 0.0f && whole < 6.0f ? static_cast<int>(whole) : 0];
  // The first generation selects by a sum of products, so a non-finite value in any of them reaches the result.
  const float others = kFirst ? ((q - q) + (t - t)) + ((low - low) + (v - v)) : 0.0f;
  for (int c = 0; c < 3; ++c) to[c] = kFirst ? mixed[c] + others : mixed[c];
}

// The same for bytes.
template <bool kFirst>
STOKER_INLINED inline void turned(const uint8_t* p, int64_t step, float shift, uint8_t* to) {
  const float unit = static_cast<float>(1.0 / 255.0);
  const auto of_byte = [unit](uint8_t v) {
    return kFirst ? static_cast<float>(v) / 255.0f : static_cast<float>(v) * unit;
  };
  const float from[3] = {of_byte(p[0]), of_byte(p[step]), of_byte(p[2 * step])};
  float rgb[3];
  turned_floats<kFirst>(from, shift, rgb);
  for (int c = 0; c < 3; ++c) to[c] = static_cast<uint8_t>(rgb[c] * static_cast<float>(255.0 + 1.0 - 1e-3));
}

// Lowest and highest value of a channel; a flat channel stays as it is.
template <class Count>
struct Extremes {
  explicit Extremes(const Count* counts) {
    while (low < 255 && !counts[low]) ++low;
    while (high > 0 && !counts[high]) --high;
  }
  bool flat() const { return high <= low; }
  float least() const { return flat() ? 0.0f : static_cast<float>(low); }
  float range() const { return static_cast<float>(high - low); }

  int low = 0, high = 255;
};

template <class Count>
inline void autocontrast_table(const Count* counts, uint8_t* table) {
  const Extremes<Count> of(counts);
  const float least = of.least(), scale = of.flat() ? 1.0f : of.range() * static_cast<float>(1.0 / 255.0);
  for (int i = 0; i < 256; ++i) table[i] = byte((static_cast<float>(i) - least) / scale);
}

// The first generation multiplies, and so rounds differently.
template <class Count>
inline void first_autocontrast_table(const Count* counts, uint8_t* table) {
  const Extremes<Count> of(counts);
  // Rounded as in torch's division of a scalar.
  const float least = of.least(), scale = of.flat() ? 1.0f : (1.0f / of.range()) * 255.0f;
  for (int i = 0; i < 256; ++i) table[i] = byte((static_cast<float>(i) - least) * scale);
}

// Fill the table from the sum of the grey values as torch computes it.
inline void first_contrast_table(float sum, int64_t pixels, float ratio, float rest, uint8_t* table) {
  const float mean = sum / static_cast<float>(pixels);
  for (int i = 0; i < 256; ++i) table[i] = first_blend(static_cast<float>(i), mean, ratio, rest);
}

template <bool kHardware>
inline void contrast_table(float sum, int64_t pixels, float ratio, float rest, uint8_t* table) {
  const float mean = sum / static_cast<float>(pixels);
  for (int i = 0; i < 256; ++i) table[i] = blend<kHardware>(static_cast<float>(i), mean, ratio, rest);
}

}  // namespace stoker::torch_color
