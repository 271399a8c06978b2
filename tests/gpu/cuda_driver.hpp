// SPDX-License-Identifier: Apache-2.0
// The CUDA driver functions that the GPU tests call, loaded at run time: the build needs no header or library of
// CUDA. Any failure ends the program.
#pragma once
#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace stoker::gpu::driver {

inline void fail(const char* what, int code) {
  std::fprintf(stderr, "CUDA: %s failed with %d\n", what, code);
  std::exit(3);
}

inline void* library() {
  static void* const handle = dlopen("libcuda.so.1", RTLD_NOW);
  if (!handle) fail("opening libcuda.so.1", 0);
  return handle;
}

// A driver function by name and type of its arguments.
template <typename... T>
class Entry {
 public:
  explicit Entry(const char* name) : name_(name), call_(reinterpret_cast<int (*)(T...)>(dlsym(library(), name))) {
    if (!call_) fail(name, 0);
  }
  void operator()(T... arguments) const {
    if (const int code = call_(arguments...)) fail(name_, code);
  }

 private:
  const char* name_;
  int (*call_)(T...);
};

using Handle = void*;

struct Driver {
  Entry<unsigned> init{"cuInit"};
  Entry<int*, int> device{"cuDeviceGet"};
  Entry<Handle*, int> retain{"cuDevicePrimaryCtxRetain"};
  Entry<Handle> set_current{"cuCtxSetCurrent"};
  Entry<Handle*, const void*> load{"cuModuleLoadData"};
  Entry<Handle*, Handle, const char*> function{"cuModuleGetFunction"};
  Entry<uint64_t*, size_t> allocate{"cuMemAlloc_v2"};
  Entry<uint64_t> release{"cuMemFree_v2"};
  Entry<void**, size_t, unsigned> allocate_host{"cuMemHostAlloc"};
  Entry<uint64_t, const void*, size_t, Handle> to_device{"cuMemcpyHtoDAsync_v2"};
  Entry<void*, uint64_t, size_t> to_host{"cuMemcpyDtoH_v2"};
  Entry<uint64_t, unsigned char, size_t, Handle> fill{"cuMemsetD8Async"};
  Entry<Handle*, unsigned> stream{"cuStreamCreate"};
  Entry<Handle> synchronize{"cuStreamSynchronize"};
  Entry<Handle*, unsigned> event{"cuEventCreate"};
  Entry<Handle, Handle> record{"cuEventRecord"};
  Entry<float*, Handle, Handle> elapsed_ms{"cuEventElapsedTime"};
  Entry<Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void**, void**> launch{
      "cuLaunchKernel"};
};

}  // namespace stoker::gpu::driver
