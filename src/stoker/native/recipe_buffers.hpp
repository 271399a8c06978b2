// SPDX-License-Identifier: Apache-2.0
// The device memory of a row's images: buffers that images take when those before have let go of them.
#pragma once
#include <cstdint>
#include <vector>

#include "gpu.hpp"
#include "recipe_numbers.hpp"

namespace stoker::recipe::gpu {

constexpr int64_t kMaxImageBytes = int64_t{1} << 31;
constexpr int kElsewhere = -1;  // an image that is in none of the row's buffers

// After which step nobody needs an image any more; of those that only look at others, theirs. Throws Bad for a step from
// an image that is not there.
std::vector<size_t> last_uses(const std::vector<Written>& steps);

class Buffers {
 public:
  // A buffer of so many bytes from step `now` to step `until`. Throws Bad for 2 GiB or more.
  int take(int64_t bytes, size_t now, size_t until);
  // What has been written as an offset into a buffer becomes an address.
  void refer(void* address, int buffer);
  // Takes the memory and writes the addresses.
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
