// SPDX-License-Identifier: Apache-2.0
// Operators with a kernel of their own on a GPU.
#pragma once
#include <memory>
#include <vector>

#include "gpu.hpp"

namespace stoker::gpu {

// `passes`: launched one after the other. A step's last numbers are the blocks of each pass for a row, then the bytes of
// device memory that a row needs between them; `numbers` counts all of its numbers.
std::shared_ptr<Kernel> make_own(std::vector<std::shared_ptr<const Function>> passes, int inputs, int outputs,
                                 int numbers);

}  // namespace stoker::gpu
