// SPDX-License-Identifier: Apache-2.0
#include "told_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "engine.hpp"
#include "files.hpp"
#include "kernels.hpp"

namespace stoker {

namespace {

constexpr size_t kMarkerRoom = 64;  // some writers pad a file after its end marker

struct Identity {
  uint64_t device = 0, number = 0, size = 0;
  int64_t changed_ns = 0;
  bool operator==(const Identity&) const = default;
};

Identity identity_of(const struct stat& info) {
  return {static_cast<uint64_t>(info.st_dev), static_cast<uint64_t>(info.st_ino), static_cast<uint64_t>(info.st_size),
          static_cast<int64_t>(info.st_mtim.tv_sec) * 1'000'000'000 + info.st_mtim.tv_nsec};
}

bool is_same(const struct stat& info, const Identity& who) { return S_ISREG(info.st_mode) && identity_of(info) == who; }

// What `told` says. False: it is too short to say anything. What is behind a path's end (a zero byte) is passed over.
bool parse(const uint8_t* told, size_t size, Identity& who, std::string& path) {
  if (size <= sizeof who) return false;
  std::memcpy(&who, told, sizeof who);
  const auto* path_at = reinterpret_cast<const char*>(told) + sizeof who;
  path.assign(path_at, ::strnlen(path_at, size - sizeof who));
  return true;
}

double seconds_between(const struct timespec& from, const struct timespec& to) {
  return static_cast<double>(to.tv_sec - from.tv_sec) + 1e-9 * static_cast<double>(to.tv_nsec - from.tv_nsec);
}

// The last bytes of a file. What is not in memory yet is read ahead as a whole, since all of it will be wanted soon.
bool read_end(int fd, size_t size, uint8_t* to) {
  const auto at = static_cast<off_t>(size - kMarkerRoom);
  struct iovec room {to, kMarkerRoom};
  ssize_t got = ::preadv2(fd, &room, 1, at, RWF_NOWAIT);
  if (got != static_cast<ssize_t>(kMarkerRoom)) {
    ::posix_fadvise(fd, 0, static_cast<off_t>(size), POSIX_FADV_WILLNEED);
    do got = ::pread(fd, to, kMarkerRoom, at);
    while (got < 0 && errno == EINTR);
  }
  return got == static_cast<ssize_t>(kMarkerRoom);
}

class ToldFile : public Kernel {
 public:
  bool allocates() const override { return true; }
  Outcome run(const Call& c) const override {
    const View& told = *c.in[0];
    if (told.rank != 1 || !told.contiguous()) {
      *c.error = "expected what tells of a file, got an array of another shape";
      return Outcome::Error;
    }
    const auto size = static_cast<size_t>(told.shape[0]);
    return read_told(told.data, size, *c.own, *c.out[0], *c.error) ? Outcome::Ok : Outcome::Error;
  }
};

}  // namespace

std::string tell_file(int fd, const std::string& path, double settled_s) {
  struct stat info;
  if (path.find('\0') != std::string::npos || ::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return {};
  struct timespec now;
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  if (seconds_between(info.st_ctim, now) < settled_s) return {};
  const Identity who = identity_of(info);
  uint8_t end[kMarkerRoom];
  if (who.size < kMarkerRoom || !read_end(fd, who.size, end)) return {};
  constexpr uint8_t kEndMarker[] = {0xFF, 0xD9};
  if (std::search(end, end + kMarkerRoom, kEndMarker, kEndMarker + 2) == end + kMarkerRoom) return {};
  std::string told(sizeof who, '\0');
  std::memcpy(told.data(), &who, sizeof who);
  return told + path;
}

bool is_told_there(const uint8_t* told, size_t size) {
  Identity who;
  std::string path;
  struct stat info;
  return parse(told, size, who, path) && ::stat(path.c_str(), &info) == 0 && is_same(info, who);
}

bool is_told_open(const uint8_t* told, size_t size, int fd) {
  Identity who;
  std::string path;
  struct stat info;
  return parse(told, size, who, path) && ::fstat(fd, &info) == 0 && is_same(info, who);
}

bool read_told(const uint8_t* told, size_t size, Room& room, View& out, std::string& error) {
  Identity who;
  std::string path;
  if (!parse(told, size, who, path)) {
    error = "expected what tells of a file, got " + std::to_string(size) + " bytes";
    return false;
  }
  const OpenFile file(path);
  struct stat info;
  if (!file || ::fstat(file.descriptor(), &info) != 0) {
    error = "cannot read '" + path + "': " + std::strerror(errno);
    return false;
  }
  if (!is_same(info, who)) {
    error = "expected '" + path + "' as it was when it was opened, got another file or a changed one";
    return false;
  }
  if (!has_sane_size(who.size, path, error)) return false;
  uint8_t* const to = room.get(who.size + 1);
  if (!file.read_at(0, to, who.size)) {
    error = "cannot read all of '" + path + "'";
    return false;
  }
  out.data = to;
  out.shape[0] = static_cast<int64_t>(who.size);
  out.stride[0] = 1;
  return true;
}

std::shared_ptr<Kernel> make_told_file() { return std::make_shared<ToldFile>(); }

}  // namespace stoker
