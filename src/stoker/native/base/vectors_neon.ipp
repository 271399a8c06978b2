// SPDX-License-Identifier: Apache-2.0
// The operations of base/vectors.ipp for NEON, which every 64-bit Arm has.

inline V<uint8_t> load_parts(const uint8_t* const (&from)[1]) { return vld1q_u8(from[0]); }
inline void store_parts(uint8_t* const (&to)[1], V<uint8_t> x) { vst1q_u8(to[0], x); }
inline V<uint8_t> repeat_part(const void* p) { return load_vector<uint8_t>(p); }

inline V<uint8_t> shuffle_parts(V<uint8_t> x, V<uint8_t> by) { return vqtbl1q_u8(x, by); }
inline V<uint8_t> reverse_parts(V<uint8_t> x) { return x; }

template <int Size>
inline void reverse_last(uint8_t* d, const uint8_t* s, int n, V<uint8_t>) {
  reverse_each<Size>(d, s, n);
}

constexpr int kLastTwelve = 0;
template <bool Back>
inline V<uint8_t> load_twelves(const uint8_t* p) {
  uint32_t last;
  std::memcpy(&last, p + 8, sizeof last);
  return vcombine_u8(vld1_u8(p), vreinterpret_u8_u32(vset_lane_u32(last, vdup_n_u32(0), 0)));
}
inline void store_twelves(uint8_t* p, V<uint8_t> x) {
  vst1_u8(p, vget_low_u8(x));
  const uint32_t last = vgetq_lane_u32((uint32x4_t)x, 2);
  std::memcpy(p + 8, &last, sizeof last);
}

inline V<uint8_t> pack_bytes(V<int32_t> a, V<int32_t> b, V<int32_t> c, V<int32_t> d) {
  const int16x8_t first = vcombine_s16(vqmovn_s32(a), vqmovn_s32(b)),
                  second = vcombine_s16(vqmovn_s32(c), vqmovn_s32(d));
  return vcombine_u8(vqmovun_s16(first), vqmovun_s16(second));
}

constexpr int kWidened = 4;
inline void widen_bytes(const uint8_t* p, V<int32_t> (&to)[kWidened]) {
  const uint8x16_t bytes = vld1q_u8(p);
  const uint16x8_t low = vmovl_u8(vget_low_u8(bytes)), high = vmovl_u8(vget_high_u8(bytes));
  to[0] = (V<int32_t>)vmovl_u16(vget_low_u16(low));
  to[1] = (V<int32_t>)vmovl_u16(vget_high_u16(low));
  to[2] = (V<int32_t>)vmovl_u16(vget_low_u16(high));
  to[3] = (V<int32_t>)vmovl_u16(vget_high_u16(high));
}

constexpr int kNarrowed = 4;
// Take every second 16-bit lane, then every second byte.
inline void narrow_bytes(uint8_t* p, const V<int32_t> (&from)[kNarrowed]) {
  const uint16x8_t low = vuzp1q_u16((uint16x8_t)from[0], (uint16x8_t)from[1]);
  const uint16x8_t high = vuzp1q_u16((uint16x8_t)from[2], (uint16x8_t)from[3]);
  vst1q_u8(p, vuzp1q_u8((uint8x16_t)low, (uint8x16_t)high));
}

// The conversion to unsigned saturates and gives 0 for NaN.
inline V<int32_t> round_to_bytes(V<float> x) { return (V<int32_t>)vminq_u32(vcvtnq_u32_f32(x), vdupq_n_u32(255)); }

inline V<int32_t> round_small_ints(V<float> x) { return vcvtnq_s32_f32(x); }

inline V<uint64_t> multiply_words(V<uint64_t> x, uint32_t by) {
  return (V<uint64_t>)vmull_u32(vmovn_u64((uint64x2_t)x), vdup_n_u32(by));
}

inline V<double> multiply_add(V<double> x, V<double> y, V<double> z) {
  return (V<double>)vfmaq_f64((float64x2_t)z, (float64x2_t)x, (float64x2_t)y);
}

inline V<float> square_root(V<float> x) { return (V<float>)vsqrtq_f32((float32x4_t)x); }
inline bool any_lane(V<int64_t> x) { return vmaxvq_u32((uint32x4_t)x) != 0; }

inline V<float> load_halves(const void* p) {
  return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(static_cast<const uint8_t*>(p))));
}
inline void store_halves(void* p, V<float> x) {
  vst1_u8(static_cast<uint8_t*>(p), vreinterpret_u8_f16(vcvt_f16_f32(x)));
}

inline void load_last_halves(float* d, const void* p, int n) { load_each_half(d, p, n); }
inline void store_last_halves(void* p, const float* s, int n) { store_each_half(p, s, n); }

// The table is four tables of 64 bytes; a lookup with an index beyond a table keeps the lane.
class ByteTable {
 public:
  explicit ByteTable(const uint8_t* table)
      : table0_(load(table)), table1_(load(table + 64)), table2_(load(table + 128)), table3_(load(table + 192)) {}
  V<uint8_t> operator[](V<uint8_t> index) const {
    uint8x16_t found = vqtbl4q_u8(table0_, index);
    found = vqtbx4q_u8(found, table1_, index - 64);
    found = vqtbx4q_u8(found, table2_, index - 128);
    return vqtbx4q_u8(found, table3_, index - 192);
  }

 private:
  static uint8x16x4_t load(const uint8_t* p) {
    return {{vld1q_u8(p), vld1q_u8(p + 16), vld1q_u8(p + 32), vld1q_u8(p + 48)}};
  }
  uint8x16x4_t table0_, table1_, table2_, table3_;
};
