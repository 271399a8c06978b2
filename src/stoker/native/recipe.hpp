// SPDX-License-Identifier: Apache-2.0
// Recipes: what is to be done with one file, written down as numbers while another program draws its parameters.
//
// A plan is made once for a graph that all rows share. Where every row has a chain of its own (a take-over records what
// a user's script does with each image) there is nothing to plan: a row's recipe is interpreted, step by step, with the
// same kernels that plans are made of, so that the bits are the same.
//
// All images are [H,W,C] with one or three channels: 8 bits, as Pillow's modes L and RGB, until a step makes them floats.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "pillow_color.hpp"
#include "recipe_ops.hpp"
#include "tensor.hpp"

namespace stoker::recipe {

// ImageEnhance.Sharpness of the inside of a row, `step` bytes between pixels: bytes [step, count - step) of `to`.
void sharpen_row(const uint8_t* row, int64_t down, int64_t step, int64_t count, float factor, uint8_t* to);

struct Source {
  const uint8_t* data;
  size_t size;
  bool told = false;  // the bytes tell of a file (told_file.hpp), which is read when the recipe is made
};

// What 256 values become, for each of `channels` channels; elements of 1, 2, 4 or 8 bytes.
struct Table {
  const uint8_t* data;
  int32_t item_bytes, channels;
};

struct Output {
  uint8_t* data;
  size_t size;
};

enum class Status : uint8_t {
  Pending,
  Done,
  Left,    // the file is damaged, not there any more, or of a kind that another decoder does: nothing was made
  Invalid  // the recipe is; `why` says what is wrong
};

// Recipes that are made together: a batch. The memory of sources, tables and outputs is the caller's.
// Shared by Python and the threads; not through a Python reference, which a thread could not drop without the GIL.
struct Order : std::enable_shared_from_this<Order> {
  std::vector<double> numbers;       // all recipes, one after the other
  std::vector<int64_t> starts;       // count + 1
  std::vector<Source> sources;       // one per recipe
  std::vector<Table> tables;
  std::vector<Output> outputs;
  std::vector<Status> status;        // one per recipe
  std::vector<std::string> why;
  std::atomic<int64_t> next{0}, remaining{0};

  int64_t count() const { return static_cast<int64_t>(sources.size()); }
};

// The memory that one thread makes images in.
struct Bench {
  std::vector<std::unique_ptr<Scratch>> images;
  Scratch work[2];
  Scratch file;
};

// Makes recipe `index`; never reads or writes out of bounds, whatever the numbers say.
void make(Order& order, int64_t index, Bench& bench);

// Makes all of them on the caller's thread.
void make_all(Order& order);

// Threads that make orders. They start with the first one.
class Crew {
 public:
  explicit Crew(int threads);
  ~Crew();
  void submit(std::shared_ptr<Order> order);
  void hasten(const std::shared_ptr<Order>& order);  // before all others
  bool wait(const std::shared_ptr<Order>& order, double timeout_s);
  void close();  // after the recipes in hand; what is left of an order stays Pending

 private:
  struct State;
  static void work(State* state);
  State* state_;  // leaked by a forked child, whose parent's threads it does not have
};

}  // namespace stoker::recipe
