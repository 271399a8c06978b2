// SPDX-License-Identifier: Apache-2.0
// Interface between the parts of the register machine: bound instructions, and the table of block kernels of an
// instruction set.
#pragma once
#include <cstddef>
#include <cstdint>

#include "pixel/pixel.hpp"

namespace stoker::pixel {

// Register blocks are padded to a multiple of this many lanes. Vector kernels round the number of lanes up and need no
// tail. Loads set the lanes beyond the end to zero, so that later operations see harmless values there.
constexpr int kLaneUnit = 16;
constexpr int kSplatBytes = 64;  // a uniform as an operand: one vector of the widest instruction set

// Bound instruction. Operands are blocks of `lanes` elements or splats (step 0). `dst` is a block, or output memory for
// direct stores; in output memory `dst` is only aligned to its elements, and `lanes` is a multiple of kLaneUnit.
struct Micro {
  void (*run)(const Micro& m, int lanes) = nullptr;
  uint8_t* dst = nullptr;
  const uint8_t* arg[4] = {};
  uint8_t step[4] = {};            // 1: a block, 0: a splat
  double low = 0, high = 0;        // range of the dtype, for Cast
  const uint8_t* table = nullptr;  // for Lookup
  int* fault = nullptr;
};

using ComputeFn = void (*)(const Micro& m, int lanes);
// Convert n contiguous elements from memory's format to a register's, or back.
using ConvertFn = void (*)(void* dst, const void* src, int n);
// Move n interleaved pixels of 2, 3 or 4 channels to or from one register per channel.
using LoadGroupFn = void (*)(uint8_t* const* reg, const uint8_t* pixels, int n);
using StoreGroupFn = void (*)(uint8_t* pixels, const uint8_t* const* reg, int n);
// Split n interleaved pixels into planes, or interleave planes.
using DealFn = void (*)(uint8_t* const* planes, const uint8_t* pixels, int n);
using WeaveFn = void (*)(uint8_t* pixels, const uint8_t* const* planes, int n);
// Write n lanes that begin with `first` and increase by `step`.
using CountFn = void (*)(int32_t* dst, int32_t first, int32_t step, int n);
// Copy rows of contiguous bytes. `ahead_bytes` bytes at the offset `ahead` from each row are prefetched.
struct RowCopy {
  uint8_t* to;
  const uint8_t* from;
  int64_t rows, bytes, to_step, from_step, ahead, ahead_bytes;
};
using RowsFn = void (*)(const RowCopy& copy);
using LookupFn = void (*)(void* dst, const uint8_t* src, const void* table, int n);

// Weighted sum of three bytes in float: (((x0 * weight[0] + before) + x1 * weight[1]) + x2 * weight[2]) + after, every
// result rounded. The byte is the sum within 0..255, NaN as 0, rounded half to even, or cut off if `floors`.
struct Mix {
  float weight[3], before, after;
  bool floors;
};
constexpr int kMixed = 3;  // planes that are mixed
// Write `count` planes of n bytes, 1 or 3, from kMixed planes. The planes may be the same memory.
using MixFn = void (*)(uint8_t* const* to, const uint8_t* const* from, const Mix* mixes, int count, int n);

// F32 operations that can run in pairs, with the intermediate value in a vector register: pair[first][second] is (arg0
// first arg1) second arg2. Both results are rounded, as in two separate operations.
constexpr int kPaired = 3;
constexpr int kUnpaired = kPaired;  // in place of a first operation: none
constexpr int paired(Op op) { return op == Op::Add ? 0 : op == Op::Sub ? 1 : op == Op::Mul ? 2 : -1; }

// The same for n interleaved pixels of kMixed bytes, of which byte k of a sum is channels[k]: to bytes of their own (one
// sum) or to pixels (kMixed sums), which may be the same memory. The sums must be numbers below 2^31.
using MixPixelsFn = void (*)(uint8_t* to, const uint8_t* pixels, const uint8_t* channels, const Mix* mixes, int count,
                             int n);

constexpr int kTypes = 4;
constexpr int kDTypes = 13;
constexpr int kMaxGroup = 4;

// Block kernels of one instruction set; null where an operation does not exist. validate() uses the plain set to check
// whether an operation is legal.
struct Kernels {
  ComputeFn op[kOps][kTypes] = {};  // [op][type]
  ComputeFn pair[kPaired][kPaired] = {};
  ComputeFn whole = nullptr;           // F32 to the F32 of its Cast: whole, within `low` and `high` of a small integer
  ComputeFn pair_whole[kPaired] = {};  // [first]: the same for arg0 first arg1
  // [first or kUnpaired][second][third]: the same, then second and third with the next two operands.
  ComputeFn whole_pair[kPaired + 1][kPaired][kPaired] = {};
  ComputeFn cvt[kTypes][kTypes] = {};    // [from][type]
  ComputeFn ucvt[kTypes] = {};           // [type]
  ComputeFn cast[kTypes][kDTypes] = {};  // [from][dtype]
  ComputeFn ucast[kDTypes] = {};
  ComputeFn wrap[kTypes][kDTypes] = {};
  ComputeFn table[kDTypes] = {};                            // Lookup; [dtype of the table]
  ConvertFn load[kDTypes][kTypes] = {};                     // the register may be F32 for small integers: a fused Cvt
  ConvertFn store[kDTypes][kTypes] = {};                    // the register may be F32 for small integers: a fused Cast
  LoadGroupFn load_group[kMaxGroup + 1][kTypes] = {};       // U8 pixels, [channels][register type]
  LoadGroupFn load_group_back[kMaxGroup + 1][kTypes] = {};  // the last pixel first; optional
  StoreGroupFn store_group[kMaxGroup + 1][kTypes] = {};
  DealFn deal[9][kMaxGroup + 1] = {};  // [element size][channels]
  WeaveFn weave[9][kMaxGroup + 1] = {};
  RowsFn rows = nullptr;  // optional; for rows of `least_row` bytes or more
  int least_row = 0;
  ConvertFn reverse[17] = {};  // [bytes of an element or a pixel]: dst[i] = src[n - 1 - i]
  CountFn count = nullptr;
  LookupFn lookup[9] = {};       // [element size of the result]
  LookupFn lookup_past[9] = {};  // with non-temporal stores, for data that is read much later; optional; needs a fence
  MixFn mix = nullptr;           // optional
  MixPixelsFn mix_pixels = nullptr;  // optional
  int store_alignment = 1;           // direct stores of whole vectors do not pay off below this alignment
};

// Each function overwrites the kernels that it implements better.
void fill_general(Kernels& k);  // 64-bit ints, integer division, transcendental functions: scalar code
void fill_plain(Kernels& k);
#if defined(__x86_64__)
void fill_avx2(Kernels& k);
void fill_fma(Kernels& k);  // on top of AVX2
void fill_avx512(Kernels& k);
void fill_vbmi(Kernels& k);  // on top of AVX-512
#elif defined(__aarch64__)
void fill_neon(Kernels& k);
#endif

const Kernels& kernels();  // for the current isa()
const Kernels& plain_kernels();

template <class T>
constexpr Type register_type() {
  if constexpr (sizeof(T) == 4) return T(0.5) == T(0) ? Type::I32 : Type::F32;
  else return T(0.5) == T(0) ? Type::I64 : Type::F64;
}
constexpr int register_size(Type t) { return t == Type::I32 || t == Type::F32 ? 4 : 8; }
constexpr int at(Type t) { return static_cast<int>(t); }
constexpr int at(Op o) { return static_cast<int>(o); }
constexpr int at(DType d) { return static_cast<int>(d); }

}  // namespace stoker::pixel
