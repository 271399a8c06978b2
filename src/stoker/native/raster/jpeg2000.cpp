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
  if (bits != 8 && !(bits == 16 && channels == 1)) return false;
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

// Return the picture, or null if OpenJPEG does not accept the file.
std::unique_ptr<Jpeg2000Image, void (*)(Jpeg2000Image*)> decode_image(const Jpeg2000Library& library, Reader& reader,
                                                                      bool boxes) {
  using Handle = std::unique_ptr<void, void (*)(void*)>;
  std::unique_ptr<Jpeg2000Image, void (*)(Jpeg2000Image*)> image(nullptr, library.destroy_image);
  const Handle decoder(library.create_decoder(boxes ? kFile : kCodestream), library.destroy_decoder);
  const Handle stream(library.create_stream(std::min(kBufferBytes, reader.size), 1), library.destroy_stream);
  alignas(16) std::array<uint8_t, kParameterBytes> parameters{};
  if (!decoder || !stream) return image;
  library.set_read(stream.get(), Reader::read);
  library.set_skip(stream.get(), Reader::skip);
  library.set_seek(stream.get(), Reader::seek);
  library.set_user_data(stream.get(), &reader, Reader::keep);
  library.set_user_bytes(stream.get(), reader.size);
  library.set_default_parameters(parameters.data());
  Jpeg2000Image* made = nullptr;
  bool done = library.set_up(decoder.get(), parameters.data()) &&
              library.read_header(stream.get(), decoder.get(), &made) && made;
  image.reset(made);
  done = done && library.decode(decoder.get(), stream.get(), made) && library.end(decoder.get(), stream.get());
  if (!done) image.reset();
  return image;
}

bool is_expected(const Jpeg2000Image& image, const Header& header) {
  if (image.components != header.channels) return false;
  for (uint32_t i = 0; i < image.components; ++i) {
    const Jpeg2000Component& part = image.component[i];
    if (!part.data || part.width != static_cast<uint32_t>(header.width) || part.is_signed ||
        part.height != static_cast<uint32_t>(header.height) || part.bits != header.bits)
      return false;
  }
  return true;
}

template <int kChannels>
void join_row(const int32_t* const* parts, int64_t width, uint8_t* to) {
  for (int64_t x = 0; x < width; ++x)
    for (int k = 0; k < kChannels; ++k) to[kChannels * x + k] = static_cast<uint8_t>(std::clamp(parts[k][x], 0, 255));
}

// Rows of pixels, made of the components one at a time.
class JoinedRows final : public Rows {
 public:
  JoinedRows(const Jpeg2000Image& image, const Header& header, uint8_t* row)
      : image_(image), header_(header), row_(row) {}
  const uint8_t* row(int32_t y) override {
    const int64_t width = header_.width;
    const int32_t* parts[4] = {};
    for (uint32_t i = 0; i < image_.components; ++i) parts[i] = image_.component[i].data + y * width;
    if (header_.bits == 16) {
      for (int64_t x = 0; x < width; ++x) {
        const int32_t value = std::clamp(parts[0][x], 0, 65535);
        row_[2 * x] = static_cast<uint8_t>(value >> 8);
        row_[2 * x + 1] = static_cast<uint8_t>(value);
      }
      return row_;
    }
    switch (header_.channels) {
      case 1: join_row<1>(parts, width, row_); break;
      case 2: join_row<2>(parts, width, row_); break;
      case 3: join_row<3>(parts, width, row_); break;
      default: join_row<4>(parts, width, row_);
    }
    return row_;
  }

 private:
  const Jpeg2000Image& image_;
  const Header& header_;
  uint8_t* const row_;
};

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
  const int bytes = header.bits / 8;
  layout.pixel = static_cast<uint8_t>(header.channels * bytes);
  for (uint8_t i = 0; i < 4; ++i) layout.at[i] = i;
  layout.own_channels = header.channels;
  if (bytes == 2) layout.family = Family::Wide;
  else if (header.channels == 2) layout.family = Family::GrayAlpha;
  else if (header.channels > 2) layout.family = Family::Colour;
  return layout;
}

bool decode(const uint8_t* data, size_t size, const Header& header, const Layout& layout, const Target& target,
            Scratch* scratch) {
  Reader reader{data, size};
  const auto image = decode_image(*openjpeg(), reader, header.boxes);
  if (!image || !is_expected(*image, header)) return false;
  JoinedRows rows(*image, header, scratch[1].get(static_cast<size_t>(int64_t{layout.pixel} * header.width)));
  return write(rows, layout, target, scratch[3]);
}

}  // namespace stoker::raster::jpeg2000
