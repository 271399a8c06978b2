// SPDX-License-Identifier: Apache-2.0
// Limits on the memory of one batch (`max_batch_bytes`), on the host and on a device: outputs, values that cross
// segments, files, and what goes to the device. Memory that the consumer supplies does not count, nor does the scratch
// memory of threads. Each piece is counted for its row, so that an error can name the row that is to blame.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "base/scratch.hpp"
#include "gpu/gpu.hpp"

namespace stoker {

enum class Side : uint8_t { Host, Device };

struct BatchLimits {
  static constexpr uint64_t kNone = ~uint64_t{0};
  uint64_t host = kNone, device = kNone;
  uint64_t of(Side side) const { return side == Side::Host ? host : device; }
};

// Thrown where memory would exceed a limit. `code` is a code of RowError (run/job.hpp), `row` the row that is named.
class BatchLimitReached : public std::exception {
 public:
  BatchLimitReached(int32_t error_code, int64_t named_row, std::string text)
      : code(error_code), row(named_row), text_(std::move(text)) {}
  const char* what() const noexcept override { return text_.c_str(); }
  const int32_t code;
  const int64_t row;

 private:
  std::string text_;
};

class BatchMemory {
 public:
  void begin(int64_t rows, const BatchLimits& limits);
  // Forget what was counted, because the batch runs again.
  void restart() { begin(rows_, limits_); }
  bool is_limited(Side side) const { return limits_.of(side) != BatchLimits::kNone; }

  // Count memory that is about to be taken for a row. Throw BatchLimitReached, and count nothing, if the row alone
  // exceeds the limit, or if the batch does. Rows may call it concurrently.
  void charge(Side side, int64_t row, uint64_t bytes) {
    if (bytes > 0 && is_limited(side)) charge_limited(side, row, bytes);
  }
  // Throw BatchLimitReached if the row alone exceeds the limit with this memory, which is not the batch's.
  void require_row(Side side, int64_t row, uint64_t bytes) const;
  // Count the memory of an output for all rows; by_row: bytes per row. Throw BatchLimitReached with the row of the most
  // bytes.
  void charge_output(Side side, const std::vector<uint64_t>& by_row, uint64_t bytes);

 private:
  struct Count {
    std::atomic<uint64_t> all{0};
    std::vector<uint64_t> by_row;
  };
  Count& count(Side side) { return side == Side::Host ? host_ : device_; }
  const Count& count(Side side) const { return side == Side::Host ? host_ : device_; }
  void charge_limited(Side side, int64_t row, uint64_t bytes);
  [[noreturn]] void refuse_batch(Side side, int64_t row, uint64_t of_row, uint64_t bytes);
  [[noreturn]] void refuse_row(Side side, int64_t row, uint64_t bytes) const;

  BatchLimits limits_;
  int64_t rows_ = 0;
  Count host_, device_;
  std::atomic<bool> refused_{false};
};

// Allocator of a row's memory whose size a kernel learns while it runs. The last request counts.
class ChargedAllocator final : public BufferAllocator {
 public:
  ChargedAllocator(BufferAllocator& from, BatchMemory& memory, int64_t row, bool for_device)
      : from_(from), memory_(memory), row_(row), for_device_(for_device) {}
  uint8_t* get(size_t bytes) override {
    if (bytes > charged_) memory_.charge(Side::Host, row_, bytes - charged_);
    charged_ = std::max(charged_, bytes);
    if (for_device_) charge_device(bytes);
    return from_.get(bytes);
  }
  uint64_t read_to_device(int descriptor, uint64_t offset, size_t bytes) override {
    if (!for_device_) return 0;
    charge_device(bytes);
    return from_.read_to_device(descriptor, offset, bytes);
  }

 private:
  // Bytes that are not read to the device are staged, and are there once, too.
  void charge_device(size_t bytes) {
    if (bytes > charged_on_device_) memory_.charge(Side::Device, row_, bytes - charged_on_device_);
    charged_on_device_ = std::max(charged_on_device_, bytes);
  }

  BufferAllocator& from_;
  BatchMemory& memory_;
  const int64_t row_;
  const bool for_device_;
  size_t charged_ = 0, charged_on_device_ = 0;
};

namespace gpu {

// Memory of a batch for the kernel of one row.
class ChargedRowMemory final : public RowMemory {
 public:
  ChargedRowMemory(RowMemory& from, BatchMemory& memory, int64_t row) : from_(from), memory_(memory), row_(row) {}
  uint8_t* allocate_host(size_t bytes) override {
    memory_.charge(Side::Host, row_, bytes);
    memory_.charge(Side::Device, row_, bytes);
    return from_.allocate_host(bytes);
  }
  Address device_address(const uint8_t* host) const override { return from_.device_address(host); }
  Address allocate_device(size_t bytes) override {
    memory_.charge(Side::Device, row_, bytes);
    return from_.allocate_device(bytes);
  }

 private:
  RowMemory& from_;
  BatchMemory& memory_;
  const int64_t row_;
};

}  // namespace gpu

}  // namespace stoker
