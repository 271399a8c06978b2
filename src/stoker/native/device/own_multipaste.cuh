// SPDX-License-Identifier: Apache-2.0
// `multi_paste`: a line of the canvas is cut where its last covering region changes, and each piece is copied or filled.
// A block writes kElements elements.
#pragma once
#include "device/copy_elements.cuh"

namespace stoker::own {

// Ports: images, canvas. Numbers: the value outside of all regions, six numbers of each region.
template <class Ports, int kRegions>
struct MultiPaste {
  using Element = typename Ports::template At<0>;
  using Memory = typename Element::Memory;
  static constexpr int64_t kElements = 16384;  // also in ops/geometry/multi_paste.py
  static constexpr int64_t kItem = sizeof(Memory);

  static void paste(const Row& row, uint32_t block) {
    const Port& out = row.port(kRegions);
    const auto axis = static_cast<int>(out.rank) - 3;
    const int64_t height = out.shape[axis], channels = out.shape[axis + 2], line = out.shape[axis + 1] * channels;
    const int64_t count = (axis ? out.shape[0] : 1) * height * line, begin = block * kElements;
    const int64_t end = begin + kElements < count ? begin + kElements : count;
    if (begin >= end) return;
    const LineGroups groups(line);
    for (int64_t i = quotient(begin, line) + groups.first; i * line < end; i += groups.step) {
      const int64_t frame = axis ? quotient(i, height) : 0;
      const int64_t first = i * line < begin ? begin - i * line : 0,
                    last = i * line + line > end ? end - i * line : line;
      write_line(row, axis, channels, frame, i - frame * height, i * line, first, last, groups.workers);
    }
  }

 private:
  // A region's start and extent in its image, and its start in the canvas.
  struct Region {
    int64_t in_y, in_x, height, width, y, x;
    Region(const Row& row, int i) {
      const auto number = [&](int k) { return static_cast<int64_t>(row.number(1 + 6 * i + k)); };
      in_y = number(0), in_x = number(1), height = number(2), width = number(3), y = number(4), x = number(5);
    }
    bool has_line(int64_t line) const { return y <= line && line < y + height; }
  };

  // Write the elements from `first` to `last` of a line that begins at element `start` of the canvas.
  static void write_line(const Row& row, int axis, int64_t channels, int64_t frame, int64_t y, int64_t start,
                         int64_t first, int64_t last, const Workers& workers) {
    auto* const to = reinterpret_cast<uint8_t*>(row.port(kRegions).data) + start * kItem;
    for (int64_t at = first; at < last;) {
      // The last region that covers the element, and the place where this changes.
      int covering = -1;
      int64_t until = last, from_y = 0,
              before = 0;  // `before`: elements from the start of the image's line to the canvas's
      for (int i = kRegions - 1; i >= 0 && covering < 0; --i) {
        const Region region(row, i);
        const int64_t left = region.x * channels, right = (region.x + region.width) * channels;
        if (!region.has_line(y) || right <= at) continue;
        if (left > at) {
          until = left < until ? left : until;
        } else {
          covering = i;
          until = right < until ? right : until;
          from_y = region.in_y + y - region.y, before = left - region.in_x * channels;
        }
      }
      if (covering < 0) fill(row, to, at, until, workers);
      else copy(row.port(covering), axis, channels, frame, from_y, before, to, at, until, workers);
      at = until;
    }
  }

  static void fill(const Row& row, uint8_t* to, int64_t first, int64_t last, const Workers& workers) {
    const auto value = op::cast<Element>(row.number(0));
    for (int64_t e = first + workers.index; e < last; e += workers.count) store<Element>(to + e * kItem, value);
  }

  static void copy(const Port& in, int axis, int64_t channels, int64_t frame, int64_t y, int64_t before, uint8_t* to,
                   int64_t first, int64_t last, const Workers& workers) {
    const auto* const from =
        reinterpret_cast<const uint8_t*>(in.data) + (axis ? frame * in.stride[0] : 0) + y * in.stride[axis];
    if (is_contiguous(in, kItem, axis + 1))
      return copy_elements<Memory>(from - before * kItem, to, first, last, workers);
    for (int64_t e = first + workers.index; e < last; e += workers.count) {
      const int64_t pixel = quotient(e - before, channels), channel = e - before - pixel * channels;
      const uint8_t* source = from + pixel * in.stride[axis + 1] + channel * in.stride[axis + 2];
      *reinterpret_cast<Memory*>(to + e * kItem) = *reinterpret_cast<const Memory*>(source);
    }
  }
};

}  // namespace stoker::own
