/* SPDX-License-Identifier: Apache-2.0 */
/* For LD_PRELOAD: a file whose name begins with "errno-N-" cannot be opened, with the error number N. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

static int opened(const char* name, const char* path, int flags, mode_t mode) {
  const char* found = strstr(path, "/errno-");
  if (found) {
    errno = atoi(found + strlen("/errno-"));
    return -1;
  }
  int (*next)(const char*, int, ...) = (int (*)(const char*, int, ...))dlsym(RTLD_NEXT, name);
  return next(path, flags, mode);
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
