// SPDX-License-Identifier: Apache-2.0
#include "torch/pick_bytes.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/simd.hpp"

namespace stoker::torch_resize {

namespace {

void pick_plain(const uint8_t* row, const int32_t* columns, int64_t first, int64_t n, uint8_t* to) {
  for (int64_t i = first; i < n; ++i) to[i] = row[columns[i]];
}

#if defined(__x86_64__)

#define STOKER_BYTES __attribute__((target("avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi")))

bool has_permutes() {
  static const bool supported = __builtin_cpu_supports("avx512vbmi");
  return supported && isa() == Isa::AVX512;
}

// Choose 64 bytes at a time out of the 128 that follow the first of them, while these are inside of the row and have
// all chosen bytes. Return the number of bytes written.
STOKER_BYTES int64_t pick_wide(const uint8_t* row, int64_t size, const int32_t* columns, int64_t n, uint8_t* to) {
  constexpr int64_t kBytes = 64, kWindow = 128;
  int64_t i = 0;
  for (; i + kBytes <= n; i += kBytes) {
    const int64_t first = columns[i];
    if (columns[i + kBytes - 1] - first >= kWindow) {
      pick_plain(row, columns, i, i + kBytes, to);
      continue;
    }
    const int64_t begin = first + kWindow <= size ? first : size - kWindow;
    if (begin < 0) break;
    const __m512i base = _mm512_set1_epi32(static_cast<int>(begin));
    __m128i part[4];
    for (int k = 0; k < 4; ++k)
      part[k] = _mm512_cvtepi32_epi8(_mm512_sub_epi32(_mm512_loadu_si512(columns + i + 16 * k), base));
    const __m256i low = _mm256_inserti128_si256(_mm256_castsi128_si256(part[0]), part[1], 1);
    const __m256i high = _mm256_inserti128_si256(_mm256_castsi128_si256(part[2]), part[3], 1);
    const __m512i at = _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
    const __m512i chosen =
        _mm512_permutex2var_epi8(_mm512_loadu_si512(row + begin), at, _mm512_loadu_si512(row + begin + kBytes));
    _mm512_storeu_si512(to + i, chosen);
  }
  return i;
}

// Choose 16 bytes at a time out of the 32 that follow the first of them, under the same conditions.
__attribute__((target("avx2"))) int64_t pick_narrow(const uint8_t* row, int64_t size, const int32_t* columns, int64_t n,
                                                    uint8_t* to) {
  constexpr int64_t kBytes = 16, kWindow = 32;
  int64_t i = 0;
  for (; i + kBytes <= n; i += kBytes) {
    const int64_t first = columns[i];
    if (columns[i + kBytes - 1] - first >= kWindow) {
      pick_plain(row, columns, i, i + kBytes, to);
      continue;
    }
    const int64_t begin = first + kWindow <= size ? first : size - kWindow;
    if (begin < 0) break;
    const __m256i base = _mm256_set1_epi32(static_cast<int>(begin));
    const __m256i* from = reinterpret_cast<const __m256i*>(columns + i);
    const __m256i shorts = _mm256_packus_epi32(_mm256_sub_epi32(_mm256_loadu_si256(from), base),
                                               _mm256_sub_epi32(_mm256_loadu_si256(from + 1), base));
    const __m256i ordered = _mm256_permute4x64_epi64(shorts, 0b11011000);  // each 128 bits were packed on their own
    const __m128i at = _mm_packus_epi16(_mm256_castsi256_si128(ordered), _mm256_extracti128_si256(ordered, 1));
    const __m128i low = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(row + begin)), at);
    const __m128i high = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(row + begin + 16)), at);
    const __m128i chosen = _mm_blendv_epi8(low, high, _mm_cmpgt_epi8(at, _mm_set1_epi8(15)));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), chosen);
  }
  return i;
}

bool has_shuffles() { return isa() >= Isa::AVX2; }

#endif

}  // namespace

void pick_bytes(const uint8_t* row, int64_t size, const int32_t* columns, int64_t n, uint8_t* to) {
  int64_t done = 0;
#if defined(__x86_64__)
  if (has_permutes()) {
    done = pick_wide(row, size, columns, n, to);
  } else if (has_shuffles()) {
    done = pick_narrow(row, size, columns, n, to);
  }
#endif
  pick_plain(row, columns, done, n, to);
}

}  // namespace stoker::torch_resize
