// SPDX-License-Identifier: Apache-2.0
// Affine sampling of a stage on a GPU.
#pragma once
#include "gpu/gpu.hpp"
#include "gpu_kernels/stage.hpp"
#include "kernels/stage_views.hpp"
#include "shared/stage_slot.hpp"

namespace stoker::stage {

// Holds references to the stage's members.
class GpuAffine {
 public:
  GpuAffine(const StageSpec& spec, const StageFunctions& functions) : spec_(spec), functions_(functions) {}

  // Write a row's AffineSlot after its Slot. Return false with the reason in *c.error.
  bool describe(const Call& c, const Views& v) const;
  // Find out whether a row of a stage that stores what it samples is a shift, from its Slot and Ports.
  void find_shift(Slot* slot, const Port* ports) const;
  // Add the launches before the stage's own; return the address of the rows' AffineScratch.
  gpu::Address prepare(gpu::Batch& batch, size_t slot_bytes) const;

 private:
  const StageSpec& spec_;
  const StageFunctions& functions_;
};

}  // namespace stoker::stage
