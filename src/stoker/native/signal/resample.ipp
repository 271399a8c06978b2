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

template <bool kInterpolated>
void resample_as(const float* x, const Resampling& r, float* y) {
  int64_t at = 0, fraction = 0;  // position of the output: at + fraction / up
  const int64_t whole = r.down / r.up, rest = r.down % r.up;
  for (int64_t first = 0; first < r.count; first += 4) {
    const int64_t left = r.count - first < 4 ? r.count - first : 4;
    Part sums[4] = {};
    for (int64_t i = 0; i < left; ++i) {
      const float* from = x + (at < r.size ? at : r.size);
      if constexpr (kInterpolated) {
        const double phase = static_cast<double>(fraction) / static_cast<double>(r.up) * static_cast<double>(r.phases);
        const auto row = static_cast<int64_t>(phase);
        sums[i] = four_sums<true>(from, r.weights + row * r.taps, r.taps,
                                  static_cast<float>(phase - static_cast<double>(row)));
      } else {
        sums[i] = four_sums<false>(from, r.weights + fraction * r.taps, r.taps, 0.0f);
      }
      at += whole;
      fraction += rest;
      if (fraction >= r.up) {
        fraction -= r.up;
        ++at;
      }
    }
    const Part a = __builtin_shufflevector(sums[0], sums[1], 0, 4, 1, 5);
    const Part b = __builtin_shufflevector(sums[2], sums[3], 0, 4, 1, 5);
    const Part c = __builtin_shufflevector(sums[0], sums[1], 2, 6, 3, 7);
    const Part d = __builtin_shufflevector(sums[2], sums[3], 2, 6, 3, 7);
    const Part s0 = __builtin_shufflevector(a, b, 0, 1, 4, 5), s1 = __builtin_shufflevector(a, b, 2, 3, 6, 7);
    const Part s2 = __builtin_shufflevector(c, d, 0, 1, 4, 5), s3 = __builtin_shufflevector(c, d, 2, 3, 6, 7);
    const Part total = (s0 + s2) + (s1 + s3);
    for (int64_t i = 0; i < left; ++i) y[(first + i) * r.stride] = total[i];
  }
}

void resample(const float* x, const Resampling& r, float* y) {
  if (r.interpolated) resample_as<true>(x, r, y);
  else resample_as<false>(x, r, y);
}
