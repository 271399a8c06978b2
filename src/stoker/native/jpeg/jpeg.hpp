// SPDX-License-Identifier: Apache-2.0
// JPEG decoding of windows, bit for bit equal to libjpeg-turbo on x86-64 (islow IDCT, fancy upsampling): sequential and
// progressive, Huffman coded, 8 bits.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/tensor.hpp"

namespace stoker::jpeg {

// Output format. ANY is the file's own: one channel for a grayscale file, RGB for all others. Inks (CMYK, YCCK) are
// converted to RGB as in Pillow, which assumes that they are inverted. Planes are Y, Cb and Cr one after the other,
// each at full size.
enum class Format : uint8_t { RGB = 0, BGR = 1, GRAY = 2, YCbCr = 3, ANY = 4, Planes = 5 };

// Handover: a valid JPEG that this decoder leaves to another one. Broken: no decoder can decode much of it.
enum class Support : uint8_t { Native, Handover, Broken };

// Colour model of the coded components, derived from markers and component ids as in libjpeg.
enum class Model : uint8_t { Gray, YCbCr, RGB, CMYK, YCCK };

constexpr int kMaxComponents = 4;
constexpr int kMaxBlocksPerMcu = 10;  // the standard's limit for interleaved scans

struct Component {
  uint8_t id = 0, h = 1, v = 1, quantiser = 0;
};

struct Scan {
  uint32_t data = 0;  // offset of the entropy-coded bytes
  uint8_t count = 0;
  uint8_t component[kMaxComponents] = {};
  uint8_t dc[kMaxComponents] = {}, ac[kMaxComponents] = {};
  uint8_t first = 0, last = 63;         // progressive: range of zig-zag positions,
  uint8_t shift_before = 0, shift = 0;  // and the number of low bits that were and are left to later scans
};

// Offsets in the file of the tables in force. 0 means absent: no table can start at the SOI marker.
struct TableOffsets {
  uint32_t quantiser[4] = {};       // 64 zig-zag values
  uint32_t dc[4] = {}, ac[4] = {};  // 16 counts, then the symbols
  bool wide[4] = {};                // the quantisers have 16 bits
};

// All header data that `decode` needs. Trivially copyable, so that it can be cached per file.
struct Info {
  int32_t width = 0, height = 0;  // as stored: `orientation` is not applied
  int32_t components = 0;
  uint8_t orientation = 1;  // EXIF 1..8; 1 when absent or invalid
  Support support = Support::Broken;
  const char* reason = "";  // why support is not Native; a literal
  uint32_t at = 0;          // offset of the last marker that was read; the file's size if data ran out
  bool progressive = false;
  Model model = Model::Gray;
  uint8_t h_max = 1, v_max = 1;
  uint16_t restart_interval = 0;  // in MCUs; 0: none
  Component component[kMaxComponents];
  TableOffsets tables;
  Scan scan;  // the first one
};

// Return whether the scans of a file must be decoded together, so that a GPU needs the coefficients from the host.
constexpr bool has_several_scans(const Info& info) { return info.progressive || info.scan.count < info.components; }

// Read markers up to the first scan, never out of bounds. Return true if `decode` can decode the file; else
// `out.support` and `out.reason` say why not (width, height and orientation are set if they were found before).
bool parse(const uint8_t* data, size_t size, Info& out);

struct Ticks;   // jpeg/ticks.hpp
struct Damage;  // jpeg/damage.hpp

// Window in stored coordinates, half open.
struct Window {
  int32_t x0, y0, x1, y1;
};

// Truncated: the file ended early. Corrupt: the file is damaged otherwise. In both cases the whole window was written:
// by libjpeg's rules as far as the data went, and zero where not even tables could be read. The pixels of a truncated
// file equal Pillow's with LOAD_TRUNCATED_IMAGES: as if an end marker followed the data, and zero if the data end in a
// marker segment between scans. Unsupported: nothing was written.
enum class Status : uint8_t { Ok, Truncated, Corrupt, Unsupported };

constexpr int channels(const Info& info, Format format) {
  if (format == Format::GRAY) return 1;
  return format == Format::ANY && info.model == Model::Gray ? 1 : 3;
}

// Size of the picture at scale 1 / 2^scale_log2 (0 to 3).
struct Extent {
  int32_t width, height;
};
constexpr Extent scaled_extent(const Info& info, int scale_log2) {
  const int32_t round_up = (1 << scale_log2) - 1;
  return {(info.width + round_up) >> scale_log2, (info.height + round_up) >> scale_log2};
}

// Decode `window` into `dst`: rows of (x1-x0)*channels bytes, `pitch` bytes apart. The result equals the same window of
// the whole decoded picture. GRAY of a YCbCr file is its Y plane, of an RGB file libjpeg's weighted sum. Planes: rows
// of x1-x0 bytes; the three planes follow each other, (y1-y0)*pitch bytes apart. `info` must come from `parse` of the
// same bytes. At a smaller scale (scale_log2 up to 3) the window refers to the smaller picture, and pixels equal
// TurboJPEG's.
Status decode(const uint8_t* data, size_t size, const Info& info, Window window, Format format, uint8_t* dst,
              ptrdiff_t pitch, Scratch& scratch, int scale_log2 = 0, Ticks* ticks = nullptr, Damage* damage = nullptr);

// Receiver of decoded rows [y0, y1) of the window, `pitch` bytes apart, which are valid during the call. Calls have
// `rows` rows each, in order, except that the last may have fewer. `room` bytes of each row may be read; those after the
// pixels have any value. Planes cannot be received.
struct RowSink {
  void (*take)(void* to, int32_t y0, int32_t y1, const uint8_t* pixels, ptrdiff_t pitch);
  void* to;
  int32_t rows;
  ptrdiff_t room;
};

// Decode as above, in the file's own format or as GRAY, and pass on the rows while they are in the cache, instead of
// writing them to an image. With every status but Unsupported, all rows were passed on.
Status decode_rows(const uint8_t* data, size_t size, const Info& info, Window window, Format format,
                   const RowSink& sink, Scratch& scratch);

// Return the number of Huffman symbols of a sequential file with one scan; 0 for all others.
uint64_t count_symbols(const uint8_t* data, size_t size, const Info& info);

}  // namespace stoker::jpeg
