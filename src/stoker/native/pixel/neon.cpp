// SPDX-License-Identifier: Apache-2.0
// Block kernels for NEON.
#if defined(__aarch64__)
#include <arm_neon.h>

#include <bit>
#include <cstddef>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "pixel/kernels.hpp"
#include "shared/element_normal.hpp"
#include "shared/element_random.hpp"
#include "shared/half.hpp"
#include "shared/xmath.hpp"

namespace stoker::pixel {
namespace {

#define STOKER_VECTOR_BYTES 16
#include "base/vectors.ipp"
#include "base/vectors_neon.ipp"

#include "pixel/moves.ipp"

// NEON has load and store instructions for interleaved elements.
void deal_rgb(uint8_t* const* planes, const uint8_t* pixels, int n) {
  int i = 0;
  for (; i + 16 <= n; i += 16) {
    const uint8x16x3_t v = vld3q_u8(pixels + 3 * i);
    for (int c = 0; c < 3; ++c) vst1q_u8(planes[c] + i, v.val[c]);
  }
  for (; i < n; ++i)
    for (int c = 0; c < 3; ++c) planes[c][i] = pixels[3 * i + c];
}

void weave_rgb(uint8_t* pixels, const uint8_t* const* planes, int n) {
  int i = 0;
  for (; i + 16 <= n; i += 16)
    vst3q_u8(pixels + 3 * i,
             (uint8x16x3_t{{vld1q_u8(planes[0] + i), vld1q_u8(planes[1] + i), vld1q_u8(planes[2] + i)}}));
  for (; i < n; ++i)
    for (int c = 0; c < 3; ++c) pixels[3 * i + c] = planes[c][i];
}

}  // namespace

void fill_neon(Kernels& k) {
  fill_moves(k);
  k.deal[1][3] = deal_rgb;
  k.weave[1][3] = weave_rgb;
}

}  // namespace stoker::pixel
#endif
