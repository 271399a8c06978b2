// SPDX-License-Identifier: Apache-2.0
// Indexes of container files, made in one pass over the headers of their records.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace stoker {

// Bytes that a scan reads: a file, or memory in tests.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual uint64_t size() const = 0;
  // Return `count` bytes from `offset` on, valid until the next call; null if the source has fewer.
  virtual const uint8_t* at(uint64_t offset, size_t count) = 0;
};

class MemorySource final : public ByteSource {
 public:
  MemorySource(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  uint64_t size() const override { return size_; }
  const uint8_t* at(uint64_t offset, size_t count) override {
    return offset <= size_ && count <= size_ - offset ? data_ + offset : nullptr;
  }

 private:
  const uint8_t* const data_;
  const size_t size_;
};

struct Spans {
  std::vector<uint64_t> offset, length;
  void add(uint64_t at, uint64_t bytes) {
    offset.push_back(at);
    length.push_back(bytes);
  }
  size_t size() const { return offset.size(); }
};

// Byte where a file is damaged, so that the records after it cannot be found; `what` is empty if it is not.
struct Damage {
  uint64_t offset = 0;
  std::string what;
};

// Longest record and file that an index accepts; sums of two such numbers do not overflow.
constexpr uint64_t kMaxBytes = (uint64_t{1} << 56) - 1;

// Find the records of a file with their frames. If the file is damaged, the last record begins there and has all
// remaining bytes, so that reading it is an error.
Damage scan_tfrecord(ByteSource& file, Spans& records);
Damage scan_recordio(ByteSource& file, Spans& records);

struct Members {
  Spans data;
  std::string names;  // each is followed by a zero byte
};

// Find the regular files in a tar file: ustar, GNU's long names, pax headers, sizes in octal and base 256. A file that
// ends within the data of a member is damaged, and has this member.
Damage scan_tar(ByteSource& file, Members& members);

// Find the files in a zip archive, in the order of its directory. A member that is compressed or encrypted is damage,
// because parts of the archive cannot be read then.
Damage scan_zip(ByteSource& file, Members& members);

// Find the values in the data file of an LMDB environment, in the order of their keys. Values of keys that have several
// are damage.
Damage scan_lmdb(ByteSource& file, Spans& values);

}  // namespace stoker
