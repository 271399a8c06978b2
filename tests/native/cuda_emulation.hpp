// SPDX-License-Identifier: Apache-2.0
// Runs kernels without a GPU: one fiber per thread of a CTA. Threads run until they wait, in a new random order
// each time, so that a missing barrier becomes visible. A deadlock, or a barrier that only some threads of a warp or CTA
// reach, ends the program.
#pragma once
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

#include "cuda_threads.hpp"

namespace stoker::gpu {

// The saved context of a fiber. The portable swapcontext costs two system calls, and under a sanitizer it clears the
// shadow memory of the whole stack.
#if defined(__x86_64__)
class Place {
 public:
  void begin(char* stack, size_t bytes, void (*enter)()) {
    auto* top = reinterpret_cast<uint64_t*>(reinterpret_cast<uintptr_t>(stack + bytes) & ~uintptr_t{15});
    *--top = 0;  // where `enter` would return to, if it did
    *--top = reinterpret_cast<uintptr_t>(enter);
    for (int i = 0; i < 6; ++i) *--top = 0;
    top_ = top;
  }
  void change_to(const Place& other) { change(&top_, other.top_); }

 private:
  // Saves the callee-saved registers on the old stack, and restores them from the new one. A jump, because processors
  // predict that `ret` returns to the last call, which was made on another stack.
  [[gnu::naked, gnu::noinline]] static void change(void** from, void* to) {
    asm("pushq %rbp\n\tpushq %rbx\n\tpushq %r12\n\tpushq %r13\n\tpushq %r14\n\tpushq %r15\n\t"
        "movq %rsp, (%rdi)\n\tmovq %rsi, %rsp\n\t"
        "popq %r15\n\tpopq %r14\n\tpopq %r13\n\tpopq %r12\n\tpopq %rbx\n\tpopq %rbp\n\tpopq %rcx\n\tjmp *%rcx");
  }

  void* top_ = nullptr;
};
#else
class Place {
 public:
  void begin(char* stack, size_t bytes, void (*enter)()) {
    getcontext(&context_);
    context_.uc_stack.ss_sp = stack;
    context_.uc_stack.ss_size = bytes;
    context_.uc_link = nullptr;
    makecontext(&context_, enter, 0);
  }
  void change_to(const Place& other) { swapcontext(&context_, &other.context_); }

 private:
  ucontext_t context_;
};
#endif

class Emulation : public EmulatedThreads {
 public:
  static Emulation& instance() { return only_; }

  std::mt19937 random{1};
  uint64_t switches = 0;

  Emulation();
  ~Emulation();

  // One launch at a time, from all pipelines.
  void run(const std::function<void()>& kernel, uint32_t grid, uint32_t cta, uint32_t dynamic_bytes = 0);

 private:
  enum class State : uint8_t { Ready, AtBlock, AtWarp, Done };
  static constexpr size_t kStack = 256 << 10;
  // Stacks begin at the same place of a page. Without different distances from it, the parts that all threads use would
  // share a few sets of the caches. An odd number of cache lines, at most half a stack in all.
  static constexpr size_t kStagger = 9 * 64, kStaggers = 128;
  static constexpr uint32_t kMostThreads = 1024;

  static constexpr uint32_t kGuard = 64;  // bytes before and after dynamic shared memory that no kernel may write
  static constexpr uint8_t kUntouched = 0xA5;
  struct alignas(16) Sixteen {
    uint8_t bytes[16];
  };
  struct Memory {
    uint8_t* at;
    size_t bytes;
  };
  // A thread of one CTA after the other.
  struct Fiber {
    Place place;
    State state = State::Ready;
  };

  void begin_dynamic();
  void end_dynamic() const;
  void make_noise(const Memory& m);
  static void enter();
  void wait(State state);
  void run_block();
  uint32_t below(uint32_t limit);
  uint32_t count(uint32_t begin, uint32_t end, State state) const;
  void release(uint32_t begin, uint32_t end);
  bool release();
  [[noreturn]] static void fail(const char* text);

  friend class EmulatedThreads;

  static Emulation only_;
  std::mutex mutex_;
  const std::function<void()>* kernel_ = nullptr;
  std::vector<Memory> shared_;
  std::vector<Sixteen> dynamic_;
  uint32_t dynamic_bytes_ = 0;
  std::vector<Fiber> fibers_;
  std::vector<std::unique_ptr<char[]>> stacks_;
  std::vector<uint32_t> exchanged_, ready_;
  std::vector<uint8_t> turns_taken_;
  Place main_;
};

inline Emulation& emulation() { return Emulation::instance(); }

}  // namespace stoker::gpu

// Kernels that are compiled one by one link the definitions as an object (tests/cuda/emulated_launch.ipp).
#if !defined(STOKER_EMULATION_INLINE)
#define STOKER_EMULATION_INLINE inline
#include "cuda_emulation.ipp"
#endif
