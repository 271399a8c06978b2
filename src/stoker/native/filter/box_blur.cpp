// SPDX-License-Identifier: Apache-2.0
#include "filter/box_blur.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/simd.hpp"

namespace stoker::box_blur {

namespace {

constexpr int kDirect = 3;      // up to this radius every window is summed separately, many at a time
constexpr int64_t kLane = 512;  // values at a time, whose sums stay in the L1 cache

// Compute the means of `n` windows. Window i reads position i of all 2 * kRadius + 3 lines, including the partial first
// and last line.
template <int kRadius>
[[gnu::always_inline]] inline void means_of(const uint8_t* const* lines, int64_t n, const Box& box,
                                            uint8_t* __restrict to) {
  alignas(64) uint16_t inside[kLane], ends[kLane];
  const uint8_t *first = lines[0], *last = lines[2 * kRadius + 2];
  for (int64_t at = 0; at < n; at += kLane) {
    const int64_t count = std::min(kLane, n - at);
    for (int64_t i = 0; i < count; ++i) {
      uint16_t sum = lines[1][at + i];
      for (int k = 2; k <= 2 * kRadius + 1; ++k) sum = static_cast<uint16_t>(sum + lines[k][at + i]);
      inside[i] = sum;
      ends[i] = static_cast<uint16_t>(first[at + i] + last[at + i]);
    }
    for (int64_t i = 0; i < count; ++i) to[at + i] = box.mean(inside[i], ends[i]);
  }
}

[[gnu::always_inline]] inline void means_plain(const uint8_t* const* lines, int64_t n, const Box& box, uint8_t* to) {
  switch (box.radius) {
    case 0: return means_of<0>(lines, n, box, to);
    case 1: return means_of<1>(lines, n, box, to);
    case 2: return means_of<2>(lines, n, box, to);
    default: return means_of<kDirect>(lines, n, box, to);
  }
}

// Move the sums of windows on by one line.
[[gnu::always_inline]] inline void moved_plain(const uint8_t* out, const uint8_t* in, const uint8_t* first,
                                               const uint8_t* last, int64_t n, const Box& box,
                                               uint32_t* __restrict sums, uint8_t* __restrict to) {
  for (int64_t i = 0; i < n; ++i) {
    sums[i] += uint32_t{in[i]} - uint32_t{out[i]};
    to[i] = box.mean(sums[i], uint32_t{first[i]} + last[i]);
  }
}

STOKER_WIDE void means_wide(const uint8_t* const* lines, int64_t n, const Box& box, uint8_t* to) {
  means_plain(lines, n, box, to);
}

STOKER_WIDE void moved_wide(const uint8_t* out, const uint8_t* in, const uint8_t* first, const uint8_t* last, int64_t n,
                            const Box& box, uint32_t* sums, uint8_t* to) {
  moved_plain(out, in, first, last, n, box, sums, to);
}

void means(const uint8_t* const* lines, int64_t n, const Box& box, uint8_t* to) {
  has_wide() ? means_wide(lines, n, box, to) : means_plain(lines, n, box, to);
}

void moved(const uint8_t* out, const uint8_t* in, const uint8_t* first, const uint8_t* last, int64_t n, const Box& box,
           uint32_t* sums, uint8_t* to) {
  has_wide() ? moved_wide(out, in, first, last, n, box, sums, to) : moved_plain(out, in, first, last, n, box, sums, to);
}

// ---- rows ----

// Row with its outermost pixels repeated on both sides.
struct Padded {
  uint8_t* row;               // the first pixel
  int64_t count, step, room;  // bytes of the row, of a pixel, and of the repeated pixels on each side

  void repeat() const {
    for (int64_t i = 0; i < room; ++i) {
      row[i - room] = row[i % step];
      row[count + i] = row[count - step + i % step];
    }
  }
};

void row_directly(const Padded& from, const Box& box, uint8_t* to) {
  const uint8_t* lines[2 * kDirect + 3];
  for (int k = 0; k < 2 * box.radius + 3; ++k) lines[k] = from.row + (k - box.radius - 1) * from.step;
  means(lines, from.count, box, to);
}

// Blur with a sum that slides along the row.
void row_by_sums(const uint8_t* row, int64_t width, int64_t step, const Box& box, uint8_t* to) {
  const int64_t radius = box.radius, last = width - 1;
  for (int64_t c = 0; c < step; ++c) {
    const auto pixel = [&](int64_t x) { return uint32_t{row[std::clamp<int64_t>(x, 0, last) * step + c]}; };
    uint32_t sum = 0;
    for (int64_t x = -radius - 1; x < radius; ++x) sum += pixel(x);
    for (int64_t x = 0; x < width; ++x) {
      sum += pixel(x + radius) - pixel(x - radius - 1);
      to[x * step + c] = box.mean(sum, pixel(x - radius - 1) + pixel(x + radius + 1));
    }
  }
}

void rows(const View& src, const Box& box, int passes, const View& dst, Scratch& scratch) {
  const int64_t step = src.shape[2], count = src.shape[1] * step;
  const bool direct = box.radius <= kDirect;
  const int64_t room = direct ? (box.radius + 1) * step : 0, size = count + 2 * room;
  uint8_t* memory = scratch.get(static_cast<size_t>(2 * size));
  const Padded lines[2] = {{memory + room, count, step, room}, {memory + size + room, count, step, room}};
  for (int64_t y = 0; y < src.shape[0]; ++y) {
    std::memcpy(lines[0].row, src.data + y * src.stride[0], static_cast<size_t>(count));
    for (int pass = 0; pass < passes; ++pass) {
      const Padded& from = lines[pass % 2];
      uint8_t* to = pass + 1 == passes ? dst.data + y * dst.stride[0] : lines[1 - pass % 2].row;
      from.repeat();
      direct ? row_directly(from, box, to) : row_by_sums(from.row, src.shape[1], step, box, to);
    }
  }
}

// ---- columns ----

void columns_once(const uint8_t* from, int64_t from_pitch, int64_t height, int64_t count, const Box& box, uint8_t* to,
                  int64_t to_pitch, uint32_t* sums) {
  const int64_t radius = box.radius;
  const auto line = [&](int64_t y) { return from + std::clamp<int64_t>(y, 0, height - 1) * from_pitch; };
  if (radius <= kDirect) {
    const uint8_t* lines[2 * kDirect + 3];
    for (int64_t y = 0; y < height; ++y) {
      for (int64_t k = 0; k < 2 * radius + 3; ++k) lines[k] = line(y + k - radius - 1);
      means(lines, count, box, to + y * to_pitch);
    }
    return;
  }
  std::fill_n(sums, count, 0u);
  for (int64_t y = -radius - 1; y < radius; ++y) {
    const uint8_t* row = line(y);
    for (int64_t i = 0; i < count; ++i) sums[i] += row[i];
  }
  for (int64_t y = 0; y < height; ++y)
    moved(line(y - radius - 1), line(y + radius), line(y - radius - 1), line(y + radius + 1), count, box, sums,
          to + y * to_pitch);
}

void columns(const View& src, const Box& box, int passes, const View& dst, Scratch& scratch) {
  const int64_t height = src.shape[0], count = src.shape[1] * src.shape[2];
  const size_t plane = static_cast<size_t>(height * count);
  const size_t sums_bytes = (static_cast<size_t>(count) * sizeof(uint32_t) + 63) / 64 * 64;
  uint8_t* memory = scratch.get(sums_bytes + 2 * plane);
  auto* sums = reinterpret_cast<uint32_t*>(memory);
  uint8_t* planes[2] = {memory + sums_bytes, memory + sums_bytes + plane};
  const uint8_t* from = src.data;
  int64_t pitch = src.stride[0];
  if (passes == 1 && from == dst.data) {  // the output must not overwrite values that are still to be read
    for (int64_t y = 0; y < height; ++y)
      std::memcpy(planes[1] + y * count, from + y * pitch, static_cast<size_t>(count));
    from = planes[1];
    pitch = count;
  }
  for (int pass = 0; pass < passes; ++pass) {
    const bool last = pass + 1 == passes;
    uint8_t* to = last ? dst.data : planes[pass % 2];
    const int64_t to_pitch = last ? dst.stride[0] : count;
    columns_once(from, pitch, height, count, box, to, to_pitch, sums);
    from = to;
    pitch = to_pitch;
  }
}

void copy(const View& src, const View& dst) {
  for (int64_t y = 0; y < src.shape[0]; ++y)
    std::memcpy(dst.data + y * dst.stride[0], src.data + y * src.stride[0],
                static_cast<size_t>(src.shape[1] * src.shape[2]));
}

bool is_image(const View& v) {
  return v.rank == 3 && v.dtype == DType::U8 && v.stride[2] == 1 && v.stride[1] == v.shape[2] && v.elements() > 0;
}

}  // namespace

float radius_of_bell(float deviation, int passes) {
  // Float and double exactly where Pillow uses them.
  const float variance = deviation * deviation / static_cast<float>(passes);
  const auto length = static_cast<float>(std::sqrt(12.0 * static_cast<double>(variance) + 1.0));
  const auto whole = static_cast<float>(std::floor((static_cast<double>(length) - 1.0) / 2.0));
  float part = (2 * whole + 1) * (whole * (whole + 1) - 3 * variance);
  part /= 6 * (variance - (whole + 1) * (whole + 1));
  return whole + part;
}

bool blur(const View& src, float across, float down, int passes, const View& dst, Scratch& scratch) {
  const auto known = [](float radius) { return radius >= 0 && radius <= kMaxRadius; };
  if (!is_image(src) || !is_image(dst) || passes < 1 || !known(across) || !known(down)) return false;
  for (int i = 0; i < 3; ++i)
    if (src.shape[i] != dst.shape[i]) return false;
  if (across == 0 && down == 0) {
    copy(src, dst);
    return true;
  }
  if (across != 0) rows(src, Box(across), passes, dst, scratch);
  if (down != 0) columns(across != 0 ? dst : src, Box(down), passes, dst, scratch);
  return true;
}

}  // namespace stoker::box_blur
