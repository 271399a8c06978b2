// SPDX-License-Identifier: Apache-2.0
// Every detail that a damaged file can reach follows libjpeg: what lies past the band's end is written like there,
// shifted values wrap to 16 bits, refinement touches whatever is not zero.
#include "jpeg_progressive.hpp"

#include <algorithm>
#include <bit>

#include "jpeg_bits.hpp"
#include "simd.hpp"

namespace stoker::jpeg {
namespace {

constexpr uint32_t band_entry(int length, int step, int value) {
  return static_cast<uint32_t>(length) | static_cast<uint32_t>(step) << 8 | static_cast<uint32_t>(value) << 16;
}

// What a symbol asks for: `extra` bits after its code, and what they mean.
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

// The next symbol. The bit buffer must hold 31 bits.
[[gnu::always_inline]] inline Lookup next_symbol(Cursor& c, const BandTable& table, bool refinement) {
  uint32_t entry = table.entry[c.buffer >> (64 - kBandBits)];
  if (__builtin_expect((entry & 255) == 0, 0)) {
    const Symbol s = search(table.code, c.buffer, 1);
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
  if (over) c = {0, 0, bits.end};  // zero bits from here on; stay inside the padding
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

// Reads one correction bit for each position in `which`.
template <bool kKeep>
[[gnu::always_inline]] inline void correct(Cursor& c, uint64_t which, int shift, int16_t* block) {
  if (!kKeep) {
    int count = std::popcount(which);
    refill(c.buffer, c.count, c.next);
    if (count > 32) {
      c.take(32);
      count -= 32;
      refill(c.buffer, c.count, c.next);
    }
    c.take(count);
    return;
  }
  while (which) {
    refill(c.buffer, c.count, c.next);
    const int count = std::min(std::popcount(which), 56);
    uint64_t bits = c.buffer;
    for (int i = 0; i < count; ++i, which &= which - 1, bits <<= 1) {
      int16_t& value = block[kNatural.at[std::countr_zero(which)]];
      const int32_t v = value, sign = v >> 31;
      // Away from zero by one unit, if the bit says so and the unit is not there yet.
      const int32_t unit = static_cast<int32_t>(bits >> 63) & ~(v >> shift);
      value = static_cast<int16_t>(v + (((unit << shift) ^ sign) - sign));
    }
    c.take(count);
  }
}

template <bool kKeep>
[[gnu::always_inline]] inline void refine_block(Cursor& c, Band& band, int16_t* block, uint64_t& mask) {
  const uint64_t whole = ~uint64_t{0} >> (63 - band.last);  // up to the band's last position
  uint64_t m = mask;
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
      uint64_t zeros = ~m & ahead;
      for (int i = 1; i < s.step; ++i) zeros &= zeros - 1;
      const int target = zeros ? std::countr_zero(zeros) : band.last + 1;
      const uint64_t passed = zeros ? m & ahead & ((zeros & -zeros) - 1) : m & ahead;
      if (passed) correct<kKeep>(c, passed, band.shift, block);
      if (s.value) {
        const int at = std::min(target, 63);
        m |= uint64_t{1} << at;
        if (kKeep) block[kNatural.at[at]] = static_cast<int16_t>(static_cast<uint32_t>(s.value) << band.shift);
      }
      position = target + 1;
    } while (position <= band.last);
  }
  if (band.ended) {
    const uint64_t left = m & whole & ~uint64_t{0} << position;
    if (left) correct<kKeep>(c, left, band.shift, block);
    --band.ended;
  }
  mask = m;
}

[[gnu::always_inline]] inline int ac_refine(Bits& bits, Band& scan, const BandRow& row, int first, int last,
                                            bool& overrun) {
  Band band = scan;
  const int reached = each_unit(bits, first, last, overrun, [&](Cursor& c, int unit) __attribute__((always_inline)) {
    if (int16_t* block = row.block(unit)) refine_block<true>(c, band, block, row.masks[unit]);
    else refine_block<false>(c, band, nullptr, row.masks[unit]);
    return unit + 1;
  });
  scan.ended = band.ended;
  return reached;
}

int ac_first_plain(Bits& bits, Band& band, const BandRow& row, int first, int last, bool& overrun) {
  return ac_first(bits, band, row, first, last, overrun);
}
int ac_refine_plain(Bits& bits, Band& band, const BandRow& row, int first, int last, bool& overrun) {
  return ac_refine(bits, band, row, first, last, overrun);
}
constexpr ProgressiveCoders kPlain = {dc_first, dc_refine, ac_first_plain, ac_refine_plain};

#if defined(__x86_64__)
// The same code; BMI's shifts and bit counts are single instructions.
#define STOKER_BMI __attribute__((target("bmi,bmi2,popcnt,lzcnt")))
STOKER_BMI int ac_first_bmi(Bits& bits, Band& band, const BandRow& row, int first, int last, bool& overrun) {
  return ac_first(bits, band, row, first, last, overrun);
}
STOKER_BMI int ac_refine_bmi(Bits& bits, Band& band, const BandRow& row, int first, int last, bool& overrun) {
  return ac_refine(bits, band, row, first, last, overrun);
}
constexpr ProgressiveCoders kBmi = {dc_first, dc_refine, ac_first_bmi, ac_refine_bmi};
#endif

}  // namespace

bool build_band(const uint8_t* dht, bool refinement, BandTable& table) {
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
  static const bool bmi = __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                          __builtin_cpu_supports("popcnt");
  if (isa() != Isa::Plain && bmi) return kBmi;
#endif
  return kPlain;
}

}  // namespace stoker::jpeg
