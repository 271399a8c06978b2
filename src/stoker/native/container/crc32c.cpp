// SPDX-License-Identifier: Apache-2.0
#include "container/crc32c.hpp"

#include <cstring>

#include "base/simd.hpp"
#if defined(__x86_64__)
#include <nmmintrin.h>
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
constexpr size_t kLane = 1024;

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

STOKER_CRC uint32_t by_instruction(uint32_t first, const uint8_t* data, size_t size) {
  uint64_t state = first;
  if (size >= 3 * kLane) {
    const LaneShift& shift = lane_shift();
    for (; size >= 3 * kLane; data += 3 * kLane, size -= 3 * kLane) {
      uint64_t second = 0, third = 0;
      for (size_t i = 0; i < kLane; i += 8) {
        state = step(state, load(data + i));
        second = step(second, load(data + kLane + i));
        third = step(third, load(data + 2 * kLane + i));
      }
      state = shifted(shift, state) ^ second;
      state = shifted(shift, state) ^ third;
    }
  }
  for (; size >= 8; data += 8, size -= 8) state = step(state, load(data));
  return by_tables(static_cast<uint32_t>(state), data, size);
}

#endif

}  // namespace

uint32_t crc32c(const uint8_t* data, size_t size, uint32_t before) {
#if defined(__x86_64__) || defined(__aarch64__)
  if (has_instruction()) return ~by_instruction(~before, data, size);
#endif
  return ~by_tables(~before, data, size);
}

}  // namespace stoker
