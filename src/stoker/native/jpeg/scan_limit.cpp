// SPDX-License-Identifier: Apache-2.0
#include "jpeg/scan_limit.hpp"

#include <algorithm>

#include "jpeg/parse.hpp"

namespace stoker::jpeg {
namespace {

constexpr int kTemporary = 0x01, kFirstRestart = 0xD0, kStart = 0xD8, kEnd = 0xD9, kScan = 0xDA;

bool has_no_payload(int marker) {
  return marker == kTemporary || (marker >= kFirstRestart && marker <= kFirstRestart + 7);
}

}  // namespace

uint64_t count_scans(const uint8_t* data, size_t size) {
  uint64_t scans = 0;
  for (size_t pos = 2; pos < size;) {
    int marker = 0;
    pos = next_marker(data, size, pos, marker);
    if (pos == 0 || marker == kStart || marker == kEnd) break;
    if (has_no_payload(marker)) continue;
    if (size - pos < 2) break;
    scans += marker == kScan;
    pos += std::max<size_t>(2, static_cast<size_t>(data[pos] << 8 | data[pos + 1]));
  }
  return scans;
}

std::string too_many_scans(const uint8_t* data, size_t size, int64_t width, int64_t height, uint64_t max_scan_pixels) {
  if (max_scan_pixels == 0 || width <= 0 || height <= 0) return {};
  const uint64_t pixels = static_cast<uint64_t>(width) * static_cast<uint64_t>(height);
  const uint64_t most = std::max(kUnlimitedScans, max_scan_pixels / pixels);
  const uint64_t scans = count_scans(data, size);
  if (scans <= most) return {};
  return "expected at most " + std::to_string(most) + " scans in an image of " + std::to_string(height) + " x " +
         std::to_string(width) + ", got " + std::to_string(scans) +
         " (a decompression bomb?); `max_scan_pixels` allows more";
}

}  // namespace stoker::jpeg
