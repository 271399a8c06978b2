// SPDX-License-Identifier: Apache-2.0
// Kernels that look at more than one pixel and are no sampling: histograms, filters, reductions.
#include <cmath>
#include <limits>
#include <type_traits>

#include "bell.hpp"
#include "correlate.hpp"
#include "engine.hpp"
#include "half.hpp"
#include "histogram.hpp"
#include "kernels.hpp"
#include "warp_project.hpp"

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

// Parameters: eight numbers of a matrix, four fills.
class Perspective : public Kernel {
 public:
  Perspective(ImageAxes axes, int sampling) : axes_(axes), sampling_(static_cast<warp::Sampling>(sampling)) {}
  Outcome run(const Call& c) const override {
    const View from = framed(*c.in[0], axes_), to = framed(*c.out[0], axes_);
    uint8_t fill[4];
    for (int i = 0; i < 4; ++i) fill[i] = static_cast<uint8_t>(c.params[8 + i]);
    for (int64_t f = 0; f < from.shape[0]; ++f)
      if (!warp::project(frame(from, f), c.params, true, sampling_, fill, frame(to, f))) {
        *c.error = "an image of more than four channels, or a matrix that is not finite";
        return Outcome::Error;
      }
    return Outcome::Ok;
  }

 private:
  ImageAxes axes_;
  warp::Sampling sampling_;
};

// ---- reductions ----

// What a number of an integer type is summed in.
template <class T>
using Total = std::conditional_t<std::is_floating_point_v<T>, double,
                                 std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;

template <class T>
T load(const uint8_t* p) {
  T x;
  __builtin_memcpy(&x, p, sizeof x);
  return x;
}

// Calls visit(pointer) for the elements of some axes, in the order of the axes.
template <class Visit>
void walk(const uint8_t* data, const int64_t* shape, const int64_t* stride, int rank, Visit&& visit) {
  for (int i = 0; i < rank; ++i)
    if (shape[i] == 0) return;
  if (rank == 0) return visit(data);
  int64_t at[kMaxRank] = {};
  const int last = rank - 1;
  for (;;) {
    const uint8_t* p = data;
    for (int64_t i = 0; i < shape[last]; ++i, p += stride[last]) visit(p);
    int d = last - 1;
    for (; d >= 0; --d) {
      data += stride[d];
      if (++at[d] < shape[d]) break;
      data -= stride[d] * shape[d];
      at[d] = 0;
    }
    if (d < 0) return;
  }
}

template <class T>
class Reducer {
 public:
  Reducer(Reduction op, double about) : op_(op), about_(about) {}
  void take(const uint8_t* p) {
    const T x = load<T>(p);
    const double d = static_cast<double>(x);
    switch (op_) {
      case Reduction::Min: if (!count_ || x < extreme_ || x != x) extreme_ = x; break;
      case Reduction::Max: if (!count_ || x > extreme_ || x != x) extreme_ = x; break;
      case Reduction::Sum: total_ += static_cast<Total<T>>(x); break;
      case Reduction::Mean: sum_ += d; break;
      case Reduction::MeanSquare: case Reduction::Rms: sum_ += d * d; break;
      case Reduction::Variance: case Reduction::StdDev: sum_ += (d - about_) * (d - about_); break;
    }
    ++count_;
  }
  void put(uint8_t* to, DType dtype, double ddof) const {
    switch (op_) {
      case Reduction::Min: case Reduction::Max: return whole(to, dtype, extreme_);
      case Reduction::Sum: return whole(to, dtype, total_);
      default: break;
    }
    const double n = static_cast<double>(count_) - ddof;
    const double mean = n > 0 ? sum_ / n : 0.0;
    const bool root = op_ == Reduction::Rms || op_ == Reduction::StdDev;
    store_scalar(to, dtype, root ? std::sqrt(mean) : mean);
  }

 private:
  // 64 bits do not fit into a double.
  template <class N>
  static void whole(uint8_t* to, DType dtype, N value) {
    if (sizeof(N) == 8 && std::is_integral_v<N> && size_of(dtype) == 8 && dtype != DType::F64)
      __builtin_memcpy(to, &value, sizeof value);
    else
      store_scalar(to, dtype, static_cast<double>(value));
  }
  Reduction op_;
  double about_;
  int64_t count_ = 0;
  T extreme_{};
  Total<T> total_{};
  double sum_ = 0;
};

template <class T>
void reduce(Reduction op, const View& in, uint32_t axes, const View* mean, double ddof, const View& out) {
  int64_t shape[2][kMaxRank], stride[2][kMaxRank];
  int rank[2] = {};  // 0: axes that stay, 1: axes that go
  for (int i = 0; i < in.rank; ++i) {
    const int gone = axes >> i & 1;
    shape[gone][rank[gone]] = in.shape[i];
    stride[gone][rank[gone]++] = in.stride[i];
  }
  int64_t at = 0;
  walk(in.data, shape[0], stride[0], rank[0], [&](const uint8_t* p) {
    const double about = mean ? read_element(*mean, mean->elements() == 1 ? 0 : at) : 0.0;
    Reducer<T> one(op, about);
    walk(p, shape[1], stride[1], rank[1], [&](const uint8_t* q) { one.take(q); });
    one.put(out.data + at * size_of(out.dtype), out.dtype, ddof);
    ++at;
  });
}

// Inputs: data, for variance and deviation their mean. Parameter: ddof.
class Reduce : public Kernel {
 public:
  Reduce(Reduction op, uint32_t axes) : op_(op), axes_(axes) {}
  Outcome run(const Call& c) const override {
    const View& in = *c.in[0];
    const bool about = op_ == Reduction::Variance || op_ == Reduction::StdDev;
    const View* mean = about ? c.in[1] : nullptr;
    const View& out = *c.out[0];
    switch (in.dtype) {
      case DType::Bool: case DType::U8: reduce<uint8_t>(op_, in, axes_, mean, c.params[0], out); break;
      case DType::U16: reduce<uint16_t>(op_, in, axes_, mean, c.params[0], out); break;
      case DType::U32: reduce<uint32_t>(op_, in, axes_, mean, c.params[0], out); break;
      case DType::U64: reduce<uint64_t>(op_, in, axes_, mean, c.params[0], out); break;
      case DType::I8: reduce<int8_t>(op_, in, axes_, mean, c.params[0], out); break;
      case DType::I16: reduce<int16_t>(op_, in, axes_, mean, c.params[0], out); break;
      case DType::I32: reduce<int32_t>(op_, in, axes_, mean, c.params[0], out); break;
      case DType::I64: reduce<int64_t>(op_, in, axes_, mean, c.params[0], out); break;
      case DType::F32: reduce<float>(op_, in, axes_, mean, c.params[0], out); break;
      case DType::F64: reduce<double>(op_, in, axes_, mean, c.params[0], out); break;
      case DType::F16: case DType::BF16: *c.error = "16-bit floats cannot be reduced"; return Outcome::Error;
    }
    return Outcome::Ok;
  }

 private:
  Reduction op_;
  uint32_t axes_;
};

}  // namespace

std::shared_ptr<Kernel> make_equalize(ImageAxes axes) { return std::make_shared<Equalize>(axes); }
std::shared_ptr<Kernel> make_filter(ImageAxes axes, int border) { return std::make_shared<Filter>(axes, border); }
std::shared_ptr<Kernel> make_blur(ImageAxes axes) { return std::make_shared<Blur>(axes); }
std::shared_ptr<Kernel> make_perspective(ImageAxes axes, int sampling) {
  return std::make_shared<Perspective>(axes, sampling);
}
std::shared_ptr<Kernel> make_reduce(Reduction op, uint32_t axes) { return std::make_shared<Reduce>(op, axes); }

}  // namespace stoker
