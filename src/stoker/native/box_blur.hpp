// SPDX-License-Identifier: Apache-2.0
// Pillow's blurs by boxes: means over windows whose width need not be whole, a few times over.
#pragma once
#include "tensor.hpp"

namespace stoker::box_blur {

constexpr float kMostRadius = 1 << 10;  // of a box: more than any photograph is blurred by

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
