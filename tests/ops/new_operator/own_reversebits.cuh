// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "device/own.cuh"

namespace stoker::own {

// Number: bits that stay. A table of all bytes is in dynamic shared memory.
template <class Ports>
struct ReverseBits {
  static constexpr int64_t kBytes = 4096;  // of a block; also in the operator's file

  static void reverse(const Row& row, uint32_t block) {
    auto* table = gpu::dynamic_shared<uint8_t>();
    const auto keep = static_cast<uint32_t>(row.number(0));
    for (uint32_t x = gpu::thread_index(); x < 256; x += gpu::thread_count()) {
      uint32_t y = 0;
      for (uint32_t bit = 0; bit < 8; ++bit) y |= (x >> bit & 1) << (7 - bit);
      table[x] = static_cast<uint8_t>((y & ~keep) | (x & keep));
    }
    gpu::block_barrier();
    const Port &in = row.port(0), &out = row.port(1);
    int64_t elements = 1;
    for (int d = 0; d < in.rank; ++d) elements *= in.shape[d];
    const int64_t begin = block * kBytes, end = begin + kBytes < elements ? begin + kBytes : elements;
    for (int64_t i = begin + gpu::thread_index(); i < end; i += gpu::thread_count()) {
      int64_t at = 0, left = i;
      for (int d = static_cast<int>(in.rank) - 1; d >= 0; --d) {
        at += left % in.shape[d] * in.stride[d];
        left /= in.shape[d];
      }
      reinterpret_cast<uint8_t*>(out.data)[i] = table[reinterpret_cast<const uint8_t*>(in.data)[at]];
    }
  }
};

}  // namespace stoker::own
