// SPDX-License-Identifier: Apache-2.0
// The affine sampling in a stage on a GPU.
#pragma once
#include "cuda/stage_slot.hpp"
#include "gpu.hpp"
#include "stage_gpu.hpp"
#include "stage_views.hpp"

namespace stoker::stage {

// Keeps references to a stage's own.
class GpuAffine {
 public:
  GpuAffine(const StageSpec& spec, const StageFunctions& functions) : spec_(spec), functions_(functions) {}

  // Writes a row's AffineSlot behind its Slot. False: *c.error says why.
  bool describe(const Call& c, const Views& v) const;
  // Adds what comes before the stage's own launches; where the rows' AffineRooms are.
  gpu::Address prepare(gpu::Batch& batch, size_t slot_bytes) const;

 private:
  const StageSpec& spec_;
  const StageFunctions& functions_;
};

}  // namespace stoker::stage
