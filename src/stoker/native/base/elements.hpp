// SPDX-License-Identifier: Apache-2.0
// Element types of tensors as C++ types, and their values.
#pragma once
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "base/tensor.hpp"
#include "shared/half.hpp"

namespace stoker {

// Element types that C++ lacks.
struct Truth {
  uint8_t byte;
};
struct Half {
  uint16_t bits;
};
struct BFloat {
  uint16_t bits;
};

// Call visit(T{}) with the C++ type of the elements.
template <class Visit>
decltype(auto) with_type(DType t, Visit&& visit) {
  switch (t) {
    case DType::Bool: return visit(Truth{});
    case DType::U8: return visit(uint8_t{});
    case DType::U16: return visit(uint16_t{});
    case DType::U32: return visit(uint32_t{});
    case DType::U64: return visit(uint64_t{});
    case DType::I8: return visit(int8_t{});
    case DType::I16: return visit(int16_t{});
    case DType::I32: return visit(int32_t{});
    case DType::I64: return visit(int64_t{});
    case DType::F16: return visit(Half{});
    case DType::BF16: return visit(BFloat{});
    case DType::F32: return visit(float{});
    default: return visit(double{});
  }
}

// Read an element; the memory may be unaligned.
template <class T>
inline T load_element(const void* from) {
  T x;
  std::memcpy(&x, from, sizeof x);
  return x;
}
template <class T>
inline void store_element(void* to, T x) {
  std::memcpy(to, &x, sizeof x);
}

inline double number_of(Truth x) { return x.byte != 0; }
inline double number_of(Half x) { return float_from_half(x.bits); }
inline double number_of(BFloat x) { return float_from_bfloat(x.bits); }
template <class T>
  requires std::is_arithmetic_v<T>
inline double number_of(T x) {
  return static_cast<double>(x);
}

// Type in which values are computed: 16-bit floats are computed in float32, which represents all of them.
template <class T>
inline auto computed_from(T x) {
  if constexpr (std::is_same_v<T, Truth>) return x.byte;
  else if constexpr (std::is_same_v<T, Half>) return float_from_half(x.bits);
  else if constexpr (std::is_same_v<T, BFloat>) return float_from_bfloat(x.bits);
  else return x;
}
template <class T>
using Computed = decltype(computed_from(T{}));

}  // namespace stoker
