// SPDX-License-Identifier: Apache-2.0
// Recipes as a step of a plan, on the CPU and on a GPU.
//
// Inputs: an image that is there already ([H,W,C], what the recipe's Decode would make), or the bytes of its Pixels; the
// recipe; its tables. The recipe, float64: how many tables there are, for each (first byte, bytes of a value, channels),
// then its steps. Store and Patch name the step's outputs, which are bytes of a fixed size.
#pragma once
#include <memory>

#include "gpu.hpp"
#include "plan.hpp"

namespace stoker::recipe {

std::shared_ptr<Kernel> make_kernel(int outputs);
std::shared_ptr<stoker::gpu::Kernel> make_gpu_kernel(std::shared_ptr<const stoker::gpu::Function> function, int outputs);

}  // namespace stoker::recipe
