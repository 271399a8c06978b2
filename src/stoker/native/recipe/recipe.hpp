// SPDX-License-Identifier: Apache-2.0
// Recipes: the processing of one file, recorded as numbers while a user's program draws its random parameters.
//
// A plan is built once for a graph that all rows share. Here every row may have a chain of its own (the take-over
// records what a user's script does with each image), so planning would not pay off. The recipe of a row is interpreted
// step by step instead, with the same kernels that plans use, so that the bits are the same.
//
// All images are [H,W,C] with one or three channels: 8 bits, as in Pillow's modes L and RGB, until a step converts them
// to floats.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "recipe/chain.hpp"
#include "base/tensor.hpp"
#include "base/thread.hpp"
#include "shared/pillow_color.hpp"
#include "shared/recipe_ops.hpp"
#include "torch/resize.hpp"

namespace stoker::recipe {

// ImageEnhance.Sharpness for the inside of a row, with `step` bytes between pixels: writes bytes [step, count - step)
// of `to`.
void sharpen_row(const uint8_t* row, int64_t down, int64_t step, int64_t count, float factor, uint8_t* to);

struct Source {
  const uint8_t* data;
  size_t size;
  bool is_file_ref = false;  // the bytes are a file reference (io/file_ref.hpp); the file is read when the recipe runs
};

// Lookup table of 256 values for each of `channels` channels; elements have 1, 2, 4 or 8 bytes.
struct Table {
  const uint8_t* data;
  int32_t item_bytes, channels;
  std::vector<Chain> chains = {};  // one per channel, if all channels have one
};

// Return a table with its chains.
Table table_of(const uint8_t* data, int32_t item_bytes, int32_t channels);

struct Output {
  uint8_t* data;
  size_t size;
};

enum class Status : uint8_t {
  Pending,
  Done,
  Skipped,  // the file is damaged, gone, or for another decoder: nothing was computed
  Invalid   // the recipe is invalid; `why` has the reason
};

// Recipes that are materialized together. The caller owns the memory of sources, tables and outputs. Python and the
// worker threads share the object by a C++ reference: a thread could not release a Python reference without the GIL.
struct RecipeBatch : std::enable_shared_from_this<RecipeBatch> {
  std::vector<double> numbers;  // all recipes, concatenated
  std::vector<int64_t> starts;  // begin of each recipe, and the end
  std::vector<Source> sources;  // one per recipe
  std::vector<Table> tables;
  std::vector<Output> outputs;
  std::vector<Status> status;  // one per recipe
  std::vector<std::string> why;
  std::atomic<int64_t> next{0}, remaining{0};
  std::atomic<int64_t> thread_ns{0};  // time that threads have spent on the recipes, all threads added

  int64_t count() const { return static_cast<int64_t>(sources.size()); }
};

// Memory in which one thread computes images; reused from recipe to recipe.
struct ThreadScratch {
  std::vector<std::unique_ptr<Scratch>> images;
  Scratch work[2];
  Scratch file;
  torch_resize::ResizeCache resizes;
};

// Run recipe `index`. Never reads or writes out of bounds, whatever the recipe's numbers are.
void materialize(RecipeBatch& batch, int64_t index, ThreadScratch& scratch);

// Run all recipes on the caller's thread.
void materialize_all(RecipeBatch& batch);

// Worker pool for batches of recipes. The threads start with the first batch.
class WorkerPool {
 public:
  explicit WorkerPool(int threads);
  ~WorkerPool();
  void submit(std::shared_ptr<RecipeBatch> batch);             // throws ThreadStartFailed: then nothing runs
  void prioritize(const std::shared_ptr<RecipeBatch>& batch);  // ahead of all others
  bool wait(const std::shared_ptr<RecipeBatch>& batch, double timeout_s);
  void set_active(int threads);  // at most this many threads run recipes at a time; at least one does
  void close();                  // waits for the recipes that are running; the status of the others stays Pending

 private:
  struct State;
  static void work(State* state);
  State* state_;  // leaked by a forked child, which does not have the parent's threads
};

}  // namespace stoker::recipe
