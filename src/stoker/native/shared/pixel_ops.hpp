// SPDX-License-Identifier: Apache-2.0
// Operations of pixel programs, for the CPU's register machine and the GPU's interpreter.
#pragma once
#include <cstdint>

namespace stoker::pixel {

// Operations. "a", "b", "c" are the operands, each a register or a uniform; `type` is the type of the operands
// unless said otherwise. Integers wrap. The U forms read an I64 register as unsigned (64 bits); I32 never needs
// them, as every dtype that it holds fits with its sign.
//
//   Load        dst = input[port] (channel); type = type_of(dtype); dtype = the port's. Bool bytes must be 0 or 1
//   Store       output[port] (channel) = a; type = type_of(dtype); the value must be in dtype's range (Cast or
//               Wrap before), except F16 and BF16, which are rounded here, half to even
//   Coordinate  dst = the coordinate that input[port] stands at (I32); see shared/coordinate.hpp
//   Random      dst = 32 random bits (I32) of element a in the stream (b, c), all I32; see shared/element_random.hpp
//   Normal      dst = a number (F32) from the standard normal distribution for element a in the stream (b, c), all
//               three I32; see shared/element_normal.hpp
//   Lookup      dst = element a (I32) of input[port], which is a table of b elements (a uniform, I32); 0 if there is
//               none. type = type_of(dtype); dtype = the port's. No other operation uses the port
//   Copy        dst = a (also turns a uniform into a register)
//   Add Sub Mul; Div (floats only)
//   IDiv IMod   signed, truncating, C's remainder; MIN / -1 wraps (remainder 0). By zero: 0, and the run faults
//   UDiv UMod   I64 as unsigned; the same rule for zero
//   FMod        floats: C's fmod (exact; sign of a)
//   Pow         floats: C's pow.   IPow: integers, wrapping; b < 0 gives 0 except 1**b = 1 and (-1)**b = +-1;
//   UPow        b read as unsigned
//   Min Max     b < a ? b : a and a < b ? b : a: a NaN in a stays, a NaN in b gives a.   UMin UMax
//   Neg Abs; Not And Or Xor (bitwise, ints); Shl Shr UShr (counts masked to the register's width)
//   Eq Ne Lt Le Gt Ge ULt ULe UGt UGe   dst is I32, 0 or 1
//   Select      dst = c ? a : b; c is I32 (any nonzero is true)
//   Floor Ceil Trunc Round (half to even) Sqrt Rsqrt Cbrt Exp Log Log2 Log10 Sin Cos Tan Asin Acos Atan Sinh Cosh
//   Tanh Asinh Acosh Atanh (floats), Atan2 (a = y, b = x). Computed in double and rounded once; never from libm,
//               so all machines give the same bits
//   Cvt         from `from` to `type`: int to float rounds to nearest even, float to int truncates (saturating, NaN
//               gives 0), I64 to I32 wraps.  UCvt: from I64 as unsigned to a float
//   Cast        from `from` to the range of `dtype`: round half to even, saturate, NaN to 0; dst has
//               type_of(dtype) = type. F16, BF16: rounded to that precision, kept in F32. Bool: != 0.
//   UCast       as Cast, from I64 as unsigned
//   Wrap        ints: from `from`, modulo 2^bits of `dtype`; dst has type_of(dtype) = type. Bool: & 1
// clang-format off
#define STOKER_PIXEL_OPS(X)                                                                                       \
  X(Load) X(Store) X(Copy) X(Add) X(Sub) X(Mul) X(Div) X(IDiv) X(IMod) X(UDiv) X(UMod) X(FMod) X(Pow) X(IPow)     \
  X(UPow) X(Min) X(Max) X(UMin) X(UMax) X(Neg) X(Abs) X(Not) X(And) X(Or) X(Xor) X(Shl) X(Shr) X(UShr)            \
  X(Eq) X(Ne) X(Lt) X(Le) X(Gt) X(Ge) X(ULt) X(ULe) X(UGt) X(UGe) X(Select)                                       \
  X(Floor) X(Ceil) X(Trunc) X(Round) X(Sqrt) X(Rsqrt) X(Cbrt) X(Exp) X(Log) X(Log2) X(Log10) X(Sin) X(Cos) X(Tan) \
  X(Asin) X(Acos) X(Atan) X(Sinh) X(Cosh) X(Tanh) X(Asinh) X(Acosh) X(Atanh) X(Atan2)                             \
  X(Cvt) X(UCvt) X(Cast) X(UCast) X(Wrap) X(Coordinate) X(Random) X(Normal) X(Lookup)

enum class Op : uint8_t {
#define STOKER_PIXEL_NAME(name) name,
  STOKER_PIXEL_OPS(STOKER_PIXEL_NAME)
#undef STOKER_PIXEL_NAME
  kCount
};
// clang-format on

}  // namespace stoker::pixel
