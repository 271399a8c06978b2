// SPDX-License-Identifier: Apache-2.0
#include "gpu/file_reads.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <type_traits>
#include <utility>

namespace stoker::gpu {

namespace {

// The part of cuFile's interface that is used here, as in its documentation (cuFile API 1.6 and later).
using Handle = void*;
struct Error {
  int code = 0;         // 0: success
  int driver_code = 0;  // of CUDA's driver
};
constexpr int kDescriptorType = 1;  // a descriptor of Linux
struct Descriptor {
  int type = kDescriptorType;
  union {
    int number;
    void* handle;
  };
  const void* operations = nullptr;
};
static_assert(sizeof(Error) == 8 && sizeof(Descriptor) == 24, "as in cuFile's header");

std::string text_of(const Error& error) {
  return "cuFile status " + std::to_string(error.code) +
         (error.driver_code ? ", CUDA error " + std::to_string(error.driver_code) : "");
}

// A regular file that is opened again: around the page cache if its file system can, which reads from the disk to the
// device require, and without O_NONBLOCK, which cuFile refuses.
class ReopenedFile {
 public:
  explicit ReopenedFile(int descriptor) {
    const std::string path = "/proc/self/fd/" + std::to_string(descriptor);
#ifdef O_DIRECT
    fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT);
#endif
    if (fd_ < 0) fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  }
  ~ReopenedFile() {
    if (fd_ >= 0) ::close(fd_);
  }
  ReopenedFile(const ReopenedFile&) = delete;
  ReopenedFile& operator=(const ReopenedFile&) = delete;
  int descriptor() const { return fd_; }  // -1: it cannot be opened

 private:
  int fd_ = -1;
};

}  // namespace

struct FileReads::Api {
  void* library = nullptr;
  Error (*open)();
  Error (*add)(Handle*, Descriptor*);
  void (*remove)(Handle);
  ssize_t (*read)(Handle, void*, size_t, off_t, off_t);

  explicit Api(const std::string& path) : library(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (!library) throw DeviceFailure(std::string("expected cuFile's library: ") + ::dlerror());
    const auto find = [&](auto& function, const char* name) {
      void* const symbol = ::dlsym(library, name);
      if (!symbol) throw DeviceFailure(std::string("cuFile's library has no ") + name);
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
    };
    try {
      find(open, "cuFileDriverOpen");
      find(add, "cuFileHandleRegister");
      find(remove, "cuFileHandleDeregister");
      find(read, "cuFileRead");
      if (const Error error = open(); error.code) throw DeviceFailure("cuFile cannot be opened: " + text_of(error));
    } catch (...) {
      ::dlclose(library);
      throw;
    }
  }
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;

  // Return the library, which the process opens once and never closes: closing it would end the reads of all pipelines.
  static const Api& of(const std::string& path) {
    static std::mutex opening;
    static auto* const opened = new std::map<std::string, std::unique_ptr<const Api>>();  // not destroyed at exit
    std::lock_guard<std::mutex> hold(opening);
    std::unique_ptr<const Api>& api = (*opened)[path];
    if (!api) api = std::make_unique<const Api>(path);
    return *api;
  }
};

FileReads::FileReads(const std::shared_ptr<Device>& device, CuFile cufile, const std::string& library, Buffers buffers)
    : api_([&]() -> const Api* {
        if (cufile == CuFile::Off) return nullptr;
        const Visit here(device.get());
        return &Api::of(library);
      }()),
      is_on_(cufile == CuFile::On),
      bounce_(device, buffers.piece, buffers.count),
      state_(!api_    ? State::Off
             : is_on_ ? State::Direct
                      : State::Measuring) {}

bool FileReads::is_next_direct() {
  if (!api_) return false;
  std::lock_guard<std::mutex> hold(mutex_);
  return state_ == State::Direct || (state_ == State::Measuring && turn_++ % 2 == 0);
}

FileReads::Outcome FileReads::read(int descriptor, uint64_t offset, Address to, size_t bytes, IdleThreads* others) {
  if (is_next_direct()) {
    const Direct direct = read_directly(descriptor, offset, to, bytes);
    if (direct != Direct::Refused) return {direct == Direct::Done, {}};
  }
  std::vector<Event> copied = bounce_.read(descriptor, offset, to, bytes, others);
  if (api_) {
    std::lock_guard<std::mutex> hold(mutex_);
    decide();
  }
  const bool is_complete = !copied.empty();
  return {is_complete, std::move(copied)};
}

FileReads::Direct FileReads::read_directly(int descriptor, uint64_t offset, Address to, size_t bytes) {
  const auto start = std::chrono::steady_clock::now();
  const ReopenedFile file(descriptor);
  if (file.descriptor() < 0) {
    if (is_on_) return refuse(std::string("a file cannot be opened again: ") + std::strerror(errno));
    return Direct::Short;  // for one file, by the caller's own read
  }
  Handle handle = nullptr;
  Descriptor d;
  d.number = file.descriptor();
  if (const Error error = api_->add(&handle, &d); error.code)
    return refuse("a file cannot be registered: " + text_of(error));
  std::string reason;
  const Direct outcome = read_registered(handle, offset, to, bytes, reason);
  api_->remove(handle);
  if (outcome != Direct::Done) return outcome == Direct::Short ? outcome : refuse(std::move(reason));
  const std::chrono::nanoseconds spent = std::chrono::steady_clock::now() - start;
  std::lock_guard<std::mutex> hold(mutex_);
  ++direct_.reads;
  direct_.bytes += bytes;
  direct_.ns += static_cast<uint64_t>(spent.count());
  decide();
  return outcome;
}

FileReads::Direct FileReads::read_registered(Handle handle, uint64_t offset, Address to, size_t bytes,
                                             std::string& reason) {
  for (size_t have = 0; have < bytes;) {
    const ssize_t count = api_->read(handle, reinterpret_cast<void*>(to), bytes - have,
                                     static_cast<off_t>(offset + have), static_cast<off_t>(have));
    if (count < 0) {
      reason = "a file cannot be read: " +
               (count == -1 ? std::string(std::strerror(errno)) : "cuFile status " + std::to_string(-count));
      return Direct::Refused;
    }
    if (count == 0) return Direct::Short;
    have += static_cast<size_t>(count);
  }
  return Direct::Done;
}

void FileReads::decide() {
  if (state_ != State::Measuring || direct_.reads < kTrials) return;
  const BounceReads::Times staged = bounce_.times();
  if (staged.reads < kTrials) return;
  const auto each = [](uint64_t ns, uint64_t bytes) { return static_cast<double>(ns) / static_cast<double>(bytes); };
  state_ = each(direct_.ns, direct_.bytes) < each(staged.ns, staged.bytes) ? State::Direct : State::Staged;
}

FileReads::Direct FileReads::refuse(std::string reason) {
  if (is_on_)
    throw DeviceFailure("GPUDirect Storage: " + reason +
                        ". With STOKER_GDS=auto or off, files that cuFile cannot read go through page-locked memory");
  std::lock_guard<std::mutex> hold(mutex_);
  if (state_ != State::Failed) reason_ = std::move(reason);
  state_ = State::Failed;
  return Direct::Refused;
}

FileReads::Report FileReads::report() const {
  std::lock_guard<std::mutex> hold(mutex_);
  return {state_, direct_, bounce_.times(), reason_};
}

bool FileReads::has_failed() const {
  std::lock_guard<std::mutex> hold(mutex_);
  return state_ == State::Failed;
}

}  // namespace stoker::gpu
