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
  kTileHeight = 323,
  kTileOffsets = 324,
  kTileSizes = 325,
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
      predictor, palette, extra, format, tile_width, tile_height, tile_offsets, tile_sizes;
  bool xmp = false;

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
      case kTileWidth: return &tile_width;
      case kTileHeight: return &tile_height;
      case kTileOffsets: return &tile_offsets;
      case kTileSizes: return &tile_sizes;
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

// Set the size and the strips or tiles. Return null, or why Pillow has to read the file.
const char* set_blocks(const Bytes& file, const Directory& d, Header& header) {
  const uint32_t width = d.width.or_else(file, 0), height = d.height.or_else(file, 0);
  if (width == 0 || height == 0 || std::max(width, height) > kMaxExtent) return "a TIFF file of an unusual size";
  header.tiles = d.tile_width.bytes != 0;
  const Values &offsets = header.tiles ? d.tile_offsets : d.offsets, &sizes = header.tiles ? d.tile_sizes : d.sizes;
  if (offsets.bytes == 0 || sizes.bytes == 0) return "a TIFF file without strips";
  // Pillow and libtiff differ in what they take of a file with both.
  if (header.tiles ? d.offsets.bytes != 0 : d.tile_offsets.bytes != 0) return "a TIFF file of strips and of tiles";
  const uint32_t block_width = header.tiles ? d.tile_width(file, 0) : width,
                 block_height =
                     header.tiles ? d.tile_height.or_else(file, 0) : std::min(d.rows.or_else(file, height), height);
  if (block_width == 0 || block_height == 0 || std::max(block_width, block_height) > kMaxExtent)
    return "a TIFF file with an unusual number of strips";
  const uint64_t blocks = uint64_t{(width - 1) / block_width + 1} * ((height - 1) / block_height + 1) *
                          (header.planes ? header.samples : 1);
  if (offsets.count != blocks || sizes.count != blocks) return "a TIFF file with an unusual number of strips";
  header.width = static_cast<int32_t>(width);
  header.height = static_cast<int32_t>(height);
  header.block_width = static_cast<int32_t>(block_width);
  header.block_height = static_cast<int32_t>(block_height);
  header.offsets = offsets.at;
  header.offset_bytes = offsets.bytes;
  header.sizes = sizes.at;
  header.size_bytes = sizes.bytes;
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
  const uint32_t planar = d.planar.or_else(file, 1);
  if ((d.format.bytes != 0 && !d.format.all(file, 1)) || d.fill_order.or_else(file, 1) != 1 || planar < 1 || planar > 2)
    return "a TIFF file of numbers with a sign or of reversed bits";
  header.planes = planar == 2 && samples > 1;
  header.samples = static_cast<uint8_t>(samples);
  header.bits = static_cast<uint8_t>(bits);
  header.extra = kAlpha;
  const bool one_more = samples == colours + 1;
  if (samples != colours && !one_more) return "a TIFF file with an unusual number of samples";
  if ((d.extra.bytes != 0 && !one_more) || d.extra.count > 1) return "a TIFF file with unusual samples";
  // OpenCV writes RGBA without the tag. Pillow reads such a sample as transparency; of planes the colours, too, differ.
  if (one_more && d.extra.bytes == 0 && (photometric != kRgb || header.planes))
    return "a TIFF file with unusual samples";
  if (one_more && d.extra.bytes != 0) {
    const uint32_t extra = d.extra(file, 0);
    const bool known =
        photometric == kRgb ? extra == kAlpha || extra == kUnspecified : photometric == kGray && extra == kAlpha;
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

// Rows of one strip after the other, or of one row of tiles after the other, of which only those of some columns are
// decoded.
class Blocks final : public Rows {
 public:
  // `first`, `end`: the columns that are read.
  Blocks(const Bytes& file, const Header& header, int64_t first, int64_t end, Scratch* scratch)
      : file_(file),
        header_(header),
        scratch_(scratch),
        first_(static_cast<int32_t>(first / header.block_width)),
        last_(static_cast<int32_t>((end - 1) / header.block_width)),
        sample_(header.bits / 8),
        pixel_(header.samples * sample_),
        block_pitch_(int64_t{header.block_width} * (header.planes ? sample_ : pixel_)),
        pitch_(int64_t{header.width} * pixel_),
        joined_(header.planes || header.block_width != header.width) {}

  const uint8_t* row(int32_t y) override {
    const int32_t band = y / header_.block_height;
    if (band != band_ && !open(band)) return nullptr;
    return rows_ + (y - band * header_.block_height) * pitch_;
  }

 private:
  struct Block {
    const uint8_t* data;
    size_t size;
  };

  // Find a strip or a tile. Return false if the file does not have it.
  bool find(int32_t plane, int32_t band, int32_t column, Block& block) const {
    const int64_t across = (header_.width - 1) / header_.block_width + 1,
                  down = (header_.height - 1) / header_.block_height + 1;
    const auto index = static_cast<size_t>((plane * down + band) * across + column);
    const auto value = [&](size_t table, uint8_t bytes) -> size_t {
      const size_t at = table + index * bytes;
      return bytes == 2 ? file_.u16(at) : file_.u32(at);
    };
    const size_t offset = value(header_.offsets, header_.offset_bytes), size = value(header_.sizes, header_.size_bytes);
    if (offset > file_.size || size > file_.size - offset) return false;
    block = {file_.data + offset, size};
    return true;
  }

  bool open(int32_t band) {
    band_ = band;
    const int64_t rows = std::min<int64_t>(header_.block_height, header_.height - int64_t{band} * header_.block_height);
    const auto wanted = static_cast<size_t>((header_.tiles ? header_.block_height : rows) * block_pitch_);
    if (!joined_) {
      Block block;
      rows_ = find(0, band, 0, block) && may_have(block, wanted) ? decoded(block, wanted, rows) : nullptr;
      return rows_ != nullptr;
    }
    const int32_t planes = header_.planes ? header_.samples : 1;
    // Memory is taken only if all tiles may have their pixels.
    Block block;
    for (int32_t plane = 0; plane < planes; ++plane)
      for (int32_t column = first_; column <= last_; ++column)
        if (!find(plane, band, column, block) || !may_have(block, wanted)) return false;
    uint8_t* const joined = scratch_[2].get(static_cast<size_t>(rows * pitch_));
    for (int32_t plane = 0; plane < planes; ++plane)
      for (int32_t column = first_; column <= last_; ++column) {
        const uint8_t* const from = find(plane, band, column, block) ? decoded(block, wanted, rows) : nullptr;
        if (!from) return false;
        const int64_t x = int64_t{column} * header_.block_width,
                      count = std::min<int64_t>(header_.block_width, header_.width - x);
        for (int64_t y = 0; y < rows; ++y)
          join(from + y * block_pitch_, count, joined + y * pitch_ + x * pixel_ + plane * sample_);
      }
    rows_ = joined;
    return true;
  }

  // Copy a row of a tile, or of a plane.
  void join(const uint8_t* from, int64_t count, uint8_t* to) const {
    if (!header_.planes) std::memcpy(to, from, static_cast<size_t>(count * pixel_));
    else if (sample_ == 1)
      for (int64_t x = 0; x < count; ++x) to[x * pixel_] = from[x];
    else
      for (int64_t x = 0; x < count; ++x) std::memcpy(to + x * pixel_, from + 2 * x, 2);
  }

  // Return whether a block of this size may have `wanted` bytes.
  bool may_have(const Block& block, size_t wanted) const {
    const uint16_t compression = header_.compression;
    if (compression == kNone) return block.size >= wanted;
    const uint64_t ratio = compression == kLzw        ? kMaxLzwRatio
                           : compression == kPackBits ? kMaxPackBitsRatio
                                                      : kMaxInflateRatio;
    return wanted / ratio <= block.size;
  }

  // Return the pixels of a block, or null if it is damaged. `rows`: the number of those that are read.
  const uint8_t* decoded(const Block& block, size_t wanted, int64_t rows) {
    if (header_.compression == kNone) return block.data;
    uint8_t* const to = decompressed(block.data, block.size, wanted);
    if (to && header_.differences)
      for (int64_t y = 0; y < rows; ++y) add_up(to + y * block_pitch_);
    return to;
  }

  // Return memory with `wanted` bytes; null if the block has fewer.
  uint8_t* decompressed(const uint8_t* from, size_t size, size_t wanted) {
    const bool lzw = header_.compression == kLzw, bits = header_.compression == kPackBits;
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
    const int samples = header_.planes ? 1 : header_.samples;
    if (header_.bits == 8) unfilter(kSub, row, row, static_cast<size_t>(block_pitch_), samples);
    else add_up_words(row, int64_t{header_.block_width} * samples, samples, header_.little);
  }

  const Bytes& file_;
  const Header& header_;
  Scratch* const scratch_;
  const int32_t first_, last_;  // columns of tiles
  const int64_t sample_, pixel_, block_pitch_, pitch_;
  const bool joined_;  // a row of the picture is put together from several blocks
  const uint8_t* rows_ = nullptr;
  int32_t band_ = -1;
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
  if (!reason) reason = set_samples(file, directory, header);
  if (!reason) reason = set_blocks(file, directory, header);
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
  layout.low = static_cast<int8_t>(!wide ? 0 : header.little ? -1 : 1);
  layout.pixel = static_cast<uint8_t>(header.samples * bytes);
  for (int i = 0; i < header.samples; ++i) layout.at[i] = static_cast<uint8_t>(i * bytes + high);
  if (header.samples >= 3) {
    layout.family = Family::Colour;
    layout.own_channels = header.samples == 4 && header.extra == kAlpha ? 4 : 3;
  } else if (header.samples == 2) {
    layout.family = Family::GrayAlpha;
    layout.own_channels = 2;
  } else if (wide) {
    layout.family = Family::Wide;
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
  const jpeg::Window& window = target.window;
  const int64_t end = std::min<int64_t>(int64_t{window.x1} << target.scale_log2, header.width);
  Blocks blocks(file, header, int64_t{window.x0} << target.scale_log2, end, scratch);
  return write(blocks, layout, target, scratch[3]);
}

}  // namespace stoker::raster::tiff
