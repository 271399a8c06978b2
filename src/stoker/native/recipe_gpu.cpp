// SPDX-License-Identifier: Apache-2.0
#include "recipe_gpu.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "recipe.hpp"
#include "recipe_described.hpp"
#include "recipe_numbers.hpp"

namespace stoker::recipe {

namespace {

// The three inputs of a row, checked.
struct Given {
  const double *steps, *end;
  std::vector<Table> tables;  // with the addresses that the step finds them at

  Given(const View& recipe, const View& tables_here, const uint8_t* tables_there) {
    const auto* numbers = reinterpret_cast<const double*>(recipe.data);
    const int64_t size = recipe.rank == 1 ? recipe.shape[0] : 0, bytes = tables_here.shape[0];
    const int64_t count = size > 0 ? whole(numbers[0]) : -1;
    if (count < 0 || count > (size - 1) / 3) throw Bad{"a recipe that ends early"};
    for (int64_t i = 0; i < count; ++i) {
      const int64_t first = whole(numbers[1 + 3 * i]), item = whole(numbers[2 + 3 * i]), channels = whole(numbers[3 + 3 * i]);
      if (item != 1 && item != 2 && item != 4 && item != 8) throw Bad{"values of other than 1, 2, 4 or 8 bytes"};
      if (first < 0 || first % item || channels < 1 || channels > bytes || 256 * item * channels > bytes - first)
        throw Bad{"a table that is not there"};
      tables.push_back({tables_there + first, static_cast<int32_t>(item), static_cast<int32_t>(channels)});
    }
    steps = numbers + 1 + 3 * count;
    end = numbers + size;
  }
};

Outcome failed(const Call& c, const char* why) {
  *c.error = why;
  return Outcome::Error;
}

class OnCpu : public Kernel {
 public:
  explicit OnCpu(int outputs) : outputs_(outputs) {}

  Outcome run(const Call& c) const override {
    try {
      return made(c);
    } catch (const Bad& bad) {
      return failed(c, bad.why);
    }
  }

 private:
  Outcome made(const Call& c) const {
    const View& image = *c.in[0];
    const Given given(*c.in[1], *c.in[2], c.in[2]->data);
    Order order;
    order.numbers.assign(given.steps, given.end);
    if (image.rank == 3) {  // in place of what would decode it
      const std::vector<Written> steps = read_steps(given.steps, given.end);
      if (steps.empty() || steps[0].op != Op::Decode) throw Bad{"a recipe that does not begin with its image"};
      if (!image.contiguous()) throw Bad{"an image with gaps"};
      const auto height = static_cast<double>(image.shape[0]), width = static_cast<double>(image.shape[1]);
      order.numbers.assign({static_cast<double>(Op::Pixels), -1, height, width, static_cast<double>(image.shape[2]), 0, 0,
                            0, width, height});
      order.numbers.insert(order.numbers.end(), steps[0].p + steps[0].count, given.end);
    }
    order.starts = {0, static_cast<int64_t>(order.numbers.size())};
    order.sources = {{image.data, static_cast<size_t>(image.elements())}};
    order.tables = given.tables;
    for (int o = 0; o < outputs_; ++o)
      order.outputs.push_back({c.out[o]->data, static_cast<size_t>(c.out[o]->elements())});
    order.status = {Status::Pending};
    order.why.resize(1);
    order.remaining = 1;
    Bench bench;
    recipe::make(order, 0, bench);
    return order.status[0] == Status::Done ? Outcome::Ok : failed(c, order.why[0].c_str());
  }

  const int outputs_;
};

class OnGpu : public stoker::gpu::Kernel {
 public:
  OnGpu(std::shared_ptr<const stoker::gpu::Function> function, int outputs)
      : function_(std::move(function)), outputs_(outputs) {}

  size_t slot_bytes() const override { return sizeof(gpu::Row); }

  Outcome run(const Call& c) const override {
    try {
      const Given given(*c.host_in[1], *c.host_in[2], c.in[2]->data);
      const std::vector<Written> steps = read_steps(given.steps, given.end);
      const gpu::Row row = gpu::describe(steps, *c.in[0], given.tables, {c.out, c.out + outputs_}, *c.memory);
      std::memcpy(c.slot, &row, sizeof row);
      return Outcome::Ok;
    } catch (const Bad& bad) {
      return failed(c, bad.why);
    }
  }

  void launch(stoker::gpu::Batch& batch) const override {
    const auto* rows = reinterpret_cast<const gpu::Row*>(batch.slots());
    std::vector<uint32_t> order;
    for (int64_t i = 0; i < batch.rows(); ++i)
      if (batch.active(i) && rows[i].count > 0) order.push_back(static_cast<uint32_t>(i));
    if (order.empty()) return;
    // The most work first, so that none is left when the others have finished.
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return rows[a].work > rows[b].work; });
    stoker::gpu::Address there = 0;
    const size_t bytes = order.size() * sizeof(uint32_t);
    std::memcpy(batch.upload(bytes, &there), order.data(), bytes);
    stoker::gpu::Launch launch;
    launch.function = function_.get();
    launch.grid[0] = static_cast<uint32_t>(order.size());
    launch.block[0] = gpu::kThreads;
    batch.launch(launch.with({batch.device_slots(), slot_bytes(), there}));
  }

 private:
  const std::shared_ptr<const stoker::gpu::Function> function_;
  const int outputs_;
};

}  // namespace

std::shared_ptr<Kernel> make_kernel(int outputs) { return std::make_shared<OnCpu>(outputs); }

std::shared_ptr<stoker::gpu::Kernel> make_gpu_kernel(std::shared_ptr<const stoker::gpu::Function> function, int outputs) {
  return std::make_shared<OnGpu>(std::move(function), outputs);
}

}  // namespace stoker::recipe
