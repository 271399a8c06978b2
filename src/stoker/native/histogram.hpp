// SPDX-License-Identifier: Apache-2.0
// Tables that follow from a histogram of 8-bit values: equalisation, contrast.
#pragma once
#include "tensor.hpp"

namespace stoker::histogram {

// Counts the values of an 8-bit plane [height,width] with any strides. counts: 256, added to.
void count(const View& plane, int64_t* counts);

// Writes to[y,x] = table[from[y,x]]; both are 8-bit planes of one shape, and may be the same.
void apply(const View& from, const uint8_t table[256], const View& to);

// OpenCV's equalizeHist, which DALI's `equalize` equals: the lowest value becomes 0; a single value stays.
void equalized(const int64_t counts[256], uint8_t table[256]);

// Pillow's ImageOps.equalize, which leaves small steps out and keeps images of few values as they are.
void equalized_in_steps(const int64_t counts[256], uint8_t table[256]);

// torch's equalisation in torchvision's tensor kernels: rounded down, the lowest value becomes 0.
void equalized_whole(const int64_t counts[256], uint8_t table[256]);

// Pillow's ImageOps.autocontrast without cutoff: from the lowest to the highest value, truncated.
void stretched(const int64_t counts[256], uint8_t table[256]);

}  // namespace stoker::histogram
