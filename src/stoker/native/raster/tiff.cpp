// SPDX-License-Identifier: Apache-2.0
#include "raster/tiff.hpp"

#include <algorithm>
#include <cstring>

#include "raster/inflate.hpp"
#include "raster/lzw.hpp"
#include "raster/unfilter.hpp"

namespace stoker::raster::tiff {
namespace {

constexpr size_t kHeaderBytes = 8, kEntryBytes = 12;
constexpr uint32_t kShort = 3, kLong = 4;  // types of values
constexpr uint16_t kNone = 1, kLzw = 5, kDeflate = 8, kOldDeflate = 32946, kPackBits = 32773;
constexpr uint32_t kGray = 1, kRgb = 2, kPalette = 3;
constexpr uint8_t kUnspecified = 0, kAlpha = 2;
constexpr uint32_t kMostSamples = 4, kPaletteValues = 3 * 256;

// Tags whose values matter.
enum Tag : uint32_t {
  kWidth = 256,
  kHeight = 257,
  kBits = 258,
  kCompression = 259,
  kPhotometric = 262,
  kFillOrder = 266,
  kStripOffsets = 273,
  kOrientation = 274,
  kSamples = 277,
  kRowsPerStrip = 278,
  kStripSizes = 279,
  kPlanar = 284,
  kPredictor = 317,
  kColorMap = 320,
  kTileWidth = 322,
  kTileOffsets = 324,
  kExtraSamples = 338,
  kSampleFormat = 339,
  kXmp = 700,
};

struct Bytes {
  const uint8_t* data;
  size_t size;
  bool little;

  uint32_t u16(size_t at) const {
    const uint8_t* const p = data + at;
    return little ? static_cast<uint32_t>(p[0] | p[1] << 8) : static_cast<uint32_t>(p[0] << 8 | p[1]);
  }
  uint32_t u32(size_t at) const { return little ? u16(at) | u16(at + 2) << 16 : u16(at) << 16 | u16(at + 2); }
};

// Values of a tag: integers of 16 or 32 bits.
struct Values {
  uint32_t count = 0;
  size_t at = 0;
  uint8_t bytes = 0;  // of a value; 0: the file does not have the tag

  uint32_t operator()(const Bytes& file, uint32_t i) const {
    return bytes == 2 ? file.u16(at + size_t{2} * i) : file.u32(at + size_t{4} * i);
  }
  uint32_t or_else(const Bytes& file, uint32_t missing) const { return bytes == 0 ? missing : (*this)(file, 0); }
  bool all(const Bytes& file, uint32_t value) const {
    for (uint32_t i = 0; i < count; ++i)
      if ((*this)(file, i) != value) return false;
    return true;
  }
};

struct Directory {
  Values width, height, bits, compression, photometric, fill_order, offsets, orientation, samples, rows, sizes, planar,
      predictor, palette, extra, format;
  bool tiles = false, xmp = false;

  Values* find(uint32_t tag) {
    switch (tag) {
      case kWidth: return &width;
      case kHeight: return &height;
      case kBits: return &bits;
      case kCompression: return &compression;
      case kPhotometric: return &photometric;
      case kFillOrder: return &fill_order;
      case kStripOffsets: return &offsets;
      case kOrientation: return &orientation;
      case kSamples: return &samples;
      case kRowsPerStrip: return &rows;
      case kStripSizes: return &sizes;
      case kPlanar: return &planar;
      case kPredictor: return &predictor;
      case kColorMap: return &palette;
      case kExtraSamples: return &extra;
      case kSampleFormat: return &format;
      default: return nullptr;
    }
  }

  // Read the entries. Return null, or why Pillow has to read the file.
  const char* read(const Bytes& file) {
    const size_t start = file.u32(4);
    if (start > file.size || file.size - start < 2) return "a TIFF file that ends before its directory";
    const size_t entries = file.u16(start);
    if (file.size - start - 2 < entries * kEntryBytes) return "a TIFF file that ends in its directory";
    for (size_t i = 0; i < entries; ++i) {
      const size_t at = start + 2 + i * kEntryBytes;
      const uint32_t tag = file.u16(at), type = file.u16(at + 2), count = file.u32(at + 4);
      tiles = tiles || tag == kTileWidth || tag == kTileOffsets;
      xmp = xmp || tag == kXmp;
      Values* const values = find(tag);
      if (!values) continue;
      if (values->bytes != 0) return "a TIFF file with two values of a tag";
      if ((type != kShort && type != kLong) || count == 0) return "a TIFF file with a value of an unusual type";
      values->count = count;
      values->bytes = type == kShort ? 2 : 4;
      const uint64_t bytes = uint64_t{count} * values->bytes;
      values->at = bytes <= 4 ? at + 8 : file.u32(at + 8);
      if (values->at > file.size || bytes > file.size - values->at) return "a TIFF file whose values are missing";
    }
    return nullptr;
  }
};

// Set the size and the strips. Return null, or why Pillow has to read the file.
const char* set_strips(const Bytes& file, const Directory& d, Header& header) {
  const uint32_t width = d.width.or_else(file, 0), height = d.height.or_else(file, 0);
  if (width == 0 || height == 0 || std::max(width, height) > kMaxExtent) return "a TIFF file of an unusual size";
  if (d.tiles || d.offsets.bytes == 0 || d.sizes.bytes == 0) return "a TIFF file without strips";
  const uint32_t rows = std::min(d.rows.or_else(file, height), height);
  if (rows == 0 || d.offsets.count != (height - 1) / rows + 1 || d.sizes.count != d.offsets.count)
    return "a TIFF file with an unusual number of strips";
  header.width = static_cast<int32_t>(width);
  header.height = static_cast<int32_t>(height);
  header.rows_per_strip = static_cast<int32_t>(rows);
  header.offsets = d.offsets.at;
  header.offset_bytes = d.offsets.bytes;
  header.sizes = d.sizes.at;
  header.size_bytes = d.sizes.bytes;
  return nullptr;
}

// Set the meaning of the samples. Return null, or why Pillow has to read the file.
const char* set_samples(const Bytes& file, const Directory& d, Header& header) {
  const uint32_t samples = d.samples.or_else(file, 1), bits = d.bits.or_else(file, 1);
  const uint32_t photometric = d.photometric.or_else(file, 0), colours = photometric == kRgb ? 3 : 1;
  if (samples > kMostSamples || d.bits.count != samples || !d.bits.all(file, bits) || (bits != 8 && bits != 16))
    return "a TIFF file whose samples do not have 8 or 16 bits";
  if (photometric != kGray && photometric != kRgb && photometric != kPalette)
    return "a TIFF file of other colours than gray, RGB and a palette";
  if ((d.format.bytes != 0 && !d.format.all(file, 1)) || d.fill_order.or_else(file, 1) != 1 ||
      d.planar.or_else(file, 1) != 1)
    return "a TIFF file of numbers with a sign, of reversed bits or of planes";
  header.samples = static_cast<uint8_t>(samples);
  header.bits = static_cast<uint8_t>(bits);
  header.extra = kAlpha;
  const bool one_more = samples == colours + 1;
  if (samples != colours && !one_more) return "a TIFF file with an unusual number of samples";
  if (one_more != (d.extra.bytes != 0) || d.extra.count > 1) return "a TIFF file with unusual samples";
  if (one_more) {
    const uint32_t extra = d.extra(file, 0);
    const bool known = photometric == kRgb ? extra == kAlpha || extra == kUnspecified
                                           : photometric == kGray && extra == kAlpha && bits == 8;
    if (!known) return "a TIFF file with unusual samples";
    header.extra = static_cast<uint8_t>(extra);
  }
  if (photometric != kPalette) return nullptr;
  if (bits != 8 || d.palette.bytes != 2 || d.palette.count != kPaletteValues) return "a TIFF file's unusual palette";
  header.palette = file.data + d.palette.at;
  return nullptr;
}

const char* set_compression(const Bytes& file, const Directory& d, Header& header) {
  const uint32_t compression = d.compression.or_else(file, kNone), predictor = d.predictor.or_else(file, 1);
  const bool streams = compression == kLzw || compression == kDeflate || compression == kOldDeflate;
  if (!streams && compression != kNone && compression != kPackBits)
    return "a TIFF file with another compression than LZW, Deflate and PackBits";
  if (predictor != 1 && (predictor != 2 || !streams)) return "a TIFF file with an unusual predictor";
  header.compression = static_cast<uint16_t>(compression);
  header.differences = predictor == 2;
  return nullptr;
}

// Undo the differences of a row of values of 16 bits.
void add_up_words(uint8_t* row, int64_t values, int samples, bool little) {
  const int low = little ? 0 : 1, high = 1 - low;
  for (int64_t i = samples; i < values; ++i) {
    uint8_t* const at = row + 2 * i;
    const uint8_t* const before = at - 2 * samples;
    const int sum = (at[high] << 8 | at[low]) + (before[high] << 8 | before[low]);
    at[low] = static_cast<uint8_t>(sum);
    at[high] = static_cast<uint8_t>(sum >> 8);
  }
}

// Rows of one strip after the other.
class Strips final : public Rows {
 public:
  Strips(const Bytes& file, const Header& header, Scratch* scratch)
      : file_(file),
        header_(header),
        scratch_(scratch),
        pitch_(int64_t{header.width} * header.samples * (header.bits / 8)) {}

  const uint8_t* row(int32_t y) override {
    const int32_t strip = y / header_.rows_per_strip;
    if (strip != strip_ && !open(strip)) return nullptr;
    return rows_ + (y - strip * header_.rows_per_strip) * pitch_;
  }

 private:
  bool open(int32_t strip) {
    strip_ = strip;
    const auto value = [&](size_t table, uint8_t bytes) -> size_t {
      const size_t at = table + static_cast<size_t>(strip) * bytes;
      return bytes == 2 ? file_.u16(at) : file_.u32(at);
    };
    const size_t offset = value(header_.offsets, header_.offset_bytes), size = value(header_.sizes, header_.size_bytes);
    if (offset > file_.size || size > file_.size - offset) return false;
    const int32_t count = std::min(header_.rows_per_strip, header_.height - strip * header_.rows_per_strip);
    const auto wanted = static_cast<size_t>(count * pitch_);
    const uint8_t* const from = file_.data + offset;
    if (header_.compression == kNone) {
      rows_ = from;
      return size >= wanted;
    }
    uint8_t* const to = decompressed(from, size, wanted);
    if (!to) return false;
    rows_ = to;
    if (header_.differences)
      for (int32_t y = 0; y < count; ++y) add_up(to + y * pitch_);
    return true;
  }

  // Return memory with `wanted` bytes; null if the strip has fewer. Takes memory only if the strip may have them.
  uint8_t* decompressed(const uint8_t* from, size_t size, size_t wanted) {
    const bool lzw = header_.compression == kLzw, bits = header_.compression == kPackBits;
    if (wanted / (lzw ? kMaxLzwRatio : bits ? kMaxPackBitsRatio : kMaxInflateRatio) > size) return nullptr;
    uint8_t* const to = scratch_[1].get(wanted + kInflateOutputPadding);
    if (lzw) {
      // Files of before 1988 have the low bits of codes first.
      if (size >= 2 && from[0] == 0 && (from[1] & 1)) return nullptr;
      return decode_lzw(from, size, to, wanted) == wanted ? to : nullptr;
    }
    if (bits) return decode_pack_bits(from, size, to, wanted) == wanted ? to : nullptr;
    uint8_t* const padded = scratch_[0].get(size + kInflateInputPadding);
    if (size > 0) std::memcpy(padded, from, size);
    std::fill_n(padded + size, kInflateInputPadding, uint8_t{0});
    const InflateResult result = inflate_zlib(padded, size, to, wanted);
    const bool done = result.status == Inflated::Ok || result.status == Inflated::Full;
    return done && result.bytes == wanted ? to : nullptr;
  }

  void add_up(uint8_t* row) const {
    constexpr int kSub = 1;  // the filter of PNG that adds the pixel before
    if (header_.bits == 8) unfilter(kSub, row, row, static_cast<size_t>(pitch_), header_.samples);
    else add_up_words(row, int64_t{header_.width} * header_.samples, header_.samples, header_.little);
  }

  const Bytes& file_;
  const Header& header_;
  Scratch* const scratch_;
  const int64_t pitch_;
  const uint8_t* rows_ = nullptr;
  int32_t strip_ = -1;
};

}  // namespace

bool is_tiff(const uint8_t* data, size_t size) {
  return size >= kHeaderBytes && (std::memcmp(data, "II*\0", 4) == 0 || std::memcmp(data, "MM\0*", 4) == 0);
}

Parsed parse(const uint8_t* data, size_t size, Header& header, const char*& reason) {
  const Bytes file{data, size, data[0] == 'I'};
  header.little = file.little;
  Directory directory;
  reason = directory.read(file);
  if (!reason) reason = set_strips(file, directory, header);
  if (!reason) reason = set_samples(file, directory, header);
  if (!reason) reason = set_compression(file, directory, header);
  if (reason) return Parsed::Handover;
  const uint32_t orientation = directory.orientation.or_else(file, 1);
  header.orientation = static_cast<uint8_t>(orientation >= 1 && orientation <= 8 ? orientation : 1);
  header.other_orientation = directory.orientation.bytes == 0 && directory.xmp;
  return Parsed::Ok;
}

Layout layout_of(const Header& header) {
  Layout layout;
  const int bytes = header.bits / 8, high = header.little ? bytes - 1 : 0;
  const bool wide = header.bits == 16;
  layout.set_gray(8);
  layout.pixel = static_cast<uint8_t>(header.samples * bytes);
  for (int i = 0; i < header.samples; ++i) layout.at[i] = static_cast<uint8_t>(i * bytes + high);
  if (header.samples >= 3) {
    layout.family = Family::Colour;
    layout.own_channels = header.samples == 4 && header.extra == kAlpha ? 4 : 3;
    layout.narrowed = wide;
  } else if (header.samples == 2) {
    layout.family = Family::GrayAlpha;
    layout.own_channels = 2;
  } else if (wide) {
    layout.family = Family::Wide;
    layout.at[1] = static_cast<uint8_t>(1 - high);
  } else if (header.palette) {
    layout.gray = false;
    layout.own_channels = 3;
    for (int i = 0; i < 256; ++i)
      for (int k = 0; k < 3; ++k) layout.table[i][k] = header.palette[2 * (256 * k + i) + (header.little ? 1 : 0)];
  }
  return layout;
}

bool decode(const uint8_t* data, size_t size, const Header& header, const Layout& layout, const Target& target,
            Scratch* scratch) {
  const Bytes file{data, size, header.little};
  Strips strips(file, header, scratch);
  return write(strips, layout, target, scratch[3]);
}

}  // namespace stoker::raster::tiff
