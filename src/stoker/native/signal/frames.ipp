// SPDX-License-Identifier: Apache-2.0
// Movement of frames into the lanes of vectors and back. Lane l of every vector belongs to frame first + l.

constexpr int kFrames = kLanes<float>;  // of a group

typedef float Part __attribute__((vector_size(16)));
typedef float LoosePart __attribute__((vector_size(16), aligned(4), may_alias));

[[gnu::always_inline]] inline Part load_part(const float* p) { return *reinterpret_cast<const LoosePart*>(p); }

// Vector whose part p has the four floats at from[4 p + j].
[[gnu::always_inline]] inline V<float> load_four(const float* const* from, int j, int64_t at) {
#if STOKER_VECTOR_BYTES == 16
  return load_part(from[j] + at);
#elif STOKER_VECTOR_BYTES == 32
  return __builtin_shufflevector(load_part(from[j] + at), load_part(from[4 + j] + at), 0, 1, 2, 3, 4, 5, 6, 7);
#else
  const auto low =
      __builtin_shufflevector(load_part(from[j] + at), load_part(from[4 + j] + at), 0, 1, 2, 3, 4, 5, 6, 7);
  const auto high =
      __builtin_shufflevector(load_part(from[8 + j] + at), load_part(from[12 + j] + at), 0, 1, 2, 3, 4, 5, 6, 7);
  return __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
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

// Call put(i, values) for the samples i < length of the frames that begin at from[].
template <class Put>
[[gnu::always_inline]] inline void transposed(const float* const* from, int64_t length, Put put) {
  int64_t i = 0;
  for (; i + 4 <= length; i += 4) {
    V<float> x[4];
    for (int j = 0; j < 4; ++j) x[j] = load_four(from, j, i);
    transpose_parts(x);
    for (int j = 0; j < 4; ++j) put(i + j, x[j]);
  }
  for (; i < length; ++i) {
    V<float> x = {};
    for (int l = 0; l < kFrames; ++l) x[l] = from[l][i];
    put(i, x);
  }
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
  for (; b + 4 <= bins && out.bin == 1; b += 4) {
    V<float> y[4] = {x[b], x[b + 1], x[b + 2], x[b + 3]};
    transpose_parts(y);
    alignas(STOKER_VECTOR_BYTES) float parts[4][kFrames];
    for (int j = 0; j < 4; ++j) *reinterpret_cast<V<float>*>(parts[j]) = y[j];
    for (int l = 0; l < count; ++l)
      *reinterpret_cast<LoosePart*>(to + l * out.frame + b) = load_part(&parts[l & 3][l & ~3]);
  }
  for (; b < bins; ++b)
    for (int l = 0; l < count; ++l) to[l * out.frame + b * out.bin] = x[b][l];
}
