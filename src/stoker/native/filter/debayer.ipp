// SPDX-License-Identifier: Apache-2.0
// Rows of colours from a mosaic, written once over the vectors of base/vectors.ipp, which the including file includes
// first. The pixels of the even columns are the even lanes of a vector, so that those with the row's colour and the green
// ones are computed apart, each in lanes of twice the bits.

template <class T>
using Wide = std::conditional_t<sizeof(T) == 1, uint16_t, uint32_t>;

// Lanes of one parity.
template <bool kOdd, class T>
inline V<Wide<T>> lanes(V<T> x) {
  constexpr int kBits = 8 * sizeof(T);
  if constexpr (kOdd) return (V<Wide<T>>)x >> kBits;
  else return (V<Wide<T>>)x & static_cast<Wide<T>>((1u << kBits) - 1);
}

template <bool kOdd, class T>
inline V<Wide<T>> lanes_at(const T* p) {
  return lanes<kOdd, T>(load_vector<T>(p));
}

template <class T>
inline V<T> joined(V<Wide<T>> even, V<Wide<T>> odd) {
  return (V<T>)(even | odd << static_cast<int>(8 * sizeof(T)));
}

// Sums of the neighbours of the pixels of one parity from column x on.
template <class T, bool kOdd>
struct Around {
  V<Wide<T>> own, left, right, up, down;
  Around(const MosaicRow<T>& r, int64_t x)
      : own(lanes_at<kOdd, T>(r.own + x)),
        left(lanes_at<kOdd, T>(r.own + x - 1)),
        right(lanes_at<kOdd, T>(r.own + x + 1)),
        up(lanes_at<kOdd, T>(r.up + x)),
        down(lanes_at<kOdd, T>(r.down + x)) {}
  static V<Wide<T>> corners(const MosaicRow<T>& r, int64_t x) {
    return (lanes_at<kOdd, T>(r.up + x - 1) + lanes_at<kOdd, T>(r.up + x + 1)) +
           (lanes_at<kOdd, T>(r.down + x - 1) + lanes_at<kOdd, T>(r.down + x + 1));
  }
};

template <class S>
inline V<S> difference(V<S> a, V<S> b) {
  return (a > b ? a : b) - (a < b ? a : b);
}

template <class T, bool kEdgeAware>
inline V<Wide<T>> green_of(V<Wide<T>> left, V<Wide<T>> right, V<Wide<T>> up, V<Wide<T>> down) {
  if constexpr (!kEdgeAware) return ((left + right) + (up + down) + static_cast<Wide<T>>(2)) >> 2;
  const V<Wide<T>> across = (left + right + static_cast<Wide<T>>(1)) >> 1,
                   along = (up + down + static_cast<Wide<T>>(1)) >> 1;
  return difference<Wide<T>>(left, right) > difference<Wide<T>>(up, down) ? along : across;
}

// kOdd: the pixels of the odd columns have the row's colour.
template <class T, bool kEdgeAware, bool kOdd>
inline void color_columns(const MosaicRow<T>& r, int64_t x) {
  const Around<T, kOdd> colored(r, x);
  const Around<T, !kOdd> green(r, x);
  const V<Wide<T>> one = (colored.own ^ colored.own) + static_cast<Wide<T>>(1);
  const V<Wide<T>> first[2] = {colored.own, (green.left + green.right + one) >> 1};
  const V<Wide<T>> middle[2] = {green_of<T, kEdgeAware>(colored.left, colored.right, colored.up, colored.down),
                                green.own};
  const V<Wide<T>> third[2] = {(Around<T, kOdd>::corners(r, x) + one + one) >> 2, (green.up + green.down + one) >> 1};
  store_vector<T>(r.first + x, joined<T>(first[kOdd], first[!kOdd]));
  store_vector<T>(r.green + x, joined<T>(middle[kOdd], middle[!kOdd]));
  store_vector<T>(r.third + x, joined<T>(third[kOdd], third[!kOdd]));
}

// Weighted sums in 32 bits, rounded and divided by 2^16: a lane of 16 bits is two of 32.
inline V<uint32_t> weighed(V<uint32_t> a, uint32_t wa, V<uint32_t> b, uint32_t wb, V<uint32_t> c, uint32_t wc) {
  return (a * wa + b * wb + c * wc + (1u << 15)) >> 16;
}
inline V<uint16_t> weighed(V<uint16_t> a, uint32_t wa, V<uint16_t> b, uint32_t wb, V<uint16_t> c, uint32_t wc) {
  const V<uint32_t> low =
      weighed((V<uint32_t>)a & 0xFFFFu, wa, (V<uint32_t>)b & 0xFFFFu, wb, (V<uint32_t>)c & 0xFFFFu, wc);
  const V<uint32_t> high = weighed((V<uint32_t>)a >> 16, wa, (V<uint32_t>)b >> 16, wb, (V<uint32_t>)c >> 16, wc);
  return (V<uint16_t>)(low | high << 16);
}

template <class T, bool kOdd>
inline void gray_columns(const MosaicRow<T>& r, int64_t x) {
  const Around<T, kOdd> colored(r, x);
  const Around<T, !kOdd> green(r, x);
  const V<Wide<T>> sides = (colored.left + colored.right) + (colored.up + colored.down);
  const V<Wide<T>> gray[2] = {
      weighed(colored.own, 4 * r.line, sides, kGreen, Around<T, kOdd>::corners(r, x), r.other),
      weighed(green.own, 4 * kGreen, green.left + green.right, 2 * r.line, green.up + green.down, 2 * r.other)};
  store_vector<T>(r.first + x, joined<T>(gray[kOdd], gray[!kOdd]));
}

// Columns from 2 on are computed in vectors from even columns on, and column 1 with column 0. Reads and writes go beyond
// the end of a row, and one element before its begin.
template <class T, Algorithm kAlgorithm, bool kOdd>
void mosaic_columns(const MosaicRow<T>& r) {
  for (int64_t x = 0; x < r.width; x += kLanes<T>) {
    if constexpr (kAlgorithm == Algorithm::Gray) gray_columns<T, kOdd>(r, x);
    else color_columns<T, kAlgorithm == Algorithm::EdgeAware, kOdd>(r, x);
  }
}

template <class T, Algorithm kAlgorithm>
void mosaic_row(const MosaicRow<T>& r) {
  if (r.colored & 1) mosaic_columns<T, kAlgorithm, true>(r);
  else mosaic_columns<T, kAlgorithm, false>(r);
}

template <class T>
constexpr MosaicLoops<T> kLoopsOf{
    {mosaic_row<T, Algorithm::Bilinear>, mosaic_row<T, Algorithm::EdgeAware>, mosaic_row<T, Algorithm::Gray>}};

namespace lanes_of_pixels {
using Lane = int16_t;
using Value = V<int16_t>;
inline Value is_less(Value a, Value b) { return (Value)(a < b); }
#include "shared/gradients.ipp"
}  // namespace lanes_of_pixels

// difference * weight, rounded.
inline V<int32_t> weighed_step(V<int32_t> difference, V<int32_t> count) {
  const V<float> weight = 1.0f / __builtin_convertvector(count + count, V<float>);
  const V<float> step = __builtin_convertvector(difference, V<float>) * weight;
  return __builtin_convertvector((step + kRound) - kRound, V<int32_t>);
}

inline V<uint16_t> shifted_lanes(V<int16_t> own, V<int16_t> difference, V<int16_t> count) {
  const V<int32_t> low = weighed_step((V<int32_t>)difference << 16 >> 16, (V<int32_t>)count << 16 >> 16);
  const V<int32_t> high = weighed_step((V<int32_t>)difference >> 16, (V<int32_t>)count >> 16);
  const V<int16_t> value = own + (V<int16_t>)((low & 0xFFFF) | high << 16), zero = own ^ own;
  const V<int16_t> most = zero + static_cast<int16_t>(255), positive = value > zero ? value : zero;
  return (V<uint16_t>)(positive < most ? positive : most);
}

// The row's colour, green and the third colour of the pixels of one parity from column x on.
template <bool kColored, bool kOdd>
inline void gradient_lanes(const GradientRow& r, int64_t x, V<uint16_t> (&to)[3]) {
  lanes_of_pixels::Window window;
  for (int i = 0; i < 5; ++i)
    for (int j = 0; j < 5; ++j) window.values[i][j] = (V<int16_t>)lanes_at<kOdd, uint8_t>(r.rows[i] + x + j - 2);
  const lanes_of_pixels::GradientSums sums = lanes_of_pixels::gradient_sums<kColored>(window);
  const V<int16_t> own = window.values[2][2], one = (own ^ own) + static_cast<int16_t>(1);
  const V<int16_t> count = sums.count > one ? sums.count : one;
  to[kColored ? 0 : 1] = (V<uint16_t>)own;
  to[kColored ? 1 : 0] = shifted_lanes(own, sums.first - sums.own, count);
  to[2] = shifted_lanes(own, sums.second - sums.own, count);
}

template <bool kOdd>
inline void gradient_columns_of(const GradientRow& r) {
  uint8_t* const rows[3] = {r.line, r.green, r.column};
  for (int64_t x = 0; x < r.width; x += kLanes<uint8_t>) {
    V<uint16_t> found[2][3];
    gradient_lanes<true, kOdd>(r, x, found[kOdd]);
    gradient_lanes<false, !kOdd>(r, x, found[!kOdd]);
    for (int c = 0; c < 3; ++c) store_vector<uint8_t>(rows[c] + x, joined<uint8_t>(found[0][c], found[1][c]));
  }
}

inline void gradient_row(const GradientRow& r) {
  if (r.colored & 1) gradient_columns_of<true>(r);
  else gradient_columns_of<false>(r);
}

constexpr MosaicForms kForms{kLoopsOf<uint8_t>, kLoopsOf<uint16_t>, gradient_row};
