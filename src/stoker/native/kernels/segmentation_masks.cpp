// SPDX-License-Identifier: Apache-2.0
// Kernel that paints the segmentation of an image: polygons and run lengths.
#include <cstring>
#include <memory>
#include <string>

#include "container/masks.hpp"
#include "kernels/registry.hpp"
#include "plan/plan.hpp"

namespace stoker {

namespace {

class SegmentationMasks : public Kernel {
 public:
  Ports ports() const override {
    return {.kernel = "segmentation_masks", .in = {port_of(DType::I32, 1)}, .out = {port_of(DType::I32, 3)}};
  }
  bool fits(const Call& c) const override {
    if (c.out[0]->shape[2] == 1 && c.in[0]->contiguous()) return true;
    *c.error = "expected an image of one channel, and words one after the other";
    return false;
  }
  Outcome run(const Call& c) const override {
    const View &words = *c.in[0], &out = *c.out[0];
    const LabelImage image{reinterpret_cast<int32_t*>(out.data), out.shape[0], out.shape[1]};
    std::memset(out.data, 0, static_cast<size_t>(out.elements()) * sizeof(int32_t));
    if (paint_parts(reinterpret_cast<const int32_t*>(words.data), words.shape[0], image, c.work[0])) return Outcome::Ok;
    *c.error = "expected polygons and run lengths of an image of " + std::to_string(image.height) + " x " +
               std::to_string(image.width) + " pixels, got others";
    return Outcome::Error;
  }
};

std::shared_ptr<Kernel> make_segmentation_masks() { return std::make_shared<SegmentationMasks>(); }

const Registered kSegmentationMasks{
    "segmentation_masks",
    "An image of the labels of polygons and run lengths. Later ones are painted over earlier ones.",
    make_segmentation_masks};

}  // namespace

}  // namespace stoker
