// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "raster/raw_rows.hpp"

namespace stoker::raster::bmp {
namespace {

constexpr size_t kFileHeader = 14, kLeastHeader = 40, kMasksAt = 40, kMasksEnd = 56;
constexpr uint32_t kRaw = 0, kBitFields = 3, kPaletteEntries = 256;

uint32_t le16(const uint8_t* p) { return static_cast<uint32_t>(p[0] | p[1] << 8); }
uint32_t le32(const uint8_t* p) { return le16(p) | le16(p + 2) << 16; }

bool is_header_size(uint32_t size) { return size == 40 || size == 52 || size == 56 || size == 108 || size == 124; }

// Set the colours of a palette of blue, green, red and an unused byte. A palette of all gray values in order is none.
// Numbers beyond it are black.
void set_palette(const uint8_t* palette, uint32_t entries, Layout& layout) {
  bool gray = true;
  for (uint32_t i = 0; i < kPaletteEntries; ++i) {
    uint8_t* const to = layout.table[i];
    std::fill_n(to, 3, uint8_t{0});
    to[3] = 255;
    if (i >= entries) continue;
    std::reverse_copy(palette + 4 * i, palette + 4 * i + 3, to);
    gray = gray && std::all_of(to, to + 3, [i](uint8_t x) { return x == i; });
  }
  if (gray) layout.set_gray(8);
  layout.gray = gray;
  layout.own_channels = gray ? 1 : 3;
}

void set_colours(int bytes, bool alpha, Layout& layout) {
  layout.family = Family::Colour;
  layout.pixel = static_cast<uint8_t>(bytes);
  constexpr uint8_t kAt[4] = {2, 1, 0, 3};
  std::copy_n(kAt, 4, layout.at);
  layout.own_channels = alpha ? 4 : 3;
}

// Return whether the masks are those of blue, green, red and perhaps transparency, in this order.
bool has_usual_masks(const uint8_t* masks, bool& alpha) {
  alpha = le32(masks + 12) == 0xFF000000u;
  return le32(masks) == 0xFF0000u && le32(masks + 4) == 0xFF00u && le32(masks + 8) == 0xFFu &&
         (alpha || le32(masks + 12) == 0);
}

}  // namespace

bool is_bmp(const uint8_t* data, size_t size) {
  return size >= kFileHeader + kLeastHeader && data[0] == 'B' && data[1] == 'M' &&
         is_header_size(le32(data + kFileHeader));
}

Parsed parse(const uint8_t* data, size_t size, RawRows& rows, const char*& reason) {
  const auto hand_over = [&](const char* why) {
    reason = why;
    return Parsed::Handover;
  };
  const uint8_t* const header = data + kFileHeader;
  const size_t header_bytes = le32(header);
  if (header_bytes > size - kFileHeader) return hand_over("a bitmap that ends in its header");
  const bool top_down = header[11] == 0xFF;
  const uint32_t width = le32(header + 4), stored = le32(header + 8), height = top_down ? 0u - stored : stored;
  if (width == 0 || height == 0 || std::max(width, height) > kMaxExtent)
    return hand_over("a bitmap of an unusual size");
  const uint32_t bits = le16(header + 14), compression = le32(header + 16), colours = le32(header + 32);
  bool alpha = false;
  const bool masked =
      compression == kBitFields && bits == 32 && header_bytes >= kMasksEnd && has_usual_masks(header + kMasksAt, alpha);
  if (compression != kRaw && !masked) return hand_over("a compressed bitmap, or one of unusual channels");
  rows.width = static_cast<int32_t>(width);
  rows.height = static_cast<int32_t>(height);
  rows.offset = le32(data + 10);
  rows.pitch = (int64_t{width} * bits + 31) / 32 * 4;
  rows.bottom_up = !top_down;
  const size_t end = kFileHeader + header_bytes;
  switch (bits) {
    case 8: {
      const uint32_t entries = colours == 0 ? kPaletteEntries : colours;
      // Pillow reads gray palettes of two entries as one bit.
      if (entries < 3 || entries > kPaletteEntries || size - end < 4 * entries || rows.offset < end + 4 * entries)
        return hand_over("a bitmap with an unusual palette");
      set_palette(data + end, entries, rows.layout);
      break;
    }
    case 24: set_colours(3, false, rows.layout); break;
    case 32: set_colours(4, alpha, rows.layout); break;
    default: return hand_over("a bitmap of 1, 4 or 16 bits");
  }
  return rows.offset < end ? hand_over("a bitmap whose pixels begin in its header") : Parsed::Ok;
}

}  // namespace stoker::raster::bmp
