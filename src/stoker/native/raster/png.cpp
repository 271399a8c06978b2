// SPDX-License-Identifier: Apache-2.0
#include "raster/png.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "raster/checksums.hpp"
#include "raster/inflate.hpp"
#include "raster/unfilter.hpp"

namespace stoker::raster::png {
namespace {

constexpr uint8_t kSignature[8] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
constexpr size_t kChunkHead = 8, kChunkEnd = 4, kHeaderBytes = 13;
constexpr int kPasses = 7;

enum Colours : uint8_t { kGray = 0, kRgb = 2, kPalette = 3, kGrayAlpha = 4, kRgba = 6 };

uint32_t be32(const uint8_t* p) {
  return static_cast<uint32_t>(p[0]) << 24 | static_cast<uint32_t>(p[1]) << 16 | static_cast<uint32_t>(p[2]) << 8 |
         p[3];
}

constexpr uint32_t name_of(const char (&s)[5]) {
  return static_cast<uint32_t>(s[0]) << 24 | static_cast<uint32_t>(s[1]) << 16 | static_cast<uint32_t>(s[2]) << 8 |
         static_cast<uint32_t>(s[3]);
}

struct Chunk {
  uint32_t name = 0;
  const uint8_t* data = nullptr;
  uint32_t size = 0;   // as the file states it
  size_t end = 0;      // offset of the next chunk
  bool whole = false;  // the data and the checksum are there
  bool is_right() const { return crc32(data - 4, size + size_t{4}) == be32(data + size); }
};

// Read the chunk at `at`. Return false where the data end before its name does.
bool read_chunk(const uint8_t* data, size_t size, size_t at, Chunk& chunk) {
  if (at > size || size - at < kChunkHead) return false;
  chunk.size = be32(data + at);
  chunk.name = be32(data + at + 4);
  chunk.data = data + at + kChunkHead;
  chunk.whole = size - at - kChunkHead >= size_t{chunk.size} + kChunkEnd;
  chunk.end = chunk.whole ? at + kChunkHead + chunk.size + kChunkEnd : size;
  return true;
}

bool is_name(uint32_t name) {
  for (int shift = 0; shift < 32; shift += 8) {
    const uint32_t c = name >> shift & 255;
    if (!((c | 32) >= 'a' && (c | 32) <= 'z') && !(c >= '0' && c <= '9') && c != '_') return false;
  }
  return true;
}

struct Parser {
  Header& header;
  const char*& reason;

  Parsed hand_over(const char* why) {
    reason = why;
    return Parsed::Handover;
  }
  Parsed damaged(const char* why) {
    reason = why;
    return Parsed::Damaged;
  }

  Parsed read_header(const Chunk& chunk) {
    const uint8_t* const p = chunk.data;
    if (chunk.name != name_of("IHDR") || chunk.size != kHeaderBytes)
      return hand_over("a PNG file without a usual header");
    const uint32_t width = be32(p), height = be32(p + 4);
    if (width == 0 || height == 0) return hand_over("a PNG file without pixels");
    if (std::max(width, height) > kMaxExtent) return hand_over("an image of more than 2^28 pixels on a side");
    header.width = static_cast<int32_t>(width);
    header.height = static_cast<int32_t>(height);
    header.bits = p[8];
    header.colours = p[9];
    header.interlaced = p[12] != 0;
    if (!has_known_colours()) return hand_over("colours that PNG files do not have");
    if (p[10] != 0 || p[11] != 0 || p[12] > 1) return hand_over("an unknown compression, filter or interlacing");
    return Parsed::Ok;
  }
  bool has_known_colours() const {
    const int bits = header.bits;
    switch (header.colours) {
      case kGray: return bits == 1 || bits == 2 || bits == 4 || bits == 8 || bits == 16;
      case kPalette: return bits == 1 || bits == 2 || bits == 4 || bits == 8;
      case kRgb:
      case kGrayAlpha:
      case kRgba: return bits == 8 || bits == 16;
      default: return false;
    }
  }

  Parsed before_data(const Chunk& chunk) {
    if (!chunk.is_right()) return damaged("a wrong checksum of a chunk before the image data");
    const bool palette = header.colours == kPalette;
    switch (chunk.name) {
      case name_of("IHDR"): return hand_over("a PNG file with two headers");
      case name_of("acTL"):
      case name_of("fcTL"):
      case name_of("fdAT"): return hand_over("an animated PNG file");
      case name_of("PLTE"):
        if (!palette) return Parsed::Ok;
        if (chunk.size % 3 != 0 || chunk.size > 768 || header.palette) return hand_over("an unusual palette");
        header.palette = chunk.data;
        header.palette_entries = chunk.size / 3;
        return Parsed::Ok;
      case name_of("tRNS"):
        if (palette) {
          if (chunk.size > 256 || header.alphas || chunk.size == 0) return hand_over("an unusual transparency");
          // Pillow's rule for one transparent entry also takes a last byte of ten for the end of a line.
          if (chunk.data[chunk.size - 1] == '\n') return hand_over("an unusual transparency");
          header.alphas = chunk.data;
          header.alpha_entries = chunk.size;
          return Parsed::Ok;
        }
        return chunk.size < (header.colours == kRgb ? 6 : 2) && header.colours <= kRgb
                   ? hand_over("a short transparency")
                   : Parsed::Ok;
      default: return about_orientation(chunk);
    }
  }

  Parsed after_data(const Chunk& chunk) {
    if (chunk.name == name_of("tRNS") && header.colours == kPalette)
      return hand_over("a transparency after the image data");
    if (chunk.name == name_of("eXIf") && !chunk.is_right()) return damaged("a wrong checksum of the Exif data");
    return about_orientation(chunk);
  }

  Parsed about_orientation(const Chunk& chunk) {
    const std::string_view text(reinterpret_cast<const char*>(chunk.data), chunk.size);
    switch (chunk.name) {
      case name_of("eXIf"): {
        const size_t prefix = text.starts_with(std::string_view("Exif\0\0", 6)) ? 6 : 0;
        header.orientation = jpeg::exif_orientation(chunk.data + prefix, chunk.size - prefix);
        break;
      }
      case name_of("tEXt"):
      case name_of("zTXt"):
      case name_of("iTXt"):
        header.other_orientation |= text.starts_with("Raw profile type ") || text.starts_with("XML:com.adobe.xmp");
        break;
      default: break;
    }
    return Parsed::Ok;
  }
};

// Rows and columns of an interlaced picture's passes.
struct Pass {
  uint8_t x, y, step_x, step_y;
};
constexpr Pass kPass[kPasses] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                 {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};

int samples_of(const Header& header) {
  switch (header.colours) {
    case kRgb: return 3;
    case kGrayAlpha: return 2;
    case kRgba: return 4;
    default: return 1;
  }
}

int pixel_bits(const Header& header) { return samples_of(header) * header.bits; }

int64_t row_bytes(const Header& header, int64_t width) { return (width * pixel_bits(header) + 7) / 8; }

// Bytes of a filter's distance.
int filter_pixel(const Header& header) { return std::max(1, pixel_bits(header) / 8); }

// Give each sample of fewer than eight bits a byte.
void unpack(const uint8_t* from, int64_t count, int bits, uint8_t* to) {
  const int mask = (1 << bits) - 1, per_byte = 8 / bits;
  for (int64_t x = 0; x < count; ++from)
    for (int k = 0; k < per_byte && x < count; ++k, ++x)
      to[x] = static_cast<uint8_t>(*from >> (8 - bits * (k + 1)) & mask);
}

// Rows in the order of the file. Filters are undone when a row is read.
class PlainRows final : public Rows {
 public:
  // `data`: a filter byte and the row, for each row. `memory`: a row of zeros, and one of bytes.
  PlainRows(const Header& header, uint8_t* data, uint8_t* memory)
      : header_(header),
        next_(data),
        bytes_(row_bytes(header, header.width)),
        above_(memory),
        unpacked_(memory + bytes_ + kUnfilterPadding) {
    std::fill_n(memory, bytes_ + kUnfilterPadding, uint8_t{0});
  }
  static int64_t memory_bytes(const Header& header) {
    return row_bytes(header, header.width) + kUnfilterPadding + header.width;
  }

  const uint8_t* row(int32_t y) override {
    for (; at_ <= y; ++at_) {
      if (*next_ >= kFilters) return nullptr;
      unfilter(*next_, next_ + 1, above_, static_cast<size_t>(bytes_), filter_pixel(header_));
      above_ = next_ + 1;
      next_ += 1 + bytes_;
    }
    if (header_.bits >= 8) return above_;
    unpack(above_, header_.width, header_.bits, unpacked_);
    return unpacked_;
  }

 private:
  const Header& header_;
  uint8_t* next_;
  const int64_t bytes_;
  const uint8_t* above_;
  uint8_t* const unpacked_;
  int32_t at_ = 0;
};

// Rows of an interlaced picture, after all passes were put in their places.
class JoinedRows final : public Rows {
 public:
  JoinedRows(const uint8_t* pixels, int64_t pitch) : pixels_(pixels), pitch_(pitch) {}
  const uint8_t* row(int32_t y) override { return pixels_ + y * pitch_; }

 private:
  const uint8_t* pixels_;
  const int64_t pitch_;
};

int64_t extent_of_pass(int64_t extent, int first, int step) {
  return extent > first ? (extent - first + step - 1) / step : 0;
}

int64_t interlaced_bytes(const Header& header) {
  int64_t bytes = 0;
  for (const Pass& p : kPass) {
    const int64_t width = extent_of_pass(header.width, p.x, p.step_x),
                  height = extent_of_pass(header.height, p.y, p.step_y);
    if (width > 0) bytes += height * (1 + row_bytes(header, width));
  }
  return bytes;
}

// Put the passes' pixels in their places, with a byte at least for each sample. `line`: memory for a row of zeros and
// one of bytes. Return false if a row's filter does not exist.
bool join_passes(const Header& header, uint8_t* data, uint8_t* line, uint8_t* to) {
  const int64_t pixel = filter_pixel(header), pitch = pixel * header.width,
                longest = row_bytes(header, header.width) + kUnfilterPadding;
  for (const Pass& p : kPass) {
    const int64_t width = extent_of_pass(header.width, p.x, p.step_x),
                  height = extent_of_pass(header.height, p.y, p.step_y);
    if (width == 0) continue;
    const int64_t bytes = row_bytes(header, width);
    std::fill_n(line, longest, uint8_t{0});
    const uint8_t* above = line;
    for (int64_t y = 0; y < height; ++y, data += 1 + bytes) {
      if (*data >= kFilters) return false;
      unfilter(*data, data + 1, above, static_cast<size_t>(bytes), static_cast<int>(pixel));
      above = data + 1;
      const uint8_t* from = above;
      if (header.bits < 8) {
        unpack(from, width, header.bits, line + longest);
        from = line + longest;
      }
      uint8_t* const row = to + (p.y + y * p.step_y) * pitch + p.x * pixel;
      for (int64_t x = 0; x < width; ++x)
        std::memcpy(row + x * p.step_x * pixel, from + x * pixel, static_cast<size_t>(pixel));
    }
  }
  return true;
}

std::string damaged(const char* reason) { return std::string("the PNG file is damaged: ") + reason; }

std::string truncated(size_t size, const Header& header) {
  return "the PNG data end before the image is complete (" + std::to_string(size) + " bytes, " +
         std::to_string(header.width) + "x" + std::to_string(header.height) + " pixels declared)";
}

// Join the chunks of image data in `to`, with the padding that `inflate_zlib` needs. Return an error, or an empty text.
std::string join_data(const uint8_t* data, size_t size, const Header& header, Scratch& to, size_t& joined) {
  Chunk chunk;
  const auto each = [&](auto&& visit) {
    for (size_t at = header.data; read_chunk(data, size, at, chunk) && chunk.name == name_of("IDAT"); at = chunk.end)
      if (!visit()) return false;
    return true;
  };
  size_t bytes = 0;
  if (!each([&] { return chunk.whole && (bytes += chunk.size, true); })) return truncated(size, header);
  uint8_t* at = to.get(bytes + kInflateInputPadding);
  joined = bytes;
  if (!each([&] {
        if (chunk.size > 0) std::memcpy(at, chunk.data, chunk.size);
        at += chunk.size;
        return chunk.is_right();
      }))
    return damaged("a wrong checksum of the image data");
  std::fill_n(at, kInflateInputPadding, uint8_t{0});
  return {};
}

}  // namespace

bool is_png(const uint8_t* data, size_t size) {
  return size >= sizeof kSignature && std::memcmp(data, kSignature, sizeof kSignature) == 0;
}

Parsed parse(const uint8_t* data, size_t size, Header& header, const char*& reason) {
  Parser parser{header, reason};
  Chunk chunk;
  if (!is_png(data, size)) return parser.hand_over("not a PNG file");
  if (!read_chunk(data, size, sizeof kSignature, chunk) || !chunk.whole) return parser.damaged("it ends in its header");
  Parsed parsed = parser.read_header(chunk);
  if (parsed != Parsed::Ok) return parsed;
  if (!chunk.is_right()) return parser.damaged("a wrong checksum of the header");
  size_t at = chunk.end;
  for (;; at = chunk.end) {
    if (!read_chunk(data, size, at, chunk)) return parser.damaged("it ends before its image data");
    if (chunk.name == name_of("IDAT")) break;
    if (!chunk.whole) return parser.damaged("it ends before its image data");
    if (chunk.name == name_of("IEND")) return parser.damaged("it has no image data");
    if (!is_name(chunk.name)) return parser.damaged("a chunk without a name");
    parsed = parser.before_data(chunk);
    if (parsed != Parsed::Ok) return parsed;
  }
  if (header.colours == kPalette && !header.palette) return parser.hand_over("a PNG file without its palette");
  header.data = at;
  while (read_chunk(data, size, at, chunk) && chunk.name == name_of("IDAT")) at = chunk.end;
  // What follows can only state the orientation: a file whose last chunks are missing is complete.
  for (; read_chunk(data, size, at, chunk) && chunk.whole && chunk.name != name_of("IEND") && is_name(chunk.name);
       at = chunk.end) {
    parsed = parser.after_data(chunk);
    if (parsed != Parsed::Ok) return parsed;
  }
  return Parsed::Ok;
}

Layout layout_of(const Header& header) {
  Layout layout;
  const int sample = header.bits == 16 ? 2 : 1;
  layout.pixel = static_cast<uint8_t>(filter_pixel(header));
  layout.low = header.bits == 16 ? 1 : 0;
  layout.set_gray(header.colours == kGray && header.bits < 8 ? header.bits : 8);
  const auto colour = [&](int red, int green, int blue, int alpha, int own) {
    layout.family = Family::Colour;
    const int at[4] = {red, green, blue, alpha};
    for (int i = 0; i < 4; ++i) layout.at[i] = static_cast<uint8_t>(at[i] * sample);
    layout.own_channels = static_cast<uint8_t>(own);
  };
  switch (header.colours) {
    case kGray:
      if (header.bits == 16) layout.family = Family::Wide;
      break;
    case kRgb: colour(0, 1, 2, 0, 3); break;
    case kRgba: colour(0, 1, 2, 3, 4); break;
    case kGrayAlpha:
      if (header.bits == 16) {  // of which Pillow makes colours
        colour(0, 0, 0, 1, 4);
      } else {
        layout.family = Family::GrayAlpha;
        layout.at[1] = 1;
        layout.own_channels = 2;
      }
      break;
    default:
      layout.gray = false;
      layout.own_channels = header.alphas ? 4 : 3;
      for (uint32_t i = 0; i < 256; ++i) {
        for (int k = 0; k < 3; ++k)
          layout.table[i][k] =
              i < header.palette_entries ? header.palette[3 * i + static_cast<uint32_t>(k)] : uint8_t{0};
        layout.table[i][3] = i < header.alpha_entries ? header.alphas[i] : uint8_t{255};
      }
  }
  return layout;
}

std::string decode(const uint8_t* data, size_t size, const Header& header, const Layout& layout, const Target& target,
                   Scratch* scratch) {
  size_t compressed = 0;
  std::string error = join_data(data, size, header, scratch[0], compressed);
  if (!error.empty()) return error;
  const uint8_t* const joined = scratch[0].get(compressed + kInflateInputPadding);
  const int64_t rows = rows_needed(target);
  const int64_t wanted = header.interlaced ? interlaced_bytes(header) : rows * (1 + row_bytes(header, header.width));
  if (static_cast<uint64_t>(wanted) / kMaxInflateRatio > compressed) return truncated(size, header);
  uint8_t* const inflated = scratch[1].get(static_cast<size_t>(wanted) + kInflateOutputPadding);
  const InflateResult result = inflate_zlib(joined, compressed, inflated, static_cast<size_t>(wanted));
  if (result.status == Inflated::Damaged) return damaged(result.reason);
  if (result.status == Inflated::Truncated || static_cast<int64_t>(result.bytes) < wanted)
    return truncated(size, header);
  const int64_t line = PlainRows::memory_bytes(header);
  bool done;
  if (header.interlaced) {
    const int64_t pitch = int64_t{filter_pixel(header)} * header.width;
    uint8_t* const memory = scratch[2].get(static_cast<size_t>(line + pitch * header.height));
    JoinedRows joined_rows(memory + line, pitch);
    done = join_passes(header, inflated, memory, memory + line) && write(joined_rows, layout, target, scratch[3]);
  } else {
    PlainRows plain_rows(header, inflated, scratch[2].get(static_cast<size_t>(line)));
    done = write(plain_rows, layout, target, scratch[3]);
  }
  return done ? std::string() : damaged("an unknown filter of a row");
}

}  // namespace stoker::raster::png
