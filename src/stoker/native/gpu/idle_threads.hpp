// SPDX-License-Identifier: Apache-2.0
// Threads without work that may take part in the work of another one.
#pragma once
#include <functional>

namespace stoker::gpu {

class IdleThreads {
 public:
  // Call `work` on this thread, and on threads that have nothing else to do until it has returned once. Return when all
  // calls have. `work` must not throw.
  virtual void share(const std::function<void()>& work) = 0;

 protected:
  ~IdleThreads() = default;
};

}  // namespace stoker::gpu
