// SPDX-License-Identifier: Apache-2.0
// Stages on a GPU: rows describe themselves, one or a few launches do the batch.
#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "gpu.hpp"
#include "kernels.hpp"

namespace stoker {

// The compiled kernels of a stage, as device/generate.py makes them.
struct StageFunctions {
  std::shared_ptr<const gpu::Function> stage;    // stoker_stage
  std::shared_ptr<const gpu::Function> weights;  // Resample: stoker_weights of the image's type
  std::shared_ptr<const gpu::Function> between;  // Resample: stoker_between
  // Resample of 8-bit images: stoker_resampled, stoker_resampled_down, where the vertical pass is first, and stoker_words,
  // which takes what they make. None: in two kernels.
  std::shared_ptr<const gpu::Function> tiles, tiles_down, words;
  // The first two of images in component planes: stoker_resampled_planar, stoker_resampled_down_planar. None: pixels of
  // such images are asked for.
  std::shared_ptr<const gpu::Function> planar_tiles, planar_down;
  std::shared_ptr<const gpu::Function> walk;     // Affine: stoker_walk
  std::shared_ptr<const gpu::Function> pairs;    // Affine of 8-bit RGB: stoker_pairs. None: pixel by pixel
  std::vector<std::pair<int32_t, int32_t>> uniforms;  // (uniform, pixel::Type) in the order of the generated code
};

std::shared_ptr<gpu::Kernel> make_gpu_stage(StageSpec spec, StageFunctions functions);

}  // namespace stoker
