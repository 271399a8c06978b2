// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
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

// Return a part of `largest` as a part of `whole`. Pillow rounds this quotient of doubles, halves to the even number.
uint32_t part_of(uint32_t value, uint32_t largest, uint32_t whole) {
  return std::min(whole, static_cast<uint32_t>(std::nearbyint(static_cast<double>(value) / largest * whole)));
}

// Rows whose values are made parts of 255, or of 65535 with the high byte first.
class ScaledRows final : public Rows {
 public:
  // `memory`: a row.
  ScaledRows(const uint8_t* data, const RawRows& rows, bool wide, uint8_t* memory)
      : first_(data + rows.offset), rows_(rows), wide_(wide), memory_(memory) {}

  const uint8_t* row(int32_t y) override {
    const uint8_t* const from = first_ + y * rows_.pitch;
    const uint32_t largest = rows_.largest;
    if (largest <= kByte) {
      for (int64_t i = 0; i < rows_.pitch; ++i) memory_[i] = static_cast<uint8_t>(part_of(from[i], largest, kByte));
      return memory_;
    }
    const int64_t values = rows_.pitch / 2;
    const auto value = [&](int64_t i) { return static_cast<uint32_t>(from[2 * i] << 8 | from[2 * i + 1]); };
    if (wide_) {
      for (int64_t i = 0; i < values; ++i) {
        const uint32_t part = part_of(value(i), largest, kWord);
        memory_[2 * i] = static_cast<uint8_t>(part >> 8);
        memory_[2 * i + 1] = static_cast<uint8_t>(part);
      }
    } else if (largest == kWord) {  // a quotient by 257, whose halves are no whole numbers
      for (int64_t i = 0; i < values; ++i) memory_[i] = static_cast<uint8_t>((value(i) + 128) / 257);
    } else {
      for (int64_t i = 0; i < values; ++i) memory_[i] = static_cast<uint8_t>(part_of(value(i), largest, kByte));
    }
    return memory_;
  }

  static constexpr uint32_t kByte = 255, kWord = 65535;

 private:
  const uint8_t* first_;
  const RawRows& rows_;
  const bool wide_;
  uint8_t* const memory_;
};

// Set the layout of colours: of 16 bits, or of 8.
void set_colours(bool wide, Layout& layout) {
  const int bytes = wide ? 2 : 1;
  layout.family = Family::Colour;
  layout.pixel = static_cast<uint8_t>(3 * bytes);
  layout.low = wide ? 1 : 0;
  for (int i = 0; i < 3; ++i) layout.at[i] = static_cast<uint8_t>(i * bytes);
  layout.own_channels = 3;
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
  constexpr uint32_t kByte = ScaledRows::kByte, kWord = ScaledRows::kWord;
  if (most == 0 || most > kWord) return hand_over("a portable map with an unusual largest value");
  Layout& layout = rows.layout;
  layout.set_gray(8);
  rows.largest = most;
  if (colours) {
    set_colours(most > kByte, layout);
    rows.scaled = most != kByte;
  } else if (most > kByte) {
    layout.family = Family::Wide;
    layout.pixel = 2;
    layout.low = 1;
    rows.scaled = most != kWord;
  } else if (most != kByte) {
    for (uint32_t i = 0; i <= kByte; ++i)
      std::fill_n(layout.table[i], 3, static_cast<uint8_t>(part_of(i, most, kByte)));
  }
  rows.width = static_cast<int32_t>(width);
  rows.height = static_cast<int32_t>(height);
  rows.offset = at;
  rows.pitch = int64_t{layout.pixel} * rows.width;
  return Parsed::Ok;
}

void decode(const uint8_t* data, const RawRows& rows, const Target& target, Scratch* scratch) {
  const bool gray = rows.layout.family == Family::Wide, wide = gray || target.out.dtype != DType::U8;
  if (!rows.scaled || (!gray && wide && rows.largest == ScaledRows::kWord))
    return write_raw(data, rows, target, scratch[3]);
  ScaledRows scaled(data, rows, wide, scratch[0].get(static_cast<size_t>(rows.pitch)));
  Layout layout = rows.layout;
  if (!wide) set_colours(false, layout);
  write(scaled, layout, target, scratch[3]);  // no row is damaged
}

}  // namespace stoker::raster::pnm
