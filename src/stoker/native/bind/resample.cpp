// SPDX-License-Identifier: Apache-2.0
// Bindings of resampling, warping and the portable elementary functions, which tests compare with Pillow.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <array>
#include <memory>
#include <optional>
#include <string>

#include "bind/gil.hpp"
#include "resample/resample.hpp"
#include "shared/xmath.hpp"
#include "warp/warp.hpp"

namespace nb = nanobind;

namespace {

using stoker::CallScratch;
using stoker::DType;
using stoker::Scratch;
using stoker::View;
using Input = nb::ndarray<nb::ro, nb::device::cpu>;
using Output = nb::ndarray<nb::numpy>;

DType dtype_of(const Input& a) {
  if (a.dtype() == nb::dtype<uint8_t>()) return DType::U8;
  if (a.dtype() == nb::dtype<uint16_t>()) return DType::U16;
  if (a.dtype() == nb::dtype<int16_t>()) return DType::I16;
  if (a.dtype() == nb::dtype<int32_t>()) return DType::I32;
  if (a.dtype() == nb::dtype<float>()) return DType::F32;
  throw nb::type_error("expected uint8, uint16, int16, int32 or float32");
}

View view_of(const Input& a) {
  if (a.ndim() != 3) throw nb::value_error("expected an array of [height, width, channels]");
  View v;
  v.dtype = dtype_of(a);
  v.rank = 3;
  v.data = static_cast<uint8_t*>(const_cast<void*>(a.data()));
  for (int i = 0; i < 3; ++i) {
    v.shape[i] = static_cast<int64_t>(a.shape(i));
    v.stride[i] = a.stride(i) * stoker::size_of(v.dtype);
  }
  return v;
}

// New image and the array that owns it.
struct Fresh {
  View view;
  Output array;
};

Fresh fresh_like(const Input& a, int64_t height, int64_t width) {
  if (height < 0 || width < 0) throw nb::value_error("a size must not be negative");
  View v;
  v.dtype = dtype_of(a);
  v.rank = 3;
  v.shape[0] = height;
  v.shape[1] = width;
  v.shape[2] = static_cast<int64_t>(a.shape(2));
  v.set_contiguous_strides();
  auto block = std::make_unique<uint8_t[]>(static_cast<size_t>(v.elements() * stoker::size_of(v.dtype) + 1));
  v.data = block.get();
  nb::capsule owner(block.get(), [](void* p) noexcept { delete[] static_cast<uint8_t*>(p); });
  block.release();
  const size_t shape[3] = {static_cast<size_t>(height), static_cast<size_t>(width), static_cast<size_t>(v.shape[2])};
  return {v, Output(v.data, 3, shape, owner, nullptr, a.dtype())};
}

Output resample(const Input& a, int64_t out_h, int64_t out_w, std::optional<std::array<double, 4>> box, int filter_v,
                int filter_h, bool antialias, bool horizontal_first) {
  using stoker::resample::Axis;
  using stoker::resample::Filter;
  using stoker::resample::Order;
  const View src = view_of(a);
  for (int f : {filter_v, filter_h})
    if (f < 0 || f > static_cast<int>(Filter::Hamming)) throw nb::value_error("no such filter");
  const auto height = static_cast<double>(src.shape[0]), width = static_cast<double>(src.shape[1]);
  const std::array<double, 4> b = box.value_or(std::array<double, 4>{0, 0, width, height});
  const Axis v{src.shape[0], out_h, b[1], b[3], static_cast<Filter>(filter_v), antialias};
  const Axis h{src.shape[1], out_w, b[0], b[2], static_cast<Filter>(filter_h), antialias};
  const Order order = horizontal_first ? Order::HorizontalFirst : Order::Pillow;
  Fresh out = fresh_like(a, out_h, out_w);
  static thread_local CallScratch own;
  Scratch& scratch = own.begin_call();
  const bool done =
      stoker::without_gil([&] { return stoker::resample::resample_into(src, v, h, out.view, scratch, order); });
  if (!done) throw nb::value_error("this resampling cannot be done: the region is not finite or too large");
  return out.array;
}

Output affine(const Input& a, const std::array<double, 6>& matrix, int64_t out_h, int64_t out_w, bool linear,
              std::optional<double> fill) {
  const View src = view_of(a);
  Fresh out = fresh_like(a, out_h, out_w);
  static thread_local CallScratch own;
  Scratch& scratch = own.begin_call();
  const bool done = stoker::without_gil(
      [&] { return stoker::warp::affine(src, matrix.data(), linear, fill ? &*fill : nullptr, 0, out.view, scratch); });
  if (!done) throw nb::value_error("this transformation cannot be done: the matrix is not finite or too large");
  return out.array;
}

using Doubles = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

nb::ndarray<nb::numpy, double, nb::ndim<1>> xmath(const std::string& name, const Doubles& a) {
  namespace xm = stoker::xm;
  using Function = double (*)(double);
  constexpr std::pair<const char*, Function> kFunctions[] = {{"exp", xm::exp},
                                                             {"log", xm::log},
                                                             {"sin", xm::sin},
                                                             {"cos", xm::cos},
                                                             {"sin_pi", xm::sin_pi},
                                                             {"cos_pi", xm::cos_pi},
                                                             {"round_even", xm::round_even}};
  for (const auto& [known, function] : kFunctions) {
    if (name != known) continue;
    const size_t n = a.shape(0);
    auto block = std::make_unique<double[]>(n + 1);
    for (size_t i = 0; i < n; ++i) block[i] = function(a.data()[i]);
    double* data = block.get();
    nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<double*>(p); });
    block.release();
    return {data, {n}, owner};
  }
  throw nb::value_error(("no function named '" + name + "'").c_str());
}

}  // namespace

void bind_resample(nb::module_& m) {
  m.def("resample", &resample, nb::arg("array"), nb::arg("out_h"), nb::arg("out_w"), nb::arg("box").none(),
        nb::arg("filter_v"), nb::arg("filter_h"), nb::arg("antialias"), nb::arg("horizontal_first") = false,
        "Resample [H,W,C] to [out_h,out_w,C]; box is (x0, y0, x1, y1) and None the whole image.");
  m.def("affine", &affine, nb::arg("array"), nb::arg("matrix"), nb::arg("out_h"), nb::arg("out_w"), nb::arg("linear"),
        nb::arg("fill").none(), "Sample [H,W,C] at matrix * (x+.5, y+.5, 1); fill None repeats the edge pixels.");
  m.def("xmath", &xmath, nb::arg("name"), nb::arg("array"), "The portable exp, log, sin, cos, element by element.");
}
