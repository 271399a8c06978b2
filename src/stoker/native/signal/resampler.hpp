// SPDX-License-Identifier: Apache-2.0
// Filters of the audio resampler: positions of outputs are exact fractions, and every phase has weights of its own.
#pragma once
#include <cstdint>
#include <vector>

#include "shared/phases.hpp"
#include "shared/resample_filter.hpp"

namespace stoker::signal {

// `up` outputs for `down` inputs, in lowest terms.
struct Ratio {
  int64_t up, down;
};

constexpr int64_t kLargestTerm = int64_t{1} << 31;

// Return the fraction nearest to a ratio of two positive numbers, which is exact for whole numbers up to kLargestTerm.
Ratio ratio_of(double up, double down);

// Filter of a quality from 0 to 100.
struct Filter {
  double quality;
  // DALI's filter: a sinc with the input's band under a Hann window, so that a lower rate aliases.
  bool aliasing;
};

// Weights of the inputs around a position, `taps` for each of `phases` fractions of an input (and one more if they are
// interpolated). Tap `before` is the input at the whole part of the position.
struct Phases {
  int64_t taps, before, phases;
  bool interpolated;  // between two neighbouring phases: there are too many different ones
  std::vector<float> weights;

  int64_t rows() const { return phases + (interpolated ? 1 : 0); }
};

Phases phases_of(const Filter& filter, const Ratio& ratio);
// Return the same without the weights.
Phases layout_of(const Filter& filter, const Ratio& ratio);

// The same, and the function whose values are the weights.
struct ShapedLayout {
  Phases phases;
  SincShape shape;
};
ShapedLayout shaped_layout_of(const Filter& filter, const Ratio& ratio);

}  // namespace stoker::signal
