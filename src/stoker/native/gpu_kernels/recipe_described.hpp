// SPDX-License-Identifier: Apache-2.0
// Descriptor of a recipe for the GPU: sizes, strides and memory of all its images.
#pragma once
#include <vector>

#include "gpu/gpu.hpp"
#include "recipe/numbers.hpp"
#include "recipe/recipe.hpp"
#include "shared/recipe_slot.hpp"

namespace stoker::recipe::gpu {

// Describe a row, in memory that is sent to the device. `image` is the result of the first step ([H,W,C]), or the bytes
// of its Pixels; tables and outputs have device addresses. Throw InvalidRecipe for an invalid recipe, and for images of
// 2^31 bytes or more, which the GPU has no form for.
Row describe(const std::vector<RecordedStep>& steps, const View& image, const std::vector<Table>& tables,
             const std::vector<View*>& outputs, stoker::gpu::RowMemory& memory);

}  // namespace stoker::recipe::gpu
