// SPDX-License-Identifier: Apache-2.0
#include "raster/webp.hpp"

#include <cstring>
#include <string_view>

#include "raster/libraries.hpp"
#include "raster/raw_rows.hpp"

namespace stoker::raster::webp {
namespace {

constexpr size_t kFileHead = 12, kChunkHead = 8;
constexpr int kVersion = 0x0209;  // of the interface, which libwebp compares with its own
constexpr int kOk = 0;

size_t le32(const uint8_t* p) {
  return static_cast<size_t>(p[0]) | static_cast<size_t>(p[1]) << 8 | static_cast<size_t>(p[2]) << 16 |
         static_cast<size_t>(p[3]) << 24;
}

// Read what the file says of its orientation. The first chunk of a name counts, as for libwebp.
void read_orientation(const uint8_t* data, size_t size, Header& header) {
  bool exif = false;
  for (size_t at = kFileHead; at <= size && size - at >= kChunkHead;) {
    const std::string_view name(reinterpret_cast<const char*>(data + at), 4);
    const size_t bytes = le32(data + at + 4);
    const uint8_t* const body = data + at + kChunkHead;
    if (bytes > size - at - kChunkHead) return;
    if (name == "EXIF" && !exif) {
      exif = true;
      const size_t prefix = bytes >= 6 && std::memcmp(body, "Exif\0\0", 6) == 0 ? 6 : 0;
      header.orientation = jpeg::exif_orientation(body + prefix, bytes - prefix);
    }
    header.other_orientation |= name == "XMP ";
    at += kChunkHead + bytes + (bytes & 1);
  }
}

}  // namespace

bool is_webp(const uint8_t* data, size_t size) {
  return size >= kFileHead && std::memcmp(data, "RIFF", 4) == 0 && std::memcmp(data + 8, "WEBP", 4) == 0;
}

Parsed parse(const uint8_t* data, size_t size, Header& header, const char*& reason) {
  const auto hand_over = [&](const char* why) {
    reason = why;
    return Parsed::Handover;
  };
  const WebpLibrary* const library = libwebp();
  if (!library) return hand_over("a WebP file, without the libwebp of Pillow's package");
  WebpFeatures features{};
  if (library->get_features(data, size, &features, kVersion) != kOk || features.width < 1 || features.height < 1)
    return hand_over("a damaged WebP file");
  if (features.has_animation) return hand_over("an animated WebP file");
  header.width = features.width;
  header.height = features.height;
  header.alpha = features.has_alpha != 0;
  read_orientation(data, size, header);
  return Parsed::Ok;
}

Layout layout_of(const Header& header) {
  Layout layout;
  layout.family = Family::Colour;
  layout.pixel = layout.own_channels = header.alpha ? 4 : 3;
  for (uint8_t i = 0; i < 4; ++i) layout.at[i] = i;
  return layout;
}

bool decode(const uint8_t* data, size_t size, const Header& header, const Layout& layout, const Target& target,
            Scratch* scratch) {
  const WebpLibrary& library = *libwebp();
  RawRows rows{
      .width = header.width, .height = header.height, .pitch = int64_t{layout.pixel} * header.width, .layout = layout};
  // The chroma that libwebp gives the edge of a part differs, so all of the picture is decoded.
  const auto bytes = static_cast<size_t>(rows.pitch * rows.height);
  uint8_t* const pixels = scratch[1].get(bytes);
  const auto decode = header.alpha ? library.decode_rgba : library.decode_rgb;
  if (!decode(data, size, pixels, bytes, static_cast<int>(rows.pitch))) return false;
  write_raw(pixels, rows, target, scratch[3]);
  return true;
}

}  // namespace stoker::raster::webp
