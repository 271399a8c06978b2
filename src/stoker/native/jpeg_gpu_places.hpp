// SPDX-License-Identifier: Apache-2.0
// Where a batch keeps the intermediate results of its rows.
#pragma once
#include <vector>

#include "jpeg_gpu_row.hpp"

namespace stoker::jpeg::gpu {

constexpr size_t kBlockBytes = 64 * sizeof(int16_t);

// Hands out addresses one behind the other.
class Layout {
 public:
  uint64_t take(size_t bytes) {
    const uint64_t at = used_;
    used_ += (bytes + 255) / 256 * 256;
    return at;
  }
  size_t used() const { return used_; }

 private:
  size_t used_ = 0;
};

// Rows that are in memory together.
struct Group {
  std::vector<Place> places;  // addresses are offsets until the memory is known
  size_t working = 0;         // bytes before the coefficients
  size_t coefficients = 0;    // bytes
};

// About as much as a row's place and coefficients take.
size_t memory_of(const Row& row, uint32_t threads);

// Of a component's samples that are needed.
size_t sample_bytes(const Plane& plane);

// Describes a component whose samples are in memory from `at` on. They lie as many bytes behind a multiple of 4 as they
// have columns before them.
planar::Component describe_component(const Plane& plane, stoker::gpu::Address at);

// A row's place, in offsets, for entropy decoding by so many threads.
Place place_row(const Row& row, uint32_t index, uint32_t threads, Layout& layout, Layout& coefficients);

// Makes them addresses.
void move_by(Place& place, const Row& row, stoker::gpu::Address memory, stoker::gpu::Address coefficients);

}  // namespace stoker::jpeg::gpu
