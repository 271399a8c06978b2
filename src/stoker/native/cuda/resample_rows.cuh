// SPDX-License-Identifier: Apache-2.0
// Packed pixels of a source, four at a time.
#pragma once
#include "device.cuh"
#include "stage_sample.cuh"
#include "stage_slot.hpp"

namespace stoker::stage {

// A thread's row of the source, whose pixels are loaded four at a time as the words that they lie in. kInside: none of the
// groups that are loaded, nor the word behind, is beyond the row's last word. A row has four words at least.
template <bool kInside>
class SourceRow {
 public:
  // `group`: the first four pixels; `width`: of the image, in pixels, behind which no word is read.
  SourceRow(const uint8_t* row, int32_t group, int32_t width) {
    const auto address = reinterpret_cast<uintptr_t>(row);
    words_ = reinterpret_cast<const uint32_t*>(address & ~uintptr_t{3}) + 3 * group;
    skip_ = 8 * static_cast<uint32_t>(address & 3);
    last_ = (static_cast<int32_t>(address & 3) + 3 * width - 1) / 4 - 3 * group - 3;
  }

  // The first word of a group, counted from the first one.
  uint32_t begin(int32_t group) const { return load_word(words_ + place(group)); }

  // The channels of the four pixels of a group, of which the first word is there.
  void load(int32_t group, uint32_t first, uint32_t (&channel)[3]) const {
    const int32_t wanted = 3 * group, at = place(group);
    uint32_t word[4] = {first}, bytes[3];
#pragma unroll
    for (int i = 1; i < 4; ++i) word[i] = load_word(words_ + at + i);
    if constexpr (!kInside) {  // what is behind the last word has no weight, whatever it is
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

// A source of packed pixels. Others have the same function `at`, for lines of which `load` makes four pixels' channels
// (resample_planar.cuh). kAhead: of a group, the first word can be loaded before the rest.
template <bool kInside>
class PackedRows {
 public:
  // Where edges are looked for, there are no registers for words ahead.
  static constexpr bool kAhead = kInside;

  explicit PackedRows(const Source& s)
      : data_(array_at<uint8_t>(s.data)), row_(static_cast<int32_t>(s.row)), width_(static_cast<int32_t>(s.width)) {}
  // A line, whose groups are counted from `group`.
  SourceRow<kInside> at(int32_t line, int32_t group) const {
    return {data_ + int64_t{line} * row_, group, width_};
  }

 private:
  const uint8_t* data_;
  int32_t row_, width_;
};

// Whether no group before `end` needs an edge to be looked for.
inline bool inside(const Source& s, int32_t end) { return 3 * end <= (3 * static_cast<int32_t>(s.width) - 1) / 4; }

}  // namespace stoker::stage
