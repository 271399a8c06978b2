// SPDX-License-Identifier: Apache-2.0
// Recipes as a step of a plan, on the CPU and on a GPU.
//
// Inputs: an image ([H,W,C], the result of the recipe's Decode) or the bytes of its Pixels; the recipe; its tables. The
// recipe is float64: the number of tables, for each (first byte, bytes of a value, channels), then its steps. Store and
// Patch name the step's outputs, which are bytes of a fixed size.
#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gpu/gpu.hpp"
#include "gpu_kernels/functions.hpp"
#include "gpu_kernels/recipe_described.hpp"
#include "kernels/registry.hpp"
#include "recipe/numbers.hpp"
#include "recipe/recipe.hpp"

namespace stoker::recipe {

namespace {

// The three inputs of a row, validated.
Ports ports_of(int outputs, bool on_gpu) {
  PortRule pixels{.types = types(DType::U8), .least_rank = 1, .most_rank = 3};
  PortRule numbers = port_of(DType::F64, 1), tables = port_of(DType::U8, 1);
  numbers.on_host = tables.on_host = on_gpu;
  Ports ports{.kernel = "recipe", .in = {pixels, numbers, tables}};
  ports.out.assign(static_cast<size_t>(outputs), port_of(DType::U8, 1));
  return ports;
}

// Recipes and tables are read as plain arrays, and so are pixels without axes.
bool is_dense(const Call& c) {
  const View& image = *c.in[0];
  if (c.in[1]->contiguous() && c.in[2]->contiguous() && (image.rank == 3 || image.contiguous()) && image.rank != 2)
    return true;
  *c.error = "expected an image or its bytes, and a recipe and tables without gaps";
  return false;
}

void require_outputs(int outputs) {
  if (outputs < 0 || outputs > kMaxStepOutputs)
    throw std::invalid_argument("expected at most 64 outputs, got " + std::to_string(outputs));
}

struct RecipeInputs {
  const double *steps, *end;
  std::vector<Table> tables;  // with the addresses at which the step finds them

  RecipeInputs(const View& recipe, const View& tables_here, const uint8_t* tables_there) {
    const auto* numbers = reinterpret_cast<const double*>(recipe.data);
    const int64_t size = recipe.rank == 1 ? recipe.shape[0] : 0, bytes = tables_here.shape[0];
    const int64_t count = size > 0 ? whole(numbers[0]) : -1;
    if (count < 0 || count > (size - 1) / 3) throw InvalidRecipe{"a recipe that ends early"};
    for (int64_t i = 0; i < count; ++i) {
      const int64_t first = whole(numbers[1 + 3 * i]), item = whole(numbers[2 + 3 * i]),
                    channels = whole(numbers[3 + 3 * i]);
      if (item != 1 && item != 2 && item != 4 && item != 8)
        throw InvalidRecipe{"values of other than 1, 2, 4 or 8 bytes"};
      if (first < 0 || first % item || channels < 1 || channels > bytes || 256 * item * channels > bytes - first)
        throw InvalidRecipe{"a table that is not there"};
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

class RecipeOnCpu : public Kernel {
 public:
  explicit RecipeOnCpu(int outputs) : outputs_(outputs) {}
  Ports ports() const override { return ports_of(outputs_, false); }
  bool fits(const Call& c) const override { return is_dense(c); }

  Outcome run(const Call& c) const override {
    try {
      return materialize_row(c);
    } catch (const InvalidRecipe& bad) { return failed(c, bad.why); }
  }

 private:
  Outcome materialize_row(const Call& c) const {
    const View& image = *c.in[0];
    const RecipeInputs inputs(*c.in[1], *c.in[2], c.in[2]->data);
    RecipeBatch batch;
    batch.numbers.assign(inputs.steps, inputs.end);
    if (image.rank == 3) {  // it replaces the result of the Decode step
      const std::vector<RecordedStep> steps = read_steps(inputs.steps, inputs.end);
      if (steps.empty() || steps[0].op != Op::Decode)
        throw InvalidRecipe{"a recipe that does not begin with its image"};
      if (!image.contiguous()) throw InvalidRecipe{"an image with gaps"};
      const auto height = static_cast<double>(image.shape[0]), width = static_cast<double>(image.shape[1]);
      batch.numbers.assign({static_cast<double>(Op::Pixels), -1, height, width, static_cast<double>(image.shape[2]), 0,
                            0, 0, width, height});
      batch.numbers.insert(batch.numbers.end(), steps[0].p + steps[0].count, inputs.end);
    }
    batch.starts = {0, static_cast<int64_t>(batch.numbers.size())};
    batch.sources = {{image.data, static_cast<size_t>(image.elements())}};
    batch.tables = inputs.tables;
    for (int o = 0; o < outputs_; ++o)
      batch.outputs.push_back({c.out[o]->data, static_cast<size_t>(c.out[o]->elements())});
    batch.status = {Status::Pending};
    batch.why.resize(1);
    batch.remaining = 1;
    ThreadScratch scratch;
    recipe::materialize(batch, 0, scratch);
    return batch.status[0] == Status::Done ? Outcome::Ok : failed(c, batch.why[0].c_str());
  }

  const int outputs_;
};

class RecipeOnGpu : public stoker::gpu::Kernel {
 public:
  RecipeOnGpu(std::shared_ptr<const stoker::gpu::Function> function, int outputs)
      : function_(std::move(function)), outputs_(outputs) {}

  Ports ports() const override { return ports_of(outputs_, true); }
  bool fits(const Call& c) const override { return is_dense(c); }
  size_t slot_bytes() const override { return sizeof(gpu::Row); }

  Outcome run(const Call& c) const override {
    try {
      const RecipeInputs inputs(*c.host_in[1], *c.host_in[2], c.in[2]->data);
      const std::vector<RecordedStep> steps = read_steps(inputs.steps, inputs.end);
      const gpu::Row row = gpu::describe(steps, *c.in[0], inputs.tables, {c.out, c.out + outputs_}, *c.memory);
      std::memcpy(c.slot, &row, sizeof row);
      return Outcome::Ok;
    } catch (const InvalidRecipe& bad) { return failed(c, bad.why); }
  }

  void launch(stoker::gpu::Batch& batch) const override {
    const auto* rows = reinterpret_cast<const gpu::Row*>(batch.slots());
    std::vector<uint32_t> order;
    for (int64_t i = 0; i < batch.rows(); ++i)
      if (batch.active(i) && rows[i].count > 0) order.push_back(static_cast<uint32_t>(i));
    if (order.empty()) return;
    // Rows with the most work first, so that none of them is left at the end.
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

std::shared_ptr<Kernel> make_recipe(int outputs) {
  require_outputs(outputs);
  return std::make_shared<RecipeOnCpu>(outputs);
}

std::shared_ptr<stoker::gpu::Kernel> make_gpu_recipe(stoker::gpu::Functions functions, int outputs) {
  if (functions.size() != 1) throw std::invalid_argument("expected one function");
  require_outputs(outputs);
  return std::make_shared<RecipeOnGpu>(std::move(functions[0]), outputs);
}

const Registered kRecipe{"recipe", "A row by the steps of its own recipe.", make_recipe, {{"outputs", "how many"}}};
const RegisteredOnGpu kRecipeOnGpu{"recipe",
                                   "A row by the steps of its own recipe.",
                                   make_gpu_recipe,
                                   {{"functions", "stoker_recipe"}, {"outputs", "how many"}}};

}  // namespace

}  // namespace stoker::recipe
