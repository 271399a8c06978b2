// SPDX-License-Identifier: Apache-2.0
#include "raster/gif.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "raster/lzw.hpp"

namespace stoker::raster::gif {
namespace {

constexpr size_t kScreenBytes = 13, kFrameBytes = 9;
constexpr uint8_t kExtension = '!', kFrame = ',', kControl = 0xF9, kComment = 0xFE, kApplication = 0xFF;
constexpr uint8_t kHasPalette = 0x80, kInterlaced = 0x40, kTransparent = 1;
constexpr int kLeastBits = 2, kMostBits = 8;  // with one bit, decoders differ in when codes grow

// Reads a file from its start to its end.
class Reader {
 public:
  Reader(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  // Return the next bytes; null if the file has fewer.
  const uint8_t* take(size_t count) {
    if (size_ - at_ < count) return nullptr;
    at_ += count;
    return data_ + at_ - count;
  }
  // Read a block of at most 255 bytes. Return false if the file ends in it. A block without bytes ends a chain of blocks.
  bool block(const uint8_t*& bytes, size_t& count) {
    const uint8_t* const head = take(1);
    if (!head) return false;
    count = *head;
    bytes = take(count);
    return bytes != nullptr;
  }
  size_t at() const { return at_; }

 private:
  const uint8_t* const data_;
  const size_t size_;
  size_t at_ = 0;
};

int32_t le16(const uint8_t* p) { return p[0] | p[1] << 8; }

bool is_netscape(const uint8_t* bytes, size_t count) {
  return count >= 11 && std::memcmp(bytes, "NETSCAPE2.0", 11) == 0;
}

// Read an extension up to the end of its chain. Return null, or why Pillow has to read the file.
const char* read_extension(Reader& file, Header& header) {
  constexpr const char* kEnd = "a GIF file that ends in an extension";
  constexpr const char* kUnusual = "a GIF file with an unusual extension";
  const uint8_t* const label = file.take(1);
  const uint8_t* bytes = nullptr;
  size_t count = 0;
  if (!label || !file.block(bytes, count)) return kEnd;
  if (count == 0) return *label == kComment ? nullptr : kUnusual;  // Pillow reads on to the end of the next chain
  if (*label == kControl) {
    if (count < 4) return kUnusual;
    if (bytes[0] & kTransparent) {
      header.transparent = true;
      header.clear = bytes[3];
    }
  }
  const bool looped = *label == kApplication && is_netscape(bytes, count);
  if (!file.block(bytes, count)) return kEnd;
  if (looped && count == 0) return kUnusual;
  while (count > 0)
    if (!file.block(bytes, count)) return kEnd;
  return nullptr;
}

// Read a palette. One whose colours are the gray values of their numbers is none.
bool read_palette(Reader& file, uint8_t flags, Header& header) {
  const uint32_t entries = 2u << (flags & 7);
  const uint8_t* const palette = file.take(size_t{3} * entries);
  if (!palette) return false;
  header.palette = nullptr;
  for (uint32_t i = 0; i < entries && !header.palette; ++i)
    if (palette[3 * i] != i || palette[3 * i + 1] != i || palette[3 * i + 2] != i) header.palette = palette;
  header.palette_entries = entries;
  return true;
}

const char* read_frame(Reader& file, Header& header) {
  constexpr const char* kEnd = "a GIF file that ends before its first frame";
  const uint8_t* const frame = file.take(kFrameBytes);
  if (!frame) return kEnd;
  header.x = le16(frame);
  header.y = le16(frame + 2);
  header.frame_width = le16(frame + 4);
  header.frame_height = le16(frame + 6);
  if (header.frame_width == 0 || header.frame_height == 0) return "a GIF file whose first frame has no pixels";
  header.width = std::max(header.width, header.x + header.frame_width);
  header.height = std::max(header.height, header.y + header.frame_height);
  header.interlaced = frame[8] & kInterlaced;
  const bool has_colours = header.palette != nullptr;
  if ((frame[8] & kHasPalette) && !read_palette(file, frame[8], header)) return kEnd;
  // Pillow gives such a frame the colours of the file.
  if (has_colours && !header.palette) return "a GIF file of colours whose first frame is gray";
  const uint8_t* const bits = file.take(1);
  if (!bits) return kEnd;
  if (*bits < kLeastBits || *bits > kMostBits) return "a GIF file with an unusual size of codes";
  header.bits = *bits;
  header.data = file.at();
  return nullptr;
}

const char* read(Reader& file, Header& header) {
  const uint8_t* const screen = file.take(kScreenBytes);
  header.width = le16(screen + 6);
  header.height = le16(screen + 8);
  if ((screen[10] & kHasPalette) && !read_palette(file, screen[10], header))
    return "a GIF file that ends in its palette";
  for (;;) {
    const uint8_t* const kind = file.take(1);
    if (!kind) return "a GIF file without a frame";
    if (*kind == kFrame) return read_frame(file, header);
    if (*kind != kExtension) return "a GIF file with an unusual block";  // which Pillow skips
    if (const char* const reason = read_extension(file, header)) return reason;
  }
}

// Join the blocks of codes, up to the end of their chain or of the file. Return their size.
size_t join_blocks(const uint8_t* data, size_t size, size_t at, uint8_t* to) {
  const uint8_t* const start = to;
  while (at < size && data[at] > 0 && data[at] <= size - at - 1) {
    std::memcpy(to, data + at + 1, data[at]);
    to += data[at];
    at += size_t{1} + data[at];
  }
  return static_cast<size_t>(to - start);
}

// Rows of the screen.
class ScreenRows final : public Rows {
 public:
  // `pixels`: the frame, its rows in the order of the file. `line`: memory for a row of the screen.
  ScreenRows(const Header& header, const uint8_t* pixels, uint8_t* line)
      : header_(header), pixels_(pixels), line_(line), whole_(header.frame_width == header.width) {
    std::fill_n(line_, header.width, background());
  }

  const uint8_t* row(int32_t y) override {
    const int32_t in_frame = y - header_.y;
    if (in_frame < 0 || in_frame >= header_.frame_height) {
      if (drawn_) std::fill_n(line_, header_.width, background());
      drawn_ = false;
      return line_;
    }
    const uint8_t* const stored = pixels_ + stored_row(header_, in_frame) * header_.frame_width;
    if (whole_) return stored;
    std::memcpy(line_ + header_.x, stored, static_cast<size_t>(header_.frame_width));
    drawn_ = true;
    return line_;
  }

  // Return the number of a row in the file: interlaced frames have every eighth row first, then those in the middle between
  // them, and so on.
  static int64_t stored_row(const Header& header, int64_t y) {
    if (!header.interlaced) return y;
    const int64_t height = header.frame_height;
    const auto count = [height](int64_t first, int64_t step) {
      return height > first ? (height - first + step - 1) / step : 0;
    };
    if (y % 8 == 0) return y / 8;
    if (y % 8 == 4) return count(0, 8) + y / 8;
    if (y % 4 == 2) return count(0, 8) + count(4, 8) + y / 4;
    return count(0, 8) + count(4, 8) + count(2, 4) + y / 2;
  }

 private:
  uint8_t background() const { return header_.transparent ? header_.clear : uint8_t{0}; }

  const Header& header_;
  const uint8_t* const pixels_;
  uint8_t* const line_;
  const bool whole_;  // the frame is as wide as the screen
  bool drawn_ = false;
};

}  // namespace

bool is_gif(const uint8_t* data, size_t size) {
  return size >= kScreenBytes && (std::memcmp(data, "GIF87a", 6) == 0 || std::memcmp(data, "GIF89a", 6) == 0);
}

Parsed parse(const uint8_t* data, size_t size, Header& header, const char*& reason) {
  Reader file(data, size);
  reason = read(file, header);
  return reason ? Parsed::Handover : Parsed::Ok;
}

Layout layout_of(const Header& header) {
  Layout layout;
  layout.set_gray(8);
  if (!header.palette) return layout;
  layout.gray = false;
  layout.own_channels = header.transparent ? 4 : 3;
  for (uint32_t i = 0; i < 256; ++i) {
    if (i < header.palette_entries) std::copy_n(header.palette + 3 * i, 3, layout.table[i]);
    else std::fill_n(layout.table[i], 3, uint8_t{0});
  }
  if (header.transparent) layout.table[header.clear][3] = 0;
  return layout;
}

bool decode(const uint8_t* data, size_t size, const Header& header, const Layout& layout, const Target& target,
            Scratch* scratch) {
  const int64_t rows = std::clamp(rows_needed(target) - header.y, 0, header.frame_height);
  // All pixels of an interlaced frame, because its last pass has rows of the whole height.
  const auto wanted =
      static_cast<size_t>((header.interlaced && rows > 0 ? header.frame_height : rows) * header.frame_width);
  if (wanted / kMaxLzwRatio > size - header.data) return false;
  uint8_t* const codes = scratch[0].get(size - header.data);
  const size_t bytes = join_blocks(data, size, header.data, codes);
  uint8_t* const pixels = scratch[1].get(wanted + kLzwOutputPadding);
  if (decode_gif_lzw(codes, bytes, header.bits, pixels, wanted) != wanted) return false;
  ScreenRows screen(header, pixels, scratch[2].get(static_cast<size_t>(header.width)));
  return write(screen, layout, target, scratch[3]);
}

}  // namespace stoker::raster::gif
