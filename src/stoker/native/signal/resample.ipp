// SPDX-License-Identifier: Apache-2.0
// Weighted sums of neighbouring samples. The including file provides base/vectors.ipp and signal/frames.ipp.
//
// Product k of an output is added to partial sum k % 16; then the upper half of the sums is added to the lower half,
// until one is left.

constexpr int kVectors = 16 / kFrames;  // of the partial sums

// Fold 16 partial sums to four: sum j + 4 is added to sum j, after sum j + 8.
[[gnu::always_inline]] inline Part folded(const V<float> (&sums)[kVectors]) {
#if STOKER_VECTOR_BYTES == 16
  return (sums[0] + sums[2]) + (sums[1] + sums[3]);
#elif STOKER_VECTOR_BYTES == 32
  const V<float> eight = sums[0] + sums[1];
  return __builtin_shufflevector(eight, eight, 0, 1, 2, 3) + __builtin_shufflevector(eight, eight, 4, 5, 6, 7);
#else
  const V<float> x = sums[0];
  const auto eight = __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7) +
                     __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15);
  return __builtin_shufflevector(eight, eight, 0, 1, 2, 3) + __builtin_shufflevector(eight, eight, 4, 5, 6, 7);
#endif
}

template <bool kInterpolated>
[[gnu::always_inline]] inline Part four_sums(const float* x, const float* w, int64_t taps, float part) {
  V<float> sums[kVectors] = {};
  for (int64_t k = 0; k < taps; k += 16)
    for (int v = 0; v < kVectors; ++v) {
      const int64_t at = k + v * kFrames;
      V<float> weight = load_vector<float>(w + at);
      if constexpr (kInterpolated) weight += (load_vector<float>(w + taps + at) - weight) * part;
      sums[v] += load_vector<float>(x + at) * weight;
    }
  return folded(sums);
}

// Total of each of four outputs from its four folded sums.
[[gnu::always_inline]] inline Part totals(const Part (&sums)[4]) {
  const Part a = __builtin_shufflevector(sums[0], sums[1], 0, 4, 1, 5);
  const Part b = __builtin_shufflevector(sums[2], sums[3], 0, 4, 1, 5);
  const Part c = __builtin_shufflevector(sums[0], sums[1], 2, 6, 3, 7);
  const Part d = __builtin_shufflevector(sums[2], sums[3], 2, 6, 3, 7);
  const Part s0 = __builtin_shufflevector(a, b, 0, 1, 4, 5), s1 = __builtin_shufflevector(a, b, 2, 3, 6, 7);
  const Part s2 = __builtin_shufflevector(c, d, 0, 1, 4, 5), s3 = __builtin_shufflevector(c, d, 2, 3, 6, 7);
  return (s0 + s2) + (s1 + s3);
}

// Position of an output: at + fraction / up.
struct Position {
  int64_t at = 0, fraction = 0;

  [[gnu::always_inline]] void advance(int64_t whole, int64_t rest, int64_t up) {
    at += whole;
    fraction += rest;
    if (fraction >= up) {
      fraction -= up;
      ++at;
    }
  }
};

// Write outputs `first` to count - 1, of which the first one is at `position`.
template <bool kInterpolated>
void resample_from(const float* x, const Resampling& r, int64_t first, Position position, float* y) {
  const int64_t whole = r.down / r.up, rest = r.down % r.up;
  for (; first < r.count; first += 4) {
    const int64_t left = r.count - first < 4 ? r.count - first : 4;
    Part sums[4] = {};
    for (int64_t i = 0; i < left; ++i) {
      const float* from = x + (position.at < r.size ? position.at : r.size);
      if constexpr (kInterpolated) {
        const double phase =
            static_cast<double>(position.fraction) / static_cast<double>(r.up) * static_cast<double>(r.phases);
        const auto row = static_cast<int64_t>(phase);
        sums[i] = four_sums<true>(from, r.weights + row * r.taps, r.taps,
                                  static_cast<float>(phase - static_cast<double>(row)));
      } else {
        sums[i] = four_sums<false>(from, r.weights + position.fraction * r.taps, r.taps, 0.0f);
      }
      position.advance(whole, rest, r.up);
    }
    const Part total = totals(sums);
    for (int64_t i = 0; i < left; ++i) y[(first + i) * r.stride] = total[i];
  }
}

// Folded sums of outputs with the same weights, which are loaded once for all of them.
constexpr int kAlike = STOKER_VECTOR_BYTES == 16 ? 2 : 4;

[[gnu::always_inline]] inline void alike_sums(const float* const (&from)[4], int first, const float* w, int64_t taps,
                                              Part (&folds)[4]) {
  V<float> sums[kAlike][kVectors] = {};
  for (int64_t k = 0; k < taps; k += 16)
    for (int v = 0; v < kVectors; ++v) {
      const int64_t at = k + v * kFrames;
      const V<float> weight = load_vector<float>(w + at);
      for (int i = 0; i < kAlike; ++i) sums[i][v] += load_vector<float>(from[first + i] + at) * weight;
    }
  for (int i = 0; i < kAlike; ++i) folds[first + i] = folded(sums[i]);
}

constexpr int64_t kMostPeriods = 1024;  // outputs until the phases repeat; their inputs stay in the cache

void resample(const float* x, const Resampling& r, float* y) {
  if (r.interpolated) return resample_from<true>(x, r, 0, {}, y);
  int64_t first = 0;
  Position position;
  const int64_t whole = r.down / r.up, rest = r.down % r.up;
  // Outputs that are `up` apart have the same fraction, and are `down` inputs apart: four of them at a time.
  if (r.up <= kMostPeriods)
    for (; first + 4 * r.up <= r.count; first += 4 * r.up) {
      for (int64_t p = 0; p < r.up; ++p) {
        const float* from[4];
        for (int64_t i = 0; i < 4; ++i) {
          const int64_t at = position.at + i * r.down;
          from[i] = x + (at < r.size ? at : r.size);
        }
        Part folds[4];
        for (int i = 0; i < 4; i += kAlike) alike_sums(from, i, r.weights + position.fraction * r.taps, r.taps, folds);
        const Part total = totals(folds);
        for (int64_t i = 0; i < 4; ++i) y[(first + p + i * r.up) * r.stride] = total[i];
        position.advance(whole, rest, r.up);
      }
      position.at += 3 * r.down;
    }
  resample_from<false>(x, r, first, position, y);
}
