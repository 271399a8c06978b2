// SPDX-License-Identifier: Apache-2.0
// Tiered compilation: an interpreter runs a kernel's work until the kernel itself is compiled.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "gpu/gpu.hpp"

namespace stoker::gpu {

class TieredFunction : public std::enable_shared_from_this<TieredFunction> {
 public:
  // `limits`: ascending numbers of lanes after which the function is requested.
  TieredFunction(std::shared_ptr<const Function> interpreter, std::vector<int64_t> limits)
      : interpreter_(std::move(interpreter)), limits_(std::move(limits)) {}
  TieredFunction(const TieredFunction&) = delete;
  TieredFunction& operator=(const TieredFunction&) = delete;
  virtual ~TieredFunction() = default;

  const Function* interpreter() const { return interpreter_.get(); }
  // Return the compiled function, or null while there is none.
  const Function* compiled() const { return ready_.load(std::memory_order_acquire); }
  // Set the compiled function. Later calls have no effect, because launches may use the first one.
  void set_compiled(std::shared_ptr<const Function> compiled) {
    const std::lock_guard lock(mutex_);
    if (compiled_) return;
    compiled_ = std::move(compiled);
    ready_.store(compiled_.get(), std::memory_order_release);
  }
  // Count lanes that the interpreter computes. Return the largest limit that this call exceeds, if it exceeds any.
  std::optional<int64_t> count(int64_t lanes) const {
    const int64_t before = lanes_.fetch_add(lanes, std::memory_order_relaxed);
    std::optional<int64_t> exceeded;
    for (const int64_t limit : limits_)
      if (before <= limit && before + lanes > limit) exceeded = limit;
    return exceeded;
  }
  // Begin to load or compile the function, after `limit` lanes, and return. Threads of the engine call this, without
  // locks.
  virtual void request(int64_t limit) const = 0;

 private:
  const std::shared_ptr<const Function> interpreter_;
  const std::vector<int64_t> limits_;
  mutable std::atomic<int64_t> lanes_{0};
  std::mutex mutex_;
  std::shared_ptr<const Function> compiled_;
  std::atomic<const Function*> ready_{nullptr};
};

}  // namespace stoker::gpu
