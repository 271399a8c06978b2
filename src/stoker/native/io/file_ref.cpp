// SPDX-License-Identifier: Apache-2.0
#include "io/file_ref.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "io/files.hpp"

namespace stoker {

namespace {

constexpr size_t kEndMarkerWindow = 64;  // some writers pad a file after its end marker

struct FileIdentity {
  uint64_t device = 0, number = 0, size = 0;
  int64_t changed_ns = 0;
  bool operator==(const FileIdentity&) const = default;
};

FileIdentity identity_of(const struct stat& info) {
  return {static_cast<uint64_t>(info.st_dev), static_cast<uint64_t>(info.st_ino), static_cast<uint64_t>(info.st_size),
          static_cast<int64_t>(info.st_mtim.tv_sec) * 1'000'000'000 + info.st_mtim.tv_nsec};
}

bool is_same(const struct stat& info, const FileIdentity& identity) {
  return S_ISREG(info.st_mode) && identity_of(info) == identity;
}

// Split `ref` into identity and path. Return false if it is too short. Bytes after the zero byte that ends the path are
// ignored.
bool parse(const uint8_t* ref, size_t size, FileIdentity& identity, std::string& path) {
  if (size <= sizeof identity) return false;
  std::memcpy(&identity, ref, sizeof identity);
  const auto* path_at = reinterpret_cast<const char*>(ref) + sizeof identity;
  path.assign(path_at, ::strnlen(path_at, size - sizeof identity));
  return true;
}

double seconds_between(const struct timespec& from, const struct timespec& to) {
  return static_cast<double>(to.tv_sec - from.tv_sec) + 1e-9 * static_cast<double>(to.tv_nsec - from.tv_nsec);
}

// Read the last bytes of a file. If they are not in the page cache, start reading the whole file ahead, since a reader
// will need all of it soon.
bool read_end(int fd, size_t size, uint8_t* to) {
  const auto at = static_cast<off_t>(size - kEndMarkerWindow);
  struct iovec buffer{to, kEndMarkerWindow};
  const ssize_t got = ::preadv2(fd, &buffer, 1, at, RWF_NOWAIT);
  if (got == static_cast<ssize_t>(kEndMarkerWindow)) return true;
  ::posix_fadvise(fd, 0, static_cast<off_t>(size), POSIX_FADV_WILLNEED);
  return read_file(fd, static_cast<uint64_t>(at), to, kEndMarkerWindow) == static_cast<int64_t>(kEndMarkerWindow);
}

}  // namespace

std::string make_file_ref(int fd, const std::string& path, double settled_s) {
  struct stat info;
  if (path.find('\0') != std::string::npos || ::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return {};
  struct timespec now;
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  if (seconds_between(info.st_ctim, now) < settled_s) return {};
  const FileIdentity identity = identity_of(info);
  uint8_t end[kEndMarkerWindow];
  if (identity.size < kEndMarkerWindow || !read_end(fd, identity.size, end)) return {};
  constexpr uint8_t kEndMarker[] = {0xFF, 0xD9};
  if (std::search(end, end + kEndMarkerWindow, kEndMarker, kEndMarker + 2) == end + kEndMarkerWindow) return {};
  std::string ref(sizeof identity, '\0');
  std::memcpy(ref.data(), &identity, sizeof identity);
  return ref + path;
}

bool is_file_ref_unchanged(const uint8_t* ref, size_t size) {
  FileIdentity identity;
  std::string path;
  struct stat info;
  return parse(ref, size, identity, path) && ::stat(path.c_str(), &info) == 0 && is_same(info, identity);
}

bool is_file_ref_of(const uint8_t* ref, size_t size, int fd) {
  FileIdentity identity;
  std::string path;
  struct stat info;
  return parse(ref, size, identity, path) && ::fstat(fd, &info) == 0 && is_same(info, identity);
}

bool read_file_ref(const uint8_t* ref, size_t size, BufferAllocator& allocator, View& out, std::string& error) {
  FileIdentity identity;
  std::string path;
  if (!parse(ref, size, identity, path)) {
    error = "expected a file reference, got " + std::to_string(size) + " bytes";
    return false;
  }
  const OpenFile file(path);
  struct stat info;
  if (!file || ::fstat(file.descriptor(), &info) != 0) {
    error = "cannot read '" + path + "': " + std::strerror(errno);
    return false;
  }
  if (!is_same(info, identity)) {
    error = "expected '" + path + "' as it was when it was opened, got another file or a changed one";
    return false;
  }
  if (!has_sane_size(identity.size, path, error)) return false;
  uint8_t* const to = allocator.get(identity.size + 1);
  if (!file.read_at(0, to, identity.size)) {
    error = "cannot read all of '" + path + "'";
    return false;
  }
  out.data = to;
  out.shape[0] = static_cast<int64_t>(identity.size);
  out.stride[0] = 1;
  return true;
}

}  // namespace stoker
