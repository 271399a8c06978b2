// SPDX-License-Identifier: Apache-2.0
// Bytes of a file for scans, which hop from header to header.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "container/scan.hpp"
#include "io/files.hpp"

namespace stoker {

// Reads pieces as needed: large ones while the requests are close together, small ones while they are far apart.
class FileSource final : public ByteSource {
 public:
  // Open a regular file; throw std::runtime_error if it cannot be read.
  explicit FileSource(const std::string& path);
  uint64_t size() const override { return size_; }
  const uint8_t* at(uint64_t offset, size_t count) override;

 private:
  OpenFile file_;
  const std::string path_;
  uint64_t size_ = 0, begin_ = 0, have_ = 0;  // `have_` bytes from `begin_` on are in the buffer
  std::vector<uint8_t> buffer_;
};

}  // namespace stoker
