// SPDX-License-Identifier: Apache-2.0
// Choice of bytes of a row by columns in ascending order: masks in another size.
#pragma once
#include <cstdint>

namespace stoker::torch_resize {

// to[i] = row[columns[i]] for n columns, each of at least the one before and less than `size`.
void pick_bytes(const uint8_t* row, int64_t size, const int32_t* columns, int64_t n, uint8_t* to);

}  // namespace stoker::torch_resize
