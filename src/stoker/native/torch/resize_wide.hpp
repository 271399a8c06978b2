// SPDX-License-Identifier: Apache-2.0
// Forms of torch's resizing of bytes for AVX-512 with VBMI and VNNI.
#pragma once
#include <cstdint>
#include <vector>

#include "torch/resize_taps.hpp"

namespace stoker::torch_resize {

// Outputs of three channels in groups. One load and one byte permutation bring two neighbouring taps of all outputs of
// a group into the lanes of a vector. All outputs of a group advance by the same step, so the permutation of the next
// pair of taps is that of the last one plus a constant, and the first one again after another load.
struct Groups {
  struct alignas(64) Group {
    uint8_t order[64];  // the permutation
    int32_t base;       // first byte
  };
  int64_t outputs = 0;         // per group; 0: there are no groups
  int64_t pairs_per_load = 0;  // that one load has of all outputs of a group
  int64_t reach = 0;           // bytes of a row that may be read, from its begin on
  std::vector<Group> groups;
  struct alignas(64) Pairs {
    int32_t weights[16];
  };
  std::vector<Pairs> pairs;  // of each group and pair of taps

  Groups() = default;
  // `first`, `count`: the outputs; `begin`: the first source column in memory.
  Groups(const Taps& taps, int64_t first, int64_t count, int64_t begin);
};

bool has_wide_resize();

// Filter kWideRows rows; kWideSlack bytes past each result's end may be written.
constexpr int64_t kWideRows = 4, kWideSlack = 16;
void across_wide(const Groups& groups, int64_t pairs, int precision, const uint8_t* const* rows, uint8_t* const* to);

// Copy `count` pixels of four bytes without their fourth bytes. Of the last pixel only three bytes are read.
void drop_fourth_wide(const uint8_t* from, int64_t count, uint8_t* to);

// Weigh pairs of rows, n columns. rows: two pointers per pair; 64 bytes past the end of rows and result may be read and
// written.
void down_wide(const uint8_t* const* rows, const int32_t* pairs, int64_t count, int precision, int64_t n, uint8_t* to);

}  // namespace stoker::torch_resize
