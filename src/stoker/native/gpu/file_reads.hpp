// SPDX-License-Identifier: Apache-2.0
// Reads of large files into device memory. There are two ways. GPUDirect Storage, if it is opted in: cuFile's library
// reads from a local NVMe disk or a network file system without a copy in host memory; the library is opened at run
// time. Else, bounce buffers (gpu/bounce_reads.hpp). With both, the first reads use them in turn, and their times decide.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gpu/bounce_reads.hpp"

namespace stoker::gpu {

class FileReads {
 public:
  // How a pipeline uses cuFile.
  enum class CuFile : uint8_t {
    Off,
    Auto,  // where it is faster; bounce buffers after an error
    On,    // for all reads; its errors are errors of the rows
  };
  struct Buffers {
    size_t piece;  // bytes of a buffer
    int count;     // buffers of a read
  };
  // Open cuFile's library, unless it is off. Throw DeviceFailure, or std::invalid_argument for other buffers than
  // BounceReads takes.
  FileReads(const std::shared_ptr<Device>& device, CuFile cufile, const std::string& library, Buffers buffers);
  FileReads(const FileReads&) = delete;
  FileReads& operator=(const FileReads&) = delete;

  // Shorter reads are left to the batch's staging (gpu/inputs.hpp): each of these has a copy, or a file of cuFile, of
  // its own. Files of 0.5 MiB are a quarter slower in this way, files of 4 MiB 1.6 times as fast, on an H200
  // (docs/internals/performance_gpu.md).
  static constexpr size_t kLeastBytes = size_t{1} << 20;
  // Number of reads of each way that are measured.
  static constexpr uint64_t kTrials = 16;

  struct Outcome {
    bool is_complete = false;   // the bytes are on the device when all of `copied` have passed
    std::vector<Event> copied;  // the caller releases them
  };
  // Read `bytes` bytes of an open file from `offset` on to a device address that no device work uses. The outcome is
  // incomplete, with no copy in flight, if the file is too short or the system cannot read it. Throw DeviceFailure, also
  // after an error of cuFile that is On. `others` may take part. Thread-safe.
  Outcome read(int descriptor, uint64_t offset, Address to, size_t bytes, IdleThreads* others);

  struct Way {
    uint64_t reads = 0, bytes = 0, ns = 0;  // `ns`: on their threads
  };
  enum class State : uint8_t { Off, Measuring, Direct, Staged, Failed };
  struct Report {
    State state;
    Way direct;
    BounceReads::Times staged;
    std::string reason;  // of Failed
  };
  Report report() const;
  // Return whether cuFile has failed.
  bool has_failed() const;
  size_t pinned_bytes() const { return bounce_.pinned_bytes(); }

 private:
  struct Api;
  enum class Direct : uint8_t { Done, Short, Refused };
  bool is_next_direct();
  Direct read_directly(int descriptor, uint64_t offset, Address to, size_t bytes);
  Direct read_registered(void* handle, uint64_t offset, Address to, size_t bytes, std::string& reason);
  Direct refuse(std::string reason);
  void decide();  // requires the lock

  const Api* const api_;  // null: off
  const bool is_on_;
  BounceReads bounce_;
  mutable std::mutex mutex_;
  State state_;
  uint64_t turn_ = 0;
  Way direct_;
  std::string reason_;
};

}  // namespace stoker::gpu
