// SPDX-License-Identifier: Apache-2.0
#include "detect/iou.hpp"
#include "kernels/registry.hpp"

namespace stoker {

namespace {

// Inputs: two sets of boxes. Output: the overlap of each pair.
class BoxIou : public Kernel {
 public:
  BoxIou(detect::Overlap kind, bool rotated) : kind_(kind), rotated_(rotated) {}
  Ports ports() const override {
    const Types floats = types(DType::F32, DType::F64);
    return {.kernel = "box_iou",
            .in = {{.types = floats, .least_rank = 2, .most_rank = 2},
                   {.types = floats, .least_rank = 2, .most_rank = 2, .same_type = 0}},
            .out = {{.types = floats, .least_rank = 2, .most_rank = 2, .same_type = 0}}};
  }
  bool fits(const Call& c) const override {
    const View &a = *c.in[0], &b = *c.in[1], &out = *c.out[0];
    const int64_t numbers = rotated_ ? 5 : 4;
    if (a.shape[1] == numbers && b.shape[1] == numbers && out.shape[0] == a.shape[0] && out.shape[1] == b.shape[0])
      return true;
    *c.error = "expected boxes of shape (N, " + std::to_string(numbers) + ") and (M, " + std::to_string(numbers) +
               "), and memory for N x M overlaps";
    return false;
  }
  Outcome run(const Call& c) const override {
    if (rotated_) detect::overlaps_rotated(*c.in[0], *c.in[1], *c.out[0]);
    else detect::overlaps(*c.in[0], *c.in[1], kind_, *c.out[0]);
    return Outcome::Ok;
  }

 private:
  detect::Overlap kind_;
  bool rotated_;
};

std::shared_ptr<Kernel> make_box_iou(int64_t kind, bool rotated) {
  if (kind < 0 || kind > 3 || (rotated && kind != 0))
    throw std::invalid_argument("expected `kind` 0 to 3, and 0 for rotated boxes");
  return std::make_shared<BoxIou>(static_cast<detect::Overlap>(kind), rotated);
}

const Registered kBoxIou{"box_iou",
                         "Overlaps of all pairs of boxes.",
                         make_box_iou,
                         {{"kind", "0: intersection over union, 1: generalized, 2: distance, 3: complete"},
                          {"rotated", "boxes have an angle"}}};

}  // namespace

}  // namespace stoker
