// SPDX-License-Identifier: Apache-2.0
// Pillow's box blurs: repeated means over windows whose width may be fractional.
#pragma once
#include "base/tensor.hpp"

namespace stoker::box_blur {

constexpr float kMaxRadius = 1 << 10;  // of a box: a larger blur would leave nothing of a photograph

// Window of a box blur: `radius` whole pixels to either side and a fraction of one more, in units of 2^-24.
struct Box {
  explicit Box(float size) : radius(static_cast<int>(size)) {
    whole = static_cast<uint32_t>(static_cast<float>(1u << 24) / (size * 2 + 1));
    part = ((1u << 24) - static_cast<uint32_t>(radius * 2 + 1) * whole) / 2;
  }
  uint8_t mean(uint32_t inside, uint32_t ends) const {
    return static_cast<uint8_t>((inside * whole + ends * part + (1u << 23)) >> 24);
  }
  int radius;
  uint32_t whole, part;
};

// Return the radius of the box that, applied `passes` times, best approximates a Gaussian of this deviation (Gwosdek et
// al., 2011), in Pillow's arithmetic.
float radius_of_bell(float deviation, int passes);

// Blur horizontally with radius `across` and then vertically with radius `down`, `passes` times each: every pixel
// becomes the mean of its window. Pixels outside of the image equal the nearest pixel inside. Sums are of integers, so
// their order does not matter, and every pass rounds to 8 bits.
//
// src and dst: [H,W,C] of U8 with adjacent pixels in a row, 0 <= radius <= kMaxRadius; they must not overlap. Return
// false, with dst untouched, for anything else.
bool blur(const View& src, float across, float down, int passes, const View& dst, Scratch& scratch);

}  // namespace stoker::box_blur
