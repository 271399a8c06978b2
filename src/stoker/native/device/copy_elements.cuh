// SPDX-License-Identifier: Apache-2.0
// Copies of contiguous elements for operators' own kernels.
#pragma once
#include "device/own.cuh"

namespace stoker::own {

struct alignas(16) Bytes16 {
  uint64_t words[2];
};

// Threads that share a copy: a block's, or a warp's.
struct Workers {
  uint32_t index, count;
};
inline Workers block_workers() { return {gpu::thread_index(), kThreads}; }

// Lines are each worker group's in turn: a block's warps have a line each, unless lines are long.
struct LineGroups {
  Workers workers;
  uint32_t first, step;  // of the lines

  explicit LineGroups(int64_t line) {
    const bool whole = line >= 16 * kThreads;
    workers = whole ? block_workers() : Workers{gpu::thread_index() % gpu::kWarp, gpu::kWarp};
    first = whole ? 0 : gpu::thread_index() / gpu::kWarp;
    step = whole ? 1 : kThreads / gpu::kWarp;
  }
};
constexpr int64_t kShortLine = 64;  // elements; shorter ones are moved one by one

// Copy elements T from number `begin` on. Where both addresses have the same distance to a multiple of 16, or else of
// four, all but the first and last bytes are moved in larger units.
template <class T>
inline void copy_elements(const uint8_t* from, uint8_t* to, int64_t begin, int64_t end, const Workers& workers) {
  const auto each = [&]<class Unit>(Unit, int64_t first, int64_t last) {  // addresses in bytes
    const auto units = static_cast<int32_t>((last - first) / static_cast<int64_t>(sizeof(Unit)));
    const auto* source = reinterpret_cast<const Unit*>(from + first);
    auto* target = reinterpret_cast<Unit*>(to + first);
    for (auto i = static_cast<int32_t>(workers.index); i < units; i += static_cast<int32_t>(workers.count))
      target[i] = source[i];
    return first + int64_t{units} * static_cast<int64_t>(sizeof(Unit));
  };
  constexpr int64_t kItem = sizeof(T);
  int64_t first = begin * kItem;
  const int64_t last = end * kItem;
  const auto in = reinterpret_cast<uint64_t>(from), out = reinterpret_cast<uint64_t>(to);
  const uint64_t unit = (in - out) % 16 == 0 ? 16 : (in - out) % 4 == 0 ? 4 : 1;
  if (unit > sizeof(T)) {
    const auto ahead = static_cast<int64_t>((unit - (in + static_cast<uint64_t>(first)) % unit) % unit);
    first = each(T{}, first, first + ahead < last ? first + ahead : last);
    first = unit == 16 ? each(Bytes16{}, first, last) : each(uint32_t{}, first, last);
  }
  each(T{}, first, last);
}

}  // namespace stoker::own
