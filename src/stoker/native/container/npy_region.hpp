// SPDX-License-Identifier: Apache-2.0
// Regions of the arrays in .npy files: where their elements are in the file, and copying them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "container/npy.hpp"

namespace stoker {

// Bounds of a region, and the policy for those outside of the array.
struct NpyRegion {
  enum class Bound : int { None = 0, Absolute = 1, Relative = 2, Shape = 3, RelativeShape = 4 };
  enum class Outside : int { Error = 0, Pad = 1, Trim = 2 };

  std::vector<int> axes;  // that the bounds are of; less than the array's
  Bound start = Bound::None, end = Bound::None;
  Outside policy = Outside::Error;
  std::vector<uint8_t> fill = {};  // an element

  // Number of bounds: the starts on the axes, if any, then the ends or shapes.
  size_t bounds() const { return ((start != Bound::None ? 1u : 0u) + (end != Bound::None ? 1u : 0u)) * axes.size(); }
};

// Region of an array, its part that the array has, and the rows of the slowest axis of the file that have this part.
struct NpyPart {
  int64_t region_begin[kMaxRank] = {}, region_extent[kMaxRank] = {};  // the first index may be negative
  int64_t begin[kMaxRank] = {}, extent[kMaxRank] = {};                // of the part
  int64_t region_bytes = 0;
  int slowest = 0;
  bool is_inside = true;   // the region has no elements outside of the array
  bool is_empty = false;   // all of them are
  bool is_direct = false;  // the rows have the region alone, in its order
  bool is_plain = false;   // and their bytes are those of the output
  uint64_t offset = 0;     // of the rows in the file
  size_t bytes = 0;        // of the rows
};

// Find the part of an array that a region takes. The array's bytes must be in the file. Return false with the reason in
// `error` if the region is impossible, outside of the array, or larger than `most` bytes.
bool find_npy_part(const NpyRegion& rule, const double* bounds, const NpyHeader& header, int64_t most, NpyPart& part,
                   std::string& error);

// Fill the region with an element.
void fill_npy_region(const NpyPart& part, const std::vector<uint8_t>& element, uint8_t* region);

// Return the place of a direct part's rows in the region.
uint8_t* place_of_npy_rows(const NpyHeader& header, const NpyPart& part, uint8_t* region);

// Put the rows, as they were read, into the region. If the part is direct, they are in their place already. The rows'
// memory is changed.
void put_npy_rows(const NpyHeader& header, const NpyPart& part, uint8_t* rows, uint8_t* region);

}  // namespace stoker
