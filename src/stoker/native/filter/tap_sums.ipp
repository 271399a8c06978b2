// SPDX-License-Identifier: Apache-2.0
// Weighted sums of rows of float32, written once over the vectors of base/vectors.ipp, which the including file includes
// first. The sums of a tile stay in registers.

void sum_row(const Sum& s) {
  constexpr int kVectors = kTile / kLanes<float>;
  const Tap* const taps = s.taps;
  const int64_t count = s.tap_count;
  float* const out = s.out;
  for (int64_t x = 0, end = s.count; x < end; x += kTile) {
    V<float> sum[kVectors] = {};
    for (int64_t i = 0; i < count; ++i) {
      const float weight = taps[i].weight;
      const float* const from = taps[i].from + x;
      for (int k = 0; k < kVectors; ++k) sum[k] = sum[k] + load_vector<float>(from + k * kLanes<float>) * weight;
    }
    for (int k = 0; k < kVectors; ++k) store_vector<float>(out + x + k * kLanes<float>, sum[k]);
  }
}

// One load of a value serves all output rows whose windows contain it; with one row at a time there are as many loads as
// multiplications, and the kept rows of a window exceed the L1 cache.
void sum_rows(const SumRows& s) {
  constexpr int kVectors = 8 / kRowsTogether * (STOKER_VECTOR_BYTES == 64 ? 2 : 1);  // of a row, in registers
  constexpr int64_t kStep = kVectors * kLanes<float>;
  static_assert(kTile % kStep == 0);
  const float* const* const rows = s.rows;
  const float* const weights = s.weights;
  const int64_t height = s.height, count = s.count;
  for (int64_t x = 0; x < count; x += kStep) {
    V<float> sum[kRowsTogether][kVectors] = {};
    const auto add = [&](int64_t i, auto in_window) {
      const float* const from = rows[i] + x;
      V<float> value[kVectors];
      for (int k = 0; k < kVectors; ++k) value[k] = load_vector<float>(from + k * kLanes<float>);
      for (int r = 0; r < kRowsTogether; ++r)
        if (in_window(r))
          for (int k = 0; k < kVectors; ++k) sum[r][k] = sum[r][k] + value[k] * weights[i - r];
    };
    const auto partly = [&](int64_t i) { add(i, [&](int r) { return i >= r && i - r < height; }); };
    const int64_t whole = std::max<int64_t>(height, kRowsTogether - 1);
    int64_t i = 0;
    for (; i < kRowsTogether - 1; ++i) partly(i);
    for (; i < height; ++i) add(i, [](int) { return true; });
    for (i = whole; i < height + kRowsTogether - 1; ++i) partly(i);
    for (int r = 0; r < kRowsTogether; ++r)
      for (int k = 0; k < kVectors; ++k) store_vector<float>(s.out[r] + x + k * kLanes<float>, sum[r][k]);
  }
}

constexpr TapSums kTapSums{sum_row, sum_rows};
