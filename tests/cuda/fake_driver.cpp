// SPDX-License-Identifier: Apache-2.0
// A CUDA driver of one device that does nothing but count what is made and not given back, and fails when it is told to.
#include <cstddef>

namespace {

int alive = 0;      // streams, events and retained contexts
int left = 1 << 30; // calls until one fails
void* context = nullptr;
int context_of_device = 0;

int step() { return left-- == 0 ? 999 : 0; }
int make(void** handle) {
  if (const int result = step()) return result;
  *handle = reinterpret_cast<void*>(static_cast<size_t>(++alive));
  return 0;
}
int drop(void* handle) {
  if (!handle) return 400;
  --alive;
  return 0;
}

}  // namespace

extern "C" {

int fake_alive() { return alive; }
void fake_fail_after(int calls) { left = calls; }

int cuInit(unsigned) { return 0; }
int cuGetErrorString(int, const char** text) { return *text = "as it was told", 0; }
int cuDeviceGetCount(int* count) { return *count = 1, step(); }
int cuDeviceGet(int* device, int number) { return *device = number, step(); }
int cuDevicePrimaryCtxRetain(void** made, int) {
  if (const int result = step()) return result;
  ++alive;
  return *made = &context_of_device, 0;
}
int cuDevicePrimaryCtxRelease_v2(int) { return --alive, 0; }
int cuCtxSetCurrent(void* wanted) { return context = wanted, 0; }
int cuCtxGetCurrent(void** found) { return *found = context, 0; }
int cuCtxGetStreamPriorityRange(int* least, int* greatest) { return *least = *greatest = 0, step(); }
int cuStreamCreateWithPriority(void** stream, unsigned, int) { return make(stream); }
int cuStreamDestroy_v2(void* stream) { return drop(stream); }
int cuEventCreate(void** event, unsigned) { return make(event); }
int cuEventDestroy_v2(void* event) { return drop(event); }

int cuDeviceGetName() { return 999; }
int cuDeviceGetAttribute() { return 999; }
int cuMemGetInfo_v2() { return 999; }
int cuMemAlloc_v2() { return 999; }
int cuMemFree_v2() { return 999; }
int cuMemHostAlloc() { return 999; }
int cuMemFreeHost() { return 999; }
int cuMemcpyHtoDAsync_v2() { return 999; }
int cuMemcpyDtoHAsync_v2() { return 999; }
int cuMemcpyDtoDAsync_v2() { return 999; }
int cuStreamWaitEvent() { return 999; }
int cuStreamSynchronize() { return 999; }
int cuEventRecord() { return 999; }
int cuEventQuery() { return 999; }
int cuEventSynchronize() { return 999; }
int cuEventElapsedTime() { return 999; }
int cuModuleLoadData() { return 999; }
int cuModuleUnload() { return 999; }
int cuModuleGetFunction() { return 999; }
int cuFuncSetAttribute() { return 999; }
int cuLaunchKernel() { return 999; }
}
