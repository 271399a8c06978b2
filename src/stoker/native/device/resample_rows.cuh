// SPDX-License-Identifier: Apache-2.0
// Packed pixels of a source, four at a time.
#pragma once
#include "device/stage_sample.cuh"
#include "shared/device.cuh"
#include "shared/stage_slot.hpp"

namespace stoker::stage {

// A thread's row of the source. Four pixels are loaded at a time as the words that contain them. kInside: neither the
// loaded groups nor the word after them are beyond the row's last word. A row must have at least four words.
template <bool kInside>
class SourceRow {
 public:
  // `group` is the first group of four pixels; `width` is the image's width in pixels, beyond which no word is read.
  SourceRow(const uint8_t* row, int32_t group, int32_t width) {
    const auto address = reinterpret_cast<uintptr_t>(row);
    words_ = reinterpret_cast<const uint32_t*>(address & ~uintptr_t{3}) + 3 * group;
    skip_ = 8 * static_cast<uint32_t>(address & 3);
    last_ = (static_cast<int32_t>(address & 3) + 3 * width - 1) / 4 - 3 * group - 3;
  }

  // Load the first word of a group, counted from the first group.
  uint32_t begin(int32_t group) const { return load_word(words_ + place(group)); }

  // Load the channels of the four pixels of a group whose first word is loaded already.
  void load(int32_t group, uint32_t first, uint32_t (&channel)[3]) const {
    const int32_t wanted = 3 * group, at = place(group);
    uint32_t word[4] = {first}, bytes[3];
#pragma unroll
    for (int i = 1; i < 4; ++i) word[i] = load_word(words_ + at + i);
    if constexpr (!kInside) {  // pixels beyond the last word have no weight, so their values do not matter
      if ((wanted - at) & 1) word[0] = word[1], word[1] = word[2], word[2] = word[3];
      if ((wanted - at) & 2) word[0] = word[2], word[1] = word[3];
    }
#pragma unroll
    for (int i = 0; i < 3; ++i) bytes[i] = gpu::funnel_right(word[i + 1], word[i], skip_);
    channel[0] = gpu::choose_bytes(gpu::choose_bytes(bytes[0], bytes[1], 0x0630), bytes[2], 0x5210);
    channel[1] = gpu::choose_bytes(gpu::choose_bytes(bytes[0], bytes[1], 0x0741), bytes[2], 0x6210);
    channel[2] = gpu::choose_bytes(gpu::choose_bytes(bytes[0], bytes[1], 0x0052), bytes[2], 0x7410);
  }
  void load(int32_t group, uint32_t (&channel)[3]) const { load(group, begin(group), channel); }

 private:
  int32_t place(int32_t group) const { return kInside || 3 * group < last_ ? 3 * group : last_; }

  const uint32_t* words_;
  int32_t last_;
  uint32_t skip_;
};

// Source of packed pixels. Other sources have the same function `at`, which returns a line whose `load` gives four
// pixels' channels (device/resample_planar.cuh). kAhead: the first word of a group can be prefetched.
template <bool kInside>
class PackedRows {
 public:
  // The check for edges leaves no registers for prefetched words.
  static constexpr bool kAhead = kInside;

  explicit PackedRows(const Source& s)
      : data_(array_at<uint8_t>(s.data)), row_(static_cast<int32_t>(s.row)), width_(static_cast<int32_t>(s.width)) {}
  // Return a line whose groups are counted from `group`.
  SourceRow<kInside> at(int32_t line, int32_t group) const { return {data_ + int64_t{line} * row_, group, width_}; }

 private:
  const uint8_t* data_;
  int32_t row_, width_;
};

// Return whether no group before `end` needs a check for edges.
inline bool inside(const Source& s, int32_t end) { return 3 * end <= (3 * static_cast<int32_t>(s.width) - 1) / 4; }

}  // namespace stoker::stage
