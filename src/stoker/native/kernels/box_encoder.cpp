// SPDX-License-Identifier: Apache-2.0
// Boxes as targets of anchors.
#include <cmath>
#include <cstring>
#include <string>

#include "kernels/registry.hpp"
#include "run/job.hpp"
#include "shared/box_encoding.hpp"

namespace stoker {

namespace {

using box_encoding::Box;

// Inputs: boxes, labels, anchors. Parameters: the IoU that a match exceeds, the scale, four means, four deviations.
// Outputs: a box and a label for each anchor.
class BoxEncoder : public Kernel {
 public:
  explicit BoxEncoder(bool offsets) : offsets_(offsets) {}
  Ports ports() const override {
    return {.kernel = "box_encoder",
            .in = {port_of(DType::F32, 2), port_of(DType::I32, 1), port_of(DType::F32, 2)},
            .out = {{.types = types(DType::F32), .same_rank = 2, .same_extents = 2}, port_of(DType::I32, 1)},
            .params = 10};
  }
  bool fits(const Call& c) const override {
    const View &boxes = *c.in[0], &labels = *c.in[1], &anchors = *c.in[2];
    if (boxes.shape[1] == 4 && labels.shape[0] == boxes.shape[0] && anchors.shape[1] == 4 && anchors.shape[0] > 0 &&
        c.out[1]->shape[0] == anchors.shape[0] && boxes.shape[0] < (int64_t{1} << 31))
      return true;
    *c.error = "expected boxes of four numbers with a label each, at least one anchor, and memory for all anchors";
    return false;
  }
  Outcome run(const Call& c) const override {
    const View &boxes = *c.in[0], &anchors = *c.in[2];
    const int64_t count = boxes.shape[0], anchor_count = anchors.shape[0];
    const auto most = static_cast<float>(c.params[0]);
    box_encoding::Scheme scheme{static_cast<float>(c.params[1]), {}, {}};
    for (int k = 0; k < 4; ++k) {
      scheme.mean[k] = static_cast<float>(c.params[2 + k]);
      scheme.deviation[k] = static_cast<float>(c.params[6 + k]);
    }
    // Per anchor, the box that matches best and its IoU; each box takes its best anchor before.
    auto* best = reinterpret_cast<float*>(c.work[0].get(static_cast<size_t>(anchor_count) * sizeof(float)));
    auto* taken = reinterpret_cast<int32_t*>(c.work[1].get(static_cast<size_t>(anchor_count) * sizeof(int32_t)));
    for (int64_t m = 0; m < anchor_count; ++m) {
      best[m] = -1;
      taken[m] = 0;
    }
    for (int64_t i = 0; i < count; ++i) {
      const Box box = box_at(boxes, i);
      int64_t own = 0;
      float largest = -1;
      for (int64_t m = 0; m < anchor_count; ++m) {
        const float iou = box_encoding::overlap(box, box_at(anchors, m));
        if (iou >= largest) {
          largest = iou;
          own = m;
        }
        if (iou >= best[m]) {
          best[m] = iou;
          taken[m] = static_cast<int32_t>(i);
        }
      }
      best[own] = 2;  // a later box with the same best anchor takes it over
      taken[own] = static_cast<int32_t>(i);
    }
    auto* out = reinterpret_cast<float*>(c.out[0]->data);
    auto* labels = reinterpret_cast<int32_t*>(c.out[1]->data);
    for (int64_t m = 0; m < anchor_count; ++m) {
      const box_encoding::Centred anchor = centred(box_at(anchors, m));
      box_encoding::Centred target = anchor;
      labels[m] = 0;
      if (best[m] > most) {
        const box_encoding::Centred box = centred(box_at(boxes, taken[m]));
        target = offsets_ ? offsets(box, anchor, scheme) : box;
        std::memcpy(&labels[m], c.in[1]->data + taken[m] * c.in[1]->stride[0], sizeof labels[m]);
      } else if (offsets_) {
        target = {};
      }
      const float numbers[] = {target.x, target.y, target.width, target.height};
      std::memcpy(out + 4 * m, numbers, sizeof numbers);
    }
    return Outcome::Ok;
  }

 private:
  static Box box_at(const View& boxes, int64_t i) {
    const uint8_t* p = boxes.data + i * boxes.stride[0];
    float x[4];
    for (int k = 0; k < 4; ++k) std::memcpy(&x[k], p + k * boxes.stride[1], sizeof x[k]);
    return {x[0], x[1], x[2], x[3]};
  }
  bool offsets_;
};

std::shared_ptr<Kernel> make_box_encoder(bool offsets) { return std::make_shared<BoxEncoder>(offsets); }

const Registered kBoxEncoder{"box_encoder",
                             "Targets of anchors from boxes.",
                             make_box_encoder,
                             {{"offsets", "boxes are offsets from their anchors"}}};

}  // namespace

}  // namespace stoker
