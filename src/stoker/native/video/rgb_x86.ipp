// SPDX-License-Identifier: Apache-2.0
// Red, green and blue of a row of bytes, with the vectors `V` of an instruction set. Included after video/convert.ipp.

// Channels of a row in one pass. A channel is a sum of products of words: of luma and a chroma sample, and for green of
// the other chroma sample and one, whose weight is the half that rounds. The sums are those of `channel_of`, and packing
// with saturation clamps as it does.
void rgb_of(const uint8_t* luma, const uint8_t* u, const uint8_t* v, int64_t width, int shift_x, const Weights& w,
            uint8_t* const* to) {
  constexpr int32_t kHalf = 1 << (kFractionBits - 1);
  const auto pair = [](int32_t low, int32_t high) {
    return V::pairs(static_cast<int32_t>((static_cast<uint32_t>(high) << 16) | (static_cast<uint32_t>(low) & 0xFFFF)));
  };
  const V::Words luma_zero = V::words(w.luma_zero), chroma_zero = V::words(w.chroma_zero), one = V::words(1);
  const V::Words half = V::pairs(kHalf), red_weights = pair(w.luma, w.red_v), blue_weights = pair(w.luma, w.blue_u);
  const V::Words green_weights = pair(w.luma, w.green_u), rest_weights = pair(w.green_v, kHalf);
  const auto shifted = [](V::Words low, V::Words high) { return V::packed(V::down(low), V::down(high)); };
  const auto sums = [&](V::Words a, V::Words b, V::Words weights) {
    return shifted(V::add(V::products(V::low(a, b), weights), half), V::add(V::products(V::high(a, b), weights), half));
  };
  int64_t x = 0;
  for (; x + V::kBlock <= width; x += V::kBlock) {
    const V::Words ys = V::load(luma + x);
    const V::Words us = shift_x ? V::doubled(u + (x >> 1)) : V::load(u + x);
    const V::Words vs = shift_x ? V::doubled(v + (x >> 1)) : V::load(v + x);
    V::Words red[2], green[2], blue[2];
    for (int i = 0; i < 2; ++i) {
      const V::Words y = V::sub(V::widened(ys, i), luma_zero);
      const V::Words du = V::sub(V::widened(us, i), chroma_zero), dv = V::sub(V::widened(vs, i), chroma_zero);
      red[i] = sums(y, dv, red_weights);
      blue[i] = sums(y, du, blue_weights);
      green[i] =
          shifted(V::add(V::products(V::low(y, du), green_weights), V::products(V::low(dv, one), rest_weights)),
                  V::add(V::products(V::high(y, du), green_weights), V::products(V::high(dv, one), rest_weights)));
    }
    V::store(to[0] + x, red), V::store(to[1] + x, green), V::store(to[2] + x, blue);
  }
  for (; x < width; ++x) {
    const int32_t y = w.luma * (luma[x] - w.luma_zero) + kHalf;
    const int32_t du = u[x >> shift_x] - w.chroma_zero, dv = v[x >> shift_x] - w.chroma_zero;
    to[0][x] = clamped((y + w.red_v * dv) >> kFractionBits);
    to[1][x] = clamped((y + w.green_u * du + w.green_v * dv) >> kFractionBits);
    to[2][x] = clamped((y + w.blue_u * du) >> kFractionBits);
  }
}

Forms forms_x86() {
  Forms forms = kForms;
  forms.bytes.rgb = rgb_of;
  return forms;
}
