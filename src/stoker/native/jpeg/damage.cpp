// SPDX-License-Identifier: Apache-2.0
#include "jpeg/damage.hpp"

#include "jpeg/parse.hpp"
#include "jpeg/scan_limit.hpp"

namespace stoker::jpeg {
namespace {

// Find bytes between the header's segments, which libjpeg skips with a warning.
void find_gaps(const uint8_t* data, size_t header_size, Damage& damage) {
  for (size_t pos = 2; pos < header_size;) {
    int marker = 0;
    const size_t after = next_marker(data, header_size, pos, marker);
    if (after == 0) return;
    size_t begin = after - 2;
    while (begin > pos && data[begin - 1] == 0xFF) --begin;  // a marker may have any number of 0xFF before it
    if (begin > pos) {
      damage.extra_bytes += begin - pos;
      damage.note(pos);
    }
    const bool alone = marker == 0x01 || (marker >= 0xD0 && marker <= 0xD8);
    if (alone || header_size - after < 2) pos = after;
    else pos = after + std::max<size_t>(2, static_cast<size_t>(data[after] << 8 | data[after + 1]));
  }
}

}  // namespace

Checked check(const uint8_t* data, size_t size, uint64_t max_pixels, uint64_t max_scan_pixels, Scratch& scratch) {
  Checked out;
  if (!parse(data, size, out.info)) {
    if (out.info.support == Support::Broken && out.info.at) out.damage.note(out.info.at);
    return out;
  }
  const Info& info = out.info;
  if (static_cast<uint64_t>(info.width) * static_cast<uint64_t>(info.height) > max_pixels) return out;
  const bool several = has_several_scans(info);
  if (several && !too_many_scans(data, size, info.width, info.height, max_scan_pixels).empty()) return out;
  find_gaps(data, info.scan.data, out.damage);
  // At one eighth, files with one scan are decoded completely except for their pixels; for files with several scans the
  // decoder would skip scans.
  const int scale_log2 = several ? 0 : 3;
  const Extent extent = scaled_extent(info, scale_log2);
  const size_t pitch = static_cast<size_t>(extent.width) * static_cast<size_t>(channels(info, Format::ANY));
  Scratch pixels;
  out.status = decode(data, size, info, {0, 0, extent.width, extent.height}, Format::ANY,
                      pixels.get(pitch * static_cast<size_t>(extent.height)), static_cast<ptrdiff_t>(pitch), scratch,
                      scale_log2, nullptr, &out.damage);
  if (out.status == Status::Truncated) out.damage.note(size);
  return out;
}

}  // namespace stoker::jpeg
