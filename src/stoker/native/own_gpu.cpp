// SPDX-License-Identifier: Apache-2.0
#include "own_gpu.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "cuda/own_slot.hpp"

namespace stoker::gpu {

namespace {

using own::Port;
using own::Slot;
using own::Work;

static_assert(own::kAxes == kMaxRank);
constexpr double kMaxBlocks = 1 << 28;  // of a row

uint64_t address_of(const View& v) { return reinterpret_cast<uintptr_t>(v.data); }

bool aligned(const View& v) {
  const int64_t size = size_of(v.dtype);
  bool good = address_of(v) % static_cast<uint64_t>(size) == 0;
  for (int d = 0; d < v.rank; ++d) good &= v.shape[d] <= 1 || v.stride[d] % size == 0;
  return good || v.elements() == 0;
}

class Own : public Kernel {
 public:
  Own(std::vector<std::shared_ptr<const Function>> passes, int inputs, int outputs, int numbers)
      : passes_(std::move(passes)), inputs_(inputs), ports_(inputs + outputs), numbers_(numbers),
        first_(numbers - static_cast<int>(passes_.size()) - 1) {
    if (first_ < 0) throw std::invalid_argument("an operator's own kernel lacks numbers of its passes");
    for (const auto& pass : passes_)
      if (!pass) throw std::invalid_argument("an operator's own kernel lacks one of its passes");
  }

  size_t slot_bytes() const override {
    const size_t bytes = sizeof(Slot) + static_cast<size_t>(ports_) * sizeof(Port) +
                         static_cast<size_t>(numbers_) * sizeof(double);
    return (bytes + 15) & ~size_t{15};
  }

  Outcome run(const Call& c) const override {
    auto* slot = reinterpret_cast<Slot*>(c.slot);
    auto* ports = reinterpret_cast<Port*>(slot + 1);
    slot->ports = ports_;
    for (int p = 0; p < ports_; ++p) {
      const View& v = p < inputs_ ? *c.in[p] : *c.out[p - inputs_];
      if (!aligned(v)) {
        const std::string size = std::to_string(size_of(v.dtype));
        *c.error = "expected elements aligned to their size of " + size + " bytes on a GPU";
        return Outcome::Error;
      }
      ports[p].data = address_of(v);
      ports[p].rank = v.rank;
      std::copy_n(v.shape, v.rank, ports[p].shape);
      std::copy_n(v.stride, v.rank, ports[p].stride);
    }
    std::memcpy(ports + ports_, c.params, static_cast<size_t>(numbers_) * sizeof(double));
    for (size_t p = 0; p < passes_.size(); ++p)
      if (const double blocks = c.params[first_ + static_cast<int>(p)]; !(blocks >= 0 && blocks <= kMaxBlocks)) {
        *c.error = "the row is too large for a GPU";
        return Outcome::Error;
      }
    const double scratch = c.params[numbers_ - 1];
    slot->scratch = scratch > 0 ? c.memory->device_room(static_cast<size_t>(scratch)) : 0;
    return Outcome::Ok;
  }

  void launch(Batch& batch) const override {
    for (size_t p = 0; p < passes_.size(); ++p) launch_pass(batch, static_cast<int>(p));
  }

 private:
  int64_t blocks_of(const Batch& batch, int64_t row, int pass) const {
    if (!batch.active(row)) return 0;
    const uint8_t* slot = batch.slots() + static_cast<size_t>(row) * slot_bytes();
    double blocks;
    std::memcpy(&blocks, slot + sizeof(Slot) + static_cast<size_t>(ports_) * sizeof(Port) +
                             static_cast<size_t>(first_ + pass) * sizeof(double), sizeof blocks);
    return static_cast<int64_t>(blocks);
  }

  void launch_pass(Batch& batch, int pass) const {
    int64_t total = 0;
    for (int64_t r = 0; r < batch.rows(); ++r) total += blocks_of(batch, r, pass);
    if (total == 0) return;
    Address at = 0;
    auto* work = reinterpret_cast<Work*>(batch.upload(static_cast<size_t>(total) * sizeof(Work), &at));
    for (int64_t r = 0; r < batch.rows(); ++r)
      for (int64_t b = 0, n = blocks_of(batch, r, pass); b < n; ++b)
        *work++ = {static_cast<uint32_t>(r), static_cast<uint32_t>(b)};
    constexpr int64_t kGrid = (int64_t{1} << 31) - 1;
    for (int64_t begin = 0; begin < total; begin += kGrid) {
      Launch launch;
      launch.function = passes_[static_cast<size_t>(pass)].get();
      launch.grid[0] = static_cast<uint32_t>(std::min(kGrid, total - begin));
      launch.block[0] = own::kThreads;
      launch.with({batch.device_slots(), slot_bytes(), at + static_cast<uint64_t>(begin) * sizeof(Work)});
      batch.launch(launch);
    }
  }

  std::vector<std::shared_ptr<const Function>> passes_;
  int inputs_, ports_, numbers_, first_;
};

}  // namespace

std::shared_ptr<Kernel> make_own(std::vector<std::shared_ptr<const Function>> passes, int inputs, int outputs,
                                 int numbers) {
  return std::make_shared<Own>(std::move(passes), inputs, outputs, numbers);
}

}  // namespace stoker::gpu
