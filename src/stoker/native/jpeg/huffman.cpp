// SPDX-License-Identifier: Apache-2.0
#include "jpeg/huffman.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <iterator>

#include "base/simd.hpp"
#include "jpeg/bits.hpp"
#include "jpeg/x86.hpp"
#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace stoker::jpeg {
namespace {

constexpr size_t kStandardSymbols = 162;  // of an AC code of the standard

int ac_step(int symbol) {
  if (symbol & 15) return (symbol >> 4) + 1;
  return symbol == 0xF0 ? 16 : kEndOfBlock;
}

constexpr uint16_t ac_advance(int length, int steps) { return static_cast<uint16_t>(length | steps << 6); }

constexpr uint32_t ac_values(int step1, int value1, int value2) {
  return static_cast<uint32_t>(step1) | (static_cast<uint32_t>(value1) & 0xFFF) << 8 |
         static_cast<uint32_t>(value2) << 20;
}

int16_t first_value(uint32_t values) { return static_cast<int16_t>(static_cast<int32_t>(values << 12) >> 20); }
int16_t second_value(uint32_t values) { return static_cast<int16_t>(static_cast<int32_t>(values) >> 20); }

// Fill the entries of a single symbol.
void fill_ac_leaf(AcTable& table, uint32_t prefix, int length, int symbol) {
  const int size = symbol & 15, total = length + size, step = ac_step(symbol);
  size_t at = prefix >> (16 - kAcBits);
  const bool whole = total <= kAcBits;
  std::fill_n(table.first_length + at, 1 << (kAcBits - length), static_cast<uint8_t>(whole ? total : length));
  if (!whole) {
    // Length 0 does not advance the bit buffer, and both writes go to position 63, which is reset afterwards.
    std::fill_n(table.advance + at, 1 << (kAcBits - length), ac_advance(0, kUnresolved));
    std::fill_n(table.values + at, 1 << (kAcBits - length), ac_values(kEndOfBlock, 0, symbol));
    return;
  }
  const size_t copies = size_t{1} << (kAcBits - total);
  for (int bits = 0; bits < 1 << size; ++bits, at += copies) {
    const int value = extend(bits, size);
    std::fill_n(table.advance + at, copies, ac_advance(total, step));
    std::fill_n(table.values + at, copies, ac_values(step, value, value));
  }
}

// Join entry i with the entry that its remaining bits select, if those bits hold a whole symbol. Branchless, because
// branches would be mispredicted.
void join_pairs(AcTable& table) {
#if defined(__x86_64__)
  if (has_vbmi2()) return join_pairs_vbmi2(table);
#endif
  uint16_t advance[1 << kAcBits];
  uint32_t values[1 << kAcBits];
  std::memcpy(advance, table.advance, sizeof advance);
  std::memcpy(values, table.values, sizeof values);
  for (uint32_t i = 0; i < 1 << kAcBits; ++i) {
    const uint32_t first = advance[i], length = first & 63;
    const uint32_t next = i << length & ((1 << kAcBits) - 1), second = advance[next], length2 = second & 63;
    const bool join = (first < kEndOfBlock << 6) & (length2 != 0) & (length + length2 <= kAcBits);
    table.advance[i] = static_cast<uint16_t>(first + (join ? second : 0));
    const uint32_t keep = join ? 0xFFFFF : ~0u;
    table.values[i] = (values[i] & keep) | (values[next] & ~keep);
  }
}

// Fill a table from the counts and symbols of a DHT segment; return whether the code is possible.
bool fill_ac(const uint8_t* dht, bool pairs, AcTable& table) {
  size_t filled = 0;  // codes are in ascending order
  const bool valid = canonical(dht, kAcBits, table.code, [&](uint32_t prefix, int length, int symbol) {
    fill_ac_leaf(table, prefix, length, symbol);
    filled = (prefix >> (16 - kAcBits)) + (size_t{1} << (kAcBits - length));
  });
  std::fill(table.advance + filled, std::end(table.advance), ac_advance(0, kUnresolved));
  std::fill(table.values + filled, std::end(table.values), ac_values(kEndOfBlock, 0, 0));
  std::fill(table.first_length + filled, std::end(table.first_length), uint8_t{0});
  if (valid && pairs) join_pairs(table);
  return valid;
}

// Return the table of a code that is one of the standard's, which most encoders write by default; null for other codes.
// Copying a table takes a tenth of the time of building it.
const AcTable* find_standard(const uint8_t* dht) {
  static const std::array<AcTable, 2> tables = [] {
    std::array<AcTable, 2> built;
    for (int i = 0; i < 2; ++i) fill_ac(standard_ac(i), true, built[static_cast<size_t>(i)]);
    return built;
  }();
  for (int i = 0; i < 2; ++i) {
    // the counts first: a code with other counts may have fewer symbols
    const uint8_t* code = standard_ac(i);
    if (std::memcmp(dht, code, 16) == 0 && std::memcmp(dht + 16, code + 16, kStandardSymbols) == 0)
      return &tables[static_cast<size_t>(i)];
  }
  return nullptr;
}

// Decode a symbol that the lookup at `index` could not resolve. Return the step.
template <bool kStore>
[[gnu::always_inline]] inline int decode_long(Cursor& c, const AcTable& table, size_t index, size_t position,
                                              int16_t* block) {
  refill(c.buffer, c.count, c.next);
  Symbol s{table.first_length[index], static_cast<int>(table.values[index] >> 20)};
  if (s.length == 0) s = search(table.code, c.buffer, kAcBits + 1, c.byte());
  const int size = s.value & 15, step = ac_step(s.value);
  const int32_t value = signed_bits(c.buffer << s.length, size);
  c.take(s.length + size);
  if (kStore) {
    block[63] = 0;  // undo the write of the lookup's second value
    block[kNatural.at[position + static_cast<size_t>(step)]] = static_cast<int16_t>(value);  // 0 if there is no value
  }
  return step;
}

// Decode a block's AC coefficients. Return 1 + the last zig-zag position that may be non-zero.
template <bool kStore>
[[gnu::always_inline]] inline int decode_ac(Cursor& c, const AcTable& table, int16_t* block) {
  // `state` is the sum of the entries: 64 times the zig-zag position plus the bits used since the last refill, which
  // stay below 64. The dependency chain from one lookup to the next is therefore shift, load, shift; everything else
  // runs in parallel.
  constexpr int kStepsPerRefill = 56 / kAcBits;
  constexpr size_t kLast = 63 * 64;
  size_t state = 0;
  for (;;) {
    refill(c.buffer, c.count, c.next);
    size_t index = 0, entry = 0;
    uint64_t before = 0;
#pragma GCC unroll 5
    for (int i = 0; i < kStepsPerRefill; ++i) {
      index = c.buffer >> (64 - kAcBits);
      entry = table.advance[index];
      before = c.buffer;
      c.buffer <<= entry & 63;
      if (kStore) {
        const uint32_t values = table.values[index];
        block[kNatural.at[(state >> 6) + (values & 255)]] = first_value(values);
        block[kNatural.at[(state + entry) >> 6]] = second_value(values);
      }
      state += entry;
      if (state >= kLast) goto finished;
    }
    c.count -= state & 63;
    state &= ~size_t{63};
    continue;
  finished:
    const size_t earlier = state - entry, position = earlier >> 6;
    if (__builtin_expect(entry >= kUnresolved << 6, 0)) {
      c.count -= earlier & 63;
      const size_t step = static_cast<size_t>(decode_long<kStore>(c, table, index, position, block));
      if (step == kEndOfBlock) return static_cast<int>(position) + 1;
      if (position + step >= 63) return 64;
      state = (position + step) << 6;
      continue;
    }
    const uint32_t values = table.values[index], step1 = values & 255;
    if (__builtin_expect(step1 < kEndOfBlock && position + step1 >= 63, 0)) {
      // The first symbol ended the block, so the lookup's second symbol belongs to the next block.
      const int length = table.first_length[index];
      c.buffer = before << length;
      c.count -= static_cast<int>(earlier & 63) + length;
      if (kStore) block[63] = first_value(values);
      return 64;
    }
    c.count -= state & 63;
    // Branchless, because branches would be mispredicted.
    const size_t end = position + 1 + (step1 & (kEndOfBlock - 1));
    return static_cast<int>(entry >= kEndOfBlock << 6 ? end : 64);
  }
}

[[gnu::always_inline]] inline int decode_mcus(Bits& bits, Mcu& mcu, int first, int last, bool& overrun) {
  Cursor c{bits.buffer, bits.count, bits.next};
  int m = first;
  bool over = false;
  while (m < last && !over) {
    for (int b = 0; b < mcu.count; ++b) {
      const McuBlock& block = mcu.block[b];
      if (__builtin_expect(c.next > bits.end + 8, 0)) {
        // All further bits are zero; stay inside the padding.
        over = true;
        c = {0, 0, bits.end};
      }
      refill(c.buffer, c.count, c.next);
      const uint32_t dc = mcu.prediction[block.component] += static_cast<uint32_t>(decode_dc(c, *block.dc));
      const uint32_t at = static_cast<uint32_t>(m * block.step + block.offset - block.first);
      const bool stored = at < static_cast<uint32_t>(block.stored);
      if (stored && block.stride > 1) {
        int16_t* coefficients = block.coefficients + 64 * static_cast<size_t>(at);
        coefficients[0] = static_cast<int16_t>(dc);
        block.ends[at] = static_cast<uint8_t>(decode_ac<true>(c, *block.ac, coefficients));
      } else {
        if (stored) block.coefficients[at] = static_cast<int16_t>(dc);
        decode_ac<false>(c, *block.ac, nullptr);
      }
    }
    ++m;
    if (__builtin_expect(c.next > bits.end, 0)) over |= (c.next - bits.end) * 8 > c.count;
  }
  bits.buffer = c.buffer;
  bits.count = c.count;
  bits.next = c.next;
  overrun = over;
  return m;
}

int decode_mcus_plain(Bits& bits, Mcu& mcu, int first, int last, bool& overrun) {
  return decode_mcus(bits, mcu, first, last, overrun);
}

#if defined(__x86_64__)
// The same code with BMI2, whose three-operand shifts shorten the dependency chain between symbols.
__attribute__((target("bmi2"))) int decode_mcus_bmi2(Bits& bits, Mcu& mcu, int first, int last, bool& overrun) {
  return decode_mcus(bits, mcu, first, last, overrun);
}
#endif

// Copy 16 bytes from `p` to `out` and return the number of bytes before the first 0xFF.
[[gnu::always_inline]] inline int copy16(const uint8_t* p, uint8_t* out) {
#if defined(__SSE2__)
  const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), v);
  const int mask = _mm_movemask_epi8(_mm_cmpeq_epi8(v, _mm_set1_epi8(-1)));
  return std::countr_zero(static_cast<uint32_t>(mask) | 0x10000u);
#elif defined(__aarch64__)
  const uint8x16_t v = vld1q_u8(p);
  vst1q_u8(out, v);
  const uint16x8_t equal = vreinterpretq_u16_u8(vceqq_u8(v, vdupq_n_u8(0xFF)));
  const uint64_t nibbles = vget_lane_u64(vreinterpret_u64_u8(vshrn_n_u16(equal, 4)), 0);  // four bits per byte
  return std::countr_zero(nibbles) / 4;                                                   // 16 without a 0xFF
#else
  std::memcpy(out, p, 16);
  uint64_t halves[2];
  std::memcpy(halves, p, 16);
  const auto has_ff = [](uint64_t v) { return (v & (~v - 0x0101010101010101u * 0xFF) & 0x8080808080808080u) != 0; };
  if (!has_ff(halves[0]) && !has_ff(halves[1])) return 16;
  int n = 0;
  while (n < 16 && p[n] != 0xFF) ++n;
  return n;
#endif
}

}  // namespace

int natural_position(int zigzag) { return kNatural.at[zigzag]; }

bool build_dc(const uint8_t* dht, DcTable& table, Damage* damage) {
  table.code.damage = damage;
  std::memset(table.entry, 0, sizeof table.entry);
  bool valid = true;
  const bool complete = canonical(dht, 16, table.code, [&](uint32_t prefix, int length, int symbol) {
    valid &= symbol <= 15;
    if (length > kDcBits) return;
    const uint32_t entry = static_cast<uint32_t>(length + symbol) | static_cast<uint32_t>(length) << 8 |
                           static_cast<uint32_t>(symbol) << 16;
    std::fill_n(table.entry + (prefix >> (16 - kDcBits)), 1 << (kDcBits - length), entry);
  });
  return complete && valid;
}

bool build_ac(const uint8_t* dht, bool pairs, AcTable& table, Damage* damage) {
  if (const AcTable* standard = find_standard(dht)) {
    table = *standard;
    table.code.damage = damage;
    return true;
  }
  table.code.damage = damage;
  return fill_ac(dht, pairs, table);
}

size_t unstuff(const uint8_t* data, size_t size, size_t& pos, uint8_t* out) {
  const uint8_t* p = data + pos;
  const uint8_t* const end = data + size;
  uint8_t* o = out;
  for (;;) {
#if defined(__x86_64__)
    if (has_vbmi2()) unstuff_vbmi2(p, end, o);
#endif
    int n;
    while (end - p >= 16 && (n = copy16(p, o)) == 16) p += 16, o += 16;
    if (end - p >= 16) {
      p += n;
      o += n;
    } else {
      while (p < end && *p != 0xFF) *o++ = *p++;
      if (p == end) break;
    }
    // At 0xFF: any number of 0xFF followed by 0 is one data byte, followed by anything else a marker.
    const uint8_t* q = p;
    while (q < end && *q == 0xFF) ++q;
    if (q == end || *q != 0) {
      p = q == end ? end : q - 1;
      break;
    }
    *o++ = 0xFF;
    p = q + 1;
  }
  std::memset(o, 0, kBitPadding);
  pos = static_cast<size_t>(p - data);
  return static_cast<size_t>(o - out);
}

DecodeMcus mcu_decoder() {
#if defined(__x86_64__)
  static const bool bmi2 = __builtin_cpu_supports("bmi2");
  if (isa() != Isa::Plain && bmi2) return decode_mcus_bmi2;
#endif
  return decode_mcus_plain;
}

}  // namespace stoker::jpeg
