// SPDX-License-Identifier: Apache-2.0
#include "jpeg/plain_header.hpp"

#include <cstring>

#include "jpeg/jpeg.hpp"

namespace stoker::jpeg {

namespace {

enum Marker : int {
  kSOF0 = 0xC0,
  kSOF2 = 0xC2,
  kDHT = 0xC4,
  kSOS = 0xDA,
  kDQT = 0xDB,
  kDRI = 0xDD,
  kAPP0 = 0xE0,
  kAPP15 = 0xEF,
  kCOM = 0xFE
};

bool begins(const uint8_t* p, size_t size, const char* text, size_t length) {
  return size >= length && !std::memcmp(p, text, length);
}

// Return whether Pillow only stores this application segment and takes no numbers from it.
bool is_plain_application(int marker, const uint8_t* p, size_t size) {
  switch (marker - kAPP0) {
    case 0: return !begins(p, size, "JFIF", 4) || size >= 14;
    case 1: return !begins(p, size, "Exif\0\0", 6);
    case 2:
      if (begins(p, size, "ICC_PROFILE\0", 12)) return size >= 14;
      return !begins(p, size, "MPF\0", 4) && !begins(p, size, "FPXR\0", 5);
    case 13: return !begins(p, size, "Photoshop 3.0\0", 14);
    case 14: return !begins(p, size, "Adobe", 5) || size >= 12;
    default: return true;
  }
}

bool is_plain(int marker, const uint8_t* p, size_t size) {
  if (marker >= kAPP0 && marker <= kAPP15) return is_plain_application(marker, p, size);
  switch (marker) {
    case kDHT:
    case kDRI:
    case kCOM:
    case kSOS:
    case kDQT: return true;  // `parse` has checked that they are well formed
    default: return marker >= kSOF0 && marker <= kSOF2 && size > 5 && p[0] == 8 && (p[5] == 1 || p[5] == 3);
  }
}

}  // namespace

bool read_plain_header(const uint8_t* data, size_t size, PlainHeader& out) {
  Info info;
  if (!parse(data, size, info)) return false;
  int marker = 0;
  for (size_t at = 2; marker != kSOS;) {  // all segments are complete, because `parse` reached the scan
    if (at + 4 > size || data[at] != 0xFF) return false;
    marker = data[at + 1];
    const size_t length = static_cast<size_t>(data[at + 2] << 8 | data[at + 3]);
    if (length < 2 || length + 2 > size - at || !is_plain(marker, data + at + 4, length - 2)) return false;
    at += 2 + length;
    out.end = static_cast<uint32_t>(at);
  }
  out.width = info.width;
  out.height = info.height;
  out.components = info.components;
  return true;
}

}  // namespace stoker::jpeg
