// SPDX-License-Identifier: Apache-2.0
// Kernels that look at more than one pixel: histograms, filters.
#include <cmath>
#include <limits>
#include <type_traits>

#include "bell.hpp"
#include "correlate.hpp"
#include "engine.hpp"
#include "half.hpp"
#include "histogram.hpp"
#include "kernels.hpp"

namespace stoker {

namespace {

// The axes F, H, W and C of an image, -1 for one that it has not, as a view of four axes.
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

// One frame, [H,W,C].
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

// Inputs: image, weights [h,w] of F32, and with a constant border a value. Parameters: top, left.
class Filter : public Kernel {
 public:
  Filter(ImageAxes axes, int border) : axes_(axes), border_(static_cast<Border>(border)) {}
  Outcome run(const Call& c) const override {
    const View& weights = *c.in[1];
    correlate::Window window{nullptr, weights.shape[0], weights.shape[1], static_cast<int64_t>(c.params[0]),
                             static_cast<int64_t>(c.params[1])};
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

// Rows, then columns, with a sampled bell. Parameters: sigma and size of the window, down and across.
class Blur : public Kernel {
 public:
  explicit Blur(ImageAxes axes) : axes_(axes) {}
  Outcome run(const Call& c) const override {
    const View from = framed(*c.in[0], axes_), to = framed(*c.out[0], axes_);
    const auto down = static_cast<int64_t>(c.params[1]), across = static_cast<int64_t>(c.params[3]);
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

}  // namespace

std::shared_ptr<Kernel> make_equalize(ImageAxes axes) { return std::make_shared<Equalize>(axes); }
std::shared_ptr<Kernel> make_filter(ImageAxes axes, int border) { return std::make_shared<Filter>(axes, border); }
std::shared_ptr<Kernel> make_blur(ImageAxes axes) { return std::make_shared<Blur>(axes); }

}  // namespace stoker
