// SPDX-License-Identifier: Apache-2.0
// Stable order by descending score: a radix sort of keys that ascend where the scores descend.
#include <algorithm>
#include <cstring>

#include "detect/columns.hpp"
#include "detect/nms.hpp"

namespace stoker::detect {

namespace {

// NaN has the smallest key, and both zeros the same.
template <class T, class Bits>
uint64_t descending_key(T score) {
  if (score != score) return 0;
  constexpr Bits kSign = Bits{1} << (8 * sizeof(Bits) - 1);
  Bits bits;
  score += T{0};  // -0 becomes +0
  std::memcpy(&bits, &score, sizeof bits);
  bits = bits & kSign ? ~bits : bits | kSign;  // ascends with the score
  return static_cast<Bits>(~bits);             // above 0: only a NaN's bits are all ones
}

// Sort `ids` by `keys`. `spare` and the second half of `keys` have room for the other copy. Return where the numbers are.
template <int kBits, int kDigit>
uint32_t* sort_by_digits(uint32_t n, uint64_t* keys, uint32_t* ids, uint32_t* spare) {
  constexpr int kPasses = (kBits + kDigit - 1) / kDigit;
  constexpr uint32_t kDigits = 1u << kDigit;
  uint32_t starts[kPasses][kDigits] = {};
  const auto digit = [](uint64_t key, int pass) { return static_cast<uint32_t>(key >> pass * kDigit) & (kDigits - 1); };
  for (uint32_t i = 0; i < n; ++i)
    for (int pass = 0; pass < kPasses; ++pass) ++starts[pass][digit(keys[i], pass)];
  uint64_t *from = keys, *to = keys + n;
  for (int pass = 0; pass < kPasses; ++pass) {
    if (starts[pass][digit(from[0], pass)] == n) continue;
    uint32_t sum = 0;
    for (uint32_t& start : starts[pass]) {
      const uint32_t count = start;
      start = sum;
      sum += count;
    }
    for (uint32_t i = 0; i < n; ++i) {
      const uint32_t at = starts[pass][digit(from[i], pass)]++;
      to[at] = from[i];
      spare[at] = ids[i];
    }
    std::swap(from, to);
    std::swap(ids, spare);
  }
  return ids;
}

constexpr uint32_t kFew = 256, kMany = 4096;  // where the other ways to sort are faster

}  // namespace

void order_by_score(const View& scores, uint32_t* order, uint32_t* spare, uint64_t* keys) {
  const auto n = static_cast<uint32_t>(scores.shape[0]);
  const bool wide = scores.dtype == DType::F64;
  for (uint32_t i = 0; i < n; ++i) {
    order[i] = i;
    keys[i] = wide ? descending_key<double, uint64_t>(element<double>(scores, i))
                   : descending_key<float, uint32_t>(element<float>(scores, i));
  }
  if (n < kFew) {
    std::stable_sort(order, order + n, [&](uint32_t a, uint32_t b) { return keys[a] < keys[b]; });
    return;
  }
  const auto sort = n < kMany ? (wide ? sort_by_digits<64, 8> : sort_by_digits<32, 8>)
                              : (wide ? sort_by_digits<64, 11> : sort_by_digits<32, 11>);
  const uint32_t* const ids = sort(n, keys, order, spare);
  if (ids != order) std::copy(ids, ids + n, order);
}

}  // namespace stoker::detect
