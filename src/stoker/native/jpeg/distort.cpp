// SPDX-License-Identifier: Apache-2.0
#include "jpeg/distort.hpp"

#include <algorithm>
#include <cstring>

#include "base/carver.hpp"
#include "base/simd.hpp"
#include "jpeg/picture.hpp"
#include "shared/jpeg_forward.cuh"

namespace stoker::jpeg {
namespace {

constexpr Quantisers kQuantisers;

struct Divisors {
  int16_t quantiser[64];
  float half[64], inverse[64];
};

Divisors divisors(int table, int quality) {
  Divisors d;
  for (int i = 0; i < 64; ++i) {
    const int32_t q = scaled_quantiser(kQuantisers.base[table][i], quality);
    d.quantiser[i] = static_cast<int16_t>(q);
    d.half[i] = half_divisor(q);
    d.inverse[i] = inverse_divisor(q);
  }
  return d;
}

// ---- colour ----

struct ColorRow {
  const uint8_t* rgb;
  int64_t count;
  uint8_t *y, *cb, *cr;
};

[[gnu::always_inline]] inline void to_ycc(const ColorRow& r) {
  constexpr int32_t kHalf = 1 << 15, kCentre = (128 << 16) + kHalf - 1;
  const uint8_t* __restrict p = r.rgb;
  uint8_t* __restrict luma = r.y, * __restrict blue = r.cb, * __restrict red = r.cr;
  for (int64_t i = 0; i < r.count; ++i) {
    const int32_t a = p[3 * i], b = p[3 * i + 1], c = p[3 * i + 2];
    luma[i] = static_cast<uint8_t>((19595 * a + 38470 * b + 7471 * c + kHalf) >> 16);
    blue[i] = static_cast<uint8_t>((-11059 * a - 21709 * b + 32768 * c + kCentre) >> 16);
    red[i] = static_cast<uint8_t>((32768 * a - 27439 * b - 5329 * c + kCentre) >> 16);
  }
}

struct HalfRow {
  const uint8_t *above, *below;
  int64_t count;
  uint8_t* out;
};

[[gnu::always_inline]] inline void halve(const HalfRow& r) {
  const uint8_t* __restrict a = r.above, * __restrict b = r.below;
  uint8_t* __restrict out = r.out;
  for (int64_t i = 0; i < r.count; ++i) {
    const int sum = a[2 * i] + a[2 * i + 1] + b[2 * i] + b[2 * i + 1];
    out[i] = halved(sum, i);
  }
}

// ---- forward transform ----

using Lanes = int32_t[8][8];  // eight numbers for each of eight lanes

// Transform the eight numbers d[0..7] of each lane in place.
template <bool kRows>
[[gnu::always_inline]] inline void transform_lanes(Lanes& d) {
  for (int k = 0; k < 8; ++k) forward8<kRows>(d[0][k], d[1][k], d[2][k], d[3][k], d[4][k], d[5][k], d[6][k], d[7][k]);
}

struct BlockRow {
  const uint8_t* samples;  // 8 rows
  ptrdiff_t pitch;
  int64_t blocks;
  const Divisors* divisors;
  int16_t* coefficients;
  uint8_t* ends;
};

[[gnu::always_inline]] inline void transform_blocks(const BlockRow& r) {
  for (int64_t n = 0; n < r.blocks; ++n) {
    alignas(64) Lanes d, turned;
    const uint8_t* p = r.samples + 8 * n;
    for (int y = 0; y < 8; ++y, p += r.pitch)
      for (int x = 0; x < 8; ++x) d[x][y] = p[x] - 128;
    transform_lanes<true>(d);
    for (int y = 0; y < 8; ++y)
      for (int x = 0; x < 8; ++x) turned[y][x] = d[x][y];
    transform_lanes<false>(turned);
    int16_t* const out = r.coefficients + 64 * n;
    const int32_t* const in = &turned[0][0];
    int32_t any = 0;
    for (int i = 0; i < 64; ++i) {
      const int32_t whole = quantised(in[i], r.divisors->half[i], r.divisors->inverse[i]);
      out[i] = static_cast<int16_t>(whole);
      any |= i ? whole : 0;
    }
    r.ends[n] = any ? 64 : 1;
  }
}

struct Loops {
  void (*to_ycc)(const ColorRow&);
  void (*halve)(const HalfRow&);
  void (*transform)(const BlockRow&);
};

void to_ycc_plain(const ColorRow& r) { to_ycc(r); }
void halve_plain(const HalfRow& r) { halve(r); }
void transform_plain(const BlockRow& r) { transform_blocks(r); }
#if defined(__x86_64__)
STOKER_WIDE void to_ycc_avx2(const ColorRow& r) { to_ycc(r); }
STOKER_WIDE void halve_avx2(const HalfRow& r) { halve(r); }
STOKER_WIDE void transform_avx2(const BlockRow& r) { transform_blocks(r); }
#endif

Loops loops() {
#if defined(__x86_64__)
  if (has_wide()) return {to_ycc_avx2, halve_avx2, transform_avx2};
#endif
  return {to_ycc_plain, halve_plain, transform_plain};
}

Info info_of(const View& image) {
  Info info;
  info.height = static_cast<int32_t>(image.shape[0]);
  info.width = static_cast<int32_t>(image.shape[1]);
  info.components = 3;
  info.model = Model::YCbCr;
  info.h_max = info.v_max = 2;
  info.component[0].h = info.component[0].v = 2;
  return info;
}

// Samples of one MCU row: luma, chroma at full size, and halved chroma, padded to whole MCUs.
struct Band {
  ptrdiff_t pitch, half_pitch;
  uint8_t* luma;
  uint8_t *full[2], *half[2];

  explicit Band(const Picture& picture) : pitch(kMcuSide * picture.mcu_columns()), half_pitch(pitch / 2) {}
  void carve(Carver& c) {
    luma = c.take<uint8_t>(static_cast<size_t>(kMcuSide * pitch));
    for (int i = 0; i < 2; ++i) {
      full[i] = c.take<uint8_t>(static_cast<size_t>(2 * pitch));
      half[i] = c.take<uint8_t>(static_cast<size_t>(8 * half_pitch));
    }
  }
};

class Distortion {
 public:
  Distortion(const View& src, int quality, uint8_t* dst, ptrdiff_t pitch)
      : src_(src),
        info_(info_of(src)),
        picture_(info_, {{0, 0, info_.width, info_.height}, Format::RGB, 0, dst, pitch, nullptr, nullptr}),
        band_(picture_),
        divisors_{divisors(0, quality), divisors(1, quality)},
        loops_(loops()) {
    for (int i = 0; i < 3; ++i) std::copy_n(divisors_[i > 0].quantiser, 64, picture_.plane[i].quantiser);
  }

  void carve(Carver& c) {
    picture_.carve(c);
    picture_.carve_blocks(c, picture_.mcu_columns());
    band_.carve(c);
    pixels_ = c.take<uint8_t>(static_cast<size_t>(3 * src_.shape[1]));
  }

  void run() {
    const int rows = picture_.needed_mcu_rows();
    for (int row = 0; row < rows; ++row) {
      fill(row);
      for (int i = 0; i < 3; ++i) {
        Plane& p = picture_.plane[i];
        p.held_rows = p.rows.clipped({row * p.v, (row + 1) * p.v});
        p.held_columns = p.columns;
        const uint8_t* samples = i ? band_.half[i - 1] : band_.luma;
        const ptrdiff_t pitch = i ? band_.half_pitch : band_.pitch;
        for (int block = p.held_rows.begin; block < p.held_rows.end; ++block) {
          const size_t at = p.block_index(block);
          loops_.transform({samples + 8 * pitch * (block - row * p.v), pitch, p.held_columns.size(), &divisors_[i > 0],
                            p.coefficients + 64 * at, p.ends + at});
        }
      }
      picture_.transform(row);
      picture_.finish_row(row, row + 1 == rows);
    }
  }

 private:
  // Convert the image's rows of an MCU row. Rows below the image repeat the last one of their component, columns right of it
  // the last one of the image.
  void fill(int mcu_row) {
    const int64_t begin = static_cast<int64_t>(mcu_row) * kMcuSide, height = src_.shape[0], width = src_.shape[1];
    for (int64_t y = 0; y < kMcuSide; y += 2) {
      if (begin + y >= height) {
        for (int64_t k = y; k < y + 2; ++k) repeat(band_.luma, band_.pitch, k);
        for (int i = 0; i < 2; ++i) repeat(band_.half[i], band_.half_pitch, y / 2);
        continue;
      }
      for (int64_t k = 0; k < 2; ++k) {
        uint8_t* const luma = band_.luma + (y + k) * band_.pitch;
        uint8_t* const chroma[2] = {band_.full[0] + k * band_.pitch, band_.full[1] + k * band_.pitch};
        if (begin + y + k >= height) {
          repeat(band_.luma, band_.pitch, y + k);
          for (int i = 0; i < 2; ++i) repeat(band_.full[i], band_.pitch, k);
          continue;
        }
        loops_.to_ycc({row_of(begin + y + k), width, luma, chroma[0], chroma[1]});
        for (uint8_t* const row : {luma, chroma[0], chroma[1]})
          std::memset(row + width, row[width - 1], static_cast<size_t>(band_.pitch - width));
      }
      for (int i = 0; i < 2; ++i)
        loops_.halve(
            {band_.full[i], band_.full[i] + band_.pitch, band_.half_pitch, band_.half[i] + y / 2 * band_.half_pitch});
    }
  }
  static void repeat(uint8_t* rows, ptrdiff_t pitch, int64_t y) {
    std::memcpy(rows + y * pitch, rows + (y - 1) * pitch, static_cast<size_t>(pitch));
  }
  // Contiguous pixels of a row.
  const uint8_t* row_of(int64_t y) {
    const uint8_t* from = src_.data + y * src_.stride[0];
    if (src_.stride[2] == 1 && src_.stride[1] == 3) return from;
    for (int64_t x = 0; x < src_.shape[1]; ++x, from += src_.stride[1])
      for (int c = 0; c < 3; ++c) pixels_[3 * x + c] = from[c * src_.stride[2]];
    return pixels_;
  }

  const View& src_;
  Info info_;
  Picture picture_;
  Band band_;
  Divisors divisors_[2];
  Loops loops_;
  uint8_t* pixels_ = nullptr;
};

}  // namespace

bool distort(const View& src, int quality, const View& dst, Scratch& scratch) {
  if (src.rank != 3 || src.shape[2] != 3 || !src.has_extents_of(dst) || quality < 1 || quality > 100) return false;
  const int64_t height = src.shape[0], width = src.shape[1];
  if (height < 1 || width < 1 || std::max(height, width) > kMostPixels) return false;
  const bool dense = dst.stride[2] == 1 && dst.stride[1] == 3 && dst.stride[0] >= 3 * width;
  const auto staged_bytes = static_cast<size_t>(dense ? 0 : 3 * width * height);
  Carver measure;
  Distortion(src, quality, nullptr, 0).carve(measure);
  measure.take<uint8_t>(staged_bytes);
  Carver pieces(scratch.get(measure.used()));
  uint8_t* const staged = pieces.take<uint8_t>(staged_bytes);
  Distortion distortion(src, quality, dense ? dst.data : staged, dense ? dst.stride[0] : 3 * width);
  distortion.carve(pieces);
  distortion.run();
  if (dense) return true;
  const uint8_t* from = staged;
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x)
      for (int c = 0; c < 3; ++c) dst.data[y * dst.stride[0] + x * dst.stride[1] + c * dst.stride[2]] = *from++;
  return true;
}

}  // namespace stoker::jpeg
