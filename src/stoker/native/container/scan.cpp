// SPDX-License-Identifier: Apache-2.0
#include "container/scan.hpp"

#include "container/frames.hpp"

namespace stoker {

Damage scan_tfrecord(ByteSource& file, Spans& records) {
  using namespace tfrecord;
  const uint64_t size = file.size();
  const auto damaged = [&](uint64_t at, const char* what) {
    records.add(at, size - at);
    return Damage{at, what};
  };
  for (uint64_t at = 0; at < size;) {
    const uint8_t* const header = file.at(at, kHeader);
    uint64_t length = 0;
    if (header == nullptr) return damaged(at, "the file ends within the header of a record");
    if (!read_header(header, length)) return damaged(at, "the length of a record has a wrong checksum");
    if (length > kMaxBytes) return damaged(at, "a record has an impossible length");
    if (length + kFrame > size - at) {
      records.add(at, length + kFrame);
      return {at, "the file ends within a record"};
    }
    records.add(at, length + kFrame);
    at += length + kFrame;
  }
  return {};
}

Damage scan_recordio(ByteSource& file, Spans& records) {
  using namespace recordio;
  const uint64_t size = file.size();
  for (uint64_t begin = 0, at = 0; at < size; begin = at) {
    const auto damaged = [&](const char* what) {
      records.add(begin, size - begin);
      return Damage{begin, what};
    };
    for (bool is_first = true;; is_first = false) {
      const uint8_t* const header = file.at(at, kHeader);
      uint32_t part = 0, length = 0;
      if (header == nullptr) return damaged("the file ends within the header of a record");
      if (!read_header(header, part, length)) return damaged("a record does not begin with the magic number");
      if (is_first ? part != kWhole && part != kFirst : part != kMiddle && part != kLast)
        return damaged("the parts of a record are out of order");
      if (length > size - at - kHeader) return damaged("the file ends within a record");
      const uint64_t end = at + kHeader + length;
      at += kHeader + padded(length);
      if (part == kWhole || part == kLast) {
        records.add(begin, end - begin);
        break;
      }
    }
  }
  return {};
}

}  // namespace stoker
