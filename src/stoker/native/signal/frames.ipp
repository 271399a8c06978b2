// SPDX-License-Identifier: Apache-2.0
// Movement of frames into the lanes of vectors and back. Lane l of every vector belongs to frame first + l.

constexpr int kFrames = kLanes<float>;  // of a group

typedef float Part __attribute__((vector_size(16)));
typedef float LoosePart __attribute__((vector_size(16), aligned(4), may_alias));

[[gnu::always_inline]] inline Part load_part(const float* p) { return *reinterpret_cast<const LoosePart*>(p); }

// Vector whose part p has the four floats at from[p] + at.
[[gnu::always_inline]] inline V<float> load_four(const float* const (&from)[kParts], int64_t at) {
#if STOKER_VECTOR_BYTES == 16
  return load_part(from[0] + at);
#elif STOKER_VECTOR_BYTES == 32
  return _mm256_insertf128_ps(_mm256_castps128_ps256(load_part(from[0] + at)), load_part(from[1] + at), 1);
#else
  __m512 x = _mm512_castps128_ps512(load_part(from[0] + at));
  x = _mm512_insertf32x4(x, load_part(from[1] + at), 1);
  x = _mm512_insertf32x4(x, load_part(from[2] + at), 2);
  return _mm512_insertf32x4(x, load_part(from[3] + at), 3);
#endif
}

// Elements A and B of every part of a, then C and D of every part of b.
template <int A, int B, int C, int D>
[[gnu::always_inline]] inline V<float> choose(V<float> a, V<float> b) {
#if STOKER_VECTOR_BYTES == 16
  return __builtin_shufflevector(a, b, A, B, 4 + C, 4 + D);
#elif STOKER_VECTOR_BYTES == 32
  return __builtin_shufflevector(a, b, A, B, 8 + C, 8 + D, 4 + A, 4 + B, 12 + C, 12 + D);
#else
  return __builtin_shufflevector(a, b, A, B, 16 + C, 16 + D, 4 + A, 4 + B, 20 + C, 20 + D, 8 + A, 8 + B, 24 + C, 24 + D,
                                 12 + A, 12 + B, 28 + C, 28 + D);
#endif
}

// Transpose the 4 x 4 floats of each part.
[[gnu::always_inline]] inline void transpose_parts(V<float> (&x)[4]) {
  const V<float> a = choose<0, 1, 0, 1>(x[0], x[1]), b = choose<2, 3, 2, 3>(x[0], x[1]);
  const V<float> c = choose<0, 1, 0, 1>(x[2], x[3]), d = choose<2, 3, 2, 3>(x[2], x[3]);
  x[0] = choose<0, 2, 0, 2>(a, c);
  x[1] = choose<1, 3, 1, 3>(a, c);
  x[2] = choose<0, 2, 0, 2>(b, d);
  x[3] = choose<1, 3, 1, 3>(b, d);
}

// Rows of floats that begin `apart` floats from each other.
struct Rows {
  const float* data;
  int64_t apart;
};

// Call put_four(i, x) for four samples each, then put(i, x) for the samples that are left. Lane l of x is row l's.
template <class PutFour, class Put>
[[gnu::always_inline]] inline void transposed(const Rows& rows, int64_t length, PutFour put_four, Put put) {
  const float* part[kParts];  // row 4 p at sample i
  for (int p = 0; p < kParts; ++p) part[p] = rows.data + 4 * p * rows.apart;
  int64_t i = 0;
  for (; i + 4 <= length; i += 4) {
    const float* from[kParts];
    for (int p = 0; p < kParts; ++p) {
      from[p] = part[p];
      asm("" : "+r"(from[p]));  // else the compiler keeps an address for each row, more than there are registers
      part[p] += 4;
    }
    V<float> x[4];
    for (int j = 0; j < 4; ++j) x[j] = load_four(from, j * rows.apart);
    transpose_parts(x);
    put_four(i, x);
  }
  for (; i < length; ++i) {
    V<float> x = {};
    for (int l = 0; l < kFrames; ++l) x[l] = rows.data[l * rows.apart + i];
    put(i, x);
  }
}

// Transpose the parts of kParts vectors.
[[gnu::always_inline]] inline void exchange_parts(V<float> (&x)[kParts]) {
#if STOKER_VECTOR_BYTES == 32
  const V<float> a = __builtin_shufflevector(x[0], x[1], 0, 1, 2, 3, 8, 9, 10, 11);
  x[1] = __builtin_shufflevector(x[0], x[1], 4, 5, 6, 7, 12, 13, 14, 15);
  x[0] = a;
#elif STOKER_VECTOR_BYTES == 64
  const auto even = [](V<float> a, V<float> b) __attribute__((always_inline)) {  // parts 0 and 2 of both
    return __builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27);
  };
  const auto odd = [](V<float> a, V<float> b) __attribute__((always_inline)) {
    return __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31);
  };
  const V<float> a = even(x[0], x[1]), b = odd(x[0], x[1]), c = even(x[2], x[3]), d = odd(x[2], x[3]);
  x[0] = even(a, c);
  x[1] = even(b, d);
  x[2] = odd(a, c);
  x[3] = odd(b, d);
#endif
}

// Store `count` floats of a vector.
[[gnu::always_inline]] inline void store_first(float* to, V<float> x, int count) {
  if (count == kFrames) return store_vector<float>(to, x);
  alignas(STOKER_VECTOR_BYTES) float lanes[kFrames];
  *reinterpret_cast<V<float>*>(lanes) = x;
  std::memcpy(to, lanes, static_cast<size_t>(count) * sizeof(float));
}

// Store the bins of the first `count` frames of a group.
inline void store_group(const V<float>* x, int64_t bins, int64_t first, int count, const Bins& out) {
  float* to = out.data + first * out.frame;
  if (out.frame == 1) {
    for (int64_t b = 0; b < bins; ++b) store_first(to + b * out.bin, x[b], count);
    return;
  }
  int64_t b = 0;
  if (out.bin == 1 && count == kFrames)
    for (; b + kFrames <= bins; b += kFrames) {
      // Part p of row 4 p + j of a quarter q are bins 4 q.. of a frame; then the parts of a frame come together.
      V<float> y[4][kParts];
      for (int q = 0; q < kParts; ++q) {
        V<float> four[4] = {x[b + 4 * q], x[b + 4 * q + 1], x[b + 4 * q + 2], x[b + 4 * q + 3]};
        transpose_parts(four);
        for (int j = 0; j < 4; ++j) y[j][q] = four[j];
      }
      for (int j = 0; j < 4; ++j) {
        exchange_parts(y[j]);
        for (int p = 0; p < kParts; ++p) store_vector<float>(to + (4 * p + j) * out.frame + b, y[j][p]);
      }
    }
  for (; b < bins; ++b)
    for (int l = 0; l < count; ++l) to[l * out.frame + b * out.bin] = x[b][l];
}
