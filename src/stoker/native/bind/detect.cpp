// SPDX-License-Identifier: Apache-2.0
// Bindings of suppression, region pooling and warping of batches, for torch's operators (frameworks/_torch_ops.py).
// Callers pass views of tensors, so everything is checked here.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bind/arrays.hpp"
#include "bind/gil.hpp"
#include "detect/nms.hpp"
#include "detect/roi.hpp"
#include "pixel/copy.hpp"
#include "warp/warp.hpp"

namespace nb = nanobind;

namespace {

using stoker::AnyArray;
using stoker::CallScratch;
using stoker::DType;
using stoker::Scratch;
using stoker::View;
using Writable = nb::ndarray<nb::device::cpu>;
using Numbers = nb::ndarray<nb::numpy, int64_t, nb::ndim<1>>;
using Floats = nb::ndarray<nb::numpy, nb::ndim<1>>;

void require(bool holds, const char* text) {
  if (!holds) throw nb::value_error(text);
}

View floats(const AnyArray& a, int rank, const char* what) {
  const View v = stoker::view_of(a);
  require(v.rank == rank && (v.dtype == DType::F32 || v.dtype == DType::F64), what);
  return v;
}

View output(const Writable& a, DType dtype, std::initializer_list<int64_t> shape) {
  View v;
  v.data = static_cast<uint8_t*>(a.data());
  v.dtype = stoker::dtype_of(a.dtype());
  v.rank = static_cast<int32_t>(shape.size());
  require(v.dtype == dtype && a.ndim() == shape.size(), "expected an output of the operator's type and rank");
  int i = 0;
  for (const int64_t extent : shape) {
    require(static_cast<int64_t>(a.shape(static_cast<size_t>(i))) == extent,
            "expected an output of the result's extents");
    v.shape[i] = extent;
    v.stride[i] = a.stride(static_cast<size_t>(i)) * stoker::size_of(dtype);
    ++i;
  }
  return v;
}

// Scratch memory of this thread.
struct Areas {
  static constexpr int kCount = 4;
  Scratch areas[kCount];
  ~Areas() = default;
};
static_assert(Areas::kCount >= stoker::detect::kNmsAreas && Areas::kCount >= stoker::detect::kRoiAreas);

// Areas that stay with their thread while they are small.
Scratch* scratch_of_thread() {
  static thread_local Areas own;
  constexpr size_t kKept = size_t{64} << 20;
  for (Scratch& area : own.areas)
    if (area.capacity() > kKept) area = Scratch();
  return own.areas;
}

Numbers numbers_of(std::unique_ptr<int64_t[]> block, int64_t count) {
  int64_t* const data = block.release();
  nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<int64_t*>(p); });
  return {data, {static_cast<size_t>(count)}, owner};
}

struct Boxes {
  View boxes, scores, labels;
  bool labelled;
  Boxes(const AnyArray& b, const AnyArray& s, const std::optional<AnyArray>& l, int64_t columns)
      : boxes(floats(b, 2, "expected boxes of two axes, float32 or float64")),
        scores(floats(s, 1, "expected scores of one axis, float32 or float64")),
        labelled(l.has_value()) {
    require(boxes.shape[1] == columns,
            columns == 4 ? "expected boxes of shape (N, 4)" : "expected boxes of shape (N, 5)");
    require(scores.dtype == boxes.dtype, "expected boxes and scores of one type");
    require(scores.shape[0] == boxes.shape[0], "expected as many scores as boxes");
    require(boxes.shape[0] <= std::numeric_limits<int32_t>::max(), "expected at most 2**31 - 1 boxes");
    if (!l) return;
    labels = stoker::view_of(*l);
    require(labels.rank == 1 && labels.dtype == DType::I64 && labels.shape[0] == boxes.shape[0],
            "expected a label of type int64 for each box");
  }
  int64_t count() const { return boxes.shape[0]; }
  const View* given_labels() const { return labelled ? &labels : nullptr; }
};

Numbers nms(const AnyArray& boxes, const AnyArray& scores, const std::optional<AnyArray>& labels, double threshold,
            bool rotated) {
  const Boxes given(boxes, scores, labels, rotated ? 5 : 4);
  std::unique_ptr<int64_t[]> keep(new int64_t[static_cast<size_t>(given.count() + 1)]);
  const auto form = rotated ? stoker::detect::nms_rotated : stoker::detect::nms;
  const int64_t count = stoker::without_gil([&] {
    return form(given.boxes, given.scores, given.given_labels(), threshold, given.count(), keep.get(),
                scratch_of_thread());
  });
  return numbers_of(std::move(keep), count);
}

std::pair<Numbers, Floats> soft_nms(const AnyArray& boxes, const AnyArray& scores,
                                    const std::optional<AnyArray>& labels, bool gaussian, double threshold,
                                    double sigma, double least) {
  const Boxes given(boxes, scores, labels, 4);
  require(sigma > 0, "expected `sigma` above 0");
  const auto n = static_cast<size_t>(given.count() + 1);
  std::unique_ptr<int64_t[]> keep(new int64_t[n]);
  std::unique_ptr<uint8_t[]> decayed(new uint8_t[n * 8]);
  using stoker::detect::Decay;
  const stoker::detect::SoftRule rule{gaussian ? Decay::Gaussian : Decay::Linear, threshold, sigma, least};
  const int64_t count = stoker::without_gil([&] {
    return stoker::detect::soft_nms(given.boxes, given.scores, given.given_labels(), rule, given.count(), keep.get(),
                                    decayed.get(), scratch_of_thread());
  });
  uint8_t* const data = decayed.release();
  nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<uint8_t*>(p); });
  const size_t shape[1] = {static_cast<size_t>(count)};
  return {numbers_of(std::move(keep), count),
          Floats(data, 1, shape, owner, nullptr, stoker::dlpack_of(given.boxes.dtype))};
}

// Regions and the extents of what they are pooled into.
View regions_of(const AnyArray& regions, DType dtype) {
  const View v = floats(regions, 2, "expected regions of two axes, float32 or float64");
  require(v.shape[1] == 5, "expected regions of shape (K, 5)");
  require(v.dtype == dtype, "expected features and regions of one type");
  return v;
}

void require_bins(int64_t height, int64_t width, int64_t samples) {
  constexpr int64_t kMost = 1 << 15;
  require(height >= 1 && width >= 1 && height <= kMost && width <= kMost, "expected an output size of 1 to 2**15");
  require(samples <= kMost, "expected a sampling ratio of at most 2**15");
}

struct Align {
  stoker::detect::RoiAlign rule;
  Align(double scale, int64_t height, int64_t width, int64_t samples, bool aligned, bool maximum)
      : rule{scale,   height,  width,
             samples, aligned, maximum ? stoker::detect::Pool::Maximum : stoker::detect::Pool::Average} {
    require_bins(height, width, samples);
  }
};

void roi_align(const AnyArray& features, const AnyArray& regions, double scale, int64_t samples, bool aligned,
               const Writable& out, const std::optional<Writable>& chosen) {
  const View x = floats(features, 4, "expected features of four axes, float32 or float64");
  const View r = regions_of(regions, x.dtype);
  require(out.ndim() == 4, "expected an output of four axes");
  const auto height = static_cast<int64_t>(out.shape(2)), width = static_cast<int64_t>(out.shape(3));
  const Align align(scale, height, width, samples, aligned, chosen.has_value());
  const View to = output(out, x.dtype, {r.shape[0], x.shape[1], height, width});
  const View numbers = chosen ? output(*chosen, DType::I32, {r.shape[0], x.shape[1], height, width}) : View{};
  std::string error;
  const bool fits = stoker::without_gil([&] {
    if (!stoker::detect::can_align(x, r, align.rule, error)) return false;
    stoker::detect::roi_align(x, r, align.rule, to, chosen ? &numbers : nullptr, scratch_of_thread());
    return true;
  });
  if (!fits) throw nb::value_error(error.c_str());
}

void roi_align_backward(const AnyArray& gradient, const AnyArray& regions, const std::optional<AnyArray>& chosen,
                        double scale, int64_t samples, bool aligned, const Writable& out) {
  const View g = floats(gradient, 4, "expected a gradient of four axes, float32 or float64");
  const View r = regions_of(regions, g.dtype);
  require(g.shape[0] == r.shape[0], "expected a gradient for each region");
  require(out.ndim() == 4, "expected an output of four axes");
  const View to = output(out, g.dtype,
                         {static_cast<int64_t>(out.shape(0)), g.shape[1], static_cast<int64_t>(out.shape(2)),
                          static_cast<int64_t>(out.shape(3))});
  require(to.contiguous(), "expected a contiguous output");
  const Align align(scale, g.shape[2], g.shape[3], samples, aligned, chosen.has_value());
  const View numbers = chosen ? stoker::view_of(*chosen) : View{};
  require(!chosen || (numbers.dtype == DType::I32 && numbers.has_extents_of(g)), "expected a number for each gradient");
  std::string error;
  const bool fits = stoker::without_gil([&] {
    if (!stoker::detect::can_align(to, r, align.rule, error)) return false;
    stoker::detect::roi_align_backward(g, r, chosen ? &numbers : nullptr, align.rule, to, scratch_of_thread());
    return true;
  });
  if (!fits) throw nb::value_error(error.c_str());
}

void roi_pool(const AnyArray& features, const AnyArray& regions, double scale, const Writable& out,
              const Writable& chosen) {
  const View x = floats(features, 4, "expected features of four axes, float32 or float64");
  const View r = regions_of(regions, x.dtype);
  require(out.ndim() == 4, "expected an output of four axes");
  const auto height = static_cast<int64_t>(out.shape(2)), width = static_cast<int64_t>(out.shape(3));
  require_bins(height, width, 0);
  const View to = output(out, x.dtype, {r.shape[0], x.shape[1], height, width});
  const View numbers = output(chosen, DType::I32, {r.shape[0], x.shape[1], height, width});
  require(numbers.contiguous(), "expected a contiguous output");
  std::string error;
  const bool fits = stoker::without_gil([&] {
    if (!stoker::detect::can_pool(x, r, scale, error)) return false;
    stoker::detect::roi_pool(x, r, scale, to, &numbers, scratch_of_thread());
    return true;
  });
  if (!fits) throw nb::value_error(error.c_str());
}

void roi_pool_backward(const AnyArray& gradient, const AnyArray& regions, const AnyArray& chosen, const Writable& out) {
  const View g = floats(gradient, 4, "expected a gradient of four axes, float32 or float64");
  const View r = regions_of(regions, g.dtype), numbers = stoker::view_of(chosen);
  require(g.shape[0] == r.shape[0], "expected a gradient for each region");
  require(numbers.dtype == DType::I32 && numbers.has_extents_of(g) && numbers.contiguous(),
          "expected a number for each gradient");
  require(out.ndim() == 4, "expected an output of four axes");
  const View to = output(out, g.dtype,
                         {static_cast<int64_t>(out.shape(0)), g.shape[1], static_cast<int64_t>(out.shape(2)),
                          static_cast<int64_t>(out.shape(3))});
  require(to.contiguous(), "expected a contiguous output");
  std::string error;
  const bool fits = stoker::without_gil([&] {
    if (!stoker::detect::can_pool(to, r, 1, error)) return false;
    stoker::detect::roi_pool_backward(g, r, numbers, to);
    return true;
  });
  if (!fits) throw nb::value_error(error.c_str());
}

// Return a view of an image like `v`, [H,W,C], with adjacent channels in `area`.
View adjacent_channels(View v, Scratch& area) {
  const int64_t item = stoker::size_of(v.dtype);
  v.stride[2] = item;
  v.stride[1] = v.shape[2] * item;
  v.stride[0] = v.shape[1] * v.stride[1];
  v.data = area.get(static_cast<size_t>(v.elements() * item));
  return v;
}

// warp::affine() of [H,W,C]. Planes of three or four channels are copied to pixels and back: sampling pixels is faster.
bool warp_image(const View& from, const double* matrix, bool linear, const std::vector<double>& fill, const View& to,
                Scratch* areas) {
  const double* const values = fill.empty() ? nullptr : fill.data();
  const int64_t step = fill.size() > 1 ? 1 : 0, channels = from.shape[2];
  const auto is_planar = [&](const View& v) {
    return (channels == 3 || channels == 4) && v.stride[2] != stoker::size_of(v.dtype) && v.elements() > 0;
  };
  if (!stoker::warp::can_sample(from, matrix, to)) return false;
  View source = from, target = to;
  if (is_planar(from)) {
    source = adjacent_channels(from, areas[1]);
    stoker::pixel::copy(from, source);
  }
  if (is_planar(to)) target = adjacent_channels(to, areas[2]);
  if (!stoker::warp::affine(source, matrix, linear, values, step, target, areas[0])) return false;
  if (target.data != to.data) stoker::pixel::copy(target, to);
  return true;
}

// Images [N,C,H,W] of any strides, a matrix (2, 3) for each, float64 and contiguous.
void warp_images(const AnyArray& images, const AnyArray& matrices, bool linear, const std::vector<double>& fill,
                 const Writable& out) {
  const View x = stoker::view_of(images), m = stoker::view_of(matrices);
  require(x.rank == 4, "expected images of four axes");
  require(m.rank == 3 && m.dtype == DType::F64 && m.contiguous() && m.shape[0] == x.shape[0] && m.shape[1] == 2 &&
              m.shape[2] == 3,
          "expected a contiguous float64 matrix of shape (2, 3) for each image");
  require(out.ndim() == 4, "expected an output of four axes");
  const View to = output(
      out, x.dtype, {x.shape[0], x.shape[1], static_cast<int64_t>(out.shape(2)), static_cast<int64_t>(out.shape(3))});
  require(fill.size() <= 1 || static_cast<int64_t>(fill.size()) == x.shape[1],
          "expected one fill value, or one for each channel");
  const auto image = [](const View& v, int64_t i) {
    View one = v;
    one.data = v.data + i * v.stride[0];
    one.rank = 3;
    constexpr int kFrom[3] = {2, 3, 1};
    for (int a = 0; a < 3; ++a) {
      one.shape[a] = v.shape[kFrom[a]];
      one.stride[a] = v.stride[kFrom[a]];
    }
    return one;
  };
  const bool done = stoker::without_gil([&] {
    Scratch* const areas = scratch_of_thread();
    for (int64_t i = 0; i < x.shape[0]; ++i)
      if (!warp_image(image(x, i), reinterpret_cast<const double*>(m.data) + 6 * i, linear, fill, image(to, i), areas))
        return false;
    return true;
  });
  if (!done)
    throw nb::value_error("expected uint8, uint16, int16, int32 or float32 images and matrices of finite numbers");
}

}  // namespace

void bind_detect(nb::module_& m) {
  nb::module_ d = m.def_submodule("detect", "Detection on arrays: what torch's operators call.");
  d.def("nms", &nms, nb::arg("boxes"), nb::arg("scores"), nb::arg("labels").none(), nb::arg("threshold"),
        nb::arg("rotated"));
  d.def("soft_nms", &soft_nms, nb::arg("boxes"), nb::arg("scores"), nb::arg("labels").none(), nb::arg("gaussian"),
        nb::arg("threshold"), nb::arg("sigma"), nb::arg("least"));
  d.def("roi_align", &roi_align, nb::arg("features"), nb::arg("regions"), nb::arg("scale"), nb::arg("samples"),
        nb::arg("aligned"), nb::arg("out"), nb::arg("chosen").none());
  d.def("roi_align_backward", &roi_align_backward, nb::arg("gradient"), nb::arg("regions"), nb::arg("chosen").none(),
        nb::arg("scale"), nb::arg("samples"), nb::arg("aligned"), nb::arg("out"));
  d.def("roi_pool", &roi_pool, nb::arg("features"), nb::arg("regions"), nb::arg("scale"), nb::arg("out"),
        nb::arg("chosen"));
  d.def("roi_pool_backward", &roi_pool_backward, nb::arg("gradient"), nb::arg("regions"), nb::arg("chosen"),
        nb::arg("out"));
  d.def("warp_images", &warp_images, nb::arg("images"), nb::arg("matrices"), nb::arg("linear"), nb::arg("fill"),
        nb::arg("out"));
}
