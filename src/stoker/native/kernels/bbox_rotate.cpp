// SPDX-License-Identifier: Apache-2.0
// Boxes of a rotated image.
#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "kernels/registry.hpp"
#include "run/job.hpp"

namespace stoker {

namespace {

// The Python side (ops/geometry/bbox_rotate.py) relies on the order of the enumerators.
enum class Extent : uint8_t { Expand, Fixed, Halfway };

// Places of the numbers of a box.
struct BoxNumbers {
  int32_t x, y, second_x, second_y;
  bool extents, normalized;
};

// Input: boxes, float32. Parameters: cosine, sine, height, width, those of the canvas, the least share that is left.
// Outputs: the boxes that are left, their numbers, and how many they are.
class RotateBoxes : public Kernel {
 public:
  RotateBoxes(Extent extent, BoxNumbers numbers) : extent_(extent), numbers_(numbers) {}
  Ports ports() const override {
    return {.kernel = "bbox_rotate",
            .in = {port_of(DType::F32, 2)},
            .out = {port_of(DType::F32, 2), port_of(DType::I32, 1), port_of(DType::I32, 0)},
            .params = 7};
  }
  bool fits(const Call& c) const override {
    const int64_t n = c.in[0]->shape[0];
    if (c.in[0]->shape[1] == 4 && c.out[0]->shape[0] == n && c.out[0]->shape[1] == 4 && c.out[1]->shape[0] == n &&
        n < (int64_t{1} << 31))
      return true;
    *c.error = "expected boxes of four numbers, and memory for all of them";
    return false;
  }
  Outcome run(const Call& c) const override {
    const View& boxes = *c.in[0];
    const double height = c.params[2], width = c.params[3], least = c.params[6];
    const Canvas canvas{c.params[0], c.params[1], c.params[4], c.params[5]};
    int32_t kept = 0;
    for (int64_t i = 0; i < boxes.shape[0]; ++i) {
      const auto at = [&](int32_t k) {
        float x;
        std::memcpy(&x, boxes.data + i * boxes.stride[0] + k * boxes.stride[1], sizeof x);
        return static_cast<double>(x);
      };
      Side x{at(numbers_.x), at(numbers_.second_x)}, y{at(numbers_.y), at(numbers_.second_y)};
      if (numbers_.extents) {
        x.high += x.low;
        y.high += y.low;
      }
      if (!(x.low <= x.high && y.low <= y.high)) {
        *c.error = "expected boxes whose ends are not below their starts, got box " + std::to_string(i);
        return Outcome::Error;
      }
      if (numbers_.normalized) {
        x = {x.low * width, x.high * width};
        y = {y.low * height, y.high * height};
      }
      turn(canvas, width, height, &x, &y);
      const double whole = (x.high - x.low) * (y.high - y.low);
      x = {std::clamp(x.low, 0.0, canvas.width), std::clamp(x.high, 0.0, canvas.width)};
      y = {std::clamp(y.low, 0.0, canvas.height), std::clamp(y.high, 0.0, canvas.height)};
      const double left = (x.high - x.low) * (y.high - y.low);
      if (!(left > 0 && left >= least * whole)) continue;
      if (numbers_.normalized) {
        x = {x.low / canvas.width, x.high / canvas.width};
        y = {y.low / canvas.height, y.high / canvas.height};
      }
      auto* to = reinterpret_cast<float*>(c.out[0]->data) + 4 * int64_t{kept};
      to[numbers_.x] = static_cast<float>(x.low);
      to[numbers_.y] = static_cast<float>(y.low);
      to[numbers_.second_x] = static_cast<float>(numbers_.extents ? x.high - x.low : x.high);
      to[numbers_.second_y] = static_cast<float>(numbers_.extents ? y.high - y.low : y.high);
      reinterpret_cast<int32_t*>(c.out[1]->data)[kept++] = static_cast<int32_t>(i);
    }
    std::memcpy(c.out[2]->data, &kept, sizeof kept);
    return Outcome::Ok;
  }

 private:
  struct Canvas {
    double cosine, sine, height, width;
  };
  struct Side {
    double low, high;
  };

  // Turn the corners about the centre of the image, and enclose them.
  void turn(const Canvas& canvas, double width, double height, Side* x, Side* y) const {
    const double own_width = x->high - x->low, own_height = y->high - y->low;
    const double xs[] = {x->low - width / 2, x->high - width / 2}, ys[] = {y->low - height / 2, y->high - height / 2};
    Side new_x{}, new_y{};
    for (int i = 0; i < 4; ++i) {
      const double px = canvas.cosine * xs[i & 1] + canvas.sine * ys[i >> 1] + canvas.width / 2;
      const double py = canvas.cosine * ys[i >> 1] - canvas.sine * xs[i & 1] + canvas.height / 2;
      new_x = i ? Side{std::min(new_x.low, px), std::max(new_x.high, px)} : Side{px, px};
      new_y = i ? Side{std::min(new_y.low, py), std::max(new_y.high, py)} : Side{py, py};
    }
    *x = new_x;
    *y = new_y;
    if (extent_ == Extent::Expand) return;
    const double now_width = new_x.high - new_x.low, now_height = new_y.high - new_y.low;
    const bool flipped = (own_width > own_height) != (now_width > now_height);
    shrink(x, now_width, flipped ? own_height : own_width);
    shrink(y, now_height, flipped ? own_width : own_height);
  }
  void shrink(Side* side, double now, double own) const {
    const double off = (now - own) / (extent_ == Extent::Fixed ? 2 : 4);
    side->low += off;
    side->high -= off;
  }
  Extent extent_;
  BoxNumbers numbers_;
};

std::shared_ptr<Kernel> make_bbox_rotate(Extent extent, std::vector<int32_t> numbers, bool extents, bool normalized) {
  std::vector<int32_t> sorted(numbers);
  std::sort(sorted.begin(), sorted.end());
  if (extent > Extent::Halfway || sorted != std::vector<int32_t>{0, 1, 2, 3})
    throw std::invalid_argument("expected a mode, and each number of a box once");
  return std::make_shared<RotateBoxes>(extent,
                                       BoxNumbers{numbers[0], numbers[1], numbers[2], numbers[3], extents, normalized});
}

const Registered kRotateBoxes{"bbox_rotate",
                              "Boxes of a rotated image.",
                              make_bbox_rotate,
                              {{"extent", "an Extent"},
                               {"numbers", "places of x, y and the second x, y in a box"},
                               {"extents", "the second numbers are extents"},
                               {"normalized", "numbers are relative to the image"}}};

}  // namespace

}  // namespace stoker
