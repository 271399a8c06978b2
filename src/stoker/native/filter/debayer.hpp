// SPDX-License-Identifier: Apache-2.0
// Colours from a mosaic of one colour per pixel.
#pragma once
#include "base/tensor.hpp"
#include "shared/debayer.hpp"

namespace stoker::debayer {

// Writes a row of pixels from three rows.
using Interleave = void (*)(const uint8_t* a, const uint8_t* b, const uint8_t* c, uint8_t* to, int count);

// Compute an image [H,W,3] of RGB, or [H,W,1] of gray values, from a mosaic [H,W,1] of bytes or words. Both sides have at
// least three pixels. Pixels at the edges repeat their neighbours. The algorithm Gradients is for bytes.
void demosaic(const View& src, const Mosaic& mosaic, Algorithm algorithm, Interleave bytes, const View& dst,
              Scratch& scratch);

// Loops over rows. Rows may be read and written up to kSlack bytes beyond both ends.
constexpr int64_t kSlack = 64;

template <class T>
struct MosaicRow {
  const T *up, *own, *down;
  int64_t width;
  int64_t colored;           // parity of the columns whose pixels are not green
  uint32_t line, other;      // weights, for gray values
  T *first, *green, *third;  // rows of the row's colour, green, and the third colour; gray values are in `first`
};

template <class T>
struct MosaicLoops {
  void (*of[3])(const MosaicRow<T>&);  // by Algorithm, without Gradients
};

// The algorithm Gradients. rows[2] is the row itself. Rows are read up to kSlack + 2 bytes beyond both ends.
struct GradientRow {
  const uint8_t* rows[5];
  int64_t width, colored;          // as in MosaicRow
  uint8_t *line, *green, *column;  // rows of the row's colour, green, and the third colour
};

struct MosaicForms {
  MosaicLoops<uint8_t> bytes;
  MosaicLoops<uint16_t> words;
  void (*gradients)(const GradientRow&);  // weighs all columns as is_grouped() ones
};

#if defined(__x86_64__)
MosaicForms forms_avx2();
MosaicForms forms_avx512();
#endif

}  // namespace stoker::debayer
