// SPDX-License-Identifier: Apache-2.0
#include "nvdec/library.hpp"

#include <dlfcn.h>

#include "gpu/device.hpp"

namespace stoker::nvdec {

constexpr const char* kHint =
    ". It is part of the driver; in a container it needs the capability \"video\" (NVIDIA_DRIVER_CAPABILITIES)";

template <class F>
void Library::find(F& function, const char* name) {
  function = reinterpret_cast<F>(::dlsym(opened_, name));
  if (!function) throw gpu::DeviceFailure(std::string("the video decoder's library is too old: it has no ") + name);
}

Library::Library(const std::string& path) : opened_(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (!opened_)
    throw gpu::DeviceFailure(std::string("the video decoder's library cannot be opened: ") + ::dlerror() + kHint);
  try {
    find(capabilities, "cuvidGetDecoderCaps");
    find(parser_create, "cuvidCreateVideoParser");
    find(parse, "cuvidParseVideoData");
    find(parser_destroy, "cuvidDestroyVideoParser");
    find(create, "cuvidCreateDecoder");
    find(reconfigure, "cuvidReconfigureDecoder");
    find(destroy, "cuvidDestroyDecoder");
    find(decode, "cuvidDecodePicture");
    find(status, "cuvidGetDecodeStatus");
    find(map, "cuvidMapVideoFrame64");
    find(unmap, "cuvidUnmapVideoFrame64");
  } catch (...) {
    ::dlclose(opened_);
    throw;
  }
}

Library::~Library() { ::dlclose(opened_); }

}  // namespace stoker::nvdec
