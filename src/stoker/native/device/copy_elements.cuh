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

// Copy the bytes from `first` to `last`, whose source begins at another byte of a word than their target: an aligned word
// from two aligned words of the source, which lie within these bytes. Return the bytes that are copied.
struct CopiedBytes {
  int64_t first, last;
};
inline CopiedBytes copy_shifted(const uint8_t* from, uint8_t* to, int64_t first, int64_t last, const Workers& workers) {
  const auto in = reinterpret_cast<uint64_t>(from), out = reinterpret_cast<uint64_t>(to);
  const auto before = static_cast<int64_t>((in - out) % 4);  // bytes of a word of the source before those wanted
  int64_t begin = first + before;
  begin += static_cast<int64_t>((0 - (out + static_cast<uint64_t>(begin))) % 4);
  if (last - begin < 8) return {first, first};
  const auto count = static_cast<int32_t>((last - begin - 8 + before) / 4 + 1);
  const auto* source = reinterpret_cast<const uint32_t*>(from + begin - before);
  auto* target = reinterpret_cast<uint32_t*>(to + begin);
  const auto shift = static_cast<uint32_t>(8 * before);
  for (auto i = static_cast<int32_t>(workers.index); i < count; i += static_cast<int32_t>(workers.count))
    target[i] = gpu::funnel_right(source[i + 1], source[i], shift);
  return {begin, begin + int64_t{4} * count};
}

// Copy elements T from number `begin` on. Where both addresses have the same distance to a multiple of 16, or else of
// four, all but the first and last bytes are moved in larger units; elsewhere in words whose bytes are shifted.
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
  } else if constexpr (kItem < 4) {
    const CopiedBytes copied = copy_shifted(from, to, first, last, workers);
    each(T{}, first, copied.first);
    first = copied.last;
  }
  each(T{}, first, last);
}

}  // namespace stoker::own
