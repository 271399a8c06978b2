// SPDX-License-Identifier: Apache-2.0
#include "container/blake2b.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace stoker {

namespace {

constexpr size_t kBlock = 128, kDigest = 16, kRounds = 12;

// The fractional parts of the square roots of the first eight primes.
constexpr std::array<uint64_t, 8> kStart{0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b,
                                         0xa54ff53a5f1d36f1, 0x510e527fade682d1, 0x9b05688c2b3e6c1f,
                                         0x1f83d9abfb41bd6b, 0x5be0cd19137e2179};

// Order of the words of a block in each of ten rounds; the next two rounds have the first two orders again.
constexpr uint8_t kOrders[10][16] = {
    {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}, {14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
    {11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4}, {7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
    {9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13}, {2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
    {12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11}, {13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
    {6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5}, {10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0}};

void mix(std::array<uint64_t, 16>& v, size_t a, size_t b, size_t c, size_t d, uint64_t x, uint64_t y) {
  v[a] += v[b] + x;
  v[d] = std::rotr(v[d] ^ v[a], 32);
  v[c] += v[d];
  v[b] = std::rotr(v[b] ^ v[c], 24);
  v[a] += v[b] + y;
  v[d] = std::rotr(v[d] ^ v[a], 16);
  v[c] += v[d];
  v[b] = std::rotr(v[b] ^ v[c], 63);
}

// Add a block to the state. `count` is the number of bytes up to its end; the last block has zeros after the data.
void add_block(std::array<uint64_t, 8>& state, const uint8_t* block, uint64_t count, bool is_last) {
  std::array<uint64_t, 16> words, v;
  std::memcpy(words.data(), block, kBlock);
  std::copy(state.begin(), state.end(), v.begin());
  std::copy(kStart.begin(), kStart.end(), v.begin() + 8);
  v[12] ^= count;
  if (is_last) v[14] = ~v[14];
  for (size_t round = 0; round < kRounds; ++round) {
    const uint8_t* const order = kOrders[round % 10];
    for (size_t i = 0; i < 4; ++i) mix(v, i, 4 + i, 8 + i, 12 + i, words[order[2 * i]], words[order[2 * i + 1]]);
    for (size_t i = 0; i < 4; ++i)
      mix(v, i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4, words[order[8 + 2 * i]], words[order[9 + 2 * i]]);
  }
  for (size_t i = 0; i < state.size(); ++i) state[i] ^= v[i] ^ v[i + 8];
}

}  // namespace

std::array<uint8_t, 16> blake2b_128(const uint8_t* data, size_t size) {
  std::array<uint64_t, 8> state = kStart;
  state[0] ^= 0x01010000u ^ kDigest;  // no key, no tree
  size_t at = 0;
  for (; size - at > kBlock; at += kBlock) add_block(state, data + at, at + kBlock, false);
  uint8_t last[kBlock] = {};
  if (size > at) std::memcpy(last, data + at, size - at);
  add_block(state, last, size, true);
  std::array<uint8_t, kDigest> digest;
  std::memcpy(digest.data(), state.data(), kDigest);
  return digest;
}

}  // namespace stoker
