// SPDX-License-Identifier: Apache-2.0
// Pillow's blurs by boxes: means over windows whose width need not be whole, a few times over.
#pragma once
#include "tensor.hpp"

namespace stoker::box_blur {

constexpr float kMostRadius = 1 << 10;  // of a box: more than any photograph is blurred by

// A window: `radius` whole pixels to either side and a part of one more, in units of 2^-24.
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

// The radius of the box that, taken `passes` times, is nearest to a bell of this deviation (Gwosdek et al., 2011), in
// Pillow's arithmetic.
float radius_of_bell(float deviation, int passes);

// Every pixel becomes the mean of its row from `across` pixels before to `across` pixels behind it, `passes` times; then
// the same by columns with `down`. What is outside is the nearest pixel inside. Sums are of whole numbers, so that the
// order does not matter, and every pass rounds to 8 bits.
//
// src and dst: [H,W,C] of U8 with pixels side by side in a row, 0 <= radius <= kMostRadius; they must not overlap.
// Returns false, with dst untouched, for anything else.
bool blur(const View& src, float across, float down, int passes, const View& dst, Scratch& scratch);

}  // namespace stoker::box_blur
