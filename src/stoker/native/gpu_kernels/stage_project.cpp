// SPDX-License-Identifier: Apache-2.0
#include "gpu_kernels/stage_project.hpp"

#include <cstring>

#include "base/whole.hpp"
#include "gpu_kernels/stage_batch.hpp"
#include "warp/project.hpp"

namespace stoker::stage {

bool describe_projection(const StageSpec& spec, const Call& c, const Views& v) {
  ProjectSlot s{};
  for (size_t i = 0; i < 8; ++i) s.matrix[i] = c.params[spec.interpolator_params[i]];
  for (size_t i = 0; i < 4; ++i) s.fill[i] = saturated<uint8_t>(c.params[spec.interpolator_params[8 + i]]);
  View image = v.out[0];
  image.dtype = v.in[0].dtype;
  image.shape[2] = v.in[0].shape[2];
  if (v.in[0].elements() == 0 || !warp::can_project(v.in[0], s.matrix, true, warp::Sampling::Linear, image)) {
    *c.error = kCannotProject;
    return false;
  }
  s.source = source_of(v.in[0]);
  std::memcpy(c.slot + sizeof(Slot), &s, sizeof s);
  return true;
}

}  // namespace stoker::stage
