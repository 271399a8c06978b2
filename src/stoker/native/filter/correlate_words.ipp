// SPDX-License-Identifier: Apache-2.0
// Sums of products in words of 16 bits, written once over the vectors of base/vectors.ipp, which the including file
// includes first.

// Lower lanes first.
inline V<int16_t> words_of_bytes(const uint8_t* p) {
  typedef uint8_t Half __attribute__((vector_size(STOKER_VECTOR_BYTES / 2)));
  Half half;
  std::memcpy(&half, p, sizeof half);
  return __builtin_convertvector(half, V<int16_t>);
}

void widen_row(const uint8_t* from, int16_t* to, int64_t n) {
  for (int64_t i = 0; i < n; i += kLanes<int16_t>) store_vector<int16_t>(to + i, words_of_bytes(from + i));
}

// Two vectors of sums at a time.
struct Pair {
  V<int16_t> a, b;
};

// Wraps: lanes after the end of a row hold any numbers.
inline V<int16_t> plus_product(V<int16_t> sum, V<int16_t> x, int16_t weight) {
  return (V<int16_t>)((V<uint16_t>)sum + (V<uint16_t>)x * static_cast<uint16_t>(weight));
}

// kTaps: the number of weights, which then stay in registers; 0: any number.
template <int kTaps, class At>
inline Pair sum_pair(int64_t taps, const int16_t* weights, At&& at) {
  Pair sum{};
  for (int64_t i = 0; i < (kTaps ? kTaps : taps); ++i) {
    const int16_t* from = at(i);
    sum.a = plus_product(sum.a, load_vector<int16_t>(from), weights[i]);
    sum.b = plus_product(sum.b, load_vector<int16_t>(from + kLanes<int16_t>), weights[i]);
  }
  return sum;
}

template <int kTaps>
void across_taps(const WordRow& r) {
  constexpr int64_t kStep = 2 * kLanes<int16_t>;
  int16_t own[kTaps ? kTaps : 1];
  if constexpr (kTaps > 0) std::memcpy(own, r.weights, sizeof own);
  const int16_t* const weights = kTaps ? own : r.weights;
  for (int64_t x = 0; x < r.count; x += kStep) {
    const Pair sum = sum_pair<kTaps>(r.taps, weights, [&](int64_t i) { return r.from + i * r.step + x; });
    store_vector<int16_t>(r.out + x, sum.a);
    store_vector<int16_t>(r.out + x + kLanes<int16_t>, sum.b);
  }
}

void across_row(const WordRow& r) {
  switch (r.taps) {
    case 1: return across_taps<1>(r);
    case 3: return across_taps<3>(r);
    case 5: return across_taps<5>(r);
    default: return across_taps<0>(r);
  }
}

inline V<int16_t> in_bytes(V<int16_t> x) {
  const V<int16_t> low = x < 0 ? x ^ x : x, top = (x ^ x) + static_cast<int16_t>(255);
  return low > top ? top : low;
}

inline void store_bytes(uint8_t* to, V<int16_t> x) {
  typedef uint8_t Half __attribute__((vector_size(STOKER_VECTOR_BYTES / 2)));
  const Half half = __builtin_convertvector(in_bytes(x), Half);
  std::memcpy(to, &half, sizeof half);
}

// The outputs have room for whole vectors.
template <int kTaps>
void down_taps(const WordColumns& c) {
  constexpr int64_t kStep = 2 * kLanes<int16_t>;
  constexpr int kOwn = kTaps ? kTaps : 1;
  int16_t own[kOwn];
  const int16_t* rows[kOwn];
  if constexpr (kTaps > 0) {
    std::memcpy(own, c.weights, sizeof own);
    std::memcpy(rows, c.from, sizeof rows);
  }
  const int16_t* const weights = kTaps ? own : c.weights;
  const int16_t* const* const from = kTaps ? rows : c.from;
  for (int64_t x = 0; x < c.count; x += kStep) {
    const Pair sum = sum_pair<kTaps>(c.taps, weights, [&](int64_t i) { return from[i] + x; });
    if (c.bytes) {
      store_bytes(c.bytes + x, sum.a);
      store_bytes(c.bytes + x + kLanes<int16_t>, sum.b);
      continue;
    }
    int16_t words[kStep];
    store_vector<int16_t>(words, sum.a);
    store_vector<int16_t>(words + kLanes<int16_t>, sum.b);
    for (int64_t k = 0; k < kStep; ++k) c.floats[x + k] = static_cast<float>(words[k]);
  }
}

void down_columns(const WordColumns& c) {
  switch (c.taps) {
    case 4: return down_taps<4>(c);
    case 6: return down_taps<6>(c);
    default: return down_taps<0>(c);
  }
}

constexpr WordLoops kLoops{widen_row, across_row, down_columns};
