// SPDX-License-Identifier: Apache-2.0
// Counts the allocations of 4 KiB and more that a process makes: load it with LD_PRELOAD and ask
// bench_large_allocations(). Memory that the C library maps for its own arenas is not counted twice, because those
// calls do not pass through the symbols below.

#include <dlfcn.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace {

constexpr std::size_t kLarge = 4096;
std::atomic<std::uint64_t> large{0};

void note(std::size_t size) {
  if (size >= kLarge) large.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

// glibc offers its allocator under these names too, which spares the look-up of the originals: dlsym itself allocates.
extern "C" {

void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* old, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);

std::uint64_t bench_large_allocations() { return large.load(); }

void* malloc(std::size_t size) {
  note(size);
  return __libc_malloc(size);
}

void* calloc(std::size_t count, std::size_t size) {
  note(count * size);
  return __libc_calloc(count, size);
}

void* realloc(void* old, std::size_t size) {
  note(size);
  return __libc_realloc(old, size);
}

void* memalign(std::size_t alignment, std::size_t size) {
  note(size);
  return __libc_memalign(alignment, size);
}

void* aligned_alloc(std::size_t alignment, std::size_t size) {
  note(size);
  return __libc_memalign(alignment, size);
}

int posix_memalign(void** out, std::size_t alignment, std::size_t size) {
  note(size);
  void* memory = __libc_memalign(alignment, size);
  if (memory == nullptr) return ENOMEM;
  *out = memory;
  return 0;
}

void* mmap(void* at, std::size_t size, int protection, int flags, int file, off_t offset) {
  using Map = void* (*)(void*, std::size_t, int, int, int, off_t);
  static const Map original = reinterpret_cast<Map>(dlsym(RTLD_NEXT, "mmap"));
  if ((flags & MAP_ANONYMOUS) != 0) note(size);
  return original(at, size, protection, flags, file, offset);
}

}  // extern "C"
