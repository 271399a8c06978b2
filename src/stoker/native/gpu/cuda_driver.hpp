// SPDX-License-Identifier: Apache-2.0
// CUDA's driver: the functions of its library that are used here, with their names in it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "gpu/device.hpp"

namespace stoker::gpu {

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
  Result (*stream_query)(Handle);
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
  Result (*context_id)(Handle, unsigned long long*);  // null before CUDA 12
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
    visit(stream_query, "cuStreamQuery");
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
    context_id = nullptr;
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

// Return the driver, which the first call opens. Throw DeviceFailure if there is none.
const Driver& driver();

}  // namespace stoker::gpu
