// SPDX-License-Identifier: Apache-2.0
// Random windows that keep boxes, as in the training of single-shot detectors.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/whole.hpp"
#include "kernels/registry.hpp"
#include "kernels/row_stream.hpp"

namespace stoker {

namespace {

constexpr int kMostAxes = 3;
constexpr int64_t kMostAttempts = 10'000;  // without `total_num_attempts`

// A box or a window by its two corners, relative to the image.
struct Corners {
  float low[kMostAxes], high[kMostAxes];
};

struct Window {
  Corners at;
  double anchor[kMostAxes], shape[kMostAxes];  // as they are delivered
};

struct CropRules {
  int32_t axes;
  std::vector<int32_t> low, high;  // per axis, where a box has its two numbers
  bool extents;                    // the second number is an extent
  std::vector<double> thresholds;
  bool overlap, all, may_keep_all;
  std::vector<double> ratios, scaling;  // pairs of limits for x/y, x/z, y/z
  int64_t attempts, total;
  double prune;  // below 0: by the centre
  bool has_crop, has_input;
};

// Input: boxes, float32. Parameters: the extents of a fixed crop, the image's extents. Outputs: anchor, shape, the boxes
// that are left, their numbers, and how many they are.
class RandomBoxCrop : public Kernel {
 public:
  RandomBoxCrop(DrawName name, CropRules rules) : name_(name), rules_(std::move(rules)) {}
  Ports ports() const override {
    return {.kernel = "random_bbox_crop",
            .in = {port_of(DType::F32, 2)},
            .out = {port_of(DType::F32, 1), port_of(DType::F32, 1), port_of(DType::F32, 2), port_of(DType::I32, 1),
                    port_of(DType::I32, 0)},
            .params = rules_.axes * (rules_.has_crop + rules_.has_input)};
  }
  bool fits(const Call& c) const override {
    const int64_t axes = rules_.axes, n = c.in[0]->shape[0];
    if (c.in[0]->shape[1] == 2 * axes && c.out[0]->shape[0] == axes && c.out[1]->shape[0] == axes &&
        c.out[2]->shape[0] == n && c.out[2]->shape[1] == 2 * axes && c.out[3]->shape[0] == n && n < (int64_t{1} << 31))
      return true;
    *c.error = "expected boxes of " + std::to_string(2 * axes) + " numbers, and memory for all of them";
    return false;
  }
  Outcome run(const Call& c) const override {
    const int64_t n = c.in[0]->shape[0];
    auto* boxes = reinterpret_cast<Corners*>(c.work[0].get(static_cast<size_t>(n + 1) * sizeof(Corners)));
    if (!read_boxes(*c.in[0], boxes, c.error)) return Outcome::Error;
    Window window;
    bool whole = false;
    if (!search(c, boxes, n, &window, &whole)) return Outcome::Error;
    for (int k = 0; k < rules_.axes; ++k) {
      reinterpret_cast<float*>(c.out[0]->data)[k] = static_cast<float>(window.anchor[k]);
      reinterpret_cast<float*>(c.out[1]->data)[k] = static_cast<float>(window.shape[k]);
    }
    int32_t kept = 0;
    for (int64_t i = 0; i < n; ++i) {
      if (!whole && !keeps(window.at, boxes[i])) continue;
      float* to = reinterpret_cast<float*>(c.out[2]->data) + int64_t{kept} * 2 * rules_.axes;
      if (whole) copy_box(*c.in[0], i, to);
      else write_box(window.at, boxes[i], to);
      reinterpret_cast<int32_t*>(c.out[3]->data)[kept++] = static_cast<int32_t>(i);
    }
    std::memcpy(c.out[4]->data, &kept, sizeof kept);
    return Outcome::Ok;
  }

 private:
  static float number(const View& boxes, int64_t i, int64_t k) {
    float x;
    std::memcpy(&x, boxes.data + i * boxes.stride[0] + k * boxes.stride[1], sizeof x);
    return x;
  }
  void copy_box(const View& boxes, int64_t i, float* to) const {
    for (int k = 0; k < 2 * rules_.axes; ++k) to[k] = number(boxes, i, k);
  }
  bool read_boxes(const View& from, Corners* to, std::string* error) const {
    for (int64_t i = 0; i < from.shape[0]; ++i)
      for (int k = 0; k < rules_.axes; ++k) {
        const float low = number(from, i, rules_.low[static_cast<size_t>(k)]);
        const float second = number(from, i, rules_.high[static_cast<size_t>(k)]);
        const float high = rules_.extents ? low + second : second;
        if (!(low >= 0 && low <= high && high <= 1)) {
          *error = "expected boxes within [0, 1], with the end not below the start, got " + std::to_string(low) +
                   " to " + std::to_string(high) + " in box " + std::to_string(i);
          return false;
        }
        to[i].low[k] = low;
        to[i].high[k] = high;
      }
    return true;
  }

  bool search(const Call& c, const Corners* boxes, int64_t n, Window* window, bool* whole) const {
    philox::Stream s = name_.of(c);
    const int64_t options = static_cast<int64_t>(rules_.thresholds.size()) + rules_.may_keep_all;
    const int64_t most = rules_.total > 0 ? rules_.total : kMostAttempts;
    double best = -1;
    Window proposal;
    for (int64_t tried = 0; tried < most;) {
      const int64_t option = draw_below(&s, options);
      if (option == static_cast<int64_t>(rules_.thresholds.size())) {
        *whole = true;
        for (int k = 0; k < rules_.axes; ++k) {
          window->anchor[k] = 0;
          window->shape[k] = 1;
        }
        return true;
      }
      for (int64_t i = 0; i < rules_.attempts && tried < most; ++i, ++tried) {
        if (!(rules_.has_crop ? place_crop(c.params, &s, &proposal) : propose(c.params, &s, &proposal))) continue;
        double metric = n == 0 ? 1 : rules_.all ? HUGE_VAL : 0;
        bool any = n == 0;
        for (int64_t k = 0; k < n; ++k) {
          const double one = metric_of(proposal.at, boxes[k]);
          metric = rules_.all ? std::min(metric, one) : std::max(metric, one);
          any = any || keeps(proposal.at, boxes[k]);
        }
        if (metric > best) {
          best = metric;
          *window = proposal;
        }
        if (!any || !(metric >= rules_.thresholds[static_cast<size_t>(option)])) continue;
        *window = proposal;
        return true;
      }
    }
    if (rules_.total > 0 && best >= 0) return true;
    *c.error = best < 0 ? "expected a window with an aspect ratio within `aspect_ratio`, found none in " +
                              std::to_string(most) + " attempts; check `scaling` and `aspect_ratio`"
                        : "expected a window that satisfies `thresholds` and keeps a box, found none in " +
                              std::to_string(most) +
                              " attempts; lower `thresholds`, or set `total_num_attempts` to use the best window";
    return false;
  }

  // A window of the requested size at whole pixels; a larger one than the image contains the image.
  bool place_crop(const double* params, philox::Stream* s, Window* out) const {
    for (int k = 0; k < rules_.axes; ++k) {
      const double crop = params[k], extent = params[rules_.axes + k];
      const auto room = static_cast<double>(draw_below(s, offset_of(std::abs(extent - crop)) + 1));
      out->anchor[k] = crop <= extent ? room : -room;
      out->shape[k] = crop;
      out->at.low[k] = static_cast<float>(out->anchor[k] / extent);
      out->at.high[k] = static_cast<float>((out->anchor[k] + crop) / extent);
    }
    return true;
  }

  bool propose(const double* params, philox::Stream* s, Window* out) const {
    const int axes = rules_.axes;
    double side[kMostAxes], extent[kMostAxes];  // the window's in pixels, the image's
    for (int k = 0; k < axes; ++k) {
      extent[k] = rules_.has_input ? params[(rules_.has_crop ? axes : 0) + k] : 1;
      side[k] = (rules_.scaling[0] + (rules_.scaling[1] - rules_.scaling[0]) * s->uniform()) * extent[k];
    }
    fix_ratios(s, extent, side);
    for (int k = 0; k < axes; ++k)
      if (!(side[k] > 0)) return false;
    int pair = 0;
    for (int i = 0; i < axes; ++i)
      for (int j = i + 1; j < axes; ++j, ++pair) {
        const double low = limit(pair, 0), high = limit(pair, 1), slack = low == high ? 1e-9 : 0;
        const double ratio = side[i] / side[j];
        if (!(ratio >= low * (1 - slack) && ratio <= high * (1 + slack))) return false;
      }
    for (int k = 0; k < axes; ++k) {
      const double share = std::min(side[k] / extent[k], 1.0);
      const auto low = static_cast<float>((1 - share) * s->uniform());
      const auto length = static_cast<float>(share);
      out->anchor[k] = static_cast<double>(low);
      out->shape[k] = static_cast<double>(length);
      out->at.low[k] = low;
      out->at.high[k] = std::min(low + length, 1.0f);
    }
    return true;
  }

  double limit(int pair, int end) const {
    return rules_.ratios[rules_.ratios.size() > 2 ? static_cast<size_t>(2 * pair + end) : static_cast<size_t>(end)];
  }

  // If a ratio may have only one value, one random axis determines the others. Then all are scaled, so that the largest
  // share of the image that was drawn stays the largest.
  void fix_ratios(philox::Stream* s, const double* extent, double* side) const {
    const int axes = rules_.axes;
    bool fixed = false;
    for (int pair = 0; pair < (axes == 2 ? 1 : 3); ++pair) fixed = fixed || limit(pair, 0) == limit(pair, 1);
    if (!fixed) return;
    double drawn = 0, now = 0;
    bool known[kMostAxes] = {};
    known[draw_below(s, axes)] = true;
    double share[kMostAxes];
    for (int k = 0; k < axes; ++k) share[k] = side[k] / extent[k];
    for (int round = 0; round < axes; ++round) {
      int pair = 0;
      for (int i = 0; i < axes; ++i)
        for (int j = i + 1; j < axes; ++j, ++pair) {
          const double ratio = limit(pair, 0);
          if (ratio != limit(pair, 1) || known[i] == known[j]) continue;
          if (known[i]) side[j] = side[i] / ratio;
          else side[i] = side[j] * ratio;
          known[i] = known[j] = true;
        }
    }
    for (int k = 0; k < axes; ++k)
      if (known[k]) {
        drawn = std::max(drawn, share[k]);
        now = std::max(now, side[k] / extent[k]);
      }
    for (int k = 0; k < axes; ++k)
      if (known[k]) side[k] *= drawn / now;
  }

  double common(const Corners& a, const Corners& b) const {
    double product = 1;
    for (int k = 0; k < rules_.axes; ++k)
      product *= std::max(
          0.0, static_cast<double>(std::min(a.high[k], b.high[k])) - static_cast<double>(std::max(a.low[k], b.low[k])));
    return product;
  }
  double volume(const Corners& a) const {
    double product = 1;
    for (int k = 0; k < rules_.axes; ++k) product *= static_cast<double>(a.high[k]) - static_cast<double>(a.low[k]);
    return product;
  }
  static double share(double part, double whole) { return whole > 0 ? part / whole : 0; }
  double metric_of(const Corners& window, const Corners& box) const {
    const double both = common(window, box);
    return share(both, rules_.overlap ? volume(box) : volume(window) + volume(box) - both);
  }
  bool keeps(const Corners& window, const Corners& box) const {
    if (rules_.prune >= 0) {
      const double part = share(common(window, box), volume(box));
      return part > 0 && part >= rules_.prune;
    }
    for (int k = 0; k < rules_.axes; ++k) {
      const float centre = 0.5f * (box.low[k] + box.high[k]);
      if (!(centre >= window.low[k] && centre < window.high[k])) return false;
    }
    return true;
  }
  void write_box(const Corners& window, const Corners& box, float* to) const {
    for (int k = 0; k < rules_.axes; ++k) {
      const float extent = window.high[k] - window.low[k];
      const auto place = [&](float x) { return std::clamp((x - window.low[k]) / extent, 0.0f, 1.0f); };
      const float low = place(std::max(window.low[k], box.low[k])), high = place(std::min(window.high[k], box.high[k]));
      to[rules_.low[static_cast<size_t>(k)]] = low;
      to[rules_.high[static_cast<size_t>(k)]] = rules_.extents ? high - low : high;
    }
  }
  DrawName name_;
  CropRules rules_;
};

bool is_range(const std::vector<double>& x, size_t at, double least) {
  return std::isfinite(x[at + 1]) && x[at] >= least && x[at] <= x[at + 1] && x[at + 1] > 0;
}

std::shared_ptr<Kernel> make_random_bbox_crop(uint32_t draw, bool own_seed, uint64_t seed, int axes,
                                              std::vector<int32_t> low, std::vector<int32_t> high, bool extents,
                                              std::vector<double> thresholds, bool overlap, bool all, bool may_keep_all,
                                              std::vector<double> ratios, std::vector<double> scaling, int64_t attempts,
                                              int64_t total, double prune, bool has_crop, bool has_input) {
  if (axes < 2 || axes > kMostAxes) throw std::invalid_argument("expected boxes of 2 or 3 axes");
  std::vector<int32_t> places(low);
  places.insert(places.end(), high.begin(), high.end());
  std::sort(places.begin(), places.end());
  for (size_t k = 0; k < places.size(); ++k)
    if (places[k] != static_cast<int32_t>(k)) throw std::invalid_argument("expected each number of a box once");
  if (low.size() != static_cast<size_t>(axes) || high.size() != low.size())
    throw std::invalid_argument("expected two numbers of a box per axis");
  if (thresholds.empty() || attempts < 1 || (has_crop && (!has_input || may_keep_all)))
    throw std::invalid_argument("expected thresholds, attempts, and the image's extents for a fixed crop");
  if (ratios.size() != 2 && !(axes == 3 && ratios.size() == 6))
    throw std::invalid_argument("expected a range of ratios, or one per pair of axes");
  if (scaling.size() != 2 || !is_range(scaling, 0, 0) || scaling[1] > 1)
    throw std::invalid_argument("expected a range of shares of the image");
  for (size_t i = 0; i < ratios.size(); i += 2)
    if (!is_range(ratios, i, 0) || !(ratios[i] > 0)) throw std::invalid_argument("expected ranges of ratios above 0");
  return std::make_shared<RandomBoxCrop>(
      DrawName{draw, own_seed, seed},
      CropRules{axes, std::move(low), std::move(high), extents, std::move(thresholds), overlap, all, may_keep_all,
                std::move(ratios), std::move(scaling), attempts, total, prune, has_crop, has_input});
}

const Registered kRandomBoxCrop{"random_bbox_crop",
                                "A random window that keeps boxes, and these boxes in the window.",
                                make_random_bbox_crop,
                                {{"draw", kDrawId},
                                 {"own_seed", kOwnSeed},
                                 {"seed", ""},
                                 {"axes", "2 or 3"},
                                 {"low", "per axis, the number of a box that is its start"},
                                 {"high", "per axis, the number of a box that is its end or extent"},
                                 {"extents", "whether a box has extents instead of ends"},
                                 {"thresholds", ""},
                                 {"overlap", "the metric is the share of the box instead of IoU"},
                                 {"all", "all boxes must reach the threshold"},
                                 {"may_keep_all", "one outcome is no crop"},
                                 {"ratios", "ranges"},
                                 {"scaling", "range"},
                                 {"attempts", "per threshold"},
                                 {"total", "0: no maximum"},
                                 {"prune", "below 0: boxes are kept by their centre"},
                                 {"has_crop", "fixed extents"},
                                 {"has_input", "the image's extents"}}};

}  // namespace

}  // namespace stoker
