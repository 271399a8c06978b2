// SPDX-License-Identifier: Apache-2.0
// nvJPEG's functions as far as they are used, over a decoder that a test gives: for machines without JPEG engines.
#include <cstddef>

namespace {

using Decoder = int (*)(const unsigned char* data, size_t bytes, unsigned char* to, size_t pitch, int bgr);
Decoder decoder = nullptr;
int create_status = 0, decode_status = 0, engines = 7, alive = 0, largest = 0;

struct State {
  int pictures = 0, output = 0;
};

struct Image {
  unsigned char* channel[4];
  size_t pitch[4];
};

}  // namespace

extern "C" {

void fake_set(Decoder given, int create, int decode, int count) {
  decoder = given;
  create_status = create;
  decode_status = decode;
  engines = count;
}
int fake_alive() { return alive; }

int nvjpegGetProperty(int part, int* value) { return *value = 90 + part, 0; }
int nvjpegCreateEx(int backend, void*, void*, unsigned flags, void** handle) {
  if (backend != 3 || (flags & ~32u)) return 2;
  if (create_status) return create_status;
  ++alive;
  *handle = &decoder;
  return 0;
}
int nvjpegDestroy(void*) { return --alive, 0; }
int nvjpegGetHardwareDecoderInfo(void*, unsigned* count, unsigned* cores) {
  *count = static_cast<unsigned>(engines);
  *cores = 1;
  return 0;
}
int nvjpegJpegStateCreate(void*, void** state) { return ++alive, *state = new State, 0; }
int nvjpegJpegStateDestroy(void* state) { return --alive, delete static_cast<State*>(state), 0; }
int nvjpegJpegStreamCreate(void*, void** stream) { return ++alive, *stream = new int(0), 0; }
int nvjpegJpegStreamDestroy(void* stream) { return --alive, delete static_cast<int*>(stream), 0; }
int nvjpegJpegStreamParseHeader(void*, const unsigned char* data, size_t bytes, void* stream) {
  *static_cast<int*>(stream) = bytes > 4 && data[3] == 0xFE;  // files that begin with a comment are not to its liking
  return bytes > 2 && data[0] == 0xFF ? 0 : 3;
}
int nvjpegDecodeBatchedSupported(void*, void* stream, int* answer) { return *answer = *static_cast<int*>(stream), 0; }
int nvjpegDecodeBatchedInitialize(void*, void* state, int pictures, int threads, int output) {
  if (pictures < 1 || threads < 1 || (output != 5 && output != 6)) return 2;
  *static_cast<State*>(state) = {pictures, output};
  return 0;
}
int nvjpegDecodeBatched(void*, void* state, const unsigned char* const* data, const size_t* bytes, Image* to, void*) {
  const State& s = *static_cast<State*>(state);
  if (decode_status) return decode_status;
  for (int i = 0; i < s.pictures; ++i)
    if (const int status = decoder(data[i], bytes[i], to[i].channel[0], to[i].pitch[0], s.output == 6)) return status;
  return 0;
}

}  // extern "C"
