// SPDX-License-Identifier: Apache-2.0
// Block kernels of operations that are rare or cannot be vectorized: 64-bit casts, integer division and powers, and the
// transcendental functions. Scalar code that runs exactly the existing lanes.
#include <cstring>
#include <type_traits>

#include "pixel/kernels.hpp"
#include "shared/pixel_scalar.hpp"

namespace stoker::pixel {
namespace {

template <class R, class T, class F>
inline void map1(const Micro& m, int lanes, F f) {
  const auto* a = reinterpret_cast<const T*>(m.arg[0]);
  auto* d = reinterpret_cast<R*>(m.dst);
  const ptrdiff_t sa = m.step[0];
  for (int i = 0; i < lanes; ++i, a += sa) d[i] = f(*a);
}

template <class R, class T, class F>
inline void map2(const Micro& m, int lanes, F f) {
  const auto* a = reinterpret_cast<const T*>(m.arg[0]);
  const auto* b = reinterpret_cast<const T*>(m.arg[1]);
  auto* d = reinterpret_cast<R*>(m.dst);
  const ptrdiff_t sa = m.step[0], sb = m.step[1];
  for (int i = 0; i < lanes; ++i, a += sa, b += sb) d[i] = f(*a, *b);
}

// Functions compute in double and round once to the register's type.
template <class T, double (*F)(double)>
void function1(const Micro& m, int lanes) {
  map1<T, T>(m, lanes, [](T x) { return static_cast<T>(F(static_cast<double>(x))); });
}

template <class T, double (*F)(double, double)>
void function2(const Micro& m, int lanes) {
  map2<T, T>(m, lanes, [](T x, T y) { return static_cast<T>(F(static_cast<double>(x), static_cast<double>(y))); });
}

using namespace scalar;

template <class T>
void fill_functions(Kernels& k) {
  const int t = at(register_type<T>());
  const auto set = [&](Op op, ComputeFn f) { k.op[at(op)][t] = f; };
  set(Op::FMod, function2<T, xm::fmod>);
  set(Op::Pow, function2<T, xm::pow>);
  set(Op::Atan2, function2<T, xm::atan2>);
  set(Op::Floor, function1<T, round_down>);
  set(Op::Ceil, function1<T, round_up>);
  set(Op::Trunc, function1<T, truncate>);
  set(Op::Round, function1<T, round_nearest>);
  set(Op::Sqrt, function1<T, square_root>);
  set(Op::Rsqrt, function1<T, inverse_root>);
  set(Op::Cbrt, function1<T, xm::cbrt>);
  set(Op::Exp, function1<T, xm::exp>);
  set(Op::Log, function1<T, xm::log>);
  set(Op::Log2, function1<T, xm::log2>);
  set(Op::Log10, function1<T, xm::log10>);
  set(Op::Sin, function1<T, xm::sin>);
  set(Op::Cos, function1<T, xm::cos>);
  set(Op::Tan, function1<T, xm::tan>);
  set(Op::Asin, function1<T, xm::asin>);
  set(Op::Acos, function1<T, xm::acos>);
  set(Op::Atan, function1<T, xm::atan>);
  set(Op::Sinh, function1<T, xm::sinh>);
  set(Op::Cosh, function1<T, xm::cosh>);
  set(Op::Tanh, function1<T, xm::tanh>);
  set(Op::Asinh, function1<T, xm::asinh>);
  set(Op::Acosh, function1<T, xm::acosh>);
  set(Op::Atanh, function1<T, xm::atanh>);
}

template <class T, bool Remainder>
void divide(const Micro& m, int lanes) {
  bool fault = false;
  map2<T, T>(m, lanes, [&](T a, T b) { return integer_divide<T, Remainder>(a, b, fault); });
  if (fault) *m.fault = 1;
}

template <class T>
void power(const Micro& m, int lanes) {
  map2<T, T>(m, lanes, integer_power<T>);
}

template <class T>
void fill_integers(Kernels& k) {
  const int t = at(register_type<T>());
  k.op[at(Op::IDiv)][t] = divide<T, false>;
  k.op[at(Op::IMod)][t] = divide<T, true>;
  k.op[at(Op::IPow)][t] = power<T>;
  if constexpr (sizeof(T) == 8) {
    k.op[at(Op::UDiv)][t] = divide<uint64_t, false>;
    k.op[at(Op::UMod)][t] = divide<uint64_t, true>;
    k.op[at(Op::UPow)][t] = power<uint64_t>;
  }
}

template <class T, int Which>
void compare(const Micro& m, int lanes) {
  map2<int32_t, T>(m, lanes, [](T a, T b) -> int32_t {
    switch (Which) {
      case 0: return a == b;
      case 1: return a != b;
      case 2: return a < b;
      case 3: return a <= b;
      case 4: return a > b;
      default: return a >= b;
    }
  });
}

template <class T>
void fill_compares(Kernels& k, Op first, int type) {
  int op = at(first);
  if (first == Op::Eq) {
    k.op[op++][type] = compare<T, 0>;
    k.op[op++][type] = compare<T, 1>;
  }
  k.op[op++][type] = compare<T, 2>;
  k.op[op++][type] = compare<T, 3>;
  k.op[op++][type] = compare<T, 4>;
  k.op[op++][type] = compare<T, 5>;
}

// Lookup: each lane chooses its element. A negative index is above any length as an unsigned number.
template <class Memory, class Register, class F>
void look_up(const Micro& m, int lanes, F value) {
  map2<Register, int32_t>(m, lanes, [&](int32_t index, int32_t length) -> Register {
    if (static_cast<uint32_t>(index) >= static_cast<uint32_t>(length)) return 0;
    Memory x;  // memory may be unaligned
    std::memcpy(&x, m.table + static_cast<int64_t>(index) * static_cast<int64_t>(sizeof x), sizeof x);
    return static_cast<Register>(value(x));
  });
}

template <class Memory, class Register>
void table(const Micro& m, int lanes) {
  look_up<Memory, Register>(m, lanes, [](Memory x) { return x; });
}
void table_f16(const Micro& m, int lanes) { look_up<uint16_t, float>(m, lanes, float_from_half); }
void table_bf16(const Micro& m, int lanes) { look_up<uint16_t, float>(m, lanes, float_from_bfloat); }

void fill_tables(ComputeFn* row) {
  row[at(DType::Bool)] = row[at(DType::U8)] = table<uint8_t, int32_t>;
  row[at(DType::U16)] = table<uint16_t, int32_t>;
  row[at(DType::U32)] = table<uint32_t, int64_t>;
  row[at(DType::U64)] = row[at(DType::I64)] = table<int64_t, int64_t>;
  row[at(DType::I8)] = table<int8_t, int32_t>;
  row[at(DType::I16)] = table<int16_t, int32_t>;
  row[at(DType::I32)] = table<int32_t, int32_t>;
  row[at(DType::F16)] = table_f16;
  row[at(DType::BF16)] = table_bf16;
  row[at(DType::F32)] = table<float, float>;
  row[at(DType::F64)] = table<double, double>;
}

void select8(const Micro& m, int lanes) {
  const auto* a = reinterpret_cast<const uint64_t*>(m.arg[0]);
  const auto* b = reinterpret_cast<const uint64_t*>(m.arg[1]);
  const auto* c = reinterpret_cast<const int32_t*>(m.arg[2]);
  auto* d = reinterpret_cast<uint64_t*>(m.dst);
  const ptrdiff_t sa = m.step[0], sb = m.step[1], sc = m.step[2];
  for (int i = 0; i < lanes; ++i, a += sa, b += sb, c += sc) d[i] = *c ? *a : *b;
}

template <class To, class From>
void cvt(const Micro& m, int lanes) {
  map1<To, From>(m, lanes, [](From x) { return convert<To, From>(x); });
}

// `Register` holds the dtype's values: U64 is kept as the bits of an I64.
template <class Register, class Memory, class From>
void cast(const Micro& m, int lanes) {
  map1<Register, From>(m, lanes, [](From x) { return static_cast<Register>(in_range<Memory, From>(x)); });
}

template <class From>
void cast_half(const Micro& m, int lanes) {
  map1<float, From>(m, lanes, in_half<From>);
}

template <class From>
void cast_bfloat(const Micro& m, int lanes) {
  map1<float, From>(m, lanes, in_bfloat<From>);
}

template <class From>
void fill_cast(ComputeFn* row) {
  row[at(DType::Bool)] = cast<int32_t, bool, From>;
  row[at(DType::U8)] = cast<int32_t, uint8_t, From>;
  row[at(DType::U16)] = cast<int32_t, uint16_t, From>;
  row[at(DType::U32)] = cast<int64_t, uint32_t, From>;
  row[at(DType::U64)] = cast<int64_t, uint64_t, From>;
  row[at(DType::I8)] = cast<int32_t, int8_t, From>;
  row[at(DType::I16)] = cast<int32_t, int16_t, From>;
  row[at(DType::I32)] = cast<int32_t, int32_t, From>;
  row[at(DType::I64)] = cast<int64_t, int64_t, From>;
  row[at(DType::F16)] = cast_half<From>;
  row[at(DType::BF16)] = cast_bfloat<From>;
  row[at(DType::F32)] = cast<float, float, From>;
  row[at(DType::F64)] = cast<double, double, From>;
}

template <class Register, class Memory, class From>
void wrap(const Micro& m, int lanes) {
  map1<Register, From>(m, lanes, [](From x) { return static_cast<Register>(wrapped<Memory, From>(x)); });
}

template <class From>
void fill_wrap(ComputeFn* row) {
  row[at(DType::Bool)] = wrap<int32_t, bool, From>;
  row[at(DType::U8)] = wrap<int32_t, uint8_t, From>;
  row[at(DType::U16)] = wrap<int32_t, uint16_t, From>;
  row[at(DType::U32)] = wrap<int64_t, uint32_t, From>;
  row[at(DType::U64)] = wrap<int64_t, uint64_t, From>;
  row[at(DType::I8)] = wrap<int32_t, int8_t, From>;
  row[at(DType::I16)] = wrap<int32_t, int16_t, From>;
  row[at(DType::I32)] = wrap<int32_t, int32_t, From>;
  row[at(DType::I64)] = wrap<int64_t, int64_t, From>;
}

template <class From>
void fill_cvt(Kernels& k) {
  ComputeFn* row = k.cvt[at(register_type<From>())];
  row[at(Type::I32)] = cvt<int32_t, From>;
  row[at(Type::I64)] = cvt<int64_t, From>;
  row[at(Type::F32)] = cvt<float, From>;
  row[at(Type::F64)] = cvt<double, From>;
}

}  // namespace

void fill_general(Kernels& k) {
  fill_functions<float>(k);
  fill_functions<double>(k);
  fill_integers<int32_t>(k);
  fill_integers<int64_t>(k);
  fill_compares<int64_t>(k, Op::Eq, at(Type::I64));
  fill_compares<double>(k, Op::Eq, at(Type::F64));
  fill_compares<uint64_t>(k, Op::ULt, at(Type::I64));
  k.op[at(Op::Select)][at(Type::I64)] = k.op[at(Op::Select)][at(Type::F64)] = select8;
  fill_cvt<int32_t>(k);
  fill_cvt<int64_t>(k);
  fill_cvt<float>(k);
  fill_cvt<double>(k);
  k.ucvt[at(Type::F32)] = cvt<float, uint64_t>;
  k.ucvt[at(Type::F64)] = cvt<double, uint64_t>;
  fill_cast<int32_t>(k.cast[at(Type::I32)]);
  fill_cast<int64_t>(k.cast[at(Type::I64)]);
  fill_cast<float>(k.cast[at(Type::F32)]);
  fill_cast<double>(k.cast[at(Type::F64)]);
  fill_cast<uint64_t>(k.ucast);
  fill_wrap<int32_t>(k.wrap[at(Type::I32)]);
  fill_wrap<int64_t>(k.wrap[at(Type::I64)]);
  fill_tables(k.table);
}

}  // namespace stoker::pixel
