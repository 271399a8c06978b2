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

template <class T>
stoker::video::Frame frame_of(const std::vector<Plane>& planes, const std::vector<int64_t>& pitches,
                              const Pixels<T>& out, std::tuple<int, int> shifts, int bits) {
  stoker::video::Frame frame{};
  frame.height = static_cast<int64_t>(out.shape(0));
  frame.width = static_cast<int64_t>(out.shape(1));
  std::tie(frame.shift_x, frame.shift_y) = shifts;
  frame.wide = bits > 8;
  frame.gray = planes.size() == 1;
  require(out.shape(2) == 3, "expected an output of three channels");
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

template <class T>
void convert(const std::vector<Plane>& planes, const std::vector<int64_t>& pitches, std::tuple<int, int> shifts,
             int bits, std::tuple<double, double> matrix, bool full_range, int order, const Pixels<T>& out) {
  const stoker::video::Frame frame = frame_of(planes, pitches, out, shifts, bits);
  const auto [kr, kb] = matrix;
  require(kr > 0 && kb > 0 && kr + kb < 0.99, "expected weights of red and blue between 0 and 1");
  require(order >= 0 && order <= static_cast<int>(stoker::video::Order::Stored), "expected an order of channels");
  const auto channels = static_cast<stoker::video::Order>(order);
  stoker::without_gil([&] {
    if constexpr (sizeof(T) == 2) {
      stoker::video::convert_words(frame, kr, kb, full_range, bits - 8, channels, out.data());
    } else {
      const stoker::video::Weights weights = stoker::video::weights_of(kr, kb, full_range, bits - 8);
      stoker::video::convert(frame, weights, channels, out.data(), scratch_of_thread());
    }
  });
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
}
