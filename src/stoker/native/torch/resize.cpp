// SPDX-License-Identifier: Apache-2.0
#include "torch/resize.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/simd.hpp"
#include "torch/resize_sums.hpp"
#include "torch/resize_taps.hpp"

namespace stoker::torch_resize {

namespace {

constexpr int64_t kSlack = 64;  // bytes past the end of a row that may be read

int32_t low(int32_t pair) { return static_cast<int16_t>(pair & 0xffff); }
int32_t high(int32_t pair) { return pair >> 16; }
uint8_t byte(int32_t sum, int precision) { return static_cast<uint8_t>(std::clamp(sum >> precision, 0, 255)); }

// Filter one row of `channels` bytes per pixel horizontally; kSlack bytes may be read past its end.
void across_plain(const Taps& taps, const uint8_t* row, int64_t channels, int64_t out, uint8_t* to) {
  for (int64_t x = 0; x < out; ++x) {
    const uint8_t* from = row + taps.start[static_cast<size_t>(x)] * channels;
    const int32_t* pair = taps.pairs.data() + x * taps.most;
    for (int64_t c = 0; c < channels; ++c) {
      int32_t sum = taps.half();
      for (int64_t k = 0; k < taps.most; ++k) {
        const uint8_t* p = from + 2 * k * channels + c;
        sum += p[0] * low(pair[k]);
        if (high(pair[k])) sum += p[channels] * high(pair[k]);
      }
      *to++ = byte(sum, taps.precision);
    }
  }
}

// Compute one output row from source rows `pitch` bytes apart; `last` is the last row in memory.
void down_plain(const Taps& taps, int64_t y, const uint8_t* rows, int64_t pitch, int64_t last, int64_t n, uint8_t* to) {
  const int32_t* pair = taps.pairs.data() + y * taps.most;
  const int64_t first = taps.start[static_cast<size_t>(y)];
  for (int64_t i = 0; i < n; ++i) {
    int32_t sum = taps.half();
    for (int64_t k = 0; k < taps.most; ++k) {
      const int64_t a = std::min(first + 2 * k, last), b = std::min(a + 1, last);
      sum += rows[a * pitch + i] * low(pair[k]) + rows[b * pitch + i] * high(pair[k]);
    }
    to[i] = byte(sum, taps.precision);
  }
}

#if STOKER_RESIZE_SUMS

// Three channels, two pixels at a time. Up to `kMost` pairs, or any number (0).
template <int kMost>
STOKER_WIDE void across3(const Taps& taps, const uint8_t* row, int64_t out, uint8_t* to) {
  const int64_t most = kMost ? kMost : taps.most;
  const int32_t half = taps.half();
  const int precision = taps.precision;
  for (int64_t x = 0; x < out; ++x, to += 3) {
    const uint8_t* from = row + taps.start[static_cast<size_t>(x)] * 3;
    const int32_t* pair = taps.pairs.data() + x * most;
    PixelSum sum(half);
    for (int64_t k = 0; k < most; ++k, from += 6) sum.add(from, pair[k]);
    sum.store(precision, to);
  }
}

void across3_any(const Taps& taps, const uint8_t* row, int64_t out, uint8_t* to) {
  switch (taps.most) {
    case 1: return across3<1>(taps, row, out, to);
    case 2: return across3<2>(taps, row, out, to);
    case 3: return across3<3>(taps, row, out, to);
    case 4: return across3<4>(taps, row, out, to);
    default: return across3<0>(taps, row, out, to);
  }
}

STOKER_WIDE void down_wide(const Taps& taps, int64_t y, const uint8_t* rows, int64_t pitch, int64_t last, int64_t n,
                           uint8_t* to) {
  const int32_t* pair = taps.pairs.data() + y * taps.most;
  const int64_t first = taps.start[static_cast<size_t>(y)], most = taps.most;
  const int32_t half = taps.half();
  const int precision = taps.precision;
  for (int64_t i = 0; i < n; i += kColumns) {  // rows are followed by padding
    ColumnSums sums(half);
    for (int64_t k = 0; k < most; ++k) {
      const int64_t a = std::min(first + 2 * k, last), b = std::min(a + 1, last);
      sums.add(rows + a * pitch + i, rows + b * pitch + i, pair[k]);
    }
    if (n - i >= kColumns) {
      sums.store(precision, to + i);
    } else {
      uint8_t rest[kColumns];
      sums.store(precision, rest);
      std::memcpy(to + i, rest, static_cast<size_t>(n - i));
    }
  }
}

#endif

void across(const Taps& taps, const uint8_t* row, int64_t channels, int64_t out, uint8_t* to) {
#if STOKER_RESIZE_SUMS
  if (channels == 3 && has_wide()) return across3_any(taps, row, out, to);
#endif
  across_plain(taps, row, channels, out, to);
}

void down(const Taps& taps, int64_t y, const uint8_t* rows, int64_t pitch, int64_t last, int64_t n, uint8_t* to) {
#if STOKER_RESIZE_SUMS
  if (has_wide()) return down_wide(taps, y, rows, pitch, last, n, to);
#endif
  down_plain(taps, y, rows, pitch, last, n, to);
}

void copy_row(const View& src, int64_t y, uint8_t* to) {
  const uint8_t* row = src.data + y * src.stride[0];
  if (src.stride[2] == 1 && src.stride[1] == src.shape[2]) {
    std::memcpy(to, row, static_cast<size_t>(src.shape[1] * src.shape[2]));
    return;
  }
  for (int64_t x = 0; x < src.shape[1]; ++x)
    for (int64_t c = 0; c < src.shape[2]; ++c) *to++ = row[x * src.stride[1] + c * src.stride[2]];
}

bool fits(const View& src, const View& dst) {
  if (src.rank != 3 || dst.rank != 3 || src.dtype != dst.dtype || src.shape[2] != dst.shape[2]) return false;
  return src.elements() > 0 && dst.elements() > 0;
}

}  // namespace

bool resize(const View& src, Filter filter, bool smooth, const View& dst, Scratch& scratch) {
  if (!fits(src, dst) || src.dtype != DType::U8 || dst.stride[2] != 1 || dst.stride[1] != dst.shape[2]) return false;
  const int64_t channels = src.shape[2], rows = src.shape[0], values = dst.shape[1] * channels;
  const int64_t pitch = values + kSlack, room = (src.shape[1] + 1) * channels + kSlack;
  uint8_t* line = scratch.get(static_cast<size_t>(room + rows * pitch));
  uint8_t* middle = line + room;
  std::memset(line, 0, static_cast<size_t>(room));
  const bool wide = src.shape[1] != dst.shape[1], tall = rows != dst.shape[0];
  const Taps horizontal(filter, smooth, wide ? src.shape[1] : 1, wide ? dst.shape[1] : 1);
  for (int64_t y = 0; y < rows; ++y) {
    uint8_t* to = middle + y * pitch;
    copy_row(src, y, wide ? line : to);
    if (wide) across(horizontal, line, channels, dst.shape[1], to);
  }
  const Taps vertical(filter, smooth, tall ? rows : 1, tall ? dst.shape[0] : 1);
  for (int64_t y = 0; y < dst.shape[0]; ++y) {
    uint8_t* to = dst.data + y * dst.stride[0];
    if (tall) down(vertical, y, middle, pitch, rows - 1, values, to);
    else std::memcpy(to, middle + y * pitch, static_cast<size_t>(values));
  }
  return true;
}

bool pick(const View& src, bool exact, const View& dst, Scratch& scratch) {
  if (!fits(src, dst)) return false;
  const auto index = [exact](int64_t i, int64_t in, int64_t out) {
    const float scale = static_cast<float>(in) / static_cast<float>(out);
    if (exact)
      return std::min<int64_t>(static_cast<int64_t>(std::floor((static_cast<float>(i) + 0.5f) * scale)), in - 1);
    if (in == out) return i;
    if (out == 2 * in) return i >> 1;
    return std::min<int64_t>(static_cast<int64_t>(std::floor(static_cast<float>(i) * scale)), in - 1);
  };
  auto* columns = reinterpret_cast<int64_t*>(scratch.get(static_cast<size_t>(dst.shape[1]) * sizeof(int64_t)));
  for (int64_t x = 0; x < dst.shape[1]; ++x) columns[x] = index(x, src.shape[1], dst.shape[1]) * src.stride[1];
  const auto size = static_cast<size_t>(size_of(src.dtype));
  const bool together =
      size == 1 && src.shape[2] == 3 && src.stride[2] == 1 && dst.stride[2] == 1 && dst.stride[1] == 3;
  for (int64_t y = 0; y < dst.shape[0]; ++y) {
    const uint8_t* row = src.data + index(y, src.shape[0], dst.shape[0]) * src.stride[0];
    uint8_t* to = dst.data + y * dst.stride[0];
    if (together) {
      for (int64_t x = 0; x < dst.shape[1]; ++x) std::memcpy(to + 3 * x, row + columns[x], 3);
      continue;
    }
    for (int64_t x = 0; x < dst.shape[1]; ++x)
      for (int64_t c = 0; c < dst.shape[2]; ++c)
        std::memcpy(to + x * dst.stride[1] + c * dst.stride[2], row + columns[x] + c * src.stride[2], size);
  }
  return true;
}

}  // namespace stoker::torch_resize
