// SPDX-License-Identifier: Apache-2.0
// Random bits of one element: Philox2x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3",
// SC 2011). The element's number and half of the stream's name are the counter, the other half is the key. The name of
// a row's stream comes from Philox4x32-10 of (seed, epoch, row key, draw id). Plain C++ that compiles for the CPU and for
// a GPU; the loop over vectors is in pixel/loops.ipp.
#pragma once
#include <cstdint>

namespace stoker::element_random {

constexpr uint32_t kMultiplier = 0xD256D193u, kKeyStep = 0x9E3779B9u;
constexpr int kRounds = 10;

struct Words {
  uint32_t first, second;
};

// Return the block of an element.
inline Words words(uint32_t element, uint32_t key, uint32_t stream) {
  uint32_t low = element, high = stream;
  for (int i = 0; i < kRounds; ++i) {
    const uint64_t product = uint64_t{kMultiplier} * low;
    low = static_cast<uint32_t>(product >> 32) ^ key ^ high;
    high = static_cast<uint32_t>(product);
    key += kKeyStep;
  }
  return {low, high};
}

inline uint32_t word(uint32_t element, uint32_t key, uint32_t stream) { return words(element, key, stream).first; }

}  // namespace stoker::element_random
