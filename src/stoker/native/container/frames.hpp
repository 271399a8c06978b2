// SPDX-License-Identifier: Apache-2.0
// Frames around the records of TFRecord and RecordIO files.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "container/crc32c.hpp"

namespace stoker {

template <class T>
T load_little(const uint8_t* from) {  // every processor that Stoker runs on is little-endian
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Record of a TFRecord file: length (8 bytes), masked CRC of these bytes, data, masked CRC of the data.
namespace tfrecord {

constexpr size_t kHeader = 12, kFooter = 4, kFrame = kHeader + kFooter;

// Return whether a header is intact, and the length of the data that follow it.
inline bool read_header(const uint8_t* header, uint64_t& length) {
  length = load_little<uint64_t>(header);
  return load_little<uint32_t>(header + 8) == masked_crc(crc32c(header, 8));
}

}  // namespace tfrecord

// Record of a RecordIO file (MXNet): parts of a magic number, a word with the kind of the part and its length, and data
// that are padded to a multiple of 4. A record whose data contain the magic number at a multiple of 4 is stored in
// several parts, without that number.
namespace recordio {

constexpr uint32_t kMagic = 0xced7230au;
constexpr size_t kHeader = 8;
enum Part : uint32_t { kWhole = 0, kFirst = 1, kMiddle = 2, kLast = 3 };

inline bool read_header(const uint8_t* header, uint32_t& part, uint32_t& length) {
  const uint32_t word = load_little<uint32_t>(header + 4);
  part = word >> 29;
  length = word & ((1u << 29) - 1);
  return load_little<uint32_t>(header) == kMagic && part <= kLast;
}

constexpr uint64_t padded(uint64_t length) { return (length + 3) & ~uint64_t{3}; }

// Join the parts of a record in place. `data` has `size` bytes: those after the header of the first part, whose data
// have the length `first`. Return false if the parts are damaged or incomplete, else the length of the record.
bool join_parts(uint8_t* data, uint64_t size, uint64_t first, uint64_t& joined);

// Record of an image: number of labels (4 bytes), a single label, two numbers of 8 bytes, the labels if there are
// several, and the image.
constexpr uint64_t kImageHeader = 24, kSingleLabel = 4;

// Return whether a record of `size` bytes has its labels, and their number; 0 if there is the single label alone.
inline bool read_label_count(const uint8_t* record, uint64_t size, uint64_t& labels) {
  if (size < kImageHeader) return false;
  labels = load_little<uint32_t>(record);
  return 4 * labels <= size - kImageHeader;
}

}  // namespace recordio

}  // namespace stoker
