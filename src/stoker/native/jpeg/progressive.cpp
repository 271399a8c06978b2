// SPDX-License-Identifier: Apache-2.0
// Every detail that a damaged file can reach follows libjpeg: values past the band's end are written as in libjpeg,
// shifted values wrap to 16 bits, and refinement changes every non-zero coefficient.
#include "jpeg/progressive.hpp"

#include <algorithm>
#include <bit>
#include <iterator>

#include "base/simd.hpp"
#include "jpeg/bits.hpp"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace stoker::jpeg {
namespace {

constexpr uint32_t band_entry(int length, int step, int value) {
  return static_cast<uint32_t>(length) | static_cast<uint32_t>(step) << 8 | static_cast<uint32_t>(value) << 16;
}

// Meaning of a symbol: it is followed by `extra` bits.
struct Meaning {
  int extra, step;
  bool ends;
};
Meaning meaning_of(int symbol, bool refinement) {
  const int run = symbol >> 4, size = symbol & 15;
  if (size) return {refinement ? 1 : size, run + 1, false};
  if (run == 15) return {0, 16, false};
  return {run, kEndOfBlock, true};
}
int value_of(const Meaning& m, int bits) { return m.ends ? (1 << m.extra) + bits : extend(bits, m.extra); }

struct Lookup {
  int step, value;
};

// Return the next symbol. The bit buffer must hold 31 bits.
[[gnu::always_inline]] inline Lookup next_symbol(Cursor& c, const BandTable& table, bool refinement) {
  uint32_t entry = table.entry[c.buffer >> (64 - kBandBits)];
  if (__builtin_expect((entry & 255) == 0, 0)) {
    const Symbol s = search(table.code, c.buffer, 1, c.byte());
    const Meaning m = meaning_of(s.value, refinement);
    const uint64_t top = c.buffer << s.length;
    c.take(s.length + m.extra);
    return {m.step, value_of(m, static_cast<int>(top >> 1 >> (63 - m.extra)))};
  }
  c.take(static_cast<int>(entry & 255));
  const int step = static_cast<int>(entry >> 8 & 255), high = static_cast<int>(entry >> 16);
  return {step, static_cast<int16_t>(high)};  // a run of blocks is below 2^15
}

[[gnu::always_inline]] inline bool used_too_much(const Cursor& c, const Bits& bits) {
  return __builtin_expect(c.next > bits.end, 0) && (c.next - bits.end) * 8 > c.count;
}

template <typename Block>
[[gnu::always_inline]] inline int each_unit(Bits& bits, int first, int last, bool& overrun, Block&& block) {
  Cursor c{bits.buffer, bits.count, bits.next};
  bool over = false;
  int at = first;
  while (at < last && !over) {
    at = block(c, at);
    over = used_too_much(c, bits);
  }
  if (over) c = {0, 0, bits.end};  // all further bits are zero; stay inside the padding
  bits.buffer = c.buffer;
  bits.count = c.count;
  bits.next = c.next;
  overrun = over;
  return at;
}

[[gnu::always_inline]] inline int16_t* kept_block(const McuBlock& block, int unit) {
  const uint32_t at = static_cast<uint32_t>(unit * block.step + block.offset - block.first);
  if (at >= static_cast<uint32_t>(block.stored)) return nullptr;
  return block.coefficients + static_cast<size_t>(block.stride) * at;
}

int dc_first(Bits& bits, Mcu& mcu, int shift, int first, int last, bool& overrun) {
  return each_unit(bits, first, last, overrun, [&](Cursor& c, int unit) __attribute__((always_inline)) {
    for (int b = 0; b < mcu.count; ++b) {
      const McuBlock& block = mcu.block[b];
      refill(c.buffer, c.count, c.next);
      const uint32_t dc = mcu.prediction[block.component] += static_cast<uint32_t>(decode_dc(c, *block.dc));
      if (int16_t* kept = kept_block(block, unit)) *kept = static_cast<int16_t>(dc << shift);
    }
    return unit + 1;
  });
}

int dc_refine(Bits& bits, Mcu& mcu, int shift, int first, int last, bool& overrun) {
  return each_unit(bits, first, last, overrun, [&](Cursor& c, int unit) __attribute__((always_inline)) {
    refill(c.buffer, c.count, c.next);  // one bit per block
    for (int b = 0; b < mcu.count; ++b) {
      const int bit = static_cast<int>(c.buffer >> 63);
      c.take(1);
      if (int16_t* kept = kept_block(mcu.block[b], unit)) *kept = static_cast<int16_t>(*kept | bit << shift);
    }
    return unit + 1;
  });
}

template <bool kKeep>
[[gnu::always_inline]] inline void first_block(Cursor& c, Band& band, int16_t* block, uint64_t& mask) {
  uint64_t m = mask;
  int position = band.first - 1;
  for (;;) {
    refill(c.buffer, c.count, c.next);
    const Lookup s = next_symbol(c, *band.table, false);
    position += s.step;
    if (s.step == kEndOfBlock) {
      band.ended = static_cast<uint32_t>(s.value) - 1;
      break;
    }
    if (__builtin_expect(s.value != 0, 1)) {
      const int at = std::min(position, 63);
      const int16_t value = static_cast<int16_t>(static_cast<uint32_t>(s.value) << band.shift);
      const uint64_t bit = uint64_t{1} << at;
      m = value ? m | bit : m & ~bit;
      if (kKeep) block[kNatural.at[at]] = value;
    }
    if (position >= band.last) break;
  }
  mask = m;
}

[[gnu::always_inline]] inline int ac_first(Bits& bits, Band& scan, const BandRow& row, int first, int last,
                                           bool& overrun) {
  Band band = scan;
  const int reached = each_unit(bits, first, last, overrun, [&](Cursor& c, int unit) __attribute__((always_inline)) {
    if (band.ended) {
      const int skipped = static_cast<int>(std::min<uint32_t>(band.ended, static_cast<uint32_t>(last - unit)));
      band.ended -= static_cast<uint32_t>(skipped);
      return unit + skipped;
    }
    if (int16_t* block = row.block(unit)) first_block<true>(c, band, block, row.masks[unit]);
    else first_block<false>(c, band, nullptr, row.masks[unit]);
    return unit + 1;
  });
  scan.ended = band.ended;
  return reached;
}

// Move bit i of `bits` to the i-th of the positions set in `where`.
uint64_t deposit_plain(uint64_t bits, uint64_t where) {
  uint64_t out = 0;
  for (; where; where &= where - 1, bits >>= 1) out |= bits & 1 ? where & -where : 0;
  return out;
}
// Return the i-th (from 0) of the positions set in `from` as a mask; 0 if there are fewer.
uint64_t nth_plain(uint64_t from, int i) {
  for (; i > 0; --i) from &= from - 1;
  return from & -from;
}

// The same operations as single instructions on processors that have them: loops of varying length are mispredicted.
struct PlainBits {
  static uint64_t deposit(uint64_t bits, uint64_t where) { return deposit_plain(bits, where); }
  static uint64_t nth(uint64_t from, int i) { return nth_plain(from, i); }
};
#if defined(__x86_64__)
#define STOKER_BMI __attribute__((target("bmi,bmi2,popcnt")))
struct BmiBits {
  STOKER_BMI static uint64_t deposit(uint64_t bits, uint64_t where) { return _pdep_u64(bits, where); }
  STOKER_BMI static uint64_t nth(uint64_t from, int i) { return _pdep_u64(uint64_t{1} << i, from); }
};
#endif

[[gnu::always_inline]] inline uint64_t reversed(uint64_t v) {
  v = (v >> 1 & 0x5555555555555555u) | (v & 0x5555555555555555u) << 1;
  v = (v >> 2 & 0x3333333333333333u) | (v & 0x3333333333333333u) << 2;
  v = (v >> 4 & 0x0F0F0F0F0F0F0F0Fu) | (v & 0x0F0F0F0F0F0F0F0Fu) << 4;
  return __builtin_bswap64(v);
}

// Read one correction bit for each position in `which`, in order; return the positions whose bit is set.
template <bool kKeep, typename BitTricks>
[[gnu::always_inline]] inline uint64_t read_corrections(Cursor& c, uint64_t which) {
  uint64_t set = 0;
  if (__builtin_expect(std::popcount(which) > 56, 0)) {  // more than the buffer is certain to hold: in two parts
    const uint64_t low = which & 0xFFFFFFFF;
    refill(c.buffer, c.count, c.next);
    if (kKeep) set = BitTricks::deposit(reversed(c.buffer), low);
    c.take(std::popcount(low));
    which ^= low;
  }
  refill(c.buffer, c.count, c.next);
  if (kKeep) set |= BitTricks::deposit(reversed(c.buffer), which);
  c.take(std::popcount(which));
  return set;
}

template <bool kKeep, typename BitTricks>
[[gnu::always_inline]] inline void refine_block(Cursor& c, Band& band, int16_t* block, uint64_t& mask) {
  const uint64_t whole = ~uint64_t{0} >> (63 - band.last);  // up to the band's last position
  uint64_t m = mask, corrected = 0;
  int position = band.first;
  if (band.ended == 0) {
    do {
      refill(c.buffer, c.count, c.next);
      const Lookup s = next_symbol(c, *band.table, true);
      if (s.step == kEndOfBlock) {
        band.ended = static_cast<uint32_t>(s.value);
        break;
      }
      const uint64_t ahead = whole & ~uint64_t{0} << position;
      const uint64_t zero = BitTricks::nth(~m & ahead, s.step - 1);  // end of the run; 0: past the band
      corrected |= read_corrections<kKeep, BitTricks>(c, m & ahead & (zero - 1));
      const int target = zero ? std::countr_zero(zero) : band.last + 1;
      if (__builtin_expect(s.value != 0, 1)) {
        const int at = std::min(target, 63);
        m |= uint64_t{1} << at;
        corrected &= ~(uint64_t{1} << at);
        if (kKeep) block[kNatural.at[at]] = static_cast<int16_t>(static_cast<uint32_t>(s.value) << band.shift);
      }
      position = target + 1;
    } while (position <= band.last);
  }
  if (band.ended) {
    const uint64_t left = m & whole & ~uint64_t{0} << position;
    if (left) corrected |= read_corrections<kKeep, BitTricks>(c, left);
    --band.ended;
  }
  mask = m;
  for (; kKeep && corrected; corrected &= corrected - 1) {
    int16_t& value = block[kNatural.at[std::countr_zero(corrected)]];
    const int32_t v = value, sign = v >> 31;
    // Increase the magnitude by one unit, unless an earlier scan has done it.
    const int32_t unit = 1 & ~(v >> band.shift);
    value = static_cast<int16_t>(v + (((unit << band.shift) ^ sign) - sign));
  }
}

template <typename BitTricks>
[[gnu::always_inline]] inline int ac_refine(Bits& bits, Band& scan, const BandRow& row, int first, int last,
                                            bool& overrun) {
  Band band = scan;
  const int reached = each_unit(bits, first, last, overrun, [&](Cursor& c, int unit) __attribute__((always_inline)) {
    if (int16_t* block = row.block(unit)) refine_block<true, BitTricks>(c, band, block, row.masks[unit]);
    else refine_block<false, BitTricks>(c, band, nullptr, row.masks[unit]);
    return unit + 1;
  });
  scan.ended = band.ended;
  return reached;
}

int ac_first_plain(Bits& bits, Band& band, const BandRow& row, int first, int last, bool& overrun) {
  return ac_first(bits, band, row, first, last, overrun);
}
int ac_refine_plain(Bits& bits, Band& band, const BandRow& row, int first, int last, bool& overrun) {
  return ac_refine<PlainBits>(bits, band, row, first, last, overrun);
}
constexpr ProgressiveCoders kPlain = {dc_first, dc_refine, ac_first_plain, ac_refine_plain};

#if defined(__x86_64__)
// The same code with BMI, whose shifts and bit counts are single instructions.
STOKER_BMI int ac_first_bmi(Bits& bits, Band& band, const BandRow& row, int first, int last, bool& overrun) {
  return ac_first(bits, band, row, first, last, overrun);
}
STOKER_BMI int ac_refine_bmi(Bits& bits, Band& band, const BandRow& row, int first, int last, bool& overrun) {
  return ac_refine<BmiBits>(bits, band, row, first, last, overrun);
}
constexpr ProgressiveCoders kBmi = {dc_first, dc_refine, ac_first_bmi, ac_refine_bmi};
#endif

}  // namespace

bool build_band(const uint8_t* dht, bool refinement, BandTable& table, Damage* damage) {
  table.code.damage = damage;
  std::fill(std::begin(table.entry), std::end(table.entry), 0u);
  return canonical(dht, kBandBits, table.code, [&](uint32_t prefix, int length, int symbol) {
    const Meaning m = meaning_of(symbol, refinement);
    const int total = length + m.extra;
    if (total > kBandBits) return;
    uint32_t* at = table.entry + (prefix >> (16 - kBandBits));
    const int copies = 1 << (kBandBits - total);
    for (int bits = 0; bits < 1 << m.extra; ++bits, at += copies)
      std::fill_n(at, copies, band_entry(total, m.step, value_of(m, bits)));
  });
}

const ProgressiveCoders& progressive_coders() {
#if defined(__x86_64__)
  static const bool bmi =
      __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
  if (isa() != Isa::Plain && bmi) return kBmi;
#endif
  return kPlain;
}

}  // namespace stoker::jpeg
