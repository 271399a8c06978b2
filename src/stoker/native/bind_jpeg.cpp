// SPDX-License-Identifier: Apache-2.0
// Python functions `jpeg_info` and `jpeg_decode` of the submodule `jpeg`.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>

#include "jpeg.hpp"

namespace nb = nanobind;

namespace {

using stoker::jpeg::Format;
using stoker::jpeg::Info;
using stoker::jpeg::Status;
using stoker::jpeg::Support;
using stoker::jpeg::Window;

using WindowTuple = nb::typed<nb::tuple, int, int, int, int>;

const uint8_t* bytes_of(const nb::bytes& data) { return static_cast<const uint8_t*>(data.data()); }

nb::dict jpeg_info(const nb::bytes& data) {
  static constexpr const char* kSupport[] = {"native", "handover", "broken"};
  Info info;
  stoker::jpeg::parse(bytes_of(data), data.size(), info);
  nb::dict out;
  out["width"] = info.width;
  out["height"] = info.height;
  out["components"] = info.components;
  out["orientation"] = static_cast<int>(info.orientation);
  out["support"] = kSupport[static_cast<int>(info.support)];
  out["reason"] = info.reason;
  return out;
}

Format format_of(const std::string& name) {
  static constexpr std::array<const char*, 5> kNames = {"RGB", "BGR", "GRAY", "YCbCr", "ANY"};
  for (size_t i = 0; i < kNames.size(); ++i)
    if (name == kNames[i]) return static_cast<Format>(i);
  throw nb::value_error("`jpeg_decode`: expected `format` to be RGB, BGR, GRAY, YCbCr or ANY");
}

int scale_log2_of(int scale) {
  for (int i = 0; i < 4; ++i)
    if (scale == 1 << i) return i;
  throw nb::value_error("`jpeg_decode`: expected `scale` to be 1, 2, 4 or 8");
}

Window window_of(const std::optional<WindowTuple>& window, stoker::jpeg::Extent whole) {
  if (!window) return {0, 0, whole.width, whole.height};
  if (window->size() != 4) throw nb::value_error("`jpeg_decode`: expected `window` to be (x0, y0, x1, y1)");
  const auto at = [&](size_t i) { return nb::cast<int32_t>((*window)[i]); };
  const Window w{at(0), at(1), at(2), at(3)};
  const bool inside_x = 0 <= w.x0 && w.x0 < w.x1 && w.x1 <= whole.width;
  const bool inside_y = 0 <= w.y0 && w.y0 < w.y1 && w.y1 <= whole.height;
  if (!inside_x || !inside_y)
    throw nb::value_error("`jpeg_decode`: expected `window` to be inside the image and not empty");
  return w;
}

nb::tuple jpeg_decode(const nb::bytes& data, const std::optional<WindowTuple>& window, const std::string& format,
                      int scale) {
  static constexpr const char* kStatus[] = {"ok", "truncated", "corrupt", "unsupported"};
  static thread_local stoker::Scratch scratch;
  const Format wanted = format_of(format);
  Info info;
  if (!stoker::jpeg::parse(bytes_of(data), data.size(), info)) throw nb::value_error(info.reason);
  const int scale_log2 = scale_log2_of(scale);
  const Window w = window_of(window, stoker::jpeg::scaled_extent(info, scale_log2));
  const size_t width = static_cast<size_t>(w.x1 - w.x0), height = static_cast<size_t>(w.y1 - w.y0);
  const size_t depth = static_cast<size_t>(stoker::jpeg::channels(info, wanted));
  std::unique_ptr<uint8_t[]> pixels(new uint8_t[width * height * depth]);  // not zeroed: `decode` writes all of it
  Status status;
  {
    nb::gil_scoped_release release;
    status = stoker::jpeg::decode(bytes_of(data), data.size(), info, w, wanted, pixels.get(),
                                  static_cast<ptrdiff_t>(width * depth), scratch, scale_log2);
  }
  if (status == Status::Unsupported) std::fill_n(pixels.get(), width * height * depth, uint8_t{0});
  uint8_t* const raw = pixels.release();
  const nb::capsule owner(raw, [](void* p) noexcept { delete[] static_cast<uint8_t*>(p); });
  nb::ndarray<nb::numpy, uint8_t> array(raw, {height, width, depth}, owner);
  return nb::make_tuple(array, kStatus[static_cast<int>(status)]);
}

}  // namespace

void bind_jpeg(nb::module_& m) {
  nb::module_ jpeg = m.def_submodule("jpeg", "JPEG decoding.");
  jpeg.def("jpeg_info", &jpeg_info, nb::arg("data"),
           "Read a JPEG header: size as stored, components, EXIF orientation and whether this decoder does the file.");
  jpeg.def("jpeg_decode", &jpeg_decode, nb::arg("data"), nb::arg("window") = nb::none(), nb::arg("format") = "RGB",
           nb::arg("scale") = 1,
           "Decode a window (x0, y0, x1, y1) of a JPEG, 1 / scale as large (1, 2, 4 or 8), to an array (height, width, "
           "channels) and a status: ok, truncated, corrupt or unsupported.");
}
