// SPDX-License-Identifier: Apache-2.0
// What the kernels for CPU and GPU that average over the rows of a batch have in common. Parameters of a row: the
// numbers that each of its averages is the average of, and what is subtracted from their sum over all rows.
#pragma once
#include "plan/plan.hpp"

namespace stoker::pool {

Ports ports();
// Return whether the averages of all rows have the same extents and are contiguous; else `error` of the call says why.
bool is_alike(const CombineCall& call);
// Return what the sum over all rows is divided by.
double divisor(const CombineCall& call);

}  // namespace stoker::pool
