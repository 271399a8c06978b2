/* SPDX-License-Identifier: Apache-2.0 */
/* For LD_PRELOAD: every other call that opens a file or reads of one is interrupted by a signal, and those that read
 * give no more than a part. `interrupted` counts. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>

int interrupted_opens = 0, interrupted_reads = 0;

static _Thread_local int open_turn = 0, read_turn = 0;

static int ours(const char* path) {
  const size_t n = strlen(path);
  return n > 4 && strcmp(path + n - 4, ".jpg") == 0;
}

static int opened(const char* name, const char* path, int flags, mode_t mode) {
  if (ours(path) && (open_turn ^= 1)) {
    ++interrupted_opens;
    errno = EINTR;
    return -1;
  }
  int (*next)(const char*, int, ...) = (int (*)(const char*, int, ...))dlsym(RTLD_NEXT, name);
  return next(path, flags, mode);
}

static ssize_t part(const char* name, int fd, void* to, size_t bytes, off_t at) {
  if (read_turn ^= 1) {
    ++interrupted_reads;
    errno = EINTR;
    return -1;
  }
  ssize_t (*next)(int, void*, size_t, off_t) = (ssize_t (*)(int, void*, size_t, off_t))dlsym(RTLD_NEXT, name);
  return next(fd, to, bytes > 1000 ? bytes / 2 : bytes, at);
}

static ssize_t part_of_pieces(const char* name, int fd, const struct iovec* to, int count, off_t at, int flags) {
  if (read_turn ^= 1) {
    ++interrupted_reads;
    errno = EINTR;
    return -1;
  }
  ssize_t (*next)(int, const struct iovec*, int, off_t, int) =
      (ssize_t (*)(int, const struct iovec*, int, off_t, int))dlsym(RTLD_NEXT, name);
  const struct iovec half = {to->iov_base, to->iov_len > 1000 ? to->iov_len / 2 : to->iov_len};
  return next(fd, &half, count > 0, at, flags);
}

#define OPEN(name)                             \
  int name(const char* path, int flags, ...) { \
    va_list rest;                              \
    va_start(rest, flags);                     \
    const mode_t mode = va_arg(rest, int);     \
    va_end(rest);                              \
    return opened(#name, path, flags, mode);   \
  }
OPEN(open)
OPEN(open64)
ssize_t pread(int fd, void* to, size_t bytes, off_t at) { return part("pread", fd, to, bytes, at); }
ssize_t pread64(int fd, void* to, size_t bytes, off_t at) { return part("pread64", fd, to, bytes, at); }
ssize_t preadv2(int fd, const struct iovec* to, int count, off_t at, int flags) {
  return part_of_pieces("preadv2", fd, to, count, at, flags);
}
ssize_t preadv64v2(int fd, const struct iovec* to, int count, off_t at, int flags) {
  return part_of_pieces("preadv64v2", fd, to, count, at, flags);
}
ssize_t __pread_chk(int fd, void* to, size_t bytes, off_t at, size_t room) {
  (void)room;
  return part("pread", fd, to, bytes, at);
}
ssize_t __pread64_chk(int fd, void* to, size_t bytes, off_t at, size_t room) {
  (void)room;
  return part("pread64", fd, to, bytes, at);
}
