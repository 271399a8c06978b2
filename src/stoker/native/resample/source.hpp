// SPDX-License-Identifier: Apache-2.0
// Source image of a resampling, with any strides, from which rows and columns are gathered.
#pragma once
#include <cstdint>
#include <cstring>

#include "base/tensor.hpp"

namespace stoker::resample {

// Gather pixels of three bytes, eight at a time, which are three words. Reading four bytes per pixel leaves the row only at
// its last pixel. Starts are monotone, so this pixel occurs at an end of the outputs.
inline void gather_rgb(const uint8_t* row, int64_t width, const int32_t* start, int64_t n, uint8_t* dst) {
  const auto each = [&](int64_t x0, int64_t x1) {
    for (int64_t x = x0; x < x1; ++x) std::memcpy(dst + 3 * x, row + 3 * int64_t{start[x]}, 3);
  };
  int64_t x = 0, last = n;
  while (x < n && start[x] + 1 >= width) ++x;
  while (last > x && start[last - 1] + 1 >= width) --last;
  each(0, x);
  for (; x + 8 <= last; x += 8) {
    uint64_t p[8];
    for (int k = 0; k < 8; ++k) {
      uint32_t four;
      std::memcpy(&four, row + 3 * int64_t{start[x + k]}, sizeof four);
      p[k] = four & 0xFFFFFF;
    }
    // Stores of their own: an array of the words would be written twice, and read before its stores are done.
    const uint64_t first = p[0] | p[1] << 24 | p[2] << 48;
    const uint64_t second = p[2] >> 16 | p[3] << 8 | p[4] << 32 | p[5] << 56;
    const uint64_t third = p[5] >> 8 | p[6] << 16 | p[7] << 40;
    std::memcpy(dst + 3 * x, &first, sizeof first);
    std::memcpy(dst + 3 * x + 8, &second, sizeof second);
    std::memcpy(dst + 3 * x + 16, &third, sizeof third);
  }
  each(x, n);
}

template <int kBytes>
inline void gather_fixed(const uint8_t* row, int64_t stride, const int32_t* start, int64_t n, uint8_t* dst) {
  for (int64_t x = 0; x < n; ++x) std::memcpy(dst + x * kBytes, row + start[x] * stride, kBytes);
}

// Copy pixel start[x] of a row to dst[x]; channels are contiguous.
inline void gather_pixels(const uint8_t* row, int64_t stride, int64_t bytes, const int32_t* start, int64_t n,
                          uint8_t* dst) {
  switch (bytes) {
    case 1: return gather_fixed<1>(row, stride, start, n, dst);
    case 2: return gather_fixed<2>(row, stride, start, n, dst);
    case 3: return gather_fixed<3>(row, stride, start, n, dst);
    case 4: return gather_fixed<4>(row, stride, start, n, dst);
    case 12: return gather_fixed<12>(row, stride, start, n, dst);
    case 16: return gather_fixed<16>(row, stride, start, n, dst);
    default:
      for (int64_t x = 0; x < n; ++x) std::memcpy(dst + x * bytes, row + start[x] * stride, bytes);
  }
}

// The source image, row by row.
class Source {
 public:
  explicit Source(const View& v) : view_(v), size_(size_of(v.dtype)), bytes_(v.shape[2] * size_) {
    channels_packed_ = view_.shape[2] == 1 || view_.stride[2] == size_;
    const bool aligned = reinterpret_cast<uintptr_t>(view_.data) % size_ == 0 && view_.stride[0] % size_ == 0;
    packed_ = channels_packed_ && aligned && (view_.shape[1] == 1 || view_.stride[1] == bytes_);
  }
  bool packed() const { return packed_; }
  int64_t pixel_bytes() const { return bytes_; }
  int64_t width() const { return view_.shape[1]; }
  int64_t row_stride() const { return view_.stride[0]; }
  const uint8_t* row(int64_t y) const { return view_.data + y * view_.stride[0]; }

  // Ask for the cache lines of `bytes` bytes of a row of packed pixels.
  void prefetch(int64_t y, int64_t from, int64_t bytes) const {
    const uint8_t* p = row(y) + from;
    for (int64_t i = 0; i < bytes; i += 64) __builtin_prefetch(p + i);
  }

  // Copy pixels start[0..n) of row y next to each other.
  void gather(int64_t y, const int32_t* start, int64_t n, uint8_t* dst) const {
    if (packed_ && bytes_ == 3) return gather_rgb(row(y), view_.shape[1], start, n, dst);
    if (channels_packed_) return gather_pixels(row(y), view_.stride[1], bytes_, start, n, dst);
    for (int64_t x = 0; x < n; ++x)
      for (int64_t c = 0; c < view_.shape[2]; ++c, dst += size_)
        std::memcpy(dst, row(y) + start[x] * view_.stride[1] + c * view_.stride[2], size_);
  }

 private:
  const View& view_;
  int64_t size_, bytes_;
  bool channels_packed_, packed_;
};

}  // namespace stoker::resample
