// SPDX-License-Identifier: Apache-2.0
// `equalize`: count a histogram of every plane, compute its table, and map the pixels.
#pragma once
#include "device/own.cuh"
#include "shared/histogram_table.hpp"

namespace stoker::own {

// Numbers: the image's axes. A row's scratch memory: [plane][chunk][256] counts, then [plane][256] bytes. A block counts
// and maps a chunk of pixels, with all of their channels if these are adjacent.
template <class Ports>
struct Equalize {
  static constexpr int kValues = 256;
  static constexpr int kMostTogether = 4;  // channels
  static constexpr int kCopies = 4;        // of a histogram, since many pixels of an image are equal
  using Counts = Array<uint32_t, kCopies * kMostTogether * kValues>;
  using Sums = Array<int64_t, 2 * kValues>;
  using Table = Array<uint8_t, kMostTogether * kValues>;
  static constexpr int64_t kChunk = 16384;  // pixels per block; also in ops/image/equalize.py

  // The scratch memory of a row.
  struct Scratch {
    int64_t chunks;
    uint32_t* counts;
    uint8_t* tables;

    Scratch(const Row& row, const Image& image) {
      chunks = (image.height * image.width + kChunk - 1) / kChunk;
      const int64_t planes = image.frames * image.channels;
      counts = row.scratch<uint32_t>();
      tables = row.scratch<uint8_t>(planes * chunks * kValues * static_cast<int64_t>(sizeof(uint32_t)));
    }
    uint32_t* counts_of(int64_t plane, int64_t chunk) const { return counts + (plane * chunks + chunk) * kValues; }
    uint8_t* table_of(int64_t plane) const { return tables + plane * kValues; }
  };

  // The chunk of a block, of one plane or of all channels.
  struct Chunk {
    int64_t number, begin, end;  // pixels
    int64_t first, channels;     // planes
    int64_t frame, channel;

    Chunk(const Image& image, const Scratch& scratch, uint32_t block) {
      channels = image.inner ? image.channels : 1;
      const int64_t group = block / scratch.chunks, pixels = image.height * image.width;
      number = block - group * scratch.chunks;
      begin = number * kChunk;
      end = begin + kChunk < pixels ? begin + kChunk : pixels;
      first = group * channels;
      frame = image.inner ? group : group / image.channels;
      channel = image.inner ? 0 : group - frame * image.channels;
    }
    uint8_t* start(const Image& image) const { return image.data + frame * image.frame + channel * image.channel; }
    // Whether pixels follow each other without gaps, at a multiple of four bytes.
    bool in_words(const Image& image) const {
      const bool packed = (channels == 1 || image.channel == 1) && image.column == channels &&
                          (image.height == 1 || image.row == image.width * channels);
      return packed && reinterpret_cast<uint64_t>(start(image)) % 4 == 0;
    }
  };

  // Call visit(row, column, channel, its number among them) for the chunk's elements of `count` channels from `c0` on.
  template <class Visit>
  static void each(const Image& image, const Chunk& chunk, int64_t c0, int64_t count, Visit&& visit) {
    for (int64_t i = chunk.begin + gpu::thread_index(); i < chunk.end; i += kThreads) {
      const int64_t y = quotient(i, image.width), x = i - y * image.width;
      for (int64_t c = 0; c < count; ++c) visit(y, x, c0 + c, static_cast<int>(c));
    }
  }

  // Call visit(pixels' number in the chunk / 4) for groups of four pixels, and return the first pixel that is left.
  template <class Visit>
  static int64_t each_four(const Chunk& chunk, Visit&& visit) {
    const auto fours = static_cast<int32_t>((chunk.end - chunk.begin) / 4);
    for (auto i = static_cast<int32_t>(gpu::thread_index()); i < fours; i += kThreads) visit(i);
    return chunk.begin + 4 * int64_t{fours};
  }

  template <int kChannels>
  static void count_words(const Image& image, Chunk& chunk, uint32_t* bins) {
    const auto* words = reinterpret_cast<const uint32_t*>(chunk.start(image) + chunk.begin * kChannels);
    chunk.begin = each_four(chunk, [&](int32_t four) {
      uint32_t word[kChannels];
      STOKER_UNROLL for (int w = 0; w < kChannels; ++w) word[w] = words[four * kChannels + w];
      STOKER_UNROLL for (int b = 0; b < 4 * kChannels; ++b)
          gpu::atomic_add(&bins[b % kChannels * kValues + (word[b / 4] >> b % 4 * 8 & 0xFF)], 1);
    });
  }

  static void count(const Row& row, uint32_t block) {
    STOKER_SHARED(Counts, bins);
    const Image image(row, 0, 0);
    const Scratch scratch(row, image);
    Chunk chunk(image, scratch, block);
    const uint32_t t = gpu::thread_index();
    uint32_t* const own = bins.values + t / gpu::kWarp % kCopies * kMostTogether * kValues;
    for (int64_t c0 = 0; c0 < chunk.channels; c0 += kMostTogether) {
      const int64_t count = chunk.channels - c0 < kMostTogether ? chunk.channels - c0 : kMostTogether;
      for (int i = static_cast<int>(t); i < kCopies * kMostTogether * kValues; i += kThreads) bins[i] = 0;
      gpu::block_barrier();
      Chunk rest = chunk;
      if (chunk.in_words(image) && chunk.channels == 1) count_words<1>(image, rest, own);
      else if (chunk.in_words(image) && chunk.channels == 3) count_words<3>(image, rest, own);
      else if (chunk.in_words(image) && chunk.channels == 4) count_words<4>(image, rest, own);
      const uint8_t* const start = chunk.start(image);
      each(image, rest, c0, count, [&](int64_t y, int64_t x, int64_t c, int k) {
        gpu::atomic_add(&own[k * kValues + start[y * image.row + x * image.column + c * image.channel]], 1);
      });
      gpu::block_barrier();
      for (int64_t c = 0; c < count; ++c) {
        uint32_t sum = 0;
        STOKER_UNROLL for (int i = 0; i < kCopies; ++i) sum += bins[(i * kMostTogether + c) * kValues + t];
        scratch.counts_of(chunk.first + c0 + c, chunk.number)[t] = sum;
      }
      gpu::block_barrier();
    }
  }

  static void tabulate(const Row& row, uint32_t block) {
    STOKER_SHARED(Sums, sums);  // double buffer
    STOKER_SHARED(uint32_t, lowest);
    const Image image(row, 0, 0);
    const Scratch scratch(row, image);
    const uint32_t v = gpu::thread_index();
    int64_t own = 0;
    for (int64_t c = 0; c < scratch.chunks; ++c) own += scratch.counts_of(block, c)[v];
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
    scratch.table_of(block)[v] = one ? static_cast<uint8_t>(v) : histogram::equalized_value(sum, scale);
  }

  template <int kChannels>
  static void map_words(const Image& from, const Image& to, Chunk& chunk, const uint8_t* tables) {
    const auto* words = reinterpret_cast<const uint32_t*>(chunk.start(from) + chunk.begin * kChannels);
    auto* target = reinterpret_cast<uint32_t*>(chunk.start(to) + chunk.begin * kChannels);
    chunk.begin = each_four(chunk, [&](int32_t four) {
      uint32_t word[kChannels], mapped[kChannels] = {};
      STOKER_UNROLL for (int w = 0; w < kChannels; ++w) word[w] = words[four * kChannels + w];
      STOKER_UNROLL for (int b = 0; b < 4 * kChannels; ++b) mapped[b / 4] |=
          uint32_t{tables[b % kChannels * kValues + (word[b / 4] >> b % 4 * 8 & 0xFF)]} << b % 4 * 8;
      STOKER_UNROLL for (int w = 0; w < kChannels; ++w) target[four * kChannels + w] = mapped[w];
    });
  }

  static void apply(const Row& row, uint32_t block) {
    STOKER_SHARED(Table, table);
    const Image from(row, 0, 0), to(row, 1, 0);
    const Scratch scratch(row, from);
    const Chunk chunk(from, scratch, block);
    const uint32_t t = gpu::thread_index();
    const bool words = chunk.in_words(from) && chunk.in_words(to);
    for (int64_t c0 = 0; c0 < chunk.channels; c0 += kMostTogether) {
      const int64_t count = chunk.channels - c0 < kMostTogether ? chunk.channels - c0 : kMostTogether;
      gpu::block_barrier();
      for (int64_t c = 0; c < count; ++c) table[c * kValues + t] = scratch.table_of(chunk.first + c0 + c)[t];
      gpu::block_barrier();
      Chunk rest = chunk;
      if (words && chunk.channels == 1) map_words<1>(from, to, rest, table.values);
      else if (words && chunk.channels == 3) map_words<3>(from, to, rest, table.values);
      else if (words && chunk.channels == 4) map_words<4>(from, to, rest, table.values);
      const uint8_t* const start = chunk.start(from);
      uint8_t* const target = chunk.start(to);
      each(from, rest, c0, count, [&](int64_t y, int64_t x, int64_t c, int k) {
        target[y * to.row + x * to.column + c * to.channel] =
            table[k * kValues + start[y * from.row + x * from.column + c * from.channel]];
      });
    }
  }
};

}  // namespace stoker::own
