// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "raster/raw_rows.hpp"

namespace stoker::raster::pnm {
namespace {

// Pillow's white space.
bool is_space(uint8_t c) { return c != 0 && std::strchr(" \t\n\r\v\f", c) != nullptr; }

// Read a number of at most nine digits and the white space after it. Return false where the header is another.
bool read_number(const uint8_t* data, size_t size, size_t& at, uint32_t& number) {
  for (; at < size && (is_space(data[at]) || data[at] == '#'); ++at)
    if (data[at] == '#')
      while (at < size && data[at] != '\r' && data[at] != '\n') ++at;
  number = 0;
  const size_t first = at;
  for (; at < size && data[at] >= '0' && data[at] <= '9' && at - first < 9; ++at)
    number = 10 * number + static_cast<uint32_t>(data[at] - '0');
  return at > first && at < size && is_space(data[at++]);
}

}  // namespace

bool is_pnm(const uint8_t* data, size_t size) {
  return size >= 3 && data[0] == 'P' && (data[1] == '5' || data[1] == '6') && is_space(data[2]);
}

Parsed parse(const uint8_t* data, size_t size, RawRows& rows, const char*& reason) {
  const auto hand_over = [&](const char* why) {
    reason = why;
    return Parsed::Handover;
  };
  const bool colours = data[1] == '6';
  uint32_t width = 0, height = 0, most = 0;
  size_t at = 3;
  if (!read_number(data, size, at, width) || !read_number(data, size, at, height) || !read_number(data, size, at, most))
    return hand_over("a portable map with an unusual header");
  if (width == 0 || height == 0 || std::max(width, height) > kMaxExtent)
    return hand_over("a portable map of an unusual size");
  Layout& layout = rows.layout;
  layout.set_gray(8);
  if (colours && most == 255) {
    layout.family = Family::Colour;
    layout.pixel = 3;
    for (uint8_t i = 0; i < 3; ++i) layout.at[i] = i;
    layout.own_channels = 3;
  } else if (!colours && most == 65535) {
    layout.family = Family::Wide;
    layout.pixel = 2;
    layout.at[1] = 1;
  } else if (colours || most != 255) {
    return hand_over("a portable map with an unusual largest value");
  }
  rows.width = static_cast<int32_t>(width);
  rows.height = static_cast<int32_t>(height);
  rows.offset = at;
  rows.pitch = int64_t{layout.pixel} * rows.width;
  return Parsed::Ok;
}

}  // namespace stoker::raster::pnm
