// SPDX-License-Identifier: Apache-2.0
// Definitions of `Emulation`. STOKER_EMULATION_INLINE is `inline`, or nothing in the one object that others link.
#include <algorithm>
#include <cstring>
#include <utility>

#include "cuda_emulation.hpp"

namespace stoker::gpu {

STOKER_EMULATION_INLINE Emulation Emulation::only_;
STOKER_EMULATION_INLINE EmulatedThreads* const EmulatedThreads::only_ = &Emulation::only_;
STOKER_EMULATION_INLINE Emulation::Emulation() = default;
STOKER_EMULATION_INLINE Emulation::~Emulation() = default;

STOKER_EMULATION_INLINE void Emulation::run(const std::function<void()>& kernel, uint32_t grid, uint32_t cta,
                                            uint32_t dynamic_bytes) {
  const std::lock_guard<std::mutex> hold(mutex_);
  dynamic_.assign((dynamic_bytes + 2 * kGuard + 15) / 16, {});
  dynamic_bytes_ = dynamic_bytes;
  dynamic_shared_ = dynamic_.data()->bytes + kGuard;
  kernel_ = &kernel;
  threads = cta;
  blocks = grid;
  std::vector<uint32_t> order(grid);
  for (uint32_t i = 0; i < grid; ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), random);
  for (const uint32_t b : order) {
    block = b;
    run_block();
  }
}

STOKER_EMULATION_INLINE bool EmulatedThreads::share(void* memory, size_t bytes) {
  Emulation& e = Emulation::instance();
  e.shared_.push_back({static_cast<uint8_t*>(memory), bytes});
  e.make_noise(e.shared_.back());
  return true;
}

STOKER_EMULATION_INLINE void EmulatedThreads::wait_block() { Emulation::instance().wait(Emulation::State::AtBlock); }
STOKER_EMULATION_INLINE void EmulatedThreads::wait_warp() { Emulation::instance().wait(Emulation::State::AtWarp); }

// Noise inside, a guard pattern around it.
STOKER_EMULATION_INLINE void Emulation::begin_dynamic() {
  auto* const all = dynamic_.data()->bytes;
  std::fill_n(all, dynamic_.size() * 16, kUntouched);
  make_noise({all + kGuard, dynamic_bytes_});
}

STOKER_EMULATION_INLINE void Emulation::end_dynamic() const {
  const auto* const all = dynamic_.data()->bytes;
  const auto touched = [](uint8_t x) { return x != kUntouched; };
  if (std::any_of(all, all + kGuard, touched) ||
      std::any_of(all + kGuard + dynamic_bytes_, all + dynamic_.size() * 16, touched))
    fail("a CTA writes outside of its dynamic shared memory");
}

STOKER_EMULATION_INLINE void Emulation::make_noise(const Memory& m) {
  size_t i = 0;
  for (; i + 4 <= m.bytes; i += 4) {
    const auto word = static_cast<uint32_t>(random());
    std::memcpy(m.at + i, &word, 4);
  }
  for (; i < m.bytes; ++i) m.at[i] = static_cast<uint8_t>(random());
}

// A random number below `limit`. The standard library's distributions take several times as long.
STOKER_EMULATION_INLINE uint32_t Emulation::below(uint32_t limit) {
  return static_cast<uint32_t>(uint64_t{static_cast<uint32_t>(random())} * limit >> 32);
}

STOKER_EMULATION_INLINE void Emulation::enter() {
  Emulation& e = instance();
  for (;;) {
    (*e.kernel_)();
    e.wait(State::Done);
  }
}

STOKER_EMULATION_INLINE void Emulation::wait(State state) {
  const uint32_t self = thread;
  fibers_[self].state = state;
  fibers_[self].place.change_to(main_);
  thread = self;
}

STOKER_EMULATION_INLINE void Emulation::run_block() {
  if (threads > kMostThreads) fail("a CTA has more than 1024 threads");
  fibers_.reserve(kMostThreads);  // a saved context may contain pointers into itself
  while (fibers_.size() < threads) {
    const size_t unused = fibers_.size() % kStaggers * kStagger;
    stacks_.emplace_back(new char[kStack]);
    fibers_.emplace_back().place.begin(stacks_.back().get(), kStack - unused, enter);
  }
  exchanged_.assign(size_t{2} * kWords * threads, 0);
  turns_taken_.assign(threads, 0);
  exchange_ = exchanged_.data();
  turns_ = turns_taken_.data();
  for (const Memory& m : shared_) make_noise(m);
  begin_dynamic();
  release(0, threads);
  for (;;) {
    ready_.clear();
    for (uint32_t t = 0; t < threads; ++t)
      if (fibers_[t].state == State::Ready) ready_.push_back(t);
    if (ready_.empty() && !release()) return end_dynamic();
    for (size_t i = ready_.size(); i > 1; --i) std::swap(ready_[i - 1], ready_[below(static_cast<uint32_t>(i))]);
    for (const uint32_t t : ready_) {
      thread = t;
      ++switches;
      main_.change_to(fibers_[t].place);
    }
  }
}

STOKER_EMULATION_INLINE uint32_t Emulation::count(uint32_t begin, uint32_t end, State state) const {
  uint32_t n = 0;
  for (uint32_t t = begin; t < end; ++t) n += fibers_[t].state == state;
  return n;
}

STOKER_EMULATION_INLINE void Emulation::release(uint32_t begin, uint32_t end) {
  for (uint32_t t = begin; t < end; ++t) fibers_[t].state = State::Ready;
}

// Resumes whole warps, or the whole CTA. False: all threads have finished.
STOKER_EMULATION_INLINE bool Emulation::release() {
  if (count(0, threads, State::Done) == threads) return false;
  bool any = false;
  for (uint32_t begin = 0; begin < threads; begin += kWarp) {
    const uint32_t end = std::min(begin + kWarp, threads), waiting = count(begin, end, State::AtWarp);
    if (waiting == end - begin) {
      release(begin, end);
      any = true;
    } else if (waiting) {
      fail("only some threads of a warp wait for the warp");
    }
  }
  if (any) return true;
  if (count(0, threads, State::AtBlock) != threads) fail("only some threads wait for the CTA");
  release(0, threads);
  return true;
}

STOKER_EMULATION_INLINE void Emulation::fail(const char* text) {
  std::fprintf(stderr, "emulation: %s\n", text);
  std::abort();
}

}  // namespace stoker::gpu
