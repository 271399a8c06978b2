// SPDX-License-Identifier: Apache-2.0
// Null device: device memory is host memory, addresses are pointers, and work is done when it is issued.
#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <new>

#include "gpu/device.hpp"

namespace stoker::gpu {

namespace {

constexpr std::align_val_t kAlign{256};
using Clock = std::chrono::steady_clock;

using Emulation = void (*)(const Launch*);
void do_nothing(const Launch*) {}

thread_local void* in_use = nullptr;  // the thread's current null device
constexpr uint64_t kMemory = uint64_t{1} << 40;
std::atomic<uint64_t> kept{0};

class NullModule : public Module {
 public:
  explicit NullModule(const std::string& path) {
    if (path.empty()) return;
    library_ = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library_) throw DeviceFailure(std::string("expected a library of emulated kernels: ") + ::dlerror());
  }
  ~NullModule() override {
    if (library_) ::dlclose(library_);
  }
  std::shared_ptr<const Function> function(const std::string& name, uint32_t) override {
    void* found = library_ ? ::dlsym(library_, name.c_str()) : reinterpret_cast<void*>(&do_nothing);
    if (!found) throw DeviceFailure("there is no kernel called " + name);
    return keeping_this(name, found);
  }

 private:
  void* library_ = nullptr;
};

class NullDevice : public Device {
 public:
  int number() const override { return -1; }
  std::string name() const override { return "null"; }
  int architecture() const override { return 0; }
  void enter() override { in_use = this; }
  void* current() noexcept override { return in_use; }
  void leave(void* before) noexcept override { in_use = before; }
  uint8_t* pin(size_t bytes) override { return static_cast<uint8_t*>(::operator new(bytes, kAlign)); }
  void unpin(uint8_t* memory) noexcept override { ::operator delete(memory, kAlign); }
  // The size of each piece is stored before it.
  Address allocate(size_t bytes) override {
    if (bytes > free_bytes()) throw std::bad_alloc();
    uint8_t* memory = pin(bytes + kBefore);
    std::memcpy(memory, &bytes, sizeof bytes);
    used_ += bytes;
    return reinterpret_cast<Address>(memory + kBefore);
  }
  void free(Address piece) noexcept override {
    if (!piece) return;
    uint8_t* memory = reinterpret_cast<uint8_t*>(piece) - kBefore;
    size_t bytes;
    std::memcpy(&bytes, memory, sizeof bytes);
    used_ -= bytes;
    unpin(memory);
  }
  void copy_in(Address to, const uint8_t* from, size_t bytes) override {
    std::memcpy(reinterpret_cast<void*>(to), from, bytes);
  }
  Event record_copies() override { return nullptr; }
  WorkStream next_work_stream() override { return 0; }
  void await_on(WorkStream, Event) override {}
  void send(WorkStream, Address to, const uint8_t* from, size_t bytes) override { copy_in(to, from, bytes); }
  void copy_out(WorkStream, uint8_t* to, Address from, size_t bytes) override {
    std::memcpy(to, reinterpret_cast<const void*>(from), bytes);
  }
  void move(WorkStream, Address to, Address from, size_t bytes) override {
    std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
  }
  void launch(WorkStream, const Launch& l) override { launch_on(0, l); }
  void launch_on(uintptr_t, const Launch& l) override { reinterpret_cast<Emulation>(l.function->handle)(&l); }
  void copy_in_on(uintptr_t, Address to, const uint8_t* from, size_t bytes) override { copy_in(to, from, bytes); }
  Event record_on(uintptr_t) override { return nullptr; }
  Event record(WorkStream) override { return nullptr; }
  bool passed(Event) override { return true; }
  void await(Event) override {}
  void forget(Event) noexcept override {}
  Event tick(WorkStream) override { return new Clock::time_point(Clock::now()); }
  double elapsed_ns(Event from, Event to) override {
    const std::chrono::nanoseconds spent =
        *static_cast<Clock::time_point*>(to) - *static_cast<Clock::time_point*>(from);
    return static_cast<double>(spent.count());
  }
  void forget_tick(Event event) noexcept override { delete static_cast<Clock::time_point*>(event); }
  uintptr_t stream_of(WorkStream) override { return 0; }
  void fork(WorkStream, uintptr_t) override {}
  uintptr_t make_stream(Priority) override { return 0; }
  void finish(uintptr_t) override {}
  void drop_stream(uintptr_t) noexcept override {}
  uintptr_t order_stream() override { return 0; }
  void order_after(uintptr_t) override {}
  void follow(WorkStream, uintptr_t) override {}
  void drain(WorkStream) noexcept override {}
  std::shared_ptr<Module> load(const void* image, size_t bytes, const std::string&) override {
    return std::make_shared<NullModule>(std::string(static_cast<const char*>(image), bytes));
  }
  uint64_t free_bytes() override { return kMemory - kept.load() - used_.load(); }

 private:
  static constexpr size_t kBefore = static_cast<size_t>(kAlign);
  std::atomic<uint64_t> used_{0};
};

}  // namespace

bool is_null_device_current() { return in_use != nullptr; }

void set_null_driver_bytes(uint64_t bytes) { kept = bytes; }

std::shared_ptr<Device> open_null() { return std::make_shared<NullDevice>(); }

}  // namespace stoker::gpu
