// SPDX-License-Identifier: Apache-2.0
// Marker walk. It follows segment lengths only, so that thumbnails and colour profiles cost nothing.
#include "jpeg/parse.hpp"

#include <algorithm>
#include <cstring>

#include "jpeg/orientation.hpp"

namespace stoker::jpeg {
namespace {

constexpr int kMaxDimension = 65500;  // libjpeg's JPEG_MAX_DIMENSION

enum Marker : int {
  kTEM = 0x01,
  kSOF0 = 0xC0,
  kSOF1 = 0xC1,
  kSOF2 = 0xC2,
  kDHT = 0xC4,
  kJPG = 0xC8,
  kDAC = 0xCC,
  kSOF15 = 0xCF,
  kRST0 = 0xD0,
  kRST7 = 0xD7,
  kSOI = 0xD8,
  kEOI = 0xD9,
  kSOS = 0xDA,
  kDQT = 0xDB,
  kDNL = 0xDC,
  kDRI = 0xDD,
  kAPP0 = 0xE0,
  kAPP1 = 0xE1,
  kAPP14 = 0xEE,
  kAPP15 = 0xEF,
  kCOM = 0xFE,
};

// Payload of one marker segment.
struct Segment {
  const uint8_t* p;
  size_t size;
  uint32_t offset;  // of `p` in the file
};

int be16(const uint8_t* p) { return p[0] << 8 | p[1]; }

Stop refuse(Info& info, Support support, const char* reason) {
  info.support = support;
  info.reason = reason;
  return Stop::Refused;
}
Stop broken(Info& info, const char* reason) { return refuse(info, Support::Broken, reason); }
Stop hand_over(Info& info, const char* reason) { return refuse(info, Support::Handover, reason); }

// Contents of the application markers that influence decoding.
struct Hints {
  bool jfif = false, adobe = false;
  int transform = 0;
  bool exif = false;
};

void read_app(int marker, Segment s, Hints& hints, Info& info) {
  if (marker == kAPP0 && s.size >= 14 && !std::memcmp(s.p, "JFIF", 5)) {
    hints.jfif = true;
  } else if (marker == kAPP14 && s.size >= 12 && !std::memcmp(s.p, "Adobe", 5)) {
    hints.adobe = true;
    hints.transform = s.p[11];
  } else if (marker == kAPP1 && !hints.exif && s.size >= 6 && !std::memcmp(s.p, "Exif\0", 6)) {
    hints.exif = true;
    info.orientation = exif_orientation(s.p + 6, s.size - 6);
  }
}

bool read_quantisers(Segment s, TableOffsets& tables) {
  for (size_t at = 0; at < s.size;) {
    const int index = s.p[at] & 15;
    const bool wide = s.p[at] >> 4;
    const size_t length = wide ? 128 : 64;
    if (index > 3 || s.size - at - 1 < length) return false;
    tables.quantiser[index] = s.offset + static_cast<uint32_t>(at) + 1;
    tables.wide[index] = wide;
    at += 1 + length;
  }
  return true;
}

bool read_huffman(Segment s, TableOffsets& tables) {
  for (size_t at = 0; at < s.size;) {
    const int kind = s.p[at] >> 4, index = s.p[at] & 15;
    if (kind > 1 || index > 3 || s.size - at < 17) return false;
    size_t symbols = 0;
    for (size_t i = 1; i <= 16; ++i) symbols += s.p[at + i];
    if (symbols > 256 || symbols > s.size - at - 17) return false;
    (kind ? tables.ac : tables.dc)[index] = s.offset + static_cast<uint32_t>(at) + 1;
    at += 17 + symbols;
  }
  return true;
}

// Check the conditioning of arithmetic coding. This decoder does not use it, but libjpeg refuses files where it is
// malformed.
bool check_conditioning(Segment s) {
  if (s.size % 2) return false;
  for (size_t at = 0; at < s.size; at += 2) {
    const int index = s.p[at], value = s.p[at + 1];
    if (index > 31 || (index < 16 && (value & 15) > value >> 4)) return false;
  }
  return true;
}

// Return why a kind of frame is left to another decoder; null: it is not.
const char* unusual_coding(int marker) {
  switch (marker) {
    case kSOF0:
    case kSOF1:
    case kSOF2: return nullptr;
    case 0xC3: return "lossless coding";
    case 0xC5:
    case 0xC6:
    case 0xC7: return "hierarchical coding";
    case 0xC9:
    case 0xCA: return "arithmetic coding";
    case 0xCB: return "lossless arithmetic coding";
    default: return "hierarchical arithmetic coding";
  }
}

const char* unusual_count(int components) {
  return components == 2 ? "2 components, for which there is no colour model" : "more than 4 components";
}

Stop read_frame(int marker, Segment s, Info& info) {
  if (s.size < 6) return broken(info, "frame header too short");
  const int precision = s.p[0], count = s.p[5];
  info.height = be16(s.p + 1);
  info.width = be16(s.p + 3);
  info.components = count;
  if (info.width == 0 || count == 0) return broken(info, "empty frame");
  if (s.size != 6 + 3 * static_cast<size_t>(count)) return broken(info, "frame header of a wrong length");
  info.progressive = marker == kSOF2;
  if (const char* reason = unusual_coding(marker)) return hand_over(info, reason);
  if (precision != 8) return hand_over(info, precision == 12 ? "12 bits per sample" : "not 8 bits per sample");
  if (info.height == 0) return hand_over(info, "height defined after the first scan (DNL)");
  if (info.width > kMaxDimension || info.height > kMaxDimension) return hand_over(info, "larger than 65500 pixels");
  if (count != 1 && count != 3 && count != 4) return hand_over(info, unusual_count(count));
  info.h_max = info.v_max = 1;
  for (int i = 0; i < count; ++i) {
    const uint8_t* p = s.p + 6 + 3 * i;
    Component c{p[0], static_cast<uint8_t>(p[1] >> 4), static_cast<uint8_t>(p[1] & 15), p[2]};
    if (c.h < 1 || c.h > 4 || c.v < 1 || c.v > 4) return broken(info, "sampling factor outside 1..4");
    if (count == 1) c.h = c.v = 1;  // a single component is never interleaved: its factors have no effect
    info.component[i] = c;
    info.h_max = std::max(info.h_max, c.h);
    info.v_max = std::max(info.v_max, c.v);
  }
  for (int i = 0; i < count; ++i) {
    const Component& c = info.component[i];
    if (info.h_max % c.h || info.v_max % c.v) return hand_over(info, "fractional sampling ratio");
  }
  return Stop::AtScan;
}

// Look a component up like libjpeg: components must be in frame order; equal ids are distinguished by position.
int find_component(const Info& info, int id, int first) {
  for (int c = first; c < info.components; ++c)
    if (info.component[c].id == id) return c;
  return -1;
}

// Read the last three bytes of a scan header. Sequential files need not set them, and libjpeg does not check them.
bool read_progression(const uint8_t* p, Scan& scan) {
  scan.first = p[0];
  scan.last = p[1];
  scan.shift_before = p[2] >> 4;
  scan.shift = p[2] & 15;
  const bool dc = scan.first == 0;
  const bool band = dc ? scan.last == 0 : scan.first <= scan.last && scan.last <= 63 && scan.count == 1;
  return band && scan.shift <= 13 && (scan.shift_before == 0 || scan.shift == scan.shift_before - 1);
}

// Check that table numbers are below 4; a number is replaced if the scan does not use the table.
bool right_tables(const Info& info, Scan& scan, int i) {
  const bool dc = !info.progressive || (scan.first == 0 && scan.shift_before == 0);
  const bool ac = !info.progressive || scan.first > 0;
  if ((dc && scan.dc[i] > 3) || (ac && scan.ac[i] > 3)) return false;
  scan.dc[i] &= 3;
  scan.ac[i] &= 3;
  return true;
}

Stop read_scan(Segment s, Info& info) {
  const int count = s.size ? s.p[0] : 0;
  if (count < 1 || count > kMaxComponents || s.size != 4 + 2 * static_cast<size_t>(count))
    return broken(info, "malformed scan header");
  if (count > info.components) return broken(info, "scan with too many components");
  Scan scan;
  scan.count = static_cast<uint8_t>(count);
  scan.data = s.offset + static_cast<uint32_t>(s.size);
  if (info.progressive && !read_progression(s.p + 1 + 2 * count, scan)) return broken(info, "impossible progression");
  int blocks = 0;
  for (int i = 0; i < kMaxComponents && i < count; ++i) {  // the first bound avoids a warning of GCC 12
    const int c = find_component(info, s.p[1 + 2 * i], i);
    if (c < 0 || (i && c <= scan.component[i - 1])) return broken(info, "scan with a wrong component");
    const int selectors = s.p[2 + 2 * i];
    scan.component[i] = static_cast<uint8_t>(c);
    scan.dc[i] = static_cast<uint8_t>(selectors >> 4);
    scan.ac[i] = static_cast<uint8_t>(selectors & 15);
    if (!right_tables(info, scan, i)) return broken(info, "scan with a wrong table number");
    const Component& component = info.component[c];
    if (component.quantiser > 3 || !info.tables.quantiser[component.quantiser])
      return broken(info, "no quantisation table");
    blocks += component.h * component.v;
  }
  if (count > 1 && blocks > kMaxBlocksPerMcu) return broken(info, "more than 10 blocks in an MCU");
  info.scan = scan;
  return Stop::AtScan;
}

Model choose_model(const Info& info, const Hints& hints) {
  if (info.components == 1) return Model::Gray;
  if (info.components == 4) return hints.adobe && hints.transform != 0 ? Model::YCCK : Model::CMYK;
  if (hints.jfif) return Model::YCbCr;
  if (hints.adobe) return hints.transform == 0 ? Model::RGB : Model::YCbCr;
  const Component* c = info.component;
  return c[0].id == 'R' && c[1].id == 'G' && c[2].id == 'B' ? Model::RGB : Model::YCbCr;
}

bool has_no_payload(int marker) { return marker == kTEM || (marker >= kRST0 && marker <= kRST7); }
bool is_frame(int marker) {
  return marker >= kSOF0 && marker <= kSOF15 && marker != kDHT && marker != kJPG && marker != kDAC;
}
bool is_skippable(int marker) {
  return (marker >= kAPP0 && marker <= kAPP15) || marker == kCOM || marker == kDNL || marker == kDAC;
}

// Read a segment other than frame and scan headers. Return false if it is malformed.
bool read_other(int marker, Segment s, Hints& hints, Info& info) {
  if (marker == kDQT) return read_quantisers(s, info.tables);
  if (marker == kDHT) return read_huffman(s, info.tables);
  if (marker == kDAC) return check_conditioning(s);
  if (marker == kDRI) {
    if (s.size != 2) return false;
    info.restart_interval = static_cast<uint16_t>(be16(s.p));
    return true;
  }
  read_app(marker, s, hints, info);
  return is_skippable(marker);
}

}  // namespace

uint8_t exif_orientation(const uint8_t* p, size_t size) {
  if (size < 8) return 1;
  const bool little = p[0] == 'I' && p[1] == 'I';
  if (!little && !(p[0] == 'M' && p[1] == 'M')) return 1;
  const auto u16 = [&](size_t at) { return little ? p[at] | p[at + 1] << 8 : p[at] << 8 | p[at + 1]; };
  const auto u32 = [&](size_t at) {
    const uint32_t a = static_cast<uint32_t>(u16(at)), b = static_cast<uint32_t>(u16(at + 2));
    return little ? a | b << 16 : a << 16 | b;
  };
  if (u16(2) != 42) return 1;
  const size_t ifd = u32(4);
  if (ifd > size - 2) return 1;
  const size_t entries = static_cast<size_t>(u16(ifd));
  for (size_t i = 0, at = ifd + 2; i < entries && at + 12 <= size; ++i, at += 12) {
    if (u16(at) != 0x0112) continue;
    const int value = u16(at + 8);
    return u16(at + 2) == 3 && value >= 1 && value <= 8 ? static_cast<uint8_t>(value) : 1;
  }
  return 1;
}

size_t next_marker(const uint8_t* data, size_t size, size_t pos, int& marker) {
  while (pos < size) {
    const void* found = std::memchr(data + pos, 0xFF, size - pos);
    if (!found) return 0;
    pos = static_cast<size_t>(static_cast<const uint8_t*>(found) - data);
    while (pos < size && data[pos] == 0xFF) ++pos;
    if (pos < size && data[pos] != 0) {
      marker = data[pos];
      return pos + 1;
    }
  }
  return 0;
}

bool has_unknown_marker(const uint8_t* data, size_t size) {
  for (size_t pos = 2; pos < size;) {
    int marker = 0;
    pos = next_marker(data, size, pos, marker);
    if (pos == 0 || marker == kEOI) return false;
    if (marker > 0x01 && marker < 0xC0) return true;
    if (marker == kSOI || has_no_payload(marker)) continue;
    if (size - pos < 2) return false;
    pos += std::max<size_t>(2, static_cast<size_t>(be16(data + pos)));
  }
  return false;
}

Stop walk_markers(const uint8_t* data, size_t size, size_t& pos, bool& frame_seen, Info& info) {
  Hints hints;
  for (;;) {
    int marker = 0;
    pos = next_marker(data, size, pos, marker);
    if (pos == 0) return Stop::OutOfData;
    info.at = static_cast<uint32_t>(pos - 2);
    if (marker == kEOI) return Stop::AtEnd;
    if (marker == kSOI) return broken(info, "second start of image");
    if (has_no_payload(marker)) continue;
    if (size - pos < 2) return Stop::OutOfData;
    size_t length = static_cast<size_t>(be16(data + pos));
    if (length < 2) {
      if (!is_skippable(marker) || marker == kDAC) return broken(info, "marker segment of a wrong length");
      length = 2;  // treat it as empty
    }
    if (size - pos < length) return Stop::OutOfData;
    const Segment segment{data + pos + 2, length - 2, static_cast<uint32_t>(pos + 2)};
    pos += length;
    if (is_frame(marker)) {
      if (frame_seen) return broken(info, "second frame header");
      frame_seen = true;
      if (read_frame(marker, segment, info) == Stop::Refused) return Stop::Refused;
    } else if (marker == kSOS) {
      if (!frame_seen) return broken(info, "scan before the frame header");
      if (info.scan.count == 0) info.model = choose_model(info, hints);
      return read_scan(segment, info);
    } else if (!read_other(marker, segment, hints, info)) {
      return broken(info, "malformed or unknown marker segment");
    }
  }
}

bool parse(const uint8_t* data, size_t size, Info& out) {
  out = Info{};
  if (size < 4 || data[0] != 0xFF || data[1] != kSOI) {
    out.reason = "not a JPEG file";
    return false;
  }
  if (size > UINT32_MAX) {
    hand_over(out, "larger than 4 GiB");
    return false;
  }
  size_t pos = 2;
  bool frame_seen = false;
  switch (walk_markers(data, size, pos, frame_seen, out)) {
    case Stop::AtScan: out.support = Support::Native; return true;
    case Stop::AtEnd: out.reason = "no image before the end marker"; return false;
    case Stop::OutOfData:
      out.reason = "the file ends inside the header";
      out.at = static_cast<uint32_t>(size);
      return false;
    case Stop::Refused: break;
  }
  return false;
}

}  // namespace stoker::jpeg
