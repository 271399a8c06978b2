// SPDX-License-Identifier: Apache-2.0
// Loads and stores for which compilers generate slow code: bytes, half floats, pixels of three bytes, mirrored rows and
// tables. Written once over the operations of base/vectors.ipp; included after base/vectors_*.ipp.

void load_f16(void* __restrict dst, const void* __restrict src, int n) {
  auto* d = static_cast<float*>(dst);
  const auto* s = static_cast<const uint8_t*>(src);
  int i = 0;
  for (; i + kLanes<float> <= n; i += kLanes<float>) store_vector<float>(d + i, load_halves(s + 2 * i));
  if (i < n) load_last_halves(d + i, s + 2 * i, n - i);
}

void store_f16(void* __restrict dst, const void* __restrict src, int n) {
  const auto* s = static_cast<const float*>(src);
  auto* d = static_cast<uint8_t*>(dst);
  int i = 0;
  for (; i + kLanes<float> <= n; i += kLanes<float>) store_halves(d + 2 * i, load_vector<float>(s + i));
  if (i < n) store_last_halves(d + 2 * i, s + i, n - i);
}

#include "pixel/loops.ipp"

template <class Register>
inline void store_lanes(Register* d, V<int32_t> x) {
  if constexpr (kFloat<Register>) store_vector<float>(d, __builtin_convertvector(x, V<float>));
  else store_vector<int32_t>(d, x);
}

template <class Register>
inline V<int32_t> load_ints(const Register* s) {
  if constexpr (kFloat<Register>) return round_to_bytes(load_vector<float>(s));
  else return load_vector<int32_t>(s);
}

template <class Register>
void load_bytes(void* __restrict dst, const void* __restrict src, int n) {
  auto* d = static_cast<Register*>(dst);
  const auto* s = static_cast<const uint8_t*>(src);
  constexpr int kStep = kWidened * kLanes<int32_t>;
  int i = 0;
  for (; i + kStep <= n; i += kStep) {
    V<int32_t> x[kWidened];
    widen_bytes(s + i, x);
    for (int k = 0; k < kWidened; ++k) store_lanes(d + i + k * kLanes<int32_t>, x[k]);
  }
  for (; i < n; ++i) d[i] = s[i];
}

// Only the low byte of an integer matters, for U8, I8 and Bool alike.
template <class Register>
void store_bytes(void* __restrict dst, const void* __restrict src, int n) {
  const auto* s = static_cast<const Register*>(src);
  auto* d = static_cast<uint8_t*>(dst);
  constexpr int kStep = kNarrowed * kLanes<int32_t>;
  int i = 0;
  for (; i + kStep <= n; i += kStep) {
    V<int32_t> x[kNarrowed];
    for (int k = 0; k < kNarrowed; ++k) x[k] = load_ints(s + i + k * kLanes<int32_t>);
    narrow_bytes(d + i, x);
  }
  if (i == n) return;
  if constexpr (kFloat<Register>) store_cast<uint8_t>(d + i, s + i, n - i);
  else store_as<uint8_t, int32_t>(d + i, s + i, n - i);
}

// A byte shuffle spreads one channel of the four pixels in a part over four 32-bit lanes. With `Back` the last pixel
// comes first, which only needs other shuffles.
template <bool Back>
inline V<uint8_t> spread_of(int channel) {
  alignas(STOKER_VECTOR_BYTES) uint8_t by[STOKER_VECTOR_BYTES];
  for (int i = 0; i < STOKER_VECTOR_BYTES; ++i) {
    const int part = i / 16, lane = i % 16 / 4, first = part == (Back ? 0 : kParts - 1) ? kLastTwelve : 0;
    by[i] = static_cast<uint8_t>(i % 4 ? 0x80 : first + 3 * (Back ? 3 - lane : lane) + channel);
  }
  return load_vector<uint8_t>(by);
}

template <class Register, bool Back>
void load_rgb(uint8_t* const* reg, const uint8_t* p, int n) {
  constexpr int kPixels = 4 * kParts;
  Register* d[3];
  V<uint8_t> spread[3];
  for (int c = 0; c < 3; ++c) {
    d[c] = reinterpret_cast<Register*>(reg[c]);
    spread[c] = spread_of<Back>(c);
  }
  int i = 0;
  for (; i + kPixels <= n; i += kPixels) {
    const V<uint8_t> bytes = load_twelves<Back>(p + 3 * (Back ? n - i - kPixels : i));
    for (int c = 0; c < 3; ++c) store_lanes(d[c] + i, (V<int32_t>)shuffle_parts(bytes, spread[c]));
  }
  for (; i < n; ++i)
    for (int c = 0; c < 3; ++c) d[c][i] = p[3 * (Back ? n - 1 - i : i) + c];
}

template <class Register>
void store_rgb(uint8_t* p, const uint8_t* const* reg, int n) {
  constexpr int kPixels = 4 * kParts;
  const Register* s[3];
  for (int c = 0; c < 3; ++c) s[c] = reinterpret_cast<const Register*>(reg[c]);
  constexpr uint8_t kClose[16] = {0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 0x80, 0x80, 0x80, 0x80};
  const V<uint8_t> close = repeat_part(kClose);
  int i = 0;
  for (; i + kPixels <= n; i += kPixels, p += 3 * kPixels) {
    const V<int32_t> r = load_ints(s[0] + i) & 255, g = load_ints(s[1] + i) & 255, b = load_ints(s[2] + i);
    store_twelves(p, shuffle_parts((V<uint8_t>)(r | g << 8 | b << 16), close));
  }
  if (i == n) return;
  const uint8_t* rest[3] = {};
  for (int c = 0; c < 3; ++c) rest[c] = reinterpret_cast<const uint8_t*>(s[c] + i);
  store_group<3, Register>(p, rest, n - i);
}

// Rows of an image, which are shorter than the copies that memcpy() is tuned for, and have at least a vector of bytes. The
// last vectors of a row overlap those before, which costs less than a loop over
// what is left; a call for each row would cost half of a short row's time.
void copy_rows(const RowCopy& copy) {
  constexpr int64_t kBytes = STOKER_VECTOR_BYTES, kTogether = 4, kStep = kTogether * kBytes, kCacheLine = 64;
  const int64_t n = copy.bytes;
  uint8_t* d = copy.to;
  const uint8_t* s = copy.from;
  const auto move = [&](int64_t to) {
    V<uint8_t> part[kTogether];
    for (int k = 0; k < kTogether; ++k) part[k] = load_vector<uint8_t>(s + to + k * kBytes);
    for (int k = 0; k < kTogether; ++k) store_vector<uint8_t>(d + to + k * kBytes, part[k]);
  };
  for (int64_t y = 0; y < copy.rows; ++y, d += copy.to_step, s += copy.from_step) {
    for (int64_t i = 0; i < copy.ahead_bytes; i += kCacheLine) __builtin_prefetch(s + copy.ahead + i);
    if (n >= kStep) {
      for (int64_t i = 0; i + kStep < n; i += kStep) move(i);
      move(n - kStep);
      continue;
    }
    const int64_t last = n - kBytes, second = n >= 2 * kBytes ? kBytes : 0, third = last - second;
    const V<uint8_t> part[kTogether] = {load_vector<uint8_t>(s), load_vector<uint8_t>(s + second),
                                        load_vector<uint8_t>(s + third), load_vector<uint8_t>(s + last)};
    store_vector<uint8_t>(d, part[0]);
    store_vector<uint8_t>(d + second, part[1]);
    store_vector<uint8_t>(d + third, part[2]);
    store_vector<uint8_t>(d + last, part[3]);
  }
}

template <int Size>
void reverse(void* __restrict dst, const void* __restrict src, int n) {
  auto* d = static_cast<uint8_t*>(dst);
  const auto* s = static_cast<const uint8_t*>(src) + static_cast<ptrdiff_t>(n) * Size;
  uint8_t order[16];  // within a part
  for (int i = 0; i < 16; ++i) order[i] = static_cast<uint8_t>((15 - i) / Size * Size + i % Size);
  const V<uint8_t> within = repeat_part(order);
  constexpr int kStep = STOKER_VECTOR_BYTES / Size;
  int i = 0;
  for (; i + kStep <= n; i += kStep, d += STOKER_VECTOR_BYTES) {
    s -= STOKER_VECTOR_BYTES;
    store_vector<uint8_t>(d, reverse_parts(shuffle_parts(load_vector<uint8_t>(s), within)));
  }
  if (i < n) reverse_last<Size>(d, s - static_cast<ptrdiff_t>(n - i) * Size, n - i, within);
}

// Pixels of three bytes: five in every part. A part's sixteenth byte comes from a sixth pixel, and the next part writes
// over its place, so the last pixels go one at a time.
void reverse_rgb(void* __restrict dst, const void* __restrict src, int n) {
  auto* d = static_cast<uint8_t*>(dst);
  const auto* s = static_cast<const uint8_t*>(src) + static_cast<ptrdiff_t>(n) * 3;
  uint8_t order[16];
  for (int i = 0; i < 15; ++i) order[i] = static_cast<uint8_t>(13 - i / 3 * 3 + i % 3);
  order[15] = 0x80;
  const V<uint8_t> within = repeat_part(order);
  constexpr int kPixels = 5 * kParts;
  int i = 0;
  for (; i + kPixels < n; i += kPixels, d += 3 * kPixels, s -= 3 * kPixels) {
    const uint8_t* from[kParts];
    uint8_t* to[kParts];
    for (int k = 0; k < kParts; ++k) {
      from[k] = s - 15 * k - 16;
      to[k] = d + 15 * k;
    }
    store_parts(to, shuffle_parts(load_parts(from), within));
  }
  reverse_each<3>(d, s - 3 * static_cast<ptrdiff_t>(n - i), n - i);
}

// Byte shuffles that gather channel c of sixteen pixels from three parts (deal), or the parts from the channels (weave).
struct RgbShuffles {
  V<uint8_t> deal[3][3], weave[3][3];  // [result][source]

  RgbShuffles() {
    uint8_t by[3][3][16], back[3][3][16];
    for (auto* table : {&by, &back}) std::memset(*table, 0x80, sizeof *table);
    for (int j = 0; j < 48; ++j) {  // byte j of the pixels is channel j % 3 of pixel j / 3
      by[j % 3][j / 16][j / 3] = static_cast<uint8_t>(j % 16);
      back[j / 16][j % 3][j % 16] = static_cast<uint8_t>(j / 3);
    }
    for (int r = 0; r < 3; ++r)
      for (int s = 0; s < 3; ++s) {
        deal[r][s] = repeat_part(by[r][s]);
        weave[r][s] = repeat_part(back[r][s]);
      }
  }
};

inline V<uint8_t> gather_parts(const V<uint8_t> (&from)[3], const V<uint8_t> (&by)[3]) {
  return shuffle_parts(from[0], by[0]) | shuffle_parts(from[1], by[1]) | shuffle_parts(from[2], by[2]);
}

// Three bytes of sixteen pixels in every part.
void deal_rgb_bytes(uint8_t* const* planes, const uint8_t* pixels, int n) {
  const RgbShuffles shuffles;
  constexpr int kPixels = 16 * kParts;
  int i = 0;
  for (; i + kPixels <= n; i += kPixels) {
    V<uint8_t> x[3];
    for (int s = 0; s < 3; ++s) {
      const uint8_t* from[kParts];
      for (int k = 0; k < kParts; ++k) from[k] = pixels + 3 * i + 48 * k + 16 * s;
      x[s] = load_parts(from);
    }
    for (int c = 0; c < 3; ++c) store_vector<uint8_t>(planes[c] + i, gather_parts(x, shuffles.deal[c]));
  }
  uint8_t* const rest[3] = {planes[0] + i, planes[1] + i, planes[2] + i};
  deal<3, uint8_t>(rest, pixels + 3 * i, n - i);
}

void weave_rgb_bytes(uint8_t* pixels, const uint8_t* const* planes, int n) {
  const RgbShuffles shuffles;
  constexpr int kPixels = 16 * kParts;
  int i = 0;
  for (; i + kPixels <= n; i += kPixels) {
    V<uint8_t> x[3];
    for (int c = 0; c < 3; ++c) x[c] = load_vector<uint8_t>(planes[c] + i);
    for (int s = 0; s < 3; ++s) {
      uint8_t* to[kParts];
      for (int k = 0; k < kParts; ++k) to[k] = pixels + 3 * i + 48 * k + 16 * s;
      store_parts(to, gather_parts(x, shuffles.weave[s]));
    }
  }
  const uint8_t* const rest[3] = {planes[0] + i, planes[1] + i, planes[2] + i};
  weave<3, uint8_t>(pixels + 3 * i, rest, n - i);
}

// The bytes from `floats` of one mix: truncation is floor, because the numbers are not negative.
template <bool kFloors>
inline V<int32_t> mixed_bytes(V<float> x) {
  if constexpr (kFloors) return __builtin_convertvector(clamp_float(x, V<float>{}, V<float>{} + 255.0f), V<int32_t>);
  else return round_to_bytes(x);
}

template <int kCount, bool kFloors>
void mix_planes(uint8_t* const* to, const uint8_t* const* from, const Mix* mixes, int n) {
  static_assert(kNarrowed % kWidened == 0);
  constexpr int kStep = kNarrowed * kLanes<int32_t>;
  V<float> weight[kCount][kMixed], before[kCount], after[kCount];
  for (int c = 0; c < kCount; ++c) {
    for (int k = 0; k < kMixed; ++k) weight[c][k] = V<float>{} + mixes[c].weight[k];
    before[c] = V<float>{} + mixes[c].before;
    after[c] = V<float>{} + mixes[c].after;
  }
  const auto mix = [&](uint8_t* const* out, const uint8_t* const* in, int i) {
    V<int32_t> bytes[kCount][kNarrowed];
    for (int first = 0; first < kNarrowed; first += kWidened) {
      V<int32_t> x[kMixed][kWidened];
      for (int k = 0; k < kMixed; ++k) widen_bytes(in[k] + i + first * kLanes<int32_t>, x[k]);
      for (int v = 0; v < kWidened; ++v) {
        V<float> f[kMixed];
        for (int k = 0; k < kMixed; ++k) f[k] = __builtin_convertvector(x[k][v], V<float>);
        for (int c = 0; c < kCount; ++c) {
          V<float> sum = f[0] * weight[c][0] + before[c];
          sum = sum + f[1] * weight[c][1];
          sum = sum + f[2] * weight[c][2];
          bytes[c][first + v] = mixed_bytes<kFloors>(sum + after[c]);
        }
      }
    }
    for (int c = 0; c < kCount; ++c) narrow_bytes(out[c] + i, bytes[c]);
  };
  int i = 0;
  for (; i + kStep <= n; i += kStep) mix(to, from, i);
  if (i == n) return;
  uint8_t in[kMixed][kStep] = {}, out[kCount][kStep];
  uint8_t* last_out[kCount];
  const uint8_t* last_in[kMixed];
  for (int k = 0; k < kMixed; ++k) {
    std::memcpy(in[k], from[k] + i, static_cast<size_t>(n - i));
    last_in[k] = in[k];
  }
  for (int c = 0; c < kCount; ++c) last_out[c] = out[c];
  mix(last_out, last_in, 0);
  for (int c = 0; c < kCount; ++c) std::memcpy(to[c] + i, out[c], static_cast<size_t>(n - i));
}

void mix_bytes(uint8_t* const* to, const uint8_t* const* from, const Mix* mixes, int count, int n) {
  if (count == 1) {
    if (mixes[0].floors) mix_planes<1, true>(to, from, mixes, n);
    else mix_planes<1, false>(to, from, mixes, n);
  } else {
    mix_planes<kMixed, false>(to, from, mixes, n);
  }
}

void lookup_bytes(void* dst, const uint8_t* src, const void* table, int n) {
  auto* d = static_cast<uint8_t*>(dst);
  const auto* t = static_cast<const uint8_t*>(table);
  const ByteTable found(t);
  int i = 0;
  for (; i + STOKER_VECTOR_BYTES <= n; i += STOKER_VECTOR_BYTES)
    store_vector<uint8_t>(d + i, found[load_vector<uint8_t>(src + i)]);
  for (; i < n; ++i) d[i] = t[src[i]];
}

#include "pixel/functions.ipp"

void sqrt_f32(const Micro& m, int lanes) {
  map1<float, float>(m, lanes, [](V<float> x) -> V<float> { return square_root(x); });
}

void fill_moves(Kernels& k) {
  fill_loops(k);
  fill_double_functions(k);
  k.op[at(Op::Sqrt)][at(Type::F32)] = sqrt_f32;
  const int i32 = at(Type::I32), f32 = at(Type::F32);
  for (const DType d : {DType::U8, DType::Bool}) {
    k.load[at(d)][i32] = load_bytes<int32_t>;
    k.load[at(d)][f32] = load_bytes<float>;
  }
  for (const DType d : {DType::U8, DType::I8, DType::Bool}) k.store[at(d)][i32] = store_bytes<int32_t>;
  k.store[at(DType::U8)][f32] = store_bytes<float>;
  k.load_group[3][i32] = load_rgb<int32_t, false>;
  k.load_group[3][f32] = load_rgb<float, false>;
  k.load_group_back[3][i32] = load_rgb<int32_t, true>;
  k.load_group_back[3][f32] = load_rgb<float, true>;
  k.store_group[3][i32] = store_rgb<int32_t>;
  k.store_group[3][f32] = store_rgb<float>;
  k.rows = copy_rows;
  k.least_row = STOKER_VECTOR_BYTES;
  k.reverse[1] = reverse<1>;
  k.reverse[2] = reverse<2>;
  k.reverse[4] = reverse<4>;
  k.reverse[8] = reverse<8>;
  k.reverse[3] = reverse_rgb;
  k.deal[1][3] = deal_rgb_bytes;
  k.weave[1][3] = weave_rgb_bytes;
  k.lookup[1] = lookup_bytes;
  k.mix = mix_bytes;
}
