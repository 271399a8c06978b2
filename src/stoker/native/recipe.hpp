// SPDX-License-Identifier: Apache-2.0
// Recipes: what is to be done with one file, written down as numbers while another program draws its parameters.
//
// A plan is made once for a graph that all rows share. Where every row has a chain of its own (a take-over records what
// a user's script does with each image) there is nothing to plan: a row's recipe is interpreted, step by step, with the
// same kernels that plans are made of, so that the bits are the same.
//
// All images are 8 bits, [H,W,C] with one or three channels, as Pillow's modes L and RGB.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tensor.hpp"

namespace stoker::recipe {

// A recipe is a list of steps; step i makes image i out of image `from` < i. As numbers: op, from, then parameters;
// -1: their number comes first.
// The order is part of the Python side's contract (frontends/torchvision/recipe.py).
#define STOKER_RECIPE_OPS(X)                                                                               \
  X(Decode, 5)     /* channels, window x0 y0 x1 y1; from = -1: the recipe's file */                         \
  X(Pixels, 8)     /* height width channels of the recipe's bytes, 1 if [C,H,W]; window x0 y0 x1 y1; from = -1 */ \
  X(Crop, 4)       /* x0 y0 x1 y1, inside of the image */                                                   \
  X(Resize, 8)     /* height width, box y0 y1 x0 x1, filter, 1 if always horizontal first */                 \
  X(Transpose, 1)  /* Pillow's Transpose: 0 left-right, 1 top-bottom, 2 90, 3 180, 4 270, 5, 6 */           \
  X(Affine, 12)    /* height width, matrix of six, linear, fill of three */                                 \
  X(Pad, 7)        /* left top height width, fill of three */                                               \
  X(Map, 1)        /* a table of 8 bits */                                                                  \
  X(Luma, 0)       /* three channels to one, as Pillow's convert("L") */                                    \
  X(Spread, 0)     /* one channel to three */                                                               \
  X(Contrast, 1)   /* factor; Pillow's ImageEnhance.Contrast */                                             \
  X(Saturate, 1)   /* factor; Pillow's ImageEnhance.Color */                                                \
  X(Hue, 1)        /* what is added to the hue, 0 to 255, around */                                         \
  X(Autocontrast, 0) /* Pillow's ImageOps.autocontrast, without cutoff */                                   \
  X(Equalize, 0)   /* Pillow's ImageOps.equalize */                                                         \
  X(Sharpen, 1)    /* factor; Pillow's ImageEnhance.Sharpness */                                            \
  X(Project, 15)   /* height width, matrix of eight, projective, sampling (warp_project.hpp), fill of three */  \
  X(PadEdges, 5)   /* left top height width, border (border.hpp) */                                         \
  X(Correlate, -1) /* how many follow: height width, then weights; sums as torch's, edges reflected */      \
  X(TorchResize, 3)  /* height width, filter (torch_resize.hpp) */                                          \
  X(TorchPick, 3)  /* height width, exact */                                                                \
  X(TorchLuma, 1)  /* generation; three channels to one, as torchvision's rgb_to_grayscale of tensors */    \
  X(TorchContrast, 2)  /* generation (torch_color.hpp), factor */                                           \
  X(TorchSaturate, 2)  /* generation, factor */                                                             \
  X(TorchHue, 1)   /* what is added to the hue, -0.5 to 0.5 */                                              \
  X(TorchSharpen, 2)  /* generation, factor */                                                              \
  X(TorchAutocontrast, 1)  /* generation */                                                                 \
  X(TorchEqualize, 0)                                                                                       \
  X(TorchWarp, 16) /* height width, grid of eight, projective, linear, fills, fill of three (torch_warp.hpp) */ \
  X(TorchGrid, 8)  /* height width, linear, fills, fill of three, a table: the grid's bytes */               \
  X(Channels, 3)   /* which channel comes first, second, third */                                           \
  X(Blur, 4)       /* radii across and down, passes, 1 if the radii are deviations of bells (box_blur.hpp) */ \
  X(Mix, -1)       /* how many follow: a table, then image and table of others; sums of floats, truncated */ \
  X(StorePixels, 2)  /* output, first byte: [H,W,C] as they are */                                          \
  X(Store, 3)      /* output, first byte, table or -1: [C,H,W] of the output's type */

enum class Op : int32_t {
#define STOKER_RECIPE_NAME(name, count) name,
  STOKER_RECIPE_OPS(STOKER_RECIPE_NAME)
#undef STOKER_RECIPE_NAME
  kCount
};

// Pillow's HSV of one pixel, and back, in its arithmetic (float and double as there).
void hsv_of_rgb(const uint8_t rgb[3], uint8_t hsv[3]);
void rgb_of_hsv(const uint8_t hsv[3], uint8_t rgb[3]);

// Pillow's blend of one value: float, truncating.
uint8_t blend(int from, int to, float factor);

// ImageEnhance.Sharpness of the inside of a row, `step` bytes between pixels: bytes [step, count - step) of `to`.
void sharpen_row(const uint8_t* row, int64_t down, int64_t step, int64_t count, float factor, uint8_t* to);

struct Source {
  const uint8_t* data;
  size_t size;
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
  Left,    // the file is damaged or of a kind that another decoder does: nothing was made
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
