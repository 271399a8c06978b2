// SPDX-License-Identifier: Apache-2.0
// Vector types of one instruction set. Included inside a namespace, once per instruction set, with STOKER_VECTOR_BYTES
// set and the compiler's target switched (target_begin_*.hpp): every set gets the same text, and so the same results.
//
// The compiler's vector extensions give arithmetic, comparisons and selection. base/vectors_avx2.ipp,
// base/vectors_avx512.ipp and base/vectors_neon.ipp add, under the same names, the operations that they lack:
//
//   load_parts(from), store_parts(to, x)  16 bytes at each of kParts addresses
//   load_blocks(p)                        16 bytes at p, p + 48, ...; bytes in between may be read (not on NEON)
//   store_blocks(p, rows)                 48 bytes for each part, contiguous: bytes 0 to 15 from rows[0], ... (not on NEON)
//   repeat_part(p)                        the same 16 bytes in every part
//   shuffle_parts(x, by)                  byte i of a part: byte by[i] of that part, or 0 where by[i] has its top bit set
//   reverse_parts(x)                      the last part first, bytes within parts as they are
//   reverse_last<Size>(d, s, n, within)   n elements, less than a vector of them, mirrored; `within`: a part's shuffle
//   load_twelves<Back>(p)                 12 bytes in every part, from the first part on or (Back) from the last one on;
//                                         they begin at byte 0, but those that come last in memory at byte kLastTwelve
//   store_twelves(p, x)                   the first 12 bytes of every part, contiguous
//   pack_bytes(a, b, c, d)                within parts: four int32 of each, saturated to 0..255
//   widen_bytes(p, to)                    kWidened vectors of int32 from bytes
//   narrow_bytes(p, from)                 the low bytes of kNarrowed vectors of int32
//   round_to_bytes(x)                     float to int32: half to even, 0..255, NaN gives 0
//   round_small_ints(x)                   float to int32: half to even; numbers and results must be below 2^31
//   load_halves(p), store_halves(p, x)    float16 in memory, float32 in registers
//   load_last_halves(d, p, n), store_last_halves(p, s, n)   the same for n < kLanes<float> of them
//   multiply_words(x, by)                 64-bit products of the low 32 bits of each 64-bit lane
//   multiply_add(x, y, z)                 x y + z of doubles, fused or not
//   square_root(x)                        of floats
//   any_lane(x)                           whether a 64-bit lane is not 0
//   ByteTable                             256 bytes, looked up by a vector of indices

template <class T>
struct Vector {
  typedef T type __attribute__((vector_size(STOKER_VECTOR_BYTES), may_alias));
  typedef T loose __attribute__((vector_size(STOKER_VECTOR_BYTES), aligned(sizeof(T)), may_alias));
};
template <class T>
using V = typename Vector<T>::type;
template <class T>
using Loose = typename Vector<T>::loose;  // for unaligned addresses
template <class T>
constexpr int kLanes = STOKER_VECTOR_BYTES / static_cast<int>(sizeof(T));
constexpr int kParts = STOKER_VECTOR_BYTES / 16;

template <class T>
inline V<T> load_vector(const void* p) {
  return *static_cast<const Loose<T>*>(p);
}
template <class T>
inline void store_vector(void* p, V<T> x) {
  *static_cast<Loose<T>*>(p) = x;
}

// Plain code, one element at a time.
inline void load_each_half(float* d, const void* p, int n) {
  for (int i = 0; i < n; ++i) {
    uint16_t half;
    std::memcpy(&half, static_cast<const uint8_t*>(p) + 2 * i, sizeof half);
    d[i] = float_from_half(half);
  }
}
inline void store_each_half(void* p, const float* s, int n) {
  for (int i = 0; i < n; ++i) {
    const uint16_t half = half_from_float(s[i]);
    std::memcpy(static_cast<uint8_t*>(p) + 2 * i, &half, sizeof half);
  }
}

template <int Size>
inline void reverse_each(uint8_t* __restrict d, const uint8_t* __restrict s, int n) {
  s += static_cast<ptrdiff_t>(n) * Size;
  for (int i = 0; i < n; ++i, d += Size) {
    s -= Size;
    std::memcpy(d, s, Size);
  }
}
