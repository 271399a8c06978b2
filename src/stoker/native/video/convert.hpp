// SPDX-License-Identifier: Apache-2.0
// Integer conversion of decoded video frames to RGB, by the matrix and the range of the stream (ITU-T H.273).
#pragma once
#include <cstdint>

#include "base/scratch.hpp"
#include "base/tensor.hpp"
#include "resample/resample.hpp"

namespace stoker::video {

constexpr int kFractionBits = 13;  // of the weights; a sum of products stays below 2^31 for samples of 16 bits

// Weights of a conversion from samples of 8 + `extra` bits to bytes, rounded to kFractionBits bits. A channel is the
// weighted sum of the differences to the zeros, rounded with halves up, and clamped.
struct Weights {
  int32_t luma_zero, chroma_zero;  // samples of black, and of no colour
  int32_t luma, red_v, green_u, green_v, blue_u;
  int32_t extra;
};

// Weights of red and blue in luma, between 0 and 1; limited range is 16 to 235 (chroma 240), scaled by 2^extra.
// `scale`: largest value of the result divided by that of a byte.
Weights weights_of(double kr, double kb, bool full_range, int extra, double scale = 1);

enum class Order : int { RGB = 0, BGR, Stored };  // Stored: luma and chroma as they are, in eight bits

// Planes of samples of one byte, or of two (little-endian) if there are more than eight bits. Without chroma planes the
// frame is gray. A chroma sample belongs to 2^shift columns and rows.
struct Frame {
  const uint8_t* plane[3];
  int64_t pitch[3];  // bytes from row to row
  int64_t width, height;
  int shift_x, shift_y;
  bool wide, gray;
};

// Write an image [height,width,3] of bytes without gaps. Chroma samples are repeated.
void convert(const Frame& frame, const Weights& weights, Order order, uint8_t* out, Scratch& scratch);

// Resample the image of `convert` without writing it: see resample.hpp. `rows`: [out_h,out_w,3] of bytes. Return false for a
// resampling that cannot be done.
bool convert_resampled(const Frame& frame, const Weights& weights, Order order, const resample::Axis& vertical,
                       const resample::Axis& horizontal, const View& out, Scratch& rows, Scratch& scratch);

// Write an image [height,width,3] of words without gaps, as `convert` with 257 times the value of a byte. `stored`: luma
// and chroma as they are, in the upper bits.
void convert_words(const Frame& frame, double kr, double kb, bool full_range, int extra, Order order, uint16_t* out);

// Row of samples whose chroma samples belong to one column or two.
template <class T>
struct RgbRow {
  const T *luma, *u, *v;
  int64_t width;
  int shift_x;
  bool bgr;
  bool past;  // write past the caches where addresses allow; needs a fence
};

constexpr int64_t kPairPixels = 64;  // the widths of `rgb_pair` are multiples of this

// Loops over a row, of `T` samples. `terms`: chroma's parts of three channels, one per pixel. `rgb`: the pixels of a row
// in one pass, for weights below 2^15; null where there is none. `rgb_pair`: the same for two rows that share their
// chroma samples, with non-temporal stores to a multiple of 64 bytes: the luma of the second row is `pitch` bytes after
// that of the first one, and its pixels follow; null where there is none.
template <class T>
struct RowLoops {
  void (*terms)(const T* u, const T* v, int64_t chroma, int shift_x, const Weights& w, int32_t* const* terms);
  void (*channels)(const T* luma, const int32_t* const* terms, int64_t width, const Weights& w, uint8_t* const* to);
  void (*stored)(const T* from, int64_t samples, int shift_x, const Weights& w, uint8_t* to);
  void (*rgb)(const RgbRow<T>& row, const Weights& w, uint8_t* to) = nullptr;
  void (*rgb_pair)(const RgbRow<T>& first, int64_t pitch, const Weights& w, uint8_t* to) = nullptr;
};

// Byte of a pixel among the 16 of a part in which the even pixels come first.
constexpr int place_of_pixel(int pixel) { return pixel % 2 * 8 + pixel / 2; }

struct Forms {
  RowLoops<uint8_t> bytes;
  RowLoops<uint16_t> words;
};

#if defined(__x86_64__)
Forms forms_avx2();
Forms forms_avx512();
Forms forms_vbmi();  // AVX-512 with VBMI and VNNI
#endif

}  // namespace stoker::video
