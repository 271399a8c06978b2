// SPDX-License-Identifier: Apache-2.0
// Hardware JPEG engines of some GPUs, through NVIDIA's nvJPEG, which is opened at run time. They decode whole pictures
// of common kinds. Where chroma is subsampled their pixels differ from those of jpeg::decode, and they do not report
// damaged data.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gpu/device.hpp"
#include "gpu_kernels/nvjpeg_memory.hpp"

namespace stoker::nvjpeg {

struct Picture {
  const uint8_t* file;  // host memory, which must stay valid until the work on the picture is done
  size_t bytes;
  gpu::Address to;  // rows of 3-byte pixels
  size_t pitch;     // in bytes
};

struct Api;  // the library's functions

class Engines {
 public:
  // `library` is the path or name of nvJPEG. `smooth` interpolates subsampled chroma, which is several times slower.
  // `account` counts the device memory that the library takes. Throw gpu::DeviceFailure that names what is missing,
  // with nvJPEG's status.
  Engines(std::shared_ptr<gpu::Device> device, std::shared_ptr<gpu::MemoryQuota> quota, const std::string& library,
          bool smooth);
  ~Engines();
  Engines(const Engines&) = delete;
  Engines& operator=(const Engines&) = delete;

  unsigned count() const { return count_; }
  const std::string& version() const { return version_; }
  uint64_t device_bytes() const { return memory_.device_bytes(); }  // taken by the library
  uint64_t driver_bytes() const { return memory_.driver_bytes(); }  // taken by the driver for the library

  // Return whether the engines decode a file with such a header. Thread-safe.
  bool support(const uint8_t* file, size_t bytes) const;

  struct Issued {
    uintptr_t stream;  // readers of the pictures must wait for it
    int refusal = 0;   // nvJPEG's status if it refused the data of a picture; then none of them is decoded
  };
  // Decode pictures to RGB or BGR. Thread-safe; most of the work is done when it returns. Throw gpu::DeviceFailure if
  // the data are not to blame, and gpu::LimitReached.
  Issued decode(const std::vector<Picture>& pictures, bool bgr);

 private:
  struct State;
  std::unique_ptr<State> take_state();
  void give_state(std::unique_ptr<State> state);
  void check(int result, const char* what);

  const std::shared_ptr<gpu::Device> device_;
  const std::shared_ptr<const Api> api_;
  Memory memory_;
  void* handle_ = nullptr;
  unsigned count_ = 0;
  std::string version_;
  mutable std::mutex mutex_;
  mutable std::vector<void*> headers_;  // idle header parsers
  std::vector<std::unique_ptr<State>> free_;
};

}  // namespace stoker::nvjpeg
