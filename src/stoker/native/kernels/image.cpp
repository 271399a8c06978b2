// SPDX-License-Identifier: Apache-2.0
// Kernels that read more than one pixel per output: histograms and filters.
#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/whole.hpp"
#include "filter/correlate.hpp"
#include "filter/histogram.hpp"
#include "kernels/registry.hpp"
#include "run/job.hpp"
#include "shared/bell.hpp"
#include "shared/half.hpp"

namespace stoker {

namespace {

// Axes of an image in a tensor; -1: the tensor does not have it.
struct ImageAxes {
  int32_t frame, height, width, channel;
};

// Return a tensor as a view with the four axes F, H, W and C.
View framed(const View& v, const ImageAxes& axes) {
  View out = v;
  out.rank = 4;
  const int32_t from[4] = {axes.frame, axes.height, axes.width, axes.channel};
  for (int i = 0; i < 4; ++i) {
    out.shape[i] = from[i] < 0 ? 1 : v.shape[from[i]];
    out.stride[i] = from[i] < 0 ? 0 : v.stride[from[i]];
  }
  return out;
}

// Return one frame, [H,W,C].
View frame(const View& v, int64_t f) {
  View out = v;
  out.rank = 3;
  out.data += f * v.stride[0];
  for (int i = 0; i < 3; ++i) {
    out.shape[i] = v.shape[i + 1];
    out.stride[i] = v.stride[i + 1];
  }
  return out;
}

class Equalize : public Kernel {
 public:
  explicit Equalize(ImageAxes axes) : axes_(axes) {}
  Outcome run(const Call& c) const override {
    const View from = framed(*c.in[0], axes_), to = framed(*c.out[0], axes_);
    for (int64_t f = 0; f < from.shape[0]; ++f)
      for (int64_t channel = 0; channel < from.shape[3]; ++channel) {
        View a = frame(from, f), b = frame(to, f);
        a.data += channel * a.stride[2];
        b.data += channel * b.stride[2];
        int64_t counts[256] = {};
        uint8_t table[256];
        histogram::count(a, counts);
        histogram::equalized(counts, table);
        histogram::apply(a, table, b);
      }
    return Outcome::Ok;
  }

 private:
  ImageAxes axes_;
};

// Correlation. Inputs: image, weights [h,w] of F32, and with a constant border a value. Parameters: top, left.
class Filter : public Kernel {
 public:
  Filter(ImageAxes axes, int border) : axes_(axes), border_(static_cast<Border>(border)) {}
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

constexpr int64_t kMaxTaps = 1 << 24;  // maximum width and height of a window

// Gaussian blur, vertical and then horizontal. Parameters: sigma and window size, vertical and horizontal.
class Blur : public Kernel {
 public:
  explicit Blur(ImageAxes axes) : axes_(axes) {}
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
    for (int64_t f = 0; f < from.shape[0]; ++f) {
      View middle = frame(from, f);
      middle.dtype = DType::F32;
      middle.set_contiguous_strides();
      middle.data = c.work[2].get(static_cast<size_t>(middle.elements()) * sizeof(float));
      if (!correlate::correlate(frame(from, f), {weights + down, 1, across, 0, across / 2}, middle, c.work[0]) ||
          !correlate::correlate(middle, {weights, down, 1, down / 2, 0}, frame(to, f), c.work[0])) {
        *c.error = "an image without pixels cannot be blurred";
        return Outcome::Error;
      }
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

constexpr const char* kAxis = "the axis, -1: none";
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
