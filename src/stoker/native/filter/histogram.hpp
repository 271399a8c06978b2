// SPDX-License-Identifier: Apache-2.0
// Histograms of 8-bit images and lookups of their values; histogram_table.hpp has the lookup tables that follow from
// histograms. Images are [H,W,C] of U8 with any strides.
#pragma once
#include "base/tensor.hpp"
#include "shared/histogram_table.hpp"

namespace stoker::histogram {

// Add the counts of the values of every channel: 256 numbers per channel.
void count(const View& image, int64_t* counts);

// Write to[y,x,c] = tables[per_channel * c + from[y,x,c]]. With `per_channel` 0 all channels have one table. The images have
// one shape and are identical or do not overlap.
void apply(const View& from, const uint8_t* tables, int64_t per_channel, const View& to);

}  // namespace stoker::histogram
