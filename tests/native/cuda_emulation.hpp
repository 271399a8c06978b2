// SPDX-License-Identifier: Apache-2.0
// Runs kernels without a GPU: one fiber per thread of a CTA. Threads run until they wait, in a new random order
// each time, so that a missing barrier becomes visible. A deadlock, or a barrier that only some threads of a warp or CTA
// reach, ends the program.
#pragma once
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

#define STOKER_KERNEL inline void
#define STOKER_SHARED(type, name)                                                                \
  static type name;                                                                              \
  static const bool name##_known = stoker::gpu::Emulation::instance().share(&name, sizeof name); \
  (void)name##_known
#define STOKER_CONSTANT inline const

namespace stoker::gpu {

constexpr uint32_t kWarp = 32;

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
  // Saves the callee-saved registers on the old stack, and restores them from the new one.
  [[gnu::naked, gnu::noinline]] static void change(void** from, void* to) {
    asm("pushq %rbp\n\tpushq %rbx\n\tpushq %r12\n\tpushq %r13\n\tpushq %r14\n\tpushq %r15\n\t"
        "movq %rsp, (%rdi)\n\tmovq %rsi, %rsp\n\t"
        "popq %r15\n\tpopq %r14\n\tpopq %r13\n\tpopq %r12\n\tpopq %rbx\n\tpopq %rbp\n\tret");
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

class Emulation {
 public:
  static Emulation& instance() { return only_; }

  std::mt19937 random{1};
  uint32_t thread = 0, threads = 0, block = 0, blocks = 0;
  uint64_t switches = 0;

  Emulation();
  ~Emulation();

  // One launch at a time, from all pipelines.
  void run(const std::function<void()>& kernel, uint32_t grid, uint32_t cta, uint32_t dynamic_bytes = 0);

  // Shared memory: noise at the start of each CTA.
  bool share(void* memory, size_t bytes);

  // The dynamic shared memory of each CTA, 16-byte aligned.
  uint8_t* dynamic_shared() { return dynamic_.data()->bytes + kGuard; }

  void wait_block() { wait(State::AtBlock); }
  void wait_warp() { wait(State::AtWarp); }
  uint32_t& exchange(uint32_t t) { return exchange_[t]; }
  std::array<uint32_t, 6>& operands(uint32_t t) { return operands_[t]; }

 private:
  enum class State : uint8_t { Ready, AtBlock, AtWarp, Done };
  static constexpr size_t kStack = 256 << 10;

  static constexpr uint32_t kGuard = 64;  // bytes before and after dynamic shared memory that no kernel may write
  static constexpr uint8_t kUntouched = 0xA5;
  struct alignas(16) Sixteen {
    uint8_t bytes[16];
  };
  struct Memory {
    uint8_t* at;
    size_t bytes;
  };
  // The threads of one CTA after the other.
  struct Fiber {
    Place place;
    std::unique_ptr<char[]> stack{new char[kStack]};
    State state = State::Ready;
  };

  void begin_dynamic();
  void end_dynamic() const;
  void make_noise(const Memory& m);
  static void enter();
  void wait(State state);
  void run_block();
  uint32_t count(uint32_t begin, uint32_t end, State state) const;
  void release(uint32_t begin, uint32_t end);
  bool release();
  [[noreturn]] static void fail(const char* text);

  static Emulation only_;
  std::mutex mutex_;
  const std::function<void()>* kernel_ = nullptr;
  std::vector<Memory> shared_;
  std::vector<Sixteen> dynamic_;
  uint32_t dynamic_bytes_ = 0;
  std::deque<Fiber> fibers_;
  std::vector<uint32_t> exchange_;
  std::vector<std::array<uint32_t, 6>> operands_;
  Place main_;
};

inline Emulation& emulation() { return Emulation::instance(); }

inline uint32_t thread_index() { return emulation().thread; }
inline uint32_t thread_count() { return emulation().threads; }
inline uint32_t block_index() { return emulation().block; }
inline uint32_t block_count() { return emulation().blocks; }
template <class T>
T* dynamic_shared() {
  return reinterpret_cast<T*>(emulation().dynamic_shared());
}
inline void block_barrier() { emulation().wait_block(); }
inline void warp_barrier() { emulation().wait_warp(); }

inline uint32_t shuffle_across(uint32_t v, uint32_t bits) {
  Emulation& e = emulation();
  e.exchange(e.thread) = v;
  e.wait_warp();
  const uint32_t result = e.exchange(e.thread ^ bits);
  e.wait_warp();
  return result;
}
inline uint32_t shuffle_up(uint32_t v, uint32_t lanes) {
  Emulation& e = emulation();
  const uint32_t self = e.thread, lane = self % kWarp;
  e.exchange(self) = v;
  e.wait_warp();
  const uint32_t result = lane >= lanes ? e.exchange(self - lanes) : v;
  e.wait_warp();
  return result;
}

inline uint32_t ballot(bool v) {
  Emulation& e = emulation();
  const uint32_t first = e.thread / kWarp * kWarp;
  e.exchange(e.thread) = v;
  e.wait_warp();
  uint32_t result = 0;
  for (uint32_t i = 0; i < kWarp && first + i < e.threads; ++i) result |= e.exchange(first + i) << i;
  e.wait_warp();
  return result;
}

inline uint32_t atomic_add(uint32_t* p, uint32_t v) {
  const uint32_t before = *p;
  *p += v;
  return before;
}
inline void atomic_min(uint32_t* p, uint32_t v) { *p = v < *p ? v : *p; }
inline void atomic_or(uint32_t* p, uint32_t v) { *p |= v; }
inline uint32_t funnel_left(uint32_t hi, uint32_t lo, uint32_t shift) {
  return shift % 32 ? hi << shift % 32 | lo >> (32 - shift % 32) : hi;
}
inline uint32_t funnel_right(uint32_t hi, uint32_t lo, uint32_t shift) {
  return shift % 32 ? lo >> shift % 32 | hi << (32 - shift % 32) : lo;
}
inline uint32_t choose_bytes(uint32_t a, uint32_t b, uint32_t selector) {
  uint32_t result = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t from = selector >> 4 * i & 7;
    result |= ((from < 4 ? a >> 8 * from : b >> 8 * (from - 4)) & 0xFF) << 8 * i;
  }
  return result;
}
inline uint32_t saturated_pair(int32_t first, int32_t second) {
  return static_cast<uint32_t>(std::clamp(first, 0, 255)) | static_cast<uint32_t>(std::clamp(second, 0, 255)) << 8;
}
inline uint32_t saturated_pair16(int32_t first, int32_t second) {
  return (static_cast<uint32_t>(std::clamp(first, -32768, 32767)) & 0xFFFF) |
         static_cast<uint32_t>(std::clamp(second, -32768, 32767)) << 16;
}
inline uint32_t saturated_four(int32_t a, int32_t b, int32_t c, int32_t d) {
  return saturated_pair(a, b) | saturated_pair(c, d) << 16;
}
inline uint32_t saturated_upper_four(int32_t a, int32_t b, int32_t c, int32_t d) {
  return saturated_four(a >> 16, b >> 16, c >> 16, d >> 16);
}
template <bool kSigned>
inline void multiply_bytes(int32_t (&sum)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  Emulation& e = emulation();
  const uint32_t self = e.thread, first = self / kWarp * kWarp, lane = self % kWarp;
  e.operands(self) = {a[0], a[1], a[2], a[3], b[0], b[1]};
  e.wait_warp();
  for (uint32_t i = 0; i < 4; ++i)
    for (uint32_t k = 0; k < 32; ++k) {
      const uint32_t t = k / 4 % 4, column = 2 * (lane % 4) + i % 2;
      const uint32_t w = e.operands(first + lane / 4 * 4 + t)[i / 2 + k / 16 * 2] >> 8 * (k % 4) & 0xFF;
      const uint32_t x = e.operands(first + column * 4 + t)[4 + k / 16] >> 8 * (k % 4) & 0xFF;
      sum[i] += (kSigned ? static_cast<int8_t>(w) : static_cast<int32_t>(w)) * static_cast<int32_t>(x);
    }
  e.wait_warp();
}
inline uint32_t swap_bytes(uint32_t v) { return __builtin_bswap32(v); }
inline uint32_t bits_set(uint32_t v) { return static_cast<uint32_t>(__builtin_popcount(v)); }
inline void load_if(bool wanted, const uint32_t* from, uint32_t& to) {
  if (wanted) to = *from;
}

}  // namespace stoker::gpu

// Kernels that are compiled one by one link the definitions as an object.
#if !defined(STOKER_EMULATION_LINKED)
#define STOKER_EMULATION_INLINE inline
#include "cuda_emulation.ipp"
#endif
