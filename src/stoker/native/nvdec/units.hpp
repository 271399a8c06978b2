// SPDX-License-Identifier: Apache-2.0
// Units of a packet of H.264 or HEVC, for the parser of a GPU's video engines (ISO/IEC 14496-15 4.3, ITU-T H.264 B.1),
// and whether no other picture is predicted from the packet's (video/disposable.py, which has the sources).
#pragma once
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace stoker::nvdec {

// Append a packet whose units follow their lengths, of 1 to 4 bytes, with start codes in the place of the lengths.
// Throw std::runtime_error if a length is wrong; `to` has some of the units then.
inline void append_units(const uint8_t* data, size_t bytes, size_t length_bytes, std::vector<uint8_t>& to) {
  for (size_t at = 0; at < bytes;) {
    if (bytes - at < length_bytes) throw std::runtime_error("the packet ends within the length of a unit");
    size_t length = 0;
    for (size_t i = 0; i < length_bytes; ++i) length = length << 8 | data[at + i];
    at += length_bytes;
    if (length > bytes - at) throw std::runtime_error("a unit is longer than its packet");
    constexpr uint8_t kStart[] = {0, 0, 0, 1};
    to.insert(to.end(), kStart, kStart + sizeof kStart);
    to.insert(to.end(), data + at, data + at + length);
    at += length;
  }
}

// Rule by which the headers of units say that no other picture is predicted from a picture.
struct DisposableRule {
  enum class Codec : int { None, H264, Hevc } codec = Codec::None;
  size_t length_bytes = 0;  // of the lengths before the units; 0: units have start codes
  int layers = 0;           // highest temporal layer of HEVC
};

// Kind of a unit: no slice, a slice of a picture that others need, or a slice of one that none needs.
enum class Slice { None, Needed, Disposable };

inline Slice slice_of(const DisposableRule& rule, const uint8_t* header, size_t bytes) {
  if (bytes < 2) return Slice::Needed;
  const int first = header[0], second = header[1];
  if (rule.codec == DisposableRule::Codec::H264) {
    const int kind = first & 31;
    if (kind >= 1 && kind <= 5) return first & 0x60 ? Slice::Needed : Slice::Disposable;
    return kind == 14 || kind == 20 || kind == 21 ? Slice::Needed : Slice::None;  // of other layers and views
  }
  if ((first & 1) || (second & 0xF8)) return Slice::Needed;  // of another layer
  const int kind = first >> 1 & 63;
  if (kind > 31) return Slice::None;
  return kind < 16 && kind % 2 == 0 && (second & 7) == rule.layers ? Slice::Disposable : Slice::Needed;
}

// Return whether all slices of a packet are of such pictures.
inline bool is_disposable(const DisposableRule& rule, const uint8_t* data, size_t bytes) {
  if (rule.codec == DisposableRule::Codec::None) return false;
  const std::string_view text(reinterpret_cast<const char*>(data), bytes);
  bool has_slice = false;
  for (size_t at = 0; at < bytes;) {
    size_t begin = 0;
    if (rule.length_bytes) {
      size_t length = 0;
      for (size_t i = at; i < bytes && i < at + rule.length_bytes; ++i) length = length << 8 | data[i];
      begin = at + rule.length_bytes;
      at = begin + length;
    } else {
      const size_t found = text.find(std::string_view("\0\0\1", 3), at);
      if (found == std::string_view::npos) break;
      at = begin = found + 3;
    }
    const size_t left = begin < bytes ? bytes - begin : 0;
    const Slice slice = slice_of(rule, data + (left ? begin : 0), left);
    if (slice == Slice::Needed) return false;
    has_slice |= slice == Slice::Disposable;
  }
  return has_slice;
}

}  // namespace stoker::nvdec
