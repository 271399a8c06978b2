// SPDX-License-Identifier: Apache-2.0
#include "torch/resize_float.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

#include "base/four_floats.hpp"
#include "base/fused_forms.hpp"
#include "pixel/rows.hpp"
#include "torch/resize_float_taps.hpp"

namespace stoker::torch_resize {

namespace {

constexpr int64_t kSlack = 4;  // values past the end of a row that may be written

// ---- horizontal filters of one row ----

// T is the element type of the source, bytes or floats.
template <class T>
using Across = void (*)(const FloatTaps& taps, const T* row, int64_t channels, int64_t out, float* to);

template <class T>
struct SmoothAcross {
  template <bool kHardware>
  [[gnu::always_inline]] static inline void run(const FloatTaps& taps, const T* row, int64_t channels, int64_t out,
                                                float* to) {
    for (int64_t x = 0; x < out; ++x)
      for (int64_t c = 0; c < channels; ++c) {
        const T* from = row + taps.index[static_cast<size_t>(x)] * channels + c;
        *to++ = smooth_sum<kHardware>(taps.weights.data() + x * taps.max_taps, taps.count[static_cast<size_t>(x)],
                                      [&](int64_t j)
                                          STOKER_INLINED_LAMBDA { return static_cast<float>(from[j * channels]); });
      }
  }
};

template <class T>
struct SharpAcross {
  template <bool kHardware>
  [[gnu::always_inline]] static inline void run(const FloatTaps& taps, const T* row, int64_t channels, int64_t out,
                                                float* to) {
    for (int64_t x = 0; x < out; ++x) {
      const int32_t* at = taps.index.data() + x * taps.max_taps;
      for (int64_t c = 0; c < channels; ++c)
        *to++ = sharp_sum<kHardware>(
            taps.weights.data() + x * taps.max_taps, taps.max_taps,
            [&](int64_t j) STOKER_INLINED_LAMBDA { return static_cast<float>(row[at[j] * channels + c]); });
    }
  }
};

// ---- vertical filters: one output row from filtered rows ----

struct Down {
  const FloatTaps* taps;
  int64_t y;
  const float* rows;
  int64_t n;  // values per row
  float* sums;
  uint8_t* to;
};

template <bool kHardware, bool kFused>
[[gnu::always_inline]] inline void add_row(const float* row, float w, int64_t n, float* sums) {
  for (int64_t i = 0; i < n; ++i) sums[i] = kFused ? fused<kHardware>(row[i], w, sums[i]) : sums[i] + row[i] * w;
}

// For floats the sums are the result.
template <class T>
[[gnu::always_inline]] inline void store(const Down& d) {
  if constexpr (std::is_same_v<T, float>) {
    std::memcpy(d.to, d.sums, static_cast<size_t>(d.n) * sizeof(float));
  } else {
    for (int64_t i = 0; i < d.n; ++i) d.to[i] = rounded_byte(d.sums[i]);
  }
}

template <class T>
struct SmoothDown {
  template <bool kHardware>
  [[gnu::always_inline]] static inline void run(const Down& d) {
    const float* w = d.taps->weights.data() + d.y * d.taps->max_taps;
    const float* from = d.rows + d.taps->index[static_cast<size_t>(d.y)] * d.n;
    const int64_t count = d.taps->count[static_cast<size_t>(d.y)], rounded = rounded_taps(count);
    for (int64_t i = 0; i < d.n; ++i) d.sums[i] = from[i] * w[0];
    int64_t j = 1;
    for (; j < rounded; ++j) add_row<kHardware, false>(from + j * d.n, w[j], d.n, d.sums);
    for (; j < count; ++j) add_row<kHardware, true>(from + j * d.n, w[j], d.n, d.sums);
    store<T>(d);
  }
};

template <class T>
struct SharpDown {
  template <bool kHardware>
  [[gnu::always_inline]] static inline void run(const Down& d) {
    const float* w = d.taps->weights.data() + d.y * d.taps->max_taps;
    const int32_t* at = d.taps->index.data() + d.y * d.taps->max_taps;
    for (int64_t i = 0; i < d.n; ++i) d.sums[i] = d.rows[at[1] * d.n + i] * w[1];
    for (int64_t j = 0; j < d.taps->max_taps; ++j)
      if (j != 1) add_row<kHardware, true>(d.rows + at[j] * d.n, w[j], d.n, d.sums);
    store<T>(d);
  }
};

// ---- filters along both axes together ----

template <class T>
struct Corner {
  const FloatTaps *across, *down;
  const T* rows[2];
  int64_t y, channels, out;
  T* to;
};

template <class T>
struct JointRow {
  template <bool kHardware>
  [[gnu::always_inline]] static inline void run(const Corner<T>& r) {
    const float* down = r.down->weights.data() + 2 * r.y;
    T* to = r.to;
    for (int64_t x = 0; x < r.out; ++x) {
      const int32_t* at = r.across->index.data() + 2 * x;
      for (int64_t c = 0; c < r.channels; ++c) {
        const float sum = joint_sum<kHardware>(
            down, r.across->weights.data() + 2 * x,
            [&](int i, int j) STOKER_INLINED_LAMBDA { return static_cast<float>(r.rows[i][at[j] * r.channels + c]); });
        if constexpr (std::is_same_v<T, float>) *to++ = sum;
        else *to++ = rounded_byte(sum);
      }
    }
  }
};

#if defined(STOKER_FMA)

// Three channels in one register. The source rows and the result are followed by padding.
template <class T>
STOKER_FMA void smooth_across3(const FloatTaps& taps, const T* row, int64_t, int64_t out, float* to) {
  for (int64_t x = 0; x < out; ++x, to += 3) {
    const float* w = taps.weights.data() + x * taps.max_taps;
    const int64_t n = taps.count[static_cast<size_t>(x)], rounded = rounded_taps(n);
    const T* from = row + taps.index[static_cast<size_t>(x)] * 3;
    Floats4 sum = load_floats(from) * four_times(w[0]);
    int64_t j = 1;
    for (; j < rounded; ++j) sum = sum + load_floats(from + 3 * j) * four_times(w[j]);
    for (; j < n; ++j) sum = multiply_add(load_floats(from + 3 * j), four_times(w[j]), sum);
    store_floats(to, sum);
  }
}

#endif

template <class T>
struct Forms {
  Across<T> across;
  void (*down)(const Down&);
  void (*joint)(const Corner<T>&);
};

template <class T>
Forms<T> forms_of(bool smooth, [[maybe_unused]] int64_t channels) {
  if (!smooth) return {form_of<SharpAcross<T>>(), form_of<SharpDown<T>>(), form_of<JointRow<T>>()};
  Across<T> across = form_of<SmoothAcross<T>>();
#if defined(STOKER_FMA)
  if (channels == 3 && has_fma()) across = smooth_across3<T>;
#endif
  return {across, form_of<SmoothDown<T>>(), nullptr};
}

// Filter columns, then rows; of the source, only rows with a weight are read.
template <class T>
void resize_apart(const View& src, Filter filter, Way way, const View& dst, Scratch& scratch) {
  const int64_t channels = src.shape[2], rows = src.shape[0], n = dst.shape[1] * channels;
  const FloatTaps across(filter, way, src.shape[1], dst.shape[1]), down(filter, way, rows, dst.shape[0]);
  const Forms<T> forms = forms_of<T>(way == Way::Smooth, channels);
  const int64_t line_bytes = ((src.shape[1] * channels + kSlack) * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
  const auto floats = static_cast<size_t>(rows * n + kSlack + n) * sizeof(float);
  auto* middle = reinterpret_cast<float*>(scratch.get(floats + static_cast<size_t>(line_bytes)));
  float* sums = middle + rows * n + kSlack;
  auto* line = reinterpret_cast<T*>(sums + n);
  std::vector<bool> is_read(static_cast<size_t>(rows), way == Way::Smooth);
  if (way != Way::Smooth)
    for (const int32_t y : down.index) is_read[static_cast<size_t>(y)] = true;
  RowsOf<T> source(src);
  for (int64_t y = 0; y < rows; ++y) {
    if (!is_read[static_cast<size_t>(y)]) continue;
    std::memcpy(line, source.row(y), static_cast<size_t>(source.bytes()));
    // The kernel may write a few values past the end of a row: into the next row, which is written later, or the
    // padding after the last row.
    forms.across(across, line, channels, dst.shape[1], middle + y * n);
  }
  for (int64_t y = 0; y < dst.shape[0]; ++y) forms.down({&down, y, middle, n, sums, dst.data + y * dst.stride[0]});
}

template <class T>
void resize_together(const View& src, const View& dst, Scratch& scratch) {
  const FloatTaps across(Filter::Bilinear, Way::Together, src.shape[1], dst.shape[1]);
  const FloatTaps down(Filter::Bilinear, Way::Together, src.shape[0], dst.shape[0]);
  const Forms<T> forms = forms_of<T>(false, src.shape[2]);
  RowsOf<T> source(src);
  const auto bytes = static_cast<size_t>(source.bytes());
  uint8_t* lines = scratch.get(2 * bytes);
  int32_t held[2] = {-1, -1};  // numbers of the rows that are in `lines`
  for (int64_t y = 0; y < dst.shape[0]; ++y) {
    Corner<T> corner{
        &across, &down, {}, y, src.shape[2], dst.shape[1], reinterpret_cast<T*>(dst.data + y * dst.stride[0])};
    for (int i = 0; i < 2; ++i) {
      const int32_t row = down.index[static_cast<size_t>(2 * y + i)];
      uint8_t* line = lines + static_cast<size_t>(row % 2) * bytes;  // adjacent rows use different lines
      if (held[row % 2] != row) std::memcpy(line, source.row(row), bytes);
      held[row % 2] = row;
      corner.rows[i] = reinterpret_cast<const T*>(line);
    }
    forms.joint(corner);
  }
}

template <class T>
void resize_values(const View& src, Filter filter, Way way, const View& dst, Scratch& scratch) {
  way == Way::Together ? resize_together<T>(src, dst, scratch) : resize_apart<T>(src, filter, way, dst, scratch);
}

}  // namespace

bool resize_in_floats(const View& src, Filter filter, Way way, const View& dst, Scratch& scratch) {
  if (src.rank != 3 || dst.rank != 3 || src.dtype != dst.dtype) return false;
  if (src.dtype != DType::U8 && src.dtype != DType::F32) return false;
  if (src.elements() == 0 || dst.elements() == 0 || dst.shape[2] != src.shape[2]) return false;
  const int64_t item = size_of(dst.dtype);
  if (dst.stride[2] != item || dst.stride[1] != src.shape[2] * item || filter == Filter::Lanczos) return false;
  if (way == Way::Together && filter != Filter::Bilinear) return false;
  src.dtype == DType::U8 ? resize_values<uint8_t>(src, filter, way, dst, scratch)
                         : resize_values<float>(src, filter, way, dst, scratch);
  return true;
}

}  // namespace stoker::torch_resize
