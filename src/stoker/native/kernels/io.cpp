// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstring>
#include <stdexcept>
#include <string>

#include "base/whole.hpp"
#include "base/widen.hpp"
#include "jpeg/orientation.hpp"
#include "jpeg/scan_limit.hpp"
#include "kernels/raster_files.hpp"
#include "kernels/registry.hpp"
#include "kernels/store_scalar.hpp"
#include "run/job.hpp"

namespace stoker {

namespace {

bool is_jpeg(const View& v) {
  return v.rank == 1 && v.dtype == DType::U8 && v.shape[0] >= 3 && v.stride[0] == 1 && v.data[0] == 0xFF &&
         v.data[1] == 0xD8 && v.data[2] == 0xFF;
}

Outcome hand_over(const Call& c, const char* reason) {
  *c.error = reason;
  return Outcome::Python;
}

// Files that the native decoder does not support go to the Python twin, so that only one place knows their formats.
bool read_header(const Call& c, jpeg::Info& info) {
  const View& file = *c.in[0];
  if (is_jpeg(file)) return jpeg::parse(file.data, static_cast<size_t>(file.shape[0]), info);
  info.reason = "a format that is not decoded natively";
  return false;
}

// Palette indices are wanted if there is a parameter `index` of 1.
bool takes_indices(const Call& c, size_t index) { return c.param_count > index && c.params[index] == 1; }

void store_shape(const Call& c, const std::array<double, 3>& shape) {
  for (int i = 0; i < 3; ++i) store_scalar(c.out[0]->data + 8 * i, DType::I64, shape[static_cast<size_t>(i)]);
}

// The size limit is checked here, on the stored size: every later step may take memory for the image's pixels.
class Peek : public Kernel {
 public:
  Peek(bool adjust, jpeg::Format format, int scale_log2, uint64_t max_pixels)
      : adjust_(adjust), format_(format), scale_(scale_log2), max_pixels_(max_pixels) {}
  Ports ports() const override {
    return {.kernel = "peek", .in = {port_of(DType::U8, 1)}, .out = {port_of(DType::I64, 1)}};
  }
  bool fits(const Call& c) const override {
    if (c.out[0]->shape[0] == 3) return true;
    *c.error = "expected three elements for height, width and channels";
    return false;
  }
  Outcome run(const Call& c) const override {
    if (raster_files::is_file(*c.in[0])) {
      std::array<double, 3> shape;
      const bool indices = takes_indices(c, 0);
      const Outcome outcome = raster_files::peek(c, {adjust_, format_, scale_}, indices, max_pixels_, shape);
      if (outcome == Outcome::Ok) store_shape(c, shape);
      return outcome;
    }
    jpeg::Info info;
    if (!read_header(c, info)) return hand_over(c, info.reason);
    if (max_pixels_ && static_cast<uint64_t>(info.width) * static_cast<uint64_t>(info.height) > max_pixels_) {
      *c.error = raster_files::too_many_pixels(max_pixels_, info.height, info.width);
      return Outcome::Error;
    }
    const jpeg::Extent extent = jpeg::scaled_extent(info, scale_);
    const bool turned = adjust_ && info.orientation >= 5;
    store_shape(c, {double(turned ? extent.width : extent.height), double(turned ? extent.height : extent.width),
                    double(jpeg::channels(info, format_))});
    return Outcome::Ok;
  }

 private:
  bool adjust_;
  jpeg::Format format_;
  int scale_;
  uint64_t max_pixels_;
};

// Decoding of an image. Parameters: the window's first row and column.
class Decode : public Kernel {
 public:
  Decode(bool adjust, jpeg::Format format, int scale_log2, uint64_t max_scan_pixels)
      : adjust_(adjust), format_(format), scale_(scale_log2), max_scan_pixels_(max_scan_pixels) {}
  Ports ports() const override {
    const PortRule image{.types = types(DType::U8, DType::U16, DType::F32), .least_rank = 3, .most_rank = 3};
    return {.kernel = "decode", .in = {port_of(DType::U8, 1)}, .out = {image}, .params = 2};
  }
  Outcome run(const Call& c) const override {
    if (raster_files::is_file(*c.in[0]))
      return raster_files::decode(c, {adjust_, format_, scale_}, takes_indices(c, 2));
    const View& file = *c.in[0];
    const size_t size = static_cast<size_t>(file.shape[0]);
    jpeg::Info info;
    if (!read_header(c, info)) return hand_over(c, info.reason);
    const View& out = *c.out[0];
    const jpeg::Turn turn = jpeg::turn_of(adjust_ ? info.orientation : 1);
    const int32_t y0 = position_of(c.params[0]), x0 = position_of(c.params[1]);
    const int32_t h = size_within(out.shape[0]), w = size_within(out.shape[1]);
    if (h == 0 || w == 0) return Outcome::Ok;
    if (out.shape[2] != jpeg::channels(info, format_)) {
      *c.error = "expected memory for " + std::to_string(jpeg::channels(info, format_)) + " channels, got " +
                 std::to_string(out.shape[2]);
      return Outcome::Error;
    }
    const jpeg::Extent whole = jpeg::scaled_extent(info, scale_);
    const jpeg::Window window = jpeg::stored_window(whole, turn, y0, x0, h, w);
    if (!jpeg::is_inside(window, whole)) {
      *c.error = raster_files::outside(window, whole);
      return Outcome::Error;
    }
    if (jpeg::has_several_scans(info)) {
      *c.error = jpeg::too_many_scans(file.data, size, info.width, info.height, max_scan_pixels_);
      if (!c.error->empty()) return Outcome::Error;
    }
    const bool bytes = out.dtype == DType::U8;
    const bool straight = turn.none() && bytes;
    const int64_t channels = out.shape[2], row_bytes = (window.x1 - window.x0) * channels;
    uint8_t* to = straight ? out.data : c.work[1].get(static_cast<size_t>(row_bytes) * (window.y1 - window.y0));
    const jpeg::Status status = jpeg::decode(file.data, size, info, window, format_, to, row_bytes, c.work[0], scale_);
    if (status == jpeg::Status::Unsupported) return hand_over(c, "colours or scans that the native decoder leaves out");
    // The Python twin decides what is an error and what only deserves a warning.
    if (status == jpeg::Status::Corrupt) return hand_over(c, "damaged JPEG data");
    if (status == jpeg::Status::Truncated) {
      *c.error = "the JPEG data end before the image is complete (" + std::to_string(size) + " bytes, " +
                 std::to_string(info.width) + "x" + std::to_string(info.height) + " pixels declared)";
      return Outcome::Error;
    }
    if (!bytes) place_wide(to, window, turn, channels, out);
    else if (!straight) place_turned(to, window, turn, channels, out);
    return Outcome::Ok;
  }

 private:
  // Pixels of a wider type: uint16 over the full range, float32 from 0 to 1.
  static void place_wide(const uint8_t* from, const jpeg::Window& window, jpeg::Turn turn, int64_t channels,
                         const View& out) {
    if (out.dtype == DType::U16) return place_values<uint16_t>(from, window, turn, channels, out);
    place_values<float>(from, window, turn, channels, out);
  }
  template <class T>
  static void place_values(const uint8_t* from, const jpeg::Window& window, jpeg::Turn turn, int64_t channels,
                           const View& out) {
    const int64_t sh = window.y1 - window.y0, sw = window.x1 - window.x0;
    const jpeg::Placement place = jpeg::placement(window, turn, out);
    constexpr auto kSize = static_cast<int64_t>(sizeof(T));
    const bool dense = out.stride[2] == kSize && place.step_x == kSize * channels;
    for (int64_t y = 0; y < sh; ++y) {
      uint8_t* const row = out.data + place.offset + y * place.step_y;
      const uint8_t* const values = from + y * sw * channels;
      if (dense) {
        widen<T>(values, sw * channels, row);
        continue;
      }
      for (int64_t x = 0; x < sw; ++x)
        for (int64_t k = 0; k < channels; ++k)
          store_element(row + x * place.step_x + k * out.stride[2], widened<T>(values[x * channels + k]));
    }
  }
  static void place_turned(const uint8_t* from, const jpeg::Window& window, jpeg::Turn turn, int64_t channels,
                           const View& out) {
    const int64_t sh = window.y1 - window.y0, sw = window.x1 - window.x0;
    const jpeg::Placement place = jpeg::placement(window, turn, out);
    uint8_t* const to = out.data + place.offset;
    for (int64_t y = 0; y < sh; ++y)
      for (int64_t x = 0; x < sw; ++x)
        std::memcpy(to + y * place.step_y + x * place.step_x, from + (y * sw + x) * channels,
                    static_cast<size_t>(channels));
  }
  bool adjust_;
  jpeg::Format format_;
  int scale_;
  uint64_t max_scan_pixels_;
};

void require_decodable(jpeg::Format format, int scale_log2) {
  if (format >= jpeg::Format::Planes) throw std::invalid_argument("expected the format of an image");
  if (scale_log2 < 0 || scale_log2 > 3) throw std::invalid_argument("expected a scale of 1, 1/2, 1/4 or 1/8");
}

std::shared_ptr<Kernel> make_peek(bool adjust, jpeg::Format format, int scale_log2, uint64_t max_pixels) {
  require_decodable(format, scale_log2);
  return std::make_shared<Peek>(adjust, format, scale_log2, max_pixels);
}
std::shared_ptr<Kernel> make_decode(bool adjust, jpeg::Format format, int scale_log2, uint64_t max_scan_pixels) {
  require_decodable(format, scale_log2);
  return std::make_shared<Decode>(adjust, format, scale_log2, max_scan_pixels);
}

constexpr const char *kAdjust = "whether Exif's orientation is applied", *kFormat = "a jpeg::Format",
                     *kScale = "images are 1 / 2^scale_log2 as wide and high";
const Registered kPeek{"peek",
                       "The shape of an encoded image. The twin handles everything but JPEG, PNG, BMP, PNM, TIFF, WebP "
                       "and JPEG 2000 files of a usual kind.",
                       make_peek,
                       {{"adjust", kAdjust},
                        {"format", kFormat},
                        {"scale_log2", kScale},
                        {"max_pixels", "the most pixels as stored; 0: no limit"}}};
const Registered kDecode{"decode",
                         "A window of an encoded image. The twin handles everything but JPEG, PNG, BMP, PNM, TIFF, "
                         "WebP and JPEG 2000 files of a usual kind.",
                         make_decode,
                         {{"adjust", kAdjust},
                          {"format", kFormat},
                          {"scale_log2", kScale},
                          {"max_scan_pixels", "the most pixels times scans of many scans; 0: no limit"}}};

}  // namespace

}  // namespace stoker
