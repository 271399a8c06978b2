// SPDX-License-Identifier: Apache-2.0
// Bindings of the JPEG decoder: the submodule `jpeg`.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>

#include "bind/gil.hpp"
#include "gpu/block_pool.hpp"
#include "jpeg/damage.hpp"
#include "jpeg/jpeg.hpp"
#include "jpeg/parse.hpp"
#include "jpeg/plain_header.hpp"
#include "jpeg/scan_limit.hpp"
#include "jpeg/ticks.hpp"

namespace nb = nanobind;

namespace {

using stoker::jpeg::Format;
using stoker::jpeg::Info;
using stoker::jpeg::Status;
using stoker::jpeg::Support;
using stoker::jpeg::Window;

using WindowTuple = nb::typed<nb::tuple, int, int, int, int>;

const uint8_t* bytes_of(const nb::bytes& data) { return static_cast<const uint8_t*>(data.data()); }

nb::dict as_dict(const Info& info) {
  static constexpr const char* kSupport[] = {"native", "handover", "broken"};
  nb::dict out;
  out["width"] = info.width;
  out["height"] = info.height;
  out["components"] = info.components;
  out["orientation"] = static_cast<int>(info.orientation);
  out["sampling"] = nb::make_tuple(static_cast<int>(info.h_max), static_cast<int>(info.v_max));
  out["support"] = kSupport[static_cast<int>(info.support)];
  out["reason"] = info.reason;
  return out;
}

nb::dict jpeg_info(const nb::bytes& data) {
  Info info;
  stoker::jpeg::parse(bytes_of(data), data.size(), info);
  return as_dict(info);
}

// Return (width, height, components, end of the header), or None.
nb::object plain_header(const nb::bytes& head) {
  stoker::jpeg::PlainHeader header;
  if (!stoker::jpeg::read_plain_header(bytes_of(head), head.size(), header)) return nb::none();
  return nb::make_tuple(header.width, header.height, header.components, header.end);
}

Format format_of(const std::string& name) {
  static constexpr std::array<const char*, 6> kNames = {"RGB", "BGR", "GRAY", "YCbCr", "ANY", "PLANES"};
  for (size_t i = 0; i < kNames.size(); ++i)
    if (name == kNames[i]) return static_cast<Format>(i);
  throw nb::value_error("`jpeg_decode`: expected `format` to be RGB, BGR, GRAY, YCbCr, ANY or PLANES");
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

constexpr const char* kStatus[] = {"ok", "truncated", "corrupt", "unsupported"};

// Parameters of a call, and the memory of its result.
struct Request {
  const uint8_t* data;
  size_t size;
  Info info;
  Window window;
  Format format;
  int scale_log2;

  Request(const nb::bytes& file, const std::optional<WindowTuple>& wanted, const std::string& name, int scale)
      : data(bytes_of(file)), size(file.size()), format(format_of(name)), scale_log2(scale_log2_of(scale)) {
    if (!stoker::jpeg::parse(data, size, info)) throw nb::value_error(info.reason);
    window = window_of(wanted, stoker::jpeg::scaled_extent(info, scale_log2));
  }
  std::array<size_t, 3> shape() const {
    const size_t width = static_cast<size_t>(window.x1 - window.x0),
                 height = static_cast<size_t>(window.y1 - window.y0);
    const size_t depth = static_cast<size_t>(stoker::jpeg::channels(info, format));
    if (format == Format::Planes) return {depth, height, width};
    return {height, width, depth};
  }
  size_t row_bytes() const { return format == Format::Planes ? shape()[2] : shape()[1] * shape()[2]; }

  Status run(uint8_t* to, ptrdiff_t pitch, stoker::jpeg::Ticks* ticks = nullptr) const {
    static thread_local stoker::CallScratch own;
    stoker::Scratch& scratch = own.begin_call();
    return stoker::without_gil(
        [&] { return stoker::jpeg::decode(data, size, info, window, format, to, pitch, scratch, scale_log2, ticks); });
  }
};

// Pool for large results, with at most two idle blocks: the system clears new memory, which for 12 megapixels takes a
// tenth of the decoding time. It lives as long as the process, because results may.
stoker::BlockPool& kept_results() {
  static auto* pool = new std::shared_ptr<stoker::BlockPool>(std::make_shared<stoker::BlockPool>(2));
  return **pool;
}
constexpr size_t kLargeResult = size_t{4} << 20;

// Return memory for a result and the capsule that releases it. The memory is not zeroed, because `decode` writes all of
// it.
std::pair<uint8_t*, nb::capsule> result_memory(size_t bytes) {
  if (bytes >= kLargeResult) {
    auto block = std::make_unique<stoker::BlockPool::Block>(kept_results().take(bytes));
    uint8_t* const data = block->data;
    const auto let_go = [](void* p) noexcept { delete static_cast<stoker::BlockPool::Block*>(p); };
    return {data, nb::capsule(block.release(), let_go)};
  }
  size_t taken = bytes;
  uint8_t* const data = stoker::allocate_block(&taken);
  return {data, nb::capsule(data, [](void* p) noexcept { std::free(p); })};
}

nb::tuple jpeg_decode(const nb::bytes& data, const std::optional<WindowTuple>& window, const std::string& format,
                      int scale) {
  const Request request(data, window, format, scale);
  const auto shape = request.shape();
  const size_t bytes = shape[0] * shape[1] * shape[2];
  const auto [pixels, owner] = result_memory(bytes);
  const Status status = request.run(pixels, static_cast<ptrdiff_t>(request.row_bytes()));
  if (status == Status::Unsupported) std::fill_n(pixels, bytes, uint8_t{0});
  nb::ndarray<nb::numpy, uint8_t> array(pixels, {shape[0], shape[1], shape[2]}, owner);
  return nb::make_tuple(array, kStatus[static_cast<int>(status)]);
}

using Memory = nb::ndarray<uint8_t, nb::ndim<3>, nb::device::cpu>;

std::string jpeg_decode_into(const nb::bytes& data, const Memory& out, const std::optional<WindowTuple>& window,
                             const std::string& format, int scale) {
  const Request request(data, window, format, scale);
  const auto shape = request.shape();
  const bool planes = request.format == Format::Planes;
  for (size_t i = 0; i < 3; ++i)
    if (out.shape(i) != shape[i])
      throw nb::value_error("`jpeg_decode_into`: expected `out` to have the result's shape");
  const int64_t pitch = out.stride(planes ? 1 : 0);
  const bool dense = out.stride(2) == 1 && (planes || out.stride(1) == static_cast<int64_t>(shape[2]));
  const bool follow = !planes || out.stride(0) == pitch * static_cast<int64_t>(shape[1]);
  if (!dense || !follow || pitch < static_cast<int64_t>(request.row_bytes()))
    throw nb::value_error("`jpeg_decode_into`: expected `out` to have dense rows (and planes without gaps)");
  return kStatus[static_cast<int>(request.run(out.data(), static_cast<ptrdiff_t>(pitch)))];
}

nb::dict jpeg_check(const nb::bytes& data, uint64_t max_pixels, uint64_t max_scan_pixels) {
  static thread_local stoker::CallScratch own;
  stoker::Scratch& scratch = own.begin_call();
  const uint8_t* bytes = bytes_of(data);
  const size_t size = data.size();
  const stoker::jpeg::Checked found =
      stoker::without_gil([&] { return stoker::jpeg::check(bytes, size, max_pixels, max_scan_pixels, scratch); });
  const stoker::jpeg::Damage& damage = found.damage;
  nb::dict out = as_dict(found.info);
  out["status"] = kStatus[static_cast<int>(found.status)];
  out["wrong_codes"] = damage.wrong_codes;
  out["early_ends"] = damage.early_ends;
  out["wrong_restarts"] = damage.wrong_restarts;
  out["extra_bytes"] = damage.extra_bytes;
  out["offset"] = damage.offset == ~uint64_t{0} ? nb::object(nb::none()) : nb::cast(damage.offset);
  return out;
}

bool has_unknown_marker(const nb::bytes& data) {
  return stoker::without_gil([&] { return stoker::jpeg::has_unknown_marker(bytes_of(data), data.size()); });
}

uint64_t count_scans(const nb::bytes& data) {
  return stoker::without_gil([&] { return stoker::jpeg::count_scans(bytes_of(data), data.size()); });
}

std::string too_many_scans(const nb::bytes& data, int64_t width, int64_t height, uint64_t max_scan_pixels) {
  return stoker::without_gil(
      [&] { return stoker::jpeg::too_many_scans(bytes_of(data), data.size(), width, height, max_scan_pixels); });
}

nb::dict jpeg_ticks(const nb::bytes& data) {
  const Request request(data, std::nullopt, "RGB", 1);
  const auto shape = request.shape();
  const std::unique_ptr<uint8_t[]> pixels(new uint8_t[shape[0] * shape[1] * shape[2]]);
  stoker::jpeg::Ticks ticks;
  request.run(pixels.get(), static_cast<ptrdiff_t>(request.row_bytes()), &ticks);
  nb::dict out;
  out["symbols"] = stoker::jpeg::count_symbols(request.data, request.size, request.info);
  out["pixels"] = shape[0] * shape[1];
  out["tables"] = ticks.tables;
  out["entropy"] = ticks.entropy;
  out["transform"] = ticks.transform;
  out["rows"] = ticks.rows;
  return out;
}

}  // namespace

void bind_jpeg(nb::module_& m) {
  nb::module_ jpeg = m.def_submodule("jpeg", "JPEG decoding.");
  jpeg.def("jpeg_info", &jpeg_info, nb::arg("data"),
           "Read a JPEG header: size as stored, components, EXIF orientation and whether this decoder does the file.");
  jpeg.def("plain_header", &plain_header, nb::arg("head"),
           "(width, height, components, end) of a header that is complete in these first bytes of a file and in which "
           "Pillow "
           "finds nothing out of the ordinary; None of any other.");
  jpeg.def("jpeg_decode", &jpeg_decode, nb::arg("data"), nb::arg("window") = nb::none(), nb::arg("format") = "RGB",
           nb::arg("scale") = 1,
           "Decode a window (x0, y0, x1, y1) of a JPEG, 1 / scale as large (1, 2, 4 or 8), to an array (height, width, "
           "channels), or for PLANES (3, height, width), and a status: ok, truncated, corrupt or unsupported.");
  jpeg.def("jpeg_decode_into", &jpeg_decode_into, nb::arg("data"), nb::arg("out"), nb::arg("window") = nb::none(),
           nb::arg("format") = "RGB", nb::arg("scale") = 1,
           "Decode as `jpeg_decode` does into the caller's memory, whose rows may lie apart; returns the status.");
  jpeg.def("jpeg_check", &jpeg_check, nb::arg("data"), nb::arg("max_pixels"), nb::arg("max_scan_pixels") = 0,
           "Decode all coefficients. Return the fields of `jpeg_info`, the status of `jpeg_decode`, the damage that "
           "libjpeg would warn of, and the offset of the first damage, or None. Images above the limits are "
           "unsupported.");
  jpeg.def("has_unknown_marker", &has_unknown_marker, nb::arg("data"),
           "Return whether a file has a marker before its end that no standard defines, which libjpeg refuses.");
  jpeg.def("count_scans", &count_scans, nb::arg("data"), "Count a file's scans, from its markers alone.");
  jpeg.def("too_many_scans", &too_many_scans, nb::arg("data"), nb::arg("width"), nb::arg("height"),
           nb::arg("max_scan_pixels"),
           "Return the reason why a file of this size has too many scans, or \"\" if it does not.");
  jpeg.def(
      "jpeg_ticks", &jpeg_ticks, nb::arg("data"),
      "Decode the whole image to RGB and return the time of each part: ticks of the time-stamp counter (elsewhere "
      "nanoseconds) for tables, entropy, transform and rows; pixels; Huffman symbols (0 unless sequential, one scan).");
}
