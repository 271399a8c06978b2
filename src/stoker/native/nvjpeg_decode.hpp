// SPDX-License-Identifier: Apache-2.0
// A GPU's JPEG engines as the run loop sees them: a part of the rows, chosen by their keys, is theirs; all others, and
// files that they do not decode, are the exact decoder's. A row's key alone, and its file, decide which pixels it has.
#pragma once
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "gpu_either.hpp"
#include "jpeg.hpp"
#include "nvjpeg.hpp"

namespace stoker::nvjpeg {

// Kernels of cuda/nvjpeg_row.cuh, in the order of `Functions`.
constexpr std::array<const char*, 2> kFunctionNames = {"stoker_nvjpeg_place", "stoker_nvjpeg_compare"};
using Functions = std::array<std::shared_ptr<const gpu::Function>, kFunctionNames.size()>;

// What was measured of the engines' pixels against exact ones.
struct Error {
  int64_t rows = 0, values = 0;
  uint64_t sum = 0;   // of absolute differences
  uint32_t most = 0;
};

class Decode : public gpu::Kernel {
 public:
  // `part`: of the rows, 0 to 1. Of one row in 64 of the engines' the exact pixels are made too, and compared.
  Decode(std::shared_ptr<gpu::Either> exact, std::shared_ptr<Engines> engines, Functions functions,
         double part, bool adjust_orientation, jpeg::Format format);

  size_t slot_bytes() const override;
  Outcome run(const Call& call) const override;
  void launch(gpu::Batch& batch) const override;
  gpu::Verdict judge(const uint8_t* report, int64_t row, const uint8_t* slot, std::string* error) const override;

  int64_t rows() const { return rows_; }  // that the engines decoded
  // Why other rows were not theirs although it was their turn, and how many for each reason.
  std::map<std::string, int64_t> reasons() const;
  Error error() const;

 private:
  class ExactRows;
  Outcome run_exact(const Call& call) const;
  bool describe(const Call& call, const jpeg::Info& info) const;
  void compare_too(const Call& call, const jpeg::Info& info) const;
  void launch_engines(gpu::Batch& batch, size_t report_offset) const;
  void count(const std::string& reason) const;

  const std::shared_ptr<gpu::Either> exact_;
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
