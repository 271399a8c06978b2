// SPDX-License-Identifier: Apache-2.0
// CUDA devices.
#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>

#include "gpu/cuda_driver.hpp"
#include "gpu/idle_devices.hpp"
#include "gpu/spare_memory.hpp"

namespace stoker::gpu {

namespace {

// The driver's CUdevResource of type CU_DEV_RESOURCE_TYPE_SM, with room for what later versions append.
struct alignas(8) Multiprocessors {
  int type = 0;
  unsigned char internal[92] = {};
  unsigned count = 0;
  unsigned char later[156] = {};
};
constexpr int kMultiprocessors = 1;    // CU_DEV_RESOURCE_TYPE_SM
constexpr unsigned kGreenDefault = 1;  // CU_GREEN_CTX_DEFAULT_STREAM, the only flag

class CudaModule;

// A device's primary context, which all open devices of its number share. It lasts as long as one of them is open, or a
// kernel is loaded.
class CudaContext {
 public:
  explicit CudaContext(int number) : d_(driver()) {
    d_.check(d_.device_get(&device_, number), "the CUDA device cannot be opened");
    d_.check(d_.context_retain(&handle_, device_), "the CUDA device cannot be used");
    if (d_.context_id) d_.context_id(handle_, &id_);
  }
  ~CudaContext() { d_.context_release(device_); }
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;

  int device() const { return device_; }
  Handle handle() const { return handle_; }
  // Throw for an error. After an error other than a lack of memory, no new owner gets the context.
  void check(Result result, const char* what) {
    if (result != kSuccess && result != kOutOfMemory) failed_.store(true, std::memory_order_relaxed);
    d_.check(result, what);
  }
  bool failed() const { return failed_.load(std::memory_order_relaxed); }
  // Return false after the application has reset the device: no handle is valid then.
  bool exists() const {
    unsigned long long now = id_;  // NOLINT(google-runtime-int): the driver's type
    return !d_.context_id || (d_.context_id(handle_, &now) == kSuccess && now == id_);
  }

  std::shared_ptr<CudaModule> find(const std::string& name) {
    std::lock_guard<std::mutex> hold(mutex_);
    const auto found = modules_.find(name);
    return found == modules_.end() ? nullptr : found->second.lock();
  }
  void add(const std::string& name, const std::shared_ptr<CudaModule>& module) {
    std::lock_guard<std::mutex> hold(mutex_);
    std::erase_if(modules_, [](const auto& one) { return one.second.expired(); });
    modules_[name] = module;
  }

 private:
  const Driver& d_;
  int device_ = 0;
  Handle handle_ = nullptr;
  unsigned long long id_ = 0;  // NOLINT(google-runtime-int): the driver's type
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<CudaModule>> modules_;  // loaded ones, by name
};

class CudaModule : public Module {
 public:
  CudaModule(std::shared_ptr<CudaContext> context, const void* image);
  ~CudaModule() override;
  std::shared_ptr<const Function> function(const std::string& name, uint32_t dynamic_shared_bytes) override;

 private:
  const std::shared_ptr<CudaContext> context_;
  Handle handle_ = nullptr;
  std::mutex mutex_;
  std::map<std::string, uint32_t> dynamic_shared_bytes_;  // by function: the maximum that was requested
};

// Sets a context for the scope.
class CudaVisit {
 public:
  explicit CudaVisit(const CudaContext& context) : d_(driver()), context_(context.handle()) {
    if (d_.context_get(&before_) != kSuccess) before_ = nullptr;
    d_.context_set(context_);
  }
  ~CudaVisit() {
    if (before_ != context_) d_.context_set(before_);
  }
  CudaVisit(const CudaVisit&) = delete;
  CudaVisit& operator=(const CudaVisit&) = delete;

 private:
  const Driver& d_;
  const Handle context_;
  Handle before_ = nullptr;
};

class CudaDevice : public ReusableDevice {
 public:
  CudaDevice(int number, unsigned multiprocessors, std::shared_ptr<CudaContext> context)
      : d_(driver()), number_(number), multiprocessors_(multiprocessors), context_(std::move(context)) {
    try {
      open();
    } catch (...) {
      close();
      throw;
    }
  }
  ~CudaDevice() override { close(); }

  int number() const override { return number_; }
  std::string name() const override {
    char text[256] = {};
    check(d_.device_name(text, sizeof text, context_->device()), "the device's name");
    return text;
  }
  int architecture() const override {
    int major = 0, minor = 0;
    check(d_.device_attribute(&major, kCapabilityMajor, context_->device()), "compute capability");
    check(d_.device_attribute(&minor, kCapabilityMinor, context_->device()), "compute capability");
    return 10 * major + minor;
  }
  void enter() override { check(d_.context_set(context_->handle()), "the device's context"); }
  void* current() noexcept override {
    Handle context = nullptr;
    return d_.context_get(&context) == kSuccess ? context : nullptr;
  }
  void leave(void* before) noexcept override {
    if (before != context_->handle()) d_.context_set(before);
  }

  uint8_t* pin(size_t bytes) override {
    if (const auto spare = take(spare_pinned_, bytes)) return *spare;
    void* memory = nullptr;
    check(with_spare_memory([&] { return d_.host_allocate(&memory, bytes, kHostPortable); }), "page-locked memory");
    return static_cast<uint8_t*>(memory);
  }
  void unpin(uint8_t* memory) noexcept override { d_.host_free(memory); }
  Address allocate(size_t bytes) override {
    if (const auto spare = take(spare_memory_, bytes)) return *spare;
    Address memory = 0;
    check(with_spare_memory([&] { return d_.memory_allocate(&memory, bytes); }), "device memory");
    return memory;
  }
  void free(Address memory) noexcept override {
    // Callable from any thread: a garbage collector may release memory.
    const CudaVisit visit(*context_);
    d_.memory_free(memory);
  }
  void reuse_pinned(uint8_t* memory, size_t bytes) noexcept override {
    if (separate_allocations) return unpin(memory);
    spare_pinned_.put(memory, bytes, [this](uint8_t* surplus) { unpin(surplus); });
  }
  void reuse(Address memory, size_t bytes) noexcept override {
    if (separate_allocations) return free(memory);
    spare_memory_.put(memory, bytes, [this](Address surplus) { free(surplus); });
  }

  void copy_in(Address to, const uint8_t* from, size_t bytes) override {
    check(d_.copy_in(to, from, bytes, copies_), "a copy to the device");
  }
  WorkStream next_work_stream() override { return turn_.fetch_add(1, std::memory_order_relaxed) % kWorkStreams; }
  void await_on(WorkStream work_stream, Event event) override {
    check(d_.stream_wait(work_streams_[work_stream], event, 0), "waiting for copies");
  }
  void send(WorkStream work_stream, Address to, const uint8_t* from, size_t bytes) override {
    check(d_.copy_in(to, from, bytes, work_streams_[work_stream]), "a copy to the device");
  }
  void copy_out(WorkStream work_stream, uint8_t* to, Address from, size_t bytes) override {
    check(d_.copy_out(to, from, bytes, work_streams_[work_stream]), "a copy from the device");
  }
  void move(WorkStream work_stream, Address to, Address from, size_t bytes) override {
    check(d_.copy_within(to, from, bytes, work_streams_[work_stream]), "a copy on the device");
  }
  void launch(WorkStream work_stream, const Launch& l) override { launch_on(stream_of(work_stream), l); }
  void launch_on(uintptr_t stream, const Launch& l) override {
    void* arguments[Launch::kMaxArguments];
    for (int i = 0; i < l.arguments; ++i) arguments[i] = const_cast<uint64_t*>(&l.argument[i]);
    check(d_.launch(l.function->handle, l.grid[0], l.grid[1], l.grid[2], l.block[0], l.block[1], l.block[2],
                    l.shared_bytes, reinterpret_cast<Handle>(stream), arguments, nullptr),
          l.function->name.c_str());
  }
  void copy_in_on(uintptr_t stream, Address to, const uint8_t* from, size_t bytes) override {
    check(d_.copy_in(to, from, bytes, reinterpret_cast<Handle>(stream)), "a copy to the device");
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
    check(d_.event_elapsed(&ms, from, to), "the time between events");
    return 1e6 * static_cast<double>(ms);
  }
  void forget_tick(Event event) noexcept override {
    std::lock_guard<std::mutex> hold(mutex_);
    spare_ticks_.push_back(event);
  }
  bool passed(Event event) override {
    const Result result = d_.event_query(event);
    if (result != kNotReady) check(result, "work on the device");
    return result == kSuccess;
  }
  void await(Event event) override { check(d_.event_synchronize(event), "work on the device"); }
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
    check(d_.stream_synchronize(reinterpret_cast<Handle>(stream)), "work on the device");
  }
  void drop_stream(uintptr_t stream) noexcept override { d_.stream_destroy(reinterpret_cast<Handle>(stream)); }

  uintptr_t order_stream() override { return reinterpret_cast<uintptr_t>(order_); }
  void order_after(uintptr_t stream) override { wait_for(order_, stream); }
  std::shared_ptr<Module> find(const std::string& name) override;
  std::shared_ptr<Module> load(const void* image, size_t bytes, const std::string& name) override;
  uint64_t free_bytes() override {
    size_t free = 0, total = 0;
    check(d_.memory_info(&free, &total), "the device's memory");
    return free;
  }

  unsigned multiprocessors() const override { return multiprocessors_; }
  bool prepare_for_reuse() noexcept override {
    if (context_->failed() || !context_->exists()) return false;
    const CudaVisit visit(*context_);
    const auto is_idle = [this](Handle stream) { return d_.stream_query(stream) == kSuccess; };
    if (!is_idle(copies_) || !std::all_of(std::begin(work_streams_), std::end(work_streams_), is_idle)) return false;
    drop_modules();
    return true;
  }

 private:
  static constexpr size_t kMostModules = 64;  // of a device without an owner

  void check(Result result, const char* what) const { context_->check(result, what); }
  template <class T>
  std::optional<T> take(SpareMemory<T>& spare, size_t bytes) {
    return separate_allocations ? std::nullopt : spare.take(bytes);
  }
  void clear_spare_memory() noexcept {
    spare_memory_.clear([this](Address memory) { free(memory); });
    spare_pinned_.clear([this](uint8_t* memory) { unpin(memory); });
  }
  // Call `allocate`, and again without the spare memory of open devices if there is not enough memory.
  template <class F>
  Result with_spare_memory(F allocate) {
    const Result result = allocate();
    if (result != kOutOfMemory) return result;
    const bool had_memory = spare_memory_.clear([this](Address memory) { free(memory); });
    const bool had_pinned = spare_pinned_.clear([this](uint8_t* memory) { unpin(memory); });
    const bool had_idle = IdleDevices::of_process().close_now();
    return had_memory || had_pinned || had_idle ? allocate() : result;
  }
  void keep(const std::string& name, std::shared_ptr<CudaModule> module);
  void drop_modules();
  void wait_for(Handle waits, uintptr_t stream) {
    std::lock_guard<std::mutex> hold(mutex_);
    check(d_.event_record(followed_, reinterpret_cast<Handle>(stream)), "another library's stream");
    check(d_.stream_wait(waits, followed_, 0), "waiting for another library's stream");
  }

  // Create a stream for kernels, which run on the multiprocessors that are left to this device.
  void make_work_stream(Handle* stream, int priority) {
    check(green_ ? d_.green_stream(stream, green_, kStreamNonBlocking, priority)
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
    check(d_.green_resource(context_->device(), &all, kMultiprocessors), "the device's multiprocessors");
    if (multiprocessors >= all.count) return;
    check(d_.green_split(&some, &groups, &all, &rest, 0, multiprocessors), "a part of the multiprocessors");
    check(d_.green_describe(&description, &some, 1), "a part of the multiprocessors");
    check(d_.green_create(&green_, description, context_->device(), kGreenDefault), "a part of the multiprocessors");
  }

  void open() {
    const CudaVisit visit(*context_);
    check(d_.priority_range(&least_priority_, &greatest_priority_), "stream priorities");
    const int least = least_priority_;
    if (multiprocessors_) reserve(multiprocessors_);
    for (Handle& work : work_streams_) make_work_stream(&work, least);
    check(d_.stream_create(&copies_, kStreamNonBlocking, least), "a stream cannot be created");
    check(d_.stream_create(&order_, kStreamNonBlocking, least), "a stream cannot be created");
    check(d_.event_create(&followed_, kEventDisableTiming), "an event cannot be created");
  }

  // Release what the constructor created. At the end of a process the driver may be gone already; errors are ignored,
  // because there is no caller to report them to.
  void close() noexcept {
    modules_.clear();
    if (!context_->exists()) return;  // nothing does
    clear_spare_memory();
    const CudaVisit visit(*context_);
    for (const Handle event : spare_events_) d_.event_destroy(event);
    for (const Handle event : spare_ticks_) d_.event_destroy(event);
    if (followed_) d_.event_destroy(followed_);
    for (const Handle stream : work_streams_)
      if (stream) d_.stream_destroy(stream);
    for (const Handle stream : {copies_, order_})
      if (stream) d_.stream_destroy(stream);
    if (green_) d_.green_destroy(green_);
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
    if (!event) check(d_.event_create(&event, flags), "an event cannot be created");
    const Result result = d_.event_record(event, stream);
    if (result != kSuccess) {
      std::lock_guard<std::mutex> hold(mutex_);
      spare.push_back(event);
    }
    check(result, "an event");
    return event;
  }

  const Driver& d_;
  const int number_;
  const unsigned multiprocessors_;
  const std::shared_ptr<CudaContext> context_;
  int least_priority_ = 0, greatest_priority_ = 0;
  Handle work_streams_[kWorkStreams] = {}, copies_ = nullptr, followed_ = nullptr;
  Handle order_ = nullptr, green_ = nullptr;
  std::mutex mutex_;
  std::vector<Handle> spare_events_, spare_ticks_;
  SpareMemory<Address> spare_memory_;
  SpareMemory<uint8_t*> spare_pinned_;
  struct KeptModule {
    std::shared_ptr<CudaModule> module;
    uint64_t use = 0;  // a number that grows with each use
  };
  std::map<std::string, KeptModule> modules_;
  uint64_t uses_ = 0;
  std::atomic<WorkStream> turn_{0};
};

CudaModule::CudaModule(std::shared_ptr<CudaContext> context, const void* image) : context_(std::move(context)) {
  const CudaVisit visit(*context_);
  context_->check(driver().module_load(&handle_, image), "a compiled kernel cannot be loaded");
}

CudaModule::~CudaModule() {
  if (!context_->exists()) return;
  const CudaVisit visit(*context_);
  driver().module_unload(handle_);
}

std::shared_ptr<const Function> CudaModule::function(const std::string& name, uint32_t dynamic_shared_bytes) {
  Handle found = nullptr;
  const CudaVisit visit(*context_);
  context_->check(driver().module_function(&found, handle_, name.c_str()), name.c_str());
  std::lock_guard<std::mutex> hold(mutex_);  // a smaller maximum must not replace that of another caller
  uint32_t& most = dynamic_shared_bytes_[name];
  if (dynamic_shared_bytes > std::max(most, kPlainSharedBytes)) {
    context_->check(driver().function_attribute(found, kMaxDynamicShared, static_cast<int>(dynamic_shared_bytes)),
                    name.c_str());
    most = dynamic_shared_bytes;
  }
  return keeping_this(name, found);
}

std::shared_ptr<Module> CudaDevice::find(const std::string& name) {
  std::shared_ptr<CudaModule> found = context_->find(name);
  if (found) keep(name, found);
  return found;
}

std::shared_ptr<Module> CudaDevice::load(const void* image, size_t, const std::string& name) {
  auto module = std::make_shared<CudaModule>(context_, image);
  if (name.empty()) return module;
  context_->add(name, module);
  keep(name, module);
  return module;
}

void CudaDevice::keep(const std::string& name, std::shared_ptr<CudaModule> module) {
  std::lock_guard<std::mutex> hold(mutex_);
  modules_[name] = {std::move(module), ++uses_};
}

// Kernels of earlier owners that were not used for long.
void CudaDevice::drop_modules() {
  std::lock_guard<std::mutex> hold(mutex_);
  while (modules_.size() > kMostModules)
    modules_.erase(std::min_element(modules_.begin(), modules_.end(),
                                    [](const auto& a, const auto& b) { return a.second.use < b.second.use; }));
}

// Return the context of the open devices of a number, or retain it.
std::shared_ptr<CudaContext> context_of(int number) {
  static std::mutex mutex;
  static auto& contexts = *new std::map<int, std::weak_ptr<CudaContext>>;
  std::lock_guard<std::mutex> hold(mutex);
  std::shared_ptr<CudaContext> context = contexts[number].lock();
  if (context && !context->failed() && context->exists()) return context;
  context = std::make_shared<CudaContext>(number);
  contexts[number] = context;
  return context;
}

}  // namespace

std::shared_ptr<Device> open_cuda(int number, unsigned multiprocessors) {
  const Driver& d = driver();
  int count = 0;
  d.check(d.device_count(&count), "the CUDA devices cannot be counted");
  if (number < 0 || number >= count)
    throw DeviceFailure("expected a device below " + std::to_string(count) + " (the number of CUDA devices), got " +
                        std::to_string(number));
  std::unique_ptr<ReusableDevice> device = IdleDevices::of_process().take(number, multiprocessors);
  if (!device) device = std::make_unique<CudaDevice>(number, multiprocessors, context_of(number));
  const auto release = [](ReusableDevice* released) {
    IdleDevices::of_process().put(std::unique_ptr<ReusableDevice>(released));
  };
  return {device.release(), release};
}

int count_cuda() {
  int count = 0;
  try {
    if (driver().device_count(&count) != kSuccess) return 0;
  } catch (const std::exception&) { return 0; }
  return count;
}

}  // namespace stoker::gpu
