// SPDX-License-Identifier: Apache-2.0
// Tables of floats that a short chain of float operations gives, such as torch's ToTensor and Normalize: on processors
// without permutations of 32-bit words in a register, the operations on a whole vector of bytes are faster than lookups.
#pragma once
#include <cstdint>

namespace stoker::recipe {

// ((v * scale + v * rest) - shift) / divisor of a byte v. `v * scale + v * rest` is v, v / 255 or a product; the
// result of every operation is rounded. `reciprocal` is 1 / divisor, with which the division is computed.
struct Chain {
  float scale = 0, rest = 0, shift = 0, divisor = 1, reciprocal = 1;
};

// Return whether this processor runs chains faster than lookups.
bool has_chains();

// Find the chain that gives all 256 values of a table, bit for bit, on this processor. Return false if there is none.
bool find_chain(const float* table, Chain& chain);

// Map `n` bytes to floats by a chain that was found for `table`; with non-temporal stores if the values are read much
// later (`past`) and the memory is aligned.
void run_chain(const Chain& chain, const float* table, const uint8_t* bytes, int n, float* to, bool past);

}  // namespace stoker::recipe
