// SPDX-License-Identifier: Apache-2.0
#include "detect/nms.hpp"

#include <algorithm>
#include <type_traits>

#include "base/simd.hpp"
#include "detect/columns.hpp"
#include "detect/groups.hpp"
#include "shared/rotated_box.hpp"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace stoker::detect {

namespace {

constexpr int64_t kBlock = 16;  // boxes of which one that may overlap makes the exact computation necessary for all

// Corners and area of a box.
template <class T>
struct Box {
  T x0, y0, x1, y1, area;
};

// Boxes by column, and whether each is suppressed. Masks are as wide as the numbers, so that comparisons of vectors store
// them unchanged.
template <class T>
struct Columns {
  using Mask = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  T *x0, *y0, *x1, *y1, *area;
  Mask* dead;
  uint32_t* rank;

  Columns(Pieces& p, int64_t boxes) {
    const int64_t n = size(boxes);
    for (T** column : {&x0, &y0, &x1, &y1, &area}) *column = p.take<T>(n);
    dead = p.take<Mask>(n);
    rank = p.take<uint32_t>(n);
    for (int64_t i = boxes; i < n; ++i) set(i, {}, 0);
  }
  // Numbers of a column: an odd count of blocks, since columns of 4,096 bytes would compete for the same places in the
  // cache.
  static int64_t size(int64_t boxes) { return ((boxes + 2 * kBlock - 1) / kBlock | 1) * kBlock; }
  static size_t bytes(int64_t boxes) {
    const int64_t n = size(boxes);
    return 5 * Pieces::bytes_of<T>(n) + Pieces::bytes_of<Mask>(n) + Pieces::bytes_of<uint32_t>(n);
  }
  Box<T> box(int64_t i) const { return {x0[i], y0[i], x1[i], y1[i], area[i]}; }
  void set(int64_t to, const Box<T>& b, uint32_t number) {
    x0[to] = b.x0;
    y0[to] = b.y0;
    x1[to] = b.x1;
    y1[to] = b.y1;
    area[to] = b.area;
    rank[to] = number;
    dead[to] = 0;
  }
};

// Area that a box and the one at `j` have in common. The comparisons have the operands in the order that std::max and
// std::min use, because of NaN.
template <class T>
[[gnu::always_inline]] inline T common(const Columns<T>& c, const Box<T>& b, int64_t j) {
  const T l = b.x0 < c.x0[j] ? c.x0[j] : b.x0, t = b.y0 < c.y0[j] ? c.y0[j] : b.y0;
  const T r = c.x1[j] < b.x1 ? c.x1[j] : b.x1, u = c.y1[j] < b.y1 ? c.y1[j] : b.y1;
  T w = r - l, h = u - t;
  w = T{0} < w ? w : T{0};
  h = T{0} < h ? h : T{0};
  return w * h;
}

#if defined(__x86_64__)

// Lanes of boxes from `k` on whose overlap may be near; the operations of is_any_near().
STOKER_WIDE inline __m256 near_of_eight(const Columns<float>& c, const Box<float>& b, int64_t k, float near) {
  const __m256 zero = _mm256_setzero_ps();
  const __m256 l = _mm256_max_ps(_mm256_loadu_ps(c.x0 + k), _mm256_set1_ps(b.x0));
  const __m256 t = _mm256_max_ps(_mm256_loadu_ps(c.y0 + k), _mm256_set1_ps(b.y0));
  const __m256 r = _mm256_min_ps(_mm256_loadu_ps(c.x1 + k), _mm256_set1_ps(b.x1));
  const __m256 u = _mm256_min_ps(_mm256_loadu_ps(c.y1 + k), _mm256_set1_ps(b.y1));
  const __m256 w = _mm256_max_ps(_mm256_sub_ps(r, l), zero), h = _mm256_max_ps(_mm256_sub_ps(u, t), zero);
  const __m256 both = _mm256_mul_ps(w, h), areas = _mm256_add_ps(_mm256_set1_ps(b.area), _mm256_loadu_ps(c.area + k));
  const __m256 bound = _mm256_mul_ps(_mm256_set1_ps(near), _mm256_sub_ps(areas, both));
  return _mm256_cmp_ps(both, bound, _CMP_GE_OQ);
}
STOKER_WIDE inline bool is_any_near_of_block(const Columns<float>& c, const Box<float>& b, int64_t begin, float near) {
  static_assert(kBlock == 16);
  return _mm256_movemask_ps(_mm256_or_ps(near_of_eight(c, b, begin, near), near_of_eight(c, b, begin + 8, near))) != 0;
}

#endif

// Whether the overlap with a box of the block that begins at `begin` may be 1 / 0.999 of `near` or more.
template <bool kWide, class T>
[[gnu::always_inline]] inline bool is_any_near(const Columns<T>& c, const Box<T>& b, int64_t begin, T near) {
#if defined(__x86_64__)
  if constexpr (kWide && sizeof(T) == 4) return is_any_near_of_block(c, b, begin, near);
#endif
  using Mask = typename Columns<T>::Mask;
  Mask any = 0;
  for (int64_t k = begin; k < begin + kBlock; ++k) {
    const T both = common(c, b, k);
    any |= both >= near * (b.area + c.area[k] - both) ? Mask{-1} : Mask{0};
  }
  return any != 0;
}

// Mark the boxes [begin, end) whose overlap with `b` is `least` or more, and those of the last block after `end`: there
// are boxes of other cells, for which this is right if they come later and has no effect otherwise, and unused memory.
// `near`: a number below `least`, so that no overlap of `least` or more is missed by a product in place of the division;
// 0 if `least` is not above 0, which makes all exact computations necessary.
template <bool kWide, class T>
[[gnu::always_inline]] inline void suppress_in(const Columns<T>& c, const Box<T>& b, int64_t begin, int64_t end,
                                               T least, T near) {
  using Mask = typename Columns<T>::Mask;
  const auto exact = [&](int64_t k) {
    const T both = common(c, b, k);
    return both / (b.area + c.area[k] - both) >= least ? Mask{-1} : Mask{0};
  };
  for (int64_t j = begin; j < end; j += kBlock) {
    if (near > T{0} && !is_any_near<kWide>(c, b, j, near)) continue;
    for (int64_t k = j; k < j + kBlock; ++k) c.dead[k] |= exact(k);
  }
}

// The quotient is rounded to `least` from at least (1 - 2^-24) `least`, and the product is not rounded past the area.
template <class T>
T near_below(T least) {
  return least > T{0} ? least * T(0.999) : T{0};
}

// Boxes whose centres are in one cell of a grid, in the order of visit, with bounds of their corners: a box that ends
// before the lowest x0 or begins after the highest x1 overlaps none of them.
template <class T>
struct Cell {
  int64_t head = 0, end = 0;
  T x0, y0, x1, y1;
  int visits = 0;

  static constexpr T kFar = std::numeric_limits<T>::infinity();
  Cell() : x0(kFar), y0(kFar), x1(-kFar), y1(-kFar) {}
  void include(const Box<T>& b) {  // a NaN is no bound
    if (!(b.x0 >= x0)) x0 = b.x0 != b.x0 ? -kFar : b.x0;
    if (!(b.y0 >= y0)) y0 = b.y0 != b.y0 ? -kFar : b.y0;
    if (!(b.x1 <= x1)) x1 = b.x1 != b.x1 ? kFar : b.x1;
    if (!(b.y1 <= y1)) y1 = b.y1 != b.y1 ? kFar : b.y1;
  }
  bool is_apart(const Box<T>& b) const { return x0 >= b.x1 || x1 <= b.x0 || y0 >= b.y1 || y1 <= b.y0; }
};

constexpr int64_t kBoxesPerCell = 96, kMostCells = 16,
                  kCells = kMostCells * kMostCells;  // of a cell on average; along each axis
constexpr int kVisitsPerPass = 24;                   // after which a cell's suppressed boxes are removed
constexpr uint32_t kRemoved = ~uint32_t{0};

// Index of a cell along an axis. NaN is in the first.
template <class T>
int64_t cell_at(T low, T high, T from, T step, int64_t cells) {
  const T at = (low / 2 + high / 2 - from) * step;
  return at > T{0} ? at < static_cast<T>(cells) ? static_cast<int64_t>(at) : cells - 1 : 0;
}

// Greedy suppression of the boxes of one label.
template <class T>
class Visit {
 public:
  // `sorted`: boxes [begin, end) in the order of visit; `by_cell` and `place` have room for as many, `cell` for kCells.
  Visit(const Columns<T>& sorted, const Columns<T>& by_cell, uint32_t* place, Cell<T>* cell, int64_t begin, int64_t end,
        T least)
      : sorted_(sorted),
        cells_(by_cell),
        place_(place),
        cell_(cell),
        begin_(begin),
        end_(end),
        least_(least),
        near_(near_below(least)),
        skips_(least > T{0}) {
    const int64_t n = end - begin;
    while (skips_ && side_ < kMostCells && n > (side_ + 1) * side_ * kBoxesPerCell) ++side_;
    arrange();
  }

  void run(int64_t most, uint8_t* kept) { has_wide() ? run_wide(most, kept) : run_in<false>(most, kept); }

 private:
  STOKER_WIDE void run_wide(int64_t most, uint8_t* kept) { run_in<true>(most, kept); }
  template <bool kWide>
  [[gnu::always_inline]] void run_in(int64_t most, uint8_t* kept) {
    const int64_t count = side_ * side_;
    for (int64_t i = begin_, found = 0; i < end_ && found < most; ++i) {
      const uint32_t at = place_[i];
      if (at == kRemoved || cells_.dead[at]) continue;
      kept[sorted_.rank[i]] = 1;
      ++found;
      const Box<T> b = sorted_.box(i);
      for (int64_t k = 0; k < count; ++k) {
        Cell<T>& cell = cell_[k];
        if (skips_ && cell.is_apart(b)) continue;
        while (cell.head < cell.end && number(cell.head) <= i) ++cell.head;
        suppress_in<kWide>(cells_, b, cell.head, cell.end, least_, near_);
        if (++cell.visits >= kVisitsPerPass) remove_dead(cell);
      }
    }
  }
  int64_t number(int64_t at) const { return cells_.rank[at]; }  // position in `sorted_`

  void arrange() {
    T low[2] = {Cell<T>::kFar, Cell<T>::kFar}, high[2] = {-Cell<T>::kFar, -Cell<T>::kFar}, step[2];
    for (int64_t i = begin_; i < end_; ++i) {
      const Box<T> b = sorted_.box(i);
      const T centre[2] = {b.x0 / 2 + b.x1 / 2, b.y0 / 2 + b.y1 / 2};
      for (int a = 0; a < 2; ++a) {
        if (centre[a] - centre[a] != T{0}) continue;  // infinite or NaN
        low[a] = std::min(low[a], centre[a]);
        high[a] = std::max(high[a], centre[a]);
      }
    }
    for (int a = 0; a < 2; ++a) step[a] = high[a] > low[a] ? static_cast<T>(side_) / (high[a] - low[a]) : T{0};
    const auto cell_of = [&](const Box<T>& b) {
      return cell_at(b.y0, b.y1, low[1], step[1], side_) * side_ + cell_at(b.x0, b.x1, low[0], step[0], side_);
    };
    int64_t starts[kCells + 1];
    std::fill(starts, starts + side_ * side_ + 1, int64_t{0});
    for (int64_t i = begin_; i < end_; ++i) ++starts[cell_of(sorted_.box(i)) + 1];
    for (int64_t k = 0; k < side_ * side_; ++k) {
      starts[k + 1] += starts[k];
      cell_[k] = Cell<T>();
      cell_[k].head = cell_[k].end = begin_ + starts[k];
    }
    for (int64_t i = begin_; i < end_; ++i) {
      const Box<T> b = sorted_.box(i);
      Cell<T>& cell = cell_[cell_of(b)];
      cell.include(b);
      place_[i] = static_cast<uint32_t>(cell.end);
      cells_.set(cell.end++, b, static_cast<uint32_t>(i));
    }
  }

  void remove_dead(Cell<T>& cell) {
    cell.visits = 0;
    int64_t to = cell.head;
    for (int64_t j = cell.head; j < cell.end; ++j) {
      const uint32_t i = cells_.rank[j];
      place_[i] = cells_.dead[j] ? kRemoved : static_cast<uint32_t>(to);
      if (!cells_.dead[j]) cells_.set(to++, cells_.box(j), i);
    }
    cell.end = to;
  }

  Columns<T> sorted_, cells_;
  uint32_t* place_;
  Cell<T>* cell_;
  int64_t begin_, end_, side_ = 1;
  T least_, near_;
  bool skips_;
};

// Memory that all forms share: the order, ranks by label, and flags of the kept ranks.
struct Visited {
  uint32_t *order, *ranks;
  int64_t* labels;  // by position in `ranks`; null: all boxes have one label
  uint8_t* kept;
  uint32_t n;

  Visited(const View& scores, const View* given, Scratch& scratch) : n(static_cast<uint32_t>(scores.shape[0])) {
    Pieces p(scratch.get(2 * Pieces::bytes_of<uint32_t>(n) + 2 * Pieces::bytes_of<int64_t>(n) +
                         Pieces::bytes_of<uint8_t>(n)));
    order = p.take<uint32_t>(n);
    ranks = p.take<uint32_t>(n);
    auto* const keys = p.take<int64_t>(2 * static_cast<int64_t>(n));
    kept = p.take<uint8_t>(n);
    order_by_score(scores, order, ranks, reinterpret_cast<uint64_t*>(keys));
    labels = given ? keys : nullptr;
    if (given) group_by_label(*given, order, n, ranks, keys, keys + n);
    else
      for (uint32_t i = 0; i < n; ++i) ranks[i] = i;
    std::fill(kept, kept + n, uint8_t{0});
  }

  // Call f(begin, end) for the positions of each label.
  template <class F>
  void each_label(F&& f) const {
    for (int64_t begin = 0; begin < n;) {
      int64_t end = labels ? begin + 1 : n;
      while (end < n && labels[end] == labels[begin]) ++end;
      f(begin, end);
      begin = end;
    }
  }
  int64_t write(int64_t most, int64_t* keep) const {
    int64_t count = 0;
    for (uint32_t rank = 0; rank < n && count < most; ++rank)
      if (kept[rank]) keep[count++] = order[rank];
    return count;
  }
};

template <class T>
int64_t nms_of(const View& boxes, const View& scores, const View* labels, double threshold, int64_t most, int64_t* keep,
               Scratch* scratch) {
  const Visited v(scores, labels, scratch[0]);
  Pieces p(scratch[1].get(2 * Columns<T>::bytes(v.n) + Pieces::bytes_of<uint32_t>(v.n)));
  Columns<T> sorted(p, v.n);
  const Columns<T> by_cell(p, v.n);
  auto* const place = p.take<uint32_t>(v.n);
  for (int64_t i = 0; i < v.n; ++i) {
    const int64_t box = v.order[v.ranks[i]];
    Box<T> b{element<T>(boxes, box, 0), element<T>(boxes, box, 1), element<T>(boxes, box, 2), element<T>(boxes, box, 3),
             T{0}};
    b.area = (b.x1 - b.x0) * (b.y1 - b.y0);
    sorted.set(i, b, v.ranks[i]);
  }
  const T least = least_above<T>(threshold);
  Cell<T> cells[kCells];
  v.each_label([&](int64_t begin, int64_t end) {
    Visit<T>(sorted, by_cell, place, cells, begin, end, least).run(most, v.kept);
  });
  return v.write(most, keep);
}

template <class T>
int64_t nms_rotated_of(const View& boxes, const View& scores, const View* labels, double threshold, int64_t most,
                       int64_t* keep, Scratch* scratch) {
  const Visited v(scores, labels, scratch[0]);
  Pieces p(scratch[1].get(Pieces::bytes_of<RotatedBox>(v.n) + Pieces::bytes_of<uint8_t>(v.n)));
  auto* const box = p.take<RotatedBox>(v.n);
  auto* const dead = p.take<uint8_t>(v.n);
  for (int64_t i = 0; i < v.n; ++i) {
    double numbers[5];
    for (int k = 0; k < 5; ++k) numbers[k] = static_cast<double>(element<T>(boxes, v.order[v.ranks[i]], k));
    box[i] = RotatedBox(numbers);
    dead[i] = 0;
  }
  v.each_label([&](int64_t begin, int64_t end) {
    int64_t count = 0;
    for (int64_t i = begin; i < end && count < most; ++i) {
      if (dead[i]) continue;
      v.kept[v.ranks[i]] = 1;
      ++count;
      for (int64_t j = i + 1; j < end; ++j)
        if (!dead[j] && overlap_of(box[i], box[j]) > threshold) dead[j] = 1;
    }
  });
  return v.write(most, keep);
}

}  // namespace

int64_t nms(const View& boxes, const View& scores, const View* labels, double threshold, int64_t most, int64_t* keep,
            Scratch* scratch) {
  const auto form = boxes.dtype == DType::F64 ? nms_of<double> : nms_of<float>;
  return form(boxes, scores, labels, threshold, most, keep, scratch);
}

int64_t nms_rotated(const View& boxes, const View& scores, const View* labels, double threshold, int64_t most,
                    int64_t* keep, Scratch* scratch) {
  const auto form = boxes.dtype == DType::F64 ? nms_rotated_of<double> : nms_rotated_of<float>;
  return form(boxes, scores, labels, threshold, most, keep, scratch);
}

}  // namespace stoker::detect
