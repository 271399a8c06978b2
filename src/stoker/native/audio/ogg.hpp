// SPDX-License-Identifier: Apache-2.0
// Ogg files of one logical stream: their pages and packets. Source: RFC 3533.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "audio/wav.hpp"

namespace stoker::ogg {

constexpr int64_t kNoPosition = -1;  // no packet ends on the page

struct Page {
  const uint8_t* lacing;  // sizes of the segments
  const uint8_t* body;
  int64_t position;  // granule position: of the last sample that ends on the page
  uint32_t stream, number, checksum;
  int32_t segments;
  bool continues, begins, ends;  // a packet of the page before; first and last page of the stream
};

// Read the page that begins at byte `*at` of a file, which is there in whole, and step to its end.
bool read_page(const uint8_t* data, size_t size, size_t* at, Page* page, std::string* error);

// Checksum of a whole page, whose own checksum counts as 0.
uint32_t page_checksum(const uint8_t* page, size_t size);

// Whether a file is an Ogg file.
bool is_ogg(const uint8_t* data, size_t size);

// Check that a file has all pages of one stream, up to the page that ends it, and that the contents of the first and the
// last page are whole; with `checksums`, those of all pages.
wav::Parsed check(const uint8_t* data, size_t size, bool checksums, std::string* error);

struct Packet {
  const uint8_t* data;  // within the file, or in memory that the next packet reuses
  size_t size;
  int64_t position;  // of its page if it is the last one that ends on it, else kNoPosition
};

// Packets of a file that `check` has accepted.
class Packets {
 public:
  Packets(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  // Step to the next packet. Return false after the last one.
  bool next(Packet* packet);

 private:
  const uint8_t* data_;
  size_t size_, at_ = 0;
  Page page_{};
  int32_t segment_ = 0, last_ = -1;  // of the page; the last segment that ends a packet
  const uint8_t* body_ = nullptr;
  std::vector<uint8_t> joined_;
};

}  // namespace stoker::ogg
