// SPDX-License-Identifier: Apache-2.0
// The driver's library is opened together with the first device. The package can be built without CUDA, and one build
// serves machines with and without it.
#include "gpu/cuda_driver.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <new>
#include <type_traits>

namespace stoker::gpu {

namespace {

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
  d.context_id = reinterpret_cast<decltype(d.context_id)>(::dlsym(d.library, "cuCtxGetId"));
  d.check(d.init(0), "the CUDA driver does not start");
  return d;
}

Driver* in_use = nullptr;

}  // namespace

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

}  // namespace stoker::gpu
