// SPDX-License-Identifier: Apache-2.0
// Sums of floats in double. The including file provides base/vectors.ipp.
//
// All 32 lanes are folded, also if fewer have a number: the others are 0, and a lane that begins at 0 is never -0.

constexpr int kDoubles = STOKER_VECTOR_BYTES / 8;

typedef float LooseFloats __attribute__((vector_size(STOKER_VECTOR_BYTES / 2), aligned(4), may_alias));

[[gnu::always_inline]] inline V<double> load_doubles(const float* p) {
  return __builtin_convertvector(*reinterpret_cast<const LooseFloats*>(p), V<double>);
}

template <Term kTerm, class X>
[[gnu::always_inline]] inline X term_of(X x, X about) {
  if constexpr (kTerm == Term::Value) return x;
  if constexpr (kTerm == Term::Square) return x * x;
  const X d = x - about;
  return d * d;
}

// Fold lanes of `kWidth` columns to the first one.
template <int kWidth>
[[gnu::always_inline]] inline void fold_lanes(double* lanes) {
  for (int half = fold::kLanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half * kWidth; ++i) lanes[i] += lanes[half * kWidth + i];
}

// Call add(first, count, lanes) for each chunk, and return the folded chunks.
template <int kWidth, class Add>
[[gnu::always_inline]] inline void by_chunks(int64_t count, double* sums, Add add) {
  alignas(64) double lanes[fold::kLanes * kWidth], chunks[fold::kLanes * kWidth] = {};
  int64_t chunk = 0;
  for (int64_t first = 0; first < count; first += fold::kChunk, ++chunk) {
    std::memset(lanes, 0, sizeof lanes);
    add(first, count - first < fold::kChunk ? count - first : fold::kChunk, lanes);
    fold_lanes<kWidth>(lanes);
    double* to = chunks + chunk % fold::kLanes * kWidth;
    for (int c = 0; c < kWidth; ++c) to[c] += lanes[c];
  }
  fold_lanes<kWidth>(chunks);
  for (int c = 0; c < kWidth; ++c) sums[c] = chunks[c];
}

// Sum over contiguous numbers.
template <Term kTerm>
void sum_row(const float* x, int64_t count, double about, double* sum) {
  constexpr int kVectors = fold::kLanes / kDoubles;
  by_chunks<1>(count, sum, [&](int64_t first, int64_t n, double* lanes) {
    const float* p = x + first;
    V<double> at[kVectors] = {};
    const V<double> middle = V<double>{} + about;
    int64_t i = 0;
    for (; i + fold::kLanes <= n; i += fold::kLanes)
      for (int v = 0; v < kVectors; ++v) at[v] += term_of<kTerm>(load_doubles(p + i + v * kDoubles), middle);
    std::memcpy(lanes, at, sizeof at);
    for (; i < n; ++i) lanes[i % fold::kLanes] += term_of<kTerm>(static_cast<double>(p[i]), about);
  });
}

// Sums of two vectors of neighbouring columns.
constexpr int kColumns = 2 * kDoubles;

template <Term kTerm>
void sum_columns(const float* x, int64_t count, int64_t apart, const double* about, double* sums) {
  V<double> middle[2] = {};
  if constexpr (kTerm == Term::Deviation) std::memcpy(middle, about, sizeof middle);
  by_chunks<kColumns>(count, sums, [&](int64_t first, int64_t n, double* lanes) {
    const float* p = x + first * apart;
    for (int64_t i = 0; i < n; ++i, p += apart) {
      auto* lane = reinterpret_cast<V<double>*>(lanes + i % fold::kLanes * kColumns);
      for (int v = 0; v < 2; ++v) lane[v] += term_of<kTerm>(load_doubles(p + v * kDoubles), middle[v]);
    }
  });
}

// Sum over numbers that are apart.
template <Term kTerm>
void sum_column(const float* x, int64_t count, int64_t apart, double about, double* sum) {
  by_chunks<1>(count, sum, [&](int64_t first, int64_t n, double* lanes) {
    const float* p = x + first * apart;
    for (int64_t i = 0; i < n; ++i, p += apart)
      lanes[i % fold::kLanes] += term_of<kTerm>(static_cast<double>(*p), about);
  });
}

// Columns that no block of kColumns covers are the end of one more block, which overlaps the last one.
template <Term kTerm>
void sum_all(const float* x, int64_t count, int64_t apart, int64_t columns, const double* about, double* sums) {
  int64_t c = 0;
  if (apart != 1 && columns >= kColumns)
    for (; c < columns; c += kColumns) {
      const int64_t at = c + kColumns <= columns ? c : columns - kColumns;
      sum_columns<kTerm>(x + at, count, apart, about ? about + at : nullptr, sums + at);
    }
  for (; c < columns; ++c) {
    const double middle = about ? about[c] : 0.0;
    if (apart == 1) sum_row<kTerm>(x + c, count, middle, sums + c);
    else sum_column<kTerm>(x + c, count, apart, middle, sums + c);
  }
}

constexpr int kFloats = STOKER_VECTOR_BYTES / 4;

[[gnu::always_inline]] inline float normalized(float x, float middle, float factor, float shift) {
  return (x - middle) * factor + shift;
}

// Normalize numbers of one column.
[[gnu::always_inline]] inline void normalize_row(const float* x, int64_t count, float middle, float factor, float shift,
                                                 float* y) {
  const V<float> m = V<float>{} + middle, f = V<float>{} + factor, s = V<float>{} + shift;
  int64_t i = 0;
  for (; i + kFloats <= count; i += kFloats) store_vector<float>(y + i, (load_vector<float>(x + i) - m) * f + s);
  for (; i < count; ++i) y[i] = normalized(x[i], middle, factor, shift);
}

// Normalize rows of numbers, one of each column.
[[gnu::always_inline]] inline void normalize_rows(const float* x, int64_t count, int64_t apart, int64_t columns,
                                                  const float* middle, const float* factor, float shift, float* y) {
  const V<float> s = V<float>{} + shift;
  for (int64_t i = 0; i < count; ++i, x += apart, y += apart) {
    int64_t c = 0;
    for (; c + kFloats <= columns; c += kFloats) {
      const V<float> centred = load_vector<float>(x + c) - load_vector<float>(middle + c);
      store_vector<float>(y + c, centred * load_vector<float>(factor + c) + s);
    }
    for (; c < columns; ++c) y[c] = normalized(x[c], middle[c], factor[c], shift);
  }
}

void normalize(const float* x, int64_t count, int64_t apart, int64_t columns, const Normalization& n, float* y) {
  constexpr int64_t kAtOnce = 64;  // columns, whose statistics are on the stack
  for (int64_t first = 0; first < columns; first += kAtOnce) {
    const int64_t some = columns - first < kAtOnce ? columns - first : kAtOnce;
    double means[kAtOnce], squares[kAtOnce];
    float middle[kAtOnce], factor[kAtOnce];
    sum_all<Term::Value>(x + first, count, apart, some, nullptr, means);
    for (int64_t c = 0; c < some; ++c) means[c] = fold::averaged<fold::Reduction::Mean>(means[c], count, 0);
    sum_all<Term::Deviation>(x + first, count, apart, some, means, squares);
    for (int64_t c = 0; c < some; ++c) {
      const auto variance =
          static_cast<float>(fold::averaged<fold::Reduction::Variance>(squares[c], count, n.ddof)) + n.epsilon;
      middle[c] = static_cast<float>(means[c]);
      factor[c] = variance > 0.0f ? n.scale / std::sqrt(variance) : 0.0f;
    }
    if (apart == 1) normalize_row(x + first, count, middle[0], factor[0], n.shift, y + first);
    else normalize_rows(x + first, count, apart, some, middle, factor, n.shift, y + first);
  }
}

void fill_kernels(Kernels& k) {
  k = {{sum_all<Term::Value>, sum_all<Term::Square>, sum_all<Term::Deviation>}, normalize};
}
