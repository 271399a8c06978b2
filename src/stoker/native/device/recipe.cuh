// SPDX-License-Identifier: Apache-2.0
// Recipes on a GPU: one block materializes one row, step by step. A row's images are small, so a step's result is still
// in the cache for the next step, and rows of different recipes run concurrently without having anything in common.
#pragma once
#include "device/recipe_color.cuh"
#include "device/recipe_frame.cuh"
#include "device/recipe_move.cuh"
#include "device/recipe_sample.cuh"

namespace stoker::recipe::gpu {

inline void make_phase(const Step& s, int32_t phase, Shared& shared) {
  const bool first = s.kind == 1;  // torchvision's first generation
  switch (s.op) {
    case Op::Resize: return resize(s, phase);
    case Op::Affine: return affine(s);
    case Op::Pad:
    case Op::PadEdges: return pad(s);
    case Op::Map: return map(s, array_at<uint8_t>(s.extra), s.number[0] != 0 ? 256 : 0);
    case Op::Luma: return to_luma(s);
    case Op::Contrast: return contrast(s, phase, shared);
    case Op::Saturate: return saturate(s);
    case Op::Hue: return hue(s);
    case Op::Sharpen: return sharpen(s);
    case Op::Autocontrast:
    case Op::Equalize:
    case Op::TorchAutocontrast:
    case Op::TorchEqualize: return by_histogram(s, phase, shared, first);
    case Op::Project: return project(s);
    case Op::Correlate: return correlate(s);
    case Op::TorchResize: return torch_resize(s, phase);
    case Op::TorchResizeFloats: return torch_resize_floats(s, phase);
    case Op::TorchPick: return torch_pick(s);
    case Op::TorchLuma: return torch_luma(s, first);
    case Op::TorchContrast: return torch_contrast(s, phase, shared, first);
    case Op::TorchSaturate: return torch_saturate(s, first);
    case Op::TorchHue: return torch_hue(s, first);
    case Op::TorchSharpen: return torch_sharpen(s, first);
    case Op::TorchWarp:
    case Op::TorchGrid: return torch_warp(s);
    case Op::Channels: return channels(s);
    case Op::Blur: return blur(s, phase);
    case Op::Mix: return mix(s);
    case Op::Blend: return blended(s);
    case Op::Store: return store(s);
    case Op::Patch: return patch(s);
    default: return;  // steps that only refer to another image do nothing here
  }
}

inline int32_t phases_of(const Step& s) {
  switch (s.op) {
    case Op::Resize: return phases_of_resize(s);
    case Op::TorchResize: return phases_of_torch_resize(s);
    case Op::TorchResizeFloats: return phases_of_torch_resize_floats(s);
    case Op::Blur: return phases_of_blur(s);
    case Op::Contrast:
    case Op::TorchContrast: return 3;
    case Op::Autocontrast:
    case Op::Equalize:
    case Op::TorchAutocontrast:
    case Op::TorchEqualize: return 3;
    default: return 1;
  }
}

// The progress of the row is kept in shared memory, so that the called steps can use all registers.
inline void make_row(uint64_t slots, uint64_t slot_bytes, uint64_t order, Shared& shared) {
  if (thread_index() == 0) {
    const Row& row = *array_at<Row>(slots + array_at<uint32_t>(order)[stoker::gpu::block_index()] * slot_bytes);
    shared.steps = array_at<Step>(row.steps);
    shared.end = shared.steps + row.count;
    shared.phase = 0;
  }
  for (;;) {
    block_barrier();
    if (shared.steps == shared.end) return;
    make_phase(*shared.steps, shared.phase, shared);
    block_barrier();
    if (thread_index() != 0 || ++shared.phase < phases_of(*shared.steps)) continue;
    shared.phase = 0;
    ++shared.steps;
  }
}

}  // namespace stoker::recipe::gpu

STOKER_KERNEL STOKER_LAUNCH_BOUNDS(stoker::recipe::gpu::kThreads, 2)
    stoker_recipe(uint64_t slots, uint64_t slot_bytes, uint64_t order) {
  STOKER_SHARED(stoker::recipe::gpu::Shared, shared);
  stoker::recipe::gpu::make_row(slots, slot_bytes, order, shared);
}
