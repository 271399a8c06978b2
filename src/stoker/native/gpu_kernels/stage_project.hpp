// SPDX-License-Identifier: Apache-2.0
// Projective sampling of a stage on a GPU.
#pragma once
#include "kernels/stage_views.hpp"

namespace stoker::stage {

// Write a row's ProjectSlot after its Slot; there are no launches before the stage's own. Return false with the reason
// in *c.error.
bool describe_projection(const StageSpec& spec, const Call& c, const Views& v);

}  // namespace stoker::stage
