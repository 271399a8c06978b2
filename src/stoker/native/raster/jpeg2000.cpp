// SPDX-License-Identifier: Apache-2.0
#include "raster/jpeg2000.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include "raster/libraries.hpp"
#include "raster/raw_rows.hpp"

namespace stoker::raster::jpeg2000 {
namespace {

constexpr uint8_t kStream[4] = {0xFF, 0x4F, 0xFF, 0x51};  // the markers SOC and SIZ
constexpr uint8_t kSignature[12] = {0, 0, 0, 12, 'j', 'P', ' ', ' ', 0x0D, 0x0A, 0x87, 0x0A};
constexpr uint32_t kOtherBlocks = 0x4000;   // in Rsiz: HTJ2K, another coder of blocks
constexpr uint32_t kSrgb = 16, kGray = 17;  // enumerated colour spaces of the box `colr`
constexpr int kMostBoxes = 64, kCodestream = 0, kFile = 2;
constexpr size_t kSizBytes = 42;             // of the codestream up to the components
constexpr size_t kParameterBytes = 1 << 14;  // more than opj_dparameters_t takes in any version
constexpr size_t kBufferBytes = 1 << 20;     // OpenJPEG's default

uint32_t be16(const uint8_t* p) { return static_cast<uint32_t>(p[0] << 8 | p[1]); }
uint32_t be32(const uint8_t* p) { return be16(p) << 16 | be16(p + 2); }

struct Range {
  const uint8_t* data = nullptr;
  size_t size = 0;
};

// Return the content of the first box of a type among those in `range`; no data if there is none.
Range find_box(Range range, const char (&type)[5]) {
  for (int i = 0; i < kMostBoxes && range.size >= 8; ++i) {
    uint64_t bytes = be32(range.data);
    size_t head = 8;
    if (bytes == 1) {
      if (range.size < 16) return {};
      bytes = uint64_t{be32(range.data + 8)} << 32 | be32(range.data + 12);
      head = 16;
    }
    // A size of 0 means the rest; others that do not fit are damage, which the decoder reports.
    const size_t whole = bytes >= head && bytes <= range.size ? static_cast<size_t>(bytes) : range.size;
    if (std::memcmp(range.data + 4, type, 4) == 0) return {range.data + head, whole - head};
    range = {range.data + whole, range.size - whole};
  }
  return {};
}

// Read SIZ. Return whether the components are plain and of one kind.
bool read_stream(Range range, Header& header) {
  const uint8_t* const p = range.data;
  if (range.size < kSizBytes || std::memcmp(p, kStream, 4) != 0) return false;
  const uint32_t right = be32(p + 8), bottom = be32(p + 12), channels = be16(p + 40);
  const bool offset = be32(p + 16) || be32(p + 20) || be32(p + 32) || be32(p + 36);
  if (offset || be16(p + 6) & kOtherBlocks || channels < 1 || channels > 4) return false;
  if (range.size - kSizBytes < size_t{3} * channels) return false;
  const uint8_t* const parts = p + kSizBytes;
  for (uint32_t i = 0; i < channels; ++i)  // the same bits, no subsampling
    if (parts[3 * i] != parts[0] || parts[3 * i + 1] != 1 || parts[3 * i + 2] != 1) return false;
  const int bits = parts[0] + 1;  // a signed number has the highest bit set
  // Pillow has 8 bits of gray values of 9 bits in a file of boxes, and 16 in a codestream.
  if (bits < 8 || bits > 16 || (bits == 9 && channels == 1)) return false;
  if (right == 0 || bottom == 0 || std::max(right, bottom) > kMaxExtent) return false;
  header.width = static_cast<int32_t>(right);
  header.height = static_cast<int32_t>(bottom);
  header.channels = static_cast<uint8_t>(channels);
  header.bits = static_cast<uint8_t>(bits);
  return true;
}

// Whether the box `cdef` leaves the components in their order.
bool in_order(Range definitions) {
  if (!definitions.data) return true;
  if (definitions.size < 2 || definitions.size - 2 < size_t{6} * be16(definitions.data)) return false;
  for (uint32_t i = 0; i < be16(definitions.data); ++i) {
    const uint8_t* const p = definitions.data + 2 + 6 * i;
    const uint32_t channel = be16(p), colour = be16(p + 4);
    if (be16(p + 2) == 0 && colour != channel + 1) return false;
  }
  return true;
}

bool read_boxes(Range file, Header& header) {
  const Range outer = find_box(file, "jp2h"), stream = find_box(file, "jp2c");
  if (!outer.data || !stream.data) return false;
  const Range colours = find_box(outer, "colr");
  if (find_box(outer, "pclr").data || colours.size < 7 || colours.data[0] != 1) return false;
  if (!read_stream(stream, header) || !in_order(find_box(outer, "cdef"))) return false;
  header.boxes = true;
  return be32(colours.data + 3) == (header.channels > 2 ? kSrgb : kGray);
}

// The file as a stream of OpenJPEG.
struct Reader {
  const uint8_t* data;
  size_t size, at = 0;

  static size_t read(void* to, size_t bytes, void* user) {
    auto& self = *static_cast<Reader*>(user);
    const size_t count = std::min(bytes, self.size - self.at);
    if (count == 0) return static_cast<size_t>(-1);
    std::memcpy(to, self.data + self.at, count);
    self.at += count;
    return count;
  }
  static int64_t skip(int64_t bytes, void* user) {
    auto& self = *static_cast<Reader*>(user);
    const int64_t left = static_cast<int64_t>(self.size - self.at);
    if (bytes < 0 || left == 0) return -1;
    const int64_t count = std::min(bytes, left);
    self.at += static_cast<size_t>(count);
    return count;
  }
  static int seek(int64_t position, void* user) {
    auto& self = *static_cast<Reader*>(user);
    if (position < 0 || static_cast<uint64_t>(position) > self.size) return 0;
    self.at = static_cast<size_t>(position);
    return 1;
  }
  static void keep(void*) {}
};

bool is_expected(const Jpeg2000Image& image, const Header& header) {
  if (image.components != header.channels) return false;
  for (uint32_t i = 0; i < image.components; ++i) {
    const Jpeg2000Component& part = image.component[i];
    if (part.width != static_cast<uint32_t>(header.width) || part.is_signed ||
        part.height != static_cast<uint32_t>(header.height) || part.bits != header.bits)
      return false;
  }
  return true;
}

// Bytes of a value in memory: OpenJPEG gives words to numbers of more than 8 bits.
int value_bytes(int bits) { return bits > 8 ? 2 : 1; }

// A tile's components, one after the other.
struct Tile {
  const uint8_t* data;
  int64_t width, height;
  int bits;
};

// Join the components in pixels, whose values `convert` makes. `pitch`: bytes from one row of pixels to the next.
template <class From, class To, int kChannels, class Convert>
void join_channels(const Tile& tile, int64_t pitch, uint8_t* to, const Convert& convert) {
  const int64_t plane = tile.width * tile.height;
  for (int64_t y = 0; y < tile.height; ++y, to += pitch) {
    const uint8_t* const row = tile.data + y * tile.width * static_cast<int64_t>(sizeof(From));
    for (int64_t x = 0; x < tile.width; ++x)
      for (int k = 0; k < kChannels; ++k) {
        From value;
        std::memcpy(&value, row + (k * plane + x) * static_cast<int64_t>(sizeof(From)), sizeof value);
        const To converted = convert(value);
        std::memcpy(to + (kChannels * x + k) * static_cast<int64_t>(sizeof(To)), &converted, sizeof converted);
      }
  }
}

template <class From, class To, class Convert>
void join(const Tile& tile, int channels, int64_t pitch, uint8_t* to, const Convert& convert) {
  switch (channels) {
    case 1: return join_channels<From, To, 1>(tile, pitch, to, convert);
    case 2: return join_channels<From, To, 2>(tile, pitch, to, convert);
    case 3: return join_channels<From, To, 3>(tile, pitch, to, convert);
    default: return join_channels<From, To, 4>(tile, pitch, to, convert);
  }
}

// Join the components of a tile. Numbers of more than 8 bits move up to the highest of 16; or they are rounded to 8 as by
// Pillow, whose sum has no ninth bit, so that it makes the largest values 0.
void join_tile(const Tile& tile, int channels, bool rounded, int64_t pitch, uint8_t* to) {
  if (tile.bits == 8) return join<uint8_t, uint8_t>(tile, channels, pitch, to, [](uint8_t x) { return x; });
  const int up = 16 - tile.bits;
  if (!rounded)
    return join<uint16_t, uint16_t>(tile, channels, pitch, to,
                                    [up](uint16_t x) { return static_cast<uint16_t>(x << up); });
  join<uint16_t, uint8_t>(tile, channels, pitch, to,
                          [up](uint16_t x) { return static_cast<uint8_t>(std::min(255, ((x << up) + 128) >> 8)); });
}

// Decode the tiles one after the other, as Pillow does, so that the same files are damaged. Return false if OpenJPEG does
// not accept the file. `pixels`: zeros. `rounded`: they have 8 bits.
bool decode_tiles(const Jpeg2000Library& library, Reader& reader, const Header& header, bool rounded, uint8_t* pixels,
                  Scratch& scratch) {
  using Handle = std::unique_ptr<void, void (*)(void*)>;
  const Handle decoder(library.create_decoder(header.boxes ? kFile : kCodestream), library.destroy_decoder);
  const Handle stream(library.create_stream(std::min(kBufferBytes, reader.size), 1), library.destroy_stream);
  alignas(16) std::array<uint8_t, kParameterBytes> parameters{};
  if (!decoder || !stream) return false;
  library.set_read(stream.get(), Reader::read);
  library.set_skip(stream.get(), Reader::skip);
  library.set_seek(stream.get(), Reader::seek);
  library.set_user_data(stream.get(), &reader, Reader::keep);
  library.set_user_bytes(stream.get(), reader.size);
  library.set_default_parameters(parameters.data());
  Jpeg2000Image* made = nullptr;
  const bool opened = library.set_up(decoder.get(), parameters.data()) &&
                      library.read_header(stream.get(), decoder.get(), &made) && made;
  const std::unique_ptr<Jpeg2000Image, void (*)(Jpeg2000Image*)> image(made, library.destroy_image);
  if (!opened || !is_expected(*image, header)) return false;
  const int64_t stored = header.channels * value_bytes(header.bits), pixel = rounded ? header.channels : stored,
                pitch = pixel * header.width;
  for (;;) {
    uint32_t tile = 0, bytes = 0, components = 0;
    int32_t x0 = 0, y0 = 0, x1 = 0, y1 = 0;
    int more = 0;
    if (!library.read_tile_header(decoder.get(), stream.get(), &tile, &bytes, &x0, &y0, &x1, &y1, &components, &more))
      return false;
    if (!more) break;
    if (x0 < 0 || y0 < 0 || x0 >= x1 || y0 >= y1 || x1 > header.width || y1 > header.height) return false;
    const int64_t width = x1 - x0, height = y1 - y0;
    if (components != header.channels || int64_t{bytes} != width * height * stored) return false;
    uint8_t* const planes = scratch.get(bytes);
    if (!library.decode_tile(decoder.get(), tile, planes, bytes, stream.get())) return false;
    join_tile({planes, width, height, header.bits}, header.channels, rounded, pitch, pixels + y0 * pitch + x0 * pixel);
  }
  return library.end(decoder.get(), stream.get());
}

}  // namespace

bool is_jpeg2000(const uint8_t* data, size_t size) {
  return (size >= sizeof kStream && std::memcmp(data, kStream, sizeof kStream) == 0) ||
         (size >= sizeof kSignature && std::memcmp(data, kSignature, sizeof kSignature) == 0);
}

Parsed parse(const uint8_t* data, size_t size, Header& header, const char*& reason) {
  const Range file{data, size};
  reason = nullptr;
  if (!openjpeg()) reason = "a JPEG 2000 file, without the OpenJPEG of Pillow's package";
  else if (!(data[0] == 0xFF ? read_stream(file, header) : read_boxes(file, header)))
    reason = "a JPEG 2000 file whose components are not its pixels";
  return reason ? Parsed::Handover : Parsed::Ok;
}

Layout layout_of(const Header& header) {
  Layout layout;
  layout.set_gray(8);
  const int bytes = value_bytes(header.bits), high = bytes - 1;
  layout.pixel = static_cast<uint8_t>(header.channels * bytes);
  layout.low = static_cast<int8_t>(-high);
  for (int i = 0; i < header.channels; ++i) layout.at[i] = static_cast<uint8_t>(bytes * i + high);
  layout.own_channels = header.channels;
  if (header.channels == 2) layout.family = Family::GrayAlpha;
  else if (header.channels > 2) layout.family = Family::Colour;
  else if (bytes == 2) layout.family = Family::Wide;
  return layout;
}

bool decode(const uint8_t* data, size_t size, const Header& header, const Layout& layout, const Target& target,
            Scratch* scratch) {
  Reader reader{data, size};
  // Of one gray value of 16 bits the upper 8 are taken, as of those in all formats.
  const bool rounded = header.bits > 8 && header.channels > 1 && target.out.dtype == DType::U8;
  Header eight = header;
  eight.bits = 8;
  RawRows rows{.width = header.width, .height = header.height, .layout = rounded ? layout_of(eight) : layout};
  rows.pitch = int64_t{rows.layout.pixel} * header.width;
  const auto bytes = static_cast<size_t>(rows.pitch * rows.height);
  uint8_t* const pixels = scratch[1].get(bytes);
  std::fill_n(pixels, bytes, uint8_t{0});  // tiles may be missing
  if (!decode_tiles(*openjpeg(), reader, header, rounded, pixels, scratch[0])) return false;
  write_raw(pixels, rows, target, scratch[3]);
  return true;
}

}  // namespace stoker::raster::jpeg2000
