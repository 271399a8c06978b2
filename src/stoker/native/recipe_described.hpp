// SPDX-License-Identifier: Apache-2.0
// A recipe as a GPU takes it: sizes, strides and memory of all its images.
#pragma once
#include <vector>

#include "cuda/recipe_slot.hpp"
#include "gpu.hpp"
#include "recipe.hpp"
#include "recipe_numbers.hpp"

namespace stoker::recipe::gpu {

// Describes a row, in memory that the device gets. `image`: what the first step makes ([H,W,C]), or the bytes of its
// Pixels; tables and outputs as the device finds them. Throws Bad for what is no recipe, and for images of 2^31 bytes or
// more, which the GPU has no form for.
Row describe(const std::vector<Written>& steps, const View& image, const std::vector<Table>& tables,
             const std::vector<View*>& outputs, stoker::gpu::RowMemory& memory);

}  // namespace stoker::recipe::gpu
