// SPDX-License-Identifier: Apache-2.0
// Rows of a batch that are NumPy's arrays, read once: the caller's look at their types and the engine share the views.
#pragma once
#include <nanobind/nanobind.h>

#include <memory>
#include <utility>
#include <vector>

#include "base/tensor.hpp"

namespace stoker {

// Views of one element type and number of axes, one per row. It does not change, so threads may share it.
class ArrayRows {
 public:
  // `owner` keeps the memory of all views, of which there is at least one.
  ArrayRows(std::vector<View> views, nanobind::object owner) : views_(std::move(views)), owner_(std::move(owner)) {}
  const std::vector<View>& views() const { return views_; }
  const View& first() const { return views_.front(); }
  // The tuple of arrays, or the array whose rows they are.
  const nanobind::object& owner() const { return owner_; }
  // Return the extent of an axis that all rows have in common; -1 if they differ or there is no such axis. Negative
  // axes count from the last one.
  int64_t extent(int64_t axis) const;
  // Return the rows from `first` up to `end`. Throw ValueError if there are none, or not as many.
  std::unique_ptr<ArrayRows> part(int64_t first, int64_t end) const;

 private:
  std::vector<View> views_;
  nanobind::object owner_;
};

void bind_array_rows(nanobind::module_& m);

}  // namespace stoker
