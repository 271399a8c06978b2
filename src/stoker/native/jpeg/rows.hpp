// SPDX-License-Identifier: Apache-2.0
// Row kernels of the decoder: upsampling and colour conversion in libjpeg's integer arithmetic.
#pragma once
#include <cstddef>
#include <cstdint>

namespace stoker::jpeg {

// Source rows must be readable kRowSlack bytes past the last sample used. The kernels may write as far beyond the rows
// of samples that they produce, except for the `dst` of the functions that write pixels.
constexpr int kRowSlack = 64;

struct RowKernels {
  // Triangle filter from `n` samples to 2n. Reads in[-1] and in[n]: the neighbours, or the edge sample repeated.
  void (*double_width)(const uint8_t* in, int n, uint8_t* out);
  // Triangle filter between the rows `near` and `far`: (3 near + far + bias) >> 2; bias 1 for the upper row of a pair,
  // 2 for the lower.
  void (*double_height)(const uint8_t* near, const uint8_t* far, int bias, int n, uint8_t* out);
  // Both filters with one rounding; `sums` must hold n + 2 + kRowSlack numbers.
  void (*double_both)(const uint8_t* near, const uint8_t* far, int n, int16_t* sums, uint8_t* out);
  // Convert three planes to pixels of three bytes; nothing is written beyond `dst`.
  void (*ycc_to_rgb)(const uint8_t* y, const uint8_t* cb, const uint8_t* cr, uint8_t* dst, int n);
  void (*ycc_to_bgr)(const uint8_t* y, const uint8_t* cb, const uint8_t* cr, uint8_t* dst, int n);
  void (*interleave)(const uint8_t* a, const uint8_t* b, const uint8_t* c, uint8_t* dst, int n);
};
const RowKernels& row_kernels();  // for the current instruction set

// Repeat every sample `factor` times.
void repeat_samples(const uint8_t* in, int n, int factor, uint8_t* out);

// Conversions of files coded as RGB to other formats. They are rare, so there are no vector forms.
void rgb_to_gray(const uint8_t* r, const uint8_t* g, const uint8_t* b, uint8_t* dst, int n);
void rgb_to_ycc(const uint8_t* r, const uint8_t* g, const uint8_t* b, uint8_t* dst, int n);

// Pillow's conversion of CMYK in place: `pixels` has three inks and `black` the fourth as stored in the file, inverted;
// `negative`: invert the three once more.
void inks_to_rgb(const uint8_t* black, bool negative, uint8_t* pixels, int n);
void interleaved_rgb_to_gray(const uint8_t* pixels, uint8_t* dst, int n);

}  // namespace stoker::jpeg
