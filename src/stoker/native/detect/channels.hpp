// SPDX-License-Identifier: Apache-2.0
// Feature maps with neighbouring channels, and vector loops over the channels of a pixel.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/simd.hpp"
#include "base/tensor.hpp"

namespace stoker::detect {

// One map: address and strides in elements of a pixel's channels.
template <class T>
struct Map {
  const T* data;
  int64_t row, column;
  const T* at(int64_t y, int64_t x) const { return data + y * row + x * column; }
};

// to[c * to_row + r] = from[r * from_row + c]. Blocks of four by four are moved in registers.
template <class T>
void transpose_matrix(const T* from, int64_t from_row, T* to, int64_t to_row, int64_t rows, int64_t columns) {
  typedef T Four __attribute__((vector_size(4 * sizeof(T))));
  constexpr int64_t kTile = 32;  // columns: lines of both sides stay in the cache
  const auto store = [](T* p, const Four& v) { std::memcpy(p, &v, sizeof v); };
  const int64_t whole_rows = rows / 4 * 4, whole_columns = columns / 4 * 4;
  for (int64_t c0 = 0; c0 < whole_columns; c0 += kTile)
    for (int64_t r = 0; r < whole_rows; r += 4)
      for (int64_t c = c0; c < std::min(c0 + kTile, whole_columns); c += 4) {
        const T* const p = from + r * from_row + c;
        Four v0, v1, v2, v3;
        std::memcpy(&v0, p, sizeof v0);
        std::memcpy(&v1, p + from_row, sizeof v1);
        std::memcpy(&v2, p + 2 * from_row, sizeof v2);
        std::memcpy(&v3, p + 3 * from_row, sizeof v3);
        const Four low01 = __builtin_shufflevector(v0, v1, 0, 4, 1, 5),
                   low23 = __builtin_shufflevector(v2, v3, 0, 4, 1, 5);
        const Four high01 = __builtin_shufflevector(v0, v1, 2, 6, 3, 7);
        const Four high23 = __builtin_shufflevector(v2, v3, 2, 6, 3, 7);
        T* const q = to + c * to_row + r;
        store(q, __builtin_shufflevector(low01, low23, 0, 1, 4, 5));
        store(q + to_row, __builtin_shufflevector(low01, low23, 2, 3, 6, 7));
        store(q + 2 * to_row, __builtin_shufflevector(high01, high23, 0, 1, 4, 5));
        store(q + 3 * to_row, __builtin_shufflevector(high01, high23, 2, 3, 6, 7));
      }
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = r < whole_rows ? whole_columns : 0; c < columns; ++c) to[c * to_row + r] = from[r * from_row + c];
}

// Numbers from one row of a matrix to the next: an odd count of cache lines, since rows at a multiple of 4,096 bytes would
// compete for the same places in the cache.
template <class T>
int64_t padded_row(int64_t columns) {
  constexpr auto kLine = static_cast<int64_t>(64 / sizeof(T));
  return ((columns + kLine - 1) / kLine | 1) * kLine;
}

// Copy n vectors of `channels` numbers between two layouts; strides in elements. Tiles keep both sides in the cache.
template <class T>
void transpose(const T* from, int64_t from_item, int64_t from_channel, T* to, int64_t to_item, int64_t to_channel,
               int64_t items, int64_t channels) {
  if (from_channel == 1 && to_item == 1) return transpose_matrix(from, from_item, to, to_channel, items, channels);
  if (from_item == 1 && to_channel == 1) return transpose_matrix(from, from_channel, to, to_item, channels, items);
  constexpr int64_t kTile = 16;
  for (int64_t c0 = 0; c0 < channels; c0 += kTile) {
    const int64_t c1 = std::min(channels, c0 + kTile);
    for (int64_t i0 = 0; i0 < items; i0 += kTile) {
      const int64_t i1 = std::min(items, i0 + kTile);
      for (int64_t i = i0; i < i1; ++i)
        for (int64_t c = c0; c < c1; ++c) to[i * to_item + c * to_channel] = from[i * from_item + c * from_channel];
    }
  }
}

template <class T>
int64_t steps(const View& v, int axis) {
  return v.stride[axis] / static_cast<int64_t>(sizeof(T));
}

// Return the maps of `features` with neighbouring channels, from `scratch` if the tensor is stored otherwise.
template <class T>
const T* channels_innermost(const View& features, Scratch& scratch, Map<T>& first, int64_t& map_step) {
  const int64_t n = features.shape[0], channels = features.shape[1], h = features.shape[2], w = features.shape[3];
  const auto* const data = reinterpret_cast<const T*>(features.data);
  const int64_t map = steps<T>(features, 0), channel = steps<T>(features, 1);
  const int64_t row = steps<T>(features, 2), column = steps<T>(features, 3);
  if (channel == 1 || channels == 1) {
    first = {data, row, column};
    map_step = map;
    return data;
  }
  auto* const copy = reinterpret_cast<T*>(scratch.get(static_cast<size_t>(n * h * w * channels) * sizeof(T)));
  first = {copy, w * channels, channels};
  map_step = h * w * channels;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t y = 0; y < h; ++y)
      transpose(data + i * map + y * row, column, channel, copy + i * map_step + y * w * channels, channels, int64_t{1},
                w, channels);
  return copy;
}

// Samples of one bin whose four neighbours are the same pixels. Sums over samples stay in registers.
template <class T>
struct Samples {
  static constexpr int kMost = 8;
  int64_t y0 = -1, y1 = -1, x0 = -1, x1 = -1;
  T weight[kMost][4];
  int count = 0;

  bool takes(int64_t a, int64_t b, int64_t c, int64_t d) const {
    return count < kMost && (count == 0 || (a == y0 && b == y1 && c == x0 && d == x1));
  }
};

// Loops over channels, compiled for vectors and plainly.
template <class T>
struct OverChannels {
  typedef T Lanes __attribute__((vector_size(32)));  // in registers of 32 bytes, or two of 16
  static constexpr int64_t kLanes = 32 / sizeof(T);
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

  template <class V>
  [[gnu::always_inline]] static inline V load(const T* p) {
    V v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  template <class V>
  [[gnu::always_inline]] static inline void store(T* p, V v) {
    std::memcpy(p, &v, sizeof v);
  }

  // sum[c] += the weighted sum of the four pixels, sample by sample, for kVectors vectors. V: a vector, or T.
  template <class V, int kVectors>
  [[gnu::always_inline]] static inline void add_at(T* sum, const T* const pixel[4], const Samples<T>& s, int64_t c) {
    constexpr int64_t kStep = sizeof(V) / sizeof(T);
    V total[kVectors], p[4][kVectors];
    for (int v = 0; v < kVectors; ++v) {
      total[v] = load<V>(sum + c + v * kStep);
      for (int i = 0; i < 4; ++i) p[i][v] = load<V>(pixel[i] + c + v * kStep);
    }
    for (int k = 0; k < s.count; ++k) {
      const T* const w = s.weight[k];
      for (int v = 0; v < kVectors; ++v) total[v] += w[0] * p[0][v] + w[1] * p[1][v] + w[2] * p[2][v] + w[3] * p[3][v];
    }
    for (int v = 0; v < kVectors; ++v) store<V>(sum + c + v * kStep, total[v]);
  }
  [[gnu::always_inline]] static inline void add_in(T* sum, const T* const pixel[4], const Samples<T>& s, int64_t n) {
    int64_t c = 0;
    for (; c + 2 * kLanes <= n; c += 2 * kLanes) add_at<Lanes, 2>(sum, pixel, s, c);
    for (; c + kLanes <= n; c += kLanes) add_at<Lanes, 1>(sum, pixel, s, c);
    for (; c < n; ++c) add_at<T, 1>(sum, pixel, s, c);
  }
  [[gnu::always_inline]] static inline void divide_in(const T* __restrict sum, T count, T* __restrict out, int64_t n) {
    for (int64_t c = 0; c < n; ++c) out[c] = sum[c] / count;
  }

  // pixel[i][c] += gradient[c] * weight / count, sample by sample, for kVectors vectors of channels. kScaled: the weights
  // are divided by count already.
  template <class V, int kVectors, bool kScaled>
  [[gnu::always_inline]] static inline void spread_at(T* const pixel[4], const T* gradient, const Samples<T>& s,
                                                      T count, int64_t c) {
    constexpr int64_t kStep = sizeof(V) / sizeof(T);
    V g[kVectors], sum[4][kVectors];
    for (int v = 0; v < kVectors; ++v) {
      g[v] = load<V>(gradient + c + v * kStep);
      for (int i = 0; i < 4; ++i) sum[i][v] = load<V>(pixel[i] + c + v * kStep);
    }
    for (int k = 0; k < s.count; ++k)
      for (int i = 0; i < 4; ++i) {
        const T w = s.weight[k][i];
        for (int v = 0; v < kVectors; ++v) {
          if constexpr (kScaled) sum[i][v] += g[v] * w;
          else sum[i][v] += g[v] * w / count;
        }
      }
    for (int i = 0; i < 4; ++i)
      for (int v = 0; v < kVectors; ++v) store<V>(pixel[i] + c + v * kStep, sum[i][v]);
  }
  template <bool kScaled>
  [[gnu::always_inline]] static inline void spread_all(T* const pixel[4], const T* g, const Samples<T>& s, T count,
                                                       int64_t n) {
    int64_t c = 0;
    for (; c + 2 * kLanes <= n; c += 2 * kLanes) spread_at<Lanes, 2, kScaled>(pixel, g, s, count, c);
    for (; c + kLanes <= n; c += kLanes) spread_at<Lanes, 1, kScaled>(pixel, g, s, count, c);
    for (; c < n; ++c) spread_at<T, 1, kScaled>(pixel, g, s, count, c);
  }
  // `factor`: 1 / count if the bits are the same for a multiplication of the weights by it (ScaledWeights), or 0.
  [[gnu::always_inline]] static inline void spread_in(T* const pixel[4], const T* g, const Samples<T>& s, T count,
                                                      T factor, int64_t n) {
    if (s.y0 == s.y1 || s.x0 == s.x1) {  // some of the pixels are the same: one addition after the other
      for (int k = 0; k < s.count; ++k)
        for (int i = 0; i < 4; ++i)
          for (int64_t c = 0; c < n; ++c) pixel[i][c] += g[c] * s.weight[k][i] / count;
      return;
    }
    if (factor == T{0}) return spread_all<false>(pixel, g, s, count, n);
    Samples<T> scaled = s;
    for (int k = 0; k < s.count; ++k)
      for (int i = 0; i < 4; ++i) scaled.weight[k][i] = s.weight[k][i] * factor;
    spread_all<true>(pixel, g, scaled, count, n);
  }

  // Return the bits of the least magnitude above zero, minus one; the highest number if all are zero.
  [[gnu::always_inline]] static inline Bits least_in(const T* p, int64_t n) {
    constexpr Bits kMagnitude = ~Bits{0} >> 1;
    Bits least = ~Bits{0};
    for (int64_t c = 0; c < n; ++c) {
      Bits bits;
      std::memcpy(&bits, p + c, sizeof bits);
      least = std::min<Bits>(least, (bits & kMagnitude) - 1);
    }
    return least;
  }

  using Add = void (*)(T*, const T* const[4], const Samples<T>&, int64_t);
  using Divide = void (*)(const T*, T, T*, int64_t);
  using Spread = void (*)(T* const[4], const T*, const Samples<T>&, T, T, int64_t);
  static void add_plain(T* sum, const T* const p[4], const Samples<T>& s, int64_t n) { add_in(sum, p, s, n); }
  STOKER_WIDE static void add_wide(T* sum, const T* const p[4], const Samples<T>& s, int64_t n) {
    add_in(sum, p, s, n);
  }
  static void divide_plain(const T* sum, T count, T* out, int64_t n) { divide_in(sum, count, out, n); }
  STOKER_WIDE static void divide_wide(const T* sum, T count, T* out, int64_t n) { divide_in(sum, count, out, n); }
  static void spread_plain(T* const p[4], const T* g, const Samples<T>& s, T count, T factor, int64_t n) {
    spread_in(p, g, s, count, factor, n);
  }
  STOKER_WIDE static void spread_wide(T* const p[4], const T* g, const Samples<T>& s, T count, T factor, int64_t n) {
    spread_in(p, g, s, count, factor, n);
  }

  using Least = Bits (*)(const T*, int64_t);
  static Bits least_plain(const T* p, int64_t n) { return least_in(p, n); }
  STOKER_WIDE static Bits least_wide(const T* p, int64_t n) { return least_in(p, n); }

  Least least = has_wide() ? least_wide : least_plain;
  Add add = has_wide() ? add_wide : add_plain;
  Divide divide = has_wide() ? divide_wide : divide_plain;
  Spread spread = has_wide() ? spread_wide : spread_plain;
};

}  // namespace stoker::detect
