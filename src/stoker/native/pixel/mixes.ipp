// SPDX-License-Identifier: Apache-2.0
// Mixes of interleaved pixels of three bytes, from memory to memory without planes in between. Included after
// pixel/moves.ipp. On NEON, whose loads split pixels, planes cost less.

// Four vectors of a step hold the pixels 16 p + 4 v .. 16 p + 4 v + 3 in part p of vector v, so that pack_bytes() brings
// their sums into order.
constexpr int kMixVectors = 4, kMixPixels = 16 * kParts;
// The loads of a step end this many bytes after its pixels.
constexpr int kMixBeyond = 4;

template <int kCount, bool kBefore, bool kAfter, bool kFloors>
void mix_rgb(uint8_t* to, const uint8_t* pixels, const uint8_t* channels, const Mix* mixes, int n) {
  V<uint8_t> spread[kMixed];
  V<float> weight[kCount][kMixed], before[kCount], after[kCount];
  for (int k = 0; k < kMixed; ++k) {
    uint8_t by[16];
    for (int i = 0; i < 16; ++i) by[i] = static_cast<uint8_t>(i % 4 ? 0x80 : i / 4 * 3 + channels[k]);
    spread[k] = repeat_part(by);
  }
  for (int c = 0; c < kCount; ++c) {
    for (int k = 0; k < kMixed; ++k) weight[c][k] = V<float>{} + mixes[c].weight[k];
    before[c] = V<float>{} + mixes[c].before;
    after[c] = V<float>{} + mixes[c].after;
  }
  const RgbShuffles shuffles;
  const auto step = [&](uint8_t* out, const uint8_t* in) {
    V<int32_t> whole[kCount][kMixVectors];
    for (int v = 0; v < kMixVectors; ++v) {
      const uint8_t* from[kParts];
      for (int p = 0; p < kParts; ++p) from[p] = in + 48 * p + 12 * v;
      const V<uint8_t> bytes = load_parts(from);
      V<float> x[kMixed];
      for (int k = 0; k < kMixed; ++k)
        x[k] = __builtin_convertvector((V<int32_t>)shuffle_parts(bytes, spread[k]), V<float>);
      for (int c = 0; c < kCount; ++c) {
        V<float> sum = x[0] * weight[c][0];
        if constexpr (kBefore) sum = sum + before[c];
        sum = sum + x[1] * weight[c][1];
        sum = sum + x[2] * weight[c][2];
        if constexpr (kAfter) sum = sum + after[c];
        // Floor and truncation differ for negative numbers only, which become 0.
        whole[c][v] = kFloors ? __builtin_convertvector(sum, V<int32_t>) : round_small_ints(sum);
      }
    }
    V<uint8_t> plane[kCount];
    for (int c = 0; c < kCount; ++c) plane[c] = pack_bytes(whole[c][0], whole[c][1], whole[c][2], whole[c][3]);
    if constexpr (kCount == 1) {
      store_vector<uint8_t>(out, plane[0]);
    } else {
      for (int s = 0; s < 3; ++s) {
        uint8_t* parts[kParts];
        for (int p = 0; p < kParts; ++p) parts[p] = out + 48 * p + 16 * s;
        store_parts(parts, gather_parts(plane, shuffles.weave[s]));
      }
    }
  };
  int i = 0;
  for (; kMixed * (n - i) >= kMixed * kMixPixels + kMixBeyond; i += kMixPixels)
    step(to + kCount * i, pixels + kMixed * i);
  for (; i < n; i += kMixPixels) {
    const auto left = static_cast<size_t>(n - i < kMixPixels ? n - i : kMixPixels);
    uint8_t in[kMixed * kMixPixels + kMixBeyond] = {}, out[kCount * kMixPixels];
    std::memcpy(in, pixels + kMixed * i, kMixed * left);
    step(out, in);
    std::memcpy(to + kCount * i, out, kCount * left);
  }
}

template <int kCount, bool kFloors>
void mix_with(bool before, bool after, uint8_t* to, const uint8_t* pixels, const uint8_t* channels, const Mix* mixes,
              int n) {
  if (before && after) return mix_rgb<kCount, true, true, kFloors>(to, pixels, channels, mixes, n);
  if (before) return mix_rgb<kCount, true, false, kFloors>(to, pixels, channels, mixes, n);
  if (after) return mix_rgb<kCount, false, true, kFloors>(to, pixels, channels, mixes, n);
  mix_rgb<kCount, false, false, kFloors>(to, pixels, channels, mixes, n);
}

void mix_pixels(uint8_t* to, const uint8_t* pixels, const uint8_t* channels, const Mix* mixes, int count, int n) {
  bool before = false, after = false;
  for (int c = 0; c < count; ++c) before |= mixes[c].before != 0, after |= mixes[c].after != 0;
  if (count == kMixed) mix_with<kMixed, false>(before, after, to, pixels, channels, mixes, n);
  else if (mixes[0].floors) mix_with<1, true>(before, after, to, pixels, channels, mixes, n);
  else mix_with<1, false>(before, after, to, pixels, channels, mixes, n);
}
