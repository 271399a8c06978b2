// SPDX-License-Identifier: Apache-2.0
#include "gpu_kernels/nvjpeg.hpp"

#include <dlfcn.h>

#include <array>
#include <utility>

namespace stoker::nvjpeg {

using gpu::DeviceFailure;

namespace {

// The part of nvJPEG's interface that is used here, as in its documentation (CUDA 12 and 13).
using Result = int;
using Handle = void*;
constexpr int kBadJpeg = 3, kNotSupported = 4, kNoMemory = 5, kIncomplete = 10;
constexpr int kBackendHardware = 3, kOutputRgb = 5, kOutputBgr = 6;  // interleaved bytes
constexpr unsigned kFlagsDefault = 0, kFlagInterpolate = 1u << 5;

struct Destination {
  unsigned char* channel[4] = {};
  size_t pitch[4] = {};
};

// Memory callbacks; both kinds have the same signature. 0 means success.
struct Allocator {
  int (*take)(void* memory, void** to, size_t bytes, Handle stream);
  int (*give)(void* memory, void* from, size_t bytes, Handle stream);
  void* memory;
};

uintptr_t number_of(Handle stream) { return reinterpret_cast<uintptr_t>(stream); }

int take_device(void* memory, void** to, size_t bytes, Handle stream) {
  *to = reinterpret_cast<void*>(static_cast<Memory*>(memory)->take(bytes, number_of(stream)));
  return *to ? 0 : 1;
}
int give_device(void* memory, void* from, size_t, Handle stream) {
  if (!from) return 0;
  return static_cast<Memory*>(memory)->give(reinterpret_cast<gpu::Address>(from), number_of(stream)) ? 0 : 1;
}
int take_pinned(void* memory, void** to, size_t bytes, Handle) {
  *to = static_cast<Memory*>(memory)->pin(bytes);
  return *to ? 0 : 1;
}
int give_pinned(void* memory, void* from, size_t, Handle stream) {
  if (!from) return 0;
  return static_cast<Memory*>(memory)->unpin(static_cast<uint8_t*>(from), number_of(stream)) ? 0 : 1;
}

const char* text_of(Result result) {
  constexpr std::array<const char*, 11> kTexts = {"success",
                                                  "not initialised",
                                                  "an invalid parameter",
                                                  "bad JPEG data",
                                                  "a JPEG form that is not supported",
                                                  "no memory",
                                                  "the execution failed",
                                                  "this GPU does not have them",
                                                  "an internal error",
                                                  "not in this build or on this GPU",
                                                  "incomplete JPEG data"};
  return result >= 0 && result < static_cast<int>(kTexts.size()) ? kTexts[static_cast<size_t>(result)] : "unknown";
}

void check_status(Result result, const char* what) {
  if (result)
    throw DeviceFailure(std::string(what) + ": " + text_of(result) + " (nvJPEG status " + std::to_string(result) + ")");
}

}  // namespace

struct Api {
  void* library = nullptr;
  Result (*property)(int, int*);
  Result (*create)(int, Allocator*, Allocator*, unsigned, Handle*);
  Result (*destroy)(Handle);
  Result (*hardware)(Handle, unsigned*, unsigned*);
  Result (*state_create)(Handle, Handle*);
  Result (*state_destroy)(Handle);
  Result (*header_create)(Handle, Handle*);
  Result (*header_destroy)(Handle);
  Result (*header_parse)(Handle, const unsigned char*, size_t, Handle);
  Result (*supported)(Handle, Handle, int*);
  Result (*batch_begin)(Handle, Handle, int, int, int);
  Result (*batch_decode)(Handle, Handle, const unsigned char* const*, const size_t*, Destination*, Handle);

  explicit Api(const std::string& path) {
    library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) throw DeviceFailure(std::string("nvJPEG cannot be opened: ") + ::dlerror());
    try {
      find(property, "nvjpegGetProperty");
      find(create, "nvjpegCreateExV2");
      find(destroy, "nvjpegDestroy");
      find(hardware, "nvjpegGetHardwareDecoderInfo");
      find(state_create, "nvjpegJpegStateCreate");
      find(state_destroy, "nvjpegJpegStateDestroy");
      find(header_create, "nvjpegJpegStreamCreate");
      find(header_destroy, "nvjpegJpegStreamDestroy");
      find(header_parse, "nvjpegJpegStreamParseHeader");
      find(supported, "nvjpegDecodeBatchedSupported");
      find(batch_begin, "nvjpegDecodeBatchedInitialize");
      find(batch_decode, "nvjpegDecodeBatched");
    } catch (...) {
      ::dlclose(library);
      throw;
    }
  }
  ~Api() { ::dlclose(library); }
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;

  template <typename F>
  void find(F& function, const char* name) {
    function = reinterpret_cast<F>(::dlsym(library, name));
    if (!function) throw DeviceFailure(std::string("nvJPEG is too old: it has no ") + name);
  }
};

// State of one library call at a time. It has its own stream, so that calls of several batches overlap.
struct Engines::State {
  Handle handle = nullptr;
  uintptr_t stream = 0;
  size_t pictures = 0;  // capacity that it is set up for
  bool bgr = false;
  bool worked = false;  // it has run once, so the driver has allocated what it needs
};

Engines::Engines(std::shared_ptr<gpu::Device> device, std::shared_ptr<gpu::MemoryQuota> quota,
                 const std::string& library, bool smooth)
    : device_(std::move(device)), api_(std::make_shared<Api>(library)), memory_(device_, std::move(quota)) {
  const gpu::Visit visit(device_.get());
  for (int part = 0; part < 3; ++part) {
    int number = 0;
    check_status(api_->property(part, &number), "nvJPEG's version");
    if (part) version_ += '.';
    version_ += std::to_string(number);
  }
  Allocator on_device{take_device, give_device, &memory_}, pinned{take_pinned, give_pinned, &memory_};
  Result created = 0;
  try {
    created = memory_.watched([&] {
      return api_->create(kBackendHardware, &on_device, &pinned, smooth ? kFlagInterpolate : kFlagsDefault, &handle_);
    });
  } catch (const gpu::LimitReached& reached) {
    if (handle_) api_->destroy(handle_);
    throw DeviceFailure(reached.what());
  } catch (...) {
    if (handle_) api_->destroy(handle_);
    throw;
  }
  if (const auto refused = memory_.refusal(); created && refused) throw DeviceFailure(refused->what());
  check_status(created, "the GPU's JPEG engines cannot be used");
  unsigned cores = 0;
  const Result result = api_->hardware(handle_, &count_, &cores);
  if (result || count_ == 0) {
    api_->destroy(handle_);
    check_status(result, "the GPU's JPEG engines cannot be counted");
    throw DeviceFailure("the GPU has no JPEG engines");
  }
}

Engines::~Engines() {
  // Errors are ignored, because there is no caller to report them to.
  try {
    const gpu::Visit visit(device_.get());
    for (const auto& state : free_) {
      device_->finish(state->stream);
      api_->state_destroy(state->handle);
      device_->drop_stream(state->stream);
    }
    for (const Handle header : headers_) api_->header_destroy(header);
    api_->destroy(handle_);
  } catch (const DeviceFailure&) {
    return;  // leak memory rather than free what a broken device may still use
  }
}

void Engines::check(int result, const char* what) {
  if (result == kNoMemory)
    if (const auto refused = memory_.refusal()) throw gpu::LimitReached(*refused);
  check_status(result, what);
}

bool Engines::support(const uint8_t* file, size_t bytes) const {
  Handle header = nullptr;
  {
    std::lock_guard<std::mutex> hold(mutex_);
    if (!headers_.empty()) {
      header = headers_.back();
      headers_.pop_back();
    }
  }
  if (!header) check_status(api_->header_create(handle_, &header), "nvJPEG's parser");
  int answer = 1;
  const bool known =
      api_->header_parse(handle_, file, bytes, header) == 0 && api_->supported(handle_, header, &answer) == 0;
  std::lock_guard<std::mutex> hold(mutex_);
  headers_.push_back(header);
  return known && answer == 0;  // 0 means yes
}

std::unique_ptr<Engines::State> Engines::take_state() {
  {
    std::lock_guard<std::mutex> hold(mutex_);
    if (!free_.empty()) {
      auto state = std::move(free_.back());
      free_.pop_back();
      return state;
    }
  }
  auto state = std::make_unique<State>();
  state->stream = device_->make_stream(gpu::Priority::Least);
  try {
    const auto make = [&] {
      const Result result = api_->state_create(handle_, &state->handle);
      if (result) state->handle = nullptr;
      return result;
    };
    check(memory_.watched(make), "nvJPEG's state");
  } catch (...) {
    if (state->handle) api_->state_destroy(state->handle);
    device_->drop_stream(state->stream);
    throw;
  }
  return state;
}

void Engines::give_state(std::unique_ptr<State> state) {
  std::lock_guard<std::mutex> hold(mutex_);
  free_.push_back(std::move(state));
}

Engines::Issued Engines::decode(const std::vector<Picture>& pictures, bool bgr) {
  std::vector<const unsigned char*> files;
  std::vector<size_t> lengths;
  std::vector<Destination> destinations(pictures.size());
  for (size_t i = 0; i < pictures.size(); ++i) {
    files.push_back(pictures[i].file);
    lengths.push_back(pictures[i].bytes);
    destinations[i].channel[0] = reinterpret_cast<unsigned char*>(pictures[i].to);
    destinations[i].pitch[0] = pictures[i].pitch;
  }
  device_->enter();
  memory_.require_within_limit();
  auto state = take_state();
  device_->finish(state->stream);  // the previous batch's, whose staging memory belongs to the state
  const auto work = [&]() -> Result {
    if (state->pictures != pictures.size() || state->bgr != bgr) {
      state->pictures = 0;
      const int count = static_cast<int>(pictures.size());
      if (const Result begun = api_->batch_begin(handle_, state->handle, count, 1, bgr ? kOutputBgr : kOutputRgb))
        return begun;
    }
    state->pictures = pictures.size();
    state->bgr = bgr;
    return api_->batch_decode(handle_, state->handle, files.data(), lengths.data(), destinations.data(),
                              reinterpret_cast<Handle>(state->stream));
  };
  Result result = 0;
  try {
    result = std::exchange(state->worked, true) ? work() : memory_.watched(work);
  } catch (const gpu::LimitReached&) {
    device_->finish(state->stream);
    give_state(std::move(state));
    throw;
  }
  Issued issued{state->stream, 0};
  if (result) {
    state->pictures = 0;  // forces a new set-up
    device_->finish(state->stream);
  }
  give_state(std::move(state));
  if (result == kBadJpeg || result == kNotSupported || result == kIncomplete) issued.refusal = result;
  else check(result, "the GPU's JPEG engines");
  return issued;
}

}  // namespace stoker::nvjpeg
