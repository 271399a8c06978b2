// SPDX-License-Identifier: Apache-2.0
// `equalize`: count a histogram of every plane, compute its table, and map the pixels.
#pragma once
#include "device/own.cuh"
#include "shared/histogram_table.hpp"

namespace stoker::own {

// Numbers: the image's axes. A row's scratch memory: [plane][chunk][256] counts, then [plane][256] bytes.
template <class Ports>
struct Equalize {
  static constexpr int kValues = 256;
  using Counts = Array<uint32_t, kValues>;
  using Sums = Array<int64_t, 2 * kValues>;
  using Table = Array<uint8_t, kValues>;
  static constexpr int64_t kChunk = 16384;  // pixels per block; also in ops/image/equalize.py

  struct Share {
    Image image;
    int64_t pixels, chunks, plane, chunk;
    uint32_t* counts;
    uint8_t* table;

    Share(const Row& row, int port, int64_t block, bool by_chunk) : image(row, port, 0) {
      pixels = image.height * image.width;
      chunks = (pixels + kChunk - 1) / kChunk;
      plane = by_chunk ? block / chunks : block;
      chunk = by_chunk ? block - plane * chunks : 0;
      const int64_t planes = image.frames * image.channels;
      counts = row.scratch<uint32_t>() + plane * chunks * kValues;
      table =
          row.scratch<uint8_t>(planes * chunks * kValues * static_cast<int64_t>(sizeof(uint32_t))) + plane * kValues;
    }
    uint8_t* at(int64_t pixel) const {
      const int64_t frame = plane / image.channels, channel = plane - frame * image.channels;
      const int64_t y = quotient(pixel, image.width), x = pixel - y * image.width;
      return image.data + frame * image.frame + channel * image.channel + y * image.row + x * image.column;
    }
    template <class Visit>
    void each(Visit&& visit) const {
      const int64_t begin = chunk * kChunk, end = begin + kChunk < pixels ? begin + kChunk : pixels;
      for (int64_t i = begin + gpu::thread_index(); i < end; i += kThreads) visit(i);
    }
  };

  static void count(const Row& row, uint32_t block) {
    STOKER_SHARED(Counts, bins);
    const Share share(row, 0, block, true);
    bins[gpu::thread_index()] = 0;
    gpu::block_barrier();
    share.each([&](int64_t i) { gpu::atomic_add(&bins[*share.at(i)], 1); });
    gpu::block_barrier();
    share.counts[share.chunk * kValues + gpu::thread_index()] = bins[gpu::thread_index()];
  }

  static void tabulate(const Row& row, uint32_t block) {
    STOKER_SHARED(Sums, sums);  // double buffer
    STOKER_SHARED(uint32_t, lowest);
    const Share share(row, 0, block, false);
    const uint32_t v = gpu::thread_index();
    int64_t own = 0;
    for (int64_t c = 0; c < share.chunks; ++c) own += share.counts[c * kValues + v];
    if (v == 0) lowest = kValues;
    gpu::block_barrier();
    if (own) gpu::atomic_min(&lowest, v);
    sums[v] = own;
    gpu::block_barrier();
    int from = 0;  // inclusive prefix sum by doubling
    for (uint32_t step = 1; step < kValues; step *= 2, from = kValues - from) {
      sums[kValues - from + v] = sums[from + v] + (v >= step ? sums[from + v - step] : 0);
      gpu::block_barrier();
    }
    const int64_t total = sums[from + kValues - 1];
    const int64_t first = lowest < kValues ? sums[from + lowest] : 0;
    const bool one = total == first;  // a single value, or no pixels
    const float scale = one ? 0.0f : histogram::equalizing_scale(total, first);
    const int64_t sum = v > lowest ? sums[from + v] - first : 0;
    share.table[v] = one ? static_cast<uint8_t>(v) : histogram::equalized_value(sum, scale);
  }

  static void apply(const Row& row, uint32_t block) {
    STOKER_SHARED(Table, table);
    const Share from(row, 0, block, true), to(row, 1, block, true);
    table[gpu::thread_index()] = from.table[gpu::thread_index()];
    gpu::block_barrier();
    from.each([&](int64_t i) { *to.at(i) = table[*from.at(i)]; });
  }
};

}  // namespace stoker::own
