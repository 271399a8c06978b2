// SPDX-License-Identifier: Apache-2.0
// Filters of PNG rows (ISO/IEC 15948, section 9).
#pragma once
#include <cstddef>
#include <cstdint>

namespace stoker::raster {

constexpr int kFilters = 5;

// Readable bytes that must follow both rows.
constexpr int64_t kUnfilterPadding = 8;

// Undo a row's filter in place. `above`: the row before, of the same length. `pixel`: bytes of a pixel, at least one: 1,
// 2, 3, 4, 6 or 8. `filter` is less than kFilters.
void unfilter(int filter, uint8_t* row, const uint8_t* above, size_t size, int pixel);

}  // namespace stoker::raster
