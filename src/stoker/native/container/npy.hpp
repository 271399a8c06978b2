// SPDX-License-Identifier: Apache-2.0
// Headers of NumPy's .npy files, versions 1 to 3.
#pragma once
#include <cstdint>
#include <string>

#include "base/tensor.hpp"

namespace stoker {

struct NpyHeader {
  DType dtype = DType::U8;
  bool is_swapped = false;  // big-endian
  bool is_fortran = false;  // the first axis runs fastest
  int32_t rank = 0;
  int64_t shape[kMaxRank] = {};
  uint64_t data = 0;   // offset of the first element
  uint64_t bytes = 0;  // of all elements
};

constexpr uint64_t kMaxNpyHeader = uint64_t{1} << 20;

// Return the number of bytes before the first element of a file that begins with these (at least 12, or the whole file),
// or 0 with the reason in `error`.
uint64_t npy_header_size(const uint8_t* data, uint64_t size, std::string& error);

// Read the header at the beginning of `data`, which has as many bytes as `npy_header_size` says. Return false with the
// reason in `error`.
bool read_npy_header(const uint8_t* data, uint64_t size, NpyHeader& header, std::string& error);

}  // namespace stoker
