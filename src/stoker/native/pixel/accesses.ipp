// SPDX-License-Identifier: Apache-2.0
// Loads and stores of registers: conversions, casts that are fused with stores, and pixels that interleave channels.
// Part of pixel/loops.ipp.

// Plain loops are enough here: the compiler's vectorizer uses its target's widening and packing instructions well.
template <class Memory, class Register>
void load_as(void* __restrict dst, const void* __restrict src, int n) {
  auto* d = static_cast<Register*>(dst);
  const auto* s = static_cast<const uint8_t*>(src);
  for (int i = 0; i < n; ++i) {
    Memory x;  // memory may be unaligned
    std::memcpy(&x, s + i * sizeof x, sizeof x);
    d[i] = static_cast<Register>(x);
  }
}

template <class Memory, class Register>
void store_as(void* __restrict dst, const void* __restrict src, int n) {
  const auto* s = static_cast<const Register*>(src);
  auto* d = static_cast<uint8_t*>(dst);
  for (int i = 0; i < n; ++i) {
    const auto x = static_cast<Memory>(s[i]);
    std::memcpy(d + i * sizeof x, &x, sizeof x);
  }
}

void load_bf16(void* __restrict dst, const void* __restrict src, int n) {
  auto* d = static_cast<uint32_t*>(dst);
  const auto* s = static_cast<const uint8_t*>(src);
  for (int i = 0; i < n; ++i) {
    uint16_t bits;
    std::memcpy(&bits, s + 2 * i, sizeof bits);
    d[i] = static_cast<uint32_t>(bits) << 16;
  }
}

void store_bf16(void* __restrict dst, const void* __restrict src, int n) {
  const auto* s = static_cast<const float*>(src);
  auto* d = static_cast<uint8_t*>(dst);
  for (int i = 0; i < n; ++i) {
    const uint16_t bits = bfloat_from_float(s[i]);
    std::memcpy(d + 2 * i, &bits, sizeof bits);
  }
}

template <class T>
void move_as(void* __restrict dst, const void* __restrict src, int n) {
  std::memcpy(dst, src, static_cast<size_t>(n) * sizeof(T));
}

// The fused cast of n <= kCastLanes lanes. A stretch of lanes may start anywhere in its block, so the accesses are
// unaligned.
constexpr int kCastLanes = 64;

template <class Memory>
inline void cast_lanes(int32_t* __restrict dst, const float* __restrict src, int n) {
  using L = std::numeric_limits<Memory>;
  const V<float> low = V<float>{} + static_cast<float>(L::min()), high = V<float>{} + static_cast<float>(L::max());
  int i = 0;
  for (; i + kLanes<float> <= n; i += kLanes<float>) {
    const V<float> x = *reinterpret_cast<const Loose<float>*>(src + i);
    *reinterpret_cast<V<int32_t>*>(dst + i) = round_small(clamp_float(x, low, high));
  }
  if (i == n) return;
  V<float> x{};
  std::memcpy(&x, src + i, static_cast<size_t>(n - i) * sizeof(float));
  const V<int32_t> r = round_small(clamp_float(x, low, high));
  std::memcpy(dst + i, &r, static_cast<size_t>(n - i) * sizeof(int32_t));
}

template <class Memory>
void store_cast(void* __restrict dst, const void* __restrict src, int n) {
  alignas(64) int32_t lanes[kCastLanes];
  const auto* s = static_cast<const float*>(src);
  auto* d = static_cast<uint8_t*>(dst);
  for (int i = 0; i < n; i += kCastLanes) {
    const int part = n - i < kCastLanes ? n - i : kCastLanes;
    cast_lanes<Memory>(lanes, s + i, part);
    store_as<Memory, int32_t>(d + static_cast<ptrdiff_t>(i) * static_cast<ptrdiff_t>(sizeof(Memory)), lanes, part);
  }
}

// Interleaved pixels of 2 to 4 bytes.
template <int C, class Register>
void load_pixels(Register* const* reg, const uint8_t* __restrict p, int n) {
  for (int c = 0; c < C; ++c) {
    Register* __restrict d = reg[c];
    for (int i = 0; i < n; ++i) d[i] = static_cast<Register>(p[C * i + c]);
  }
}

template <int C>
inline void store_pixels(uint8_t* __restrict p, const int32_t* const* s, int n) {
  for (int i = 0; i < n; ++i)
    for (int c = 0; c < C; ++c) p[C * i + c] = static_cast<uint8_t>(s[c][i]);
}

template <int C, class Register>
void load_group(uint8_t* const* reg, const uint8_t* p, int n) {
  Register* d[C];
  for (int c = 0; c < C; ++c) d[c] = reinterpret_cast<Register*>(reg[c]);
  load_pixels<C, Register>(d, p, n);
}

template <int C, class Register>
void store_group(uint8_t* p, const uint8_t* const* reg, int n) {
  const int32_t* s[C];
  if constexpr (kFloat<Register>) {
    alignas(64) int32_t lanes[C][kCastLanes];
    for (int c = 0; c < C; ++c) s[c] = lanes[c];
    for (int i = 0; i < n; i += kCastLanes) {
      const int part = n - i < kCastLanes ? n - i : kCastLanes;
      for (int c = 0; c < C; ++c) cast_lanes<uint8_t>(lanes[c], reinterpret_cast<const float*>(reg[c]) + i, part);
      store_pixels<C>(p + C * i, s, part);
    }
  } else {
    for (int c = 0; c < C; ++c) s[c] = reinterpret_cast<const int32_t*>(reg[c]);
    store_pixels<C>(p, s, n);
  }
}

// Other interleaved elements, without conversion.
template <int C, class T>
void deal(uint8_t* const* planes, const uint8_t* __restrict pixels, int n) {
  for (int c = 0; c < C; ++c) {
    T* __restrict d = reinterpret_cast<T*>(planes[c]);
    for (int i = 0; i < n; ++i) {
      T x;
      std::memcpy(&x, pixels + (static_cast<ptrdiff_t>(C) * i + c) * static_cast<ptrdiff_t>(sizeof(T)), sizeof x);
      d[i] = x;
    }
  }
}

template <int C, class T>
void weave(uint8_t* __restrict pixels, const uint8_t* const* planes, int n) {
  const T* s[C];
  for (int c = 0; c < C; ++c) s[c] = reinterpret_cast<const T*>(planes[c]);
  constexpr ptrdiff_t size = sizeof(T);
  for (int i = 0; i < n; ++i)
    for (int c = 0; c < C; ++c) std::memcpy(pixels + (static_cast<ptrdiff_t>(C) * i + c) * size, s[c] + i, sizeof(T));
}

template <class T>
void fill_interleaved(Kernels& k) {
  k.deal[sizeof(T)][2] = deal<2, T>;
  k.deal[sizeof(T)][3] = deal<3, T>;
  k.deal[sizeof(T)][4] = deal<4, T>;
  k.weave[sizeof(T)][2] = weave<2, T>;
  k.weave[sizeof(T)][3] = weave<3, T>;
  k.weave[sizeof(T)][4] = weave<4, T>;
}

template <class Memory>
void fill_small(Kernels& k, DType d) {
  k.load[at(d)][at(Type::I32)] = load_as<Memory, int32_t>;
  k.load[at(d)][at(Type::F32)] = load_as<Memory, float>;
  k.store[at(d)][at(Type::I32)] = store_as<Memory, int32_t>;
  if (d != DType::Bool) k.store[at(d)][at(Type::F32)] = store_cast<Memory>;
}

template <class Register>
void fill_groups(Kernels& k) {
  const int t = at(register_type<Register>());
  k.load_group[2][t] = load_group<2, Register>;
  k.load_group[3][t] = load_group<3, Register>;
  k.load_group[4][t] = load_group<4, Register>;
  k.store_group[2][t] = store_group<2, Register>;
  k.store_group[3][t] = store_group<3, Register>;
  k.store_group[4][t] = store_group<4, Register>;
}

void fill_accesses(Kernels& k) {
  fill_small<uint8_t>(k, DType::Bool);
  fill_small<uint8_t>(k, DType::U8);
  fill_small<int8_t>(k, DType::I8);
  fill_small<uint16_t>(k, DType::U16);
  fill_small<int16_t>(k, DType::I16);
  const auto same = [&](DType d, ConvertFn f) { k.load[at(d)][at(type_of(d))] = k.store[at(d)][at(type_of(d))] = f; };
  same(DType::I32, move_as<int32_t>);
  same(DType::F32, move_as<float>);
  same(DType::I64, move_as<int64_t>);
  same(DType::U64, move_as<int64_t>);
  same(DType::F64, move_as<double>);
  k.load[at(DType::U32)][at(Type::I64)] = load_as<uint32_t, int64_t>;
  k.store[at(DType::U32)][at(Type::I64)] = store_as<uint32_t, int64_t>;
  k.load[at(DType::F16)][at(Type::F32)] = load_f16;
  k.store[at(DType::F16)][at(Type::F32)] = store_f16;
  k.load[at(DType::BF16)][at(Type::F32)] = load_bf16;
  k.store[at(DType::BF16)][at(Type::F32)] = store_bf16;
  fill_groups<int32_t>(k);
  fill_groups<float>(k);
  fill_interleaved<uint8_t>(k);
  fill_interleaved<uint16_t>(k);
  fill_interleaved<uint32_t>(k);
  fill_interleaved<uint64_t>(k);
}
