// SPDX-License-Identifier: Apache-2.0
// Red, green and blue of a row of bytes, over the vectors of base/vectors.ipp. Included after them, video/convert.ipp and
//
//   multiply_pairs(a, weights)  words times words: each lane of int32 is the sum of the products of its two words
//   add_pairs(x, a, weights)    the same, added to x
//   pack_words(a, b)            words as bytes, saturated: within each part those of `a`, then those of `b`
//   weave(channels)             three such vectors of channels as pixels, in the order of memory
//   words_of_bytes(p)           the next kLanes<int16_t> bytes as words
//   stream_vector(to, x)        store of a vector past the caches, to a multiple of its size

// A block of pixels is computed as four groups, of every fourth pixel: lanes of int32 hold pairs of words, of which a
// weight of 0 leaves one out, so that no lane moves before the bytes are packed. Two groups share their chroma if two
// pixels do. Samples are scaled so that the upper word of a sum is the value, and the upper words of two groups become
// one vector of words without a shift of each. Within a part, `pack_words` gives the even pixels, then the odd ones.
constexpr int kBlock = 2 * kLanes<int16_t>;
constexpr int kScale = 16 - kFractionBits;  // as a power of two; of samples

inline V<int32_t> repeated(int32_t x) { return V<int32_t>{} + x; }

// Words of pixels with even and with odd numbers: two pixels share a sample of chroma, or each has its own.
struct Words {
  V<int16_t> of[2];
};
inline Words alternate(V<uint16_t> bytes) {
  constexpr uint16_t kMost = 255 << kScale;
  return {{(V<int16_t>)((bytes << kScale) & kMost), (V<int16_t>)((bytes >> (8 - kScale)) & kMost)}};
}
// The upper words of two vectors, in turn.
inline V<int16_t> upper_words(V<int32_t> even, V<int32_t> odd) {
  return (V<int16_t>)(((V<uint32_t>)even >> 16) | ((V<uint32_t>)odd & 0xFFFF0000u));
}
template <bool kShared>
inline Words chroma_words(const uint8_t* at) {
  if constexpr (!kShared) return alternate((V<uint16_t>)load_vector<uint8_t>(at));
  const V<int16_t> words = words_of_bytes(at) << kScale;
  return {{words, words}};
}

// Samples of chroma that one outer channel depends on, and the weights for it and for the channel in the middle.
struct OuterChannel {
  const uint8_t* chroma;
  int32_t weight, middle;
};

// A weight for the first word of each pair, and for the second one.
struct PairWeights {
  explicit PairWeights(int32_t weight)
      : of{repeated(weight & 0xFFFF), repeated(static_cast<int32_t>(static_cast<uint32_t>(weight) << 16))} {}
  V<int32_t> of[2];
};

// Green is in the middle; the first and the last channel are red and blue, or blue and red. A channel is the sum of
// weighted samples and a constant, as in `channel_of`. `past`: with non-temporal stores; `to` is a multiple of the size of a vector.
template <bool kShared>
void rgb_of_row(const uint8_t* luma, OuterChannel first, OuterChannel last, int64_t width, const Weights& w, bool past,
                uint8_t* to) {
  const PairWeights light(w.luma), outer[2] = {PairWeights(first.weight), PairWeights(last.weight)};
  const PairWeights middle[2] = {PairWeights(first.middle), PairWeights(last.middle)};
  const int32_t base = (1 << (kFractionBits - 1)) - w.luma * w.luma_zero;
  const auto rest_of = [&](int32_t weight) { return repeated((base - weight * w.chroma_zero) * (1 << kScale)); };
  const V<int32_t> rest[3] = {rest_of(first.weight), rest_of(first.middle + last.middle), rest_of(last.weight)};
  const auto block = [&](const uint8_t* ys, const uint8_t* ps, const uint8_t* qs, uint8_t* out) {
    const Words y = alternate((V<uint16_t>)load_vector<uint8_t>(ys)), p = chroma_words<kShared>(ps),
                q = chroma_words<kShared>(qs);
    V<int32_t> sums[3][4];
    for (int i = 0; i < 4; ++i) {
      const int parity = i >> 1, place = i & 1;
      const V<int16_t> own_p = p.of[parity], own_q = q.of[parity];
      const V<int32_t> lit = multiply_pairs(y.of[parity], light.of[place]);
      const V<int32_t> one = add_pairs(rest[1], own_p, middle[0].of[place]);
      sums[0][i] = lit + add_pairs(rest[0], own_p, outer[0].of[place]);
      sums[1][i] = lit + add_pairs(one, own_q, middle[1].of[place]);
      sums[2][i] = lit + add_pairs(rest[2], own_q, outer[1].of[place]);
    }
    V<uint8_t> channels[3];
    for (int c = 0; c < 3; ++c) {
      channels[c] = pack_words(upper_words(sums[c][0], sums[c][1]), upper_words(sums[c][2], sums[c][3]));
    }
    weave(channels);
    for (int k = 0; k < 3; ++k) {
      uint8_t* const part = out + k * STOKER_VECTOR_BYTES;
      if (past) stream_vector(part, channels[k]);
      else store_vector<uint8_t>(part, channels[k]);
    }
  };
  int64_t x = 0;
  for (; x + kBlock <= width; x += kBlock)
    block(luma + x, first.chroma + (x >> kShared), last.chroma + (x >> kShared), to + 3 * x);
  if (x == width) return;
  alignas(64) uint8_t samples[3][kBlock] = {}, pixels[3 * kBlock];
  const auto left = static_cast<size_t>(width - x), own = (left + kShared) >> kShared;
  std::memcpy(samples[0], luma + x, left);
  std::memcpy(samples[1], first.chroma + (x >> kShared), own);
  std::memcpy(samples[2], last.chroma + (x >> kShared), own);
  block(samples[0], samples[1], samples[2], pixels);
  std::memcpy(to + 3 * x, pixels, 3 * left);
}

void rgb_of(const RgbRow<uint8_t>& row, const Weights& w, uint8_t* to) {
  const OuterChannel red{row.v, w.red_v, w.green_v}, blue{row.u, w.blue_u, w.green_u};
  const bool past = row.past && reinterpret_cast<uintptr_t>(to) % STOKER_VECTOR_BYTES == 0;
  const auto function = row.shift_x ? rgb_of_row<true> : rgb_of_row<false>;
  function(row.luma, row.bgr ? blue : red, row.bgr ? red : blue, row.width, w, past, to);
}

Forms forms_with_rgb() {
  Forms forms = kForms;
  forms.bytes.rgb = rgb_of;
  return forms;
}
