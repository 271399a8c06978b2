// SPDX-License-Identifier: Apache-2.0
#include "container/crc32c.hpp"

#include <cstring>

#include "base/simd.hpp"
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace stoker {

namespace {

// A CRC's state is the CRC with all bits inverted. Bits are in reflected order.
constexpr uint32_t kPolynomial = 0x82F63B78u;

// Table k has the effect of a byte that is followed by k zero bytes.
struct Tables {
  uint32_t of[8][256];
};

constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t state = byte;
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1) != 0 ? kPolynomial : 0);
    tables.of[0][byte] = state;
  }
  for (int k = 1; k < 8; ++k)
    for (int byte = 0; byte < 256; ++byte) {
      const uint32_t state = tables.of[k - 1][byte];
      tables.of[k][byte] = (state >> 8) ^ tables.of[0][state & 255];
    }
  return tables;
}

constexpr Tables kTables = make_tables();

constexpr uint32_t next_state(uint32_t state, uint8_t byte) {
  return (state >> 8) ^ kTables.of[0][(state ^ byte) & 255];
}

uint64_t load(const uint8_t* from) {
  uint64_t word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

uint32_t by_tables(uint32_t state, const uint8_t* data, size_t size) {
  for (; size >= 8; data += 8, size -= 8) {
    const uint64_t word = load(data) ^ state;
    state = 0;
    for (int k = 0; k < 8; ++k) state ^= kTables.of[7 - k][word >> (8 * k) & 255];
  }
  while (size-- > 0) state = next_state(state, *data++);
  return state;
}

#if defined(__x86_64__) || defined(__aarch64__)

// The instruction has a latency of three cycles and starts once per cycle, so three lanes are interleaved. The states
// of lanes are joined by their linearity: a state, advanced over the bytes of a following lane as if these were zero,
// is added to that lane's state.
constexpr size_t kLane = 1280;

struct LaneShift {
  uint32_t of[4][256];
};

LaneShift make_lane_shift() {
  uint32_t of_bit[32];
  for (int bit = 0; bit < 32; ++bit) {
    uint32_t state = uint32_t{1} << bit;
    for (size_t i = 0; i < kLane; ++i) state = next_state(state, 0);
    of_bit[bit] = state;
  }
  LaneShift shift{};
  for (int k = 0; k < 4; ++k)
    for (int byte = 0; byte < 256; ++byte)
      for (int bit = 0; bit < 8; ++bit)
        if ((byte >> bit & 1) != 0) shift.of[k][byte] ^= of_bit[8 * k + bit];
  return shift;
}

const LaneShift& lane_shift() {
  static const LaneShift shift = make_lane_shift();
  return shift;
}

uint32_t shifted(const LaneShift& shift, uint64_t state) {
  return shift.of[0][state & 255] ^ shift.of[1][state >> 8 & 255] ^ shift.of[2][state >> 16 & 255] ^
         shift.of[3][state >> 24 & 255];
}

#if defined(__x86_64__)
#define STOKER_CRC __attribute__((target("sse4.2")))
STOKER_CRC inline uint64_t step(uint64_t state, uint64_t word) { return _mm_crc32_u64(state, word); }
bool has_instruction() { return isa() != Isa::Plain; }  // AVX2 includes SSE4.2
#else
#define STOKER_CRC __attribute__((target("+crc")))
STOKER_CRC inline uint64_t step(uint64_t state, uint64_t word) {
  return __builtin_aarch64_crc32cx(static_cast<uint32_t>(state), word);
}
bool has_instruction() {
  static const bool has = (::getauxval(AT_HWCAP) & (1u << 7)) != 0;  // HWCAP_CRC32
  return has && isa() != Isa::Plain;
}
#endif

// Continue three adjacent lanes by one step of 8 bytes each.
struct Lanes {
  uint64_t first, second = 0, third = 0;
  STOKER_CRC void advance(const uint8_t* data) {
    first = step(first, load(data));
    second = step(second, load(data + kLane));
    third = step(third, load(data + 2 * kLane));
  }
  uint64_t joined(const LaneShift& shift) const { return shifted(shift, shifted(shift, first) ^ second) ^ third; }
};

STOKER_CRC uint32_t by_instruction(uint32_t before, const uint8_t* data, size_t size) {
  uint64_t state = before;
  if (size >= 3 * kLane) {
    const LaneShift& shift = lane_shift();
    for (; size >= 3 * kLane; data += 3 * kLane, size -= 3 * kLane) {
      Lanes lanes{state};
      for (size_t i = 0; i < kLane; i += 8) lanes.advance(data + i);
      state = lanes.joined(shift);
    }
  }
  for (; size >= 8; data += 8, size -= 8) state = step(state, load(data));
  return by_tables(static_cast<uint32_t>(state), data, size);
}

#endif

#if defined(__x86_64__)

// Carry-less multiplication runs next to the instruction, on other units of the processor: bytes are polynomials, and
// 16 bytes that are followed by N others have the effect of their product with the remainder of x^(8 N), added to the
// last 16 of these (V. Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", 2009).
#define STOKER_FOLD __attribute__((target("avx2,vpclmulqdq,pclmul,sse4.2")))

// The multipliers of the two halves of 16 bytes that are moved on by `bytes`. Bits are in reflected order, so that a
// product is one bit too low, which the shift repairs.
struct Multipliers {
  int64_t low, high;
};
constexpr int64_t reflected_power(size_t exponent) {
  uint32_t power = 0x80000000u;  // x^0
  for (size_t i = 0; i < exponent; ++i) power = (power >> 1) ^ ((power & 1) != 0 ? kPolynomial : 0);
  return static_cast<int64_t>(power) << 1;
}
constexpr Multipliers multipliers(size_t bytes) {
  return {reflected_power(8 * bytes + 32), reflected_power(8 * bytes - 32)};
}
constexpr Multipliers kBy128 = multipliers(128), kBy64 = multipliers(64), kBy32 = multipliers(32),
                      kBy16 = multipliers(16);

STOKER_FOLD inline __m256i twice(Multipliers by) { return _mm256_set_epi64x(by.high, by.low, by.high, by.low); }
STOKER_FOLD inline __m256i moved(__m256i bytes, __m256i by) {
  return _mm256_xor_si256(_mm256_clmulepi64_epi128(bytes, by, 0x00), _mm256_clmulepi64_epi128(bytes, by, 0x11));
}
STOKER_FOLD inline __m256i load_32(const uint8_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}

// A block: bytes that are multiplied, then the three lanes. A turn of the loop takes 128 of the former, and five steps
// of the lanes.
constexpr size_t kSteps = 5, kTurns = kLane / (8 * kSteps), kFolded = 128 * kTurns, kBlock = kFolded + 3 * kLane;
static_assert(kTurns * kSteps * 8 == kLane);

STOKER_FOLD uint32_t by_folding(uint32_t before, const uint8_t* data, size_t size) {
  const LaneShift& shift = lane_shift();
  const __m256i by_128 = twice(kBy128), by_64 = twice(kBy64), by_32 = twice(kBy32);
  const __m128i by_16 = _mm_set_epi64x(kBy16.high, kBy16.low);
  uint32_t state = before;
  for (; size >= kBlock; data += kBlock, size -= kBlock) {
    __m256i sum[4];
    for (int k = 0; k < 4; ++k) sum[k] = load_32(data + 32 * k);
    sum[0] = _mm256_xor_si256(sum[0], _mm256_zextsi128_si256(_mm_cvtsi32_si128(static_cast<int>(state))));
    Lanes lanes{0};
    const uint8_t* lane = data + kFolded;
    for (size_t turn = 1;; ++turn) {
      for (size_t i = 0; i < kSteps; ++i, lane += 8) lanes.advance(lane);
      if (turn == kTurns) break;
      for (int k = 0; k < 4; ++k) sum[k] = _mm256_xor_si256(moved(sum[k], by_128), load_32(data + 128 * turn + 32 * k));
    }
    const __m256i first = _mm256_xor_si256(moved(sum[0], by_64), sum[2]);
    const __m256i second = _mm256_xor_si256(moved(sum[1], by_64), sum[3]);
    const __m256i both = _mm256_xor_si256(moved(first, by_32), second);
    const __m128i low = _mm256_castsi256_si128(both);
    const __m128i last =
        _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(low, by_16, 0x00), _mm_clmulepi64_si128(low, by_16, 0x11)),
                      _mm256_extracti128_si256(both, 1));
    const uint64_t folded = step(step(0, static_cast<uint64_t>(_mm_cvtsi128_si64(last))),
                                 static_cast<uint64_t>(_mm_extract_epi64(last, 1)));
    lanes.first ^= shifted(shift, folded);
    state = static_cast<uint32_t>(lanes.joined(shift));
  }
  return by_instruction(state, data, size);
}

bool can_fold() {
  static const bool can = __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("pclmul");
  return can && has_wide();
}

// With vectors of 64 bytes the multiplications alone are as fast as the second-level cache, where a record is that has
// just been read. The latency of a product, and of the sum after it, needs eight of them at a time.
#define STOKER_FOLD_512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,vpclmulqdq,pclmul,sse4.2")))
constexpr size_t kWide = 64, kWideBlock = 8 * kWide;
constexpr Multipliers kBy512 = multipliers(kWideBlock);

STOKER_FOLD_512 inline __m512i four_times(Multipliers by) {
  return _mm512_set_epi64(by.high, by.low, by.high, by.low, by.high, by.low, by.high, by.low);
}
// Return the bytes, moved on by the multipliers' distance, plus those at `next`.
STOKER_FOLD_512 inline __m512i folded(__m512i bytes, __m512i by, __m512i next) {
  constexpr int kSumOfThree = 0x96;
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(bytes, by, 0x00), _mm512_clmulepi64_epi128(bytes, by, 0x11),
                                   next, kSumOfThree);
}

// For at least a block.
STOKER_FOLD_512 uint32_t by_wide_folding(uint32_t before, const uint8_t* data, size_t size) {
  const __m512i by_512 = four_times(kBy512), by_64 = four_times(kBy64);
  __m512i sum[8];
  for (size_t k = 0; k < 8; ++k) sum[k] = _mm512_loadu_si512(data + kWide * k);
  sum[0] = _mm512_xor_si512(sum[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(before))));
  data += kWideBlock, size -= kWideBlock;
  for (; size >= kWideBlock; data += kWideBlock, size -= kWideBlock)
    for (size_t k = 0; k < 8; ++k) sum[k] = folded(sum[k], by_512, _mm512_loadu_si512(data + kWide * k));
  __m512i last = sum[0];
  for (size_t k = 1; k < 8; ++k) last = folded(last, by_64, sum[k]);
  for (; size >= kWide; data += kWide, size -= kWide) last = folded(last, by_64, _mm512_loadu_si512(data));
  uint8_t rest[kWide];
  _mm512_storeu_si512(rest, last);
  return by_instruction(by_instruction(0, rest, kWide), data, size);
}

bool can_fold_wide() { return isa() == Isa::AVX512 && can_fold(); }

#endif

}  // namespace

uint32_t crc32c(const uint8_t* data, size_t size, uint32_t before) {
#if defined(__x86_64__)
  if (size >= kWideBlock && can_fold_wide()) return ~by_wide_folding(~before, data, size);
  if (size >= kBlock && can_fold()) return ~by_folding(~before, data, size);
#endif
#if defined(__x86_64__) || defined(__aarch64__)
  if (has_instruction()) return ~by_instruction(~before, data, size);
#endif
  return ~by_tables(~before, data, size);
}

}  // namespace stoker
