// SPDX-License-Identifier: Apache-2.0
// The cuFile functions that Stoker calls, over `pread`: "device memory" is host memory, as on the null device.
#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>

namespace {

struct Error {
  int code, driver_code;
};
struct Descriptor {
  int type;
  union {
    int number;
    void* handle;
  };
  const void* operations;
};
struct File {
  int descriptor;
};

std::atomic<int> open_status{0}, add_status{0}, read_status{0}, delay_us{0};
std::atomic<int> drivers{0}, files{0}, reads{0}, ends{0};
std::atomic<size_t> piece{1 << 20};  // largest read of a call

}  // namespace

extern "C" {

void fake_set(int open, int add, int read, int delay) {
  open_status = open, add_status = add, read_status = read, delay_us = delay;
  reads = 0;
}
void fake_end(int count) { ends = count; }  // number of the next reads that find the end of the file
int fake_drivers() { return drivers; }
int fake_files() { return files; }
int fake_reads() { return reads; }

Error cuFileDriverOpen() {
  if (open_status == 0) ++drivers;
  return {open_status, 0};
}
Error cuFileHandleRegister(void** handle, Descriptor* descriptor) {
  if (descriptor->type != 1 || descriptor->operations) return {5022, 0};
  if (::fcntl(descriptor->number, F_GETFL) & O_NONBLOCK) return {5019, 0};  // as the real library does
  if (add_status) return {add_status, 0};
  ++files;
  *handle = new File{descriptor->number};
  return {0, 0};
}
void cuFileHandleDeregister(void* handle) {
  --files;
  delete static_cast<File*>(handle);
}
ssize_t cuFileRead(void* handle, void* base, size_t bytes, off_t offset, off_t from_base) {
  if (read_status) return -read_status;
  ++reads;
  if (ends > 0) return --ends, 0;
  std::this_thread::sleep_for(std::chrono::microseconds(delay_us));
  const int descriptor = static_cast<File*>(handle)->descriptor;
  ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) & ~O_DIRECT);  // it needs aligned memory on the host
  return ::pread(descriptor, static_cast<char*>(base) + from_base, std::min(bytes, piece.load()), offset);
}

}  // extern "C"
