// SPDX-License-Identifier: Apache-2.0
#include "gpu_kernels/recipe_buffers.hpp"

#include <algorithm>
#include <cstring>

namespace stoker::recipe::gpu {

namespace {

bool looks_only(Op op) {
  return op == Op::Crop || op == Op::Transpose || op == Op::Spread || op == Op::Store || op == Op::Patch;
}

}  // namespace

std::vector<size_t> last_uses(const std::vector<RecordedStep>& steps) {
  std::vector<size_t> shown(steps.size()), last(steps.size());
  const auto use = [&](double number, size_t at) {
    const int64_t image = whole(number);
    if (image < 0 || image >= static_cast<int64_t>(at)) throw InvalidRecipe{"a step from an image that is not there"};
    last[shown[static_cast<size_t>(image)]] = at;
    return shown[static_cast<size_t>(image)];
  };
  for (size_t i = 0; i < steps.size(); ++i) {
    shown[i] = last[i] = i;
    if (i == 0) continue;
    const size_t from = use(static_cast<double>(steps[i].from), i);
    if (looks_only(steps[i].op)) shown[i] = from;
    each_other_image(steps[i], [&](double number) { use(number, i); });
  }
  return last;
}

int Buffers::take(int64_t bytes, size_t now, size_t until) {
  if (bytes >= kMaxImageBytes) throw InvalidRecipe{"an image of 2 GiB or more, which the GPU has no form for"};
  int found = -1;
  for (size_t i = 0; i < all_.size(); ++i)
    if (all_[i].until < now && (found < 0 || all_[i].bytes > all_[static_cast<size_t>(found)].bytes))
      found = static_cast<int>(i);
  if (found < 0) {
    found = static_cast<int>(all_.size());
    all_.push_back({});
  }
  Buffer& b = all_[static_cast<size_t>(found)];
  b.bytes = std::max(b.bytes, bytes);
  b.until = until;
  return found;
}

void Buffers::refer(void* address, int buffer) {
  if (buffer != kElsewhere) references_.push_back({address, buffer});
}

void Buffers::settle(stoker::gpu::RowMemory& memory) {
  uint64_t size = 0;
  for (Buffer& b : all_) {
    b.at = size;
    size += (static_cast<uint64_t>(b.bytes) + 255) / 256 * 256;
  }
  const stoker::gpu::Address base = size ? memory.allocate_device(size) : 0;
  for (const Reference& r : references_) {
    uint64_t address;
    std::memcpy(&address, r.address, sizeof address);
    address += base + all_[static_cast<size_t>(r.buffer)].at;
    std::memcpy(r.address, &address, sizeof address);
  }
}

}  // namespace stoker::recipe::gpu
