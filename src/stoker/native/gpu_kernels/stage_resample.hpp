// SPDX-License-Identifier: Apache-2.0
// Resampling of a stage on a GPU: by two kernels, or by one that computes both passes tile by tile.
#pragma once
#include "gpu/gpu.hpp"
#include "gpu_kernels/stage.hpp"
#include "kernels/stage_views.hpp"
#include "shared/stage_slot.hpp"

namespace stoker::planar {
struct Image;
}

namespace stoker::stage {

// Holds references to the stage's members.
class GpuResampling {
 public:
  GpuResampling(const StageSpec& spec, const StageFunctions& functions);

  // Write a row's ResampleSlot after its Slot. Return false with the reason in *c.error.
  bool describe(const Call& c, Views* v) const;
  // Add the launches before the stage's own; return the address of the rows' ResampleScratch.
  gpu::Address prepare(gpu::Batch& batch, size_t slot_bytes) const;

  // Return whether one kernel computes both passes, tile by tile.
  bool in_tiles(const ResampleSlot& s) const;
  // Return whether the resampled row is the stage's output, so that the kernel of both passes writes it there.
  bool direct(const Slot& slot) const;

 private:
  void take_planes(const Call& c, planar::Image& image, ResampleSlot& s) const;
  const StageSpec& spec_;
  const StageFunctions& functions_;
  const bool copies_;
};

}  // namespace stoker::stage
