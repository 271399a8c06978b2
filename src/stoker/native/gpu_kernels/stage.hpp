// SPDX-License-Identifier: Apache-2.0
// Stages on a GPU: rows describe themselves, and one or a few launches compute the batch.
#pragma once
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "base/whole.hpp"
#include "gpu/gpu.hpp"
#include "gpu/tiered_function.hpp"
#include "kernels/stage.hpp"

namespace stoker {

// Compiled kernels of a stage, in the order of device/generate.py.
struct StageFunctions {
  std::shared_ptr<const gpu::Function> stage;    // stoker_stage
  std::shared_ptr<gpu::TieredFunction> tiered;   // instead of it, for a stage without an interpolator
  std::shared_ptr<const gpu::Function> weights;  // Resample: stoker_weights for the image's type
  std::shared_ptr<const gpu::Function> between;  // Resample: stoker_between
  // Resample of 8-bit images in one kernel: stoker_resampled, stoker_resampled_down (vertical pass first), and
  // stoker_words, which reads their results. Null: two kernels.
  std::shared_ptr<const gpu::Function> tiles, tiles_down, words;
  // The first two for planar images: stoker_resampled_planar, stoker_resampled_down_planar. Null: the stage asks for
  // pixels of such images.
  std::shared_ptr<const gpu::Function> planar_tiles, planar_down;
  std::shared_ptr<const gpu::Function> walk;          // Affine: stoker_walk
  std::shared_ptr<const gpu::Function> shifted;       // Affine that stores what it samples: stoker_shifted
  std::shared_ptr<const gpu::Function> pairs;         // Affine of 8-bit RGB: stoker_pairs. Null: pixel by pixel
  std::vector<std::pair<int32_t, int32_t>> uniforms;  // (uniform, pixel::Type) in the order of the generated code
};

namespace stage {

// Convert a uniform to the bits of the type in which it is used, as the CPU does.
inline uint64_t bits_of(double value, pixel::Type type) {
  uint64_t bits = 0;
  const auto put = [&](auto x) { std::memcpy(&bits, &x, sizeof x); };
  switch (type) {
    case pixel::Type::I32: put(static_cast<int32_t>(either_int64(value))); break;
    case pixel::Type::I64: put(either_int64(value)); break;
    case pixel::Type::F32: put(static_cast<float>(value)); break;
    case pixel::Type::F64: put(value); break;
  }
  return bits;
}

}  // namespace stage

}  // namespace stoker
