// SPDX-License-Identifier: Apache-2.0
#include "raster/picture.hpp"

namespace stoker::raster {
namespace {

Parsed parse_png(const uint8_t* data, size_t size, Picture& picture, const char*& reason) {
  const Parsed parsed = png::parse(data, size, picture.png, reason);
  if (parsed != Parsed::Ok) return parsed;
  picture.width = picture.png.width;
  picture.height = picture.png.height;
  picture.orientation = picture.png.orientation;
  picture.other_orientation = picture.png.other_orientation;
  picture.layout = png::layout_of(picture.png);
  return Parsed::Ok;
}

Parsed parse_raw(const uint8_t* data, size_t size, Picture& picture, const char*& reason) {
  const auto parse_kind = picture.kind == Kind::Bmp ? bmp::parse : pnm::parse;
  const Parsed parsed = parse_kind(data, size, picture.raw, reason);
  if (parsed != Parsed::Ok) return parsed;
  picture.width = picture.raw.width;
  picture.height = picture.raw.height;
  picture.layout = picture.raw.layout;
  return Parsed::Ok;
}

}  // namespace

Kind kind_of(const uint8_t* data, size_t size) {
  if (png::is_png(data, size)) return Kind::Png;
  if (bmp::is_bmp(data, size)) return Kind::Bmp;
  return pnm::is_pnm(data, size) ? Kind::Pnm : Kind::None;
}

Parsed parse(const uint8_t* data, size_t size, Picture& picture, std::string& error) {
  picture.kind = kind_of(data, size);
  const char* reason = "not a file that is decoded natively";
  Parsed parsed = Parsed::Handover;
  if (picture.kind == Kind::Png) parsed = parse_png(data, size, picture, reason);
  else if (picture.kind != Kind::None) parsed = parse_raw(data, size, picture, reason);
  if (parsed == Parsed::Damaged) error = std::string("the PNG file is damaged: ") + reason;
  if (parsed == Parsed::Handover) error = reason;
  return parsed;
}

std::string decode(const uint8_t* data, size_t size, const Picture& picture, const Target& target, Scratch* scratch) {
  if (picture.kind == Kind::Png) return png::decode(data, size, picture.png, picture.layout, target, scratch);
  if (!has_all_rows(picture.raw, size))
    return "the data of the image end before it is complete (" + std::to_string(size) + " bytes, " +
           std::to_string(picture.width) + "x" + std::to_string(picture.height) + " pixels declared)";
  write_raw(data, picture.raw, target, scratch[3]);
  return {};
}

}  // namespace stoker::raster
