// SPDX-License-Identifier: Apache-2.0
// `nms`: boxes by descending score, all pairs compared by blocks of 64 threads, then one block that visits the boxes in
// order and writes the numbers of the kept ones.
#pragma once
#include <algorithm>

#include "device/block_scan.cuh"
#include "device/nms.cuh"
#include "device/own.cuh"
#include "device/own_boxes.cuh"

namespace stoker::own {

// Ports: boxes, scores, labels if there are five ports, numbers of the kept boxes, their count. Number: the threshold.
template <class Ports, int kRotated>
struct Nms {
  using T = typename Ports::template At<0>::Memory;
  using Number = std::conditional_t<kRotated != 0, double, T>;  // rotated boxes are compared in double
  using Box = std::conditional_t<kRotated != 0, detect::TurnedBox, detect::PlainBox<T>>;
  using Scores = Array<T, kThreads>;
  using Sums = Array<uint32_t, gpu::kMaxWarps>;

  // A row's memory; `bytes_of` in ops/detection/_boxes.py has its size.
  struct Memory {
    int64_t count, columns;
    uint64_t *words, *dead;
    int64_t *numbers, *labels;
    Number* boxes;
    uint8_t* kept;

    explicit Memory(const Row& row) : count(row.port(0).shape[0]) {
      columns = (count + detect::kWordBits - 1) / detect::kWordBits;
      words = row.scratch<uint64_t>();
      dead = words + count * columns;
      numbers = reinterpret_cast<int64_t*>(dead + columns);
      labels = numbers + count;
      boxes = reinterpret_cast<Number*>(labels + count);
      kept = reinterpret_cast<uint8_t*>(boxes + count * Box::kNumbers);
    }
  };

  static bool is_labelled(const Row& row) { return row.slot().ports == 5; }

  // NaN first, then by descending score; equal ones in their order.
  static bool is_before(T a, int64_t i, T b, int64_t k) {
    const bool a_nan = a != a, b_nan = b != b;
    if (a_nan != b_nan) return a_nan;
    return a_nan || a == b ? i < k : a > b;
  }

  // The place of a box is the number of boxes before it: a thread has a box.
  static void order(const Row& row, uint32_t block) {
    STOKER_SHARED(Scores, scores);
    const Memory m(row);
    const Port &boxes = row.port(0), &given = row.port(1);
    const int64_t thread = gpu::thread_index(), i = int64_t{block} * kThreads + thread;
    const T own = i < m.count ? number_at<T>(given, i) : T(0);
    int64_t place = 0;
    for (int64_t first = 0; first < m.count; first += kThreads) {
      if (first + thread < m.count) scores[thread] = number_at<T>(given, first + thread);
      gpu::block_barrier();
      const int64_t count = std::min<int64_t>(kThreads, m.count - first);
      for (int64_t k = 0; k < count; ++k) place += is_before(scores[k], first + k, own, i) ? 1 : 0;
      gpu::block_barrier();
    }
    if (i >= m.count) return;
    m.numbers[place] = i;
    if (is_labelled(row)) m.labels[place] = number_at<int64_t>(row.port(2), i);
    for (int k = 0; k < Box::kNumbers; ++k)
      m.boxes[place * Box::kNumbers + k] = static_cast<Number>(number_at<T>(boxes, i, k));
  }

  static void compare(const Row& row, uint32_t block) {
    const Memory m(row);
    detect::mask<Box>(m.boxes, is_labelled(row) ? m.labels : nullptr, static_cast<uint64_t>(m.count), row.number(0),
                      m.words, block);
  }

  static void keep(const Row& row, uint32_t) {
    STOKER_SHARED(Sums, sums);
    const Memory m(row);
    const int outputs = is_labelled(row) ? 3 : 2;
    detect::keep(m.words, static_cast<uint64_t>(m.count), m.dead, m.kept);
    const Port& out = row.port(outputs);
    auto* const to = reinterpret_cast<int64_t*>(out.data);
    const int64_t most = out.shape[0];
    int64_t found = 0;
    for (int64_t first = 0; first < m.count && found < most; first += gpu::thread_count()) {
      const int64_t i = first + gpu::thread_index();
      const bool is_kept = i < m.count && m.kept[i] != 0;
      uint32_t total = 0;
      const int64_t place = found + gpu::inclusive_sum(is_kept ? 1 : 0, &sums[0], total) - 1;
      if (is_kept && place < most) to[place] = m.numbers[i];
      found += total;
    }
    for (int64_t i = found + gpu::thread_index(); i < most; i += gpu::thread_count()) to[i] = -1;  // none: see `gather`
    if (gpu::thread_index() == 0)
      *reinterpret_cast<int32_t*>(row.port(outputs + 1).data) = static_cast<int32_t>(std::min(found, most));
  }
};

}  // namespace stoker::own
