// SPDX-License-Identifier: Apache-2.0
// Definitions that every library of emulated kernels links, compiled once.
#pragma once
#define STOKER_EMULATION_INLINE
#include "cuda_emulation.ipp"
#include "emulated_launch.hpp"
#include "gpu/gpu.hpp"

namespace stoker::gpu {

void run_launch(void (*kernel)(const uint64_t* arguments), const void* launch) {
  const auto& l = *static_cast<const Launch*>(launch);
  Emulation::instance().run([&] { kernel(l.argument); }, l.grid[0], l.block[0], l.shared_bytes);
}

}  // namespace stoker::gpu
