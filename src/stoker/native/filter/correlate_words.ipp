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

template <class At>
inline Pair sum_pair(int64_t taps, const int16_t* weights, At&& at) {
  Pair sum{};
  for (int64_t i = 0; i < taps; ++i) {
    const int16_t* from = at(i);
    sum.a = plus_product(sum.a, load_vector<int16_t>(from), weights[i]);
    sum.b = plus_product(sum.b, load_vector<int16_t>(from + kLanes<int16_t>), weights[i]);
  }
  return sum;
}

void across_row(const WordRow& r) {
  constexpr int64_t kStep = 2 * kLanes<int16_t>;
  for (int64_t x = 0; x < r.count; x += kStep) {
    const Pair sum = sum_pair(r.taps, r.weights, [&](int64_t i) { return r.from + i * r.step + x; });
    store_vector<int16_t>(r.out + x, sum.a);
    store_vector<int16_t>(r.out + x + kLanes<int16_t>, sum.b);
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
void down_columns(const WordColumns& c) {
  constexpr int64_t kStep = 2 * kLanes<int16_t>;
  for (int64_t x = 0; x < c.count; x += kStep) {
    const Pair sum = sum_pair(c.taps, c.weights, [&](int64_t i) { return c.from[i] + x; });
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

constexpr WordLoops kLoops{widen_row, across_row, down_columns};
