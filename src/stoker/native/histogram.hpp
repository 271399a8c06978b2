// SPDX-License-Identifier: Apache-2.0
// How often the values of 8-bit planes occur; the tables that follow from it are in histogram_table.hpp.
#pragma once
#include "histogram_table.hpp"
#include "tensor.hpp"

namespace stoker::histogram {

// Counts the values of an 8-bit plane [height,width] with any strides. counts: 256, added to.
void count(const View& plane, int64_t* counts);

// Writes to[y,x] = table[from[y,x]]; both are 8-bit planes of one shape, and may be the same.
void apply(const View& from, const uint8_t table[256], const View& to);

}  // namespace stoker::histogram
