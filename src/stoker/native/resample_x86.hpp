// SPDX-License-Identifier: Apache-2.0
// What the AVX2 and the VNNI kernels of 8-bit resampling share.
//
// A 22-bit weight fits neither of the two multiply-add instructions, so it is cut up: AVX2 multiplies 16-bit pairs by
// a high and a low half (vpmaddwd), VNNI multiplies bytes by three signed base-256 digits (vpdpbusd, four taps each).
// In a horizontal register every 128-bit lane holds the taps of one output pixel, a dword per channel.
#pragma once
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 13
// GCC's own intrinsics start from a register that is left unset on purpose (bug 105593, fixed in GCC 13).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <immintrin.h>

#include <cstdint>

#include "resample_kernels.hpp"

namespace stoker::resample {

constexpr int kHalf = 1 << (kWeightBits - 1);
constexpr char kNone = static_cast<char>(0x80);  // pshufb: a zero byte

// Byte shuffles by channel count. `digits`: the four taps of a channel into one dword. `first`, `second`: taps 0,1 and
// 2,3 of a channel as words. `finish`: four pixels of four bytes each to their final places.
struct Shuffles {
  alignas(16) char digits[16], first[16], second[16], finish[16];
};

constexpr Shuffles make_shuffles(int channels) {
  Shuffles s{};
  for (int c = 0; c < 4; ++c) {
    const bool used = c < channels;
    for (int t = 0; t < 4; ++t) s.digits[4 * c + t] = used ? static_cast<char>(t * channels + c) : kNone;
    for (int t = 0; t < 2; ++t) {
      s.first[4 * c + 2 * t] = used ? static_cast<char>(t * channels + c) : kNone;
      s.second[4 * c + 2 * t] = used ? static_cast<char>((t + 2) * channels + c) : kNone;
      s.first[4 * c + 2 * t + 1] = s.second[4 * c + 2 * t + 1] = kNone;
    }
  }
  for (int i = 0; i < 16; ++i)
    s.finish[i] = i < 4 * channels ? static_cast<char>(i / channels * 4 + i % channels) : kNone;
  return s;
}

inline constexpr Shuffles kShuffles[5] = {make_shuffles(1), make_shuffles(1), make_shuffles(2), make_shuffles(3),
                                   make_shuffles(4)};

inline __m128i load16(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }

}  // namespace stoker::resample
