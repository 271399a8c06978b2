// SPDX-License-Identifier: Apache-2.0
// Binding of the conversion of video frames (video/colors.py). Callers pass planes of a decoder, so everything is
// checked here.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <limits>
#include <tuple>
#include <vector>

#include "base/scratch.hpp"
#include "bind/gil.hpp"
#include "video/convert.hpp"

namespace nb = nanobind;

namespace {

using stoker::Scratch;
using Plane = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Pixels = nb::ndarray<T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

constexpr int64_t kMaxSide = 1 << 20;

void require(bool holds, const char* text) {
  if (!holds) throw nb::value_error(text);
}

// Memory of this thread, which stays while it is small.
Scratch& scratch_of_thread() {
  static thread_local Scratch own;
  constexpr size_t kKept = size_t{4} << 20;
  if (own.capacity() > kKept) own = Scratch();
  return own;
}

stoker::video::Frame frame_of(const std::vector<Plane>& planes, const std::vector<int64_t>& pitches, int64_t height,
                              int64_t width, std::tuple<int, int> shifts, int bits) {
  stoker::video::Frame frame{};
  frame.height = height;
  frame.width = width;
  std::tie(frame.shift_x, frame.shift_y) = shifts;
  frame.wide = bits > 8;
  frame.gray = planes.size() == 1;
  require(frame.width > 0 && frame.height > 0 && frame.width <= kMaxSide && frame.height <= kMaxSide,
          "expected an image of 1 to 2**20 pixels on a side");
  require(planes.size() == 1 || planes.size() == 3, "expected one plane, or three");
  require(pitches.size() == planes.size(), "expected one pitch for each plane");
  require(bits >= 8 && bits <= 16, "expected 8 to 16 bits");
  require(frame.shift_x >= 0 && frame.shift_x <= 2 && frame.shift_y >= 0 && frame.shift_y <= 2,
          "expected chroma samples of 1, 2 or 4 columns and rows");
  for (size_t i = 0; i < planes.size(); ++i) {
    const int sx = i ? frame.shift_x : 0, sy = i ? frame.shift_y : 0;
    const int64_t columns = (frame.width + (1 << sx) - 1) >> sx, rows = (frame.height + (1 << sy) - 1) >> sy;
    const int64_t bytes = columns * (frame.wide ? 2 : 1);
    require(pitches[i] >= bytes && pitches[i] <= std::numeric_limits<int32_t>::max(),
            "expected rows of a plane that hold its samples");
    require(pitches[i] * (rows - 1) + bytes <= static_cast<int64_t>(planes[i].size()),
            "expected a plane that holds all its rows");
    frame.plane[i] = planes[i].data();
    frame.pitch[i] = pitches[i];
  }
  return frame;
}

stoker::video::Order channels_of(double kr, double kb, int order) {
  require(kr > 0 && kb > 0 && kr + kb < 0.99, "expected weights of red and blue between 0 and 1");
  require(order >= 0 && order <= static_cast<int>(stoker::video::Order::Stored), "expected an order of channels");
  return static_cast<stoker::video::Order>(order);
}

template <class T>
void convert(const std::vector<Plane>& planes, const std::vector<int64_t>& pitches, std::tuple<int, int> shifts,
             int bits, std::tuple<double, double> matrix, bool full_range, int order, const Pixels<T>& out) {
  require(out.shape(2) == 3, "expected an output of three channels");
  const stoker::video::Frame frame =
      frame_of(planes, pitches, static_cast<int64_t>(out.shape(0)), static_cast<int64_t>(out.shape(1)), shifts, bits);
  const auto [kr, kb] = matrix;
  const stoker::video::Order channels = channels_of(kr, kb, order);
  stoker::without_gil([&] {
    if constexpr (sizeof(T) == 2) {
      stoker::video::convert_words(frame, kr, kb, full_range, bits - 8, channels, out.data());
    } else {
      const stoker::video::Weights weights = stoker::video::weights_of(kr, kb, full_range, bits - 8);
      stoker::video::convert(frame, weights, channels, out.data(), scratch_of_thread());
    }
  });
}

// Convert and resample a frame of `size`. `region`: (y0, y1, x0, x1) in its pixels; `filters`: of the vertical axis and of
// the horizontal one.
void resize(const std::vector<Plane>& planes, const std::vector<int64_t>& pitches, std::tuple<int64_t, int64_t> size,
            std::tuple<int, int> shifts, int bits, std::tuple<double, double> matrix, bool full_range, int order,
            std::tuple<double, double, double, double> region, std::tuple<int, int> filters, bool antialias,
            const Pixels<uint8_t>& out) {
  using stoker::resample::Filter;
  const auto [height, width] = size;
  const stoker::video::Frame frame = frame_of(planes, pitches, height, width, shifts, bits);
  const auto [kr, kb] = matrix;
  const stoker::video::Order channels = channels_of(kr, kb, order);
  const auto [vertical, horizontal] = filters;
  for (const int one : {vertical, horizontal})
    require(one >= 0 && one <= static_cast<int>(Filter::Hamming), "expected filters of a resize");
  require(out.shape(2) == 3, "expected an output of three channels");
  const auto [y0, y1, x0, x1] = region;
  stoker::View to;
  to.dtype = stoker::DType::U8;
  to.rank = 3;
  for (size_t i = 0; i < 3; ++i) to.shape[i] = static_cast<int64_t>(out.shape(i));
  to.set_contiguous_strides();
  to.data = out.data();
  const bool done = stoker::without_gil([&] {
    static thread_local stoker::CallScratch own;
    const stoker::video::Weights weights = stoker::video::weights_of(kr, kb, full_range, bits - 8);
    return stoker::video::convert_resampled(frame, weights, channels,
                                            {height, to.shape[0], y0, y1, static_cast<Filter>(vertical), antialias},
                                            {width, to.shape[1], x0, x1, static_cast<Filter>(horizontal), antialias},
                                            to, scratch_of_thread(), own.begin_call());
  });
  require(done, "this resize cannot be done: the region is not finite or too large");
}

}  // namespace

void bind_video(nb::module_& m) {
  nb::module_ video = m.def_submodule("video", "Frames of videos.");
  const auto define = [&](auto function) {
    video.def("convert", function, nb::arg("planes"), nb::arg("pitches"), nb::arg("shifts"), nb::arg("bits"),
              nb::arg("matrix"), nb::arg("full_range"), nb::arg("order"), nb::arg("out").noconvert());
  };
  define(&convert<uint8_t>);
  define(&convert<uint16_t>);
  video.def("resize", &resize, nb::arg("planes"), nb::arg("pitches"), nb::arg("size"), nb::arg("shifts"),
            nb::arg("bits"), nb::arg("matrix"), nb::arg("full_range"), nb::arg("order"), nb::arg("region"),
            nb::arg("filters"), nb::arg("antialias"), nb::arg("out").noconvert());
}
