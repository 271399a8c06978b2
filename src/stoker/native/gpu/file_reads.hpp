// SPDX-License-Identifier: Apache-2.0
// GPUDirect Storage: cuFile's library reads files into device memory, from a local NVMe disk or a network file system
// without a copy in host memory. The library is opened at run time. The other way is the staging of gpu/inputs.hpp; the
// first reads use both in turn, and their times decide.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "gpu/device.hpp"

namespace stoker::gpu {

class FileReads {
 public:
  // Open cuFile's library. `always`: read directly without measuring. Throw DeviceFailure.
  FileReads(const std::shared_ptr<Device>& device, const std::string& library, bool always);
  FileReads(const FileReads&) = delete;
  FileReads& operator=(const FileReads&) = delete;

  // Shorter reads are always staged: a direct read has a cost of its own.
  static constexpr size_t kLeastBytes = size_t{256} << 10;
  // Number of reads of each way that are measured.
  static constexpr uint64_t kTrials = 16;

  // Return whether the next read of `bytes` bytes should be a direct one.
  bool wants(size_t bytes) noexcept;
  // Read `bytes` bytes of an open file from `offset` on to a device address that no device work uses. Return false if
  // they cannot be read: after an error of the library, all later reads are staged; a file that is too short has no
  // effect on others.
  bool read(int descriptor, uint64_t offset, Address to, size_t bytes) noexcept;
  // Record the time of a staged read.
  void record_staged(size_t bytes, uint64_t ns) noexcept;

  struct Way {
    uint64_t reads = 0, bytes = 0, ns = 0;  // `ns`: on one thread
    double ns_per_byte() const { return bytes ? static_cast<double>(ns) / static_cast<double>(bytes) : 0; }
  };
  enum class State : uint8_t { Measuring, Direct, Staged, Failed };
  struct Report {
    State state;
    Way direct, staged;
    std::string reason;  // of Failed
  };
  Report report() const;

 private:
  struct Api;
  void decide();  // requires the lock
  void fail(std::string reason) noexcept;

  const Api& api_;
  mutable std::mutex mutex_;
  State state_;
  uint64_t turn_ = 0;
  Way direct_, staged_;
  std::string reason_;
};

}  // namespace stoker::gpu
