// SPDX-License-Identifier: Apache-2.0
// The nvJPEG functions that Stoker calls, over a decoder that a test supplies: for machines without JPEG engines.
#include <cstddef>
#include <cstring>

namespace {

struct Allocator {
  int (*take)(void* memory, void** to, size_t bytes, void* stream);
  int (*give)(void* memory, void* from, size_t bytes, void* stream);
  void* memory;
};
constexpr size_t kState = 1 << 20, kPinned = 4096;

using Decoder = int (*)(const unsigned char* data, size_t bytes, unsigned char* to, size_t pitch, int bgr);
Decoder decoder = nullptr;
// Callback for events in which a driver takes memory: 0 opening, 1 a state, 2 a batch.
void (*watcher)(int event) = nullptr;
void notify(int event) {
  if (watcher) watcher(event);
}
int create_status = 0, decode_status = 0, engines = 7, alive = 0;

// The allocator of a handle's states. Several pipelines may have handles.
struct Library {
  Allocator on_device, pinned;
};

// A state has device memory from the start, and more for the files of a batch, which grows on demand.
struct State {
  Library from;
  int pictures = 0, output = 0;
  void *own = nullptr, *staging = nullptr, *host = nullptr;
  size_t room = 0;
};

struct Image {
  unsigned char* channel[4];
  size_t pitch[4];
};

}  // namespace

extern "C" {

void fake_set(Decoder new_decoder, int create, int decode, int count) {
  decoder = new_decoder;
  create_status = create;
  decode_status = decode;
  engines = count;
}
void fake_watch(void (*callback)(int event)) { watcher = callback; }
int fake_alive() { return alive; }

int nvjpegGetProperty(int part, int* value) { return *value = 90 + part, 0; }
int nvjpegCreateExV2(int backend, Allocator* device, Allocator* host, unsigned flags, void** handle) {
  if (backend != 3 || (flags & ~32u) || !device || !host) return 2;
  if (create_status) return create_status;
  ++alive;
  notify(0);
  *handle = new Library{*device, *host};
  return 0;
}
int nvjpegDestroy(void* handle) { return --alive, delete static_cast<Library*>(handle), 0; }
int nvjpegGetHardwareDecoderInfo(void*, unsigned* count, unsigned* cores) {
  *count = static_cast<unsigned>(engines);
  *cores = 1;
  return 0;
}
int nvjpegJpegStateDestroy(void* state) {
  State* s = static_cast<State*>(state);
  const auto& [on_device, pinned] = s->from;
  int status = 0;
  if (s->own) status |= on_device.give(on_device.memory, s->own, kState, nullptr);
  if (s->staging) status |= on_device.give(on_device.memory, s->staging, s->room, nullptr);
  if (s->host) status |= pinned.give(pinned.memory, s->host, kPinned, nullptr);
  delete s;
  return --alive, status ? 5 : 0;
}
int nvjpegJpegStateCreate(void* handle, void** state) {
  State* s = new State{*static_cast<Library*>(handle)};
  const auto& [on_device, pinned] = s->from;
  ++alive;
  notify(1);
  *state = s;
  if (!on_device.take(on_device.memory, &s->own, kState, nullptr) &&
      !pinned.take(pinned.memory, &s->host, kPinned, nullptr))
    return 0;
  nvjpegJpegStateDestroy(s);
  return 5;
}
int nvjpegJpegStreamCreate(void*, void** stream) { return ++alive, *stream = new int(0), 0; }
int nvjpegJpegStreamDestroy(void* stream) { return --alive, delete static_cast<int*>(stream), 0; }
int nvjpegJpegStreamParseHeader(void*, const unsigned char* data, size_t bytes, void* stream) {
  *static_cast<int*>(stream) = bytes > 4 && data[3] == 0xFE;  // files that begin with a comment are not to its liking
  return bytes > 2 && data[0] == 0xFF ? 0 : 3;
}
int nvjpegDecodeBatchedSupported(void*, void* stream, int* answer) { return *answer = *static_cast<int*>(stream), 0; }
int nvjpegDecodeBatchedInitialize(void*, void* state, int pictures, int threads, int output) {
  if (pictures < 1 || threads < 1 || (output != 5 && output != 6)) return 2;
  static_cast<State*>(state)->pictures = pictures;
  static_cast<State*>(state)->output = output;
  return 0;
}
int nvjpegDecodeBatched(void*, void* state, const unsigned char* const* data, const size_t* bytes, Image* to,
                        void* stream) {
  State& s = *static_cast<State*>(state);
  const Allocator& on_device = s.from.on_device;
  if (decode_status) return decode_status;
  notify(2);
  size_t all = 0, at = 0;
  for (int i = 0; i < s.pictures; ++i) all += bytes[i];
  if (all > s.room) {
    if (s.staging && on_device.give(on_device.memory, s.staging, s.room, stream)) return 5;
    s.staging = nullptr;
    s.room = 0;
    if (on_device.take(on_device.memory, &s.staging, all, stream)) return 5;
    s.room = all;
  }
  for (int i = 0; i < s.pictures; at += bytes[i++]) {
    auto* file = static_cast<unsigned char*>(s.staging) + at;
    std::memcpy(file, data[i], bytes[i]);
    if (const int status = decoder(file, bytes[i], to[i].channel[0], to[i].pitch[0], s.output == 6)) return status;
  }
  return 0;
}

}  // extern "C"
