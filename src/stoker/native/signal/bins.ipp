// SPDX-License-Identifier: Apache-2.0
// Sums over bins, decibels and differences. The including file provides base/vectors.ipp and signal/frames.ipp.

// Sums of one group: x[bin] -> y[row]. Rows with the same bins (all of a cosine transform) are computed four at a time,
// because each addition waits for the one before.
[[gnu::always_inline]] inline void sums_of(const V<float>* x, const Weights& w, const int32_t* bands, V<float>* y) {
  int64_t r = 0;
  for (; r + 4 <= w.rows; r += 4) {
    const float* weights = w.weights + r * w.bins;
    const int64_t begin = bands[2 * r], end = bands[2 * r + 1];
    bool alike = true;
    for (int k = 1; k < 4; ++k) alike &= bands[2 * (r + k)] == begin && bands[2 * (r + k) + 1] == end;
    V<float> sums[4] = {};
    if (alike) {
      for (int64_t b = begin; b < end; ++b)
        for (int k = 0; k < 4; ++k) sums[k] += x[b] * weights[k * w.bins + b];
    } else {
      for (int k = 0; k < 4; ++k)
        for (int64_t b = bands[2 * (r + k)]; b < bands[2 * (r + k) + 1]; ++b) sums[k] += x[b] * weights[k * w.bins + b];
    }
    for (int k = 0; k < 4; ++k) y[r + k] = sums[k];
  }
  for (; r < w.rows; ++r) {
    V<float> sum = {};
    for (int64_t b = bands[2 * r]; b < bands[2 * r + 1]; ++b) sum += x[b] * w.weights[r * w.bins + b];
    y[r] = sum;
  }
}

void group_project(const float* in, const Weights& weights, const int32_t* bands, float* out) {
  sums_of(reinterpret_cast<const V<float>*>(in), weights, bands, reinterpret_cast<V<float>*>(out));
}

void store_frames(const float* in, int64_t bins, int64_t first, int64_t count, const Bins& out) {
  store_group(reinterpret_cast<const V<float>*>(in), bins, first, static_cast<int>(count), out);
}

void project(const float* in, int64_t frame, int64_t bin, int64_t frames, const Weights& weights, const int32_t* bands,
             const Bins& out, uint8_t* memory) {
  auto* x = reinterpret_cast<V<float>*>(memory);
  V<float>* y = x + weights.bins;
  for (int64_t first = 0; first < frames; first += kFrames) {
    const int64_t left = frames - first;
    const int count = left < kFrames ? static_cast<int>(left) : kFrames;
    const float* p = in + first * frame;
    if (frame == 1 && count == kFrames) {
      for (int64_t b = 0; b < weights.bins; ++b) x[b] = load_vector<float>(p + b * bin);
    } else if (bin == 1) {
      const float* from[kFrames];
      for (int l = 0; l < kFrames; ++l) from[l] = p + (l < count ? l : count - 1) * frame;
      transposed(from, weights.bins, [&](int64_t b, V<float> v) { x[b] = v; });
    } else {
      for (int64_t b = 0; b < weights.bins; ++b)
        for (int l = 0; l < kFrames; ++l) x[b][l] = p[(l < count ? l : count - 1) * frame + b * bin];
    }
    sums_of(x, weights, bands, y);
    store_group(y, weights.rows, first, count, out);
  }
}

struct FloatLanes {
  using F = V<float>;
  using I = V<int32_t>;
  [[gnu::always_inline]] static I bits(F x) { return (I)x; }
  [[gnu::always_inline]] static F from_bits(I x) { return (F)x; }
  [[gnu::always_inline]] static F to_float(I x) { return __builtin_convertvector(x, F); }
  template <class Condition>
  [[gnu::always_inline]] static F where(Condition c, F a, F b) {
    return c ? a : b;
  }
};

void decibels(const float* x, int64_t count, float scale, float floor, float factor, float* y) {
  const V<float> least = V<float>{} + floor;
  const auto of = [&](V<float> v) __attribute__((always_inline)) {
    v = v * scale;
    return xm::log2f<FloatLanes>(v < least ? least : v) * factor;
  };
  int64_t i = 0;
  for (; i + kFrames <= count; i += kFrames) store_vector<float>(y + i, of(load_vector<float>(x + i)));
  if (i == count) return;
  alignas(STOKER_VECTOR_BYTES) float rest[kFrames] = {};
  std::memcpy(rest, x + i, static_cast<size_t>(count - i) * sizeof(float));
  store_first(y + i, of(*reinterpret_cast<const V<float>*>(rest)), static_cast<int>(count - i));
}

void differences(const float* x, int64_t count, float coefficient, float* y) {
  int64_t i = 0;
  for (; i + kFrames <= count; i += kFrames)
    store_vector<float>(y + i, load_vector<float>(x + i) - load_vector<float>(x + i - 1) * coefficient);
  for (; i < count; ++i) y[i] = x[i] - x[i - 1] * coefficient;
}
