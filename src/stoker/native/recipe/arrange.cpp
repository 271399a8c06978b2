// SPDX-License-Identifier: Apache-2.0
#include "recipe/arrange.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <utility>

#include "recipe/numbers.hpp"

namespace stoker::recipe {

namespace {

constexpr int64_t kCopies = 3;           // the axis of copies
constexpr int64_t kMaxCopies = 1 << 16;  // more than any patch needs

struct Axis {
  int64_t of, extent, unit;
};

Axis axis_at(const double* p) { return {whole(p[0]), whole(p[1]), whole(p[2])}; }

void require(bool good, const char* why) {
  if (!good) throw InvalidRecipe{why};
}

// Copy a few floats: cheaper than a call of memcpy for each run of a patch.
inline void copy_run(float* to, const float* from, int64_t n) {
  constexpr int64_t kBlock = 8;
  if (n < kBlock) {
    for (int64_t i = 0; i < n; ++i) to[i] = from[i];
    return;
  }
  for (int64_t i = 0; i + kBlock <= n; i += kBlock) std::memcpy(to + i, from + i, kBlock * sizeof(float));
  std::memcpy(to + n - kBlock, from + n - kBlock, kBlock * sizeof(float));  // overlaps the block before it
}

// Return the product of the extents of axes that count one axis of the image.
int64_t extent_of(std::vector<std::pair<int64_t, int64_t>>& units) {
  std::sort(units.begin(), units.end());
  int64_t covered = 1;
  for (const auto& [unit, extent] : units) {
    require(unit == covered && extent <= kMaxSide, "axes that do not cover the image once");
    covered *= extent;
    require(covered <= kMaxSide, "axes that do not cover the image once");
  }
  return covered;
}

}  // namespace

int64_t count_copies(const double* p, int64_t height, int64_t width, int64_t channels) {
  const int64_t count = whole(p[0]);
  require(count % 3 == 0, "axes that end early");
  std::array<std::vector<std::pair<int64_t, int64_t>>, 3> units;  // by axis: unit and extent
  int64_t copies = 1;
  for (int64_t at = 1; at <= count; at += 3) {
    const Axis axis = axis_at(p + at);
    require(axis.of >= 0 && axis.of <= kCopies && axis.extent >= 1, "an axis that is not there");
    if (axis.of == kCopies) {
      require(axis.extent <= kMaxCopies / copies, "too many copies");
      copies *= axis.extent;
    } else if (axis.extent > 1) {
      units[static_cast<size_t>(axis.of)].emplace_back(axis.unit, axis.extent);
    }
  }
  require(extent_of(units[0]) == channels && extent_of(units[1]) == height && extent_of(units[2]) == width,
          "axes that do not cover the image once");
  return copies;
}

Arrangement::Arrangement(const double* p, int64_t height, int64_t width, int64_t channels)
    : channels_(static_cast<size_t>(channels)),
      rows_(static_cast<size_t>(height)),
      columns_(static_cast<size_t>(width)),
      copies_{0} {
  int64_t stride = 1;
  std::array<std::vector<int64_t>*, 3> offsets{&channels_, &rows_, &columns_};
  for (int64_t at = whole(p[0]) - 2; at >= 1; at -= 3) {  // innermost first
    const Axis axis = axis_at(p + at);
    if (axis.extent == 1) continue;
    if (axis.of == kCopies) {
      const std::vector<int64_t> inner = std::exchange(copies_, {});
      for (int64_t i = 0; i < axis.extent; ++i)
        for (const int64_t offset : inner) copies_.push_back(offset + i * stride);
    } else {
      std::vector<int64_t>& all = *offsets[static_cast<size_t>(axis.of)];
      for (size_t i = 0; i < all.size(); ++i) all[i] += static_cast<int64_t>(i) / axis.unit % axis.extent * stride;
    }
    stride *= axis.extent;
  }
  while (run_ < width && columns_[static_cast<size_t>(run_)] == run_) ++run_;
  if (width % run_ != 0) run_ = 1;
}

void Arrangement::put(float* to, int64_t channel, int64_t y, int64_t x, int64_t n, const float* values) const {
  float* const row = to + channels_[static_cast<size_t>(channel)] + rows_[static_cast<size_t>(y)];
  for (const int64_t end = x + n; x < end;) {
    const int64_t count = std::min(run_ - x % run_, end - x);
    float* const run = row + columns_[static_cast<size_t>(x)];
    for (const int64_t copy : copies_) copy_run(run + copy, values, count);
    x += count;
    values += count;
  }
}

}  // namespace stoker::recipe
