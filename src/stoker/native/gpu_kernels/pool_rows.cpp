// SPDX-License-Identifier: Apache-2.0
// Averages over the rows of a batch: a table of the rows that take part is sent once, and one launch stores the result
// for all rows.
#include "kernels/pool_rows.hpp"

#include <cstring>
#include <stdexcept>

#include "gpu/gpu.hpp"
#include "gpu_kernels/functions.hpp"
#include "gpu_kernels/row_blocks.hpp"
#include "kernels/registry.hpp"
#include "shared/pooled_rows.hpp"

namespace stoker::gpu {

namespace {

constexpr uint32_t kThreads = 256;  // also in device/pool_rows.cuh
constexpr int64_t kColumns = kThreads / 32;

class PoolRows : public Kernel {
 public:
  explicit PoolRows(std::shared_ptr<const Function> function) : function_(std::move(function)) {}
  Ports ports() const override { return pool::ports(); }
  size_t slot_bytes() const override { return sizeof(pool::Slot); }
  static_assert(sizeof(pool::Slot) % 16 == 0);

  bool combines() const override { return true; }
  bool combine(const CombineCall& call) const override {
    if (!pool::is_alike(call)) return false;
    uint8_t* const table = call.memory->allocate_host(call.in.size() * sizeof(pool::Row));
    for (size_t i = 0; i < call.in.size(); ++i) {
      const pool::Row row{reinterpret_cast<uintptr_t>(call.in[i].data), call.params[i * call.param_count]};
      std::memcpy(table + i * sizeof row, &row, sizeof row);
    }
    Combined& result = *call.result;
    result.on_device = call.memory->device_address(table);
    result.rows = static_cast<int64_t>(call.in.size());
    result.number = pool::divisor(call);
    return true;
  }

  Outcome run(const Call& c) const override {
    const pool::Slot slot{reinterpret_cast<uintptr_t>(c.out[0]->data),
                          c.combined->on_device,
                          c.combined->rows,
                          c.out[0]->elements(),
                          c.combined->number,
                          c.in[0]->dtype == DType::F64};
    std::memcpy(c.slot, &slot, sizeof slot);
    return Outcome::Ok;
  }

  void launch(Batch& batch) const override {
    int64_t first = 0;
    while (!batch.active(first)) ++first;  // a batch without rows has no launch
    pool::Slot slot;
    const size_t offset = static_cast<size_t>(first) * sizeof slot;
    std::memcpy(&slot, batch.slots() + offset, sizeof slot);
    Launch launch;
    launch.function = function_.get();
    launch.grid[0] = static_cast<uint32_t>(blocks_for(slot.columns, kColumns));
    launch.block[0] = kThreads;
    if (launch.grid[0] == 0) return;
    const Address slots = batch.device_slots();
    batch.launch(launch.with({slots + offset, slots, static_cast<uint64_t>(batch.rows())}));
  }

 private:
  const std::shared_ptr<const Function> function_;
};

std::shared_ptr<Kernel> make_pool_rows(Functions functions) {
  if (functions.size() != 1) throw std::invalid_argument("expected one function");
  return std::make_shared<PoolRows>(std::move(functions[0]));
}

const RegisteredOnGpu kPoolRows{"pool_rows",
                                "The averages of a batch, from those of its rows.",
                                make_pool_rows,
                                {{"functions", "stoker_pool_rows"}}};

}  // namespace

}  // namespace stoker::gpu
