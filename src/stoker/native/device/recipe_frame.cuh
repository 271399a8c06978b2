// SPDX-License-Identifier: Apache-2.0
// Shared parts of recipe steps on a GPU: one block materializes one row, and its threads process pixels in a strided
// loop.
#pragma once
#include "shared/device.cuh"
#include "shared/recipe_slot.hpp"

// Steps are calls: if they were all inlined into one function, none would get the registers that it needs.
#if defined(__CUDACC_RTC__)
#define STOKER_STEP static __noinline__
#else
#define STOKER_STEP inline
#endif

namespace stoker::recipe::gpu {

using stoker::gpu::block_barrier;
using stoker::gpu::thread_count;
using stoker::gpu::thread_index;

// Shared memory of a block, valid between barriers.
struct Shared {
  uint32_t count[3][256];
  uint8_t table[3][256];
  const Step *steps, *end;  // the row's remaining steps
  int32_t phase;            // phase of the first remaining step
};

template <class T>
inline const T* array_at(uint64_t address) {
  return reinterpret_cast<const T*>(address);
}

// Bitmap with 32-bit numbers, which fit registers: images of a recipe have less than 2 GiB.
struct Picture {
  explicit Picture(const Bitmap& b)
      : data(b.data),
        row(static_cast<int32_t>(b.row)),
        pixel(static_cast<int32_t>(b.pixel)),
        channel(static_cast<int32_t>(b.channel)) {}
  uint8_t* at(int32_t y, int32_t x) const { return data + (y * row + x * pixel); }

  uint8_t* data;
  int32_t row, pixel, channel;
};

// Call f(y, x) for all pixels of an image.
template <class F>
inline void each(int64_t height, int64_t columns, F&& f) {
  const uint32_t width = static_cast<uint32_t>(columns), total = static_cast<uint32_t>(height) * width;
  STOKER_NO_UNROLL
  for (uint32_t i = thread_index(); i < total; i += thread_count()) {
    const uint32_t y = i / width;
    f(static_cast<int32_t>(y), static_cast<int32_t>(i - y * width));
  }
}

template <class F>
inline void each(const Bitmap& image, F&& f) {
  each(image.height, image.width, [&](int32_t y, int32_t x) { f(int64_t{y}, int64_t{x}); });
}

// Call f(from, to) with the addresses of all pixels of the input and the output, which have the same size.
template <class F>
inline void each_pair(const Step& s, F&& f) {
  each(s.out, [&](int64_t y, int64_t x) { f(s.in.at(y, x), s.out.at(y, x)); });
}

STOKER_STEP void copy(const Step& s) {
  each_pair(s, [&](const uint8_t* from, uint8_t* to) {
    for (int64_t c = 0; c < s.in.channels; ++c) to[c] = from[c * s.in.channel];
  });
}

// Map by a table of 256 values, or of 256 per channel.
STOKER_STEP void map(const Step& s, const uint8_t* table, int64_t per_channel) {
  each_pair(s, [&](const uint8_t* from, uint8_t* to) {
    for (int64_t c = 0; c < s.in.channels; ++c) to[c] = table[c * per_channel + from[c * s.in.channel]];
  });
}

}  // namespace stoker::recipe::gpu
