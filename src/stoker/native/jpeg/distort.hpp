// SPDX-License-Identifier: Apache-2.0
// Pixels after JPEG compression with halved chroma (4:2:0) and decompression, without the entropy coding in between, which
// loses nothing. The arithmetic is libjpeg's: its "islow" transforms, and its smooth upsampling.
#pragma once
#include "base/tensor.hpp"

namespace stoker::jpeg {

constexpr int64_t kMostPixels = 65500;  // of a side, as in libjpeg

// Distort an image [H,W,3] of RGB with pixels. `quality` is 1 to 100. Return false, with dst untouched, for other shapes.
bool distort(const View& src, int quality, const View& dst, Scratch& scratch);

}  // namespace stoker::jpeg
