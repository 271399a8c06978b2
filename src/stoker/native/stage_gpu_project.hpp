// SPDX-License-Identifier: Apache-2.0
// The projective sampling in a stage on a GPU.
#pragma once
#include "stage_views.hpp"

namespace stoker::stage {

// Writes a row's ProjectSlot behind its Slot; nothing comes before the stage's own launches. False: *c.error says why.
bool describe_projection(const StageSpec& spec, const Call& c, const Views& v);

}  // namespace stoker::stage
