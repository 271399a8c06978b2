// SPDX-License-Identifier: Apache-2.0
// Stages whose program the GPU's interpreter runs.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "pixel/pixel.hpp"

namespace stoker::stage {

// Return the program as the interpreter reads it (shared/interpreted_program.hpp). `uniforms` are the row's uniforms in
// their order in its descriptor: (number, pixel::Type). Throws std::invalid_argument if the program is too long or
// `uniforms` lacks one.
std::vector<uint8_t> interpreted_program(const pixel::Program& program,
                                         const std::vector<std::pair<int32_t, int32_t>>& uniforms);

}  // namespace stoker::stage
