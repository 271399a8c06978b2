// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "detect/columns.hpp"
#include "detect/nms.hpp"
#include "shared/box_overlap.hpp"
#include "shared/xmath.hpp"

namespace stoker::detect {

namespace {

template <class T>
struct Box {
  T x0, y0, x1, y1, area, score;
  int64_t number, label;
};

template <class T>
T overlap(const Box<T>& a, const Box<T>& b) {
  return box_overlap(a.x0, a.y0, a.x1, a.y1, a.area, b.x0, b.y0, b.x1, b.y1, b.area);
}

template <class T>
int64_t soft_nms_of(const View& boxes, const View& scores, const View* labels, const SoftRule& rule, int64_t most,
                    int64_t* keep, uint8_t* decayed, Scratch* scratch) {
  const int64_t total = scores.shape[0];
  auto* const all = reinterpret_cast<Box<T>*>(scratch[0].get(static_cast<size_t>(total) * sizeof(Box<T>)));
  const T least = static_cast<T>(rule.least), above = least_above<T>(rule.threshold);
  int64_t n = 0;
  for (int64_t i = 0; i < total; ++i) {
    Box<T> b{element<T>(boxes, i, 0),
             element<T>(boxes, i, 1),
             element<T>(boxes, i, 2),
             element<T>(boxes, i, 3),
             T{0},
             element<T>(scores, i),
             i,
             labels ? element<int64_t>(*labels, i) : 0};
    b.area = (b.x1 - b.x0) * (b.y1 - b.y0);
    if (b.score >= least) all[n++] = b;
  }
  const auto weight = [&](T iou) {
    if (rule.decay == Decay::Linear) return iou >= above ? T{1} - iou : T{1};
    const auto x = static_cast<double>(iou);
    return static_cast<T>(xm::exp(-(x * x) / rule.sigma));
  };
  int64_t best = 0;
  for (int64_t i = 1; i < n; ++i)
    if (all[i].score > all[best].score) best = i;
  int64_t count = 0;
  while (n > 0 && count < most) {
    const Box<T> chosen = all[best];
    keep[count] = chosen.number;
    std::memcpy(decayed + count * static_cast<int64_t>(sizeof(T)), &chosen.score, sizeof(T));
    ++count;
    // One pass decays the remaining scores, closes the gaps, which keeps the order, and finds the next box.
    int64_t to = 0;
    const int64_t skipped = best;
    best = 0;
    for (int64_t i = 0; i < n; ++i) {
      if (i == skipped) continue;
      Box<T> b = all[i];
      if (b.label == chosen.label) {
        const T iou = overlap(chosen, b);
        if (iou > T{0}) b.score *= weight(iou);  // also skips a NaN, of two boxes without area
      }
      if (!(b.score >= least)) continue;
      all[to] = b;
      if (b.score > all[best].score) best = to;
      ++to;
    }
    n = to;
  }
  return count;
}

}  // namespace

int64_t soft_nms(const View& boxes, const View& scores, const View* labels, const SoftRule& rule, int64_t most,
                 int64_t* keep, uint8_t* decayed, Scratch* scratch) {
  const auto form = boxes.dtype == DType::F64 ? soft_nms_of<double> : soft_nms_of<float>;
  return form(boxes, scores, labels, rule, most, keep, decayed, scratch);
}

}  // namespace stoker::detect
