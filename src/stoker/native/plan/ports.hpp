// SPDX-License-Identifier: Apache-2.0
// Declaration of the tensors that a kernel reads and writes. plan/check.hpp compares every step with it.
#pragma once
#include <cstdint>
#include <vector>

#include "base/tensor.hpp"

namespace stoker {

// Set of element types: one bit for each.
using Types = uint32_t;
constexpr int kTypeCount = static_cast<int>(DType::BF16) + 1;
constexpr Types kAnyType = (Types{1} << kTypeCount) - 1;
template <class... T>
constexpr Types types(T... t) {
  return ((Types{1} << static_cast<int>(t)) | ...);
}
constexpr bool has(Types set, DType t) { return set >> static_cast<int>(t) & 1; }

// One input or output. `same_...` is the number of an input with which the port shares a property, or -1. Extents are
// compared for every row, before the kernel runs; all else once, when the plan is finished.
struct PortRule {
  Types types = kAnyType;
  int32_t least_rank = 0, most_rank = kMaxRank;
  int32_t same_type = -1, same_rank = -1, same_extents = -1;  // same_extents includes the rank
  bool on_host = false;                                       // input of a GPU kernel: the host reads its elements
  bool strided = false;    // output: the kernel writes with the strides that it finds
  bool in_planes = false;  // input: may be an image in component planes; output: the kernel may leave one
};

constexpr PortRule port_of(DType t, int32_t rank) { return {.types = types(t), .least_rank = rank, .most_rank = rank}; }

struct Ports {
  const char* kernel;  // name in messages
  std::vector<PortRule> in, out;
  int32_t params = 0;          // least number of parameters; those of a form for GPUs follow
  uint64_t shows = 0;          // bits of the inputs whose memory output 0 may show
  int32_t other_rows_of = -1;  // input of which the kernel reads other rows than its own
  bool any = false;            // further inputs and outputs of any type may follow
};

}  // namespace stoker
