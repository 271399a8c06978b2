// SPDX-License-Identifier: Apache-2.0
// CUDA driver of one device that computes nothing. It counts objects that are not released, and issued work that no call
// has waited for, and fails on demand. The work of a stream is in flight until the host has waited for it.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

namespace {

struct Stream {
  uint64_t issued = 0, done = 0;
  std::map<Stream*, uint64_t> after;  // other streams, and how much of their work has to be done first
};
struct Event {
  Stream* stream = nullptr;
  uint64_t at = 0;
};

std::recursive_mutex mutex;
int alive = 0;       // streams, events, modules, memory and retained contexts
int contexts = 0;    // of them
int left = 1 << 30;  // calls until one fails
int code = 999;
bool for_good = false;  // a failure is the device's, and every call after it fails as well
std::string failed;
std::string noted;  // calls, while they are
bool notes = false;
std::set<Stream*> streams;
void* context = nullptr;
int context_of_device = 0;
unsigned long long resets = 1;  // the context's number

#define LOCKED const std::lock_guard<std::recursive_mutex> hold(mutex)
void note(const char* name) {
  if (notes) noted.append(name).append(" ");
}
int step(const char* name) {
  note(name);
  if (left > 0 || (left < 0 && !for_good)) return --left, 0;
  left = -1;
  if (failed.empty()) failed = name;
  return code;
}
std::atomic<bool> pauses{false};
std::atomic<int> paused{0}, stuck{0};
std::atomic<uint64_t> signals{0};

// Blocks a call until another thread signals. After a minute the call is stuck, and no later call waits.
// The end of pausing releases it, because the signalling thread may have ended by then.
void wait_for_signal() {
  if (!pauses) return;
  ++paused;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (const uint64_t before = signals; pauses && signals == before;) {
    if (std::chrono::steady_clock::now() > end) return void((pauses = false, ++stuck));
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

#define STEP         \
  wait_for_signal(); \
  LOCKED;            \
  if (const int result = step(__func__)) return result

void wait_for(Stream* stream, uint64_t upto) {
  if (upto <= stream->done) return;
  stream->done = upto;
  for (const auto& [other, work] : stream->after) wait_for(other, work);
}
int work(void* stream) { return ++static_cast<Stream*>(stream)->issued, 0; }

}  // namespace

extern "C" {

int fake_alive() { return alive; }
void fake_fail_after(int calls, int with) { left = calls, code = with, for_good = false, failed.clear(); }
void fake_break_after(int calls, int with) { fake_fail_after(calls, with), for_good = true; }
void fake_note(int on) {
  LOCKED;
  notes = on;
  if (on) noted.clear();
}
void fake_pause(int on) { pauses = on != 0; }
void fake_signal() { ++signals; }
int fake_paused() { return paused; }
int fake_stuck() { return stuck; }
const char* fake_noted() { return noted.c_str(); }    // once nothing is noted any more
const char* fake_failed() { return failed.c_str(); }  // the first call that did
// The application resets the device: every handle and all memory end.
void fake_reset() {
  LOCKED;
  ++resets;
  streams.clear();
  alive = contexts;
}
int fake_in_flight() {
  LOCKED;
  uint64_t total = 0;
  for (const Stream* s : streams) total += s->issued - s->done;
  return static_cast<int>(total);
}

int cuInit(unsigned) { return 0; }
int cuGetErrorString(int, const char** text) { return *text = "the injected failure", 0; }
int cuDeviceGetCount(int* count) {
  STEP;
  return *count = 1, 0;
}
int cuDeviceGet(int* device, int number) {
  STEP;
  return *device = number, 0;
}
int cuDeviceGetName(char* text, int, int) { return *text = 0, 0; }
int cuDeviceGetAttribute(int* value, int attribute, int) { return *value = attribute == 75 ? 9 : 0, 0; }
int cuDevicePrimaryCtxRetain(void** context, int) {
  STEP;
  ++alive, ++contexts;
  return *context = &context_of_device, 0;
}
int cuDevicePrimaryCtxRelease_v2(int) {
  LOCKED;
  note(__func__);
  return --alive, --contexts, 0;
}
int cuCtxGetId(void*, unsigned long long* id) {
  LOCKED;
  return *id = resets, 0;
}
// No thread can use a device that has failed for good. Otherwise this call never fails: there are too many callers.
int cuCtxSetCurrent(void* wanted) {
  LOCKED;
  if (for_good && left < 0) return code;
  return context = wanted, 0;
}
int cuCtxGetCurrent(void** found) { return *found = context, 0; }
int cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  STEP;
  return *least = *greatest = 0, 0;
}
int cuMemGetInfo_v2(size_t* free, size_t* total) { return *free = *total = size_t{1} << 36, 0; }

int cuMemAlloc_v2(uint64_t* memory, size_t bytes) {
  STEP;
  ++alive;
  return *memory = reinterpret_cast<uint64_t>(std::malloc(bytes)), 0;
}
int cuMemFree_v2(uint64_t memory) {  // waits for all work, as CUDA's does
  LOCKED;
  note(__func__);
  for (Stream* s : streams) s->done = s->issued;
  std::free(reinterpret_cast<void*>(memory));
  return --alive, 0;
}
int cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  STEP;
  ++alive;
  return *memory = std::malloc(bytes), 0;
}
int cuMemFreeHost(void* memory) {
  LOCKED;
  note(__func__);
  std::free(memory);
  return --alive, 0;
}

int cuMemcpyHtoDAsync_v2(uint64_t, const void*, size_t, void* stream) {
  STEP;
  return work(stream);
}
int cuMemcpyDtoHAsync_v2(void*, uint64_t, size_t, void* stream) {
  STEP;
  return work(stream);
}
int cuMemcpyDtoDAsync_v2(uint64_t, uint64_t, size_t, void* stream) {
  STEP;
  return work(stream);
}
int cuLaunchKernel(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void* stream, void**,
                   void**) {
  STEP;
  return work(stream);
}

int cuStreamCreateWithPriority(void** stream, unsigned, int) {
  STEP;
  ++alive;
  return *stream = *streams.insert(new Stream).first, 0;
}
// Green contexts, on a device of 132 multiprocessors that are given in groups of eight.
int cuDeviceGetDevResource(int, void* resource, int) {
  STEP;
  static_cast<unsigned*>(resource)[24] = 132;
  return 0;
}
int cuDevSmResourceSplitByCount(void* some, unsigned* groups, const void*, void*, unsigned, unsigned least) {
  STEP;
  static_cast<unsigned*>(some)[24] = (least + 7) / 8 * 8;
  return *groups == 1 ? 0 : 1;
}
int cuDevResourceGenerateDesc(void** description, void* resource, unsigned) {
  STEP;
  return *description = resource, 0;
}
int cuGreenCtxCreate(void** made, void* description, int, unsigned flags) {
  STEP;
  ++alive;
  return *made = description, flags == 1 ? 0 : 1;
}
int cuGreenCtxDestroy(void*) {
  LOCKED;
  note(__func__);
  return --alive, 0;
}
int cuGreenCtxStreamCreate(void** stream, void* made, unsigned flags, int priority) {
  return made && flags == 1 ? cuStreamCreateWithPriority(stream, flags, priority) : 1;
}
int cuStreamDestroy_v2(void* stream) {
  LOCKED;
  note(__func__);
  if (!streams.erase(static_cast<Stream*>(stream))) return 400;
  return --alive, 0;
}
int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  STEP;
  const Event& e = *static_cast<Event*>(event);
  if (e.stream) static_cast<Stream*>(stream)->after[e.stream] = e.at;
  return work(stream);
}
int cuStreamQuery(void* stream) {
  LOCKED;
  if (for_good && left < 0) return code;
  const Stream& s = *static_cast<Stream*>(stream);
  return s.done == s.issued ? 0 : 600;
}
int cuStreamSynchronize(void* stream) {
  STEP;
  wait_for(static_cast<Stream*>(stream), static_cast<Stream*>(stream)->issued);
  return 0;
}
int cuEventCreate(void** event, unsigned) {
  STEP;
  ++alive;
  return *event = new Event, 0;
}
int cuEventDestroy_v2(void* event) {
  LOCKED;
  note(__func__);
  if (!event) return 400;
  delete static_cast<Event*>(event);
  return --alive, 0;
}
int cuEventRecord(void* event, void* stream) {
  STEP;
  Stream* const of = static_cast<Stream*>(stream);
  *static_cast<Event*>(event) = {of, ++of->issued};
  return 0;
}
int cuEventQuery(void*) {
  LOCKED;
  return note(__func__), 0;
}
int cuEventSynchronize(void* event) {
  STEP;
  const Event& e = *static_cast<Event*>(event);
  if (e.stream) wait_for(e.stream, e.at);
  return 0;
}
int cuEventElapsedTime(float* ms, void*, void*) {
  STEP;
  return *ms = 1, 0;
}

int cuModuleLoadData(void** module, const void*) {
  STEP;
  ++alive;
  return *module = &context_of_device, 0;
}
int cuModuleUnload(void*) {
  LOCKED;
  note(__func__);
  return --alive, 0;
}
int cuModuleGetFunction(void** function, void*, const char*) {
  STEP;
  return *function = &context_of_device, 0;
}
int cuFuncSetAttribute(void*, int, int) {
  STEP;
  return 0;
}
}
