// SPDX-License-Identifier: Apache-2.0
// What the machine's parts agree on: bound instructions, and the table of block kernels of one instruction set.
#pragma once
#include <cstddef>
#include <cstdint>

#include "pixel.hpp"

namespace stoker::pixel {

// Register blocks are padded to a multiple of this many lanes, so that vector kernels need no tail: they round the
// number of lanes up. Lanes beyond the end hold zeros after loads, hence harmless values after anything else.
constexpr int kLaneUnit = 16;
constexpr int kSplatBytes = 64;  // a uniform as an operand: one vector of the widest instruction set

// A bound instruction: args are blocks of `lanes` elements, or splats (step 0). dst is a block, or memory to be
// written at once: then aligned to its elements only, and lanes is a multiple of kLaneUnit.
struct Micro {
  void (*run)(const Micro& m, int lanes) = nullptr;
  uint8_t* dst = nullptr;
  const uint8_t* arg[3] = {};
  uint8_t step[3] = {};        // 1: a block, 0: a splat
  double low = 0, high = 0;    // Cast: dtype's range
  int* fault = nullptr;
};

using ComputeFn = void (*)(const Micro& m, int lanes);
// n contiguous elements, from memory's form to a register's or back.
using ConvertFn = void (*)(void* dst, const void* src, int n);
// n interleaved pixels of 2, 3 or 4 channels, to or from as many registers.
using LoadGroupFn = void (*)(uint8_t* const* reg, const uint8_t* pixels, int n);
using StoreGroupFn = void (*)(uint8_t* pixels, const uint8_t* const* reg, int n);
// Planes of n elements, and pixels that interleave them.
using DealFn = void (*)(uint8_t* const* planes, const uint8_t* pixels, int n);
using WeaveFn = void (*)(uint8_t* pixels, const uint8_t* const* planes, int n);
using LookupFn = void (*)(void* dst, const uint8_t* src, const void* table, int n);

// F32 operations that may run in pairs, the value between them staying in a vector: pair[first][second] is
// (arg0 first arg1) second arg2. Both results are rounded, as if they ran one by one.
constexpr int kPaired = 3;
constexpr int paired(Op op) { return op == Op::Add ? 0 : op == Op::Sub ? 1 : op == Op::Mul ? 2 : -1; }

constexpr int kTypes = 4;
constexpr int kDTypes = 13;
constexpr int kMaxGroup = 4;

// Null where there is no such operation; validate() reads the plain table to know what is legal.
struct Kernels {
  ComputeFn op[kOps][kTypes] = {};           // [op][type]
  ComputeFn pair[kPaired][kPaired] = {};
  ComputeFn cvt[kTypes][kTypes] = {};        // [from][type]
  ComputeFn ucvt[kTypes] = {};               // [type]
  ComputeFn cast[kTypes][kDTypes] = {};      // [from][dtype]
  ComputeFn ucast[kDTypes] = {};
  ComputeFn wrap[kTypes][kDTypes] = {};
  ConvertFn load[kDTypes][kTypes] = {};      // the register may be F32 for small ints: a fused Cvt
  ConvertFn store[kDTypes][kTypes] = {};     // the register may be F32 for small ints: a fused Cast
  LoadGroupFn load_group[kMaxGroup + 1][kTypes] = {};    // U8 pixels, [channels][register type]
  LoadGroupFn load_group_back[kMaxGroup + 1][kTypes] = {};  // the last pixel first; optional
  StoreGroupFn store_group[kMaxGroup + 1][kTypes] = {};
  DealFn deal[9][kMaxGroup + 1] = {};        // [element size][channels]
  WeaveFn weave[9][kMaxGroup + 1] = {};
  ConvertFn reverse[9] = {};                 // [element size]: dst[i] = src[n - 1 - i]
  LookupFn lookup[9] = {};                   // [element size of the result]
  LookupFn lookup_past[9] = {};              // past the caches, for what is read much later; optional; needs a fence
  int store_alignment = 1;                   // below which stores of whole vectors straight to memory do not pay
};

// Each overwrites what it does better.
void fill_general(Kernels& k);  // 64-bit ints, integer division, transcendental functions: scalar code
void fill_plain(Kernels& k);
#if defined(__x86_64__)
void fill_avx2(Kernels& k);
void fill_avx512(Kernels& k);
void fill_vbmi(Kernels& k);  // on top of AVX-512
#endif

const Kernels& kernels();        // of the current isa()
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
