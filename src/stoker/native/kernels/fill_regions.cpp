// SPDX-License-Identifier: Apache-2.0
// Regions of a tensor that are filled, any number of them: a table of their bounds, and the fill.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/elements.hpp"
#include "base/whole.hpp"
#include "kernels/registry.hpp"
#include "kernels/store_scalar.hpp"
#include "pixel/copy.hpp"
#include "plan/check.hpp"
#include "plan/scalar.hpp"

namespace stoker {

namespace {

// Number of values of a tensor for one frame, if it has some for each frame, and otherwise of the whole tensor.
int64_t values_per_frame(const View& v, bool by_frame) {
  if (!by_frame) return v.elements();
  return v.shape[0] > 0 ? v.elements() / v.shape[0] : 0;
}

// Inputs: anchors, shapes, fill values; each may have values for each frame of a video, along its first axis. Outputs:
// start and end of each region along each axis of the tensor, [N,rank,2], with all regions of a frame before those of
// the next; fill values, [1 or frames,K]. Parameters: the extents of the tensor, of which the first is the number of
// frames.
class RegionTable : public Kernel {
 public:
  struct Form {
    std::vector<int64_t> axes;
    bool share_anchor, share_shape, centered, whole;
    bool anchor_by_frame, shape_by_frame, fill_by_frame;
    bool by_frame() const { return anchor_by_frame || shape_by_frame || fill_by_frame; }
  };
  explicit RegionTable(Form form) : form_(std::move(form)) {}
  Ports ports() const override {
    return {.kernel = "region_table",
            .in = {{}, {}, {}},
            .out = {port_of(DType::I64, 3), port_of(DType::F64, 2)},
            .params = 1};
  }
  void check(const StepFacts& step) const override {
    for (const int64_t axis : form_.axes)
      step.require(axis >= 0 && axis < step.params(), "axes", "axes of a tensor with " + std::to_string(step.params()),
                   std::to_string(axis));
    step.require(step.params() <= kMaxRank, "parameters", "at most 8 extents", std::to_string(step.params()));
    const bool by_frame[] = {form_.anchor_by_frame, form_.shape_by_frame, form_.fill_by_frame};
    for (size_t i = 0; i < 3; ++i)
      step.require(!by_frame[i] || step.in_rank(i) > 0, "input " + std::to_string(i), "an axis of frames", "none");
  }
  bool fits(const Call& c) const override {
    const bool by_frame[] = {form_.anchor_by_frame, form_.shape_by_frame, form_.fill_by_frame};
    const char* names[] = {"anchor", "shape", "fill_value"};
    const auto frames = saturated<int64_t>(c.params[0]);
    for (int i = 0; i < 3; ++i)
      if (by_frame[i] && c.in[i]->shape[0] != frames)
        return refuse(c, "expected `" + std::string(names[i]) + "` for " + std::to_string(frames) + " frames, got " +
                             std::to_string(c.in[i]->shape[0]));
    const int64_t anchors = values_per_frame(*c.in[0], form_.anchor_by_frame);
    const int64_t shapes = values_per_frame(*c.in[1], form_.shape_by_frame);
    const auto axes = static_cast<int64_t>(form_.axes.size());
    if ((anchors != 0 && anchors != shapes) || shapes % axes != 0)
      return refuse(c, "expected a number for each of " + std::to_string(axes) +
                           " axes and each region in `anchor` and `shape`, got " + std::to_string(anchors) + " and " +
                           std::to_string(shapes));
    const View &table = *c.out[0], &fills = *c.out[1];
    if (table.shape[0] != (form_.by_frame() ? frames : 1) * (shapes / axes) ||
        table.shape[1] != static_cast<int64_t>(c.param_count) || table.shape[2] != 2)
      return refuse(c, "expected memory for the bounds of each region");
    if (fills.shape[0] != (by_frame[2] ? frames : 1) ||
        fills.shape[1] != values_per_frame(*c.in[2], form_.fill_by_frame))
      return refuse(c, "expected memory for each fill value");
    return true;
  }
  Outcome run(const Call& c) const override {
    const auto rank = static_cast<int>(c.param_count);
    const auto axes = static_cast<int64_t>(form_.axes.size());
    const bool by_frame = form_.by_frame();
    const bool anchored = values_per_frame(*c.in[0], form_.anchor_by_frame) != 0;
    const int64_t per_frame = values_per_frame(*c.in[1], form_.shape_by_frame) / axes, regions = c.out[0]->shape[0];
    auto* bounds = reinterpret_cast<int64_t*>(c.out[0]->data);
    for (int64_t r = 0; r < regions; ++r, bounds += 2 * rank) {
      for (int a = 0; a < rank; ++a) {
        bounds[2 * a] = 0;
        bounds[2 * a + 1] = saturated<int64_t>(c.params[a], 0);
      }
      if (by_frame) {
        bounds[0] = r / per_frame;
        bounds[1] = bounds[0] + 1;
      }
      for (int64_t k = 0; k < axes; ++k) {
        const int64_t own = r % per_frame * axes + k, all = r * axes + k, a = form_.axes[static_cast<size_t>(k)];
        const double anchor = anchored ? read_element(*c.in[0], form_.anchor_by_frame ? all : own) : 0;
        const double shape = read_element(*c.in[1], form_.shape_by_frame ? all : own);
        if (!std::isfinite(anchor) || !std::isfinite(shape)) {
          refuse(c, std::string("expected finite numbers as `") + (std::isfinite(anchor) ? "shape" : "anchor") +
                        "`, got " + std::to_string(std::isfinite(anchor) ? shape : anchor));
          return Outcome::Error;
        }
        const auto [start, end] = limits(anchor, shape, c.params[a]);
        bounds[2 * a] = std::max(bounds[2 * a], start);
        bounds[2 * a + 1] = std::min(bounds[2 * a + 1], end);
      }
    }
    auto* values = reinterpret_cast<double*>(c.out[1]->data);
    for (int64_t i = 0, n = c.in[2]->elements(); i < n; ++i) values[i] = read_element(*c.in[2], i);
    return Outcome::Ok;
  }

 private:
  // Start and end along an axis.
  std::pair<int64_t, int64_t> limits(double anchor, double shape, double extent) const {
    // Each step is rounded to float32, as the reference does.
    const auto rounded = [this](double x) { return form_.whole ? x : static_cast<double>(static_cast<float>(x)); };
    const auto number = [&](bool is_share, double x) { return is_share ? rounded(rounded(x) * extent) : rounded(x); };
    double first = number(form_.share_anchor, anchor);
    const double size = number(form_.share_shape, shape);
    if (form_.centered) first = rounded(first - rounded(size / 2));
    const auto most = saturated<int64_t>(extent, 0);
    return {saturated<int64_t>(first, 0, most), saturated<int64_t>(rounded(first + size), 0, most)};
  }
  static bool refuse(const Call& c, std::string text) {
    *c.error = std::move(text);
    return false;
  }
  Form form_;
};

// Region and its bounds: [start, end) along each axis.
struct Bounds {
  int64_t start[kMaxRank], end[kMaxRank];
};

// Fill regions of a contiguous tensor.
template <class Memory>
class Filler {
 public:
  Filler(const View& out, int channel) : out_(out), channel_(channel) {}
  // `values` has one element, or one for each channel.
  void fill(const Bounds& region, const Memory* values, int64_t count) {
    const int rank = out_.rank;
    if (rank == 0) {
      put(0, 1, values, 1, 0);
      return;
    }
    for (int a = 0; a < rank; ++a)
      if (region.start[a] >= region.end[a]) return;
    // A run is contiguous: part of axis `inner`, and the axes after it whole. Values of channels that are not innermost
    // are constant in a run.
    int inner = rank - 1;
    while (inner > 0 && is_whole(region, inner) && (count == 1 || channel_ == rank - 1 || inner - 1 > channel_))
      --inner;
    int64_t length = 1;
    for (int a = inner + 1; a < rank; ++a) length *= out_.shape[a];
    int64_t at[kMaxRank];
    std::copy(region.start, region.start + rank, at);
    while (true) {
      int64_t offset = 0;
      for (int a = 0; a < rank; ++a) offset = offset * out_.shape[a] + at[a];
      const int64_t n = (region.end[inner] - region.start[inner]) * length;
      if (count == 1) put(offset, n, values, 1, 0);
      else if (channel_ == rank - 1) put(offset, n, values, count, inner == channel_ ? region.start[inner] : 0);
      else put(offset, n, values + at[channel_], 1, 0);
      int a = inner - 1;
      for (; a >= 0; --a) {
        if (++at[a] < region.end[a]) break;
        at[a] = region.start[a];
      }
      if (a < 0) return;
    }
  }

 private:
  bool is_whole(const Bounds& region, int axis) const {
    return region.start[axis] == 0 && region.end[axis] == out_.shape[axis];
  }
  Memory* to(int64_t offset) const { return reinterpret_cast<Memory*>(out_.data) + offset; }
  // Fill `n` elements with `period` alternating values, from number `first` on.
  void put(int64_t offset, int64_t n, const Memory* values, int64_t period, int64_t first) const {
    Memory* p = to(offset);
    if (period == 1) {
      std::fill(p, p + n, values[0]);
      return;
    }
    int64_t done = std::min(n, period);
    for (int64_t i = 0; i < done; ++i) p[i] = values[(first + i) % period];
    for (int64_t more = 0; done < n; done += more) {  // a whole number of periods is there
      more = std::min(done, n - done);
      std::memcpy(p + done, p, sizeof(Memory) * static_cast<size_t>(more));
    }
  }
  const View& out_;
  int channel_;
};

template <class Visit>
void with_memory(int64_t bytes, Visit&& visit) {
  switch (bytes) {
    case 1: visit(uint8_t{}); break;
    case 2: visit(uint16_t{}); break;
    case 4: visit(uint32_t{}); break;
    default: visit(uint64_t{});
  }
}

// Inputs: the tensor, its regions and their fill values, as RegionTable gives them. Regions of one frame share the
// frame's values. Parameter: the axis of the channels, -1: none. Regions may lie over each other, since overlapping ones have the same values.
class FillRegions : public Kernel {
 public:
  Ports ports() const override {
    return {.kernel = "fill_regions",
            .in = {{}, port_of(DType::I64, 3), port_of(DType::F64, 2)},
            .out = {{.same_type = 0, .same_extents = 0}},
            .params = 1};
  }
  bool fits(const Call& c) const override {
    const View &out = *c.out[0], &table = *c.in[1], &fills = *c.in[2];
    const int64_t channels = channel_of(c) < 0 ? 1 : out.shape[channel_of(c)];
    if (table.shape[1] != out.rank || table.shape[2] != 2 ||
        (fills.shape[0] != 1 && (fills.shape[0] == 0 || table.shape[0] % fills.shape[0] != 0))) {
      *c.error = "expected the bounds of each region along each axis";
      return false;
    }
    if (fills.shape[1] != 1 && fills.shape[1] != channels) {
      *c.error = "expected one fill value, or one for each of " + std::to_string(channels) + " channels, got " +
                 std::to_string(fills.shape[1]);
      return false;
    }
    return true;
  }
  Outcome run(const Call& c) const override {
    View& out = *c.out[0];
    if (out.elements() == 0) return Outcome::Ok;
    pixel::copy(*c.in[0], out);
    with_memory(size_of(out.dtype), [&]<class Memory>(Memory) { fill<Memory>(c, out); });
    return Outcome::Ok;
  }

 private:
  template <class Memory>
  void fill(const Call& c, const View& out) const {
    const View &table = *c.in[1], &fills = *c.in[2];
    const int64_t regions = table.shape[0], period = fills.shape[1], groups = fills.shape[0];
    auto* values = reinterpret_cast<Memory*>(c.work[0].get(static_cast<size_t>(groups * period) * sizeof(Memory)));
    for (int64_t i = 0; i < groups * period; ++i)
      store_scalar(reinterpret_cast<uint8_t*>(values + i), out.dtype, read_element(fills, i));
    Filler<Memory> filler(out, channel_of(c));
    for (int64_t r = 0; r < regions; ++r) {
      Bounds region;
      const uint8_t* p = table.data + r * table.stride[0];
      for (int a = 0; a < out.rank; ++a, p += table.stride[1]) {
        region.start[a] = std::max<int64_t>(load_element<int64_t>(p), 0);
        region.end[a] = std::min(load_element<int64_t>(p + table.stride[2]), out.shape[a]);
      }
      filler.fill(region, values + (groups > 1 ? r / (regions / groups) * period : 0), period);
    }
  }
  static int channel_of(const Call& c) { return saturated<int>(c.params[0], -1, c.out[0]->rank - 1); }
};

std::shared_ptr<Kernel> make_region_table(const std::vector<int64_t>& axes, std::tuple<bool, bool, bool, bool> form,
                                          std::tuple<bool, bool, bool> by_frame) {
  if (axes.empty()) throw std::invalid_argument("expected at least one axis");
  return std::make_shared<RegionTable>(RegionTable::Form{axes, std::get<0>(form), std::get<1>(form), std::get<2>(form),
                                                         std::get<3>(form), std::get<0>(by_frame),
                                                         std::get<1>(by_frame), std::get<2>(by_frame)});
}
std::shared_ptr<Kernel> make_fill_regions() { return std::make_shared<FillRegions>(); }

const Registered kRegionTable{
    "region_table",
    "Bounds of regions along each axis of a tensor, and their fill values.",
    make_region_table,
    {{"axes", "axes of the anchors and shapes"},
     {"form", "anchors are shares, shapes are shares, anchors are centres, all numbers are whole"},
     {"by_frame", "whether anchors, shapes and fill values are for each frame"}}};
const Registered kFillRegions{"fill_regions", "Tensor with filled regions.", make_fill_regions};

}  // namespace

}  // namespace stoker
