// SPDX-License-Identifier: Apache-2.0
// AVX-512, VBMI2 and VNNI forms of the decoder (Ice Lake, Zen 4 and later), based on byte permutations and compression.
// Arithmetic uses 256 bits: with wider multiplications Ice Lake lowers its clock by more than they save.
#pragma once
#if defined(__x86_64__)
#include <cstddef>
#include <cstdint>

#include "base/simd.hpp"
#include "jpeg/huffman.hpp"
#include "jpeg/rows.hpp"

namespace stoker::jpeg {

// Return whether the AVX-512 forms may run, according to machine and setting.
inline bool has_vbmi2() {
  static const bool supported = __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2") &&
                                __builtin_cpu_supports("avx512vnni");
  return supported && isa() == Isa::AVX512;
}

// The RowKernels that write pixels.
struct PixelWriters {
  decltype(RowKernels::ycc_to_rgb) ycc_to_rgb, ycc_to_bgr;
  decltype(RowKernels::interleave) interleave;
};
PixelWriters pixel_writers_vbmi2();

// Copy bytes without stuffing and move both pointers, in steps of 64 bytes, while more bytes than that are left and no
// marker follows. Up to 64 bytes past the copied ones may be written in `out`.
void unstuff_vbmi2(const uint8_t*& p, const uint8_t* end, uint8_t*& out);

// The `join_pairs` of jpeg/huffman.cpp with VBMI2.
void join_pairs_vbmi2(AcTable& table);

}  // namespace stoker::jpeg
#endif
