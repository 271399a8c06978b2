// SPDX-License-Identifier: Apache-2.0
// Shared parts of a stage's row descriptors and launches on a GPU.
#pragma once
#include <cstring>
#include <initializer_list>
#include <vector>

#include "gpu/gpu.hpp"
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

// Thread blocks of one launch.
class WorkList {
 public:
  void add(int64_t row, int64_t lanes) { add_blocks(row, (lanes + kTileLanes - 1) / kTileLanes); }
  // One thread per lane.
  void add_threads(int64_t row, int64_t lanes) { add_blocks(row, (lanes + kThreads - 1) / kThreads); }
  void add_tiles(int64_t row, int64_t width, int64_t height) {
    add_blocks(row, ((width + kTileWidth - 1) / kTileWidth) * ((height + kTileHeight - 1) / kTileHeight));
  }
  void add_pairs(int64_t row, int64_t width, int64_t height) {
    add_blocks(row, ((width + kTileWidth - 1) / kTileWidth) * pair_tiles(static_cast<uint32_t>(height)));
  }
  void add_blocks(int64_t row, int64_t tiles) {
    if (tiles <= 0) return;
    rows_.push_back({static_cast<uint32_t>(row), static_cast<uint32_t>(tiles)});
    blocks_ += static_cast<uint32_t>(tiles);
  }
  // Upload the list to the device.
  void upload(gpu::Batch& batch) {
    if (blocks_ == 0) return;
    Work* to = reinterpret_cast<Work*>(batch.upload(blocks_ * sizeof(Work), &at_));
    for (const auto& [row, tiles] : rows_)
      for (uint32_t t = 0; t < tiles; ++t) *to++ = {row, t};
  }
  void launch(gpu::Batch& batch, const gpu::Function* function, std::initializer_list<uint64_t> more,
              size_t slot_bytes) const {
    if (blocks_ == 0) return;
    gpu::Launch launch;
    launch.function = function;
    launch.grid[0] = blocks_;
    launch.block[0] = kThreads;
    launch.with({batch.device_slots(), slot_bytes, at_});
    for (const uint64_t argument : more) launch.argument[launch.arguments++] = argument;
    batch.launch(launch);
  }

 private:
  struct Blocks {
    uint32_t row, tiles;
  };
  std::vector<Blocks> rows_;
  uint32_t blocks_ = 0;
  gpu::Address at_ = 0;
};

}  // namespace stoker::stage
