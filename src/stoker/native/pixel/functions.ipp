// SPDX-License-Identifier: Apache-2.0
// Elementary functions of floats in vectors, with the bits of shared/xmath.hpp. Part of pixel/moves.ipp and pixel/fma.cpp.
//
// Those functions compute in double and round once. Here a shorter formula gives the double with a relative error far
// below 2^-40: the series end where their rest is below 2^-44, and products may be fused with sums. If no number within
// this error rounds to another float, the float is theirs too. Otherwise, in one lane of about 2^15, and for arguments
// outside of the formula's range, the lane is computed by xmath.hpp itself (Ziv's method).

typedef float HalfFloats __attribute__((vector_size(STOKER_VECTOR_BYTES / 2), aligned(4), may_alias));

constexpr double kShifter = 6755399441055744.0;  // 1.5 * 2^52: adding it leaves an integer in the low bits

struct Approximation {
  V<double> value;
  V<int64_t> bad;  // lanes of -1 where the formula does not hold
};

template <int N>
inline V<double> polynomial(V<double> x, const double (&c)[N]) {
  V<double> sum = V<double>{} + c[N - 1];
  for (int i = N - 2; i >= 0; --i) sum = multiply_add(x, sum, V<double>{} + c[i]);
  return sum;
}

inline V<double> magnitude(V<double> x) { return (V<double>)((V<int64_t>)x & 0x7FFFFFFFFFFFFFFF); }

// log x = k ln 2 + 2 atanh s with x = 2^k m, s = (m - 1) / (m + 1) and m in [sqrt(1/2), sqrt(2)).
struct LogOf {
  static double exact(double x) { return xm::log(x); }
  static Approximation near(V<double> x) {
    const V<int64_t> u = (V<int64_t>)x, fraction = u & 0xFFFFFFFFFFFFF;
    const V<int64_t> above = fraction > 0x6A09E667F3BCC;  // -1 where it is
    const V<int64_t> exponent = (V<int64_t>)((V<uint64_t>)u >> 52) - 1023 - above;
    const V<double> k = (V<double>)(exponent + 0x4338000000000000) - kShifter;
    const V<double> m = (V<double>)((fraction | 0x3FF0000000000000) + (V<int64_t>)((V<uint64_t>)above << 52));
    const V<double> f = m - 1.0, s = f / (f + 2.0), z = s * s;
    constexpr double kSeries[] = {2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11, 2.0 / 13, 2.0 / 15, 2.0 / 17};
    const V<double> low = multiply_add(z * s, polynomial(z, kSeries), k * 0x1.a39ef35793c76p-33);
    const V<int64_t> inside = (x > 0.0) & (x < __builtin_inf());
    return {multiply_add(k, V<double>{} + 0x1.62e42fee00000p-1, 2.0 * s + low), ~inside};
  }
};

// The argument is k pi/2 + r, with pi/2 in three parts; the products of the first two with k are exact or fused.
template <bool kCos>
struct SineOf {
  static double exact(double x) { return kCos ? xm::cos(x) : xm::sin(x); }
  static Approximation near(V<double> x) {
    const V<double> shifted = x * 0.6366197723675814 + kShifter, k = shifted - kShifter;
    const V<int64_t> quadrant = (V<int64_t>)shifted + (kCos ? 1 : 0);
    V<double> r = multiply_add(k, V<double>{} - 0x1.921fb54400000p+0, x);
    r = multiply_add(k, V<double>{} - 0x1.0b4611a600000p-34, r);
    r = multiply_add(k, V<double>{} - 0x1.3198a2e000000p-69, r);
    const V<double> z = r * r;
    constexpr double kSine[] = {-1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800, 1.0 / 6227020800.0};
    constexpr double kCosine[] = {1.0 / 24,       -1.0 / 720,        1.0 / 40320,
                                  -1.0 / 3628800, 1.0 / 479001600.0, -1.0 / 87178291200.0};
    const V<double> sine = multiply_add(r * z, polynomial(z, kSine), r);
    const V<double> cosine = multiply_add(z * z, polynomial(z, kCosine), 1.0 - 0.5 * z);
    const V<double> value = (quadrant & 1) != 0 ? cosine : sine;
    const V<uint64_t> sign = (V<uint64_t>)(quadrant & 2) << 62;
    const V<double> size = magnitude(x);
    // Close to a multiple of pi/2, r has lost bits; results of tiny arguments are subnormal floats.
    V<int64_t> good = (size < 1048576.0) & ((magnitude(r) > 0x1p-20) | (k == 0.0));
    if constexpr (!kCos) good &= size > 0x1p-100;
    return {(V<double>)((V<uint64_t>)value ^ sign), ~good};
  }
};

// e^x = 2^k e^r with |r| <= ln 2 / 2.
struct ExpOf {
  static double exact(double x) { return xm::exp(x); }
  static Approximation near(V<double> x) {
    const V<double> shifted = x * 1.4426950408889634 + kShifter, k = shifted - kShifter;
    V<double> r = multiply_add(k, V<double>{} - 0x1.62e42fee00000p-1, x);
    r = multiply_add(k, V<double>{} - 0x1.a39ef35793c76p-33, r);
    constexpr double kSeries[] = {1.0,       1.0,        1.0 / 2,     1.0 / 6,      1.0 / 24,      1.0 / 120,
                                  1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800};
    const V<uint64_t> power = (V<uint64_t>)shifted << 52;
    const V<int64_t> good = magnitude(x) < 87.0;  // the result is a normal float
    return {(V<double>)((V<uint64_t>)polynomial(r, kSeries) + power), ~good};
  }
};

template <class Function>
void function_f32(const Micro& m, int lanes) {
  constexpr int kStep = kLanes<double>;
  const auto* a = reinterpret_cast<const float*>(m.arg[0]);
  auto* d = reinterpret_cast<float*>(m.dst);
  const int step = m.step[0] * kStep;
  for (int i = 0; i < lanes; i += kStep, a += step) {
    const HalfFloats x = *reinterpret_cast<const HalfFloats*>(a);
    const Approximation y = Function::near(__builtin_convertvector(x, V<double>));
    // The bits of the double that a float does not have, as a distance from the tie, are further from it than the error.
    constexpr int64_t kError = int64_t{1} << 13, kRest = (int64_t{1} << 29) - 1, kTie = int64_t{1} << 28;
    const V<int64_t> unsure = ((((V<int64_t>)y.value & kRest) - (kTie - kError)) & 0x7FFFFFFFFFFFFFFF) < 2 * kError;
    HalfFloats result = __builtin_convertvector(y.value, HalfFloats);
    if (any_lane(unsure | y.bad))
      for (int k = 0; k < kStep; ++k)
        if (unsure[k] | y.bad[k]) result[k] = static_cast<float>(Function::exact(static_cast<double>(x[k])));
    *reinterpret_cast<HalfFloats*>(d + i) = result;
  }
}

void fill_double_functions(Kernels& k) {
  const int f32 = at(Type::F32);
  k.op[at(Op::Log)][f32] = function_f32<LogOf>;
  k.op[at(Op::Sin)][f32] = function_f32<SineOf<false>>;
  k.op[at(Op::Cos)][f32] = function_f32<SineOf<true>>;
  k.op[at(Op::Exp)][f32] = function_f32<ExpOf>;
}
