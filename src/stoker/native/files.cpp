// SPDX-License-Identifier: Apache-2.0
#include "files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace stoker {

namespace {

bool failed(const std::string& path, int code, std::string& error) {
  error = "cannot read '" + path + "': " + std::strerror(code);
  return false;
}

}  // namespace

OpenFile::OpenFile(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}

void OpenFile::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

uint64_t OpenFile::state() const {
  struct stat info;
  if (::fstat(fd_, &info) != 0) return 0;
  uint64_t h = static_cast<uint64_t>(info.st_ino);
  for (const uint64_t v : {static_cast<uint64_t>(info.st_size), static_cast<uint64_t>(info.st_ctim.tv_sec),
                           static_cast<uint64_t>(info.st_ctim.tv_nsec)}) {
    h = (h ^ v) * 0x9E3779B97F4A7C15u;
    h ^= h >> 29;
  }
  return h | 1;
}

bool OpenFile::read_at(uint64_t offset, uint8_t* to, size_t bytes) const {
  while (bytes > 0) {
    const ssize_t got = ::pread(fd_, to, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    to += got;
    offset += static_cast<uint64_t>(got);
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

bool has_sane_size(uint64_t bytes, const std::string& path, std::string& error) {
  constexpr uint64_t kMost = uint64_t{1} << 40;
  if (bytes <= kMost) return true;
  error = "expected a file of at most 2**40 bytes, got " + std::to_string(bytes) + " in '" + path + "'";
  return false;
}

bool read_whole(const OpenFile& file, const std::string& path, Room& room, View& out, std::string& error) {
  struct stat info;
  if (!file) return failed(path, errno, error);
  if (::fstat(file.descriptor(), &info) != 0) return failed(path, errno, error);
  if (S_ISDIR(info.st_mode)) return failed(path, EISDIR, error);
  if (!S_ISREG(info.st_mode)) {
    error = "expected a regular file, got the pipe, socket or device '" + path + "'";
    return false;
  }
  const size_t size = static_cast<size_t>(info.st_size);
  if (!has_sane_size(size, path, error)) return false;
  uint8_t* const to = room.get(size + 1);
  size_t have = 0;
  while (have < size) {
    const ssize_t got = ::pread(file.descriptor(), to + have, size - have, static_cast<off_t>(have));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(path, errno, error);
    if (got == 0) break;
    have += static_cast<size_t>(got);
  }
  out.data = to;
  out.shape[0] = static_cast<int64_t>(have);
  out.stride[0] = 1;
  return true;
}

}  // namespace stoker
