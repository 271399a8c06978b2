// SPDX-License-Identifier: Apache-2.0
#include "recipe/mixtures.hpp"

#include "base/simd.hpp"
#include "pixel/rows.hpp"

namespace stoker::recipe {

namespace {

// ---- loops over a row, compiled for the processor's vectors ----

[[gnu::always_inline]] inline void add_products(const uint8_t* __restrict from, float factor, bool first, int64_t n,
                                                float* __restrict sums) {
  if (first)
    for (int64_t i = 0; i < n; ++i) sums[i] = factor * static_cast<float>(from[i]);
  else
    for (int64_t i = 0; i < n; ++i) sums[i] += factor * static_cast<float>(from[i]);
}

[[gnu::always_inline]] inline void truncate_sums(const float* __restrict sums, int64_t n, uint8_t* __restrict to) {
  for (int64_t i = 0; i < n; ++i) {
    const float v = sums[i] > 0.0f ? (sums[i] < 255.0f ? sums[i] : 255.0f) : 0.0f;  // NaN: 0
    to[i] = static_cast<uint8_t>(static_cast<int>(v));
  }
}

// A blend of bytes with a factor between 0 and 1 stays within 0..255; other factors need clipping. Same arithmetic as
// shared/pillow_color.hpp.
[[gnu::always_inline]] inline void blend_values(const uint8_t* __restrict from, const uint8_t* __restrict other,
                                                float factor, int64_t n, uint8_t* __restrict to) {
  for (int64_t i = 0; i < n; ++i) {
    const int a = from[i], b = other[i];
    float v = static_cast<float>(a) + factor * static_cast<float>(b - a);
    v = v > 0.0f ? (v < 255.0f ? v : 255.0f) : 0.0f;
    to[i] = static_cast<uint8_t>(static_cast<int>(v));
  }
}

struct Loops {
  void (*add)(const uint8_t*, float, bool, int64_t, float*);
  void (*truncate)(const float*, int64_t, uint8_t*);
  void (*blend)(const uint8_t*, const uint8_t*, float, int64_t, uint8_t*);
};

void add_plain(const uint8_t* from, float factor, bool first, int64_t n, float* sums) {
  add_products(from, factor, first, n, sums);
}
void truncate_plain(const float* sums, int64_t n, uint8_t* to) { truncate_sums(sums, n, to); }
void blend_plain(const uint8_t* from, const uint8_t* other, float factor, int64_t n, uint8_t* to) {
  blend_values(from, other, factor, n, to);
}

STOKER_WIDE void add_wide(const uint8_t* from, float factor, bool first, int64_t n, float* sums) {
  add_products(from, factor, first, n, sums);
}
STOKER_WIDE void truncate_wide(const float* sums, int64_t n, uint8_t* to) { truncate_sums(sums, n, to); }
STOKER_WIDE void blend_wide(const uint8_t* from, const uint8_t* other, float factor, int64_t n, uint8_t* to) {
  blend_values(from, other, factor, n, to);
}

Loops choose_loops() {
  if (has_wide()) return {add_wide, truncate_wide, blend_wide};
  return {add_plain, truncate_plain, blend_plain};
}

// ---- one term of a sum ----

class Term {
 public:
  explicit Term(const Part& part) : part_(part), rows_(part.image), factor_(part.values[1]), is_product_(true) {
    const int64_t tables = part.per_channel ? part.image.shape[2] : 1;
    for (int64_t i = 0; i < 256 * tables; ++i) is_product_ &= part.values[i] == factor_ * static_cast<float>(i % 256);
  }

  void add(int64_t y, bool first, const Loops& loops, float* sums) {
    const uint8_t* row = rows_.row(y);
    const int64_t n = rows_.bytes(), channels = part_.image.shape[2];
    if (is_product_) return loops.add(row, factor_, first, n, sums);
    for (int64_t i = 0; i < n; i += channels)
      for (int64_t c = 0; c < channels; ++c) {
        const float term = part_.values[c * part_.per_channel + row[i + c]];
        sums[i + c] = first ? term : sums[i + c] + term;
      }
  }

 private:
  const Part part_;
  Rows rows_;
  const float factor_;
  bool is_product_;  // one factor for all values, usually an image's weight in a mean
};

}  // namespace

void mix(const std::vector<Part>& parts, const View& to) {
  const Loops loops = choose_loops();
  std::vector<Term> terms(parts.begin(), parts.end());
  const int64_t n = to.shape[1] * to.shape[2];
  std::vector<float> sums(static_cast<size_t>(n));
  for (int64_t y = 0; y < to.shape[0]; ++y) {
    for (size_t i = 0; i < terms.size(); ++i) terms[i].add(y, i == 0, loops, sums.data());
    loops.truncate(sums.data(), n, to.data + y * to.stride[0]);
  }
}

void blend(const View& from, const View& other, float factor, const View& to) {
  const Loops loops = choose_loops();
  Rows a(from), b(other);
  for (int64_t y = 0; y < to.shape[0]; ++y)
    loops.blend(a.row(y), b.row(y), factor, a.bytes(), to.data + y * to.stride[0]);
}

}  // namespace stoker::recipe
