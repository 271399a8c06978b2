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
  static Emulation& instance() {
    static Emulation emulation;
    return emulation;
  }

  std::mt19937 random{1};
  uint32_t thread = 0, threads = 0, block = 0, blocks = 0;
  uint64_t switches = 0;

  // One launch at a time, from all pipelines.
  void run(const std::function<void()>& kernel, uint32_t grid, uint32_t cta, uint32_t dynamic_bytes = 0) {
    const std::lock_guard<std::mutex> hold(mutex_);
    dynamic_.assign((dynamic_bytes + 2 * kGuard + 15) / 16, {});
    dynamic_bytes_ = dynamic_bytes;
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

  // Shared memory: noise at the start of each CTA.
  bool share(void* memory, size_t bytes) {
    shared_.push_back({static_cast<uint8_t*>(memory), bytes});
    make_noise(shared_.back());
    return true;
  }

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
  // Noise inside, a guard pattern around it.
  void begin_dynamic() {
    auto* const all = dynamic_.data()->bytes;
    std::fill_n(all, dynamic_.size() * 16, kUntouched);
    make_noise({all + kGuard, dynamic_bytes_});
  }
  void end_dynamic() const {
    const auto* const all = dynamic_.data()->bytes;
    const auto touched = [](uint8_t x) { return x != kUntouched; };
    if (std::any_of(all, all + kGuard, touched) ||
        std::any_of(all + kGuard + dynamic_bytes_, all + dynamic_.size() * 16, touched))
      fail("a CTA writes outside of its dynamic shared memory");
  }

  struct Memory {
    uint8_t* at;
    size_t bytes;
  };
  void make_noise(const Memory& m) {
    for (size_t i = 0; i < m.bytes; ++i) m.at[i] = static_cast<uint8_t>(random());
  }

  // The threads of one CTA after the other.
  struct Fiber {
    Place place;
    std::unique_ptr<char[]> stack{new char[kStack]};
    State state = State::Ready;
  };

  static void enter() {
    Emulation& e = instance();
    for (;;) {
      (*e.kernel_)();
      e.wait(State::Done);
    }
  }

  void wait(State state) {
    const uint32_t self = thread;
    fibers_[self].state = state;
    fibers_[self].place.change_to(main_);
    thread = self;
  }

  void run_block() {
    while (fibers_.size() < threads) {
      Fiber& f = fibers_.emplace_back();
      f.place.begin(f.stack.get(), kStack, enter);
    }
    exchange_.assign(threads, 0);
    operands_.assign(threads, {});
    for (const Memory& m : shared_) make_noise(m);
    begin_dynamic();
    release(0, threads);
    std::vector<uint32_t> ready;
    for (;;) {
      ready.clear();
      for (uint32_t t = 0; t < threads; ++t)
        if (fibers_[t].state == State::Ready) ready.push_back(t);
      if (ready.empty() && !release()) return end_dynamic();
      std::shuffle(ready.begin(), ready.end(), random);
      for (const uint32_t t : ready) {
        thread = t;
        ++switches;
        main_.change_to(fibers_[t].place);
      }
    }
  }

  uint32_t count(uint32_t begin, uint32_t end, State state) const {
    uint32_t n = 0;
    for (uint32_t t = begin; t < end; ++t) n += fibers_[t].state == state;
    return n;
  }

  void release(uint32_t begin, uint32_t end) {
    for (uint32_t t = begin; t < end; ++t) fibers_[t].state = State::Ready;
  }

  // Resumes whole warps, or the whole CTA. False: all threads have finished.
  bool release() {
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

  [[noreturn]] static void fail(const char* text) {
    std::fprintf(stderr, "emulation: %s\n", text);
    std::abort();
  }

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
