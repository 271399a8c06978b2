// SPDX-License-Identifier: Apache-2.0
// Decompression of LZ4 blocks, a warp for each. All lanes read lengths and distances, and share the bytes of a copy.
// The bytes of a match are those before it, repeated, so that no lane waits for another one within a match.
#pragma once
#include "device/own.cuh"

namespace stoker::own {

// Ports: bytes, (begin, end) of each block if the output has an axis of blocks, output.
template <class Ports>
struct Inflate {
  static constexpr int64_t kLongest = 15, kLeastMatch = 4;  // as in container/lz4.cpp

  // Bytes of a block, in order.
  struct Reader {
    const uint8_t* at;
    int64_t stride, left;
    int64_t next() {
      const uint8_t byte = *at;
      skip(1);
      return byte;
    }
    void skip(int64_t count) {
      at += count * stride;
      left -= count;
    }
    // Add the further bytes of a length. Return false if the block ends within them.
    bool read_length(int64_t& length) {
      if (length != kLongest) return true;
      for (int64_t byte = 255; byte == 255; length += byte) {
        if (left == 0) return false;
        byte = next();
      }
      return true;
    }
  };

  // Return false if the block is damaged, or is of another size.
  static bool decompress(Reader block, uint8_t* to, int64_t bytes) {
    const int64_t lane = gpu::thread_index();
    int64_t have = 0;
    while (block.left > 0) {
      const int64_t token = block.next();
      int64_t literals = token >> 4, match = token & kLongest;
      if (!block.read_length(literals) || literals > block.left || literals > bytes - have) return false;
      for (int64_t i = lane; i < literals; i += gpu::kWarp) to[have + i] = block.at[i * block.stride];
      block.skip(literals);
      have += literals;
      if (block.left == 0) return have == bytes;
      if (block.left < 2) return false;
      int64_t distance = block.next();
      distance |= block.next() << 8;
      if (!block.read_length(match)) return false;
      match += kLeastMatch;
      if (distance == 0 || distance > have || match > bytes - have) return false;
      gpu::warp_barrier();  // other lanes have written the bytes that this one reads
      const uint8_t* const from = to + (have - distance);
      for (int64_t i = lane; i < match; i += gpu::kWarp) {
        const int64_t turn = i < distance ? 0 : quotient(i, distance);
        to[have + i] = from[i - turn * distance];
      }
      have += match;
    }
    return false;
  }

  static void decode(const Row& row, uint32_t number) {
    const int last = static_cast<int>(row.slot().ports) - 1, lead = last - 1;
    const Port &data = row.port(0), &out = row.port(last);
    int64_t begin = 0, end = data.shape[0];
    if (lead) {
      const Port& spans = row.port(1);
      const auto* const span = reinterpret_cast<const uint8_t*>(spans.data) + number * spans.stride[0];
      begin = *reinterpret_cast<const int64_t*>(span);
      end = *reinterpret_cast<const int64_t*>(span + spans.stride[1]);
    }
    const int64_t bytes =
        extent_of(out, lead, static_cast<int>(out.rank)) * static_cast<int64_t>(sizeof(typename Memory<Ports>::Type));
    bool good = begin >= 0 && begin <= end && end <= data.shape[0];
    if (good) {
      const auto* const from = reinterpret_cast<const uint8_t*>(data.data) + begin * data.stride[0];
      good =
          decompress({from, data.stride[0], end - begin}, reinterpret_cast<uint8_t*>(out.data) + number * bytes, bytes);
    }
    if (!good && gpu::thread_index() == 0) row.fail();
  }

 private:
  template <class All>
  struct Memory;
  template <class First, class Second>
  struct Memory<Types<First, Second>> {
    using Type = typename Second::Memory;
  };
  template <class First, class Second, class Third>
  struct Memory<Types<First, Second, Third>> {
    using Type = typename Third::Memory;
  };
};

}  // namespace stoker::own
