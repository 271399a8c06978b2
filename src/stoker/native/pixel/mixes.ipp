// SPDX-License-Identifier: Apache-2.0
// Mixes of interleaved pixels of three bytes, from memory to memory without planes in between. Included after
// pixel/moves.ipp. On NEON, whose loads split pixels, planes cost less.

// Four vectors of a step hold the pixels 16 p + 4 v .. 16 p + 4 v + 3 in part p of vector v, so that packing brings their
// sums into order.
constexpr int kMixVectors = 4, kMixPixels = 16 * kParts;
// The loads of a step end this many bytes after its pixels.
constexpr int kMixBeyond = 4;

// Byte shuffles from packed sums to pixels. The first source has the sums 0 and 1 of the vectors 0 and 1 (four bytes of
// 0, four of 1, and again), the second one those of the vectors 2 and 3, and the third one sum 2 of all vectors.
struct MixedShuffles {
  V<uint8_t> weave[3][3];  // [result][source]

  MixedShuffles() {
    uint8_t by[3][3][16];
    std::memset(by, 0x80, sizeof by);
    for (int j = 0; j < 48; ++j) {  // byte j of the pixels is sum j % 3 of pixel j / 3
      const int sum = j % 3, pixel = j / 3;
      if (sum == 2) by[j / 16][2][j % 16] = static_cast<uint8_t>(pixel);
      else by[j / 16][pixel / 8][j % 16] = static_cast<uint8_t>(pixel % 8 / 4 * 8 + 4 * sum + pixel % 4);
    }
    for (int r = 0; r < 3; ++r)
      for (int s = 0; s < 3; ++s) weave[r][s] = repeat_part(by[r][s]);
  }
};

// Weaves `sums` of kMixVectors vectors to pixels.
inline void store_mixed(uint8_t* to, const V<int32_t> (&sums)[3][kMixVectors], const MixedShuffles& shuffles) {
  const auto& [a, b, c] = sums;
  const V<uint8_t> first = pack_bytes(a[0], b[0], a[1], b[1]), second = pack_bytes(a[2], b[2], a[3], b[3]),
                   third = pack_bytes(c[0], c[1], c[2], c[3]);
  const auto& by = shuffles.weave;
  // Five pixels and a byte of them need no source but those of the vectors 0 and 1, or 2 and 3.
  store_blocks(to, {shuffle_parts(first, by[0][0]) | shuffle_parts(third, by[0][2]),
                    shuffle_parts(first, by[1][0]) | shuffle_parts(second, by[1][1]) | shuffle_parts(third, by[1][2]),
                    shuffle_parts(second, by[2][1]) | shuffle_parts(third, by[2][2])});
}

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
  const MixedShuffles shuffles;
  const auto load = [&](const uint8_t* from, V<float>(&x)[kMixed]) {
    const V<uint8_t> bytes = load_blocks(from);
    for (int k = 0; k < kMixed; ++k)
      x[k] = __builtin_convertvector((V<int32_t>)shuffle_parts(bytes, spread[k]), V<float>);
  };
  // All sums advance together, so that none waits for its own last operation.
  const auto mix = [&](const V<float>(&x)[kMixed], V<int32_t>(&sums)[kCount][kMixVectors], int v) {
    V<float> sum[kCount], product[kCount];
    for (int c = 0; c < kCount; ++c) sum[c] = x[0] * weight[c][0];
    if constexpr (kBefore)
      for (int c = 0; c < kCount; ++c) sum[c] = sum[c] + before[c];
    for (int k = 1; k < kMixed; ++k) {
      for (int c = 0; c < kCount; ++c) product[c] = x[k] * weight[c][k];
      for (int c = 0; c < kCount; ++c) sum[c] = sum[c] + product[c];
    }
    if constexpr (kAfter)
      for (int c = 0; c < kCount; ++c) sum[c] = sum[c] + after[c];
    // Floor and truncation differ for negative numbers only, which become 0.
    for (int c = 0; c < kCount; ++c)
      sums[c][v] = kFloors ? __builtin_convertvector(sum[c], V<int32_t>) : round_small_ints(sum[c]);
  };
  // Pixels are converted while those before them are mixed: `x` has the first vector, and gets that of `next`.
  const auto step = [&](uint8_t* out, const uint8_t* in, const uint8_t* next, V<float>(&x)[kMixed]) {
    V<int32_t> sums[kCount][kMixVectors];
    for (int v = 0; v < kMixVectors; ++v) {
      V<float> y[kMixed];
      load(v + 1 < kMixVectors ? in + 12 * (v + 1) : next, y);
      mix(x, sums, v);
      for (int k = 0; k < kMixed; ++k) x[k] = y[k];
    }
    if constexpr (kCount == 1) store_vector<uint8_t>(out, pack_bytes(sums[0][0], sums[0][1], sums[0][2], sums[0][3]));
    else store_mixed(out, sums, shuffles);
  };
  V<float> x[kMixed];
  const int whole = (kMixed * n - kMixBeyond) / (kMixed * kMixPixels);  // steps
  if (whole > 0) load(pixels, x);
  int i = 0;
  for (int k = 1; k <= whole; ++k, i += kMixPixels) {
    const uint8_t* in = pixels + kMixed * i;
    step(to + kCount * i, in, k < whole ? in + kMixed * kMixPixels : in, x);
  }
  for (; i < n; i += kMixPixels) {
    const auto left = static_cast<size_t>(n - i < kMixPixels ? n - i : kMixPixels);
    uint8_t in[kMixed * kMixPixels + kMixBeyond] = {}, out[kCount * kMixPixels];
    std::memcpy(in, pixels + kMixed * i, kMixed * left);
    load(in, x);
    step(out, in, in, x);
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
