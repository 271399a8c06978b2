// SPDX-License-Identifier: Apache-2.0
// Validated reading of a recipe's numbers, whose writer is not trusted; shared by the CPU's interpreter and the GPU's
// description.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "filter/box_blur.hpp"
#include "shared/recipe_ops.hpp"
#include "shared/torch_sum.hpp"
#include "torch/resize_float.hpp"

namespace stoker::recipe {

// Thrown for a recipe that cannot be run; `why` has the reason.
struct InvalidRecipe {
  const char* why;
};

constexpr int kParameters[] = {
#define STOKER_RECIPE_COUNT(name, count, on_gpu, fields) count,
    STOKER_RECIPE_OPS(STOKER_RECIPE_COUNT)
#undef STOKER_RECIPE_COUNT
};
constexpr bool kOnGpu[] = {
#define STOKER_RECIPE_ON_GPU(name, count, on_gpu, fields) on_gpu,
    STOKER_RECIPE_OPS(STOKER_RECIPE_ON_GPU)
#undef STOKER_RECIPE_ON_GPU
};
constexpr int64_t kMaxSide = 1 << 24;

inline int64_t whole(double x) {
  if (!(std::fabs(x) < 0x1p40) || x != std::floor(x)) throw InvalidRecipe{"a number that should be whole and is not"};
  return static_cast<int64_t>(x);
}

inline int64_t side(double x) {
  const int64_t n = whole(x);
  if (n < 1 || n > kMaxSide) throw InvalidRecipe{"an image without pixels, or larger than can be addressed"};
  return n;
}

inline uint8_t byte(double x) {
  const int64_t n = whole(x);
  if (n < 0 || n > 255) throw InvalidRecipe{"a colour outside of 0 to 255"};
  return static_cast<uint8_t>(n);
}

// One recorded step; `from` is the number of the image that it takes, or -1.
struct RecordedStep {
  Op op;
  int64_t from;
  const double* p;
  int64_t count;  // number of values in p
};

inline std::vector<RecordedStep> read_steps(const double* at, const double* end) {
  std::vector<RecordedStep> steps;
  while (at < end) {
    const int64_t op = whole(at[0]);
    if (op < 0 || op >= static_cast<int64_t>(Op::kCount)) throw InvalidRecipe{"an unknown step"};
    int64_t count = kParameters[op];
    if (count < 0 && end - at > 2) count = 1 + std::max<int64_t>(whole(at[2]), 0);
    if (count < 0 || end - at < 2 + count) throw InvalidRecipe{"a step that ends early"};
    steps.push_back({static_cast<Op>(op), whole(at[1]), at + 2, count});
    at += 2 + count;
  }
  return steps;
}

// Call f(number) for the images that a step takes in addition to `from`.
template <class F>
void each_other_image(const RecordedStep& step, F&& f) {
  if (step.op == Op::Mix)
    for (int64_t i = 2; i + 1 < step.count; i += 2) f(step.p[i]);
  if (step.op == Op::Blend) f(step.p[0]);
}

// Return the order in which torch adds up values for a mean.
inline torch_sum::Order order_of(const double* p) {
  const auto number = [](double x) { return static_cast<int>(std::clamp<int64_t>(whole(x), -1, 1 << 20)); };
  return {number(p[0]), number(p[1])};
}

// Return torch's resize filter.
inline torch_resize::Filter filter_of(double x, bool smooth) {
  const int64_t filter = whole(x);
  if (filter < 0 || filter > (smooth ? 2 : 1)) throw InvalidRecipe{"an unknown filter"};
  return static_cast<torch_resize::Filter>(filter);
}
inline torch_resize::Way way_of(double filter, double x) {
  const int64_t number = whole(x);
  filter_of(filter, false);
  if (number < 0 || number > static_cast<int64_t>(torch_resize::Way::Rounded))
    throw InvalidRecipe{"an unknown way to resize"};
  const auto way = static_cast<torch_resize::Way>(number);
  if (way == torch_resize::Way::Together && filter != 0) throw InvalidRecipe{"an unknown way to resize"};
  return way;
}

// Operations on single floats with one number per channel. The Python side relies on the order of the enumerators
// (frontends/torchvision/tensors/floats.py).
enum class Pointwise : int64_t {
  Add = 0,
  Subtract,
  SubtractFrom,
  Multiply,
  Divide,
  AtLeast,
  AtMost,
  Floor,
  Solarize,
  kCount
};

// Radius of a blur step, horizontal (0) or vertical (1).
inline float radius_of(const double* p, int axis) {
  const auto radius = static_cast<float>(p[axis]);
  return p[3] != 0 ? box_blur::radius_of_bell(radius, static_cast<int>(whole(p[2]))) : radius;
}

// Window of stored values and its replacement.
struct Patch {
  int64_t item, height, width, c0, c1, y0, y1, x0, x1;
  bool one;                                                     // a single value for all channels
  int64_t bytes() const { return c1 * height * width * item; }  // size of the image, up to its end
  int64_t values() const { return one ? 1 : (c1 - c0) * (y1 - y0) * (x1 - x0); }
};

inline Patch patch_of(const double* p) {
  const Patch q{whole(p[2]), side(p[3]),  side(p[4]),  whole(p[5]),  whole(p[6]),
                whole(p[7]), whole(p[8]), whole(p[9]), whole(p[10]), p[11] != 0};
  if (q.item != 1 && q.item != 2 && q.item != 4 && q.item != 8)
    throw InvalidRecipe{"values of other than 1, 2, 4 or 8 bytes"};
  if (q.c0 < 0 || q.c0 > q.c1 || q.c1 > 3 || q.y0 < 0 || q.y0 > q.y1 || q.y1 > q.height || q.x0 < 0 || q.x0 > q.x1 ||
      q.x1 > q.width)
    throw InvalidRecipe{"a patch that leaves the image"};
  return q;
}

}  // namespace stoker::recipe
