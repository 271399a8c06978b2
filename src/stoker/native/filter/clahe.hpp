// SPDX-License-Identifier: Apache-2.0
// Contrast-limited adaptive histogram equalization of images of bytes.
#pragma once
#include "base/tensor.hpp"

namespace stoker::clahe {

struct Settings {
  int64_t across, down;  // numbers of tiles, at least 1
  double clip_limit;     // 0: none
};

// Equalize a plane [H,W,1] with pixels.
void equalize(const View& src, const Settings& settings, const View& dst, Scratch& scratch);

// Equalize the lightness of an image [H,W,3] of RGB with pixels. `table` is that of shared/lab.hpp.
void equalize_lightness(const View& src, const Settings& settings, const uint16_t* table, const View& dst,
                        Scratch& scratch);

}  // namespace stoker::clahe
