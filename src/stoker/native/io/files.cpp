// SPDX-License-Identifier: Apache-2.0
#include "io/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

namespace stoker {

namespace {

using Clock = std::chrono::steady_clock;

// Some file systems do not know whether bytes are in the page cache. There, a read that is slower than a copy from
// memory has waited.
constexpr uint64_t kCopyNs = 100'000, kCopiedBytesPerNs = 1;

// Largest piece of one request to read ahead: the system takes no more than a device's own limit, 128 KiB by default.
constexpr uint64_t kAdvisedBytes = uint64_t{1} << 17;
constexpr uint64_t kMaxAheadInFile = uint64_t{1} << 23;

thread_local uint64_t disk_wait_ns = 0;

// Add the time since `start` to the thread's waits.
void count_wait(Clock::time_point start, uint64_t bytes, bool is_certain) {
  const auto ns =
      static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
  if (is_certain || ns > kCopyNs + bytes / kCopiedBytesPerNs) disk_wait_ns += ns;
}

// Read like `read_file`, waiting for the disk.
int64_t read_waiting(int fd, uint64_t offset, uint8_t* to, size_t bytes) {
  size_t have = 0;
  while (have < bytes) {
    const ssize_t got = ::pread(fd, to + have, bytes - have, static_cast<off_t>(offset + have));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    have += static_cast<size_t>(got);
  }
  return static_cast<int64_t>(have);
}

// Return whether no file is to blame for a failed call: the list of contract/errors.py.
bool is_of_system(int code) {
  switch (code) {
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS:
    case ENOSPC:
    case EDQUOT:
    case ENODEV:
    case ENOTCONN:
    case ETIMEDOUT:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENETDOWN:
    case ENETUNREACH: return true;
    default: return false;
  }
}

}  // namespace

bool cannot_read(const std::string& path, int code, std::string& error) {
  error = "cannot read '" + path + "': " + std::strerror(code);
  if (code == EIO) throw ReadFailure(error);
  if (is_of_system(code)) throw SystemFailure(error);
  return false;
}

bool is_regular(const OpenFile& file, const std::string& path, uint64_t& size, std::string& error) {
  struct stat info;
  if (!file) return cannot_read(path, errno, error);
  if (::fstat(file.descriptor(), &info) != 0) return cannot_read(path, errno, error);
  if (S_ISDIR(info.st_mode)) return cannot_read(path, EISDIR, error);
  if (!S_ISREG(info.st_mode)) {
    error = "expected a regular file, got the pipe, socket or device '" + path + "'";
    return false;
  }
  size = static_cast<uint64_t>(info.st_size);
  return true;
}

OpenFile::OpenFile(const std::string& path) {
  // A signal may interrupt the call: network file systems wait in `open`.
  do fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  while (fd_ < 0 && errno == EINTR);
}

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
  return read_file(fd_, offset, to, bytes) == static_cast<int64_t>(bytes);
}

int64_t read_file(int fd, uint64_t offset, uint8_t* to, size_t bytes) {
  const struct iovec piece{to, bytes};
  return read_pieces(fd, offset, &piece, 1);
}

int64_t read_pieces(int fd, uint64_t offset, const struct iovec* pieces, int count) {
  size_t wanted = 0;
  for (int i = 0; i < count; ++i) wanted += pieces[i].iov_len;
  // Bytes in the page cache come with one call that does not wait, and so without a look at the clock.
  const ssize_t got = ::preadv2(fd, pieces, count, static_cast<off_t>(offset), RWF_NOWAIT);
  if (got == static_cast<ssize_t>(wanted)) return got;
  const bool is_certain = got >= 0 || errno == EAGAIN;
  const auto start = Clock::now();
  size_t have = got > 0 ? static_cast<size_t>(got) : 0, begin = 0;
  for (int i = 0; i < count; begin += pieces[i++].iov_len) {
    const size_t end = begin + pieces[i].iov_len;
    if (have >= end) continue;
    const size_t missing = end - have;
    const int64_t part =
        read_waiting(fd, offset + have, static_cast<uint8_t*>(pieces[i].iov_base) + (have - begin), missing);
    if (part < 0) return -1;
    have += static_cast<size_t>(part);
    if (static_cast<size_t>(part) < missing) break;
  }
  count_wait(start, wanted, is_certain);
  return static_cast<int64_t>(have);
}

uint64_t take_disk_wait_ns() { return std::exchange(disk_wait_ns, 0); }

ReadAheadOutcome request_read_ahead(int fd, uint64_t offset, uint64_t bytes) {
  if (bytes == 0) return {};
  const uint64_t end = offset + std::min(bytes, kMaxAheadInFile);
  for (uint64_t at = offset; at < end; at += kAdvisedBytes)
    ::posix_fadvise(fd, static_cast<off_t>(at), static_cast<off_t>(std::min(kAdvisedBytes, end - at)),
                    POSIX_FADV_WILLNEED);
  // The bytes of a request in flight are not there yet. Bytes that no page cache keeps are never there.
  uint8_t last;
  const struct iovec piece{&last, 1};
  return {end - offset, ::preadv2(fd, &piece, 1, static_cast<off_t>(end - 1), RWF_NOWAIT) == 1};
}

bool has_sane_size(uint64_t bytes, const std::string& path, std::string& error) {
  if (bytes <= kSaneBytes) return true;
  error = "expected a file of at most 2**40 bytes, got " + std::to_string(bytes) + " in '" + path + "'";
  return false;
}

namespace {

bool read_to_host(const OpenFile& file, uint64_t size, const std::string& path, BufferAllocator& allocator, View& out,
                  std::string& error) {
  uint8_t* const to = allocator.get(std::max<uint64_t>(size, 1));
  const int64_t have = read_file(file.descriptor(), 0, to, size);
  if (have < 0) return cannot_read(path, errno, error);
  out.data = to;
  out.shape[0] = have;
  out.stride[0] = 1;
  return true;
}

}  // namespace

bool read_whole(const OpenFile& file, const std::string& path, BufferAllocator& allocator, View& out,
                std::string& error) {
  uint64_t size = 0;
  return is_regular(file, path, size, error) && has_sane_size(size, path, error) &&
         read_to_host(file, size, path, allocator, out, error);
}

bool read_whole_to_any_memory(const OpenFile& file, const std::string& path, BufferAllocator& allocator, View& out,
                              std::string& error) {
  uint64_t size = 0;
  if (!is_regular(file, path, size, error) || !has_sane_size(size, path, error)) return false;
  const uint64_t address = allocator.read_to_device(file.descriptor(), 0, size);
  if (!address) return read_to_host(file, size, path, allocator, out, error);
  out.data = reinterpret_cast<uint8_t*>(address);
  out.device = true;
  out.shape[0] = static_cast<int64_t>(size);
  out.stride[0] = 1;
  return true;
}

}  // namespace stoker
