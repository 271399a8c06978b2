// SPDX-License-Identifier: Apache-2.0
// Kernels on emulated threads, as the null device launches them. shared/device.cuh includes it instead of CUDA's keywords.
#pragma once
#include <utility>

#include "cuda_emulation.hpp"
#include "gpu/gpu.hpp"

namespace stoker::gpu {

// All parameters of a kernel are 64 bits wide.
template <class... Parameters>
void run_launch(void (*function)(Parameters...), const Launch& launch) {
  const auto call = [&]<size_t... I>(std::index_sequence<I...>) { function(launch.argument[I]...); };
  Emulation::instance().run([&] { call(std::index_sequence_for<Parameters...>{}); }, launch.grid[0], launch.block[0],
                            launch.shared_bytes);
}

}  // namespace stoker::gpu

// Exports kernel `body` in the form that the null device launches.
#define STOKER_EMULATED(name, body) \
  extern "C" void name(const stoker::gpu::Launch* launch) { stoker::gpu::run_launch(body, *launch); }
