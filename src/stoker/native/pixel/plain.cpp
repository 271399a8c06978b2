// SPDX-License-Identifier: Apache-2.0
// Block kernels for the build's baseline instruction set (SSE2, NEON, or none).
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/simd.hpp"
#include "pixel/kernels.hpp"
#include "shared/element_normal.hpp"
#include "shared/element_random.hpp"
#include "shared/half.hpp"

namespace stoker::pixel {
namespace {

#define STOKER_VECTOR_BYTES 16
#include "base/vectors.ipp"

void load_f16(void* __restrict dst, const void* __restrict src, int n) {
  load_each_half(static_cast<float*>(dst), src, n);
}

void store_f16(void* __restrict dst, const void* __restrict src, int n) {
  store_each_half(dst, static_cast<const float*>(src), n);
}

V<uint64_t> multiply_words(V<uint64_t> x, uint32_t by) { return (x & 0xFFFFFFFFu) * uint64_t{by}; }

V<float> square_root(V<float> x) {
  for (int i = 0; i < kLanes<float>; ++i) x[i] = std::sqrt(x[i]);
  return x;
}

#include "pixel/loops.ipp"

template <int Size>
void reverse(void* __restrict dst, const void* __restrict src, int n) {
  reverse_each<Size>(static_cast<uint8_t*>(dst), static_cast<const uint8_t*>(src), n);
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
  k.reverse[1] = reverse<1>;
  k.reverse[2] = reverse<2>;
  k.reverse[3] = reverse<3>;
  k.reverse[4] = reverse<4>;
  k.reverse[6] = reverse<6>;
  k.reverse[8] = reverse<8>;
  k.reverse[12] = reverse<12>;
  k.reverse[16] = reverse<16>;
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
    if (__builtin_cpu_supports("fma")) fill_fma(k);
    return k;
  }();
  return table;
}

const Kernels& avx512_kernels() {
  static const Kernels table = [] {
    Kernels k = avx2_kernels();
    fill_avx512(k);
    if (__builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2") &&
        __builtin_cpu_supports("avx512vnni"))
      fill_vbmi(k);
    return k;
  }();
  return table;
}

}  // namespace
#elif defined(__aarch64__)
namespace {

const Kernels& neon_kernels() {
  static const Kernels table = [] {
    Kernels k = plain_kernels();
    fill_neon(k);
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
#elif defined(__aarch64__)
  if (isa() == Isa::NEON) return neon_kernels();
#endif
  return plain_kernels();
}

}  // namespace stoker::pixel
