// SPDX-License-Identifier: Apache-2.0
// What the decoder does with AVX-512 and VBMI2 (Ice Lake, Zen 4 and later): byte permutations and compression. Its
// arithmetic stays in 256 bits: with wider multiplications Ice Lake lowers its clock, by more than they save.
#pragma once
#if defined(__x86_64__)
#include <cstddef>
#include <cstdint>

#include "jpeg_huffman.hpp"
#include "jpeg_rows.hpp"
#include "simd.hpp"

namespace stoker::jpeg {

// Whether the AVX-512 forms may run, by machine and setting.
inline bool has_vbmi2() {
  static const bool supported = __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2");
  return supported && isa() == Isa::AVX512;
}

// Those of `RowKernels` that write pixels.
struct PixelWriters {
  decltype(RowKernels::ycc_to_rgb) ycc_to_rgb, ycc_to_bgr;
  decltype(RowKernels::interleave) interleave;
};
PixelWriters pixel_writers_vbmi2();

// Copies bytes without stuffing and moves both pointers, in steps of 64 bytes, while more than that are left and no
// marker comes. `out` may be written 64 bytes past what is copied.
void unstuff_vbmi2(const uint8_t*& p, const uint8_t* end, uint8_t*& out);

// `join_pairs` of jpeg_huffman.cpp.
void join_pairs_vbmi2(AcTable& table);

}  // namespace stoker::jpeg
#endif
