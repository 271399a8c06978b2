// SPDX-License-Identifier: Apache-2.0
// CUDA through its driver's library, which is opened together with the first device. The package can be built without
// CUDA, and one build serves machines with and without it.
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <mutex>
#include <type_traits>

#include "gpu/device.hpp"

namespace stoker::gpu {

namespace {

// The part of the driver's interface that is used here, as in its documentation (CUDA Driver API 12 and 13).
using Result = int;
using Handle = void*;
constexpr int kSuccess = 0, kNotReady = 600, kOutOfMemory = 2, kNotInitialized = 3;
constexpr int kCapabilityMajor = 75, kCapabilityMinor = 76;
constexpr unsigned kStreamNonBlocking = 1, kEventBlockingSync = 1, kEventDisableTiming = 2, kHostPortable = 1;
constexpr unsigned kUntimed = kEventDisableTiming | kEventBlockingSync;
constexpr int kMaxDynamicShared = 8;
constexpr uint32_t kPlainSharedBytes = 48 * 1024;  // a kernel with more must request it before its launch

template <typename... A>
void put_off(Result (*&function)(A...)) {
  function = [](A...) -> Result { return kNotInitialized; };
}

struct Driver {
  void* library = nullptr;
  Result (*init)(unsigned);
  Result (*error_string)(Result, const char**);
  Result (*device_count)(int*);
  Result (*device_get)(int*, int);
  Result (*device_name)(char*, int, int);
  Result (*device_attribute)(int*, int, int);
  Result (*context_retain)(Handle*, int);
  Result (*context_release)(int);
  Result (*context_set)(Handle);
  Result (*context_get)(Handle*);
  Result (*priority_range)(int*, int*);
  Result (*memory_info)(size_t*, size_t*);
  Result (*memory_allocate)(Address*, size_t);
  Result (*memory_free)(Address);
  Result (*host_allocate)(void**, size_t, unsigned);
  Result (*host_free)(void*);
  Result (*copy_in)(Address, const void*, size_t, Handle);
  Result (*copy_out)(void*, Address, size_t, Handle);
  Result (*copy_within)(Address, Address, size_t, Handle);
  Result (*stream_create)(Handle*, unsigned, int);
  Result (*stream_destroy)(Handle);
  Result (*stream_wait)(Handle, Handle, unsigned);
  Result (*stream_synchronize)(Handle);
  Result (*event_create)(Handle*, unsigned);
  Result (*event_destroy)(Handle);
  Result (*event_record)(Handle, Handle);
  Result (*event_query)(Handle);
  Result (*event_synchronize)(Handle);
  Result (*event_elapsed)(float*, Handle, Handle);
  Result (*module_load)(Handle*, const void*);
  Result (*module_unload)(Handle);
  Result (*module_function)(Handle*, Handle, const char*);
  Result (*function_attribute)(Handle, int, int);
  Result (*launch)(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void**,
                   void**);
  // For streams on a part of the multiprocessors: only in drivers of CUDA 12.4 and later.
  bool has_green = true;
  Result (*green_resource)(int, void*, int);
  Result (*green_split)(void*, unsigned*, const void*, void*, unsigned, unsigned);
  Result (*green_describe)(Handle*, void*, unsigned);
  Result (*green_create)(Handle*, Handle, int, unsigned);
  Result (*green_destroy)(Handle);
  Result (*green_stream)(Handle*, Handle, unsigned, int);

  // All of them, under the names that they have in the library.
  template <typename Visitor>
  void each(Visitor visit) {
    visit(init, "cuInit");
    visit(error_string, "cuGetErrorString");
    visit(device_count, "cuDeviceGetCount");
    visit(device_get, "cuDeviceGet");
    visit(device_name, "cuDeviceGetName");
    visit(device_attribute, "cuDeviceGetAttribute");
    visit(context_retain, "cuDevicePrimaryCtxRetain");
    visit(context_release, "cuDevicePrimaryCtxRelease_v2");
    visit(context_set, "cuCtxSetCurrent");
    visit(context_get, "cuCtxGetCurrent");
    visit(priority_range, "cuCtxGetStreamPriorityRange");
    visit(memory_info, "cuMemGetInfo_v2");
    visit(memory_allocate, "cuMemAlloc_v2");
    visit(memory_free, "cuMemFree_v2");
    visit(host_allocate, "cuMemHostAlloc");
    visit(host_free, "cuMemFreeHost");
    visit(copy_in, "cuMemcpyHtoDAsync_v2");
    visit(copy_out, "cuMemcpyDtoHAsync_v2");
    visit(copy_within, "cuMemcpyDtoDAsync_v2");
    visit(stream_create, "cuStreamCreateWithPriority");
    visit(stream_destroy, "cuStreamDestroy_v2");
    visit(stream_wait, "cuStreamWaitEvent");
    visit(stream_synchronize, "cuStreamSynchronize");
    visit(event_create, "cuEventCreate");
    visit(event_destroy, "cuEventDestroy_v2");
    visit(event_record, "cuEventRecord");
    visit(event_query, "cuEventQuery");
    visit(event_synchronize, "cuEventSynchronize");
    visit(event_elapsed, "cuEventElapsedTime");
    visit(module_load, "cuModuleLoadData");
    visit(module_unload, "cuModuleUnload");
    visit(module_function, "cuModuleGetFunction");
    visit(function_attribute, "cuFuncSetAttribute");
    visit(launch, "cuLaunchKernel");
  }
  template <typename Visitor>
  void each_green(Visitor visit) {
    visit(green_resource, "cuDeviceGetDevResource");
    visit(green_split, "cuDevSmResourceSplitByCount");
    visit(green_describe, "cuDevResourceGenerateDesc");
    visit(green_create, "cuGreenCtxCreate");
    visit(green_destroy, "cuGreenCtxDestroy");
    visit(green_stream, "cuGreenCtxStreamCreate");
  }
  // Refuse all calls in a forked child. It has neither the library's threads nor a valid context, so a release, which a
  // garbage collector may do at any time, could crash there. Every call then returns an error that says so.
  void refuse() {
    each([](auto& function, const char*) { put_off(function); });
    each_green([](auto& function, const char*) { put_off(function); });
    error_string = [](Result, const char** text) -> Result {
      *text =
          "this process was forked from one that had used CUDA, and cannot use it itself: start it with \"spawn\", or "
          "before the GPU is first used";
      return kSuccess;
    };
  }
  void check(Result result, const char* what) const {
    if (result == kSuccess) return;
    if (result == kOutOfMemory) throw std::bad_alloc();
    const char* text = nullptr;
    error_string(result, &text);
    throw DeviceFailure(std::string(what) + ": " + (text ? text : "unknown error") + " (CUDA error " +
                        std::to_string(result) + ")");
  }
};

Driver load_driver() {
  Driver d;
  d.library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!d.library) throw DeviceFailure("there is no CUDA driver (libcuda.so.1) on this machine");
  d.each([&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(d.library, name));
    if (!function) throw DeviceFailure(std::string("the CUDA driver is too old: it has no ") + name);
  });
  d.each_green([&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(d.library, name));
    if (!function) d.has_green = false;
  });
  d.check(d.init(0), "the CUDA driver does not start");
  return d;
}

Driver* in_use = nullptr;

const Driver& driver() {
  static Driver loaded = load_driver();    // repeated after a failure
  static const bool hears_of_forks = [] {  // once; any thread may come here first
    in_use = &loaded;
    if (::pthread_atfork(nullptr, nullptr, [] { in_use->refuse(); })) throw std::bad_alloc();
    return true;
  }();
  static_cast<void>(hears_of_forks);
  return loaded;
}

// The driver's CUdevResource of type CU_DEV_RESOURCE_TYPE_SM, with room for what later versions append.
struct alignas(8) Multiprocessors {
  int type = 0;
  unsigned char internal[92] = {};
  unsigned count = 0;
  unsigned char later[156] = {};
};
constexpr int kMultiprocessors = 1;    // CU_DEV_RESOURCE_TYPE_SM
constexpr unsigned kGreenDefault = 1;  // CU_GREEN_CTX_DEFAULT_STREAM, the only flag

class CudaDevice : public Device, public std::enable_shared_from_this<CudaDevice> {
 public:
  CudaDevice(int number, unsigned multiprocessors) : d_(driver()), number_(number) {
    int count = 0;
    d_.check(d_.device_count(&count), "the CUDA devices cannot be counted");
    if (number < 0 || number >= count)
      throw DeviceFailure("expected a device below " + std::to_string(count) + " (the number of CUDA devices), got " +
                          std::to_string(number));
    d_.check(d_.device_get(&device_, number), "the CUDA device cannot be opened");
    d_.check(d_.context_retain(&context_, device_), "the CUDA device cannot be used");
    try {
      open(multiprocessors);
    } catch (...) {
      close();
      throw;
    }
  }
  ~CudaDevice() override { close(); }

  int number() const override { return number_; }
  std::string name() const override {
    char text[256] = {};
    d_.check(d_.device_name(text, sizeof text, device_), "the device's name");
    return text;
  }
  int architecture() const override {
    int major = 0, minor = 0;
    d_.check(d_.device_attribute(&major, kCapabilityMajor, device_), "compute capability");
    d_.check(d_.device_attribute(&minor, kCapabilityMinor, device_), "compute capability");
    return 10 * major + minor;
  }
  void enter() override { d_.check(d_.context_set(context_), "the device's context"); }
  void* current() noexcept override {
    Handle context = nullptr;
    return d_.context_get(&context) == kSuccess ? context : nullptr;
  }
  void leave(void* before) noexcept override {
    if (before != context_) d_.context_set(before);
  }

  uint8_t* pin(size_t bytes) override {
    void* memory = nullptr;
    d_.check(d_.host_allocate(&memory, bytes, kHostPortable), "page-locked memory");
    return static_cast<uint8_t*>(memory);
  }
  void unpin(uint8_t* memory) noexcept override { d_.host_free(memory); }
  Address allocate(size_t bytes) override {
    Address memory = 0;
    d_.check(d_.memory_allocate(&memory, bytes), "device memory");
    return memory;
  }
  void free(Address memory) noexcept override {
    // Callable from any thread: a garbage collector may release memory.
    void* const before = current();
    d_.context_set(context_);
    d_.memory_free(memory);
    leave(before);
  }

  void copy_in(Address to, const uint8_t* from, size_t bytes) override {
    d_.check(d_.copy_in(to, from, bytes, copies_), "a copy to the device");
  }
  WorkStream next_work_stream() override { return turn_.fetch_add(1, std::memory_order_relaxed) % kWorkStreams; }
  void await_on(WorkStream work_stream, Event event) override {
    d_.check(d_.stream_wait(work_streams_[work_stream], event, 0), "waiting for copies");
  }
  void send(WorkStream work_stream, Address to, const uint8_t* from, size_t bytes) override {
    d_.check(d_.copy_in(to, from, bytes, work_streams_[work_stream]), "a copy to the device");
  }
  void copy_out(WorkStream work_stream, uint8_t* to, Address from, size_t bytes) override {
    d_.check(d_.copy_out(to, from, bytes, work_streams_[work_stream]), "a copy from the device");
  }
  void move(WorkStream work_stream, Address to, Address from, size_t bytes) override {
    d_.check(d_.copy_within(to, from, bytes, work_streams_[work_stream]), "a copy on the device");
  }
  void launch(WorkStream work_stream, const Launch& l) override { launch_on(stream_of(work_stream), l); }
  void launch_on(uintptr_t stream, const Launch& l) override {
    void* arguments[Launch::kMaxArguments];
    for (int i = 0; i < l.arguments; ++i) arguments[i] = const_cast<uint64_t*>(&l.argument[i]);
    d_.check(d_.launch(l.function->handle, l.grid[0], l.grid[1], l.grid[2], l.block[0], l.block[1], l.block[2],
                       l.shared_bytes, reinterpret_cast<Handle>(stream), arguments, nullptr),
             l.function->name.c_str());
  }
  void copy_in_on(uintptr_t stream, Address to, const uint8_t* from, size_t bytes) override {
    d_.check(d_.copy_in(to, from, bytes, reinterpret_cast<Handle>(stream)), "a copy to the device");
  }
  Event record_on(uintptr_t stream) override {
    return record_one(spare_events_, kUntimed, reinterpret_cast<Handle>(stream));
  }

  Event record(WorkStream work_stream) override {
    return record_one(spare_events_, kUntimed, work_streams_[work_stream]);
  }
  Event record_copies() override { return record_one(spare_events_, kUntimed, copies_); }
  Event tick(WorkStream work_stream) override {
    return record_one(spare_ticks_, kEventBlockingSync, work_streams_[work_stream]);
  }
  double elapsed_ns(Event from, Event to) override {
    float ms = 0;
    d_.check(d_.event_elapsed(&ms, from, to), "the time between events");
    return 1e6 * static_cast<double>(ms);
  }
  void forget_tick(Event event) noexcept override {
    std::lock_guard<std::mutex> hold(mutex_);
    spare_ticks_.push_back(event);
  }
  bool passed(Event event) override {
    const Result result = d_.event_query(event);
    if (result != kNotReady) d_.check(result, "work on the device");
    return result == kSuccess;
  }
  void await(Event event) override { d_.check(d_.event_synchronize(event), "work on the device"); }
  void forget(Event event) noexcept override {
    std::lock_guard<std::mutex> hold(mutex_);
    spare_events_.push_back(event);
  }
  void follow(WorkStream work_stream, uintptr_t stream) override { wait_for(work_streams_[work_stream], stream); }
  void drain(WorkStream work_stream) noexcept override {
    d_.stream_synchronize(copies_);
    d_.stream_synchronize(work_streams_[work_stream]);
  }

  uintptr_t stream_of(WorkStream work_stream) override {
    return reinterpret_cast<uintptr_t>(work_streams_[work_stream]);
  }
  void fork(WorkStream work_stream, uintptr_t stream) override {
    wait_for(reinterpret_cast<Handle>(stream), stream_of(work_stream));
  }
  uintptr_t make_stream(Priority priority) override {
    Handle stream = nullptr;
    make_work_stream(&stream, priority == Priority::Greatest ? greatest_priority_ : least_priority_);
    return reinterpret_cast<uintptr_t>(stream);
  }
  void finish(uintptr_t stream) override {
    d_.check(d_.stream_synchronize(reinterpret_cast<Handle>(stream)), "work on the device");
  }
  void drop_stream(uintptr_t stream) noexcept override { d_.stream_destroy(reinterpret_cast<Handle>(stream)); }

  uintptr_t order_stream() override { return reinterpret_cast<uintptr_t>(order_); }
  void order_after(uintptr_t stream) override { wait_for(order_, stream); }
  std::shared_ptr<Module> load(const void* image, size_t bytes) override;
  uint64_t free_bytes() override {
    size_t free = 0, total = 0;
    d_.check(d_.memory_info(&free, &total), "the device's memory");
    return free;
  }

 private:
  friend class CudaModule;
  void wait_for(Handle waits, uintptr_t stream) {
    std::lock_guard<std::mutex> hold(mutex_);
    d_.check(d_.event_record(followed_, reinterpret_cast<Handle>(stream)), "another library's stream");
    d_.check(d_.stream_wait(waits, followed_, 0), "waiting for another library's stream");
  }

  // Create a stream for kernels, which run on the multiprocessors that are left to this device.
  void make_work_stream(Handle* stream, int priority) {
    d_.check(green_ ? d_.green_stream(stream, green_, kStreamNonBlocking, priority)
                    : d_.stream_create(stream, kStreamNonBlocking, priority),
             "a stream cannot be created");
  }

  // Reserve a part of the multiprocessors, in a context that shares memory and modules with the primary one.
  void reserve(unsigned multiprocessors) {
    if (!d_.has_green)
      throw DeviceFailure("expected a CUDA driver with green contexts (12.4 or later), got an older one");
    Multiprocessors all, some, rest;
    unsigned groups = 1;
    Handle description = nullptr;
    d_.check(d_.green_resource(device_, &all, kMultiprocessors), "the device's multiprocessors");
    if (multiprocessors >= all.count) return;
    d_.check(d_.green_split(&some, &groups, &all, &rest, 0, multiprocessors), "a part of the multiprocessors");
    d_.check(d_.green_describe(&description, &some, 1), "a part of the multiprocessors");
    d_.check(d_.green_create(&green_, description, device_, kGreenDefault), "a part of the multiprocessors");
  }

  void open(unsigned multiprocessors) {
    const Visit visit(this);
    d_.check(d_.priority_range(&least_priority_, &greatest_priority_), "stream priorities");
    const int least = least_priority_;
    if (multiprocessors) reserve(multiprocessors);
    for (Handle& work : work_streams_) make_work_stream(&work, least);
    d_.check(d_.stream_create(&copies_, kStreamNonBlocking, least), "a stream cannot be created");
    d_.check(d_.stream_create(&order_, kStreamNonBlocking, least), "a stream cannot be created");
    d_.check(d_.event_create(&followed_, kEventDisableTiming), "an event cannot be created");
  }

  // Release what the constructor created. At the end of a process the driver may be gone already; errors are ignored,
  // because there is no caller to report them to.
  void close() noexcept {
    void* const before = current();
    d_.context_set(context_);
    for (const Handle event : spare_events_) d_.event_destroy(event);
    for (const Handle event : spare_ticks_) d_.event_destroy(event);
    if (followed_) d_.event_destroy(followed_);
    for (const Handle stream : work_streams_)
      if (stream) d_.stream_destroy(stream);
    for (const Handle stream : {copies_, order_})
      if (stream) d_.stream_destroy(stream);
    if (green_) d_.green_destroy(green_);
    leave(before);
    d_.context_release(device_);
  }

  Event record_one(std::vector<Handle>& spare, unsigned flags, Handle stream) {
    Handle event = nullptr;
    {
      std::lock_guard<std::mutex> hold(mutex_);
      if (!spare.empty()) {
        event = spare.back();
        spare.pop_back();
      }
    }
    if (!event) d_.check(d_.event_create(&event, flags), "an event cannot be created");
    const Result result = d_.event_record(event, stream);
    if (result != kSuccess) {
      std::lock_guard<std::mutex> hold(mutex_);
      spare.push_back(event);
    }
    d_.check(result, "an event");
    return event;
  }

  const Driver& d_;
  const int number_;
  int device_ = 0, least_priority_ = 0, greatest_priority_ = 0;
  Handle context_ = nullptr, work_streams_[kWorkStreams] = {}, copies_ = nullptr, followed_ = nullptr;
  Handle order_ = nullptr, green_ = nullptr;
  std::mutex mutex_;
  std::vector<Handle> spare_events_, spare_ticks_;
  std::atomic<WorkStream> turn_{0};
};

class CudaModule : public Module {
 public:
  CudaModule(std::shared_ptr<CudaDevice> device, const void* image) : device_(std::move(device)) {
    const Visit visit(device_.get());
    device_->d_.check(device_->d_.module_load(&handle_, image), "a compiled kernel cannot be loaded");
  }
  ~CudaModule() override {
    void* const before = device_->current();
    device_->d_.context_set(device_->context_);
    device_->d_.module_unload(handle_);
    device_->leave(before);
  }
  std::shared_ptr<const Function> function(const std::string& name, uint32_t dynamic_shared_bytes) override {
    Handle found = nullptr;
    const Visit visit(device_.get());
    device_->d_.check(device_->d_.module_function(&found, handle_, name.c_str()), name.c_str());
    if (dynamic_shared_bytes > kPlainSharedBytes)
      device_->d_.check(
          device_->d_.function_attribute(found, kMaxDynamicShared, static_cast<int>(dynamic_shared_bytes)),
          name.c_str());
    return keeping_this(name, found);
  }

 private:
  std::shared_ptr<CudaDevice> device_;
  Handle handle_ = nullptr;
};

std::shared_ptr<Module> CudaDevice::load(const void* image, size_t) {
  return std::make_shared<CudaModule>(shared_from_this(), image);
}

}  // namespace

std::shared_ptr<Device> open_cuda(int number, unsigned multiprocessors) {
  return std::make_shared<CudaDevice>(number, multiprocessors);
}

int count_cuda() {
  int count = 0;
  try {
    if (driver().device_count(&count) != kSuccess) return 0;
  } catch (const std::exception&) { return 0; }
  return count;
}

}  // namespace stoker::gpu
