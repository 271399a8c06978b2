// SPDX-License-Identifier: Apache-2.0
// Decoding of one subsequence of a row's data by one thread: following it to find its final state, and writing its
// coefficients.
#pragma once
#include "device/jpeg_symbols.cuh"
#include "shared/jpeg_index.cuh"

namespace stoker::jpeg::gpu {

// Bit reader. It prefetches one word.
struct Reader {
  const uint32_t* words;
  uint32_t at;  // position in bits
  uint32_t first, second, third;

  STOKER_DEVICE Reader(const uint32_t* from, uint32_t bit) : words(from), at(bit) {
    first = words[at / 32];
    second = words[at / 32 + 1];
    third = words[at / 32 + 2];
  }
  STOKER_DEVICE uint32_t top() const { return funnel_left(first, second, at); }
  STOKER_DEVICE void take(uint32_t bits) {  // `bits` is below 32
    const uint32_t before = at;
    at += bits;
    const bool next_word = (at ^ before) >= 32;
    first = next_word ? second : first;
    second = next_word ? third : second;
    load_if(next_word, words + at / 32 + 2, third);
  }
};

// Pack the decoder state: bits past a subsequence's end (or start), block of the MCU, zig-zag position in the block.
STOKER_DEVICE uint16_t pack(uint32_t bits, uint32_t block, uint32_t position) {
  return static_cast<uint16_t>(bits | block << 5 | position << 9);
}
STOKER_DEVICE uint32_t state_bits(uint16_t s) { return s & 31; }
STOKER_DEVICE uint32_t state_block(uint16_t s) { return s >> 5 & 15; }
STOKER_DEVICE uint32_t state_position(uint16_t s) { return s >> 9; }

// Table pairs of the current block of the MCU and of the blocks that follow it, shifted so that the current pair
// selects a lookup directly.
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

struct Subsequence {
  uint32_t begin, end;  // positions in bits
  uint32_t limit;       // end of its segment
  uint32_t segment;
  bool head;  // it is the first of its segment

  // Return one of its `pieces`, which have `bits` bits together.
  STOKER_DEVICE Subsequence piece(uint32_t k, uint32_t pieces, uint32_t bits) const {
    if (pieces == 1) return *this;
    const uint32_t from = begin + k * (bits / pieces), to = from + bits / pieces;
    return {from, to < end ? to : end, limit, segment, head && k == 0};
  }
};

// A row's data as a sequence of subsequences.
struct Sequence {
  const RowBuffers& buffers;
  const uint32_t* start;
  const uint32_t* first;
  uint32_t bits;  // per subsequence, a multiple of 32
  uint32_t count;

  STOKER_DEVICE Subsequence at(uint32_t i) const {
    uint32_t segment = 0;
    // Find the last segment whose first subsequence is not beyond i.
    for (uint32_t after = buffers.segments; after - segment > 1;) {
      const uint32_t middle = (segment + after) / 2;
      if (first[middle] <= i) segment = middle;
      else after = middle;
    }
    const uint32_t inside = i - first[segment], limit = 8 * start[segment + 1];
    const uint32_t begin = 8 * start[segment] + inside * bits;
    return {begin, limit - begin < bits ? limit : begin + bits, limit, segment, inside == 0};
  }
};

// Decoder that keeps only the final state and the number of completed blocks.
struct Follower {
  const Tables& tables;
  const Row& row;
  const Subsequence s;
  Reader reader;
  Pairs pairs;
  uint32_t first_block, position, blocks;

  STOKER_DEVICE Follower(const Tables& tables, const Row& row, const uint32_t* words, const Subsequence& s,
                         uint16_t state)
      : tables(tables),
        row(row),
        s(s),
        reader(words, s.begin + state_bits(state)),
        pairs(row.pairs, row.period, state_block(state)),
        first_block(state_block(state)),
        position(state_position(state)),
        blocks(0) {}

  STOKER_DEVICE void run(uint32_t end) {
    while (reader.at < end) {
      const Entry e = next_symbol(tables, pairs.lookup() | (position ? kLookupSize : 0), reader.top());
      // If the first symbol ends a block, the second one belongs to another block, and must not be decoded here if it
      // begins at the end.
      const uint32_t after = position + advance(e);
      const bool both = after < 64 && reader.at + whole_length(e) < end;
      reader.take(both ? stride_length(e) : whole_length(e));
      position = both ? position + stride_advance(e) : after;
      // No branch: in nearly every step, a block ends in some thread of the warp.
      const bool complete = position >= 64;
      position = complete ? 0 : position;
      blocks += complete;
      if (complete) pairs.next();
    }
  }
  STOKER_DEVICE uint16_t state(uint32_t end) const {
    return pack(reader.at - end, (first_block + blocks) % row.period, position);
  }
  // Number of completed blocks, after the subsequence was followed to its end. A block is complete if its last bit is
  // data.
  STOKER_DEVICE uint32_t completed() const { return blocks - (blocks && position == 0 && reader.at > s.limit ? 1 : 0); }
};

// Decode subsequence i from `entry[i]`. After the first round, stop where the state equals that of the earlier round.
STOKER_DEVICE void follow(const Tables& tables, const Row& row, const uint32_t* words, const Subsequence& s,
                          const SubsequenceState& states, uint32_t count, uint32_t i, bool again) {
  Follower follower(tables, row, words, s, states.entry[i]);
  for (uint32_t k = 0; k < kMarks && s.begin + states.distance(k) < s.end; ++k) {
    const uint32_t end = s.begin + states.distance(k);
    follower.run(end);
    uint32_t& mark = states.marks[k * count + i];
    const uint32_t here = follower.state(end), before = mark;
    mark = here | follower.blocks << 16;
    if (!again || (before & 0xFFFF) != here) continue;
    const uint32_t more = follower.blocks - (before >> 16);  // modulo 2^16 where it matters
    for (uint32_t j = k + 1; j < kMarks && s.begin + states.distance(j) < s.end; ++j)
      states.marks[j * count + i] += more << 16;
    states.blocks[i] += more;
    return;
  }
  follower.run(s.end);
  states.exit[i] = follower.state(s.end);
  states.blocks[i] = follower.completed();
}

// Return the value of the `value_bits` bits at the top of `top` in JPEG's sign convention.
STOKER_DEVICE int32_t value_at_top(uint32_t top, uint32_t value_bits) {
  const uint32_t bits = top >> 1 >> (31 - value_bits);
  return static_cast<int32_t>(bits) - static_cast<int32_t>(top >> 31 ? 0 : (1u << value_bits) - 1);
}

// Write buffer for coefficients. Stores by the threads of a warp go to as many cache lines as there are threads,
// whatever their size, so four neighbours in zig-zag order are combined. The first and the last four coefficients may
// be shared with another subsequence; that memory was cleared before, and each thread sets its bits with an atomic.
class Packer {
 public:
  STOKER_DEVICE explicit Packer(uint64_t memory) : to_(pointer<uint64_t>(memory)) {}

  // Put the value at zig-zag position `at` of block `home`; with kNoHome it is dropped.
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

// Result of writing: the state and the number of blocks at the subsequence's end, or where writing stopped before.
struct End {
  bool reached;
  uint16_t state;
  uint32_t blocks;
};

// Decode again and write the coefficients and DC differences, beginning with block `index` of the scan.
STOKER_DEVICE End write(const Tables& tables, const Row& row, const RowBuffers& buffers, const Subsequence& s,
                        uint16_t state, uint32_t index, uint32_t end) {
  const uint32_t* const homes = pointer<const uint32_t>(buffers.homes);
  int16_t* const differences = pointer<int16_t>(buffers.dc);
  Packer packer(buffers.coefficients);
  Reader reader(pointer<const uint32_t>(buffers.words), s.begin + state_bits(state));
  Pairs pairs(row.pairs, row.period, state_block(state));
  const uint32_t first_index = index;
  uint32_t position = state_position(state), home = homes[index], next_home = homes[index + 1];
  // Few branches: in most steps the threads of a warp would take all of them.
  while (reader.at < s.end && index < end) {
    const bool first = position == 0;
    const uint32_t top = reader.top();
    const Entry e = next_symbol(tables, pairs.lookup() | (first ? 0 : kLookupSize), top);
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

}  // namespace stoker::jpeg::gpu
