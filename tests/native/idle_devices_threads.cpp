// SPDX-License-Identifier: Apache-2.0
// Threads that open devices, load kernels, take memory and release all of it, while idle devices are closed. The CUDA
// driver is tests/cuda/fake_driver.cpp. Prints faults, and nothing without one.
#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gpu/idle_devices.hpp"

using namespace stoker::gpu;

namespace {

constexpr int kThreads = 4, kTurns = 150;
constexpr IdleDevices::Seconds kSeconds{0.002};

std::atomic<int> wrong{0};

void expect(bool good, const char* what) {
  if (!good && wrong++ < 10) std::printf("%s\n", what);
}

struct Random {  // of little quality, and fast to compile
  uint64_t state;
  uint64_t operator()() { return (state = state * 6364136223846793005u + 1442695040888963407u) >> 33; }
};

std::shared_ptr<Module> module_of(Device& device, const std::string& name) {
  const std::shared_ptr<Module> found = device.find(name);
  return found ? found : device.load("kernels", 8, name);
}

void take_memory(Device& device, Random random) {
  const Visit visit(&device);
  for (int i = 0; i < 3; ++i) {
    const size_t bytes = size_t{1} << (12 + random() % 12);
    uint8_t* const host = device.pin(bytes);
    const Address memory = device.allocate(bytes);
    host[0] = 1, host[bytes - 1] = 2;  // no other thread has it
    device.copy_in(memory, host, bytes);
    wait_and_forget(device, device.record_copies());
    wait_and_forget(device, device.record(device.next_work_stream()));
    device.reuse_pinned(host, bytes);
    if (random() % 8) device.reuse(memory, bytes);
    else device.free(memory);
  }
}

// Use a device as a pipeline of two threads does.
void use(Random& random) {
  const std::shared_ptr<Device> device = open_cuda(0, 0);
  const auto kernel = module_of(*device, "source " + std::to_string(random() % 100))->function("name", 0);
  expect(kernel->name == "name", "another kernel");
  std::thread other([&device, seed = random()] { take_memory(*device, {seed}); });
  take_memory(*device, {random()});
  other.join();
}

void work(uint64_t seed) {
  Random random{seed};
  for (int turn = 0; turn < kTurns; ++turn) {
    try {
      use(random);
    } catch (const std::exception&) { expect(false, "a device fails"); }
    if (random() % 50 == 0) IdleDevices::of_process().close_now();
    if (random() % 20 == 0) std::this_thread::sleep_for(2 * kSeconds);
  }
}

}  // namespace

int main() {
  IdleDevices::of_process().set_seconds(kSeconds);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back([i] { work(static_cast<uint64_t>(i) + 1); });
  for (std::thread& thread : threads) thread.join();
  std::vector<std::thread> ending;
  for (int i = 0; i < 2; ++i) ending.emplace_back([] { IdleDevices::of_process().end(); });
  for (std::thread& thread : ending) thread.join();
  open_cuda(0, 0).reset();  // closed with its release
  const auto alive = reinterpret_cast<int (*)()>(::dlsym(::dlopen("libcuda.so.1", RTLD_NOW), "fake_alive"));
  expect(alive && alive() == 0, "something is left");
  return wrong ? 1 : 0;
}
