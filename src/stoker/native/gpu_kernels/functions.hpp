// SPDX-License-Identifier: Apache-2.0
// Compiled functions as arguments of GPU kernels' constructors.
#pragma once
#include <memory>
#include <vector>

#include "gpu/gpu.hpp"
#include "kernels/registry.hpp"

namespace stoker {

template <>
inline constexpr const char* registry::kPythonClass<gpu::Function> = "Function";

namespace gpu {
using Functions = std::vector<std::shared_ptr<const Function>>;
}

}  // namespace stoker
