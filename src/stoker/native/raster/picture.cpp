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

}  // namespace

Kind kind_of(const uint8_t* data, size_t size) { return png::is_png(data, size) ? Kind::Png : Kind::None; }

Parsed parse(const uint8_t* data, size_t size, Picture& picture, std::string& error) {
  picture.kind = kind_of(data, size);
  const char* reason = "not a file that is decoded natively";
  Parsed parsed = Parsed::Handover;
  if (picture.kind == Kind::Png) parsed = parse_png(data, size, picture, reason);
  if (parsed == Parsed::Damaged) error = std::string("the PNG file is damaged: ") + reason;
  if (parsed == Parsed::Handover) error = reason;
  return parsed;
}

std::string decode(const uint8_t* data, size_t size, const Picture& picture, const Target& target, Scratch* scratch) {
  return png::decode(data, size, picture.png, picture.layout, target, scratch);
}

}  // namespace stoker::raster
