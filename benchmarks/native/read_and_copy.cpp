// SPDX-License-Identifier: Apache-2.0
// Threads that read pieces of files into memory of their own and copy them to a GPU, without Python's lock: the rate that
// the machine allows.
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kBuffers = 2;  // of a thread: one is filled while the other one is copied
constexpr unsigned kNoTiming = 2, kNonBlocking = 1;

struct Driver {
  void* library = nullptr;
  int (*init)(unsigned) = nullptr;
  int (*get_device)(int*, int) = nullptr;
  int (*retain)(void**, int) = nullptr;
  int (*release)(int) = nullptr;
  int (*set_current)(void*) = nullptr;
  int (*allocate)(uint64_t*, size_t) = nullptr;
  int (*free)(uint64_t) = nullptr;
  int (*allocate_host)(void**, size_t, unsigned) = nullptr;
  int (*free_host)(void*) = nullptr;
  int (*new_stream)(void**, unsigned, int) = nullptr;
  int (*destroy_stream)(void*) = nullptr;
  int (*synchronize_stream)(void*) = nullptr;
  int (*new_event)(void**, unsigned) = nullptr;
  int (*destroy_event)(void*) = nullptr;
  int (*record)(void*, void*) = nullptr;
  int (*synchronize_event)(void*) = nullptr;
  int (*copy)(uint64_t, const void*, size_t, void*) = nullptr;

  // Returns the name of a missing function, or an empty text.
  std::string load() {
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) return "libcuda.so.1";
    std::string missing;
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
      if (!function) missing = name;
    };
    find(init, "cuInit"), find(get_device, "cuDeviceGet"), find(retain, "cuDevicePrimaryCtxRetain");
    find(release, "cuDevicePrimaryCtxRelease_v2"), find(set_current, "cuCtxSetCurrent");
    find(allocate, "cuMemAlloc_v2"), find(free, "cuMemFree_v2");
    find(allocate_host, "cuMemHostAlloc"), find(free_host, "cuMemFreeHost");
    find(new_stream, "cuStreamCreateWithPriority"), find(destroy_stream, "cuStreamDestroy_v2");
    find(synchronize_stream, "cuStreamSynchronize"), find(new_event, "cuEventCreate");
    find(destroy_event, "cuEventDestroy_v2"), find(record, "cuEventRecord");
    find(synchronize_event, "cuEventSynchronize"), find(copy, "cuMemcpyHtoDAsync_v2");
    return missing;
  }
};

// First failure of any thread. It ends the loops of all.
class Failure {
 public:
  bool check(int code, const char* call) {
    if (code != 0 && !failed_.exchange(true)) text_ = std::string(call) + " failed with " + std::to_string(code);
    return code == 0;
  }
  bool any() const { return failed_; }
  const std::string& text() const { return text_; }

 private:
  std::atomic<bool> failed_{false};
  std::string text_;
};

// Buffers of a thread, with the stream on which they are copied if there is a driver.
class Buffers {
 public:
  Buffers(const Driver* driver, void* context, size_t bytes, Failure& failure) : driver_(driver), failure_(failure) {
    if (!driver_) {
      for (void*& host : hosts_) failure_.check((host = std::malloc(bytes)) ? 0 : 1, "malloc");
      return;
    }
    bool good = failure_.check(driver_->set_current(context), "cuCtxSetCurrent") &&
                failure_.check(driver_->new_stream(&stream_, kNonBlocking, 0), "cuStreamCreateWithPriority") &&
                failure_.check(driver_->allocate(&device_, bytes), "cuMemAlloc");
    for (int i = 0; good && i < kBuffers; ++i)
      good = failure_.check(driver_->allocate_host(&hosts_[i], bytes, 0), "cuMemHostAlloc") &&
             failure_.check(driver_->new_event(&events_[i], kNoTiming), "cuEventCreate");
  }
  ~Buffers() {
    if (driver_ && stream_) driver_->synchronize_stream(stream_);
    for (int i = 0; i < kBuffers; ++i) {
      if (!driver_) std::free(hosts_[i]);
      if (driver_ && hosts_[i]) driver_->free_host(hosts_[i]);
      if (driver_ && events_[i]) driver_->destroy_event(events_[i]);
    }
    if (driver_ && device_) driver_->free(device_);
    if (driver_ && stream_) driver_->destroy_stream(stream_);
  }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;

  // Waits until a buffer may be filled again, and returns it.
  void* await(int turn) {
    if (driver_ && copied_[turn]) failure_.check(driver_->synchronize_event(events_[turn]), "cuEventSynchronize");
    return hosts_[turn];
  }
  void copy(int turn, size_t bytes) {
    if (!driver_) return;
    copied_[turn] = failure_.check(driver_->copy(device_, hosts_[turn], bytes, stream_), "cuMemcpyHtoDAsync") &&
                    failure_.check(driver_->record(events_[turn], stream_), "cuEventRecord");
  }
  void finish() {
    if (driver_) failure_.check(driver_->synchronize_stream(stream_), "cuStreamSynchronize");
  }

 private:
  const Driver* driver_;
  Failure& failure_;
  void* stream_ = nullptr;
  uint64_t device_ = 0;
  void* hosts_[kBuffers] = {};
  void* events_[kBuffers] = {};
  bool copied_[kBuffers] = {};
};

struct Piece {
  int file;
  off_t offset;
  size_t bytes;
};

}  // namespace

// Reads `count` open files of `size` bytes in pieces of `step` bytes, again and again for `seconds`, on `threads` threads.
// With `on_gpu` each piece is copied to device 0. Writes bytes per second to `rate`. Returns an empty text, or the error,
// which is valid until the thread's next call.
extern "C" const char* read_and_copy(const int* files, int count, uint64_t size, uint64_t step, int threads,
                                     double seconds, int on_gpu, double* rate) {
  static thread_local std::string error;
  error.clear();
  *rate = 0;
  if (!files || count < 1 || size < 1 || step < 1 || threads < 1) return "expected files, pieces and threads";
  std::vector<Piece> pieces;
  for (int f = 0; f < count; ++f)
    for (uint64_t at = 0; at < size; at += step)
      pieces.push_back({files[f], static_cast<off_t>(at), static_cast<size_t>(std::min(step, size - at))});

  Driver driver;
  Failure failure;
  void* context = nullptr;
  int device = 0;
  if (on_gpu) {
    if (const std::string missing = driver.load(); !missing.empty())
      return (error = "no CUDA driver: " + missing + " is missing").c_str();
    if (!failure.check(driver.init(0), "cuInit") || !failure.check(driver.get_device(&device, 0), "cuDeviceGet") ||
        !failure.check(driver.retain(&context, device), "cuDevicePrimaryCtxRetain"))
      return (error = failure.text()).c_str();
  }
  std::atomic<uint64_t> done{0};
  std::barrier ready(threads + 1);
  const auto work = [&](int number) {
    Buffers buffers(on_gpu ? &driver : nullptr, context, std::min(step, size), failure);
    ready.arrive_and_wait();
    const auto end = Clock::now() + std::chrono::duration<double>(seconds);
    uint64_t own = 0;
    int turn = 0;
    for (size_t i = number; !failure.any() && Clock::now() < end; i += threads, turn = (turn + 1) % kBuffers) {
      const Piece& piece = pieces[i % pieces.size()];
      void* buffer = buffers.await(turn);
      if (failure.any()) break;
      const ssize_t got = pread(piece.file, buffer, piece.bytes, piece.offset);
      if (!failure.check(got == static_cast<ssize_t>(piece.bytes) ? 0 : 1, "pread")) break;
      buffers.copy(turn, piece.bytes);
      own += piece.bytes;
    }
    if (!failure.any()) buffers.finish();
    done += own;
    ready.arrive_and_wait();  // releasing memory is not measured
  };
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i) workers.emplace_back(work, i);
  ready.arrive_and_wait();
  const auto start = Clock::now();
  ready.arrive_and_wait();
  const std::chrono::duration<double> elapsed = Clock::now() - start;
  for (std::thread& worker : workers) worker.join();
  if (on_gpu) driver.release(device);
  if (failure.any()) return (error = failure.text()).c_str();
  *rate = static_cast<double>(done) / elapsed.count();
  return "";
}
