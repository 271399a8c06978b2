// SPDX-License-Identifier: Apache-2.0
#include "raster/picture.hpp"

namespace stoker::raster {
namespace {

// Read the header of a format whose headers have a size and perhaps an orientation.
template <class Header>
Parsed parse_with(Parsed (*parse)(const uint8_t*, size_t, Header&, const char*&), Layout (*layout_of)(const Header&),
                  const uint8_t* data, size_t size, Header& header, Picture& picture, const char*& reason) {
  const Parsed parsed = parse(data, size, header, reason);
  if (parsed != Parsed::Ok) return parsed;
  picture.width = header.width;
  picture.height = header.height;
  picture.layout = layout_of(header);
  if constexpr (requires { header.orientation; }) {
    picture.orientation = header.orientation;
    picture.other_orientation = header.other_orientation;
  }
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
  if (tiff::is_tiff(data, size)) return Kind::Tiff;
  if (webp::is_webp(data, size)) return Kind::Webp;
  if (jpeg2000::is_jpeg2000(data, size)) return Kind::Jpeg2000;
  if (gif::is_gif(data, size)) return Kind::Gif;
  if (bmp::is_bmp(data, size)) return Kind::Bmp;
  return pnm::is_pnm(data, size) ? Kind::Pnm : Kind::None;
}

Parsed parse(const uint8_t* data, size_t size, Picture& picture, std::string& error) {
  picture.kind = kind_of(data, size);
  const char* reason = "not a file that is decoded natively";
  Parsed parsed = Parsed::Handover;
  switch (picture.kind) {
    case Kind::None: break;
    case Kind::Png: parsed = parse_with(png::parse, png::layout_of, data, size, picture.png, picture, reason); break;
    case Kind::Tiff:
      parsed = parse_with(tiff::parse, tiff::layout_of, data, size, picture.tiff, picture, reason);
      break;
    case Kind::Webp:
      parsed = parse_with(webp::parse, webp::layout_of, data, size, picture.webp, picture, reason);
      break;
    case Kind::Jpeg2000:
      parsed = parse_with(jpeg2000::parse, jpeg2000::layout_of, data, size, picture.jpeg2000, picture, reason);
      break;
    case Kind::Gif: parsed = parse_with(gif::parse, gif::layout_of, data, size, picture.gif, picture, reason); break;
    default: parsed = parse_raw(data, size, picture, reason);
  }
  if (parsed == Parsed::Damaged) error = std::string("the PNG file is damaged: ") + reason;
  if (parsed == Parsed::Handover) error = reason;
  return parsed;
}

Parsed decode(const uint8_t* data, size_t size, const Picture& picture, const Target& target, Scratch* scratch,
              std::string& error) {
  // Pillow decides what is wrong with files that it, too, leaves to these libraries.
  const auto or_hand_over = [&](bool done, const char* reason) {
    if (!done) error = reason;
    return done ? Parsed::Ok : Parsed::Handover;
  };
  switch (picture.kind) {
    case Kind::Png:
      error = png::decode(data, size, picture.png, picture.layout, target, scratch);
      return error.empty() ? Parsed::Ok : Parsed::Damaged;
    case Kind::Tiff:
      return or_hand_over(tiff::decode(data, size, picture.tiff, picture.layout, target, scratch),
                          "a damaged TIFF file");
    case Kind::Webp:
      return or_hand_over(webp::decode(data, size, picture.webp, picture.layout, target, scratch),
                          "a damaged WebP file");
    case Kind::Jpeg2000:
      return or_hand_over(jpeg2000::decode(data, size, picture.jpeg2000, picture.layout, target, scratch),
                          "a damaged JPEG 2000 file");
    case Kind::Gif:
      return or_hand_over(gif::decode(data, size, picture.gif, picture.layout, target, scratch), "a damaged GIF file");
    default: break;
  }
  if (!has_all_rows(picture.raw, size)) {
    error = "the data of the image end before it is complete (" + std::to_string(size) + " bytes, " +
            std::to_string(picture.width) + "x" + std::to_string(picture.height) + " pixels declared)";
    return Parsed::Damaged;
  }
  if (picture.kind == Kind::Pnm) pnm::decode(data, picture.raw, target, scratch);
  else write_raw(data, picture.raw, target, scratch[3]);
  return Parsed::Ok;
}

}  // namespace stoker::raster
