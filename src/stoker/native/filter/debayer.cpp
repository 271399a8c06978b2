// SPDX-License-Identifier: Apache-2.0
#include "filter/debayer.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "base/carver.hpp"
#include "base/simd.hpp"
#include "filter/padded_rows.hpp"
#include "shared/half.hpp"

namespace stoker::debayer {

namespace {

#define STOKER_VECTOR_BYTES 16
#include "base/vectors.ipp"

#include "filter/debayer.ipp"

MosaicForms forms() {
#if defined(__x86_64__)
  if (isa() == Isa::AVX512) return forms_avx512();
  if (isa() == Isa::AVX2) return forms_avx2();
#endif
  return kForms;
}

template <class T>
void demosaic_of(const View& src, const Mosaic& mosaic, Algorithm algorithm, Interleave bytes, const View& dst,
                 Scratch& scratch) {
  const int64_t height = src.shape[0], width = src.shape[1];
  const auto size = static_cast<size_t>(width);
  constexpr int64_t kMargin = kSlack / static_cast<int64_t>(sizeof(T));
  const int64_t pitch = width + 2 * kMargin;
  T *kept = nullptr, *colors[3] = {}, *pixels = nullptr;
  const auto carve = [&](Carver c) {
    kept = c.take<T>(static_cast<size_t>(3 * pitch));
    for (T*& color : colors) color = c.take<T>(static_cast<size_t>(pitch));
    pixels = c.take<T>(3 * size);
    return c.used();
  };
  const size_t room = carve(Carver());
  carve(Carver(scratch.get(room)));
  std::memset(kept, 0, static_cast<size_t>(3 * pitch) * sizeof(T));
  const auto row_of = [&](int64_t y) { return kept + y % 3 * pitch + kMargin; };
  const PaddedRows source(src, 0, 0, Border::Clamp);
  const auto read = [&](int64_t y) {
    source.read(y, 0, reinterpret_cast<uint8_t*>(row_of(y)), [](uint8_t*, int64_t) {});
  };
  const MosaicForms all = forms();
  const auto run = [&] {
    if constexpr (sizeof(T) == 1) return all.bytes.of[static_cast<int>(algorithm)];
    else return all.words.of[static_cast<int>(algorithm)];
  }();
  const bool gray = algorithm == Algorithm::Gray;
  read(0);
  read(1);
  for (int64_t y = 1; y < height - 1; ++y) {
    read(y + 1);
    const bool red = ((y ^ mosaic.red_row) & 1) == 0;
    T *const first = gray || red ? colors[0] : colors[2], *const third = red ? colors[2] : colors[0];
    run({row_of(y - 1), row_of(y), row_of(y + 1), width, red ? mosaic.red_column : mosaic.red_column ^ 1,
         red ? kRed : kBlue, red ? kBlue : kRed, first, colors[1], third});
    for (int c = 0; c < (gray ? 1 : 3); ++c) {
      colors[c][0] = colors[c][1];
      colors[c][width - 1] = colors[c][width - 2];
    }
    const T* out = colors[0];
    if (!gray) {
      if constexpr (sizeof(T) == 1) {
        for (int64_t x = 0; x < width; x += 1 << 20)
          bytes(colors[0] + x, colors[1] + x, colors[2] + x, pixels + 3 * x,
                static_cast<int>(std::min<int64_t>(1 << 20, width - x)));
      } else {
        for (int64_t x = 0; x < width; ++x)
          for (int c = 0; c < 3; ++c) pixels[3 * x + c] = colors[c][x];
      }
      out = pixels;
    }
    const auto* row = reinterpret_cast<const uint8_t*>(out);
    scatter_row(row, dst, y);
    if (y == 1) scatter_row(row, dst, 0);
    if (y == height - 2) scatter_row(row, dst, height - 1);
  }
}

// The pixel of column x.
void gradient_pixel(const GradientRow& r, int64_t x) {
  pixels::Window window;
  for (int i = 0; i < 5; ++i)
    for (int j = 0; j < 5; ++j) window.values[i][j] = r.rows[i][x + j - 2];
  const bool grouped = is_grouped(x, r.width, r.colored);
  const Color<uint8_t> found =
      ((x ^ r.colored) & 1) == 0 ? gradient_color_at<true>(window, grouped) : gradient_color_at<false>(window, grouped);
  r.line[x] = found.line;
  r.green[x] = found.green;
  r.column[x] = found.other;
}

void demosaic_by_gradients(const View& src, const Mosaic& mosaic, Interleave bytes, const View& dst, Scratch& scratch) {
  const int64_t height = src.shape[0], width = src.shape[1];
  const int64_t margin = kSlack + 2, pitch = width + 2 * margin;
  uint8_t *kept = nullptr, *colors[3] = {}, *pixels = nullptr;
  const auto carve = [&](Carver c) {
    kept = c.take<uint8_t>(static_cast<size_t>(5 * pitch));
    for (uint8_t*& color : colors) color = c.take<uint8_t>(static_cast<size_t>(pitch));
    pixels = c.take<uint8_t>(static_cast<size_t>(3 * width));
    return c.used();
  };
  const size_t room = carve(Carver());
  carve(Carver(scratch.get(room)));
  std::memset(kept, 0, static_cast<size_t>(5 * pitch));
  const PaddedRows source(src, 2, 2, Border::Reflect101);
  const auto row_of = [&](int64_t y) { return kept + (y + 2) % 5 * pitch + margin; };
  const auto read = [&](int64_t y) { source.read(y, 0, row_of(y) - 2, [](uint8_t*, int64_t) {}); };
  const auto run = forms().gradients;
  for (int64_t y = -2; y < 2; ++y) read(y);
  for (int64_t y = 0; y < height; ++y) {
    read(y + 2);
    const bool red = ((y ^ mosaic.red_row) & 1) == 0;
    const int64_t colored = red ? mosaic.red_column : mosaic.red_column ^ 1;
    const GradientRow row{{row_of(y - 2), row_of(y - 1), row_of(y), row_of(y + 1), row_of(y + 2)},
                          width,
                          colored,
                          colors[red ? 0 : 2],
                          colors[1],
                          colors[red ? 2 : 0]};
    run(row);
    for (int64_t x = 0; x < colored; ++x) gradient_pixel(row, x);
    for (int64_t x = colored + (width - colored) / 8 * 8; x < width; ++x) gradient_pixel(row, x);
    for (int64_t x = 0; x < width; x += 1 << 20)
      bytes(colors[0] + x, colors[1] + x, colors[2] + x, pixels + 3 * x,
            static_cast<int>(std::min<int64_t>(1 << 20, width - x)));
    scatter_row(pixels, dst, y);
  }
}

}  // namespace

void demosaic(const View& src, const Mosaic& mosaic, Algorithm algorithm, Interleave bytes, const View& dst,
              Scratch& scratch) {
  if (algorithm == Algorithm::Gradients) {
    if (std::min(src.shape[0], src.shape[1]) >= kLeastGradients)
      return demosaic_by_gradients(src, mosaic, bytes, dst, scratch);
    algorithm = Algorithm::Bilinear;
  }
  if (src.dtype == DType::U8) demosaic_of<uint8_t>(src, mosaic, algorithm, bytes, dst, scratch);
  else demosaic_of<uint16_t>(src, mosaic, algorithm, bytes, dst, scratch);
}

}  // namespace stoker::debayer
