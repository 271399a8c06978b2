// SPDX-License-Identifier: Apache-2.0
// Averages of a batch from those of its rows. Plain C++ for the CPU and for GPUs.
//
// The rows that take part are numbered without gaps. Row i is added to lane i % kLanes, and then the upper half of
// the lanes to the lower half until one lane is left, as in shared/reduce_fold.hpp.
#pragma once
#include "shared/device.cuh"

namespace stoker::pool {

constexpr int kLanes = 32;

// A row as the GPU reads it: the address of its averages, and how many numbers each of them is the average of.
struct Row {
  uint64_t averages;
  double count;
};

// Slot of a row on a GPU.
struct Slot {
  uint64_t out;           // address of the row's result; 0: there is none
  uint64_t table;         // address of the rows that take part
  int64_t rows, columns;  // number of them, and of their averages
  double left;            // divisor of the sum
  uint64_t is_wide;       // the averages are float64, else float32
};

// The average of no numbers is NaN, and is left out.
STOKER_DEVICE double term(double average, double count) { return count > 0 ? average * count : 0.0; }
STOKER_DEVICE double averaged(double sum, double left) { return left > 0 ? sum / left : 0.0; }

}  // namespace stoker::pool
