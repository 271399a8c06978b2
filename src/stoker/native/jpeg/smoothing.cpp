// SPDX-License-Identifier: Apache-2.0
#include "jpeg/smoothing.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "jpeg/huffman.hpp"

namespace stoker::jpeg {
namespace {

constexpr int kSide = 2 * kReach + 1;

// Weights of the neighbours' DCs, in units of 1/256.
struct Weights {
  int16_t at[kSide][kSide];

  constexpr Weights transposed() const {
    Weights out{};
    for (int y = 0; y < kSide; ++y)
      for (int x = 0; x < kSide; ++x) out.at[x][y] = at[y][x];
    return out;
  }
};

// With some AC coefficients: the estimates of the standard's section K.8, over five blocks instead of three.
constexpr Weights kAc01 = {{{}, {}, {-7, 50, 0, -50, 7}, {}, {}}};
constexpr Weights kAc02 = {{{}, {}, {-1, 13, -24, 13, -1}, {}, {}}};
constexpr Weights kAc11 = {{{0, -1, 0, 1, 0}, {-1, 10, 0, -10, 1}, {}, {1, -10, 0, 10, -1}, {0, 1, 0, -1, 0}}};
constexpr Weights kWithAc[] = {kAc01, kAc01.transposed(), kAc02.transposed(), kAc11, kAc02};

// Without any AC: a smooth surface through the DCs. It changes the DC as well.
constexpr Weights kDc = {
    {{-2, -6, -8, -6, -2}, {-6, 6, 42, 6, -6}, {-8, 42, 152, 42, -8}, {-6, 6, 42, 6, -6}, {-2, -6, -8, -6, -2}}};
constexpr Weights kAlone01 = {
    {{-1, -1, 0, 1, 1}, {-3, 13, 0, -13, 3}, {-3, 38, 0, -38, 3}, {-3, 13, 0, -13, 3}, {-1, -1, 0, 1, 1}}};
constexpr Weights kAlone02 = {{{}, {0, 2, -5, 2, 0}, {1, 7, -14, 7, 1}, {0, 2, -5, 2, 0}, {}}};
constexpr Weights kAlone11 = {{{-1, 0, 0, 0, 1}, {0, 9, 0, -9, 0}, {}, {0, -9, 0, 9, 0}, {1, 0, 0, 0, -1}}};
constexpr Weights kAlone03 = {{{}, {0, 1, 0, -1, 0}, {0, 2, 0, -2, 0}, {0, 1, 0, -1, 0}, {}}};
constexpr Weights kAlone12 = {{{}, {0, 1, -3, 1, 0}, {}, {0, -1, 3, -1, 0}, {}}};
constexpr Weights kAlone[] = {
    kAlone01, kAlone01.transposed(), kAlone02.transposed(), kAlone11, kAlone02, kAlone03,
    kAlone12, kAlone12.transposed(), kAlone03.transposed(),
};
static_assert(std::size(kAlone) == kEstimated);

// Return the estimate of a coefficient with `quantiser`. Its magnitude must not need more than `limit_bits` bits, since
// the scans so far would have shown the others; -1: no limit.
int16_t estimate(const DcNeighbors& neighbors, const Weights& weights, int64_t dc_quantiser, int64_t quantiser,
                 int limit_bits) {
  int64_t sum = 0;
  for (int y = 0; y < kSide; ++y)
    for (int x = 0; x < kSide; ++x) sum += weights.at[y][x] * neighbors.dc[y][x];
  sum *= dc_quantiser;
  // libjpeg narrows to 32 bits here and to 16 below. Only damaged files reach either.
  auto magnitude = static_cast<int32_t>(((quantiser << 7) + std::abs(sum)) / (quantiser << 8));
  if (limit_bits > 0) magnitude = std::min(magnitude, (1 << limit_bits) - 1);
  return static_cast<int16_t>(sum < 0 ? -int64_t{magnitude} : magnitude);
}

int64_t quantiser_of(const int16_t* quantiser, int natural) { return static_cast<uint16_t>(quantiser[natural]); }

}  // namespace

void smooth_block(const DcNeighbors& neighbors, const int8_t* missing, const int16_t* quantiser, bool only_dc,
                  int16_t* block, uint8_t& end) {
  const bool alone = std::all_of(missing + 1, missing + kEstimated + 1, [](int8_t bits) { return bits == -1; });
  const int64_t dc_quantiser = quantiser_of(quantiser, 0);
  const int count = only_dc ? 0 : alone ? kEstimated : static_cast<int>(std::size(kWithAc));
  for (int k = 1; k <= count; ++k) {
    const int natural = natural_position(k);
    if (missing[k] == 0 || block[natural] != 0) continue;
    const Weights& weights = alone ? kAlone[k - 1] : kWithAc[k - 1];
    block[natural] = estimate(neighbors, weights, dc_quantiser, quantiser_of(quantiser, natural), missing[k]);
    if (block[natural] != 0) end = std::max(end, static_cast<uint8_t>(k + 1));
  }
  if (alone) block[0] = estimate(neighbors, kDc, dc_quantiser, dc_quantiser, -1);
}

RowsAround rows_around(int row, int block_row, int block_rows, int mcu_row, int mcu_rows) {
  // libjpeg-turbo numbers the rows as if each MCU row had as many as this one.
  const int number = mcu_row * block_rows + block_row, count = mcu_rows * block_rows;
  RowsAround out;
  out.at[2] = row;
  out.at[1] = number > 0 ? row - 1 : row;
  out.at[0] = number > 1 ? row - 2 : out.at[1];
  out.at[3] = number < count - 1 ? row + 1 : row;
  out.at[4] = number < count - 2 ? row + 2 : out.at[3];
  return out;
}

}  // namespace stoker::jpeg
