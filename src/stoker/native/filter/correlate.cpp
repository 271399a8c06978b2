// SPDX-License-Identifier: Apache-2.0
#include "filter/correlate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/elements.hpp"
#include "base/simd.hpp"
#include "shared/warp_point.hpp"

namespace stoker::correlate {

namespace {

constexpr int64_t kTile = 64;  // sums that a loop keeps in registers

// Supported element types: bytes, 16 bits and float32; not Bool or bfloat16.
template <class T>
constexpr bool kFilters =
    std::is_same_v<T, float> || std::is_same_v<T, Half> || (std::is_integral_v<T> && sizeof(T) <= 2);

template <class T>
float load(const uint8_t* p) {
  const T x = load_element<T>(p);
  if constexpr (std::is_same_v<T, Half>) return float_from_half(x.bits);
  else return static_cast<float>(x);
}

template <class T>
void put(uint8_t* p, float v) {
  if constexpr (std::is_same_v<T, Half>) store_element(p, Half{half_from_float(v)});
  else store_element(p, warp::to_type<T>(static_cast<double>(v)));
}

// `rows` are the window's source rows as floats, with their padding.
struct Sum {
  const float* const* rows;
  const Window* window;
  int64_t channels;
  int64_t count;  // values of the output row
  float* out;
};

template <bool kFused, int64_t kWide>
[[gnu::always_inline]] inline void sum_tile(const Sum& s, int64_t x0) {
  float sums[kWide] = {};
  const float* weight = s.window->weights;
  for (int64_t i = 0; i < s.window->height; ++i) {
    const float* from = s.rows[i] + x0;
    for (int64_t j = 0; j < s.window->width; ++j, from += s.channels) {
      const float w = *weight++;
      for (int64_t k = 0; k < kWide; ++k) {
        if constexpr (kFused) sums[k] = __builtin_fmaf(from[k], w, sums[k]);
        else sums[k] += from[k] * w;
      }
    }
  }
  std::copy_n(sums, kWide, s.out + x0);
}

template <bool kFused>
[[gnu::always_inline]] inline void sum_row(const Sum& s) {
  int64_t x = 0;
  for (; x + kTile <= s.count; x += kTile) sum_tile<kFused, kTile>(s, x);
  for (; x + 8 <= s.count; x += 8) sum_tile<kFused, 8>(s, x);
  for (; x < s.count; ++x) sum_tile<kFused, 1>(s, x);
}

template <bool kFused>
void sum_row_plain(const Sum& s) {
  sum_row<kFused>(s);
}

#if defined(__x86_64__)
template <bool kFused>
__attribute__((target("avx2,fma"))) void sum_row_avx2(const Sum& s) {
  sum_row<kFused>(s);
}
template <bool kFused>
__attribute__((target("avx512f,avx512vl,avx512bw,avx512dq,prefer-vector-width=512"))) void sum_row_avx512(
    const Sum& s) {
  sum_row<kFused>(s);
}
bool has_fma() { return __builtin_cpu_supports("fma"); }
#endif

using SumRow = void (*)(const Sum&);

template <bool kFused>
SumRow choose() {
#if defined(__x86_64__)
  if (isa() == Isa::AVX512) return sum_row_avx512<kFused>;
  if (isa() == Isa::AVX2 && has_fma()) return sum_row_avx2<kFused>;
#endif
  return sum_row_plain<kFused>;
}

using Widen = void (*)(const uint8_t* row, const View& src, const int64_t* columns, int64_t width, float fill,
                       float* to);

template <class T>
void widen(const uint8_t* row, const View& src, const int64_t* columns, int64_t width, float fill, float* to) {
  const int64_t channels = src.shape[2];
  for (int64_t x = 0; x < width; ++x)
    for (int64_t c = 0; c < channels; ++c)
      *to++ = columns[x] < 0 ? fill : load<T>(row + columns[x] * src.stride[1] + c * src.stride[2]);
}

Widen widen_of(DType t) {
  return with_type(t, []<class T>(T) -> Widen {
    if constexpr (kFilters<T>) return widen<T>;
    else return nullptr;
  });
}

template <class T>
void narrow(const float* from, const View& dst, int64_t y) {
  for (int64_t x = 0; x < dst.shape[1]; ++x)
    for (int64_t c = 0; c < dst.shape[2]; ++c)
      put<T>(dst.data + y * dst.stride[0] + x * dst.stride[1] + c * dst.stride[2], *from++);
}

using Narrow = void (*)(const float* from, const View& dst, int64_t y);

Narrow narrow_of(DType t) {
  return with_type(t, []<class T>(T) -> Narrow {
    if constexpr (kFilters<T>) return narrow<T>;
    else return nullptr;
  });
}

}  // namespace

bool correlate(const View& src, const Window& window, const View& dst, Scratch& scratch) {
  const Widen to_float = widen_of(src.dtype);
  const Narrow from_float = narrow_of(dst.dtype);
  if (!to_float || !from_float || src.rank != 3 || dst.rank != 3 || src.shape[2] != dst.shape[2]) return false;
  if (window.height < 1 || window.width < 1) return false;
  const bool empty = src.shape[0] < 1 || src.shape[1] < 1;
  if (dst.elements() == 0) return true;
  if (empty && window.border != Border::Constant) return false;
  const int64_t channels = src.shape[2], width = dst.shape[1] + window.width - 1;
  const int64_t values = width * channels, padded = values + kTile;
  const size_t floats = static_cast<size_t>(padded * window.height + dst.shape[1] * channels + kTile);
  const size_t places = static_cast<size_t>(width + 2 * window.height);
  uint8_t* room = scratch.get(floats * sizeof(float) + (places + 16) * sizeof(int64_t));
  auto* columns = reinterpret_cast<int64_t*>(room);
  auto** rows = reinterpret_cast<float**>(columns + width);
  auto* kept = reinterpret_cast<float*>(room + (places + 8) / 8 * 8 * sizeof(int64_t));
  float* sums = kept + padded * window.height;
  for (int64_t x = 0; x < width; ++x)
    columns[x] = empty ? -1 : border_position(x - window.left, src.shape[1], window.border);
  const SumRow sum = window.fused ? choose<true>() : choose<false>();
  for (int64_t next = 0, y = 0; y < dst.shape[0]; ++y) {
    for (; next < y + window.height; ++next) {  // source rows that the previous output row did not use
      float* to = kept + next % window.height * padded;
      const int64_t at = empty ? -1 : border_position(next - window.top, src.shape[0], window.border);
      if (at < 0) std::fill_n(to, values, window.fill);
      else to_float(src.data + at * src.stride[0], src, columns, width, window.fill, to);
    }
    for (int64_t i = 0; i < window.height; ++i) rows[i] = kept + (y + i) % window.height * padded;
    sum({rows, &window, channels, dst.shape[1] * channels, sums});
    from_float(sums, dst, y);
  }
  return true;
}

}  // namespace stoker::correlate
