// SPDX-License-Identifier: Apache-2.0
#include "recipe/chain.hpp"

#include <cmath>
#include <cstring>
#include <initializer_list>

#include "base/fused_forms.hpp"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace stoker::recipe {

#if defined(__x86_64__)

namespace {

constexpr int kUlps = 3;  // distance of a constant from its estimate, in units of the last place

// Constants of the first operation. `scale` of v / 255 has 16 bits, so that its products with bytes are exact.
struct First {
  float scale, rest;
};

First divided_by_255() {
  const double exact = 1.0 / 255;
  auto scale = static_cast<float>(exact);
  uint32_t bits;
  std::memcpy(&bits, &scale, sizeof bits);
  bits &= 0xFFFFFF00u;
  std::memcpy(&scale, &bits, sizeof bits);
  return {scale, static_cast<float>(exact - static_cast<double>(scale))};
}

float moved(float x, int ulps) {
  for (; ulps > 0; --ulps) x = std::nextafterf(x, INFINITY);
  for (; ulps < 0; ++ulps) x = std::nextafterf(x, -INFINITY);
  return x;
}

template <bool Past>
STOKER_FMA inline void run(const Chain& c, const float* table, const uint8_t* bytes, int n, float* to) {
  const __m256 scale = _mm256_set1_ps(c.scale), rest = _mm256_set1_ps(c.rest), shift = _mm256_set1_ps(c.shift);
  const __m256 divisor = _mm256_set1_ps(c.divisor), reciprocal = _mm256_set1_ps(c.reciprocal);
  int i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m128i eight = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes + i));
    const __m256 v = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(eight));
    const __m256 x = _mm256_sub_ps(_mm256_fmadd_ps(v, scale, _mm256_mul_ps(v, rest)), shift);
    // The quotient, corrected by its remainder. `find_chain` has compared all of its values with the table's.
    const __m256 quotient = _mm256_mul_ps(x, reciprocal);
    const __m256 remainder = _mm256_fnmadd_ps(quotient, divisor, x);
    const __m256 result = _mm256_fmadd_ps(remainder, reciprocal, quotient);
    if constexpr (Past) _mm256_stream_ps(to + i, result);
    else _mm256_storeu_ps(to + i, result);
  }
  for (; i < n; ++i) to[i] = table[bytes[i]];
}

STOKER_FMA void run_past(const Chain& c, const float* table, const uint8_t* bytes, int n, float* to) {
  run<true>(c, table, bytes, n, to);
}

STOKER_FMA void run_near(const Chain& c, const float* table, const uint8_t* bytes, int n, float* to) {
  run<false>(c, table, bytes, n, to);
}

bool gives(const Chain& chain, const float* table) {
  uint8_t bytes[256];
  float values[256];
  for (int v = 0; v < 256; ++v) bytes[v] = static_cast<uint8_t>(v);
  run_near(chain, table, bytes, 256, values);
  return std::memcmp(values, table, sizeof values) == 0;
}

// Compare some values first: nearly all guesses are wrong.
bool seems_to_give(const First& first, float shift, float divisor, const float* table) {
  for (const int v : {255, 0, 128, 77, 201, 31, 163, 1}) {
    const float scaled = static_cast<float>(v) * first.scale + static_cast<float>(v) * first.rest;
    if ((scaled - shift) / divisor != table[v]) return false;
  }
  return true;
}

// The constants follow from the table's ends, except for their last bits.
bool find_constants(const First& first, const float* table, Chain& chain) {
  const float top = 255.0f * first.scale + 255.0f * first.rest;
  const double slope = static_cast<double>(table[255]) - static_cast<double>(table[0]);
  const double divisor = static_cast<double>(top) / slope, shift = -static_cast<double>(table[0]) * divisor;
  if (!std::isnormal(static_cast<float>(divisor)) || !std::isfinite(static_cast<float>(shift))) return false;
  const int most = shift == 0 ? 0 : kUlps;
  for (int i = -kUlps; i <= kUlps; ++i)
    for (int j = -most; j <= most; ++j) {
      const float d = moved(static_cast<float>(divisor), i), s = moved(static_cast<float>(shift), j);
      if (!seems_to_give(first, s, d, table)) continue;
      chain = {first.scale, first.rest, s, d, 1.0f / d};
      if (gives(chain, table)) return true;
    }
  return false;
}

}  // namespace

// AVX-512 has permutations of words, see pixel/avx512.cpp.
bool has_chains() { return isa() == Isa::AVX2 && has_fma(); }

bool find_chain(const float* table, Chain& chain) {
  if (!has_chains() || !std::isfinite(table[0]) || !std::isfinite(table[255]) || table[0] == table[255]) return false;
  for (const First& first : {divided_by_255(), First{static_cast<float>(1.0 / 255), 0.0f}, First{1.0f, 0.0f}})
    if (find_constants(first, table, chain)) return true;
  return false;
}

void run_chain(const Chain& chain, const float* table, const uint8_t* bytes, int n, float* to, bool past) {
  const bool aligned = reinterpret_cast<uintptr_t>(to) % 32 == 0;
  (past && aligned ? run_past : run_near)(chain, table, bytes, n, to);
}

#else

bool has_chains() { return false; }

bool find_chain(const float*, Chain&) { return false; }

void run_chain(const Chain&, const float* table, const uint8_t* bytes, int n, float* to, bool) {
  for (int i = 0; i < n; ++i) to[i] = table[bytes[i]];
}

#endif

}  // namespace stoker::recipe
