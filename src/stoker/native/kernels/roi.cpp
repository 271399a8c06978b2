// SPDX-License-Identifier: Apache-2.0
#include "detect/roi.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "kernels/registry.hpp"

namespace stoker {

namespace {

constexpr Types kFloats = types(DType::F32, DType::F64);
static_assert(detect::kRoiAreas <= kWorkAreas);

// Inputs: features [C,H,W], boxes [N,4]. Outputs: [N,C,h,w], or [N,h,w,C]. Parameter: the spatial scale.
class OnRegions : public Kernel {
 public:
  OnRegions(const char* name, int64_t height, int64_t width, bool channels_last)
      : name_(name), height_(height), width_(width), channels_last_(channels_last) {}
  Ports ports() const override {
    return {.kernel = name_,
            .in = {{.types = kFloats, .least_rank = 3, .most_rank = 3},
                   {.types = kFloats, .least_rank = 2, .most_rank = 2, .same_type = 0}},
            .out = {{.types = kFloats, .least_rank = 4, .most_rank = 4, .same_type = 0}},
            .params = 1};
  }
  bool fits(const Call& c) const override {
    const View &x = *c.in[0], &boxes = *c.in[1], out = planar(*c.out[0]);
    if (boxes.shape[1] == 4 && out.shape[0] == boxes.shape[0] && out.shape[1] == x.shape[0] &&
        out.shape[2] == height_ && out.shape[3] == width_)
      return true;
    *c.error = "expected boxes of shape (N, 4), and memory for N regions of the features' channels";
    return false;
  }

 protected:
  // The axes of the output as [N,C,h,w].
  View planar(const View& v) const {
    if (!channels_last_) return v;
    View p = v;
    constexpr int kFrom[4] = {0, 3, 1, 2};
    for (int i = 0; i < 4; ++i) {
      p.shape[i] = v.shape[kFrom[i]];
      p.stride[i] = v.stride[kFrom[i]];
    }
    return p;
  }
  static View as_batch(const View& x) {
    View v = x;
    v.rank = 4;
    v.shape[0] = 1;
    v.stride[0] = 0;
    std::copy(x.shape, x.shape + 3, v.shape + 1);
    std::copy(x.stride, x.stride + 3, v.stride + 1);
    return v;
  }
  // The boxes as regions of the first map.
  static View as_regions(const View& boxes, Scratch& scratch) {
    const int64_t size = size_of(boxes.dtype);
    View v = boxes;
    v.shape[1] = 5;
    v.set_contiguous_strides();
    v.data = scratch.get(static_cast<size_t>(5 * boxes.shape[0] * size));
    for (int64_t i = 0; i < boxes.shape[0]; ++i) {
      uint8_t* const to = v.data + 5 * i * size;
      std::memset(to, 0, static_cast<size_t>(size));
      for (int64_t k = 0; k < 4; ++k)
        std::memcpy(to + (k + 1) * size, boxes.data + i * boxes.stride[0] + k * boxes.stride[1],
                    static_cast<size_t>(size));
    }
    return v;
  }
  int64_t height() const { return height_; }
  int64_t width() const { return width_; }

 private:
  const char* name_;
  int64_t height_, width_;
  bool channels_last_;
};

class RoiAlign : public OnRegions {
 public:
  RoiAlign(detect::RoiAlign rule, bool channels_last, bool writes_chosen)
      : OnRegions("roi_align", rule.height, rule.width, channels_last), rule_(rule), writes_chosen_(writes_chosen) {}
  Ports ports() const override {
    Ports p = OnRegions::ports();
    if (writes_chosen_) p.out.push_back(port_of(DType::I32, 4));
    return p;
  }
  bool fits(const Call& c) const override {
    if (!OnRegions::fits(c)) return false;
    if (!writes_chosen_ || c.out[1]->has_extents_of(*c.out[0])) return true;
    *c.error = "expected memory for a number of each output";
    return false;
  }
  Outcome run(const Call& c) const override {
    detect::RoiAlign rule = rule_;
    rule.scale = c.params[0];
    const View features = as_batch(*c.in[0]), regions = as_regions(*c.in[1], c.work[3]), out = planar(*c.out[0]);
    if (!detect::can_align(features, regions, rule, *c.error)) return Outcome::Error;
    const View chosen = writes_chosen_ ? planar(*c.out[1]) : View{};
    detect::roi_align(features, regions, rule, out, writes_chosen_ ? &chosen : nullptr, c.work);
    return Outcome::Ok;
  }

 private:
  detect::RoiAlign rule_;
  bool writes_chosen_;
};

class RoiPool : public OnRegions {
 public:
  RoiPool(int64_t height, int64_t width, bool channels_last) : OnRegions("roi_pool", height, width, channels_last) {}
  Outcome run(const Call& c) const override {
    const View features = as_batch(*c.in[0]), regions = as_regions(*c.in[1], c.work[3]);
    if (!detect::can_pool(features, regions, c.params[0], *c.error)) return Outcome::Error;
    detect::roi_pool(features, regions, c.params[0], planar(*c.out[0]), nullptr, c.work);
    return Outcome::Ok;
  }
};

void require_bins(int64_t height, int64_t width) {
  constexpr int64_t kMost = 1 << 15;
  if (height < 1 || width < 1 || height > kMost || width > kMost)
    throw std::invalid_argument("expected 1 to 2**15 bins along each axis");
}

std::shared_ptr<Kernel> make_roi_align(int64_t height, int64_t width, int64_t samples, bool aligned, bool maximum,
                                       bool channels_last, bool writes_chosen) {
  require_bins(height, width);
  if (samples > 1 << 15) throw std::invalid_argument("expected at most 2**15 samples along each axis of a bin");
  const detect::RoiAlign rule{1,       height,  width,
                              samples, aligned, maximum ? detect::Pool::Maximum : detect::Pool::Average};
  return std::make_shared<RoiAlign>(rule, channels_last, maximum && writes_chosen);
}

std::shared_ptr<Kernel> make_roi_pool(int64_t height, int64_t width, bool channels_last) {
  require_bins(height, width);
  return std::make_shared<RoiPool>(height, width, channels_last);
}

const Registered kRoiAlign{"roi_align",
                           "Average or maximum of samples in the bins of regions.",
                           make_roi_align,
                           {{"height", "bins"},
                            {"width", "bins"},
                            {"samples", "per bin and axis; 0: by the size of the bin"},
                            {"aligned", "shift the samples by half a pixel"},
                            {"maximum", "take the maximum of the samples"},
                            {"channels_last", "the output is [N,h,w,C]"},
                            {"writes_chosen", "a second output has the number of the sample that is the maximum"}}};
const Registered kRoiPool{"roi_pool",
                          "Maximum of the pixels in the bins of regions.",
                          make_roi_pool,
                          {{"height", "bins"}, {"width", "bins"}, {"channels_last", "the output is [N,h,w,C]"}}};

}  // namespace

}  // namespace stoker
