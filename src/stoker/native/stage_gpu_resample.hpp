// SPDX-License-Identifier: Apache-2.0
// The resampling in a stage on a GPU: by two kernels, or by one that makes both passes tile by tile.
#pragma once
#include "cuda/stage_slot.hpp"
#include "gpu.hpp"
#include "stage_gpu.hpp"
#include "stage_views.hpp"

namespace stoker::planar {
struct Image;
}

namespace stoker::stage {

// Keeps references to a stage's own.
class GpuResampling {
 public:
  GpuResampling(const StageSpec& spec, const StageFunctions& functions);

  // Writes a row's ResampleSlot behind its Slot. False: *c.error says why.
  bool describe(const Call& c, Views* v) const;
  // Adds what comes before the stage's own launches; where the rows' ResampleRooms are.
  gpu::Address prepare(gpu::Batch& batch, size_t slot_bytes) const;

  // Whether one kernel makes both passes, tile by tile.
  bool in_tiles(const ResampleSlot& s) const;
  // A resampled row is the stage's output as it is, and the kernel of both passes writes it there.
  bool direct(const Slot& slot) const;

 private:
  void take_planes(const Call& c, planar::Image& image, ResampleSlot& s) const;
  const StageSpec& spec_;
  const StageFunctions& functions_;
  const bool copies_;
};

}  // namespace stoker::stage
