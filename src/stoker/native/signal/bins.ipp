// SPDX-License-Identifier: Apache-2.0
// Sums over bins, decibels and differences. The including file provides base/vectors.ipp and signal/frames.ipp.

// Columns of the data: `kWide` vectors of neighbouring positions per bin.
template <int kWide>
struct Columns {
  const float* data;
  int64_t bin;  // floats from one bin to the next

  [[gnu::always_inline]] V<float> at(int64_t b, int v) const {
    return load_vector<float>(data + b * bin + v * int64_t{kFrames});
  }
};

// Return whether `rows` rows from r on have weights for the same bins, as all rows of a cosine transform have.
[[gnu::always_inline]] inline bool are_alike(const int32_t* bands, int64_t r, int rows) {
  bool alike = true;
  for (int k = 1; k < rows; ++k)
    alike &= bands[2 * (r + k)] == bands[2 * r] && bands[2 * (r + k) + 1] == bands[2 * r + 1];
  return alike;
}

// Sums of kRows rows over the same bins, for kWide vectors from `v` on. Each sum is a chain of additions that wait for
// each other, so several chains run at a time.
template <int kRows, int kWide, int kAll, class Store>
[[gnu::always_inline]] inline void sums_of_rows(const Columns<kAll>& x, int v, const Weights& w, const int32_t* bands,
                                                int64_t r, Store store) {
  const float* weights = w.weights + r * w.bins;
  const int64_t begin = bands[2 * r], end = bands[2 * r + 1];
  V<float> sums[kRows][kWide] = {};
  for (int64_t b = begin; b < end; ++b) {
    for (int i = 0; i < kWide; ++i) {
      const V<float> value = x.at(b, v + i);
      for (int k = 0; k < kRows; ++k) sums[k][i] += value * weights[k * w.bins + b];
    }
  }
  for (int k = 0; k < kRows; ++k)
    for (int i = 0; i < kWide; ++i) store(r + k, v + i, sums[k][i]);
}

// Call store(row, vector, sums) for all sums of kWide vectors.
template <int kWide, class Store>
[[gnu::always_inline]] inline void sums_of(const Columns<kWide>& x, const Weights& w, const int32_t* bands,
                                           Store store) {
  constexpr int kRows = 4, kRegisters = STOKER_VECTOR_BYTES == 64 ? 16 : 8;  // of the sums
  constexpr int kPart = kWide * kRows <= kRegisters ? kWide : kRegisters / kRows;
  for (int64_t r = 0; r < w.rows;) {
    if (r + kRows <= w.rows && are_alike(bands, r, kRows)) {
      for (int v = 0; v < kWide; v += kPart) sums_of_rows<kRows, kPart>(x, v, w, bands, r, store);
      r += kRows;
    } else {
      sums_of_rows<1, kWide>(x, 0, w, bands, r, store);
      ++r;
    }
  }
}

// Sums of one group: x[bin] -> y[row].
[[gnu::always_inline]] inline void sums_of_group(const V<float>* x, const Weights& w, const int32_t* bands,
                                                 V<float>* y) {
  const Columns<1> columns{reinterpret_cast<const float*>(x), kFrames};
  sums_of(columns, w, bands, [y](int64_t row, int, V<float> sum) __attribute__((always_inline)) { y[row] = sum; });
}

void group_project(const float* in, const Weights& weights, const int32_t* bands, float* out) {
  sums_of_group(reinterpret_cast<const V<float>*>(in), weights, bands, reinterpret_cast<V<float>*>(out));
}

void store_frames(const float* in, int64_t bins, int64_t first, int64_t count, const Bins& out) {
  store_group(reinterpret_cast<const V<float>*>(in), bins, first, static_cast<int>(count), out);
}

// Sums of kWide * kFrames frames, which are neighbours in the data and in the result.
template <int kWide>
void project_columns(const float* in, int64_t bin, const Weights& weights, const int32_t* bands, float* out,
                     int64_t row) {
  sums_of(Columns<kWide>{in, bin}, weights, bands, [=](int64_t r, int v, V<float> sum) __attribute__((always_inline)) {
    store_vector<float>(out + r * row + v * int64_t{kFrames}, sum);
  });
}

// Copy kWide vectors of each bin to contiguous memory, and prefetch those of the next tile.
template <int kWide>
void pack(const float* in, int64_t bin, int64_t bins, float* packed) {
  constexpr int kLine = 64 / sizeof(float);
  for (int64_t b = 0; b < bins; ++b) {
    const float* from = in + b * bin;
    for (int i = 0; i < kWide * kFrames; i += kLine) __builtin_prefetch(from + kWide * kFrames + i);
    for (int v = 0; v < kWide; ++v)
      store_vector<float>(packed + (b * kWide + v) * kFrames, load_vector<float>(from + v * kFrames));
  }
}

// The layout in which the frames of a bin are neighbours: kTile vectors at a time, so that a bin's part of a tile is a
// few whole cache lines. The last vector overlaps the one before. Bins are too far apart for the processor to prefetch
// them, and have pages of their own, so a tile is packed if rows read each bin many times.
void project_wide(const float* in, int64_t bin, int64_t frames, const Weights& weights, const int32_t* bands,
                  float* out, int64_t row, float* packed) {
  int64_t reads = 0;
  for (int64_t r = 0; r < weights.rows; ++r) reads += bands[2 * r + 1] - bands[2 * r];
  const bool packs = weights.bins <= kPackedBins && reads > 4 * weights.bins;
  int64_t at = 0;
  const auto tiles = [&]<int kWide>(std::integral_constant<int, kWide>) {
    for (; at + kWide * kFrames <= frames; at += kWide * kFrames) {
      const bool is_packed = kWide == kTile && packs;
      if (is_packed) pack<kWide>(in + at, bin, weights.bins, packed);
      project_columns<kWide>(is_packed ? packed : in + at, is_packed ? kWide * kFrames : bin, weights, bands, out + at,
                             row);
    }
  };
  tiles(std::integral_constant<int, kTile>{});
  tiles(std::integral_constant<int, 2>{});
  tiles(std::integral_constant<int, 1>{});
  if (at == frames) return;
  at = frames - kFrames;
  project_columns<1>(in + at, bin, weights, bands, out + at, row);
}

void project(const float* in, int64_t frame, int64_t bin, int64_t frames, const Weights& weights, const int32_t* bands,
             const Bins& out, uint8_t* memory) {
  if (frame == 1 && out.frame == 1 && frames >= kFrames)
    return project_wide(in, bin, frames, weights, bands, out.data, out.bin, reinterpret_cast<float*>(memory));
  auto* x = reinterpret_cast<V<float>*>(memory);
  V<float>* y = x + weights.bins;
  for (int64_t first = 0; first < frames; first += kFrames) {
    const int64_t left = frames - first;
    const int count = left < kFrames ? static_cast<int>(left) : kFrames;
    const float* p = in + first * frame;
    if (bin == 1 && count == kFrames) {
      transposed(
          Rows{p, frame}, weights.bins,
          [x](int64_t b, V<float>(&v)[4]) __attribute__((always_inline)) {
            for (int j = 0; j < 4; ++j) x[b + j] = v[j];
          },
          [x](int64_t b, V<float> v) __attribute__((always_inline)) { x[b] = v; });
    } else {
      for (int64_t b = 0; b < weights.bins; ++b)
        for (int l = 0; l < kFrames; ++l) x[b][l] = p[(l < count ? l : count - 1) * frame + b * bin];
    }
    sums_of_group(x, weights, bands, y);
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

// With kNormal, `floor` is a positive normal number.
template <bool kNormal>
[[gnu::always_inline]] inline void decibels_from(const float* x, int64_t count, float scale, float floor, float factor,
                                                 float* y) {
  const V<float> least = V<float>{} + floor;
  const auto of = [&](V<float> v) __attribute__((always_inline)) {
    v = v * scale;
    v = v < least ? least : v;
    return (kNormal ? xm::log2f_normal<FloatLanes>(v) : xm::log2f<FloatLanes>(v)) * factor;
  };
  int64_t i = 0;
  for (; i + kFrames <= count; i += kFrames) store_vector<float>(y + i, of(load_vector<float>(x + i)));
  if (i == count) return;
  alignas(STOKER_VECTOR_BYTES) float rest[kFrames] = {};
  std::memcpy(rest, x + i, static_cast<size_t>(count - i) * sizeof(float));
  store_first(y + i, of(*reinterpret_cast<const V<float>*>(rest)), static_cast<int>(count - i));
}

void decibels(const float* x, int64_t count, float scale, float floor, float factor, float* y) {
  if (floor >= 0x1p-126f) decibels_from<true>(x, count, scale, floor, factor, y);
  else decibels_from<false>(x, count, scale, floor, factor, y);
}

void differences(const float* x, int64_t count, float coefficient, float* y) {
  int64_t i = 0;
  for (; i + kFrames <= count; i += kFrames)
    store_vector<float>(y + i, load_vector<float>(x + i) - load_vector<float>(x + i - 1) * coefficient);
  for (; i < count; ++i) y[i] = x[i] - x[i - 1] * coefficient;
}
