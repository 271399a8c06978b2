// SPDX-License-Identifier: Apache-2.0
// Boxes as targets of anchors.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "base/simd.hpp"
#include "kernels/registry.hpp"
#include "run/job.hpp"
#include "shared/box_encoding.hpp"

namespace stoker {

namespace {

using box_encoding::Box;

Box box_at(const View& boxes, int64_t i) {
  const uint8_t* p = boxes.data + i * boxes.stride[0];
  float x[4];
  for (int k = 0; k < 4; ++k) std::memcpy(&x[k], p + k * boxes.stride[1], sizeof x[k]);
  return {x[0], x[1], x[2], x[3]};
}

// Per anchor, the box that matches best and its IoU.
struct Matches {
  float* best;
  int32_t* taken;
};

constexpr float kOwn = 2;  // above each IoU: a common part is rounded to at most the area of either box

// Match anchors [begin, end) with a box, and return the last anchor with the largest IoU in `own`.
void match_plain(const Box& box, int32_t number, const View& anchors, int64_t begin, int64_t end, const Matches& to,
                 float* largest, int32_t* own) {
  for (int64_t m = begin; m < end; ++m) {
    const float iou = box_encoding::overlap(box, box_at(anchors, m));
    if (iou >= *largest) {
      *largest = iou;
      *own = static_cast<int32_t>(m);
    }
    if (iou >= to.best[m]) {
      to.best[m] = iou;
      to.taken[m] = number;
    }
  }
}

constexpr int kLanes = 8;
typedef float Floats __attribute__((vector_size(32)));
typedef int32_t Ints __attribute__((vector_size(32)));

// The largest IoU of a box and its last anchor, for the anchors of each lane.
struct LaneBest {
  Floats largest;
  Ints own;
};

template <class V>
STOKER_WIDE inline V chosen(const Ints& mask, const V& yes, const V& no) {
  Ints a, b;
  std::memcpy(&a, &yes, sizeof a);
  std::memcpy(&b, &no, sizeof b);
  a = (a & mask) | (b & ~mask);
  V result;
  std::memcpy(&result, &a, sizeof result);
  return result;
}

// match_plain() for all boxes and groups of eight anchors, of which each is loaded once. `anchors`: contiguous.
STOKER_WIDE void match_groups(const Box* boxes, int32_t count, const float* anchors, int64_t groups, const Matches& to,
                              LaneBest* lanes) {
  for (int64_t g = 0; g < groups; ++g) {
    Floats row[4];  // two anchors in each
    for (int k = 0; k < 4; ++k) std::memcpy(&row[k], anchors + kLanes * (4 * g + k), sizeof row[k]);
    const Floats a = __builtin_shufflevector(row[0], row[1], 0, 4, 8, 12, 2, 6, 10, 14);
    const Floats b = __builtin_shufflevector(row[2], row[3], 0, 4, 8, 12, 2, 6, 10, 14);
    const Floats c = __builtin_shufflevector(row[0], row[1], 1, 5, 9, 13, 3, 7, 11, 15);
    const Floats d = __builtin_shufflevector(row[2], row[3], 1, 5, 9, 13, 3, 7, 11, 15);
    const Floats side[4] = {__builtin_shufflevector(a, b, 0, 1, 2, 3, 8, 9, 10, 11),
                            __builtin_shufflevector(c, d, 0, 1, 2, 3, 8, 9, 10, 11),
                            __builtin_shufflevector(a, b, 4, 5, 6, 7, 12, 13, 14, 15),
                            __builtin_shufflevector(c, d, 4, 5, 6, 7, 12, 13, 14, 15)};
    const Floats area = (side[2] - side[0]) * (side[3] - side[1]);
    Floats best = Floats{} - 1;
    Ints taken{};
    const Ints at = Ints{0, 1, 2, 3, 4, 5, 6, 7} + static_cast<int32_t>(kLanes * g);
    for (int32_t i = 0; i < count; ++i) {
      const Box& box = boxes[i];
      const Floats l = box.left - Floats{}, t = box.top - Floats{}, r = box.right - Floats{}, u = box.bottom - Floats{};
      const Floats width = chosen(r < side[2], r, side[2]) - chosen(l > side[0], l, side[0]);
      const Floats height = chosen(u < side[3], u, side[3]) - chosen(t > side[1], t, side[1]);
      const Floats common = width * height;
      const Floats whole = ((box.right - box.left) * (box.bottom - box.top) - Floats{}) + area - common;
      const Floats iou = chosen((width > 0) & (height > 0), common / whole, Floats{});
      LaneBest& lane = lanes[i];
      const Ints larger = iou >= lane.largest, better = iou >= best;
      lane.largest = chosen(larger, iou, lane.largest);
      lane.own = chosen(larger, at, lane.own);
      best = chosen(better, iou, best);
      taken = chosen(better, Ints{} + i, taken);
    }
    std::memcpy(to.best + kLanes * g, &best, sizeof best);
    std::memcpy(to.taken + kLanes * g, &taken, sizeof taken);
  }
}
bool any_above(const float* lanes, float least) {
  bool any = false;
  for (int k = 0; k < kLanes; ++k) any |= lanes[k] > least;
  return any;
}

// Match all anchors with all boxes; each box takes the last anchor with the largest IoU, later boxes before earlier ones.
void match_all_wide(const View& boxes, const View& anchors, const Matches& to, Scratch& scratch) {
  const auto count = static_cast<int32_t>(boxes.shape[0]);
  const int64_t groups = anchors.shape[0] / kLanes;
  const size_t room = static_cast<size_t>(count) * sizeof(LaneBest);
  uint8_t* const memory = scratch.get(room + static_cast<size_t>(count) * sizeof(Box) + alignof(LaneBest));
  const auto over = reinterpret_cast<uintptr_t>(memory) % alignof(LaneBest);
  auto* const lanes = reinterpret_cast<LaneBest*>(memory + (over ? alignof(LaneBest) - over : 0));
  auto* const box = reinterpret_cast<Box*>(lanes + count);
  for (int32_t i = 0; i < count; ++i) {
    lanes[i] = {Floats{} - 1, Ints{}};
    box[i] = box_at(boxes, i);
  }
  match_groups(box, count, reinterpret_cast<const float*>(anchors.data), groups, to, lanes);
  for (int64_t m = groups * kLanes; m < anchors.shape[0]; ++m) {
    to.best[m] = -1;
    to.taken[m] = 0;
  }
  for (int32_t i = 0; i < count; ++i) {
    float largest = -1;
    int32_t own = 0;
    for (int k = 0; k < kLanes; ++k) {
      const float one = lanes[i].largest[k];
      if (one < largest || (one == largest && lanes[i].own[k] < own)) continue;
      largest = one;
      own = lanes[i].own[k];
    }
    match_plain(box[i], i, anchors, groups * kLanes, anchors.shape[0], to, &largest, &own);
    lanes[i].own[0] = own;
  }
  for (int32_t i = 0; i < count; ++i) {
    to.best[lanes[i].own[0]] = kOwn;
    to.taken[lanes[i].own[0]] = i;
  }
}

void match_all_plain(const View& boxes, const View& anchors, const Matches& to) {
  for (int64_t m = 0; m < anchors.shape[0]; ++m) {
    to.best[m] = -1;
    to.taken[m] = 0;
  }
  for (int64_t i = 0; i < boxes.shape[0]; ++i) {
    float largest = -1;
    int32_t own = 0;
    match_plain(box_at(boxes, i), static_cast<int32_t>(i), anchors, 0, anchors.shape[0], to, &largest, &own);
    to.best[own] = kOwn;  // a later box with the same best anchor takes it over
    to.taken[own] = static_cast<int32_t>(i);
  }
}

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
    const int64_t anchor_count = anchors.shape[0];
    const auto most = static_cast<float>(c.params[0]);
    box_encoding::Scheme scheme{static_cast<float>(c.params[1]), {}, {}};
    for (int k = 0; k < 4; ++k) {
      scheme.mean[k] = static_cast<float>(c.params[2 + k]);
      scheme.deviation[k] = static_cast<float>(c.params[6 + k]);
    }
    const Matches found{reinterpret_cast<float*>(c.work[0].get(static_cast<size_t>(anchor_count) * sizeof(float))),
                        reinterpret_cast<int32_t*>(c.work[1].get(static_cast<size_t>(anchor_count) * sizeof(int32_t)))};
    const bool dense = anchors.stride[1] == int64_t{sizeof(float)} && anchors.stride[0] == 4 * anchors.stride[1];
    if (dense && has_wide()) match_all_wide(boxes, anchors, found, c.work[2]);
    else match_all_plain(boxes, anchors, found);
    auto* out = reinterpret_cast<float*>(c.out[0]->data);
    auto* labels = reinterpret_cast<int32_t*>(c.out[1]->data);
    if (offsets_) std::memset(out, 0, static_cast<size_t>(anchor_count) * 4 * sizeof(float));
    std::memset(labels, 0, static_cast<size_t>(anchor_count) * sizeof *labels);
    for (int64_t m = 0; m < anchor_count; ++m) {
      if (offsets_ && m % kLanes == 0)  // most anchors match no box
        while (m + kLanes <= anchor_count && !any_above(found.best + m, most)) m += kLanes;
      if (m == anchor_count) break;
      const bool matched = found.best[m] > most;
      if (offsets_ && !matched) continue;
      const box_encoding::Centred anchor = centred(box_at(anchors, m));
      box_encoding::Centred target = anchor;
      if (matched) {
        const box_encoding::Centred box = centred(box_at(boxes, found.taken[m]));
        target = offsets_ ? offsets(box, anchor, scheme) : box;
        std::memcpy(&labels[m], c.in[1]->data + found.taken[m] * c.in[1]->stride[0], sizeof labels[m]);
      }
      const float numbers[] = {target.x, target.y, target.width, target.height};
      std::memcpy(out + 4 * m, numbers, sizeof numbers);
    }
    return Outcome::Ok;
  }

 private:
  bool offsets_;
};

std::shared_ptr<Kernel> make_box_encoder(bool offsets) { return std::make_shared<BoxEncoder>(offsets); }

const Registered kBoxEncoder{"box_encoder",
                             "Targets of anchors from boxes.",
                             make_box_encoder,
                             {{"offsets", "boxes are offsets from their anchors"}}};

}  // namespace

}  // namespace stoker
