// SPDX-License-Identifier: Apache-2.0
// Histograms of 8-bit planes; histogram_table.hpp has the lookup tables that follow from them.
#pragma once
#include "base/tensor.hpp"
#include "shared/histogram_table.hpp"

namespace stoker::histogram {

// Add the counts of the values of an 8-bit plane [height,width] with any strides to counts[256].
void count(const View& plane, int64_t* counts);

// Write to[y,x] = table[from[y,x]]; both are 8-bit planes of one shape and may be identical.
void apply(const View& from, const uint8_t table[256], const View& to);

}  // namespace stoker::histogram
