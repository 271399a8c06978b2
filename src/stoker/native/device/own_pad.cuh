// SPDX-License-Identifier: Apache-2.0
// A tensor at the start of a larger one that is filled with a number. A block writes kElements elements.
#pragma once
#include "device/copy_elements.cuh"

namespace stoker::own {

// Numbers: the number.
template <class Ports>
struct Pad {
  using Element = typename Ports::template At<0>;
  using Memory = typename Element::Memory;
  static constexpr int64_t kElements = 16384;  // also in ops/geometry/padded.py
  static constexpr int64_t kItem = sizeof(Memory);

  static void fill(const Row& row, uint32_t block) {
    const Port &in = row.port(0), &out = row.port(1);
    const auto number = op::cast<Element>(row.number(0));
    const int rank = static_cast<int>(in.rank);
    const int64_t count = extent_of(out, 0, rank), begin = block * kElements;
    const int64_t end = begin + kElements < count ? begin + kElements : count;
    int axis = rank - 1;  // the last one that is padded: a line of it is elements and then numbers
    while (axis > 0 && in.shape[axis] == out.shape[axis]) --axis;
    const int64_t line = rank ? extent_of(out, axis, rank) : 0;
    if (line >= kShortLine && is_contiguous(out, kItem) && is_contiguous(in, kItem, axis))
      fill_lines(in, out, number, axis, line, begin, end);
    else fill_each(in, out, number, begin, end);
  }

 private:
  static void fill_lines(const Port& in, const Port& out, typename Element::Register number, int axis, int64_t line,
                         int64_t begin, int64_t end) {
    const LineGroups groups(line);
    const int64_t inside = extent_of(in, axis, static_cast<int>(in.rank));
    for (int64_t i = quotient(begin, line) + groups.first; i * line < end; i += groups.step) {
      bool there = true;
      int64_t from = 0, rest = i;
      for (int d = axis - 1; d >= 0; --d) {
        const int64_t above = quotient(rest, out.shape[d]), at = rest - above * out.shape[d];
        there = there && at < in.shape[d];
        from += at * in.stride[d];
        rest = above;
      }
      const int64_t first = i * line < begin ? begin - i * line : 0,
                    last = i * line + line > end ? end - i * line : line;
      const int64_t copied = !there ? first : inside < first ? first : inside < last ? inside : last;
      auto* const to = reinterpret_cast<uint8_t*>(out.data) + i * line * kItem;
      copy_elements<Memory>(reinterpret_cast<const uint8_t*>(in.data) + from, to, first, copied, groups.workers);
      for (int64_t e = copied + groups.workers.index; e < last; e += groups.workers.count)
        store<Element>(to + e * kItem, number);
    }
  }

  static void fill_each(const Port& in, const Port& out, typename Element::Register number, int64_t begin,
                        int64_t end) {
    for (int64_t i = begin + gpu::thread_index(); i < end; i += gpu::thread_count()) {
      int64_t left = i, from = 0, to = 0;
      bool inside = true;
      for (int d = static_cast<int>(in.rank) - 1; d >= 0; --d) {
        const int64_t above = quotient(left, out.shape[d]), at = left - above * out.shape[d];
        left = above;
        inside = inside && at < in.shape[d];
        from += at * in.stride[d];
        to += at * out.stride[d];
      }
      auto* target = reinterpret_cast<uint8_t*>(out.data) + to;
      if (inside)
        *reinterpret_cast<Memory*>(target) = *reinterpret_cast<const Memory*>(in.data + static_cast<uint64_t>(from));
      else store<Element>(target, number);
    }
  }
};

}  // namespace stoker::own
