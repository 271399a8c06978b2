// SPDX-License-Identifier: Apache-2.0
// Shared parts of a stage's row descriptors and launches on a GPU.
#pragma once
#include <initializer_list>

#include "gpu/gpu.hpp"
#include "gpu_kernels/row_blocks.hpp"
#include "shared/planar_image.cuh"
#include "shared/stage_slot.hpp"

namespace stoker::stage {

inline uint64_t address_of(const View& v) { return reinterpret_cast<uintptr_t>(v.data); }

inline Source source_of(const View& v) {
  return {address_of(v), v.shape[0], v.shape[1], v.shape[2], v.stride[0], v.stride[1], v.stride[2]};
}

// Request the pixels of a planar image from its producer. Return the distance from the addresses in views of the image
// to the pixels.
inline uint64_t request_pixels(planar::Image& image, gpu::RowMemory& memory) {
  const int64_t bytes = int64_t{3} * image.width * image.height;
  if (!image.pixels) image.pixels = memory.allocate_device(static_cast<size_t>(bytes));
  return image.pixels - image.at;
}

inline bool packed_rgb(const Source& i) { return i.channels == 3 && i.pixel == 3 && i.channel == 1; }

// Return the row's descriptor if there is something to do, else null.
inline const Slot* slot_of(const gpu::Batch& batch, int64_t row, size_t slot_bytes) {
  if (!batch.active(row)) return nullptr;
  const auto* slot = reinterpret_cast<const Slot*>(batch.slots() + static_cast<size_t>(row) * slot_bytes);
  return slot->lanes > 0 ? slot : nullptr;
}

// The interpolator's part of the descriptor.
template <class S>
const S& interpolator_of(const Slot* slot) {
  return *reinterpret_cast<const S*>(slot + 1);
}

// Numbers of thread blocks (CTAs) for a row: of lanes without an interpolator in parts of some elements, of lanes that
// take a thread each, of pixels, and of pairs of pixels.
inline uint64_t lane_blocks(const Slot& slot, int64_t part) {
  return gpu::blocks_for(slot.lanes, part_lanes(part, slot.inner));
}
inline uint64_t thread_blocks(int64_t threads) { return gpu::blocks_for(threads, kThreads); }
inline uint64_t tile_blocks(int64_t width, int64_t height) {
  return gpu::blocks_for(width, kTileWidth) * gpu::blocks_for(height, kTileHeight);
}
inline uint64_t pair_blocks(int64_t width, int64_t height) {
  return gpu::blocks_for(width, kTileWidth) * pair_tiles(static_cast<uint32_t>(height));
}

// Launch one of a stage's kernels for the blocks of the batch's rows. `more` are its parameters after the descriptors.
inline void launch(gpu::Batch& batch, const gpu::RowBlocks& rows, const gpu::Function* function, size_t slot_bytes,
                   std::initializer_list<uint64_t> more) {
  gpu::Launch launch;
  launch.function = function;
  launch.block[0] = kThreads;
  launch.with({batch.device_slots(), slot_bytes});
  for (const uint64_t argument : more) launch.argument[launch.arguments++] = argument;
  rows.launch(batch, launch);
}

}  // namespace stoker::stage
