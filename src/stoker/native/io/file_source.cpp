// SPDX-License-Identifier: Apache-2.0
#include "io/file_source.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace stoker {

namespace {

constexpr uint64_t kSmall = 512, kLarge = 1 << 16;

}  // namespace

FileSource::FileSource(const std::string& path) : file_(path), path_(path) {
  std::string error;
  if (!is_regular(file_, path, size_, error)) throw std::runtime_error(error);
}

const uint8_t* FileSource::at(uint64_t offset, size_t count) {
  if (offset > size_ || count > size_ - offset) return nullptr;
  if (offset < begin_ || offset - begin_ > have_ || count > have_ - (offset - begin_)) {
    const bool is_near = offset >= begin_ && offset - begin_ <= kLarge;
    const uint64_t wanted = std::min(size_ - offset, std::max<uint64_t>(count, is_near ? kLarge : kSmall));
    if (buffer_.size() < wanted) buffer_.resize(wanted);
    const int64_t got = read_file(file_.descriptor(), offset, buffer_.data(), wanted);
    if (got < 0) throw std::runtime_error("cannot read '" + path_ + "': " + std::strerror(errno));
    begin_ = offset;
    have_ = static_cast<uint64_t>(got);
    if (have_ < wanted) size_ = begin_ + have_;  // the file has become shorter
    if (have_ < count) return nullptr;
  }
  return buffer_.data() + (offset - begin_);
}

}  // namespace stoker
