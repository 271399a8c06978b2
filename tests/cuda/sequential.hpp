// SPDX-License-Identifier: Apache-2.0
// Kernels whose threads never meet, as plain C++: a launch runs all threads one after the other. Included by device.cuh
// in place of CUDA's words.
#pragma once
#include <cstdint>
#include <utility>

#include "gpu.hpp"

#define STOKER_KERNEL static void

namespace stoker::gpu {

struct Position {
  uint32_t thread = 0, threads = 0, block = 0, blocks = 0;
};
inline Position position;

inline uint32_t thread_index() { return position.thread; }
inline uint32_t thread_count() { return position.threads; }
inline uint32_t block_index() { return position.block; }
inline uint32_t block_count() { return position.blocks; }

// Runs a launch of `function`, all of whose parameters are 64 bits wide.
template <class... Parameters>
void run_launch(void (*function)(Parameters...), const Launch& launch) {
  const auto call = [&]<size_t... I>(std::index_sequence<I...>) { function(launch.argument[I]...); };
  position.threads = launch.block[0];
  position.blocks = launch.grid[0];
  for (position.block = 0; position.block < position.blocks; ++position.block)
    for (position.thread = 0; position.thread < position.threads; ++position.thread)
      call(std::index_sequence_for<Parameters...>{});
}

}  // namespace stoker::gpu

// Shows kernel `body` as what the null device launches.
#define STOKER_EMULATED(name, body) \
  extern "C" void name(const stoker::gpu::Launch* launch) { stoker::gpu::run_launch(body, *launch); }
