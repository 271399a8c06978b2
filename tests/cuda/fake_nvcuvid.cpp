// SPDX-License-Identifier: Apache-2.0
// The functions of the video decoder's library that Stoker calls, each of which a test supplies.
namespace {
using Function = int (*)(void*, void*, void*, void*, void*);
Function functions[11];
}  // namespace

extern "C" {

void fake_set(int number, Function function) { functions[number] = function; }

int cuvidGetDecoderCaps(void* a) { return functions[0](a, nullptr, nullptr, nullptr, nullptr); }
int cuvidCreateVideoParser(void* a, void* b) { return functions[1](a, b, nullptr, nullptr, nullptr); }
int cuvidParseVideoData(void* a, void* b) { return functions[2](a, b, nullptr, nullptr, nullptr); }
int cuvidDestroyVideoParser(void* a) { return functions[3](a, nullptr, nullptr, nullptr, nullptr); }
int cuvidCreateDecoder(void* a, void* b) { return functions[4](a, b, nullptr, nullptr, nullptr); }
int cuvidReconfigureDecoder(void* a, void* b) { return functions[5](a, b, nullptr, nullptr, nullptr); }
int cuvidDestroyDecoder(void* a) { return functions[6](a, nullptr, nullptr, nullptr, nullptr); }
int cuvidDecodePicture(void* a, void* b) { return functions[7](a, b, nullptr, nullptr, nullptr); }
int cuvidGetDecodeStatus(void* a, long b, void* c) {
  return functions[8](a, reinterpret_cast<void*>(b & 0xFFFFFFFF), c, nullptr, nullptr);
}
int cuvidMapVideoFrame64(void* a, long b, void* c, void* d, void* e) {
  return functions[9](a, reinterpret_cast<void*>(b & 0xFFFFFFFF), c, d, e);
}
int cuvidUnmapVideoFrame64(void* a, void* b) { return functions[10](a, b, nullptr, nullptr, nullptr); }

}  // extern "C"
