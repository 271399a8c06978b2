// SPDX-License-Identifier: Apache-2.0
// Tensors of one type, one after another along an axis. A block writes kElements elements.
#pragma once
#include "device/copy_elements.cuh"

namespace stoker::own {

// Ports: the tensors, the output.
template <class Ports, int kInputs, int kAxis>
struct Join {
  using Memory = typename Ports::template At<0>::Memory;
  static constexpr int64_t kElements = 16384;  // also in ops/generic/cat.py
  static constexpr int64_t kItem = sizeof(Memory);

  static void copy(const Row& row, uint32_t block) {
    const Port& out = row.port(kInputs);
    const int rank = static_cast<int>(out.rank);
    const int64_t count = extent_of(out, 0, rank), line = extent_of(out, kAxis, rank), begin = block * kElements;
    const int64_t end = begin + kElements < count ? begin + kElements : count;
    bool lines = line >= kShortLine * kInputs && is_contiguous(out, kItem);
    for (int i = 0; i < kInputs; ++i) lines = lines && is_contiguous(row.port(i), kItem, kAxis);
    if (lines) copy_lines(row, line, begin, end);
    else copy_each(row, line, begin, end);
  }

 private:
  static void copy_lines(const Row& row, int64_t line, int64_t begin, int64_t end) {
    const LineGroups groups(line / kInputs);
    for (int64_t l = quotient(begin, line) + groups.first; l * line < end; l += groups.step) {
      auto* const to = reinterpret_cast<uint8_t*>(row.port(kInputs).data) + l * line * kItem;
      const int64_t first = l * line < begin ? begin - l * line : 0,
                    last = l * line + line > end ? end - l * line : line;
      int64_t part = 0;
      for (int i = 0; i < kInputs; ++i) {
        const Port& in = row.port(i);
        const int64_t next = part + extent_of(in, kAxis, static_cast<int>(in.rank));
        const int64_t from = part < first ? first : part, until = next < last ? next : last;
        if (from < until)
          copy_elements<Memory>(reinterpret_cast<const uint8_t*>(in.data) + offset_of(in, l, 0, kAxis),
                                to + part * kItem, from - part, until - part, groups.workers);
        part = next;
      }
    }
  }

  static void copy_each(const Row& row, int64_t line, int64_t begin, int64_t end) {
    const Port& out = row.port(kInputs);
    for (int64_t e = begin + gpu::thread_index(); e < end; e += gpu::thread_count()) {
      const int64_t l = quotient(e, line);
      int64_t rest = e - l * line;
      int i = 0;
      for (;; ++i) {
        const int64_t part = extent_of(row.port(i), kAxis, static_cast<int>(out.rank));
        if (rest < part) break;
        rest -= part;
      }
      const Port& in = row.port(i);
      const int64_t from = offset_of(in, l, 0, kAxis) + offset_of(in, rest, kAxis, static_cast<int>(in.rank));
      *reinterpret_cast<Memory*>(out.data + static_cast<uint64_t>(offset_of(out, e))) =
          *reinterpret_cast<const Memory*>(in.data + static_cast<uint64_t>(from));
    }
  }
};

}  // namespace stoker::own
