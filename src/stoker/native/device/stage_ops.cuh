// SPDX-License-Identifier: Apache-2.0
// Operations of pixel programs under the names that generated code calls. shared/pixel_scalar.hpp defines their
// meaning; where the GPU has an instruction with exactly this meaning, it is used.
#pragma once
#include "shared/device.cuh"
#include "shared/element_normal.hpp"
#include "shared/element_random.hpp"
#include "shared/one_lane.hpp"
#include "shared/pixel_scalar.hpp"

namespace stoker::stage {

// Element types: representation in memory, range, and the type in which they are computed.
template <class M, class V, class R>
struct Element {
  using Memory = M;  // in memory
  using Value = V;   // the range; bool for truth values
  using Register = R;
};
using Bool = Element<uint8_t, bool, int32_t>;
using U8 = Element<uint8_t, uint8_t, int32_t>;
using U16 = Element<uint16_t, uint16_t, int32_t>;
using U32 = Element<uint32_t, uint32_t, int64_t>;
using U64 = Element<int64_t, uint64_t, int64_t>;  // kept as the bits of an int64
using I8 = Element<int8_t, int8_t, int32_t>;
using I16 = Element<int16_t, int16_t, int32_t>;
using I32 = Element<int32_t, int32_t, int32_t>;
using I64 = Element<int64_t, int64_t, int64_t>;
struct F16 : Element<uint16_t, void, float> {};
struct BF16 : Element<uint16_t, void, float> {};
using F32 = Element<float, float, float>;
using F64 = Element<double, double, double>;

namespace op {

using namespace pixel::scalar;

template <class T>
constexpr bool kFloat = std::is_floating_point_v<T>;
template <class T>
using Unsigned = std::make_unsigned_t<T>;

#if defined(__CUDA_ARCH__)
inline float half_to_float(uint16_t h) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
  return f;
}
inline uint16_t float_to_half(float f) {
  uint16_t h;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
  return h;
}
#else
inline float half_to_float(uint16_t h) { return float_from_half(h); }
inline uint16_t float_to_half(float f) { return half_from_float(f); }
#endif

// Integer arithmetic must wrap, so it uses unsigned numbers.
template <class T>
inline T add(T a, T b) {
  if constexpr (kFloat<T>) return a + b;
  else return static_cast<T>(static_cast<Unsigned<T>>(a) + static_cast<Unsigned<T>>(b));
}
template <class T>
inline T sub(T a, T b) {
  if constexpr (kFloat<T>) return a - b;
  else return static_cast<T>(static_cast<Unsigned<T>>(a) - static_cast<Unsigned<T>>(b));
}
template <class T>
inline T mul(T a, T b) {
  if constexpr (kFloat<T>) return a * b;
  else return static_cast<T>(static_cast<Unsigned<T>>(a) * static_cast<Unsigned<T>>(b));
}
template <class T>
inline T div(T a, T b) {
  return a / b;
}
template <class T>
inline T idiv(T a, T b, bool& fault) {
  return integer_divide<T, false>(a, b, fault);
}
template <class T>
inline T imod(T a, T b, bool& fault) {
  return integer_divide<T, true>(a, b, fault);
}
inline int64_t udiv(int64_t a, int64_t b, bool& fault) {
  return static_cast<int64_t>(
      integer_divide<uint64_t, false>(static_cast<uint64_t>(a), static_cast<uint64_t>(b), fault));
}
inline int64_t umod(int64_t a, int64_t b, bool& fault) {
  return static_cast<int64_t>(
      integer_divide<uint64_t, true>(static_cast<uint64_t>(a), static_cast<uint64_t>(b), fault));
}
template <class T>
inline T ipow(T a, T b) {
  return integer_power<T>(a, b);
}
inline int64_t upow(int64_t a, int64_t b) {
  return static_cast<int64_t>(integer_power<uint64_t>(static_cast<uint64_t>(a), static_cast<uint64_t>(b)));
}
template <class T>
inline T min(T a, T b) {
  return b < a ? b : a;
}
template <class T>
inline T max(T a, T b) {
  return a < b ? b : a;
}
inline int64_t umin(int64_t a, int64_t b) { return static_cast<uint64_t>(b) < static_cast<uint64_t>(a) ? b : a; }
inline int64_t umax(int64_t a, int64_t b) { return static_cast<uint64_t>(a) < static_cast<uint64_t>(b) ? b : a; }
template <class T>
inline T neg(T a) {
  if constexpr (kFloat<T>) return -a;
  else return static_cast<T>(0 - static_cast<Unsigned<T>>(a));
}
template <class T>
inline T abs(T a) {
  return a < 0 ? neg(a) : a;
}
template <>
inline double abs(double a) {
  return std::fabs(a);
}
template <>
inline float abs(float a) {
  return std::fabs(a);
}
template <class T>
inline T bit_not(T a) {
  return ~a;
}
template <class T>
inline T bit_and(T a, T b) {
  return a & b;
}
template <class T>
inline T bit_or(T a, T b) {
  return a | b;
}
template <class T>
inline T bit_xor(T a, T b) {
  return a ^ b;
}
template <class T>
constexpr T kCountMask = static_cast<T>(8 * sizeof(T) - 1);
template <class T>
inline T shl(T a, T b) {
  return static_cast<T>(static_cast<Unsigned<T>>(a) << (b & kCountMask<T>));
}
template <class T>
inline T shr(T a, T b) {
  return a >> (b & kCountMask<T>);
}
template <class T>
inline T ushr(T a, T b) {
  return static_cast<T>(static_cast<Unsigned<T>>(a) >> (b & kCountMask<T>));
}

template <class T>
inline int32_t eq(T a, T b) {
  return a == b;
}
template <class T>
inline int32_t ne(T a, T b) {
  return a != b;
}
template <class T>
inline int32_t lt(T a, T b) {
  return a < b;
}
template <class T>
inline int32_t le(T a, T b) {
  return a <= b;
}
template <class T>
inline int32_t gt(T a, T b) {
  return a > b;
}
template <class T>
inline int32_t ge(T a, T b) {
  return a >= b;
}
inline int32_t ult(int64_t a, int64_t b) { return static_cast<uint64_t>(a) < static_cast<uint64_t>(b); }
inline int32_t ule(int64_t a, int64_t b) { return static_cast<uint64_t>(a) <= static_cast<uint64_t>(b); }
inline int32_t ugt(int64_t a, int64_t b) { return static_cast<uint64_t>(a) > static_cast<uint64_t>(b); }
inline int32_t uge(int64_t a, int64_t b) { return static_cast<uint64_t>(a) >= static_cast<uint64_t>(b); }
template <class T>
inline T select(T a, T b, int32_t c) {
  return c ? a : b;
}

inline int32_t random(int32_t element, int32_t key, int32_t stream) {
  return static_cast<int32_t>(
      element_random::word(static_cast<uint32_t>(element), static_cast<uint32_t>(key), static_cast<uint32_t>(stream)));
}

// Functions compute in double and round once to the register's type. Functions that the GPU rounds correctly in float
// give the same result.
#if defined(__CUDA_ARCH__)
inline float floor(float x) { return ::floorf(x); }
inline float ceil(float x) { return ::ceilf(x); }
inline float trunc(float x) { return ::truncf(x); }
inline float round(float x) { return ::rintf(x); }
inline float sqrt(float x) { return __fsqrt_rn(x); }
#else
inline float floor(float x) { return static_cast<float>(round_down(static_cast<double>(x))); }
inline float ceil(float x) { return static_cast<float>(round_up(static_cast<double>(x))); }
inline float trunc(float x) { return static_cast<float>(truncate(static_cast<double>(x))); }
inline float round(float x) { return static_cast<float>(round_nearest(static_cast<double>(x))); }
inline float sqrt(float x) { return static_cast<float>(square_root(static_cast<double>(x))); }
#endif
inline double floor(double x) { return round_down(x); }
inline double ceil(double x) { return round_up(x); }
inline double trunc(double x) { return truncate(x); }
inline double round(double x) { return round_nearest(x); }
inline double sqrt(double x) { return square_root(x); }

struct NormalLane : xm::OneLane {
  static F square_root(F x) { return op::sqrt(x); }
};

inline float normal(int32_t element, int32_t key, int32_t stream) {
  const auto words =
      element_random::words(static_cast<uint32_t>(element), static_cast<uint32_t>(key), static_cast<uint32_t>(stream));
  return element_random::normal<NormalLane>(static_cast<int32_t>(words.first), static_cast<int32_t>(words.second));
}

#define STOKER_FUNCTION(name, function)                      \
  template <class T>                                         \
  inline T name(T x) {                                       \
    return static_cast<T>(function(static_cast<double>(x))); \
  }
STOKER_FUNCTION(rsqrt, inverse_root)
STOKER_FUNCTION(cbrt, xm::cbrt)
STOKER_FUNCTION(exp, xm::exp)
STOKER_FUNCTION(log, xm::log)
STOKER_FUNCTION(log2, xm::log2)
STOKER_FUNCTION(log10, xm::log10)
STOKER_FUNCTION(sin, xm::sin)
STOKER_FUNCTION(cos, xm::cos)
STOKER_FUNCTION(tan, xm::tan)
STOKER_FUNCTION(asin, xm::asin)
STOKER_FUNCTION(acos, xm::acos)
STOKER_FUNCTION(atan, xm::atan)
STOKER_FUNCTION(sinh, xm::sinh)
STOKER_FUNCTION(cosh, xm::cosh)
STOKER_FUNCTION(tanh, xm::tanh)
STOKER_FUNCTION(asinh, xm::asinh)
STOKER_FUNCTION(acosh, xm::acosh)
STOKER_FUNCTION(atanh, xm::atanh)
#undef STOKER_FUNCTION
#define STOKER_FUNCTION(name, function)                                              \
  template <class T>                                                                 \
  inline T name(T x, T y) {                                                          \
    return static_cast<T>(function(static_cast<double>(x), static_cast<double>(y))); \
  }
STOKER_FUNCTION(fmod, xm::fmod)
STOKER_FUNCTION(pow, xm::pow)
STOKER_FUNCTION(atan2, xm::atan2)
#undef STOKER_FUNCTION

template <class To, class From>
inline To cvt(From x) {
  return convert<To, From>(x);
}
template <class To>
inline To ucvt(int64_t x) {
  return convert<To, uint64_t>(static_cast<uint64_t>(x));
}

template <class E, class From>
inline typename E::Register cast(From x) {
  using Register = typename E::Register;
  if constexpr (std::is_same_v<E, F16>) {
    if constexpr (std::is_same_v<From, float>) return half_to_float(float_to_half(x));
    else return in_half<From>(x);
  } else if constexpr (std::is_same_v<E, BF16>) {
    if constexpr (std::is_same_v<From, float>) return float_from_bfloat(bfloat_from_float(x));
    else return in_bfloat<From>(x);
  } else {
#if defined(__CUDA_ARCH__)
    // The instruction rounds half to even and saturates; NaN gives 0.
    if constexpr (std::is_same_v<From, float> && std::is_same_v<Register, int32_t> && !std::is_same_v<E, Bool>) {
      if constexpr (std::is_same_v<E, U8>) {
        uint32_t byte;
        asm("cvt.rni.sat.u8.f32 %0, %1;" : "=r"(byte) : "f"(x));
        return static_cast<int32_t>(byte);
      }
      using L = std::numeric_limits<typename E::Memory>;
      const int32_t i = __float2int_rn(x);
      return i < L::min() ? L::min() : i > L::max() ? L::max() : i;
    }
#endif
    return static_cast<Register>(in_range<typename E::Value, From>(x));
  }
}
template <class E>
inline typename E::Register ucast(int64_t x) {
  return cast<E, uint64_t>(static_cast<uint64_t>(x));
}
template <class E, class From>
inline typename E::Register wrap(From x) {
  return static_cast<typename E::Register>(wrapped<typename E::Value, From>(x));
}

}  // namespace op
}  // namespace stoker::stage
