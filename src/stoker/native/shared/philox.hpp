// SPDX-License-Identifier: Apache-2.0
// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
//
// A draw is a pure function of (seed, epoch, row key, draw id, counter). It never depends on the thread, the batch or
// the order. The code is valid C++ and CUDA.
#pragma once
#include <cstdint>

namespace stoker::philox {

struct Block {
  uint32_t w[4];
};

inline Block generate(uint64_t key, uint64_t counter_low, uint64_t counter_high) {
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  uint32_t c0 = static_cast<uint32_t>(counter_low), c1 = static_cast<uint32_t>(counter_low >> 32);
  uint32_t c2 = static_cast<uint32_t>(counter_high), c3 = static_cast<uint32_t>(counter_high >> 32);
  for (int i = 0; i < 10; ++i) {
    const uint64_t p0 = uint64_t{0xD2511F53u} * c0, p1 = uint64_t{0xCD9E8D57u} * c2;
    const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0, n2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(p1);
    c3 = static_cast<uint32_t>(p0);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}

// Return the key of one epoch. Because each epoch has its own key, the whole counter is free for (row key, draw id,
// block).
inline uint64_t epoch_key(uint64_t seed, int64_t epoch) {
  const Block b = generate(seed, static_cast<uint64_t>(epoch), 0x73746F6B65720001ull);
  return b.w[0] | (uint64_t{b.w[1]} << 32);
}

// Return the permutation key of one part of a data set in one of the part's epochs; part -1 is the whole data set.
inline uint64_t part_key(uint64_t seed, int64_t part, int64_t epoch) {
  const Block b = generate(epoch_key(seed, epoch), static_cast<uint64_t>(part), 0x73746F6B65720003ull);
  return b.w[0] | (uint64_t{b.w[1]} << 32);
}

// Return 53 bits: the high 26 bits of one word and the high 27 bits of the next.
inline uint64_t bits53(uint32_t first, uint32_t second) { return uint64_t{first >> 6} << 27 | second >> 5; }

// Return a number in [0, 1) with these 53 bits.
inline double uniform(uint32_t first, uint32_t second) { return static_cast<double>(bits53(first, second)) * 0x1p-53; }

// Random stream of one draw of one row: 4-word blocks by number, words in order.
class Stream {
 public:
  Stream(uint64_t epoch_key, uint64_t row_key, uint32_t draw) : key_(epoch_key), row_(row_key), draw_(draw) {}
  uint32_t next() {
    if (at_ == 4) {
      block_ = generate(key_, (uint64_t{draw_} << 32) | number_++, row_);
      at_ = 0;
    }
    return block_.w[at_++];
  }
  double uniform() {
    const uint32_t first = next();
    return philox::uniform(first, next());
  }

 private:
  uint64_t key_, row_;
  uint32_t draw_, number_ = 0;
  int at_ = 4;
  Block block_{};
};

// Return where a keyed permutation of [0, size) maps `position`. It is a six-round Feistel network over the next even
// number of bits; values outside of the range follow the cycle until they are inside (Black and Rogaway, "Ciphers with
// arbitrary finite domains", CT-RSA 2002). It has random access and needs no memory.
inline uint64_t permute(uint64_t key, uint64_t size, uint64_t position) {
  if (size <= 1) return 0;
  int half = 1;
  while (half < 32 && (uint64_t{1} << (2 * half)) < size) ++half;
  const uint64_t mask = (uint64_t{1} << half) - 1;
  uint64_t x = position;
  do {
    uint64_t left = x >> half, right = x & mask;
    for (uint64_t i = 0; i < 6; ++i) {
      const uint64_t mixed = left ^ (generate(key, right, 0x73746F6B65720002ull + (i << 48)).w[0] & mask);
      left = right;
      right = mixed;
    }
    x = (left << half) | right;
  } while (x >= size);
  return x;
}

}  // namespace stoker::philox
