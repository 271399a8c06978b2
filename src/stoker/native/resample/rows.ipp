// SPDX-License-Identifier: Apache-2.0
// The passes of 8-bit resampling, written once over the vectors of base/vectors.ipp. Included after them and after what an
// instruction set does best in its own way, the weighted sums:
//
//   kPacking                 how the weights of a group of taps are stored
//   Taps(channels)           shuffles that take the taps of a group apart
//   Sums                     the 32-bit sums of one vector of outputs, from one half on:
//     add_pixels(x, taps, w)   a group of taps: 16 bytes of each row, one part per row
//     add_lanes(x, w)          single channel: a group of taps in every lane, weights kBlock words apart
//     value()                  shifted right by kWeightBits
//   Columns                  the sums of one vector of bytes of an output row:
//     add_pair(a, b, w)        two rows, which have two words of a group's weights
//     bytes()                  shifted, clamped to 0..255
//   gather_lanes(p, start)   four bytes from p + start in every lane
//   store_saturated(p, x)    a vector of int32, clamped to bytes

// Compute one output pixel of kParts rows. kGroups 0: any number of groups.
template <int C, int kGroups>
inline V<int32_t> pixel(const RowTaps& taps, const uint8_t* const* src, int64_t x, const Taps& apart) {
  const int64_t groups = kGroups ? kGroups : taps.groups;
  const int64_t at = int64_t{taps.start[x]} * C;
  const uint32_t* w = taps.packed + x * groups * 4;
  Sums sums;
  for (int64_t g = 0; g < groups; ++g, w += 4) {
    const int64_t offset = at + g * kGroup * C;
    const uint8_t* from[kParts];
    for (int k = 0; k < kParts; ++k) from[k] = src[k] + offset;
    sums.add_pixels(load_parts(from), apart, w);
  }
  return sums.value();
}

// `taps` is passed by value, because the bytes that are written might alias a reference.
template <int C, int kGroups>
void horizontal_pixels(const RowTaps taps, const uint8_t* const src[kRows], uint8_t* const dst[kRows], int64_t x0,
                       int64_t x1) {
  const Taps apart(C);
  const V<uint8_t> finish = repeat_part(kShuffles[C].finish);
  for (int r = 0; r < kRows; r += kParts) {
    const uint8_t* from[kParts];
    std::copy_n(src + r, kParts, from);
    for (int64_t x = x0; x < x1; x += 4) {
      V<int32_t> v[4];
      for (int j = 0; j < 4; ++j) v[j] = pixel<C, kGroups>(taps, from, std::min(x + j, x1 - 1), apart);
      uint8_t* to[kParts];
      for (int k = 0; k < kParts; ++k) to[k] = dst[r + k] + x * C;
      store_parts(to, shuffle_parts(pack_bytes(v[0], v[1], v[2], v[3]), finish));
    }
  }
}

// Compute adjacent outputs of a single channel, one per lane. Lanes outside of [x0, x1) read the positions of a lane
// inside, since their own positions may not be readable.
void horizontal_single(const RowTaps& taps, const uint8_t* const src[kRows], uint8_t* const dst[kRows], int64_t x0,
                       int64_t x1) {
  constexpr int64_t kOutputs = kLanes<int32_t>;
  for (int64_t x = x0 / kOutputs * kOutputs; x < x1; x += kOutputs) {
    const bool whole = x >= x0 && x + kOutputs <= x1;
    V<int32_t> start;
    if (whole) start = load_vector<int32_t>(taps.start + x);
    else
      for (int64_t i = 0; i < kOutputs; ++i) start[i] = taps.start[std::clamp(x + i, x0, x1 - 1)];
    const uint32_t* weights = taps.packed + x / kBlock * taps.groups * 4 * kBlock + x % kBlock;
    for (int r = 0; r < kRows; ++r) {
      Sums sums;
      const uint32_t* w = weights;
      for (int64_t g = 0; g < taps.groups; ++g, w += 4 * kBlock)
        sums.add_lanes(gather_lanes(src[r] + g * kGroup, start), w);
      if (whole) {
        store_saturated(dst[r] + x, sums.value());
        continue;
      }
      uint8_t bytes[kOutputs];
      store_saturated(bytes, sums.value());
      const int64_t from = std::max<int64_t>(x0 - x, 0), to = std::min(x1 - x, kOutputs);
      std::memcpy(dst[r] + x + from, bytes + from, static_cast<size_t>(to - from));
    }
  }
}

template <int C>
void horizontal_groups(const RowTaps& taps, const uint8_t* const src[kRows], uint8_t* const dst[kRows], int64_t x0,
                       int64_t x1) {
  switch (taps.groups) {
    case 1: return horizontal_pixels<C, 1>(taps, src, dst, x0, x1);
    case 2: return horizontal_pixels<C, 2>(taps, src, dst, x0, x1);
    case 3: return horizontal_pixels<C, 3>(taps, src, dst, x0, x1);
    default: return horizontal_pixels<C, 0>(taps, src, dst, x0, x1);
  }
}

void horizontal_any(const RowTaps& taps, const uint8_t* const src[kRows], uint8_t* const dst[kRows], int64_t x0,
                    int64_t x1) {
  switch (taps.channels) {
    case 1: return horizontal_single(taps, src, dst, x0, x1);
    case 2: return horizontal_groups<2>(taps, src, dst, x0, x1);
    case 3: return horizontal_groups<3>(taps, src, dst, x0, x1);
    default: return horizontal_groups<4>(taps, src, dst, x0, x1);
  }
}

// Load a vector of bytes at row + i, or, if the row ends before, its n bytes followed by zeros.
template <bool kShort>
inline V<uint8_t> load_bytes(const uint8_t* row, int64_t i, int64_t n) {
  if constexpr (!kShort) return load_vector<uint8_t>(row + i);
  uint8_t copy[STOKER_VECTOR_BYTES] = {};
  std::memcpy(copy, row, static_cast<size_t>(n));
  return load_vector<uint8_t>(copy);
}

template <bool kShort>
inline V<uint8_t> columns_at(const uint8_t* const* rows, const uint32_t* packed, int64_t groups, int64_t i, int64_t n) {
  Columns columns;
  for (int64_t pair = 0; pair < 2 * groups; ++pair)
    columns.add_pair(load_bytes<kShort>(rows[2 * pair], i, n), load_bytes<kShort>(rows[2 * pair + 1], i, n),
                     packed + 2 * pair);
  return columns.bytes();
}

void vertical_any(const uint8_t* const* rows, const uint32_t* packed, int64_t groups, uint8_t* out, int64_t n) {
  constexpr int64_t kStep = STOKER_VECTOR_BYTES;
  if (n < kStep) {
    uint8_t bytes[kStep];
    store_vector<uint8_t>(bytes, columns_at<true>(rows, packed, groups, 0, n));
    std::memcpy(out, bytes, static_cast<size_t>(n));
    return;
  }
  for (int64_t i = 0; i < n; i += kStep) {
    const int64_t at = std::min(i, n - kStep);  // the last vector overlaps its predecessor
    store_vector<uint8_t>(out + at, columns_at<false>(rows, packed, groups, at, n));
  }
}
