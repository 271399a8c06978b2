// SPDX-License-Identifier: Apache-2.0
#include "resample/few_taps.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <cstring>

#include "base/target_begin_avx2.hpp"

namespace stoker::resample {

namespace {

constexpr int kFineBits = 15;
constexpr int32_t kOne = int32_t{1} << kWeightBits, kFineOne = int32_t{1} << kFineBits;
constexpr int kMostCoarse = 127;
constexpr int32_t kMostPixel = 255;
constexpr int kVectorBytes = 32, kPartBytes = 16, kOctet = 8;

// ---------------------------------------------------------------- weights

// Parts of the weights of an output, by slot, and the tap that each slot reads; -1: none.
struct Split {
  int8_t coarse[kGroup] = {}, tap[kGroup] = {-1, -1, -1, -1};
  int16_t fine[kGroup] = {};
  bool any_fine() const { return (fine[0] | fine[1] | fine[2] | fine[3]) != 0; }
};

inline bool has_fine(const int32_t* w) { return ((w[0] | w[1] | w[2] | w[3]) & (kFineOne - 1)) != 0; }

// Split the weights of two taps. The coarse ones sum to 2^7 and are not below 0; `fine` is that of the second tap.
inline bool split_two(const int32_t* w, Split& s) {
  if ((w[0] | w[1] | w[2] | w[3]) == 0) return true;
  if (w[0] < 0 || w[1] < 0 || w[0] + w[1] != kOne || (w[2] | w[3]) != 0) return false;
  if (w[0] == 0 || w[1] == 0) {  // 2^7 is no signed byte: both slots read the same pixel
    s.tap[0] = s.tap[1] = w[0] == 0;
    s.coarse[0] = s.coarse[1] = 64;
    return true;
  }
  const int32_t coarse = std::clamp((w[1] + kFineOne / 2) >> kFineBits, 1, kMostCoarse);
  s.tap[0] = 0;
  s.tap[1] = 1;
  s.coarse[0] = static_cast<int8_t>(128 - coarse);
  s.coarse[1] = static_cast<int8_t>(coarse);
  s.fine[1] = static_cast<int16_t>(w[1] - coarse * kFineOne);
  return true;
}

// Divide a weight of 1 or more, which is no byte, among two slots, one of each pair. Return false if no slot is free.
inline bool divide(int t, int32_t* w, Split& s) {
  int free = 0;
  while (free < kGroup && w[free] != 0) ++free;
  if (free == kGroup) return false;
  int other = free;
  if (free == (t ^ 1)) {  // in the same pair: a slot of the other one moves there
    other = t ^ 2;
    w[free] = w[other];
    s.tap[free] = s.tap[other];
  }
  w[other] = w[t] / 2;
  w[t] -= w[other];
  s.tap[other] = s.tap[t];
  return true;
}

// Split the weights of the slots. Sums of pixels must fit words: those of the coarse parts of each pair, and that of the
// second pair with the fine sum. The last addition saturates, to what becomes 0 or 255.
inline bool split_slots(const int32_t* w, Split& s) {
  int32_t high[2] = {}, low[2] = {}, high_fine = 0, low_fine = 0;
  for (int t = 0; t < kGroup; ++t) {
    const int32_t coarse = std::clamp((w[t] + kFineOne / 2) >> kFineBits, -kMostCoarse, kMostCoarse);
    const int32_t fine = w[t] - coarse * kFineOne;
    if (fine < INT16_MIN || fine > INT16_MAX) return false;
    s.coarse[t] = static_cast<int8_t>(coarse);
    s.fine[t] = static_cast<int16_t>(fine);
    high[t / 2] += std::max(coarse, 0), low[t / 2] += std::min(coarse, 0);
    high_fine += std::max(fine, 0), low_fine += std::min(fine, 0);
  }
  const int32_t more = (kMostPixel * high_fine) / kFineOne + 1, less = (kMostPixel * low_fine) / kFineOne - 1;
  return kMostPixel * high[0] <= INT16_MAX && kMostPixel * low[0] >= INT16_MIN &&
         kMostPixel * high[1] + more <= INT16_MAX && kMostPixel * low[1] + less >= INT16_MIN;
}

// Split the weights of four taps, paired so that their sums fit.
inline bool split_four(const int32_t* weights, Split& s) {
  int32_t w[kGroup];
  std::copy_n(weights, kGroup, w);
  for (int t = 0; t < kGroup; ++t) s.tap[t] = static_cast<int8_t>(w[t] != 0 ? t : -1);
  for (int t = 0; t < kGroup; ++t)
    if (w[t] >= kOne && !divide(t, w, s)) return false;
  for (int other = 1; other < kGroup; ++other) {
    std::swap(w[1], w[other]);
    std::swap(s.tap[1], s.tap[other]);
    if (split_slots(w, s)) return true;
  }
  return false;
}

// ---------------------------------------------------------------- sums

inline __m256i load(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
inline __m128i load_part(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }

// Round 16 sums with 7 fraction bits to words: pmulhrsw adds 2^14 to a product and shifts it right by 15.
inline __m256i round_sums(__m256i sums) { return _mm256_mulhrs_epi16(sums, _mm256_set1_epi16(1 << 8)); }

// Weigh 16 pairs of pixels. pmulhw shifts right by 16, so that it takes the doubled difference.
template <bool kFine>
inline __m256i weigh_two(__m256i pixels, __m256i coarse, __m256i fine) {
  __m256i sums = _mm256_maddubs_epi16(pixels, coarse);
  if constexpr (kFine) {
    const __m256i difference = _mm256_maddubs_epi16(pixels, _mm256_set1_epi16(0x02FE));  // bytes -2, 2
    sums = _mm256_add_epi16(sums, _mm256_mulhi_epi16(difference, fine));
  }
  return round_sums(sums);
}

// Fine parts of the weights of two pairs of taps: those of the first and of the second half of every part.
struct FineFour {
  __m256i first[2], second[2];
};

template <bool kFine>
inline __m256i weigh_four(__m256i first, __m256i second, __m256i coarse_first, __m256i coarse_second,
                          const FineFour& fine) {
  __m256i sums = _mm256_maddubs_epi16(second, coarse_second);
  if constexpr (kFine) {
    const __m256i zero = _mm256_setzero_si256();
    const __m256i low = _mm256_add_epi32(_mm256_madd_epi16(_mm256_unpacklo_epi8(first, zero), fine.first[0]),
                                         _mm256_madd_epi16(_mm256_unpacklo_epi8(second, zero), fine.second[0]));
    const __m256i high = _mm256_add_epi32(_mm256_madd_epi16(_mm256_unpackhi_epi8(first, zero), fine.first[1]),
                                          _mm256_madd_epi16(_mm256_unpackhi_epi8(second, zero), fine.second[1]));
    sums = _mm256_add_epi16(sums,
                            _mm256_packs_epi32(_mm256_srai_epi32(low, kFineBits), _mm256_srai_epi32(high, kFineBits)));
  }
  return round_sums(_mm256_adds_epi16(_mm256_maddubs_epi16(first, coarse_first), sums));
}

// ---------------------------------------------------------------- vertical

inline __m256i pair_of(int low, int high) {
  return _mm256_set1_epi16(static_cast<int16_t>((low & 0xFF) | static_cast<int>(static_cast<unsigned>(high) << 8)));
}
inline __m256i words_of(int16_t low, int16_t high) {
  return _mm256_set1_epi32(static_cast<int>(static_cast<uint16_t>(low) | static_cast<uint32_t>(high) << 16));
}

// Call compute(offset) for all vectors of a row of n bytes; the last one overlaps its predecessor.
template <class Compute>
inline void each_vector(uint8_t* out, int64_t n, Compute compute) {
  for (int64_t i = 0; i < n; i += kVectorBytes) {
    const int64_t at = std::min(i, n - kVectorBytes);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + at), compute(at));
  }
}

template <bool kFine>
void vertical_two(const uint8_t* const* rows, const Split& s, uint8_t* out, int64_t n) {
  const uint8_t *const r0 = rows[s.tap[0]], *const r1 = rows[s.tap[1]];
  const __m256i coarse = pair_of(s.coarse[0], s.coarse[1]), fine = _mm256_set1_epi16(s.fine[1]);
  each_vector(out, n, [&](int64_t at) __attribute__((always_inline)) {
    const __m256i a = load(r0 + at), b = load(r1 + at);
    return _mm256_packus_epi16(weigh_two<kFine>(_mm256_unpacklo_epi8(a, b), coarse, fine),
                               weigh_two<kFine>(_mm256_unpackhi_epi8(a, b), coarse, fine));
  });
}

template <bool kFine>
void vertical_four(const uint8_t* const* rows, const Split& s, uint8_t* out, int64_t n) {
  const uint8_t* r[kGroup];
  for (int t = 0; t < kGroup; ++t) r[t] = rows[std::max<int>(s.tap[t], 0)];
  const __m256i coarse0 = pair_of(s.coarse[0], s.coarse[1]), coarse1 = pair_of(s.coarse[2], s.coarse[3]);
  const __m256i fine0 = words_of(s.fine[0], s.fine[1]), fine1 = words_of(s.fine[2], s.fine[3]);
  const FineFour fine{{fine0, fine0}, {fine1, fine1}};
  each_vector(out, n, [&](int64_t at) __attribute__((always_inline)) {
    const __m256i a = load(r[0] + at), b = load(r[1] + at), c = load(r[2] + at), d = load(r[3] + at);
    return _mm256_packus_epi16(
        weigh_four<kFine>(_mm256_unpacklo_epi8(a, b), _mm256_unpacklo_epi8(c, d), coarse0, coarse1, fine),
        weigh_four<kFine>(_mm256_unpackhi_epi8(a, b), _mm256_unpackhi_epi8(c, d), coarse0, coarse1, fine));
  });
}

// ---------------------------------------------------------------- horizontal
//
// A block is 32 bytes of the destination, in four octets of eight. Vector v of a block has octets v and v + 2, one in each
// part of 16 bytes, so that packing the two vectors restores the order. A shuffle of a few loads brings the pixels of two
// taps of each of the eight bytes together. Loads, shuffles and weights do not depend on the row.

constexpr int kMostLoads = 3, kMostChannels = 4;
constexpr int64_t kFewOf = 8;  // weights at the ends of a row differ from the others

struct Plan {
  int64_t blocks, stride;  // bytes from block to block
  int64_t tables;          // offset of the blocks' shuffles and weights, which follow their offsets
  int pairs, loads;
};
constexpr int64_t kLine = 64, kHeader = kLine;
static_assert(sizeof(Plan) <= kHeader);

inline int64_t whole_lines(int64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

// Offset of the first load of each octet, by pair of taps.
struct Offsets {
  int32_t at[2][4];
  int32_t any_fine;  // whether a weight of the block has a fine part
};

// Shuffles and weights of a block in memory.
template <int kPairs>
class Block {
 public:
  static constexpr int64_t kFineWords = kPairs == 1 ? 2 * kPartBytes : 2 * kPairs * 2 * kPartBytes;
  static constexpr int64_t size(int loads) {
    return 2 * kPairs * (loads + 1) * kVectorBytes + kFineWords * int64_t{sizeof(int16_t)};
  }

  Block(uint8_t* at, int loads) : at_(at), loads_(loads) {}
  uint8_t* index(int pair, int v) const { return at_ + (pair * 2 + v) * loads_ * kVectorBytes; }
  uint8_t* coarse(int pair, int v) const { return at_ + (2 * kPairs * loads_ + pair * 2 + v) * kVectorBytes; }
  int16_t* fine(int n) const {
    return reinterpret_cast<int16_t*>(at_ + 2 * kPairs * (loads_ + 1) * kVectorBytes) + n * kPartBytes;
  }

 private:
  uint8_t* at_;
  int loads_;
};

inline void weights_at(Packing packing, const RowTaps& taps, int64_t x, int32_t* weights) {
  if (!taps.blocked) return unpack_group(packing, taps.packed + x * 4, weights);
  uint32_t words[4];
  for (int d = 0; d < 4; ++d) words[d] = taps.packed[(x / kBlock * 4 + d) * kBlock + x % kBlock];
  unpack_group(packing, words, weights);
}

// Plans a row in memory: the header, the offsets of all blocks, their tables, and the split weights of all outputs, which
// only the plan needs.
template <int kPairs>
class Planner {
 public:
  Planner(const RowTaps& taps, int64_t outputs, uint8_t* room)
      : taps_(taps), outputs_(outputs), bytes_(outputs * taps.channels), blocks_(blocks_of(bytes_)), room_(room) {
    offsets_ = reinterpret_cast<Offsets*>(room + kHeader);
    splits_ = reinterpret_cast<Split*>(room + kHeader + offsets_bytes(blocks_));
  }

  static int64_t room(int64_t outputs, int64_t channels) {
    const int64_t blocks = blocks_of(outputs * channels);
    return kHeader + offsets_bytes(blocks) + splits_bytes(outputs) + blocks * Block<kPairs>::size(kMostLoads);
  }

  bool plan(Few which, Packing packing, int64_t readable) {
    if (!split_all(packing, which == Few::NoSums && kPairs == 2 ? outputs_ / kFewOf : outputs_)) return false;
    const int64_t loads = find_offsets(), last = readable - loads * kPartBytes;  // of the row's last load
    if (loads > kMostLoads || last < 0) return false;
    loads_ = static_cast<int>(loads);
    tables_ = room_ + kHeader + offsets_bytes(blocks_) + splits_bytes(outputs_);
    stride_ = Block<kPairs>::size(loads_);
    for (int64_t b = 0; b < blocks_; ++b) {
      for (auto& pair : offsets_[b].at)
        for (int32_t& at : pair) at = static_cast<int32_t>(std::min<int64_t>(at, last));
      offsets_[b].any_fine = 0;
      const int64_t shuffles = 2 * kPairs * loads_ * kVectorBytes;
      std::memset(block_at(b).index(0, 0), 0x80, static_cast<size_t>(shuffles));
      std::memset(block_at(b).coarse(0, 0), 0, static_cast<size_t>(stride_ - shuffles));
    }
    enter_all();
    const Plan p{blocks_, stride_, tables_ - room_, kPairs, loads_};
    std::memcpy(room_, &p, sizeof p);
    return true;
  }

 private:
  static int64_t blocks_of(int64_t bytes) { return (bytes + kVectorBytes - 1) / kVectorBytes; }
  static int64_t offsets_bytes(int64_t blocks) { return whole_lines(blocks * int64_t{sizeof(Offsets)}); }
  static int64_t splits_bytes(int64_t outputs) { return whole_lines(outputs * int64_t{sizeof(Split)}); }
  Block<kPairs> block_at(int64_t b) const { return Block<kPairs>(tables_ + b * stride_, loads_); }

  bool split_all(Packing packing, int64_t most_fine) {
    int64_t fine = 0;
    for (int64_t x = 0; x < outputs_; ++x) {
      int32_t weights[kGroup];
      weights_at(packing, taps_, x, weights);
      fine += has_fine(weights);
      Split s;
      if (fine > most_fine || !(kPairs == 1 ? split_two(weights, s) : split_four(weights, s))) return false;
      splits_[x] = s;
    }
    return true;
  }

  // Find the first byte that each octet reads of a row, and return the greatest number of loads.
  int64_t find_offsets() {
    int32_t most = 0;
    for (int64_t octet = 0; octet < blocks_ * 4; ++octet) {
      const int64_t begin = octet * kOctet, end = std::min(begin + kOctet, bytes_);
      int32_t low[kPairs], high[kPairs];
      std::fill_n(low, kPairs, INT32_MAX);
      std::fill_n(high, kPairs, -1);
      const int64_t past = begin < end ? (end - 1) / taps_.channels + 1 : 0;
      for (int64_t x = begin / taps_.channels; x < past; ++x)
        for (int t = 0; t < 2 * kPairs; ++t) {
          if (splits_[x].tap[t] < 0) continue;
          low[t / 2] = std::min(low[t / 2], taps_.start[x] + splits_[x].tap[t]);
          high[t / 2] = std::max(high[t / 2], taps_.start[x] + splits_[x].tap[t]);
        }
      for (int pair = 0; pair < kPairs; ++pair) {
        offsets_[octet / 4].at[pair][octet % 4] = high[pair] < 0 ? 0 : low[pair] * taps_.channels;
        if (high[pair] >= 0) most = std::max(most, (high[pair] - low[pair] + 1) * taps_.channels);
      }
    }
    return std::max<int64_t>((most + kPartBytes - 1) / kPartBytes, 1);
  }

  void enter_all() {
    for (int64_t x = 0, at = 0; x < outputs_; ++x)
      for (int32_t c = 0; c < taps_.channels; ++c, ++at) {
        Offsets& offsets = offsets_[at / kVectorBytes];
        offsets.any_fine |= splits_[x].any_fine();
        enter(block_at(at / kVectorBytes), offsets, splits_[x], static_cast<int>(at % kVectorBytes),
              taps_.start[x] * taps_.channels + c);
      }
  }

  // Enter one byte of the destination into its block. `from` is the first byte of its channel.
  void enter(const Block<kPairs>& block, const Offsets& offsets, const Split& s, int at, int32_t from) const {
    const int octet = at / kOctet, j = at % kOctet, v = octet % 2, lane = octet / 2;
    for (int t = 0; t < 2 * kPairs; ++t) {
      const int pair = t / 2, place = lane * kPartBytes + 2 * j + t % 2;
      if (s.tap[t] >= 0) {
        const int32_t offset = from + s.tap[t] * taps_.channels - offsets.at[pair][octet];
        block.index(pair, v)[offset / kPartBytes * kVectorBytes + place] = static_cast<uint8_t>(offset % kPartBytes);
      }
      block.coarse(pair, v)[place] = static_cast<uint8_t>(s.coarse[t]);
      if (kPairs == 2) block.fine((pair * 2 + v) * 2 + j / 4)[lane * kOctet + 2 * (j % 4) + t % 2] = s.fine[t];
    }
    if (kPairs == 1) block.fine(v)[lane * kOctet + j] = s.fine[1];
  }

  const RowTaps& taps_;
  const int64_t outputs_, bytes_, blocks_;
  uint8_t* const room_;
  Offsets* offsets_;
  Split* splits_;
  uint8_t* tables_ = nullptr;
  int64_t stride_ = 0;
  int loads_ = 0;
};

template <int kLoads>
inline __m256i load_pairs(const uint8_t* one, const uint8_t* other, const uint8_t* index) {
  __m256i pixels{};
  for (int l = 0; l < kLoads; ++l) {
    const __m256i bytes = _mm256_inserti128_si256(_mm256_castsi128_si256(load_part(one + l * kPartBytes)),
                                                  load_part(other + l * kPartBytes), 1);
    const __m256i found = _mm256_shuffle_epi8(bytes, load(index + l * kVectorBytes));
    pixels = l == 0 ? found : _mm256_or_si256(pixels, found);
  }
  return pixels;
}

template <int kPairs, int kLoads, bool kFine>
inline __m256i weigh_vector(const Block<kPairs>& block, const Offsets& offsets, int v, const uint8_t* src) {
  __m256i pixels[kPairs];
  for (int pair = 0; pair < kPairs; ++pair)
    pixels[pair] = load_pairs<kLoads>(src + offsets.at[pair][v], src + offsets.at[pair][v + 2], block.index(pair, v));
  if constexpr (kPairs == 1) {
    return weigh_two<kFine>(pixels[0], load(block.coarse(0, v)), load(block.fine(v)));
  } else {
    const FineFour fine{{load(block.fine(2 * v)), load(block.fine(2 * v + 1))},
                        {load(block.fine(2 * v + 4)), load(block.fine(2 * v + 5))}};
    return weigh_four<kFine>(pixels[0], pixels[1], load(block.coarse(0, v)), load(block.coarse(1, v)), fine);
  }
}

template <int kPairs, int kLoads, bool kFine>
inline void weigh_block(const Block<kPairs>& block, const Offsets& offsets, const uint8_t* const src[kRows],
                        uint8_t* const dst[kRows], int64_t at) {
  for (int r = 0; r < kRows; ++r) {
    const __m256i bytes = _mm256_packus_epi16(weigh_vector<kPairs, kLoads, kFine>(block, offsets, 0, src[r]),
                                              weigh_vector<kPairs, kLoads, kFine>(block, offsets, 1, src[r]));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(dst[r] + at), bytes);
  }
}

template <int kPairs, int kLoads>
void weigh_rows(const Plan& p, uint8_t* room, const uint8_t* const src[kRows], uint8_t* const dst[kRows]) {
  const auto* const offsets = reinterpret_cast<const Offsets*>(room + kHeader);
  for (int64_t b = 0; b < p.blocks; ++b) {
    const Block<kPairs> block(room + p.tables + b * p.stride, kLoads);
    if (offsets[b].any_fine) weigh_block<kPairs, kLoads, true>(block, offsets[b], src, dst, b * kVectorBytes);
    else weigh_block<kPairs, kLoads, false>(block, offsets[b], src, dst, b * kVectorBytes);
  }
}

template <int kPairs>
void weigh_loads(const Plan& p, uint8_t* room, const uint8_t* const src[kRows], uint8_t* const dst[kRows]) {
  if (p.loads == 1) weigh_rows<kPairs, 1>(p, room, src, dst);
  else if (p.loads == 2) weigh_rows<kPairs, 2>(p, room, src, dst);
  else weigh_rows<kPairs, 3>(p, room, src, dst);
}

}  // namespace

bool vertical_few_taps(Few which, const uint8_t* const* rows, const int32_t* weights, uint8_t* out, int64_t n) {
  if (n < kVectorBytes) return false;
  Split s;
  if (weights[0] + weights[1] == kOne && split_two(weights, s)) {
    if (s.any_fine()) vertical_two<true>(rows, s, out, n);
    else vertical_two<false>(rows, s, out, n);
    return true;
  }
  s = Split();
  if ((which == Few::NoSums && has_fine(weights)) || !split_four(weights, s)) return false;
  if (s.any_fine()) vertical_four<true>(rows, s, out, n);
  else vertical_four<false>(rows, s, out, n);
  return true;
}

int64_t few_taps_room(int64_t outputs) {
  return std::max(Planner<1>::room(outputs, kMostChannels), Planner<2>::room(outputs, kMostChannels));
}

bool plan_few_taps(Few which, Packing packing, const RowTaps& taps, int64_t outputs, int64_t readable, uint8_t* room) {
  if (taps.groups != 1 || taps.channels < 1 || taps.channels > kMostChannels || readable > INT32_MAX) return false;
  return Planner<1>(taps, outputs, room).plan(which, packing, readable) ||
         Planner<2>(taps, outputs, room).plan(which, packing, readable);
}

void horizontal_few_taps(const uint8_t* room, const uint8_t* const src[kRows], uint8_t* const dst[kRows]) {
  Plan p;
  std::memcpy(&p, room, sizeof p);
  auto* const memory = const_cast<uint8_t*>(room);  // it is only read
  if (p.pairs == 1) weigh_loads<1>(p, memory, src, dst);
  else weigh_loads<2>(p, memory, src, dst);
}

}  // namespace stoker::resample

#include "base/target_end.hpp"
#endif
