// SPDX-License-Identifier: Apache-2.0
// Execution of a bound program: the walk over blocks of lanes.
#include "pixel/pixel.hpp"

#include <algorithm>
#include <cstring>

#include "pixel/copy.hpp"
#include "pixel/kernels.hpp"
#include "pixel/move.hpp"

namespace stoker::pixel {

namespace {

constexpr int kMaxRuns = 32;  // maximum number of contiguous stretches of memory in one block

}  // namespace

// The contiguous stretches of memory that form one block of lanes.
struct Bound::Cursor {
  int lanes = 0, runs = 0;
  int lane[kMaxRuns], n[kMaxRuns];
  uint8_t* at[kMaxRuns][2 * kMaxPorts];
};

// Let the last computation before a store write to memory itself, if the store is one stretch of whole vectors.
bool Bound::store_directly(const Mover& m, const Cursor& cursor) const {
  uint8_t* to = cursor.at[0][m.port] + m.offset;
  const bool direct =
      cursor.runs == 1 && cursor.lanes % kLaneUnit == 0 && reinterpret_cast<uintptr_t>(to) % m.alignment == 0;
  computes_[m.producer].dst = direct ? to : m.reg[0];
  return direct;
}

// Return how many lanes of a stretch precede the first whole cache line of the memory that a computation stores to
// directly; 0 if none does. An unaligned vector of a line's size always crosses two lines.
int Bound::lanes_before_line(uint8_t* const* row) const {
  constexpr uintptr_t kLine = 64;
  for (int i = 0; i < store_count_; ++i) {
    const Mover& m = stores_[i];
    if (m.producer < 0) continue;
    const uintptr_t rest = -reinterpret_cast<uintptr_t>(row[m.port] + m.offset) % kLine;
    const auto element = static_cast<uintptr_t>(m.element);
    return rest % element ? 0 : static_cast<int>(rest / element);
  }
  return 0;
}

// Zero the lanes up to the next whole unit: leftovers there may be subnormal numbers, which are slow.
void Bound::pad(int lanes) const {
  const int rest = -lanes & (kLaneUnit - 1);
  if (rest == 0) return;
  for (int i = 0; i < load_count_; ++i)
    for (int c = 0; c < loads_[i].count; ++c)
      std::memset(loads_[i].reg[c] + static_cast<ptrdiff_t>(lanes) * loads_[i].reg_size, 0,
                  static_cast<size_t>(rest) * static_cast<size_t>(loads_[i].reg_size));
}

void Bound::step(const Cursor& cursor) {
  const auto move = [&](const Mover& m) {
    for (int r = 0; r < cursor.runs; ++r) m.run(m, cursor.at[r], cursor.lane[r], cursor.n[r]);
  };
  for (int i = 0; i < load_count_; ++i) move(loads_[i]);
  pad(cursor.lanes);
  uint32_t stored = 0;  // bits of the stores that computations perform directly
  for (int i = 0; i < std::min(store_count_, 32); ++i)
    if (stores_[i].producer >= 0 && store_directly(stores_[i], cursor)) stored |= uint32_t{1} << i;
  for (int i = plan_->constants; i < compute_count_; ++i) computes_[i].run(computes_[i], cursor.lanes);
  for (int i = 0; i < store_count_; ++i)
    if (i >= 32 || !(stored >> i & 1)) move(stores_[i]);
}

void Bound::walk(uint8_t* const* base, const Axis* axes, int count) {
  const Axis& lane_axis = axes[count - 1];
  for (int i = 0; i < count; ++i)
    if (axes[i].extent == 0) return;
  Cursor cursor;
  uint8_t* row[2 * kMaxPorts];  // start of the current stretch of lanes
  std::copy_n(base, ports_, row);
  int64_t index[kMaxRank] = {};
  // Cut long stretches into equal pieces and join short ones, so that blocks are evenly full.
  int64_t piece = lane_axis.extent;
  if (piece > block_) {
    const int64_t pieces = (piece + block_ - 1) / block_;
    piece = (piece / pieces + 63) & ~int64_t{63};
    piece = std::min<int64_t>(piece, block_);
  }
  const auto flush = [&] {
    if (cursor.lanes) step(cursor);
    cursor.lanes = cursor.runs = 0;
  };
  for (;;) {
    // Blocks of a long stretch begin where direct stores are aligned.
    int64_t first = lane_axis.extent > piece ? lanes_before_line(row) : 0;
    for (int64_t x = 0, n_lanes; x < lane_axis.extent; x += n_lanes, first = 0) {
      n_lanes = first ? first : std::min(piece, lane_axis.extent - x);
      const int n = static_cast<int>(n_lanes);
      if (cursor.lanes + n > block_ || cursor.runs == kMaxRuns) flush();
      uint8_t** at = cursor.at[cursor.runs];
      for (int p = 0; p < ports_; ++p) at[p] = row[p] + x * lane_axis.stride[p];
      cursor.lane[cursor.runs] = cursor.lanes;
      cursor.n[cursor.runs++] = n;
      cursor.lanes += n;
      if (first) flush();
    }
    int i = count - 2;
    for (; i >= 0; --i) {
      for (int p = 0; p < ports_; ++p) row[p] += axes[i].stride[p];
      if (++index[i] < axes[i].extent) break;
      for (int p = 0; p < ports_; ++p) row[p] -= axes[i].extent * axes[i].stride[p];
      index[i] = 0;
    }
    if (i < 0) break;
  }
  flush();
}

bool Bound::run() {
  fault_ = 0;
  walk(base_, axes_, axes_count_);
  return fault_ == 0;
}

bool Bound::run_rows(int64_t y0, int64_t y1, const uint8_t* band, int64_t pitch) {
  fault_ = 0;
  uint8_t* base[2 * kMaxPorts];
  for (int p = 1; p < ports_; ++p) base[p] = base_[p] + y0 * row_axis_.stride[p];
  base[0] = const_cast<uint8_t*>(band) + input0_offset_;  // input 0 is only read
  row_axis_.extent = y1 - y0;
  row_axis_.stride[0] = pitch;
  if (axes_count_ == 1 && mergeable(row_axis_, axes_[0], ports_)) {
    const int64_t width = axes_[0].extent;
    axes_[0].extent *= row_axis_.extent;
    walk(base, axes_, 1);
    axes_[0].extent = width;
  } else {
    walk(base, all_axes_, axes_count_ + 1);
  }
  return fault_ == 0;
}

bool run(const Program& program, const double* uniforms, const View* inputs, const View* outputs, Scratch& scratch) {
  if (run_as_copies(program, inputs, outputs)) return true;
  Bound bound;
  bound.prepare(program, uniforms, inputs, outputs, scratch);
  return bound.run();
}

}  // namespace stoker::pixel
