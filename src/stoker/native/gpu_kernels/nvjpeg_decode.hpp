// SPDX-License-Identifier: Apache-2.0
// Decoding by a GPU's JPEG engines as a kernel of the run loop. A part of the rows, selected by their keys, goes to the
// engines; all other rows, and files that the engines do not decode, go to the exact decoder. A row's pixels depend
// only on its key and its file.
#pragma once
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "gpu_kernels/gpu_with_cpu_fallback.hpp"
#include "gpu_kernels/nvjpeg.hpp"
#include "jpeg/jpeg.hpp"

namespace stoker::nvjpeg {

// Kernels of device/nvjpeg_place*.cuh, in the order of `Functions`. Their names end with the suffix of the element type
// (gpu_kernels/jpeg.hpp).
constexpr std::array<const char*, 2> kFunctionNames = {"stoker_nvjpeg_place", "stoker_nvjpeg_compare"};
using Functions = std::array<std::shared_ptr<const gpu::Function>, kFunctionNames.size()>;

// Measured differences between the engines' pixels and the exact ones.
struct Error {
  int64_t rows = 0, values = 0;
  uint64_t sum = 0;  // of absolute differences
  uint32_t most = 0;
};

class Decode : public gpu::Kernel {
 public:
  // `part` is the engines' part of the rows, 0 to 1. One in 64 of these rows is also decoded exactly and compared.
  Decode(std::shared_ptr<gpu::GpuWithCpuFallback> exact, std::shared_ptr<Engines> engines, Functions functions,
         double part, bool adjust_orientation, jpeg::Format format);

  Ports ports() const override { return exact_->ports(); }
  void check(const StepFacts& step) const override { exact_->check(step); }
  bool fits(const Call& call) const override { return exact_->fits(call); }
  size_t slot_bytes() const override;
  Outcome run(const Call& call) const override;
  void launch(gpu::Batch& batch) const override;
  gpu::Verdict judge(const uint8_t* report, int64_t row, const uint8_t* slot, std::string* error) const override;
  void abandon(const uint8_t* slot) const noexcept override;

  int64_t rows() const { return rows_; }  // decoded by the engines
  // Reasons why selected rows were not decoded by the engines, with the number of rows for each.
  std::map<std::string, int64_t> reasons() const;
  Error error() const;

 private:
  class ExactRows;
  Outcome run_exact(const Call& call) const;
  bool describe(const Call& call, const jpeg::Info& info) const;
  void compare_too(const Call& call, const jpeg::Info& info) const;
  void launch_engines(gpu::Batch& batch, size_t report_offset) const;
  void count(const std::string& reason) const;

  const std::shared_ptr<gpu::GpuWithCpuFallback> exact_;
  const std::shared_ptr<Engines> engines_;
  const Functions functions_;
  const double part_;
  const bool adjust_;
  const jpeg::Format format_;
  mutable std::atomic<int64_t> rows_{0};
  mutable std::mutex mutex_;
  mutable std::map<std::string, int64_t> reasons_;
  mutable Error error_;
};

}  // namespace stoker::nvjpeg
