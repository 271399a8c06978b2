// SPDX-License-Identifier: Apache-2.0
#include "gpu_either.hpp"

#include <chrono>

#include "engine.hpp"

namespace stoker::gpu {

namespace {

// Evenly spread over [0, 1) whatever the keys are (the golden ratio's multiples).
double spread(uint64_t key) { return static_cast<double>((key * 0x9E3779B97F4A7C15u) >> 11) * 0x1p-53; }

}  // namespace

Outcome Either::run(const Call& call) const {
  if (call.on_host) return run_on_cpu(call, room_for(call), "the GPU gave it up");
  if (spread(call.job.keys[static_cast<size_t>(call.row)]) < cpu_share_) {
    // Shares are for speed: where there is no memory to send pixels in, the GPU makes them.
    uint8_t* room = nullptr;
    try {
      room = room_for(call);
    } catch (const std::bad_alloc&) {
      no_room_.fetch_add(1, std::memory_order_relaxed);
    }
    if (room) return run_on_cpu(call, room, "the CPU's share");
  }
  const Outcome outcome = on_gpu_->run(call);
  if (outcome == Outcome::Python) {
    const std::string reason = std::move(*call.error);
    call.error->clear();
    return run_on_cpu(call, room_for(call), reason);
  }
  if (outcome == Outcome::Ok) rows_on_gpu_.fetch_add(1, std::memory_order_relaxed);
  return outcome;
}

uint8_t* Either::room_for(const Call& call) const {
  const View& out = *call.out[0];
  return call.memory->host_room(static_cast<size_t>(out.elements() * size_of(out.dtype)));
}

Outcome Either::run_on_cpu(const Call& call, uint8_t* room, const std::string& reason) const {
  rows_on_cpu_.fetch_add(1, std::memory_order_relaxed);
  {
    std::lock_guard<std::mutex> hold(mutex_);
    ++reasons_[reason];
  }
  if (!on_gpu_->complete(call)) return Outcome::Error;
  View host = *call.out[0];
  host.device = false;
  host.planes = nullptr;
  host.data = room;
  host.set_contiguous_strides();
  View* out[] = {&host};
  Call here = call;
  here.in = call.host_in;
  here.out = out;
  here.slot = nullptr;
  const auto start = std::chrono::steady_clock::now();
  const Outcome outcome = on_cpu_->run(here);
  const std::chrono::nanoseconds spent = std::chrono::steady_clock::now() - start;
  cpu_ns_.fetch_add(static_cast<uint64_t>(spent.count()), std::memory_order_relaxed);
  // Also where Python is to fill it: the device gets what will be there when the batch is sent.
  *call.out[0] = host;
  return outcome == Outcome::Ok ? Outcome::OnHost : outcome;
}

Verdict Either::judge(const uint8_t* report, int64_t row, const uint8_t* slot, std::string* error) const {
  const Verdict verdict = on_gpu_->judge(report, row, slot, error);
  if (verdict == Verdict::Redo) rows_on_gpu_.fetch_sub(1, std::memory_order_relaxed);
  return verdict;
}

std::map<std::string, int64_t> Either::reasons() const {
  std::lock_guard<std::mutex> hold(mutex_);
  return reasons_;
}

}  // namespace stoker::gpu
