// SPDX-License-Identifier: Apache-2.0
// Minima, maxima and medians of rows of unsigned integers, written once over the vectors of base/vectors.ipp, which the
// including file includes first.

template <class T>
inline V<T> least(V<T> a, V<T> b) {
  return a < b ? a : b;
}
template <class T>
inline V<T> most(V<T> a, V<T> b) {
  return a > b ? a : b;
}
template <class T, bool kMost>
inline V<T> best(V<T> a, V<T> b) {
  if constexpr (kMost) return most<T>(a, b);
  else return least<T>(a, b);
}
template <class T>
inline void exchange(V<T>& a, V<T>& b) {
  const V<T> low = least<T>(a, b);
  b = most<T>(a, b);
  a = low;
}

// Store f(i), the elements i, i + 1, ... of a row of n elements. The last vector overlaps the one before it.
template <class T, class F>
inline void store_row(T* out, int64_t n, F&& f) {
  constexpr int64_t kStep = kLanes<T>;
  int64_t i = 0;
  for (; i + kStep <= n; i += kStep) store_vector<T>(out + i, f(i));
  if (i == n) return;
  if (n >= kStep) return store_vector<T>(out + n - kStep, f(n - kStep));
  const V<T> x = f(0);
  std::memcpy(out, &x, static_cast<size_t>(n) * sizeof(T));
}

template <class T, bool kMost>
void pair_row(T* out, const T* a, const T* b, int64_t n) {
  store_row(out, n, [&](int64_t i) { return best<T, kMost>(load_vector<T>(a + i), load_vector<T>(b + i)); });
}

template <class T, bool kMost>
void triple_row(T* out, const T* a, const T* b, const T* c, int64_t n) {
  store_row(out, n, [&](int64_t i) {
    return best<T, kMost>(best<T, kMost>(load_vector<T>(a + i), load_vector<T>(b + i)), load_vector<T>(c + i));
  });
}

template <class T, bool kMost>
void fold_row(T* out, T* sum, const T* a, const T* b, int64_t n) {
  store_row(out, n, [&](int64_t i) {
    const V<T> folded = best<T, kMost>(load_vector<T>(sum + i), load_vector<T>(a + i));
    store_vector<T>(sum + i, folded);
    return best<T, kMost>(folded, load_vector<T>(b + i));
  });
}

template <class T>
inline void sort_three(V<T> (&x)[3]) {
  exchange<T>(x[0], x[1]);
  exchange<T>(x[1], x[2]);
  exchange<T>(x[0], x[1]);
}

template <class T>
inline void sort_five(V<T> (&x)[5]) {
  exchange<T>(x[0], x[3]);
  exchange<T>(x[1], x[4]);
  exchange<T>(x[0], x[2]);
  exchange<T>(x[1], x[3]);
  exchange<T>(x[0], x[1]);
  exchange<T>(x[2], x[4]);
  exchange<T>(x[1], x[2]);
  exchange<T>(x[3], x[4]);
  exchange<T>(x[2], x[3]);
}

// The rows have slack for whole vectors.
template <class T, int kRows>
void sort_columns(T* const* out, const T* const* rows, int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes<T>) {
    V<T> x[kRows];
    for (int k = 0; k < kRows; ++k) x[k] = load_vector<T>(rows[k] + i);
    if constexpr (kRows == 3) sort_three<T>(x);
    else sort_five<T>(x);
    for (int k = 0; k < kRows; ++k) store_vector<T>(out[k] + i, x[k]);
  }
}

// The median of nine numbers in sorted columns: the median of the largest of the minima, the median of the medians, and
// the smallest of the maxima. x[k] has the numbers k of the columns.
template <class T>
inline V<T> median_of_columns(const V<T> (&x)[3][3]) {
  V<T> low = most<T>(most<T>(x[0][0], x[0][1]), x[0][2]), high = least<T>(least<T>(x[2][0], x[2][1]), x[2][2]);
  const V<T> middle = most<T>(least<T>(x[1][0], x[1][1]), least<T>(most<T>(x[1][0], x[1][1]), x[1][2]));
  exchange<T>(low, high);
  return most<T>(low, least<T>(middle, high));
}

template <class T>
void median_of_nine(T* out, const T* const* sorted, int64_t step, int64_t n) {
  store_row(out, n, [&](int64_t i) {
    V<T> x[3][3];
    for (int k = 0; k < 3; ++k)
      for (int j = 0; j < 3; ++j) x[k][j] = load_vector<T>(sorted[k] + i + j * step);
    return median_of_columns<T>(x);
  });
}

#if defined(STOKER_SHIFTED)
// Sorted columns stay in registers: those of the next pixels are shifted in from the next vector.
template <class T, int kStep>
void median_of_pixels(T* out, const T* const* rows, int64_t n) {
  constexpr int64_t kVector = kLanes<T>;
  constexpr int kBytes = kStep * static_cast<int>(sizeof(T));
  const auto sorted = [&](int64_t i, V<T>(&x)[3]) {
    for (int k = 0; k < 3; ++k) x[k] = load_vector<T>(rows[k] + i);
    sort_three<T>(x);
  };
  V<T> now[3], next[3];
  const auto median = [&] {
    V<T> x[3][3];
    for (int k = 0; k < 3; ++k) {
      x[k][0] = now[k];
      shift_in<kBytes>(now[k], next[k], x[k][1], x[k][2]);
    }
    return median_of_columns<T>(x);
  };
  sorted(0, now);
  int64_t i = 0;
  for (; i + kVector <= n; i += kVector) {
    sorted(i + kVector, next);
    store_vector<T>(out + i, median());
    for (int k = 0; k < 3; ++k) now[k] = next[k];
  }
  if (i == n) return;
  if (n >= kVector) sorted(n - kVector, now);
  sorted(n >= kVector ? n : kVector, next);
  const V<T> x = median();
  if (n >= kVector) store_vector<T>(out + n - kVector, x);
  else std::memcpy(out, &x, static_cast<size_t>(n) * sizeof(T));
}

template <class T>
bool median_of_rows(T* out, const T* const* rows, int64_t step, int64_t n) {
  switch (step) {
    case 1: median_of_pixels<T, 1>(out, rows, n); return true;
    case 3: median_of_pixels<T, 3>(out, rows, n); return true;
    case 4: median_of_pixels<T, 4>(out, rows, n); return true;
    default: return false;
  }
}
#endif

// Merge sorted sequences by Batcher's odd-even merge: two and one, two and two, three and three, four and three.
template <class T>
inline void merge21(V<T> (&x)[3], V<T> a0, V<T> a1, V<T> b0) {
  exchange<T>(a0, b0);
  exchange<T>(b0, a1);
  x[0] = a0, x[1] = b0, x[2] = a1;
}
template <class T>
inline void merge22(V<T> (&x)[4], V<T> a0, V<T> a1, V<T> b0, V<T> b1) {
  exchange<T>(a0, b0);
  exchange<T>(a1, b1);
  exchange<T>(a1, b0);
  x[0] = a0, x[1] = a1, x[2] = b0, x[3] = b1;
}
template <class T>
inline void merge33(V<T> (&x)[6], const V<T> (&a)[3], const V<T> (&b)[3]) {
  V<T> even[4], odd[2] = {a[1], b[1]};
  merge22<T>(even, a[0], a[2], b[0], b[2]);
  exchange<T>(odd[0], odd[1]);
  exchange<T>(odd[0], even[1]);
  exchange<T>(odd[1], even[2]);
  x[0] = even[0], x[1] = odd[0], x[2] = even[1], x[3] = odd[1], x[4] = even[2], x[5] = even[3];
}
template <class T>
inline void merge43(V<T> (&x)[7], const V<T> (&a)[4], const V<T> (&b)[3]) {
  V<T> even[4], odd[3];
  merge22<T>(even, a[0], a[2], b[0], b[2]);
  merge21<T>(odd, a[1], a[3], b[1]);
  for (int i = 0; i < 3; ++i) exchange<T>(odd[i], even[i + 1]);
  x[0] = even[0];
  for (int i = 0; i < 3; ++i) x[2 * i + 1] = odd[i], x[2 * i + 2] = even[i + 1];
}

// The median of 25 numbers in sorted columns. Once the rows are sorted as well, the number in row i and column j is at
// least as large as (i + 1)(j + 1) numbers, so six are too small and six too large. The median of the other 13 is the
// seventh of two merged sequences.
template <class T>
void median_of_25(T* out, const T* const* sorted, int64_t step, int64_t n) {
  store_row(out, n, [&](int64_t i) {
    V<T> x[5][5];
    for (int k = 0; k < 5; ++k) {
      for (int j = 0; j < 5; ++j) x[k][j] = load_vector<T>(sorted[k] + i + j * step);
      sort_five<T>(x[k]);
    }
    V<T> outer[4], six[6], seven[7];
    merge22<T>(outer, x[0][3], x[0][4], x[4][0], x[4][1]);
    merge33<T>(six, {x[1][2], x[1][3], x[1][4]}, {x[3][0], x[3][1], x[3][2]});
    merge43<T>(seven, outer, {x[2][1], x[2][2], x[2][3]});
    V<T> found = seven[6];
    for (int k = 0; k < 6; ++k) found = least<T>(found, most<T>(six[k], seven[5 - k]));
    return found;
  });
}

// Vectors of counts for a vector of keys: Count has the bits of T or twice as many.
template <class T, class Count>
struct Counts {
  static constexpr bool kWide = sizeof(Count) > sizeof(T);
  V<Count> low{}, high{};

  void add(V<T> found) {  // -1 in the lanes to count
    if constexpr (kWide) {
      constexpr int kBits = 8 * sizeof(T);
      low += (V<Count>)found & static_cast<Count>(1);
      high += (V<Count>)found >> (2 * kBits - 1);
    } else {
      low -= (V<Count>)found;
    }
  }
  // Lanes of -1 where a count is above `half`.
  V<T> above(Count half) const {
    if constexpr (kWide) {
      constexpr int kBits = 8 * sizeof(T);
      const V<Count> a = (V<Count>)(low > half) >> kBits, b = (V<Count>)(high > half) << kBits;
      return (V<T>)(a | b);
    } else {
      return (V<T>)(low > half);
    }
  }
};

// Determine the median bit by bit: a bit is set if more than half of the numbers are at least as large as the median
// so far with this bit.
template <class T, class Count>
void window_row(T* out, const T* const* rows, int64_t height, int64_t width, int64_t step, int64_t n) {
  const auto half = static_cast<Count>(height * width / 2);
  store_row(out, n, [&](int64_t at) {
    V<T> found{};
    for (T bit = static_cast<T>(T{1} << (8 * sizeof(T) - 1)); bit; bit = static_cast<T>(bit >> 1)) {
      const V<T> tried = found | bit;
      Counts<T, Count> counts;
      for (int64_t i = 0; i < height; ++i) {
        const T* p = rows[i] + at;
        for (int64_t j = 0; j < width; ++j, p += step) counts.add((V<T>)(load_vector<T>(p) >= tried));
      }
      found |= counts.above(half) & bit;
    }
    return found;
  });
}

template <class T>
void window_row_of(T* out, const T* const* rows, int64_t height, int64_t width, int64_t step, int64_t n) {
  if constexpr (sizeof(T) < 4) {
    using Wide = std::conditional_t<sizeof(T) == 1, uint16_t, uint32_t>;
    if (height * width > static_cast<int64_t>(std::numeric_limits<T>::max()))
      return window_row<T, Wide>(out, rows, height, width, step, n);
  }
  window_row<T, T>(out, rows, height, width, step, n);
}

template <class T>
void fill_loops(Loops<T>& loops) {
  loops.pair[0] = pair_row<T, false>;
  loops.pair[1] = pair_row<T, true>;
  loops.triple[0] = triple_row<T, false>;
  loops.triple[1] = triple_row<T, true>;
  loops.fold[0] = fold_row<T, false>;
  loops.fold[1] = fold_row<T, true>;
  loops.sort3 = sort_columns<T, 3>;
  loops.sort5 = sort_columns<T, 5>;
  loops.median3 = median_of_nine<T>;
  loops.median5 = median_of_25<T>;
#if defined(STOKER_SHIFTED)
  if constexpr (sizeof(T) < 4) loops.median3_of_rows = median_of_rows<T>;
#endif
  loops.window = window_row_of<T>;
}

// Slide a window's histogram along the row: add the column that enters and subtract the one that leaves.
//
// Source: S. Perreault, P. Hebert, "Median filtering in constant time", IEEE Transactions on Image Processing 16 (2007).
void counted_median_row(uint8_t* out, const Histogram* columns, int64_t height, int64_t width, int64_t step,
                        int64_t n) {
  constexpr int kCounts = sizeof(Histogram) / sizeof(uint16_t);
  static_assert(kCounts % kLanes<uint16_t> == 0 || kCounts % kLanes<uint16_t> == 16);
  constexpr int kWhole = kCounts / kLanes<uint16_t> * kLanes<uint16_t>;
  const int64_t half = height * width / 2;
  alignas(STOKER_VECTOR_BYTES) Histogram seen{};
  uint16_t* const counts = seen.fine;  // the coarse counts follow
  const auto update = [&](const Histogram& enters, const Histogram* leaves) {
    const uint16_t *a = enters.fine, *b = leaves ? leaves->fine : nullptr;
    for (int i = 0; i < kWhole; i += kLanes<uint16_t>) {
      V<uint16_t> x = load_vector<uint16_t>(counts + i) + load_vector<uint16_t>(a + i);
      if (b) x -= load_vector<uint16_t>(b + i);
      store_vector<uint16_t>(counts + i, x);
    }
    for (int i = kWhole; i < kCounts; ++i) counts[i] = static_cast<uint16_t>(counts[i] + a[i] - (b ? b[i] : 0));
  };
  for (int64_t j = 0; j < width; ++j) update(columns[j], nullptr);
  for (int64_t i = 0; i < n; ++i) {
    if (i > 0) update(columns[i + width - 1], &columns[i - 1]);
    int64_t below = 0;
    int coarse = 0;
    while (below + seen.coarse[coarse] <= half) below += seen.coarse[coarse++];
    int fine = 16 * coarse;
    while (below + seen.fine[fine] <= half) below += seen.fine[fine++];
    out[i * step] = static_cast<uint8_t>(fine);
  }
}

void fill_kernels(Kernels& k) {
  k.counted = counted_median_row;
  fill_loops(k.bytes);
  fill_loops(k.words);
  fill_loops(k.longs);
}
