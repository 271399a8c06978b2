// SPDX-License-Identifier: Apache-2.0
// Inner loops of 8-bit resampling, one set per instruction set. All of them compute the same 32-bit integer:
//   (2^21 + sum pixel[t] * weight[t]) >> 22, clamped to 0..255
// with wrap-around sums. How a weight is split and in which order the parts are added therefore does not change the
// result.
#pragma once
#include <cstdint>

#include "shared/resample_taps.hpp"
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace stoker::resample {

constexpr int kGroup = 4;     // taps are processed in groups of four; missing ones have weight zero
constexpr int kRows = 4;      // source rows per horizontal call
constexpr int kOverrun = 64;  // bytes a horizontal kernel may write past the end of a destination row
constexpr int kBlock = 16;    // single-channel outputs whose weights are interleaved

// Storage of the four weights of a group in four 32-bit words.
enum class Packing {
  Whole,   // unchanged
  Words,   // (w0,w1) high parts, (w0,w1) low parts, (w2,w3) high, (w2,w3) low; 16 bits each, w = high * 2^15 + low
  Digits,  // four signed bytes each: lowest, middle, highest digit in base 256; the fourth word is not used
};

inline void pack_words(const int32_t* w, uint32_t* out) {
  for (int pair = 0; pair < 2; ++pair) {
    const int32_t a = w[2 * pair], b = w[2 * pair + 1];
    out[2 * pair] = (static_cast<uint32_t>(a >> 15) & 0xFFFF) | (static_cast<uint32_t>(b >> 15) << 16);
    out[2 * pair + 1] = static_cast<uint32_t>(a & 0x7FFF) | (static_cast<uint32_t>(b & 0x7FFF) << 16);
  }
}

// Split a weight w with |w| < 127 * 2^16, which is almost twice the sum of all weights, into digits. No filter comes
// near this limit: the taps next to the centre, at least one of which exists, carry at least half of the sum.
inline void pack_digits(const int32_t* w, uint32_t* out) {
  // Adding 0x8080 first rounds each of the two low digits to nearest, so that they are signed.
#if defined(__SSE2__)
  __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(w));
  v = _mm_xor_si128(_mm_add_epi32(v, _mm_set1_epi32(0x8080)), _mm_set1_epi32(0x8080));
  v = _mm_unpacklo_epi8(v, _mm_srli_si128(v, 8));  // two interleavings transpose 4 x 4 bytes
  v = _mm_unpacklo_epi8(v, _mm_srli_si128(v, 8));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), v);
#else
  out[0] = out[1] = out[2] = out[3] = 0;
  for (int t = 0; t < kGroup; ++t) {
    const uint32_t u = (static_cast<uint32_t>(w[t]) + 0x8080u) ^ 0x8080u;
    for (int digit = 0; digit < 4; ++digit) out[digit] |= (u >> (8 * digit) & 0xFF) << (8 * t);
  }
#endif
}

inline void pack_group(Packing packing, const int32_t* w, uint32_t* out) {
  if (packing == Packing::Digits) return pack_digits(w, out);
  if (packing == Packing::Words) return pack_words(w, out);
  for (int t = 0; t < kGroup; ++t) out[t] = static_cast<uint32_t>(w[t]);
}

// The weights that pack_group() has stored.
inline void unpack_group(Packing packing, const uint32_t* words, int32_t* w) {
  for (int t = 0; t < kGroup; ++t) {
    const auto digit = [&](int k) { return static_cast<int8_t>(words[k] >> (8 * t)); };
    const auto word = [&](int k) { return words[k] >> (16 * (t % 2)) & 0xFFFF; };
    if (packing == Packing::Digits) w[t] = digit(0) + digit(1) * 256 + digit(2) * 65536;
    else if (packing == Packing::Words)
      w[t] = static_cast<int16_t>(word(t / 2 * 2)) * 32768 + static_cast<int32_t>(word(t / 2 * 2 + 1));
    else w[t] = static_cast<int32_t>(words[t]);
  }
}

// Taps of one row. Output x reads `groups` groups of pixels from start[x] on. Its weights are at packed[(x * groups +
// g) * 4 ...] or, if `blocked`, word d is at packed[((x / kBlock * groups + g) * 4 + d) * kBlock + x % kBlock].
struct RowTaps {
  const int32_t* start;
  const uint32_t* packed;
  int64_t groups;
  int32_t channels;
  bool blocked;
};

// Pixels that are picked from a row, as bytes: block b of kPickBlock destination bytes takes them from the kPickBlock *
// loads bytes from row + base[b] on. Byte j of the block is byte index[(b * loads + l) * kPickBlock + j] of load l, and 0
// where the highest bit of that number is set.
constexpr int kPickBlock = 16, kMostPickLoads = 4;
struct PickBlocks {
  int64_t blocks = 0;
  int loads = 0;
  int32_t* base = nullptr;
  uint8_t* index = nullptr;
};

struct Kernels {
  Packing packing;
  bool simd;  // the kernels read whole vectors: see load_bytes()
  // Compute outputs [x0, x1) of kRows rows.
  void (*horizontal)(const RowTaps&, const uint8_t* const src[kRows], uint8_t* const dst[kRows], int64_t x0,
                     int64_t x1);
  // Compute out[i] for i < n. `rows` has groups * 4 entries, all of them readable.
  void (*vertical)(const uint8_t* const* rows, const uint32_t* packed, int64_t groups, uint8_t* out, int64_t n);

  // Faster horizontal form for narrow filters and one to four channels, planned once per image; null if there is none.
  // plan_blocks() returns false if the taps do not suit it. `readable` is the number of bytes that may be read from
  // src[r] on; the caller needs no special treatment of the tail.
  int64_t (*block_room)(int64_t outputs);
  bool (*plan_blocks)(const RowTaps&, int64_t outputs, int64_t readable, uint8_t* room);
  void (*horizontal_blocks)(const RowTaps&, const uint8_t* room, int64_t outputs, int64_t readable,
                            const uint8_t* const src[kRows], uint8_t* const dst[kRows]);

  // Write all blocks of a row; null if there is none.
  void (*pick)(const PickBlocks&, const uint8_t* row, uint8_t* dst);

  bool handles(int64_t channels) const { return simd && channels >= 1 && channels <= 4; }
  // Number of bytes that a kernel reads from the first byte of a group on.
  int64_t load_bytes(int64_t channels) const { return handles(channels) ? (channels == 1 ? 4 : 16) : 4 * channels; }
};

extern const Kernels kPlainKernels;
#if defined(__x86_64__)
extern const Kernels kAvx2Kernels;
extern const Kernels kVnniKernels;
void pick_avx2(const PickBlocks& picks, const uint8_t* row, uint8_t* dst);
#elif defined(__aarch64__)
extern const Kernels kNeonKernels;
#endif
const Kernels& kernels();  // the set for stoker::isa()

void horizontal_plain(const RowTaps& taps, const uint8_t* const src[kRows], uint8_t* const dst[kRows], int64_t x0,
                      int64_t x1);

}  // namespace stoker::resample
