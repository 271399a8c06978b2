// SPDX-License-Identifier: Apache-2.0
// Preparation of a stage's views for a row, which is the same on every device.
#pragma once
#include <string>

#include "kernels/stage.hpp"
#include "resample/resample.hpp"

namespace stoker::stage {

// One row's views in the iteration space.
struct Views {
  View in[pixel::kMaxPorts], out[pixel::kMaxPorts];
};

// Declaration of a stage's tensors, and the check of its views, sampler and coordinates, which are the same on every
// device.
Ports ports_of(const StageSpec& spec);
void check(const StageSpec& spec, const StepFacts& step);

// Apply the stage's view operations. Return false with *error set if a window leaves its tensor, or if
// the outputs' iteration spaces differ.
bool take_views(const StageSpec& spec, const Call& call, Views* views);

// Broadcast the inputs from `first` on to the shape of the first output, and create the coordinates. Tables are only
// checked. Return false with *error set if an extent does not fit.
bool spread(const StageSpec& spec, const double* params, const View& shape, size_t first, View* in, std::string* error);

// Channels that a stage's program accesses, by port. Views with fewer channels are refused, because the kernels would
// read or write beyond their pixels.
struct Channels {
  explicit Channels(const pixel::Program& program);
  // Return false with *error set if a view lacks a channel.
  bool fit(const StageSpec& spec, const Views& views, std::string* error) const;

  int loaded[pixel::kMaxPorts] = {}, stored[pixel::kMaxPorts] = {};
};

// Compute the axes of a resampling stage; return false with *error set.
bool resample_axes(const StageSpec& spec, const double* params, const View& in, const View& out,
                   resample::Axis* vertical, resample::Axis* horizontal, std::string* error);

extern const char* const kCannotResample;
extern const char* const kCannotWarp;
extern const char* const kCannotProject;
extern const char* const kDivided;

}  // namespace stoker::stage
