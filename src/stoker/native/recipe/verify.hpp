// SPDX-License-Identifier: Apache-2.0
// Validation of a whole recipe before its first step runs: the inputs of each step, its numbers, and its destination.
// Sizes follow from the numbers alone, so everything that a step relies on is known before there are pixels.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "recipe/numbers.hpp"
#include "recipe/recipe.hpp"

namespace stoker::recipe {

// Properties of an image that a step will create.
struct Form {
  int64_t height = 0, width = 0, channels = 0;
  bool floats = false;
  int64_t values() const { return height * width * channels; }
  int64_t bytes() const { return values() * (floats ? 4 : 1); }
};

constexpr int64_t kMaxBytes = int64_t{1} << 34;  // of an image
constexpr int64_t kMaxPasses = 16;               // of a blur

// Return the properties of each step's image. Throw InvalidRecipe for the first step that cannot run.
std::vector<Form> verify(const std::vector<RecordedStep>& steps, const std::vector<Table>& tables,
                         const std::vector<Output>& outputs);

}  // namespace stoker::recipe
