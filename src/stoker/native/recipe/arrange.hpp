// SPDX-License-Identifier: Apache-2.0
// Another order of an image's values, as a reshape, a permutation and an expansion of its tensor give: patches.
//
// Each axis of the result counts along one axis of the image, or copies. It has an extent, and a unit on that axis: the
// axis of patches of 14 rows has unit 14, and the axis within a patch unit 1. Together the units of an axis are a mixed
// radix, so that each value of the image has one place in each copy, and the place is a sum of offsets: one of its
// channel, one of its row and one of its column.
#pragma once
#include <cstdint>
#include <vector>

namespace stoker::recipe {

// Check the parameters of an `Arrange` step: their count, then for each axis of the result, outermost first, the
// image's axis (0 channels, 1 rows, 2 columns, 3 copies), the extent and the unit. Return the number of copies.
// Throw InvalidRecipe for axes that do not cover such an image once.
int64_t count_copies(const double* p, int64_t height, int64_t width, int64_t channels);

class Arrangement {
 public:
  // The parameters have been checked.
  Arrangement(const double* p, int64_t height, int64_t width, int64_t channels);

  int64_t copies() const { return static_cast<int64_t>(copies_.size()); }

  // Put `n` values of a channel of row `y`, from column `x` on, to their places in all copies.
  void put(float* to, int64_t channel, int64_t y, int64_t x, int64_t n, const float* values) const;

 private:
  std::vector<int64_t> channels_, rows_, columns_, copies_;  // offsets
  int64_t run_ = 1;                                          // count of columns that are adjacent in the result
};

}  // namespace stoker::recipe
