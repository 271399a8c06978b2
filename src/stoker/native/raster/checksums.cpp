// SPDX-License-Identifier: Apache-2.0
#include "raster/checksums.hpp"

#include <algorithm>
#include <cstring>

#include "base/simd.hpp"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace stoker::raster {

namespace {

constexpr uint32_t kPolynomial = 0xEDB88320u;  // in reflected order
constexpr int kTables = 16;

// Table k has the effect of a byte that is followed by k zero bytes.
struct Tables {
  uint32_t of[kTables][256];
};

constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t state = byte;
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1) != 0 ? kPolynomial : 0);
    tables.of[0][byte] = state;
  }
  for (int k = 1; k < kTables; ++k)
    for (int byte = 0; byte < 256; ++byte) {
      const uint32_t state = tables.of[k - 1][byte];
      tables.of[k][byte] = (state >> 8) ^ tables.of[0][state & 255];
    }
  return tables;
}

constexpr Tables kOf = make_tables();

uint32_t by_tables(uint32_t state, const uint8_t* data, size_t size) {
  for (; size >= 16; data += 16, size -= 16) {
    uint64_t low, high;
    std::memcpy(&low, data, 8);
    std::memcpy(&high, data + 8, 8);
    low ^= state;
    state = 0;
    for (int k = 0; k < 8; ++k) state ^= kOf.of[15 - k][low >> (8 * k) & 255] ^ kOf.of[7 - k][high >> (8 * k) & 255];
  }
  while (size-- > 0) state = (state >> 8) ^ kOf.of[0][(state ^ *data++) & 255];
  return state;
}

#if defined(__x86_64__)

#define STOKER_FOLD __attribute__((target("pclmul,sse4.1")))

bool has_fold() {
  static const bool has = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
  return has && isa() != Isa::Plain;
}

// x^bits modulo the polynomial in reflected order; the shift makes up for products that come out one bit too low.
constexpr uint64_t multiplier(int bits) {
  uint32_t power = 0x80000000u;  // x^0
  for (int i = 0; i < bits; ++i) power = (power >> 1) ^ ((power & 1) != 0 ? kPolynomial : 0);
  return uint64_t{power} << 1;
}

// Advance 16 bytes over the zero bytes of the two multipliers.
STOKER_FOLD inline __m128i advance(__m128i x, __m128i by) {
  return _mm_xor_si128(_mm_clmulepi64_si128(x, by, 0x00), _mm_clmulepi64_si128(x, by, 0x11));
}

STOKER_FOLD inline __m128i load16(const uint8_t* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }

// Four accumulators of 16 bytes are folded into one, whose remainder the tables compute. Source: Gopal et al., Fast CRC
// Computation for Generic Polynomials Using PCLMULQDQ, Intel 2009.
STOKER_FOLD uint32_t by_products(uint32_t state, const uint8_t* data, size_t size) {
  constexpr size_t kStep = 64;
  // Over 64 and over 16 bytes; the lower half of an accumulator is 64 bits further from the end.
  const __m128i over_64 = _mm_set_epi64x(static_cast<int64_t>(multiplier(480)), static_cast<int64_t>(multiplier(544))),
                over_16 = _mm_set_epi64x(static_cast<int64_t>(multiplier(96)), static_cast<int64_t>(multiplier(160)));
  __m128i a = _mm_xor_si128(load16(data), _mm_cvtsi32_si128(static_cast<int>(state))), b = load16(data + 16),
          c = load16(data + 32), d = load16(data + 48);
  for (data += kStep, size -= kStep; size >= kStep; data += kStep, size -= kStep) {
    a = _mm_xor_si128(advance(a, over_64), load16(data));
    b = _mm_xor_si128(advance(b, over_64), load16(data + 16));
    c = _mm_xor_si128(advance(c, over_64), load16(data + 32));
    d = _mm_xor_si128(advance(d, over_64), load16(data + 48));
  }
  b = _mm_xor_si128(advance(a, over_16), b);
  c = _mm_xor_si128(advance(b, over_16), c);
  d = _mm_xor_si128(advance(c, over_16), d);
  alignas(16) uint8_t rest[16];
  _mm_store_si128(reinterpret_cast<__m128i*>(rest), d);
  return by_tables(by_tables(0, rest, sizeof rest), data, size);
}

#endif

constexpr uint32_t kAdlerBase = 65521;

// The sums of this many bytes fit into 32 bits.
constexpr size_t kAdlerRun = 5552;

// Add whole blocks of 32 bytes to the sums; return how many bytes were added.
using AddBlocks = size_t (*)(const uint8_t* data, size_t size, uint32_t& a, uint32_t& b);

size_t add_plain(const uint8_t* data, size_t size, uint32_t& a, uint32_t& b) {
  constexpr size_t kBlock = 32;
  const size_t blocks = size / kBlock;
  for (size_t i = 0; i < blocks; ++i, data += kBlock) {
    uint32_t sum = 0, weighted = 0;
    for (size_t k = 0; k < kBlock; ++k) {
      sum += data[k];
      weighted += static_cast<uint32_t>(kBlock - k) * data[k];
    }
    b += static_cast<uint32_t>(kBlock) * a + weighted;
    a += sum;
  }
  return blocks * kBlock;
}

#if defined(__x86_64__)
STOKER_WIDE uint32_t sum_of(__m256i x) {
  const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
  const __m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4E));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xB1))));
}

STOKER_WIDE size_t add_wide(const uint8_t* data, size_t size, uint32_t& a, uint32_t& b) {
  constexpr size_t kBlock = 32;
  const __m256i weights = _mm256_setr_epi8(32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14,
                                           13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1);
  const __m256i ones = _mm256_set1_epi16(1), zero = _mm256_setzero_si256();
  __m256i sums = zero, before = zero, weighted = zero;
  const size_t blocks = size / kBlock;
  for (size_t i = 0; i < blocks; ++i, data += kBlock) {
    const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(data));
    before = _mm256_add_epi32(before, sums);  // the sums before each block
    sums = _mm256_add_epi32(sums, _mm256_sad_epu8(x, zero));
    weighted = _mm256_add_epi32(weighted, _mm256_madd_epi16(_mm256_maddubs_epi16(x, weights), ones));
  }
  b += static_cast<uint32_t>(kBlock) * (static_cast<uint32_t>(blocks) * a + sum_of(before)) + sum_of(weighted);
  a += sum_of(sums);
  return blocks * kBlock;
}
#endif

}  // namespace

uint32_t crc32(const uint8_t* data, size_t size) {
#if defined(__x86_64__)
  if (size >= 64 && has_fold()) return ~by_products(~uint32_t{0}, data, size);
#endif
  return ~by_tables(~uint32_t{0}, data, size);
}

uint32_t adler32(const uint8_t* data, size_t size) {
  AddBlocks add = add_plain;
#if defined(__x86_64__)
  if (has_wide()) add = add_wide;
#endif
  uint32_t a = 1, b = 0;
  while (size > 0) {
    const size_t run = std::min(size, kAdlerRun);
    size_t done = add(data, run, a, b);
    for (; done < run; ++done) {
      a += data[done];
      b += a;
    }
    data += run;
    size -= run;
    a %= kAdlerBase;
    b %= kAdlerBase;
  }
  return b << 16 | a;
}

}  // namespace stoker::raster
