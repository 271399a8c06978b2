// SPDX-License-Identifier: Apache-2.0
// Copies between memory layouts: slices, flips, transposes, and channels that are split or interleaved.
#pragma once
#include "pixel/kernels.hpp"
#include "pixel/pixel.hpp"

namespace stoker::pixel {

// Copy `from` into `to`. Both have one shape and elements of one size, any strides, and no memory in common.
void copy(const View& from, const View& to);

// Run a program that only moves elements as copies between its views. Return false, and write nothing, if the program
// computes, or if an output is an input.
bool run_as_copies(const Program& program, const View* inputs, const View* outputs);

// Return whether the program's only output is its first input, with the same elements and, of a channelled program, `channels`
// channels in the same order.
bool keeps_first_input(const Program& program, int64_t channels);

}  // namespace stoker::pixel
