// SPDX-License-Identifier: Apache-2.0
// Row kernels of the decoder: upsampling and colour, in libjpeg's integer arithmetic.
#pragma once
#include <cstddef>
#include <cstdint>

namespace stoker::jpeg {

// Source rows must be readable kRowSlack bytes past the last sample used; rows of samples written by these kernels
// (all but the pixel writers' `dst`) may be written as far.
constexpr int kRowSlack = 64;

struct RowKernels {
  // Triangle filter, `n` samples to 2n. Reads in[-1] and in[n]: the neighbours, or the edge sample repeated.
  void (*double_width)(const uint8_t* in, int n, uint8_t* out);
  // Rows between `near` and `far`: (3 near + far + bias) >> 2; bias 1 for the upper row of a pair, 2 for the lower.
  void (*double_height)(const uint8_t* near, const uint8_t* far, int bias, int n, uint8_t* out);
  // Both, with one rounding; `sums` has room for n + 2 + kRowSlack numbers.
  void (*double_both)(const uint8_t* near, const uint8_t* far, int n, int16_t* sums, uint8_t* out);
  // Three planes to pixels of three bytes; `dst` is written exactly.
  void (*ycc_to_rgb)(const uint8_t* y, const uint8_t* cb, const uint8_t* cr, uint8_t* dst, int n);
  void (*ycc_to_bgr)(const uint8_t* y, const uint8_t* cb, const uint8_t* cr, uint8_t* dst, int n);
  void (*interleave)(const uint8_t* a, const uint8_t* b, const uint8_t* c, uint8_t* dst, int n);
};
const RowKernels& row_kernels();  // for the instruction set in force

// Every sample `factor` times.
void repeat_samples(const uint8_t* in, int n, int factor, uint8_t* out);

// Rare enough to stay plain: files coded as RGB, wanted as something else.
void rgb_to_gray(const uint8_t* r, const uint8_t* g, const uint8_t* b, uint8_t* dst, int n);
void rgb_to_ycc(const uint8_t* r, const uint8_t* g, const uint8_t* b, uint8_t* dst, int n);

// Pillow's conversion of CMYK, in place: `pixels` holds three inks and `black` the fourth as the file has them,
// inverted; `negative`: the three are to be inverted once more.
void inks_to_rgb(const uint8_t* black, bool negative, uint8_t* pixels, int n);
void interleaved_rgb_to_gray(const uint8_t* pixels, uint8_t* dst, int n);

}  // namespace stoker::jpeg
