// SPDX-License-Identifier: Apache-2.0
// Loops over rows of samples, compiled once per instruction set. Plain loops that compilers turn into vectors: integers
// have the same results in any order.

template <class T>
void terms_of(const T* u, const T* v, int64_t chroma, int shift_x, const Weights& w, int32_t* const* terms) {
  const int32_t half = 1 << (kFractionBits + w.extra - 1);
  const int32_t base = half - w.luma * w.luma_zero;
  int32_t* __restrict red = terms[0], * __restrict green = terms[1], * __restrict blue = terms[2];
  const int32_t red_v = w.red_v, green_u = w.green_u, green_v = w.green_v, blue_u = w.blue_u, zero = w.chroma_zero;
  if (shift_x == 1) {
    for (int64_t x = 0; x < chroma; ++x) {
      const int32_t du = u[x] - zero, dv = v[x] - zero;
      const int32_t r = base + red_v * dv, g = base + green_u * du + green_v * dv, b = base + blue_u * du;
      red[2 * x] = r, red[2 * x + 1] = r;
      green[2 * x] = g, green[2 * x + 1] = g;
      blue[2 * x] = b, blue[2 * x + 1] = b;
    }
    return;
  }
  const int64_t repeats = int64_t{1} << shift_x;
  for (int64_t x = 0; x < chroma; ++x) {
    const int32_t du = u[x] - zero, dv = v[x] - zero;
    for (int64_t i = x * repeats; i < (x + 1) * repeats; ++i) {
      red[i] = base + red_v * dv;
      green[i] = base + green_u * du + green_v * dv;
      blue[i] = base + blue_u * du;
    }
  }
}

inline uint8_t clamped(int32_t value) { return static_cast<uint8_t>(value < 0 ? 0 : value > 255 ? 255 : value); }

// One channel of a row. Compilers turn loops with one output into vectors.
template <class T>
void channel_of(const T* __restrict luma, const int32_t* __restrict term, int64_t width, int32_t weight, int shift,
                uint8_t* __restrict to) {
  for (int64_t x = 0; x < width; ++x) to[x] = clamped((weight * luma[x] + term[x]) >> shift);
}

template <class T>
void channels_of(const T* luma, const int32_t* const* terms, int64_t width, const Weights& w, uint8_t* const* to) {
  for (int c = 0; c < 3; ++c) channel_of(luma, terms[c], width, w.luma, kFractionBits + w.extra, to[c]);
}

template <class T>
void stored_of(const T* from, int64_t samples, int shift_x, const Weights& w, uint8_t* to) {
  const int64_t repeats = int64_t{1} << shift_x;
  const int32_t half = w.extra ? 1 << (w.extra - 1) : 0;
  for (int64_t x = 0; x < samples; ++x) {
    const uint8_t value = clamped((from[x] + half) >> w.extra);
    for (int64_t i = x * repeats; i < (x + 1) * repeats; ++i) to[i] = value;
  }
}

constexpr Forms kForms{{terms_of<uint8_t>, channels_of<uint8_t>, stored_of<uint8_t>},
                       {terms_of<uint16_t>, channels_of<uint16_t>, stored_of<uint16_t>}};
