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

template <Term kTerm>
void sum_all(const float* x, int64_t count, int64_t apart, int64_t columns, const double* about, double* sums) {
  int64_t c = 0;
  if (apart != 1)
    for (; c + kColumns <= columns; c += kColumns)
      sum_columns<kTerm>(x + c, count, apart, about ? about + c : nullptr, sums + c);
  for (; c < columns; ++c) {
    const double middle = about ? about[c] : 0.0;
    if (apart == 1) sum_row<kTerm>(x + c, count, middle, sums + c);
    else sum_column<kTerm>(x + c, count, apart, middle, sums + c);
  }
}

void fill_kernels(Kernels& k) { k = {{sum_all<Term::Value>, sum_all<Term::Square>, sum_all<Term::Deviation>}}; }
