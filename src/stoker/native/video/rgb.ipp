// SPDX-License-Identifier: Apache-2.0
// Red, green and blue of a row of bytes, over the vectors of base/vectors.ipp. Included after them, video/convert.ipp and
//
//   multiply_pairs(a, weights)  words times words: each lane of int32 is the sum of the products of its two words
//   words_of_bytes(p)           the next kLanes<int16_t> bytes as words
//   high_words(a, b)            the upper words of int32: those of `a` at even places, those of `b` at odd ones
//   pack_words(a, b)            within parts: eight words of each, saturated to 0..255
//   store_woven(to, x, past)    part by part, those of each of three vectors; `past`: with non-temporal stores, to
//                               multiples of kPastAlignment

// A block of pixels is computed as four groups, of every fourth pixel: lanes of int32 hold pairs of words, of which a
// weight of 0 leaves one out, so that no lane moves before the bytes are packed. Two groups share their chroma if two
// pixels do, and two rows share theirs if they have one row of chroma. Samples are scaled so that the value of a channel
// is the upper word of its sum. Within a part, `pack_words` gives the even pixels before the odd ones.
constexpr int kBlock = 2 * kLanes<int16_t>;
constexpr uint8_t kPlaces[16] = {0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15};  // byte of each pixel in a part
constexpr int kScaleBits = 16 - kFractionBits;

// Interleaving of three channels of 16 bytes. Pixel i of channel c goes to byte 3 i + c: the bytes of a channel go to
// different places within the three vectors of the result, so that one shuffle per channel serves all of them.
struct Weave {
  alignas(64) uint8_t order[3][STOKER_VECTOR_BYTES];
  alignas(64) int8_t is_channel[3][2][STOKER_VECTOR_BYTES];  // by vector of the result; whether it is channel 0, or 1
};
constexpr Weave weave_of() {
  Weave weave{};
  for (int i = 0; i < STOKER_VECTOR_BYTES; ++i)
    for (int c = 0; c < 3; ++c) {
      weave.order[c][i - i % 16 + (3 * (i % 16) + c) % 16] = kPlaces[i % 16];
      for (int which = 0; which < 2; ++which) weave.is_channel[c][which][i] = (16 * c + i % 16) % 3 == which ? -1 : 0;
    }
  return weave;
}
constexpr Weave kWeave = weave_of();

inline V<int32_t> repeated(int32_t x) { return V<int32_t>{} + x; }

// Words of pixels with even and with odd numbers: two pixels share a sample of chroma, or each has its own.
struct Words {
  V<int16_t> of[2];
};
// Scaled samples.
inline Words alternate(V<uint16_t> bytes) {
  constexpr uint16_t kMask = 255 << kScaleBits;
  return {{(V<int16_t>)((bytes << kScaleBits) & kMask), (V<int16_t>)((bytes >> (8 - kScaleBits)) & kMask)}};
}
template <bool kShared>
inline Words chroma_words(const uint8_t* at) {
  if constexpr (!kShared) return alternate(load_vector<uint16_t>(at));
  const V<int16_t> words = words_of_bytes(at) << kScaleBits;
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

// Rows of luma that share their chroma, and where their pixels go.
template <int kRows>
struct LumaRows {
  const uint8_t* luma[kRows];
  uint8_t* to[kRows];
};

// Green is in the middle; the first and the last channel are red and blue, or blue and red. A channel is the sum of
// weighted samples and a constant, as in `channel_of`. `past`: as for `store_woven`.
template <bool kShared, int kRows>
void rgb_of_rows(const LumaRows<kRows>& rows, OuterChannel first, OuterChannel last, int64_t width, const Weights& w,
                 bool past) {
  const PairWeights light(w.luma), outer[2] = {PairWeights(first.weight), PairWeights(last.weight)};
  const PairWeights middle[2] = {PairWeights(first.middle), PairWeights(last.middle)};
  const int32_t base = (1 << (kFractionBits - 1)) - w.luma * w.luma_zero;
  const auto rest_of = [&](int32_t weight) { return repeated((base - weight * w.chroma_zero) * (1 << kScaleBits)); };
  const V<int32_t> rest[3] = {rest_of(first.weight), rest_of(first.middle + last.middle), rest_of(last.weight)};
  const auto block = [&](const LumaRows<kRows>& at, const uint8_t* ps, const uint8_t* qs) {
    const Words p = chroma_words<kShared>(ps), q = chroma_words<kShared>(qs);
    V<int32_t> terms[3][4];  // those of odd pixels are those of even ones where chroma is shared
    for (int i = 0; i < 4; ++i) {
      const int parity = i >> 1, place = i & 1;
      const V<int16_t> own_p = p.of[parity], own_q = q.of[parity];
      terms[0][i] = multiply_pairs(own_p, outer[0].of[place]) + rest[0];
      terms[1][i] = multiply_pairs(own_p, middle[0].of[place]) + multiply_pairs(own_q, middle[1].of[place]) + rest[1];
      terms[2][i] = multiply_pairs(own_q, outer[1].of[place]) + rest[2];
    }
    for (int row = 0; row < kRows; ++row) {
      const Words y = alternate(load_vector<uint16_t>(at.luma[row]));
      V<int32_t> lit[4];
      for (int i = 0; i < 4; ++i) lit[i] = multiply_pairs(y.of[i >> 1], light.of[i & 1]);
      V<uint8_t> channels[3];
      for (int c = 0; c < 3; ++c) {
        const V<int16_t> even = high_words(lit[0] + terms[c][0], lit[1] + terms[c][1]);
        const V<int16_t> odd = high_words(lit[2] + terms[c][2], lit[3] + terms[c][3]);
        channels[c] = shuffle_parts(pack_words(even, odd), load_vector<uint8_t>(kWeave.order[c]));
      }
      V<uint8_t> woven[3];
      for (int k = 0; k < 3; ++k) {
        const auto is_of = [&](int c) { return load_vector<int8_t>(kWeave.is_channel[k][c]) < 0; };
        woven[k] = is_of(0) ? channels[0] : is_of(1) ? channels[1] : channels[2];
      }
      store_woven(at.to[row], woven, past);
    }
  };
  int64_t x = 0;
  for (; x + kBlock <= width; x += kBlock) {
    LumaRows<kRows> at = rows;
    for (int row = 0; row < kRows; ++row) at.luma[row] += x, at.to[row] += 3 * x;
    block(at, first.chroma + (x >> kShared), last.chroma + (x >> kShared));
  }
  if (x == width) return;
  alignas(64) uint8_t chroma[2][kBlock] = {}, samples[kRows][kBlock] = {}, pixels[kRows][3 * kBlock];
  const auto left = static_cast<size_t>(width - x), own = (left + kShared) >> kShared;
  std::memcpy(chroma[0], first.chroma + (x >> kShared), own);
  std::memcpy(chroma[1], last.chroma + (x >> kShared), own);
  LumaRows<kRows> at;
  for (int row = 0; row < kRows; ++row) {
    std::memcpy(samples[row], rows.luma[row] + x, left);
    at.luma[row] = samples[row], at.to[row] = pixels[row];
  }
  block(at, chroma[0], chroma[1]);
  for (int row = 0; row < kRows; ++row) std::memcpy(rows.to[row] + 3 * x, pixels[row], 3 * left);
}

bool is_aligned(const uint8_t* p) { return reinterpret_cast<uintptr_t>(p) % kPastAlignment == 0; }

void rgb_of(const RgbRows<uint8_t>& r, const Weights& w) {
  const OuterChannel red{r.v, w.red_v, w.green_v}, blue{r.u, w.blue_u, w.green_u};
  const OuterChannel &first = r.bgr ? blue : red, &last = r.bgr ? red : blue;
  const bool past = r.past && is_aligned(r.to[0]) && (!r.luma[1] || is_aligned(r.to[1]));
  if (r.luma[1]) {
    const auto function = r.shift_x ? rgb_of_rows<true, 2> : rgb_of_rows<false, 2>;
    return function({{r.luma[0], r.luma[1]}, {r.to[0], r.to[1]}}, first, last, r.width, w, past);
  }
  const auto function = r.shift_x ? rgb_of_rows<true, 1> : rgb_of_rows<false, 1>;
  function({{r.luma[0]}, {r.to[0]}}, first, last, r.width, w, past);
}

Forms forms_with_rgb() {
  Forms forms = kForms;
  forms.bytes.rgb = rgb_of;
  return forms;
}
