// SPDX-License-Identifier: Apache-2.0
// Huffman decoding by many threads. One CTA per row cuts its data into subsequences; each is decoded from a guessed
// state, then again from where the one before it really ended, until nothing changes. Codes synchronise by themselves
// after some hundred bits, so few rounds are needed; and the first k subsequences are right after round k whatever the
// data are, so what comes out is exact. Then block counts give every subsequence its place, and coefficients are written.
#pragma once
#include "block_scan.cuh"
#include "jpeg_index.cuh"

namespace stoker::jpeg::gpu {

using namespace stoker::gpu;

constexpr uint32_t kLookupBits = 10;
constexpr uint32_t kLookupSize = 1u << kLookupBits;
constexpr uint32_t kTables = 2 * kMaxPlanes;  // DC and AC of each pair
// A file made so that it never synchronises costs a round per subsequence, one thread at work. All rounds together may
// go over so many bits, about a second; a file of any size has some rounds.
constexpr uint32_t kRoundBits = 1u << 24, kLeastRounds = 4;

// Canonical code, for what the lookup leaves over.
struct HuffmanCode {
  uint32_t limit[17];  // limit[l]: first 16-bit prefix that is no code of l or fewer bits
  int32_t offset[17];
  uint8_t symbol[256];
};

// A symbol as the lookup gives it: length of code and value, 0 if the code is longer than the lookup; zig-zag positions
// that it advances by; length of the code. Then length and positions of this symbol and the next one together, if that is
// of the same table and its code within the lookup, or of this one: values are not wanted where so many are taken.
using Entry = uint32_t;
STOKER_DEVICE uint32_t whole_length(Entry e) { return e & 31; }
STOKER_DEVICE uint32_t advance(Entry e) { return e >> 5 & 127; }
STOKER_DEVICE uint32_t code_length(Entry e) { return e >> 12 & 31; }
STOKER_DEVICE uint32_t value_length(Entry e) { return whole_length(e) - code_length(e); }
STOKER_DEVICE uint32_t stride_length(Entry e) { return e >> 17 & 31; }
STOKER_DEVICE uint32_t stride_advance(Entry e) { return e >> 22; }

STOKER_DEVICE Entry entry_of(uint32_t symbol, uint32_t length, bool dc) {
  const uint32_t size = symbol & 15;
  const uint32_t step = dc ? 1 : size ? (symbol >> 4) + 1 : symbol == 0xF0 ? 16 : 64;
  return (length + size) * (1 | 1 << 17) | step * (1 << 5 | 1 << 22) | length << 12;
}
STOKER_DEVICE Entry with_next(Entry e, Entry next) {
  return e + (whole_length(next) << 17) + (advance(next) << 22);
}

struct EntropyShared {
  Entry lookup[kTables * kLookupSize];
  HuffmanCode code[kTables];
  uint32_t sums[kMaxWarps];
  uint32_t dirty;
  uint32_t failed;
};

// ---- tables ----

STOKER_DEVICE bool is_dc(uint32_t table) { return table % 2 == 0; }

STOKER_DEVICE uint32_t table_offset(const Row& row, uint32_t table) {
  return is_dc(table) ? row.dc[table / 2] : row.ac[table / 2];
}

STOKER_DEVICE uint8_t file_byte(const Row& row, uint32_t at) {
  return at < row.file_bytes ? pointer<const uint8_t>(row.file)[at] : 0;
}

STOKER_DEVICE void read_code(const Row& row, uint32_t at, HuffmanCode& code) {
  uint32_t next = 0, index = 0;
  code.limit[0] = 0;
  code.offset[0] = 0;
  for (uint32_t length = 1; length <= 16; ++length) {
    const uint32_t count = file_byte(row, at + length - 1);
    code.offset[length] = static_cast<int32_t>(index) - static_cast<int32_t>(next);
    next += count;
    index += count;
    code.limit[length] = next << (16 - length);
    next <<= 1;
  }
}

STOKER_DEVICE Entry short_entry(const HuffmanCode& code, uint32_t index, bool dc) {
  const uint32_t prefix = index << (16 - kLookupBits);
  for (uint32_t length = 1; length <= kLookupBits; ++length)
    if (prefix < code.limit[length])
      return entry_of(code.symbol[((prefix >> (16 - length)) + static_cast<uint32_t>(code.offset[length])) & 255],
                      length, dc);
  return 0;
}

// The same with the symbol behind it.
STOKER_DEVICE Entry two_symbols(const HuffmanCode& code, uint32_t index, bool dc) {
  const Entry first = short_entry(code, index, dc);
  const uint32_t bits = whole_length(first);
  if (dc || first == 0 || advance(first) >= 64 || bits >= kLookupBits) return first;  // behind a block is another table's
  const Entry second = short_entry(code, index << bits & (kLookupSize - 1), dc);
  return second != 0 && bits + code_length(second) <= kLookupBits ? with_next(first, second) : first;
}

// Invalid codes take 17 bits and mean symbol 0, as in libjpeg.
STOKER_DEVICE Entry long_entry(const HuffmanCode& code, uint32_t top, bool dc) {
  const uint32_t prefix = top >> 16;
  for (uint32_t length = kLookupBits + 1; length <= 16; ++length)
    if (prefix < code.limit[length])
      return entry_of(code.symbol[((prefix >> (16 - length)) + static_cast<uint32_t>(code.offset[length])) & 255],
                      length, dc);
  return entry_of(0, 17, dc);
}

STOKER_DEVICE void build_tables(const Row& row, EntropyShared& shared) {
  const uint32_t thread = thread_index(), threads = thread_count();
  for (uint32_t i = thread; i < kTables * 256; i += threads) {
    const uint32_t at = table_offset(row, i / 256);
    if (at) shared.code[i / 256].symbol[i % 256] = file_byte(row, at + 16 + i % 256);
  }
  if (thread < kTables && table_offset(row, thread)) read_code(row, table_offset(row, thread), shared.code[thread]);
  block_barrier();
  for (uint32_t i = thread; i < kTables * kLookupSize; i += threads) {
    const uint32_t table = i / kLookupSize;
    if (table_offset(row, table))
      shared.lookup[i] = two_symbols(shared.code[table], i % kLookupSize, is_dc(table));
  }
}

// ---- subsequences ----

// The bit reader. Words are fetched one ahead of need.
struct Reader {
  const uint32_t* words;
  uint32_t at;  // in bits
  uint32_t first, second, third;

  STOKER_DEVICE Reader(const uint32_t* from, uint32_t bit) : words(from), at(bit) {
    first = words[at / 32];
    second = words[at / 32 + 1];
    third = words[at / 32 + 2];
  }
  STOKER_DEVICE uint32_t top() const { return funnel_left(first, second, at); }
  STOKER_DEVICE void take(uint32_t bits) {  // fewer than 32
    const uint32_t before = at;
    at += bits;
    const bool next_word = (at ^ before) >= 32;
    first = next_word ? second : first;
    second = next_word ? third : second;
    load_if(next_word, words + at / 32 + 2, third);
  }
};

// Where decoding stands: bits past a subsequence's end (or start), block of the MCU, zig-zag position in it.
STOKER_DEVICE uint16_t pack(uint32_t bits, uint32_t block, uint32_t position) {
  return static_cast<uint16_t>(bits | block << 5 | position << 9);
}
STOKER_DEVICE uint32_t state_bits(uint16_t s) { return s & 31; }
STOKER_DEVICE uint32_t state_block(uint16_t s) { return s >> 5 & 15; }
STOKER_DEVICE uint32_t state_position(uint16_t s) { return s >> 9; }

// Which pair of tables the current block of the MCU has, the next ones behind it. Kept where it selects a lookup.
class Pairs {
 public:
  STOKER_DEVICE Pairs(uint32_t of_blocks, uint32_t period, uint32_t block) : top_(2 * period - 2) {
    bits_ = (of_blocks & ((1u << 2 * period) - 1)) << kShift;
    for (uint32_t i = 0; i < block; ++i) next();
  }
  STOKER_DEVICE uint32_t lookup() const { return bits_ & 3 << kShift; }
  STOKER_DEVICE void next() { bits_ = (bits_ >> 2 & ~((1u << kShift) - 1)) | (bits_ & 3 << kShift) << top_; }

 private:
  static constexpr uint32_t kShift = kLookupBits + 1;
  uint32_t bits_, top_;
};

// The next symbol, of a table that begins at `table` in the lookups.
STOKER_DEVICE Entry next_symbol(const EntropyShared& shared, uint32_t table, uint32_t top) {
  const Entry e = shared.lookup[table | top >> (32 - kLookupBits)];
  if (e != 0) return e;
  return long_entry(shared.code[table / kLookupSize], top, is_dc(table / kLookupSize));
}

struct Subsequence {
  uint32_t begin, end;  // bits
  uint32_t limit;       // of its segment
  uint32_t segment;
  bool head;            // its segment's first
};

// A row's data as subsequences.
struct Sequence {
  const Place& place;
  const uint32_t* start;
  const uint32_t* first;
  uint32_t bits;   // per subsequence, a multiple of 32
  uint32_t count;

  STOKER_DEVICE Subsequence at(uint32_t i) const {
    uint32_t segment = 0;
    for (uint32_t after = place.segments; after - segment > 1;) {  // the last whose first is not beyond i
      const uint32_t middle = (segment + after) / 2;
      if (first[middle] <= i) segment = middle;
      else after = middle;
    }
    const uint32_t inside = i - first[segment], limit = 8 * start[segment + 1];
    const uint32_t begin = 8 * start[segment] + inside * bits;
    return {begin, limit - begin < bits ? limit : begin + bits, limit, segment, inside == 0};
  }
};

// Decodes without keeping anything: what matters is the state at the end and how many blocks were completed.
struct Follower {
  const EntropyShared& shared;
  const Row& row;
  const Subsequence s;
  Reader reader;
  Pairs pairs;
  uint32_t first_block, position, blocks;

  STOKER_DEVICE Follower(const EntropyShared& shared, const Row& row, const uint32_t* words, const Subsequence& s,
                         uint16_t state)
      : shared(shared), row(row), s(s), reader(words, s.begin + state_bits(state)),
        pairs(row.pairs, row.period, state_block(state)), first_block(state_block(state)),
        position(state_position(state)), blocks(0) {}

  STOKER_DEVICE void run(uint32_t end) {
    while (reader.at < end) {
      const Entry e = next_symbol(shared, pairs.lookup() | (position ? kLookupSize : 0), reader.top());
      // The second symbol is another block's if the first ends one, and not decoded here if it begins at the end.
      const uint32_t after = position + advance(e);
      const bool both = after < 64 && reader.at + whole_length(e) < end;
      reader.take(both ? stride_length(e) : whole_length(e));
      position = both ? position + stride_advance(e) : after;
      if (position < 64) continue;
      position = 0;
      ++blocks;
      pairs.next();
    }
  }
  STOKER_DEVICE uint16_t state(uint32_t end) const {
    return pack(reader.at - end, (first_block + blocks) % row.period, position);
  }
  // Of a subsequence that has been run to its end. A block is complete if its last bit is data.
  STOKER_DEVICE uint32_t completed() const {
    return blocks - (blocks && position == 0 && reader.at > s.limit ? 1 : 0);
  }
};

// Decodes subsequence i from `entry[i]`. Unless it is the first time, stops where it meets what it did before.
STOKER_DEVICE void follow(const EntropyShared& shared, const Row& row, const uint32_t* words, const Subsequence& s,
                          const SubsequenceState& states, uint32_t count, uint32_t i, bool again) {
  Follower follower(shared, row, words, s, states.entry[i]);
  for (uint32_t k = 0; k < kMarks && s.begin + mark_distance(k) < s.end; ++k) {
    const uint32_t end = s.begin + mark_distance(k);
    follower.run(end);
    uint32_t& mark = states.marks[k * count + i];
    const uint32_t here = follower.state(end), before = mark;
    mark = here | follower.blocks << 16;
    if (!again || (before & 0xFFFF) != here) continue;
    const uint32_t more = follower.blocks - (before >> 16);  // modulo 2^16 where it matters
    for (uint32_t j = k + 1; j < kMarks && s.begin + mark_distance(j) < s.end; ++j) states.marks[j * count + i] += more << 16;
    states.blocks[i] += more;
    return;
  }
  follower.run(s.end);
  states.exit[i] = follower.state(s.end);
  states.blocks[i] = follower.completed();
}

// `value_bits` on top of `top` in JPEG's sign convention.
STOKER_DEVICE int32_t value_at_top(uint32_t top, uint32_t value_bits) {
  const uint32_t bits = top >> 1 >> (31 - value_bits);
  return static_cast<int32_t>(bits) - static_cast<int32_t>(top >> 31 ? 0 : (1u << value_bits) - 1);
}

// Coefficients on their way to memory. Threads of a warp write to as many lines as there are threads, whatever the size
// of a store: so four neighbours in zig-zag order go together. A part of the first and of the last four may be another
// subsequence's; into these, which were cleared, each puts its bits.
class Packer {
 public:
  STOKER_DEVICE explicit Packer(uint64_t memory) : to_(pointer<uint64_t>(memory)) {}

  // Zig-zag position `at` of block `home`; kNoHome: the value is left out.
  STOKER_DEVICE void put(uint32_t home, uint32_t at, int32_t value) {
    const uint32_t four = home * 16 + at / 4;
    const bool next = four != four_;
    if (next && bits_) {
      if (alone_) to_[four_] = bits_;
      else merge();
      alone_ = true;
    }
    bits_ = next ? 0 : bits_;
    four_ = four;
    bits_ |= static_cast<uint64_t>(home == kNoHome ? 0 : value & 0xFFFF) << (16 * (at % 4));
  }
  STOKER_DEVICE void finish() const {
    if (bits_) merge();
  }

 private:
  STOKER_DEVICE void merge() const {
    uint32_t* const words = reinterpret_cast<uint32_t*>(to_ + four_);
    atomic_or(words, static_cast<uint32_t>(bits_));
    atomic_or(words + 1, static_cast<uint32_t>(bits_ >> 32));
  }
  uint64_t* const to_;
  uint64_t bits_ = 0;
  uint32_t four_ = 0;
  bool alone_ = false;
};

// Where writing ended: at the subsequence's end, in which state and with how many blocks before; or earlier.
struct End {
  bool reached;
  uint16_t state;
  uint32_t blocks;
};

// Decodes again and writes: coefficients, and differences of DC. Starts in block `index` of the scan.
STOKER_DEVICE End write(const EntropyShared& shared, const Row& row, const Place& place, const Subsequence& s,
                         uint16_t state, uint32_t index, uint32_t end) {
  const uint32_t* const homes = pointer<const uint32_t>(place.homes);
  int16_t* const differences = pointer<int16_t>(place.dc);
  Packer packer(place.coefficients);
  Reader reader(pointer<const uint32_t>(place.words), s.begin + state_bits(state));
  Pairs pairs(row.pairs, row.period, state_block(state));
  const uint32_t first_index = index;
  uint32_t position = state_position(state), home = homes[index], next_home = homes[index + 1];
  // Hardly a branch: in most steps some thread of a warp is at any of the cases.
  while (reader.at < s.end && index < end) {
    const bool first = position == 0;
    const uint32_t top = reader.top();
    const Entry e = next_symbol(shared, pairs.lookup() | (first ? 0 : kLookupSize), top);
    const int32_t value = value_at_top(top << code_length(e), value_length(e));
    reader.take(whole_length(e));
    position += advance(e);
    const bool complete = position >= 64;
    if (first) differences[index] = static_cast<int16_t>(value);
    packer.put(home, complete ? 63 : position - 1, first ? 0 : value);
    position = complete ? 0 : position;
    index += complete;
    home = complete ? next_home : home;
    load_if(complete, homes + index + 1, next_home);
    if (complete) pairs.next();
  }
  packer.finish();
  const bool reached = reader.at >= s.end;
  const uint32_t block = (state_block(state) + index - first_index) % row.period;
  return {reached, reached ? pack(reader.at - s.end, block, position) : uint16_t{0}, index};
}

// ---- the phases ----

// Where each block's coefficients go.
STOKER_DEVICE void find_homes(const Row& row, const Place& place) {
  uint32_t* const homes = pointer<uint32_t>(place.homes);
  const uint32_t count = row.needed_rows * row.mcu_columns * row.blocks;
  for (uint32_t i = thread_index(); i < count; i += thread_count()) {
    const uint32_t mcu = i / row.blocks, block = i % row.blocks, c = row.component[block];
    const Plane& plane = row.plane[c];
    const uint32_t inside = block - plane.first_block;
    const uint32_t x = mcu % row.mcu_columns * plane.h + inside % plane.h - plane.first_column;
    const uint32_t y = mcu / row.mcu_columns * plane.v + inside / plane.h - plane.first_row;
    homes[i] = x < plane.columns && y < plane.rows ? place.first_home[c] + y * plane.columns + x : kNoHome;
  }
  if (thread_index() < 2) homes[count + thread_index()] = kNoHome;  // looked up ahead
}

// Cuts the data. Returns the number of subsequences.
STOKER_DEVICE uint32_t cut(const Place& place, uint32_t bits, uint32_t* sums) {
  const uint32_t* const start = pointer<const uint32_t>(place.segment_start);
  uint32_t* const first = pointer<uint32_t>(place.segment_first);
  uint32_t done = 0;
  for (uint32_t base = 0; base < place.segments; base += thread_count()) {
    const uint32_t i = base + thread_index();
    const uint32_t size = i < place.segments ? 8 * (start[i + 1] - start[i]) : 0;
    const uint32_t own = i >= place.segments ? 0 : size ? (size + bits - 1) / bits : 1;
    uint32_t total = 0;
    const uint32_t sum = inclusive_sum(own, sums, total);
    if (i < place.segments) first[i] = done + sum - own;
    done += total;
  }
  if (thread_index() == 0) first[place.segments] = done;
  block_barrier();
  return done;
}

// Decodes subsequences again whose entry was not what the one before it left, until there is none.
STOKER_DEVICE bool synchronise(EntropyShared& shared, const Row& row, const Sequence& sequence,
                               const SubsequenceState& states, uint32_t max_rounds) {
  const uint32_t* const words = pointer<const uint32_t>(sequence.place.words);
  for (uint32_t round = 0; round <= max_rounds; ++round) {
    if (thread_index() == 0) shared.dirty = 0;
    block_barrier();
    for (uint32_t i = thread_index(); i < sequence.count; i += thread_count()) {
      if (sequence.at(i).head || states.exit[i - 1] == states.entry[i]) continue;
      states.entry[i] = states.exit[i - 1];
      states.list[atomic_add(&shared.dirty, 1)] = i;
    }
    block_barrier();
    const uint32_t dirty = shared.dirty;
    if (dirty == 0) return true;
    if (round == max_rounds) break;
    for (uint32_t k = thread_index(); k < dirty; k += thread_count()) {
      const uint32_t i = states.list[k];
      follow(shared, row, words, sequence.at(i), states, sequence.place.states, i, true);
    }
    block_barrier();
  }
  return false;
}

// Running sums of the block counts; then whether each segment has the blocks that it should.
STOKER_DEVICE bool count_blocks(EntropyShared& shared, const Row& row, const Sequence& sequence,
                                const SubsequenceState& states, uint32_t needed_mcus) {
  if (thread_index() == 0) shared.failed = 0;
  uint32_t done = 0;
  for (uint32_t base = 0; base < sequence.count; base += thread_count()) {
    const uint32_t i = base + thread_index();
    uint32_t total = 0;
    const uint32_t sum = inclusive_sum(i < sequence.count ? states.blocks[i] : 0, shared.sums, total);
    if (i < sequence.count) states.blocks[i] = done + sum;
    done += total;
  }
  block_barrier();
  const uint32_t interval = sequence.place.segments > 1 ? row.restart_interval : needed_mcus;
  for (uint32_t k = thread_index(); k < sequence.place.segments; k += thread_count()) {
    if (k * interval >= needed_mcus) break;
    const uint32_t left = needed_mcus - k * interval;
    const uint32_t head = sequence.first[k], behind = sequence.first[k + 1];
    const uint32_t blocks = states.blocks[behind - 1] - (head ? states.blocks[head - 1] : 0);
    if (blocks < (left < interval ? left : interval) * row.blocks) atomic_or(&shared.failed, 1);
  }
  block_barrier();
  return shared.failed == 0;
}

STOKER_DEVICE void write_all(const EntropyShared& shared, const Row& row, const Sequence& sequence,
                             const SubsequenceState& states, uint32_t needed_mcus) {
  const uint32_t interval = sequence.place.segments > 1 ? row.restart_interval : needed_mcus;
  for (uint32_t i = thread_index(); i < sequence.count; i += thread_count()) {
    const Subsequence s = sequence.at(i);
    const uint32_t from = s.segment * interval;
    if (from >= needed_mcus) break;
    const uint32_t head = sequence.first[s.segment];
    const uint32_t before = (i ? states.blocks[i - 1] : 0) - (head ? states.blocks[head - 1] : 0);
    const uint32_t to = needed_mcus - from < interval ? needed_mcus : from + interval;
    const uint32_t index = from * row.blocks + before;
    if (index < to * row.blocks)
      write(shared, row, sequence.place, s, states.entry[i], index, to * row.blocks);
  }
}

// Differences of DC to their running sums, modulo 2^16, of MCUs from `from` on, before which they are `sums`, or 0.
// Segments are told apart by who reads them.
STOKER_DEVICE void sum_differences(EntropyShared& shared, const Row& row, int16_t* dc, uint32_t from, uint32_t mcus,
                                   const int16_t* sums) {
  for (uint32_t c = 0; c < row.components; ++c) {
    const uint32_t first = row.plane[c].first_block, blocks = row.plane[c].h * row.plane[c].v;
    uint32_t done = sums ? static_cast<uint32_t>(sums[c]) : 0;
    for (uint32_t base = from; base < mcus; base += thread_count()) {
      const uint32_t m = base + thread_index();
      int16_t* const own = dc + m * row.blocks + first;
      uint32_t sum = 0, total = 0;
      for (uint32_t b = 0; b < blocks && m < mcus; ++b) sum += static_cast<uint32_t>(own[b]);
      sum = done + inclusive_sum(sum, shared.sums, total) - sum;
      for (uint32_t b = 0; b < blocks && m < mcus; ++b) {
        sum += static_cast<uint32_t>(own[b]);
        own[b] = static_cast<int16_t>(sum);
      }
      done += total;
    }
  }
}

// ---- the index ----

STOKER_DEVICE uint32_t smaller(uint32_t a, uint32_t b) { return a < b ? a : b; }

// How each subsequence begins, after all blocks were decoded and the running sums of their DC differences are known.
STOKER_DEVICE void note_beginnings(const Row& row, const Place& place, const Sequence& sequence,
                                   const SubsequenceState& states, IndexEntry& entry) {
  const int16_t* const dc = pointer<const int16_t>(place.dc);
  const uint32_t mcus = row.mcu_rows * row.mcu_columns, interval = place.segments > 1 ? row.restart_interval : mcus;
  for (uint32_t i = thread_index(); i < sequence.count; i += thread_count()) {
    const uint32_t segment = sequence.at(i).segment, head = sequence.first[segment], from = segment * interval;
    const uint32_t before = (i ? states.blocks[i - 1] : 0) - (head ? states.blocks[head - 1] : 0);
    Beginning& at = entry.at[i];
    at = {smaller(from * row.blocks + before, smaller(mcus, from + interval) * row.blocks), {}, states.entry[i]};
    uint32_t missing = (1u << row.components) - 1;
    for (uint32_t b = smaller(at.blocks + (state_position(at.state) ? 1 : 0), mcus * row.blocks); b-- > 0 && missing;) {
      const uint32_t c = row.component[b % row.blocks];
      if (missing >> c & 1) at.dc[c] = dc[b];
      missing &= ~(1u << c);
    }
  }
}

STOKER_DEVICE uint32_t chunk_words(uint32_t bits) { return kChunkSubsequences * (bits / 32); }

// The checksums of a file's chunks. Several threads share one.
STOKER_DEVICE void note_checksums(const Row& row, const Place& place, const Outline& outline, uint32_t bytes,
                                  IndexEntry& entry) {
  const uint32_t* const words = pointer<const uint32_t>(place.words);
  for (uint32_t c = thread_index(); c < kIndexChunks; c += thread_count()) entry.chunk[c] = {};
  block_barrier();
  const uint32_t together = thread_count() > kIndexChunks ? thread_count() / kIndexChunks : 1;
  const uint32_t each = chunk_words(outline.bits), all = (bytes + 3) / 4;
  for (uint32_t c = thread_index() / together; c < outline.chunks; c += thread_count() / together) {
    Checksum sum = {};
    const uint32_t end = smaller((c + 1) * each, all);
    for (uint32_t w = c * each + thread_index() % together; w < end; w += together) add_to(sum, words[w], w, row.seed);
    atomic_add(&entry.chunk[c].low, sum.low);
    atomic_add(&entry.chunk[c].high, sum.high);
  }
}

// Where in the file's own bytes, with stuffed zeros, its chunks begin. Each thread counts in a part of them.
STOKER_DEVICE void note_offsets(EntropyShared& shared, const Row& row, uint32_t bytes, Outline& outline) {
  const uint8_t* const data = pointer<const uint8_t>(row.file) + row.scan;
  const uint32_t size = row.file_bytes - row.scan, each = 4 * chunk_words(outline.bits);
  const uint32_t part = size / thread_count() + 1;
  const uint32_t begin = smaller(thread_index() * part, size), end = smaller(begin + part, size);
  const auto stuffed = [&](uint32_t at) { return at > 0 && data[at] == 0 && data[at - 1] == 255; };
  uint32_t dropped = 0, total = 0;
  for (uint32_t at = begin; at < end; ++at) dropped += stuffed(at);
  uint32_t kept = begin - (inclusive_sum(dropped, shared.sums, total) - dropped);
  uint32_t next = (kept + each - 1) / each;
  for (uint32_t at = begin; at < end && kept < bytes && next < outline.chunks; ++at) {
    if (stuffed(at)) continue;
    if (kept++ == next * each) outline.chunk[next++].offset = at;
  }
}

// Keeps what has been found, and tells the host what it needs to read the file in parts.
STOKER_DEVICE void note(EntropyShared& shared, const Row& row, const Place& place, const Sequence& sequence,
                        const SubsequenceState& states, Outline& outline) {
  if (sequence.count > kIndexSubsequences) return;  // it was asked for less than that; the host drops the entry
  IndexEntry& entry = *pointer<IndexEntry>(row.index);
  const uint32_t bytes = pointer<const uint32_t>(place.segment_start)[place.segments];
  block_barrier();
  note_beginnings(row, place, sequence, states, entry);
  if (thread_index() == 0) {
    entry.checksum = *pointer<const Checksum>(place.checksum);
    entry.bytes = bytes;
    entry.bits = outline.bits = sequence.bits;
    entry.count = sequence.count;
    outline.chunks = place.segments > 1 ? 0 : (sequence.count + kChunkSubsequences - 1) / kChunkSubsequences;
  }
  block_barrier();
  for (uint32_t c = thread_index(); c < outline.chunks; c += thread_count())
    outline.chunk[c].blocks = entry.at[c * kChunkSubsequences].blocks;
  if (outline.chunks == 0) return;
  note_checksums(row, place, outline, bytes, entry);
  note_offsets(shared, row, bytes, outline);
}

// Whether the data, or the part of them that is there, are those that the entry was made of.
STOKER_DEVICE bool is_of(const IndexEntry& entry, const Row& row, const Place& place) {
  if (entry.bits < 32 || entry.bits % 32 || entry.count > kIndexSubsequences) return false;
  uint32_t bytes = entry.bytes;
  Checksum expected = entry.checksum;
  if (row.part_end) {
    const uint32_t begin = 4 * row.part_word, end = 4 * row.part_end * chunk_words(entry.bits);
    if (row.part_word != row.part_begin * chunk_words(entry.bits) || bytes < begin) return false;
    bytes = smaller(bytes, end) - begin;
    expected = {};
    for (uint32_t c = row.part_begin; c < row.part_end && c < kIndexChunks; ++c) {
      expected.low += entry.chunk[c].low;
      expected.high += entry.chunk[c].high;
    }
  }
  const Checksum& checksum = *pointer<const Checksum>(place.checksum);
  return expected.low == checksum.low && expected.high == checksum.high &&
         bytes == pointer<const uint32_t>(place.segment_start)[place.segments];
}

// Of the subsequences from `first` to `behind`, the last that begins before, or exactly with, a block of the scan.
STOKER_DEVICE uint32_t subsequence_before(const IndexEntry& entry, uint32_t first, uint32_t behind, uint32_t block) {
  uint32_t found = first;
  for (uint32_t after = behind; after - found > 1;) {
    const uint32_t middle = (found + after) / 2;
    const Beginning& at = entry.at[middle];
    if (at.blocks < block || (at.blocks == block && state_position(at.state) == 0)) found = middle;
    else after = middle;
  }
  return found;
}

// The first block of the scan that the window needs; of a file in segments, the last MCU before its segment is needed
// too, since running sums count from there.
STOKER_DEVICE uint32_t first_needed(const Row& row, const Place& place) {
  const uint32_t mcu = row.first_row * row.mcu_columns;
  if (place.segments == 1) return mcu * row.blocks;
  const uint32_t segment = mcu / row.restart_interval;
  return segment ? (segment * row.restart_interval - 1) * row.blocks : 0;
}

// Behind which block of the scan writing a subsequence ends: the last of its segment that is needed.
STOKER_DEVICE uint32_t last_of(const Row& row, const Place& place, const Sequence& sequence, uint32_t local) {
  const uint32_t mcus = row.needed_rows * row.mcu_columns;
  if (place.segments == 1) return mcus * row.blocks;
  return smaller(mcus, (sequence.at(local).segment + 1) * row.restart_interval) * row.blocks;
}

// Whether a subsequence that was written from its beginning ended as the entry says.
STOKER_DEVICE bool ended_well(const Row& row, const Place& place, const Sequence& sequence, const End& reached,
                              uint32_t i) {
  const uint32_t local = i - row.part_begin * kChunkSubsequences;
  if (reached.blocks >= last_of(row, place, sequence, local)) return true;  // what is behind is nobody's, or padding
  // The last of its segment, or of what is there: blocks are missing.
  if (local + 1 == sequence.first[sequence.at(local).segment + 1] || !reached.reached) return false;
  const Beginning& next = pointer<const IndexEntry>(row.index)->at[i + 1];
  return reached.state == next.state && reached.blocks == next.blocks;
}

// Decodes what the window needs of a file whose entry is right; sees to it that it is.
STOKER_DEVICE void decode_known(EntropyShared& shared, const Row& row, const Place& place, uint32_t* status) {
  const IndexEntry& entry = *pointer<const IndexEntry>(row.index);
  const Sequence sequence = {place, pointer<const uint32_t>(place.segment_start),
                             pointer<const uint32_t>(place.segment_first), entry.bits,
                             cut(place, entry.bits, shared.sums)};
  const uint32_t skipped = row.part_begin * kChunkSubsequences;  // subsequences that were not read
  const uint32_t behind = skipped + sequence.count;
  const uint32_t mcus = row.needed_rows * row.mcu_columns, end = mcus * row.blocks, needed = first_needed(row, place);
  if (behind > entry.count) {
    if (thread_index() == 0) atomic_or(status, kStrayed);
    return;
  }
  const uint32_t begin = subsequence_before(entry, skipped, behind, needed);
  const Beginning& first = entry.at[begin];
  const uint32_t first_mcu = first.blocks / row.blocks;
  int16_t* const dc = pointer<int16_t>(place.dc);
  if (thread_index() == 0) {
    // Nothing left for the window, or not from where it begins.
    const bool late = first.blocks > needed || (first.blocks == needed && state_position(first.state));
    shared.failed = late || first.blocks >= end ? 1 : 0;
    for (uint32_t b = first_mcu * row.blocks; b <= first.blocks && b < end; ++b) dc[b] = 0;
  }
  block_barrier();
  for (uint32_t i = begin + thread_index(); i < behind; i += thread_count()) {
    const Beginning at = entry.at[i];
    if (at.blocks >= end) break;
    const End reached = write(shared, row, place, sequence.at(i - skipped), at.state, at.blocks,
                              last_of(row, place, sequence, i - skipped));
    if (!ended_well(row, place, sequence, reached, i)) atomic_or(&shared.failed, 1);
  }
  block_barrier();
  if (shared.failed) {
    if (thread_index() == 0) atomic_or(status, kStrayed);
    return;
  }
  sum_differences(shared, row, dc, first_mcu, mcus, first.dc);
}

// Decodes a file that was never decoded before.
STOKER_DEVICE void decode_unknown(EntropyShared& shared, const Row& row, const Place& place, uint32_t* status,
                                  Outline& outline, uint32_t min_bits, uint32_t max_rounds) {
  const uint32_t* const words = pointer<const uint32_t>(place.words);
  const uint32_t* const start = pointer<const uint32_t>(place.segment_start);
  const uint32_t fair = (8 * start[place.segments] / thread_count() / 32 + 1) * 32;
  uint32_t bits = fair > min_bits ? fair : min_bits;
  if (row.index && !row.known && place.segments > 1) {  // each segment may need one more than its share
    const uint32_t room = kIndexSubsequences - smaller(place.segments, kIndexSegments);
    const uint32_t kept = (8 * start[place.segments] / room / 32 + 1) * 32;
    bits = bits > kept ? bits : kept;
  }
  const Sequence sequence = {place, start, pointer<const uint32_t>(place.segment_first), bits,
                             cut(place, bits, shared.sums)};
  const SubsequenceState states(place);
  for (uint32_t i = thread_index(); i < sequence.count; i += thread_count()) {
    states.entry[i] = 0;
    follow(shared, row, words, sequence.at(i), states, place.states, i, false);
  }
  block_barrier();
  const uint32_t affordable = kLeastRounds + kRoundBits / bits;
  const bool in_step = synchronise(shared, row, sequence, states, max_rounds < affordable ? max_rounds : affordable);
  const uint32_t needed_mcus = row.needed_rows * row.mcu_columns;
  const bool complete = in_step && count_blocks(shared, row, sequence, states, needed_mcus);
  if (!complete) {
    if (thread_index() == 0) atomic_or(status, in_step ? kTruncated : kSlow);
    return;
  }
  write_all(shared, row, sequence, states, needed_mcus);
  block_barrier();
  sum_differences(shared, row, pointer<int16_t>(place.dc), 0, needed_mcus, nullptr);
  if (row.index && !row.known) note(shared, row, place, sequence, states, outline);
}

STOKER_KERNEL STOKER_LAUNCH_BOUNDS(1024, 1)
    stoker_jpeg_entropy(uint64_t rows, uint64_t places, uint64_t statuses, uint64_t min_bits, uint64_t max_rounds) {
  STOKER_SHARED(EntropyShared, shared);
  const Place& place = pointer<const Place>(places)[block_index()];
  const Row& row = pointer<const Row>(rows)[place.row];
  uint32_t* const status = pointer<uint32_t>(statuses) + place.row;
  if (*status & kFailures) return;
  build_tables(row, shared);
  find_homes(row, place);
  block_barrier();
  if (row.index && row.known) {
    if (is_of(*pointer<const IndexEntry>(row.index), row, place)) return decode_known(shared, row, place, status);
    if (thread_index() == 0) atomic_or(status, row.part_end ? kStrayed : kNotRead);
    if (row.part_end) return;
  }
  Outline& outline = *pointer<Outline>(statuses + row.outline);
  decode_unknown(shared, row, place, status, outline, static_cast<uint32_t>(min_bits), static_cast<uint32_t>(max_rounds));
}

}  // namespace stoker::jpeg::gpu
