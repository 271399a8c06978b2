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

constexpr int kDigit = 11;
constexpr uint32_t kDigits = 1u << kDigit;

}  // namespace

void order_by_score(const View& scores, uint32_t* order, uint32_t* spare, uint64_t* keys) {
  const auto n = static_cast<uint32_t>(scores.shape[0]);
  const bool wide = scores.dtype == DType::F64;
  for (uint32_t i = 0; i < n; ++i) {
    order[i] = i;
    keys[i] = wide ? descending_key<double, uint64_t>(element<double>(scores, i))
                   : descending_key<float, uint32_t>(element<float>(scores, i));
  }
  if (n < 256) {
    std::stable_sort(order, order + n, [&](uint32_t a, uint32_t b) { return keys[a] < keys[b]; });
    return;
  }
  uint64_t *from = keys, *to = keys + n;
  uint32_t *ids = order, *other = spare;
  for (int shift = 0; shift < (wide ? 64 : 32); shift += kDigit) {
    uint32_t starts[kDigits] = {};
    const auto digit = [&](uint64_t key) { return static_cast<uint32_t>(key >> shift) & (kDigits - 1); };
    for (uint32_t i = 0; i < n; ++i) ++starts[digit(from[i])];
    if (starts[digit(from[0])] == n) continue;
    uint32_t sum = 0;
    for (uint32_t& start : starts) {
      const uint32_t count = start;
      start = sum;
      sum += count;
    }
    for (uint32_t i = 0; i < n; ++i) {
      const uint32_t at = starts[digit(from[i])]++;
      to[at] = from[i];
      other[at] = ids[i];
    }
    std::swap(from, to);
    std::swap(ids, other);
  }
  if (ids != order) std::copy(ids, ids + n, order);
}

}  // namespace stoker::detect
