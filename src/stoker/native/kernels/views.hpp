// SPDX-License-Identifier: Apache-2.0
// View operations: geometry without moving data.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kernels/registry.hpp"
#include "plan/check.hpp"

namespace stoker {

enum class ViewKind : uint8_t { Slice, Permute, Insert, Drop, Reshape };

// One view operation. Numbers are indices into the call's parameters.
struct ViewOp {
  ViewKind kind;
  int32_t axis = 0;                         // Slice, Insert, Drop
  int32_t start = 0, step = 0, extent = 0;  // Slice: parameter indices
  std::vector<int32_t> list;                // Permute: axes; Reshape: parameter indices of the new extents
};
template <>
struct registry::Argument<ViewOp> {
  using Fields = std::tuple<ViewKind, int32_t, int32_t, int32_t, int32_t, std::vector<int32_t>>;
  static std::string type() { return Argument<Fields>::type(); }
  static ViewOp read(const Value& v) { return std::make_from_tuple<ViewOp>(Argument<Fields>::read(v)); }
};

// Check the operations on a tensor of `rank` axes and return the rank of the result; `what` names them in messages.
int32_t check_views(const std::vector<ViewOp>& ops, int32_t rank, const StepFacts& step, const std::string& what);

// Apply the operations. They were checked. Return false if a slice leaves the tensor or a reshape needs a copy.
bool apply(const std::vector<ViewOp>& ops, const double* params, View* view);

}  // namespace stoker
