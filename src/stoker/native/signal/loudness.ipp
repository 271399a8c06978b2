// SPDX-License-Identifier: Apache-2.0
// Powers of a signal after the filters of shared/loudness.hpp, several segments at a time. The including file provides
// base/vectors.ipp.

constexpr int kSegments = 8;  // in the lanes of vectors
constexpr int kSegmentVectors = kSegments / kLanes<double>;

// Filters of a group of segments, each at a sample of its own.
struct SegmentLanes {
  loudness::Weighting<V<double>> filters[kSegmentVectors];
  V<double> sums[kSegmentVectors];
  const float* x;
  int64_t stride, at[kSegments];

  // Take the next `count` samples of all segments. Samples before the signal are zeros.
  template <bool kBefore>
  [[gnu::always_inline]] void advance(const loudness::Meter& meter, int64_t count) {
    const auto sample = [&](int lane, int64_t t) __attribute__((always_inline)) {
      const int64_t i = at[lane] + t;
      return kBefore && i < 0 ? 0.0 : static_cast<double>(x[i * stride]);
    };
    for (int64_t t = 0; t < count; ++t)
      for (int v = 0; v < kSegmentVectors; ++v) {
        V<double> in;
        for (int l = 0; l < kLanes<double>; ++l) in[l] = sample(v * kLanes<double> + l, t);
        const V<double> y = filters[v](meter, in);
        if constexpr (!kBefore) sums[v] += y * y;
      }
    for (int64_t& i : at) i += count;
  }
  // Take more samples of one segment.
  void advance_one(const loudness::Meter& meter, int segment, int64_t count) {
    const int v = segment / kLanes<double>, l = segment % kLanes<double>;
    loudness::Weighting<double> filter;
    for (int i = 0; i < 4; ++i) filter.s[i] = filters[v].s[i][l];
    double sum = sums[v][l];
    for (; count > 0; --count, ++at[segment]) {
      const double y = filter(meter, static_cast<double>(x[at[segment] * stride]));
      sum += y * y;
    }
    for (int i = 0; i < 4; ++i) filters[v].s[i][l] = filter.s[i];
    sums[v][l] = sum;
  }
};

void hop_powers(const float* x, int64_t stride, const loudness::Meter& meter, double* sums) {
  for (int64_t first = 0; first < meter.segments; first += kSegments) {
    SegmentLanes lanes = {};
    lanes.x = x;
    lanes.stride = stride;
    int64_t hop[kSegments];  // the last segment is repeated in lanes that have none
    for (int s = 0; s < kSegments; ++s) {
      hop[s] = loudness::kHops * (first + s < meter.segments ? first + s : meter.segments - 1);
      lanes.at[s] = meter.edge(hop[s]) - meter.warm_up;
    }
    lanes.advance<true>(meter, meter.warm_up);
    for (int64_t h = 0; h < loudness::kHops; ++h) {
      int64_t samples[kSegments], least = 0;
      for (int s = 0; s < kSegments; ++s) {
        samples[s] = meter.edge(hop[s] + h + 1) - meter.edge(hop[s] + h);
        least = s == 0 || samples[s] < least ? samples[s] : least;
      }
      for (V<double>& sum : lanes.sums) sum = V<double>{};
      lanes.advance<false>(meter, least);
      for (int s = 0; s < kSegments; ++s) {
        lanes.advance_one(meter, s, samples[s] - least);
        if (hop[s] + h < meter.hops) sums[hop[s] + h] = lanes.sums[s / kLanes<double>][s % kLanes<double>];
      }
    }
  }
}
