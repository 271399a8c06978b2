// SPDX-License-Identifier: Apache-2.0
// Kernels that read more than one pixel per output: histograms and filters.
#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "base/whole.hpp"
#include "filter/correlate.hpp"
#include "filter/histogram.hpp"
#include "kernels/image_axes.hpp"
#include "kernels/registry.hpp"
#include "plan/check.hpp"
#include "run/job.hpp"
#include "shared/bell.hpp"
#include "shared/half.hpp"

namespace stoker {

namespace {

constexpr int64_t kMaxTaps = 1 << 24;  // maximum width and height of a window
constexpr Types kFiltered =
    types(DType::U8, DType::U16, DType::I8, DType::I16, DType::F16, DType::F32);  // those of filter/correlate.hpp

class Equalize : public Kernel {
 public:
  explicit Equalize(ImageAxes axes) : axes_(axes) {}
  Ports ports() const override {
    const PortRule bytes{.types = types(DType::U8), .most_rank = 4};
    return {.kernel = "equalize", .in = {bytes}, .out = {{.types = types(DType::U8), .same_extents = 0}}};
  }
  void check(const StepFacts& step) const override { require_axes(step, axes_); }
  Outcome run(const Call& c) const override {
    const View from = framed(*c.in[0], axes_), to = framed(*c.out[0], axes_);
    const int64_t channels = from.shape[3];
    auto* counts = reinterpret_cast<int64_t*>(c.work[0].get(static_cast<size_t>(channels) * 256 * sizeof(int64_t)));
    uint8_t* const tables = c.work[1].get(static_cast<size_t>(channels) * 256);
    for (int64_t f = 0; f < from.shape[0]; ++f) {
      const View a = frame(from, f);
      std::fill_n(counts, 256 * channels, 0);
      histogram::count(a, counts);
      for (int64_t k = 0; k < channels; ++k) histogram::equalized(counts + 256 * k, tables + 256 * k);
      histogram::apply(a, tables, 256, frame(to, f));
    }
    return Outcome::Ok;
  }

 private:
  ImageAxes axes_;
};

// Correlation. Inputs: image, weights [h,w] of F32, and with a constant border a value. Parameters: top, left.
class Filter : public Kernel {
 public:
  Filter(ImageAxes axes, int border) : axes_(axes), border_(static_cast<Border>(border)) {
    if (border < 0 || border_ > Border::Constant) throw std::invalid_argument("expected a border mode");
  }
  Ports ports() const override {
    return {.kernel = "filter",
            .in = {{.types = kFiltered, .most_rank = 4}, {.least_rank = 2, .most_rank = 2}},
            .out = {{.types = kFiltered, .same_rank = 0}},
            .params = 3};
  }
  void check(const StepFacts& step) const override { require_axes(step, axes_); }
  bool fits(const Call& c) const override {
    const View from = framed(*c.in[0], axes_), to = framed(*c.out[0], axes_);
    const View& weights = *c.in[1];
    if (from.shape[0] != to.shape[0] || from.shape[3] != to.shape[3]) {
      *c.error = "expected as many frames and channels as the input has";
      return false;
    }
    if (std::max(weights.shape[0], weights.shape[1]) <= kMaxTaps) return true;
    *c.error = "expected a filter of at most " + std::to_string(kMaxTaps) + " elements on a side";
    return false;
  }
  Outcome run(const Call& c) const override {
    const View& weights = *c.in[1];
    correlate::Window window{nullptr, weights.shape[0], weights.shape[1], offset_of(c.params[0]),
                             offset_of(c.params[1])};
    auto* values = reinterpret_cast<float*>(c.work[1].get(static_cast<size_t>(weights.elements()) * sizeof(float) + 4));
    for (int64_t i = 0; i < weights.elements(); ++i) values[i] = static_cast<float>(read_element(weights, i));
    window.weights = values;
    window.border = border_;
    if (border_ == Border::Constant) window.fill = static_cast<float>(c.params[2]);
    const View from = framed(*c.in[0], axes_), to = framed(*c.out[0], axes_);
    for (int64_t f = 0; f < from.shape[0]; ++f)
      if (!correlate::correlate(frame(from, f), window, frame(to, f), c.work[0])) {
        *c.error = "an image without pixels, or a filter without elements, cannot be filtered";
        return Outcome::Error;
      }
    return Outcome::Ok;
  }

 private:
  ImageAxes axes_;
  Border border_;
};

// Gaussian blur, vertical and then horizontal. Parameters: sigma and window size, vertical and horizontal.
class Blur : public Kernel {
 public:
  explicit Blur(ImageAxes axes) : axes_(axes) {}
  Ports ports() const override {
    return {.kernel = "blur",
            .in = {{.types = kFiltered, .most_rank = 4}},
            .out = {{.types = kFiltered, .same_extents = 0}},
            .params = 4};
  }
  void check(const StepFacts& step) const override { require_axes(step, axes_); }
  Outcome run(const Call& c) const override {
    const View from = framed(*c.in[0], axes_), to = framed(*c.out[0], axes_);
    const int64_t down = offset_of(c.params[1]), across = offset_of(c.params[3]);
    if (down < 1 || across < 1 || std::max(down, across) > kMaxTaps) {
      *c.error = "expected a window of 1 to " + std::to_string(kMaxTaps) + " pixels on a side, got " +
                 std::to_string(down) + "x" + std::to_string(across);
      return Outcome::Error;
    }
    auto* weights = reinterpret_cast<float*>(c.work[1].get(static_cast<size_t>(down + across) * sizeof(float)));
    bell(c.params[0], down, weights);
    bell(c.params[2], across, weights + down);
    const correlate::Window rows{weights + down, 1, across, 0, across / 2}, columns{weights, down, 1, down / 2, 0};
    for (int64_t f = 0; f < from.shape[0]; ++f)
      if (!correlate::correlate_twice(frame(from, f), rows, columns, frame(to, f), c.work[0])) {
        *c.error = "an image without pixels cannot be blurred";
        return Outcome::Error;
      }
    return Outcome::Ok;
  }

 private:
  static void bell(double sigma, int64_t size, float* weights) {
    double sum = 0;
    for (int64_t i = 0; i < size; ++i) sum += correlate::bell_at(i, size, sigma);
    for (int64_t i = 0; i < size; ++i) weights[i] = static_cast<float>(correlate::bell_at(i, size, sigma) / sum);
  }
  ImageAxes axes_;
};

std::shared_ptr<Kernel> make_equalize(int32_t frame, int32_t height, int32_t width, int32_t channel) {
  return std::make_shared<Equalize>(ImageAxes{frame, height, width, channel});
}
std::shared_ptr<Kernel> make_filter(int32_t frame, int32_t height, int32_t width, int32_t channel, int border) {
  return std::make_shared<Filter>(ImageAxes{frame, height, width, channel}, border);
}
std::shared_ptr<Kernel> make_blur(int32_t frame, int32_t height, int32_t width, int32_t channel) {
  return std::make_shared<Blur>(ImageAxes{frame, height, width, channel});
}

const Registered kEqualize{"equalize",
                           "Histogram equalization of every channel.",
                           make_equalize,
                           {{"frame", kAxis}, {"height", kAxis}, {"width", kAxis}, {"channel", kAxis}}};
const Registered kFilter{"filter",
                         "Correlation with a window of weights.",
                         make_filter,
                         {{"frame", kAxis},
                          {"height", kAxis},
                          {"width", kAxis},
                          {"channel", kAxis},
                          {"border", "a Border of filter/correlate.hpp"}}};
const Registered kBlur{
    "blur", "Gaussian blur.", make_blur, {{"frame", kAxis}, {"height", kAxis}, {"width", kAxis}, {"channel", kAxis}}};

}  // namespace

}  // namespace stoker
