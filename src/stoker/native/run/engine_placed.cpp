// SPDX-License-Identifier: Apache-2.0
// Placed outputs: a row's extents are known when it has run, such as the bytes of a record. The kernel that allocates
// the row writes into the output's memory, so that no row is copied.
#include <algorithm>
#include <cstring>
#include <utility>

#include "base/copy_view.hpp"
#include "run/engine.hpp"
#include "run/sizes.hpp"

namespace stoker {

namespace {

constexpr int kPeriod = 32;                    // batches
constexpr uint32_t kWhole = 1000;              // of a share
constexpr size_t kTrusted = size_t{64} << 20;  // bytes that an unchecked index may request
constexpr uint64_t kSaneRow = uint64_t{1} << 40;
constexpr size_t kRowAlign = 64, kMaxGap = 2 * kRowAlign;  // a reader may move a row on by less than kRowAlign

uint64_t bytes_in(const View& v) {
  return static_cast<uint64_t>(v.elements()) * static_cast<uint64_t>(size_of(v.dtype));
}

}  // namespace

// An output whose rows are small parts of their records is copied: the records are then read into memory that stays in
// the cache. Of several outputs with one root, the one with the largest part takes it.
void Engine::open_placed(Job* job, size_t index) {
  const Output& output = plan_->outputs[index];
  const Value& value = plan_->values[output.value];
  const auto rows = static_cast<size_t>(job->rows);
  OutputMemory& memory = job->outputs[index];
  fit(&memory.shapes, rows * static_cast<size_t>(value.rank));
  fit(&memory.offsets, rows);
  fit(&memory.places, rows);
  std::fill(memory.shapes.begin(), memory.shapes.end(), 0);
  std::fill(memory.places.begin(), memory.places.end(), nullptr);
  if (!memory.arena) memory.arena = std::make_unique<RowArena>();

  const uint32_t share = placed_[index].share.load(std::memory_order_relaxed);
  memory.takes_root = 2 * share >= kWhole;
  for (size_t o = 0; o < plan_->outputs.size(); ++o) {
    const uint32_t other = plan_->outputs[o].root == output.root ? placed_[o].share.load(std::memory_order_relaxed) : 0;
    if (o != index && (other > share || (other == share && o < index))) memory.takes_root = false;
  }

  // The sizes in an index are checked when a row reads its file, not here.
  const Kernel& kernel = *plan_->steps[static_cast<size_t>(output.maker)].kernel;
  double known = memory.takes_root && kernel.has_cost() ? 0 : -1, first = 0;
  bool equal = true;
  for (int64_t r = 0; r < job->rows && known >= 0; ++r) {
    const double bytes = kernel.cost(*job, r);
    if (r == 0) first = bytes;
    equal &= bytes == first;
    known = bytes > 0 ? known + bytes + kMaxGap : -1;
  }
  const size_t recent = placed_[index].bytes.bytes();
  const double trusted = static_cast<double>(std::max(kTrusted, 2 * recent));
  const bool is_known = known >= 0 && known <= trusted;
  const size_t expected = is_known ? static_cast<size_t>(known) : recent;
  const size_t each = is_known && equal && rows > 0 ? static_cast<size_t>(first) : 0;
  memory.arena->open(*pool_, rows, expected, each % static_cast<size_t>(size_of(value.dtype)) == 0 ? each : 0);
  memory.device = false;
  memory.opened = true;
}

OutputMemory* Engine::output_of_root(Job* job, int32_t value) const {
  for (size_t o = 0; o < plan_->outputs.size(); ++o)
    if (plan_->outputs[o].root == value && job->outputs[o].opened && job->outputs[o].takes_root)
      return &job->outputs[o];
  return nullptr;
}

void Engine::place_row(Job* job, int64_t row, const Segment& segment) {
  for (const int32_t o : segment.opens) {
    const Output& output = plan_->outputs[static_cast<size_t>(o)];
    OutputMemory& memory = job->outputs[static_cast<size_t>(o)];
    if (output.root < 0 || job->failing[static_cast<size_t>(row)] || !memory.opened) continue;
    View& v = job->row(row)[output.value];
    const uint64_t bytes = bytes_in(v);
    try {
      if (bytes > kSaneRow) throw std::bad_alloc();
      uint8_t* place = v.data;
      if (!v.contiguous() || !memory.arena->has(place, bytes)) {
        job->memory.charge(Side::Host, row, bytes);
        place = memory.arena->get(static_cast<size_t>(row), bytes);
        copy_contiguous(v, place);
      }
      memory.places[static_cast<size_t>(row)] = place;
      std::copy_n(v.shape, v.rank, memory.shapes.begin() + row * v.rank);
    } catch (const BatchLimitReached& limit) {
      fail_by_limit_at(job, row, output.maker, limit);
    } catch (const std::bad_alloc& error) { add_error(job, {row, output.maker, code_of(error), {}, no_memory(error)}); }
  }
}

void Engine::close_placed(Job* job) {
  for (size_t o = 0; o < plan_->outputs.size(); ++o) {
    const Output& output = plan_->outputs[o];
    OutputMemory& memory = job->outputs[o];
    if (output.root < 0 || !memory.opened) continue;
    const Value& value = plan_->values[output.value];
    const int64_t rank = value.rank;
    const int64_t* const first = memory.shapes.data();
    const auto each = static_cast<uint64_t>(bytes_of(value.dtype, first, job->rows > 0 ? rank : 0));
    uint64_t kept = 0, of_roots = 0;
    bool dense = true, in_place = true;
    for (int64_t r = 0; r < job->rows; ++r) {
      dense &= std::equal(first, first + rank, memory.shapes.data() + r * rank);
      in_place &= memory.places[static_cast<size_t>(r)] == memory.places[0] + static_cast<uint64_t>(r) * each;
      if (job->failing[static_cast<size_t>(r)]) continue;
      kept += bytes_in(job->row(r)[output.value]);
      of_roots += bytes_in(job->row(r)[output.root]);
    }
    PlacedHistory& history = placed_[o];
    history.bytes.record(memory.arena->taken());
    if (history.batches.fetch_add(1, std::memory_order_relaxed) % kPeriod == kPeriod - 1) history.bytes.start_period();
    if (of_roots > 0)
      history.share.store(
          static_cast<uint32_t>(std::min(1.0, static_cast<double>(kept) / static_cast<double>(of_roots)) * kWhole),
          std::memory_order_relaxed);
    memory.dense = dense;
    if (!dense || in_place || job->rows == 0) continue;
    try {
      BlockPool::Block block = pool_->take(std::max<uint64_t>(each * static_cast<uint64_t>(job->rows), 1));
      for (int64_t r = 0; r < job->rows; ++r) {
        uint8_t*& place = memory.places[static_cast<size_t>(r)];
        uint8_t* const to = block.data + static_cast<uint64_t>(r) * each;
        if (each > 0 && place) std::memcpy(to, place, each);
        place = to;
      }
      memory.arena->replace(std::move(block));
    } catch (const std::bad_alloc& error) { fail_output(job, output, code_of(error), no_memory(error)); }
  }
}

}  // namespace stoker
