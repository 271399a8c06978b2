// SPDX-License-Identifier: Apache-2.0
#include "kernels/raster_files.hpp"

#include "base/whole.hpp"
#include "raster/picture.hpp"
#include "run/job.hpp"

namespace stoker::raster_files {
namespace {

size_t bytes_of(const View& file) { return static_cast<size_t>(file.shape[0]); }

// Read the header. Return Ok, or the outcome of the row.
Outcome open(const Call& c, const Form& form, raster::Picture& picture) {
  const View& file = *c.in[0];
  switch (raster::parse(file.data, bytes_of(file), picture, *c.error)) {
    case raster::Parsed::Damaged: return Outcome::Error;
    case raster::Parsed::Handover: return Outcome::Python;
    default: break;
  }
  const char* reason = raster::refusal(picture.layout, form.format);
  if (form.adjust && picture.other_orientation) reason = "an orientation in text";
  if (!reason) return Outcome::Ok;
  *c.error = reason;
  return Outcome::Python;
}

jpeg::Extent scaled(const raster::Picture& picture, int scale_log2) {
  const int32_t round_up = (1 << scale_log2) - 1;
  return {(picture.width + round_up) >> scale_log2, (picture.height + round_up) >> scale_log2};
}

}  // namespace

bool is_file(const View& file) {
  return file.rank == 1 && file.dtype == DType::U8 && file.stride[0] == 1 &&
         raster::kind_of(file.data, bytes_of(file)) != raster::Kind::None;
}

Outcome peek(const Call& c, const Form& form, bool indices, uint64_t max_pixels, std::array<double, 3>& shape) {
  raster::Picture picture;
  const Outcome opened = open(c, form, picture);
  if (opened != Outcome::Ok) return opened;
  if (max_pixels && static_cast<uint64_t>(picture.width) * static_cast<uint64_t>(picture.height) > max_pixels) {
    *c.error = too_many_pixels(max_pixels, picture.height, picture.width);
    return Outcome::Error;
  }
  const jpeg::Extent extent = scaled(picture, form.scale_log2);
  const bool turned = form.adjust && picture.orientation >= 5;
  shape = {double(turned ? extent.width : extent.height), double(turned ? extent.height : extent.width),
           double(raster::channels(picture.layout, form.format, indices))};
  return Outcome::Ok;
}

Outcome decode(const Call& c, const Form& form, bool indices) {
  const View &file = *c.in[0], &out = *c.out[0];
  raster::Picture picture;
  const Outcome opened = open(c, form, picture);
  if (opened != Outcome::Ok) return opened;
  const int32_t h = size_within(out.shape[0]), w = size_within(out.shape[1]);
  if (h == 0 || w == 0) return Outcome::Ok;
  const raster::Layout& layout = picture.layout;
  const bool wide = out.dtype != DType::U8;
  if (const int channels = raster::channels(layout, form.format, indices);
      out.shape[2] != channels || (wide && form.format == jpeg::Format::YCbCr)) {
    *c.error = "expected memory for " + std::to_string(channels) + " channels, got " + std::to_string(out.shape[2]);
    return Outcome::Error;
  }
  if (form.scale_log2 > 0 && indices && layout.family == raster::Family::Table && !layout.gray) {
    *c.error = "palette indices at a smaller scale";
    return Outcome::Python;
  }
  const jpeg::Turn turn = jpeg::turn_of(form.adjust ? picture.orientation : 1);
  const jpeg::Extent whole = scaled(picture, form.scale_log2);
  const jpeg::Window window =
      jpeg::stored_window(whole, turn, position_of(c.params[0]), position_of(c.params[1]), h, w);
  if (!jpeg::is_inside(window, whole)) {
    *c.error = outside(window, whole);
    return Outcome::Error;
  }
  const raster::Target target{window, {picture.width, picture.height}, turn, form.format, form.scale_log2, indices,
                              out};
  switch (raster::decode(file.data, bytes_of(file), picture, target, c.work, *c.error)) {
    case raster::Parsed::Damaged: return Outcome::Error;
    case raster::Parsed::Handover: return Outcome::Python;
    default: return Outcome::Ok;
  }
}

std::string too_many_pixels(uint64_t max_pixels, int32_t height, int32_t width) {
  return "expected at most " + std::to_string(max_pixels) + " pixels, got an image of " + std::to_string(height) +
         " x " + std::to_string(width) + " (a decompression bomb?); `max_pixels` allows more";
}

std::string outside(const jpeg::Window& window, jpeg::Extent whole) {
  return "expected a window inside of the image of " + std::to_string(whole.height) + "x" +
         std::to_string(whole.width) + " pixels as stored, got rows " + std::to_string(window.y0) + " to " +
         std::to_string(window.y1) + " and columns " + std::to_string(window.x0) + " to " + std::to_string(window.x1);
}

}  // namespace stoker::raster_files
