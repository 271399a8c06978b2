// SPDX-License-Identifier: Apache-2.0
// The block kernels for the build's baseline instruction set (SSE2, NEON, or none).
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "half.hpp"
#include "pixel_kernels.hpp"
#include "simd.hpp"

namespace stoker::pixel {
namespace {

#define STOKER_VECTOR_BYTES 16

void load_f16(void* __restrict dst, const void* __restrict src, int n) {
  auto* d = static_cast<float*>(dst);
  const auto* s = static_cast<const uint8_t*>(src);
  for (int i = 0; i < n; ++i) {
    uint16_t h;
    std::memcpy(&h, s + 2 * i, sizeof h);
    d[i] = float_from_half(h);
  }
}

void store_f16(void* __restrict dst, const void* __restrict src, int n) {
  const auto* s = static_cast<const float*>(src);
  auto* d = static_cast<uint8_t*>(dst);
  for (int i = 0; i < n; ++i) {
    const uint16_t h = half_from_float(s[i]);
    std::memcpy(d + 2 * i, &h, sizeof h);
  }
}

#include "pixel_loops.ipp"

template <class T>
void reverse(void* __restrict dst, const void* __restrict src, int n) {
  auto* d = static_cast<uint8_t*>(dst);
  const auto* s = static_cast<const uint8_t*>(src);
  constexpr ptrdiff_t size = sizeof(T);
  for (int i = 0; i < n; ++i) std::memcpy(d + i * size, s + (n - 1 - i) * size, sizeof(T));
}

template <class T>
void lookup(void* dst, const uint8_t* src, const void* table, int n) {
  const auto* t = static_cast<const T*>(table);
  auto* d = static_cast<uint8_t*>(dst);
  for (int i = 0; i < n; ++i) std::memcpy(d + i * sizeof(T), &t[src[i]], sizeof(T));
}

}  // namespace

void fill_plain(Kernels& k) {
  fill_loops(k);
  k.reverse[1] = reverse<uint8_t>;
  k.reverse[2] = reverse<uint16_t>;
  k.reverse[4] = reverse<uint32_t>;
  k.reverse[8] = reverse<uint64_t>;
  k.lookup[1] = lookup<uint8_t>;
  k.lookup[2] = lookup<uint16_t>;
  k.lookup[4] = lookup<uint32_t>;
  k.lookup[8] = lookup<uint64_t>;
}

const Kernels& plain_kernels() {
  static const Kernels table = [] {
    Kernels k;
    fill_general(k);
    fill_plain(k);
    return k;
  }();
  return table;
}

#if defined(__x86_64__)
namespace {

const Kernels& avx2_kernels() {
  static const Kernels table = [] {
    Kernels k = plain_kernels();
    fill_avx2(k);
    return k;
  }();
  return table;
}

const Kernels& avx512_kernels() {
  static const Kernels table = [] {
    Kernels k = avx2_kernels();
    fill_avx512(k);
    if (__builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2")) fill_vbmi(k);
    return k;
  }();
  return table;
}

}  // namespace
#endif

const Kernels& kernels() {
#if defined(__x86_64__)
  switch (isa()) {
    case Isa::AVX512: return avx512_kernels();
    case Isa::AVX2: return avx2_kernels();
    default: break;
  }
#endif
  return plain_kernels();
}

}  // namespace stoker::pixel
