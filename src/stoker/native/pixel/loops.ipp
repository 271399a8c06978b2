// SPDX-License-Identifier: Apache-2.0
// Block kernels of the common operations, written once over the vectors of base/vectors.ipp. Included after
// base/vectors.ipp, once per instruction set, and after load_f16 and store_f16.
//
// Every loop takes its operands with a step (0 for a splat), so that one loop serves all mixtures of registers and
// uniforms. The number of lanes is rounded up to whole vectors; see kLaneUnit.

template <class T>
using Unsigned = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

template <class T>
constexpr bool kFloat = std::is_floating_point_v<T>;

// Integer arithmetic must wrap, so it uses unsigned lanes.
template <class T>
using Wrapping = std::conditional_t<kFloat<T>, T, Unsigned<T>>;

template <class R, class T, class F>
inline void map1(const Micro& m, int lanes, F f) {
  const auto* a = reinterpret_cast<const V<T>*>(m.arg[0]);
  auto* d = reinterpret_cast<Loose<R>*>(m.dst);
  const int step = m.step[0];
  for (int i = 0; i < lanes; i += kLanes<T>, a += step, ++d) *d = f(*a);
}

template <class R, class T, class F>
inline void map2(const Micro& m, int lanes, F f) {
  const auto* a = reinterpret_cast<const V<T>*>(m.arg[0]);
  const auto* b = reinterpret_cast<const V<T>*>(m.arg[1]);
  auto* d = reinterpret_cast<Loose<R>*>(m.dst);
  const size_t sa = m.step[0], sb = m.step[1];
  const int vectors = (lanes + kLanes<T> - 1) / kLanes<T>;
  int i = 0;
  for (; i + 2 <= vectors; i += 2, a += 2 * sa, b += 2 * sb, d += 2) {
    const V<R> first = f(a[0], b[0]), second = f(a[sa], b[sb]);
    d[0] = first;
    d[1] = second;
  }
  if (i < vectors) d[0] = f(a[0], b[0]);
}

template <int Operation>
inline V<float> apply(V<float> a, V<float> b) {
  if constexpr (Operation == paired(Op::Add)) return a + b;
  else if constexpr (Operation == paired(Op::Sub)) return a - b;
  else return a * b;
}

// Call f(arg0, arg1, arg2) for all vectors of floats.
template <class F>
inline void map3(const Micro& m, int lanes, F f) {
  const auto* a = reinterpret_cast<const V<float>*>(m.arg[0]);
  const auto* b = reinterpret_cast<const V<float>*>(m.arg[1]);
  const auto* c = reinterpret_cast<const V<float>*>(m.arg[2]);
  auto* d = reinterpret_cast<Loose<float>*>(m.dst);
  const size_t sa = m.step[0], sb = m.step[1], sc = m.step[2];
  const int vectors = (lanes + kLanes<float> - 1) / kLanes<float>;
  int i = 0;
  for (; i + 2 <= vectors; i += 2, a += 2 * sa, b += 2 * sb, c += 2 * sc, d += 2) {
    const V<float> x = f(a[0], b[0], c[0]), y = f(a[sa], b[sb], c[sc]);
    d[0] = x;
    d[1] = y;
  }
  if (i < vectors) d[0] = f(a[0], b[0], c[0]);
}

// The same with a fourth operand.
template <class F>
inline void map4(const Micro& m, int lanes, F f) {
  const V<float>* from[4];
  size_t step[4];
  for (int k = 0; k < 4; ++k) {
    from[k] = reinterpret_cast<const V<float>*>(m.arg[k]);
    step[k] = m.step[k];
  }
  auto* d = reinterpret_cast<Loose<float>*>(m.dst);
  const int vectors = (lanes + kLanes<float> - 1) / kLanes<float>;
  const auto operand = [&](int k, size_t i) { return from[k][i * step[k]]; };
  const auto at = [&](size_t i) { return f(operand(0, i), operand(1, i), operand(2, i), operand(3, i)); };
  size_t i = 0;
  const auto count = static_cast<size_t>(vectors);
  for (; i + 2 <= count; i += 2) {
    const V<float> x = at(i), y = at(i + 1);
    d[i] = x;
    d[i + 1] = y;
  }
  if (i < count) d[i] = at(i);
}

template <int First, int Second>
void pair(const Micro& m, int lanes) {
  map3(m, lanes, [](V<float> a, V<float> b, V<float> c) { return apply<Second>(apply<First>(a, b), c); });
}

#define STOKER_MAP2(Name, T, Expression)                                     \
  template <class X>                                                         \
  void Name(const Micro& m, int lanes) {                                     \
    using W = T;                                                             \
    map2<W, W>(m, lanes, [](V<W> a, V<W> b) -> V<W> { return Expression; }); \
  }
STOKER_MAP2(add, Wrapping<X>, a + b)
STOKER_MAP2(sub, Wrapping<X>, a - b)
STOKER_MAP2(mul, Wrapping<X>, a* b)
STOKER_MAP2(divide, X, a / b)
STOKER_MAP2(minimum, X, b < a ? b : a)
STOKER_MAP2(maximum, X, a < b ? b : a)
STOKER_MAP2(umin, Unsigned<X>, b < a ? b : a)
STOKER_MAP2(umax, Unsigned<X>, a < b ? b : a)
STOKER_MAP2(bit_and, X, a& b)
STOKER_MAP2(bit_or, X, a | b)
STOKER_MAP2(bit_xor, X, a ^ b)
STOKER_MAP2(shift_left, Unsigned<X>, a << (b & static_cast<W>(8 * sizeof(W) - 1)))
STOKER_MAP2(shift_right, X, a >> (b & static_cast<W>(8 * sizeof(W) - 1)))
STOKER_MAP2(shift_right_unsigned, Unsigned<X>, a >> (b & static_cast<W>(8 * sizeof(W) - 1)))
#undef STOKER_MAP2

// Comparisons of vectors give all ones for true; the machine's truth value is 1.
#define STOKER_COMPARE(Name, Operator)                                                                       \
  template <class X>                                                                                         \
  void Name(const Micro& m, int lanes) {                                                                     \
    map2<int32_t, X>(m, lanes, [](V<X> a, V<X> b) -> V<int32_t> { return (V<int32_t>)(a Operator b) & 1; }); \
  }
STOKER_COMPARE(equal, ==)
STOKER_COMPARE(not_equal, !=)
STOKER_COMPARE(less, <)
STOKER_COMPARE(less_equal, <=)
STOKER_COMPARE(greater, >)
STOKER_COMPARE(greater_equal, >=)
#undef STOKER_COMPARE

template <class X>
void negate(const Micro& m, int lanes) {
  using W = Wrapping<X>;
  map1<W, W>(m, lanes, [](V<W> a) -> V<W> { return -a; });
}

template <class X>
void absolute(const Micro& m, int lanes) {
  using U = Unsigned<X>;
  map1<U, U>(m, lanes, [](V<U> a) -> V<U> {
    if constexpr (kFloat<X>) return a & (static_cast<U>(-1) >> 1);
    else return (V<X>)a < 0 ? -a : a;
  });
}

template <class X>
void bit_not(const Micro& m, int lanes) {
  map1<X, X>(m, lanes, [](V<X> a) -> V<X> { return ~a; });
}

template <class X>
void copy(const Micro& m, int lanes) {
  map1<X, X>(m, lanes, [](V<X> a) -> V<X> { return a; });
}

// Only for lanes of four bytes: the condition's lanes must be as wide as the values' lanes.
void select4(const Micro& m, int lanes) {
  using I = V<int32_t>;
  const auto* a = reinterpret_cast<const I*>(m.arg[0]);
  const auto* b = reinterpret_cast<const I*>(m.arg[1]);
  const auto* c = reinterpret_cast<const I*>(m.arg[2]);
  auto* d = reinterpret_cast<Loose<int32_t>*>(m.dst);
  for (int i = 0; i < lanes; i += kLanes<int32_t>, a += m.step[0], b += m.step[1], c += m.step[2], ++d)
    *d = *c != 0 ? *a : *b;
}

// shared/element_random.hpp for a vector of elements. The multiplication is that of 32 bits to 64; as a product with a
// constant, the compiler would expand it to shifts and additions. Even and odd lanes are words of two vectors of 64-bit
// lanes, whose upper halves hold any bits: multiplications do not read them.
struct RandomWords {
  V<uint32_t> first, second;
};

// kOneKey: all lanes of `key` are equal.
template <bool kOneKey>
inline RandomWords random_words(V<uint32_t> element, V<uint32_t> key, V<uint32_t> stream) {
  using Wide = V<uint64_t>;
  constexpr uint64_t kLow = 0xFFFFFFFFu;
  Wide low[2] = {(Wide)element, (Wide)element >> 32}, high[2] = {(Wide)stream, (Wide)stream >> 32};
  for (int i = 0; i < element_random::kRounds; ++i, key += element_random::kKeyStep)
    for (int k = 0; k < 2; ++k) {
      const Wide product = multiply_words(low[k], element_random::kMultiplier);
      low[k] = (product >> 32) ^ (k && !kOneKey ? (Wide)key >> 32 : (Wide)key) ^ high[k];
      high[k] = product;
    }
  const auto joined = [](const Wide(&x)[2]) { return (V<uint32_t>)((x[0] & kLow) | (x[1] << 32)); };
  return {joined(low), joined(high)};
}

// Calls `from(words)` for vectors of elements.
template <class T, bool kOneKey, class F>
inline void map_words(const Micro& m, int lanes, F from) {
  using U = V<uint32_t>;
  const auto* a = reinterpret_cast<const U*>(m.arg[0]);
  const auto* b = reinterpret_cast<const U*>(m.arg[1]);
  const auto* c = reinterpret_cast<const U*>(m.arg[2]);
  auto* d = reinterpret_cast<Loose<T>*>(m.dst);
  for (int i = 0; i < lanes; i += kLanes<T>, a += m.step[0], b += m.step[1], c += m.step[2], ++d)
    *d = from(random_words<kOneKey>(*a, *b, *c));
}

template <class T, class F>
inline void map_elements(const Micro& m, int lanes, F from) {
  if (m.step[1]) map_words<T, false>(m, lanes, from);
  else map_words<T, true>(m, lanes, from);
}

void random_bits(const Micro& m, int lanes) {
  map_elements<uint32_t>(m, lanes, [](const RandomWords& words) -> V<uint32_t> { return words.first; });
}

inline V<float> vector_root(V<float> x) { return square_root(x); }

struct NormalLanes {
  using F = V<float>;
  using I = V<int32_t>;
  STOKER_INLINED static I bits(F x) { return (I)x; }
  STOKER_INLINED static F from_bits(I x) { return (F)x; }
  STOKER_INLINED static F to_float(I x) { return __builtin_convertvector(x, F); }
  STOKER_INLINED static F square_root(F x) { return vector_root(x); }
  template <class Condition>
  STOKER_INLINED static F where(Condition c, F a, F b) {
    return c ? a : b;
  }
};

void normal_numbers(const Micro& m, int lanes) {
  map_elements<float>(m, lanes, [](const RandomWords& words) -> V<float> {
    return element_random::normal<NormalLanes>((V<int32_t>)words.first, (V<int32_t>)words.second);
  });
}

// Adding 1.5 * 2^23 leaves no bits for a fraction, so that the addition rounds half to even, and the integer is in the
// low bits. |x| <= 2^22.
inline V<int32_t> round_small(V<float> x) { return (V<int32_t>)(x + 12582912.0f) - 0x4B400000; }

// Comparing with `low` first maps NaN to `low`, which is never above 0; NaN must become 0.
inline V<float> clamp_float(V<float> x, V<float> low, V<float> high) {
  x = x == x ? x : V<float>{};
  x = x < low ? low : x;
  return high < x ? high : x;
}

// The float of cast_f32_small's integer. The subtraction gives +0 where the cast gives 0.
inline V<float> whole_small(V<float> x, V<float> low, V<float> high) {
  return (clamp_float(x, low, high) + 12582912.0f) - 12582912.0f;
}

// The same if `low` is 0. NaN is not above 0.
inline V<float> whole_unsigned(V<float> x, V<float> high) {
  x = x > 0.0f ? x : V<float>{};
  return ((high < x ? high : x) + 12582912.0f) - 12582912.0f;
}

// Call `run` with the function that rounds to the instruction's type.
template <class F>
inline void with_rounding(const Micro& m, F run) {
  const V<float> low = V<float>{} + static_cast<float>(m.low), high = V<float>{} + static_cast<float>(m.high);
  if (m.low == 0) run([=](V<float> x) -> V<float> { return whole_unsigned(x, high); });
  else run([=](V<float> x) -> V<float> { return whole_small(x, low, high); });
}

void whole_f32(const Micro& m, int lanes) {
  with_rounding(m, [&](auto whole) { map1<float, float>(m, lanes, whole); });
}

template <int First>
void pair_whole(const Micro& m, int lanes) {
  with_rounding(m, [&](auto whole) {
    map2<float, float>(m, lanes, [=](V<float> a, V<float> b) -> V<float> { return whole(apply<First>(a, b)); });
  });
}

// The last two operands are those of `Second` and `Third`.
template <int First, int Second, int Third>
void whole_pair(const Micro& m, int lanes) {
  with_rounding(m, [&](auto whole) {
    const auto then = [=](V<float> x, V<float> b, V<float> c) { return apply<Third>(apply<Second>(whole(x), b), c); };
    if constexpr (First == kUnpaired) {
      map3(m, lanes, then);
    } else {
      map4(m, lanes, [=](V<float> a, V<float> b, V<float> c, V<float> d) { return then(apply<First>(a, b), c, d); });
    }
  });
}

// Rounds to a whole number by `f`, which gets the absolute values of numbers below 2^23. Larger ones are whole, and the
// addition makes NaNs quiet. The sign stays, also of zero.
template <class F>
inline V<float> round_by(V<float> x, F f) {
  constexpr uint32_t kSign = 0x80000000;
  const V<uint32_t> sign = (V<uint32_t>)x & kSign;
  const V<float> size = (V<float>)((V<uint32_t>)x & ~kSign), limit = V<float>{} + 8388608.0f;
  const V<float> whole = f(size < limit ? size : V<float>{}, sign != 0);
  return size < limit ? (V<float>)((V<uint32_t>)whole | sign) : x + 0.0f;
}

inline V<float> truncated(V<float> size) {
  return __builtin_convertvector(__builtin_convertvector(size, V<int32_t>), V<float>);
}

inline V<float> next_if(V<int32_t> condition, V<float> x) { return condition != 0 ? x + 1.0f : x; }

inline V<float> round_even(V<float> x) {
  return round_by(x, [](V<float> size, V<int32_t>) { return (size + 8388608.0f) - 8388608.0f; });
}

void round_f32(const Micro& m, int lanes) { map1<float, float>(m, lanes, round_even); }

void trunc_f32(const Micro& m, int lanes) {
  map1<float, float>(m, lanes, [](V<float> x) -> V<float> {
    return round_by(x, [](V<float> size, V<int32_t>) { return truncated(size); });
  });
}

// Away from zero where the sign is that of the direction.
void floor_f32(const Micro& m, int lanes) {
  map1<float, float>(m, lanes, [](V<float> x) -> V<float> {
    return round_by(x, [](V<float> size, V<int32_t> negative) {
      const V<float> whole = truncated(size);
      return next_if(negative & (V<int32_t>)(whole < size), whole);
    });
  });
}

void ceil_f32(const Micro& m, int lanes) {
  map1<float, float>(m, lanes, [](V<float> x) -> V<float> {
    return round_by(x, [](V<float> size, V<int32_t> negative) {
      const V<float> whole = truncated(size);
      return next_if(~negative & (V<int32_t>)(whole < size), whole);
    });
  });
}

void cast_f32_i32(const Micro& m, int lanes) {
  const V<float> low = V<float>{} - 2147483648.0f, high = V<float>{} + 2147483520.0f;  // the largest float below 2^31
  const V<int32_t> most = V<int32_t>{} + 2147483647;
  map1<int32_t, float>(m, lanes, [=](V<float> x) -> V<int32_t> {
    const V<int32_t> inside = __builtin_convertvector(clamp_float(round_even(x), low, high), V<int32_t>);
    return x > high ? most : inside;
  });
}

void cast_f32_small(const Micro& m, int lanes) {
  const V<float> low = V<float>{} + static_cast<float>(m.low), high = V<float>{} + static_cast<float>(m.high);
  map1<int32_t, float>(m, lanes, [=](V<float> x) -> V<int32_t> { return round_small(clamp_float(x, low, high)); });
}

void cast_f32_bool(const Micro& m, int lanes) {
  map1<int32_t, float>(m, lanes, [](V<float> x) -> V<int32_t> { return (V<int32_t>)(x != 0.0f) & 1; });
}

void cast_f32_f16(const Micro& m, int lanes) {
  alignas(64) uint16_t half[256];
  const auto* a = reinterpret_cast<const float*>(m.arg[0]);
  auto* d = reinterpret_cast<float*>(m.dst);
  const int width = (lanes + kLaneUnit - 1) / kLaneUnit * kLaneUnit;
  for (int i = 0; i < width; i += kLaneUnit) {
    store_f16(half, a + static_cast<ptrdiff_t>(i) * m.step[0], kLaneUnit);
    load_f16(d + i, half, kLaneUnit);
  }
}

void clamp_i32(const Micro& m, int lanes) {
  const V<int32_t> low = V<int32_t>{} + static_cast<int32_t>(m.low), high = V<int32_t>{} + static_cast<int32_t>(m.high);
  map1<int32_t, int32_t>(m, lanes, [=](V<int32_t> x) -> V<int32_t> {
    x = x < low ? low : x;
    return high < x ? high : x;
  });
}

void cast_i32_bool(const Micro& m, int lanes) {
  map1<int32_t, int32_t>(m, lanes, [](V<int32_t> x) -> V<int32_t> { return (x != 0) & 1; });
}

template <int Bits, bool Signed>
void wrap_i32(const Micro& m, int lanes) {
  map1<int32_t, int32_t>(m, lanes, [](V<int32_t> x) -> V<int32_t> {
    if constexpr (Bits == 32) return x;
    else if constexpr (Signed) return (V<int32_t>)((V<uint32_t>)x << (32 - Bits)) >> (32 - Bits);
    else return x & ((1 << Bits) - 1);
  });
}

void i32_to_f32(const Micro& m, int lanes) {
  map1<float, int32_t>(m, lanes, [](V<int32_t> x) -> V<float> { return __builtin_convertvector(x, V<float>); });
}

template <class X>
void fill_arithmetic(Kernels& k) {
  const int t = at(register_type<X>());
  const auto set = [&](Op op, ComputeFn f) { k.op[at(op)][t] = f; };
  set(Op::Copy, copy<X>);
  set(Op::Add, add<X>);
  set(Op::Sub, sub<X>);
  set(Op::Mul, mul<X>);
  set(Op::Min, minimum<X>);
  set(Op::Max, maximum<X>);
  set(Op::Neg, negate<X>);
  set(Op::Abs, absolute<X>);
  if constexpr (std::is_same_v<X, float>) {
    set(Op::Floor, floor_f32);
    set(Op::Ceil, ceil_f32);
    set(Op::Trunc, trunc_f32);
    set(Op::Round, round_f32);
  }
  if constexpr (kFloat<X>) {
    set(Op::Div, divide<X>);
  } else {
    set(Op::And, bit_and<X>);
    set(Op::Or, bit_or<X>);
    set(Op::Xor, bit_xor<X>);
    set(Op::Not, bit_not<X>);
    set(Op::Shl, shift_left<X>);
    set(Op::Shr, shift_right<X>);
    set(Op::UShr, shift_right_unsigned<X>);
  }
  if constexpr (sizeof(X) == 8 && !kFloat<X>) {
    set(Op::UMin, umin<X>);
    set(Op::UMax, umax<X>);
  }
  if constexpr (sizeof(X) == 4) {
    set(Op::Eq, equal<X>);
    set(Op::Ne, not_equal<X>);
    set(Op::Lt, less<X>);
    set(Op::Le, less_equal<X>);
    set(Op::Gt, greater<X>);
    set(Op::Ge, greater_equal<X>);
    set(Op::Select, select4);
  }
}

template <int... I>
void fill_pairs(Kernels& k, std::integer_sequence<int, I...>) {
  ((k.pair[I / kPaired][I % kPaired] = pair<I / kPaired, I % kPaired>), ...);
  k.whole = whole_f32;
  ((k.pair_whole[I % kPaired] = pair_whole<I % kPaired>), ...);
  const auto rounded = [&]<int First>(std::integral_constant<int, First>) {
    ((k.whole_pair[First][I / kPaired][I % kPaired] = whole_pair<First, I / kPaired, I % kPaired>), ...);
  };
  static_assert(kUnpaired == 3);
  rounded(std::integral_constant<int, 0>{});
  rounded(std::integral_constant<int, 1>{});
  rounded(std::integral_constant<int, 2>{});
  rounded(std::integral_constant<int, kUnpaired>{});
}

void fill_casts(Kernels& k) {
  const int i32 = at(Type::I32), f32 = at(Type::F32);
  k.cvt[i32][f32] = i32_to_f32;
  for (const DType d : {DType::U8, DType::I8, DType::U16, DType::I16}) {
    k.cast[f32][at(d)] = cast_f32_small;
    k.cast[i32][at(d)] = clamp_i32;
  }
  k.cast[f32][at(DType::I32)] = cast_f32_i32;
  k.cast[f32][at(DType::F16)] = cast_f32_f16;
  k.cast[f32][at(DType::Bool)] = cast_f32_bool;
  k.cast[i32][at(DType::Bool)] = cast_i32_bool;
  k.cast[i32][at(DType::F32)] = i32_to_f32;
  k.cast[i32][at(DType::I32)] = copy<int32_t>;
  k.cast[f32][at(DType::F32)] = copy<float>;
  k.wrap[i32][at(DType::Bool)] = wrap_i32<1, false>;
  k.wrap[i32][at(DType::U8)] = wrap_i32<8, false>;
  k.wrap[i32][at(DType::I8)] = wrap_i32<8, true>;
  k.wrap[i32][at(DType::U16)] = wrap_i32<16, false>;
  k.wrap[i32][at(DType::I16)] = wrap_i32<16, true>;
  k.wrap[i32][at(DType::I32)] = wrap_i32<32, true>;
}

void count(int32_t* dst, int32_t first, int32_t step, int n) {
  V<uint32_t> x;  // unsigned, because it counts past the last lane
  for (int i = 0; i < kLanes<int32_t>; ++i) x[i] = static_cast<uint32_t>(first) + static_cast<uint32_t>(i * step);
  int i = 0;
  for (; i + kLanes<int32_t> <= n; i += kLanes<int32_t>, x += static_cast<uint32_t>(kLanes<int32_t> * step))
    *reinterpret_cast<Loose<int32_t>*>(dst + i) = (V<int32_t>)x;
  for (int k = 0; i < n; ++i, ++k) dst[i] = static_cast<int32_t>(x[k]);
}

#include "pixel/accesses.ipp"

void fill_loops(Kernels& k) {
  fill_arithmetic<int32_t>(k);
  fill_arithmetic<float>(k);
  fill_arithmetic<int64_t>(k);
  fill_arithmetic<double>(k);
  fill_pairs(k, std::make_integer_sequence<int, kPaired * kPaired>{});
  fill_casts(k);
  k.op[at(Op::Random)][at(Type::I32)] = random_bits;
  k.op[at(Op::Normal)][at(Type::F32)] = normal_numbers;
  fill_accesses(k);
  k.count = count;
}
