// SPDX-License-Identifier: Apache-2.0
// Kernels on emulated threads, as the null device launches them. shared/device.cuh includes it instead of CUDA's keywords.
#pragma once
#include <utility>

#include "cuda_threads.hpp"

namespace stoker::gpu {

// Runs a kernel for a `Launch`. The definition is in an object of its own (emulated_launch.ipp).
void run_launch(void (*kernel)(const uint64_t* arguments), const void* launch);

// All parameters of a kernel are 64 bits wide.
template <auto kFunction>
struct EmulatedKernel;
template <class... Parameters, void (*kFunction)(Parameters...)>
struct EmulatedKernel<kFunction> {
  static void run(const uint64_t* arguments) { run(arguments, std::index_sequence_for<Parameters...>{}); }
  template <size_t... I>
  static void run(const uint64_t* arguments, std::index_sequence<I...>) {
    kFunction(arguments[I]...);
  }
};

}  // namespace stoker::gpu

// Exports kernel `body` in the form that the null device launches.
#define STOKER_EMULATED(name, body) \
  extern "C" void name(const void* launch) { stoker::gpu::run_launch(stoker::gpu::EmulatedKernel<body>::run, launch); }
