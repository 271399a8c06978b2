// SPDX-License-Identifier: Apache-2.0
// Device memory of a row's images: images reuse buffers that earlier images have released.
#pragma once
#include <cstdint>
#include <vector>

#include "gpu/gpu.hpp"
#include "recipe/numbers.hpp"

namespace stoker::recipe::gpu {

constexpr int64_t kMaxImageBytes = int64_t{1} << 31;
constexpr int kElsewhere = -1;  // an image outside of the row's buffers

// Return for each image the last step that needs it; an image that only refers to another one extends the other's life.
// Throw InvalidRecipe for a step from an image that does not exist.
std::vector<size_t> last_uses(const std::vector<RecordedStep>& steps);

class Buffers {
 public:
  // Return a buffer of this size for the steps from `now` to `until`. Throw InvalidRecipe for 2 GiB or more.
  int take(int64_t bytes, size_t now, size_t until);
  // Register a number that is an offset into a buffer, to be converted to an address.
  void refer(void* address, int buffer);
  // Allocate the memory and convert the offsets.
  void settle(stoker::gpu::RowMemory& memory);

 private:
  struct Buffer {
    int64_t bytes = 0;
    size_t until = 0;
    uint64_t at = 0;
  };
  struct Reference {
    void* address;
    int buffer;
  };
  std::vector<Buffer> all_;
  std::vector<Reference> references_;
};

}  // namespace stoker::recipe::gpu
