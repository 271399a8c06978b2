// SPDX-License-Identifier: Apache-2.0
// What a stage does with a row's views before it computes anything, the same on every device.
#pragma once
#include <string>

#include "kernels.hpp"
#include "resample.hpp"

namespace stoker::stage {

// One row's views in the iteration space.
struct Views {
  View in[pixel::kMaxPorts], out[pixel::kMaxPorts];
};

// Applies the stage's view operations. False, with *error set: a window leaves its tensor.
bool take_views(const StageSpec& spec, const Call& call, Views* views);

// Inputs from `first` on take the shape of the first output. False, with *error set: an extent does not fit.
bool spread(const StageSpec& spec, const View& shape, size_t first, View* in, std::string* error);

// The channels that a stage's program names, by port. A view that has fewer is refused: the kernels would read or write
// beyond its pixels.
struct Channels {
  explicit Channels(const pixel::Program& program);
  // False, with *error set: a view lacks a channel.
  bool fit(const StageSpec& spec, const Views& views, std::string* error) const;

  int loaded[pixel::kMaxPorts] = {}, stored[pixel::kMaxPorts] = {};
};

// The axes of a resampling stage, or false with *error set.
bool resample_axes(const StageSpec& spec, const double* params, const View& in, const View& out,
                   resample::Axis* vertical, resample::Axis* horizontal, std::string* error);

extern const char* const kCannotResample;
extern const char* const kCannotWarp;
extern const char* const kCannotProject;
extern const char* const kDivided;

}  // namespace stoker::stage
