// SPDX-License-Identifier: Apache-2.0
// The JPEG engines that some GPUs have beside their multiprocessors, through NVIDIA's nvJPEG, which is opened at run
// time. They decode whole pictures of usual kinds. Their pixels are not those of jpeg::decode where chroma is
// subsampled, and they tell nothing of damaged data.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gpu_device.hpp"
#include "nvjpeg_memory.hpp"

namespace stoker::nvjpeg {

struct Picture {
  const uint8_t* file;  // on the host; not freed before the work on the picture is done
  size_t bytes;
  gpu::Address to;      // rows of 3-byte pixels
  size_t pitch;         // bytes
};

struct Api;  // the library's functions

class Engines {
 public:
  // `library`: the path or name of nvJPEG's. `smooth`: interpolate subsampled chroma; several times slower. `account`: what
  // the library takes of the device's memory is counted there.
  // Throws gpu::DeviceFailure that says what is missing, with nvJPEG's status.
  Engines(std::shared_ptr<gpu::Device> device, std::shared_ptr<gpu::Account> account, const std::string& library, bool smooth);
  ~Engines();
  Engines(const Engines&) = delete;
  Engines& operator=(const Engines&) = delete;

  unsigned count() const { return count_; }
  const std::string& version() const { return version_; }
  uint64_t device_bytes() const { return memory_.device_bytes(); }  // that the library has taken
  uint64_t driver_bytes() const { return memory_.driver_bytes(); }  // that the driver has taken for it

  // Whether they decode a file with such a header. From any thread.
  bool support(const uint8_t* file, size_t bytes) const;

  struct Issued {
    uintptr_t stream;  // what reads the pictures follows it
    int refusal = 0;   // nvJPEG's status where it refused the data of one of them: then none is there
  };
  // Decodes pictures to RGB, or BGR. From any thread; most of the work is done when it returns. Throws
  // gpu::DeviceFailure where not the data are to blame, and gpu::LimitReached.
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
  mutable std::vector<void*> headers_;         // parsers of headers that nobody uses
  std::vector<std::unique_ptr<State>> free_;
};

}  // namespace stoker::nvjpeg
