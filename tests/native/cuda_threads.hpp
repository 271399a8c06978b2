// SPDX-License-Identifier: Apache-2.0
// What kernels on emulated threads need of the emulation (cuda_emulation.hpp). It includes almost nothing, because
// hundreds of kernels are compiled one by one.
#pragma once
#include <cstddef>
#include <cstdint>

#define STOKER_KERNEL inline void
#define STOKER_SHARED(type, name)                                                                      \
  static type name;                                                                                    \
  static const bool name##_known = stoker::gpu::EmulatedThreads::instance().share(&name, sizeof name); \
  (void)name##_known
#define STOKER_CONSTANT inline const

namespace stoker::gpu {

constexpr uint32_t kWarp = 32;

// The threads of the CTA that runs.
class EmulatedThreads {
 public:
  static EmulatedThreads& instance() { return *only_; }

  uint32_t thread = 0, threads = 0, block = 0, blocks = 0;

  // Shared memory: noise at the start of each CTA.
  bool share(void* memory, size_t bytes);

  // The dynamic shared memory of each CTA, 16-byte aligned.
  uint8_t* dynamic_shared() { return dynamic_shared_; }

  void wait_block();
  void wait_warp();

  // Gives words of this thread to its warp, waits, and returns where those of thread t are, at `kWords` * t. Threads
  // alternate between two buffers, so that one wait is enough: no thread writes a buffer again before all threads of its
  // warp have come to the next exchange.
  static constexpr uint32_t kWords = 6;
  const uint32_t* give(const uint32_t* words, uint32_t count) {
    uint32_t* const buffer = exchange_ + (turns_[thread]++ & 1) * threads * kWords;
    for (uint32_t i = 0; i < count; ++i) buffer[kWords * thread + i] = words[i];
    wait_warp();
    return buffer;
  }

 protected:
  uint8_t* dynamic_shared_ = nullptr;
  uint32_t* exchange_ = nullptr;  // two buffers of `kWords` words per thread
  uint8_t* turns_ = nullptr;      // exchanges of each thread

 private:
  static EmulatedThreads* const only_;
};

inline uint32_t thread_index() { return EmulatedThreads::instance().thread; }
inline uint32_t thread_count() { return EmulatedThreads::instance().threads; }
inline uint32_t block_index() { return EmulatedThreads::instance().block; }
inline uint32_t block_count() { return EmulatedThreads::instance().blocks; }
template <class T>
T* dynamic_shared() {
  return reinterpret_cast<T*>(EmulatedThreads::instance().dynamic_shared());
}
inline void block_barrier() { EmulatedThreads::instance().wait_block(); }
inline void device_fence() {}  // blocks run one after another
inline void warp_barrier() { EmulatedThreads::instance().wait_warp(); }

inline uint32_t shuffle_across(uint32_t v, uint32_t bits) {
  EmulatedThreads& e = EmulatedThreads::instance();
  return e.give(&v, 1)[EmulatedThreads::kWords * (e.thread ^ bits)];
}
inline uint32_t shuffle_up(uint32_t v, uint32_t lanes) {
  EmulatedThreads& e = EmulatedThreads::instance();
  const uint32_t* const given = e.give(&v, 1);
  return e.thread % kWarp >= lanes ? given[EmulatedThreads::kWords * (e.thread - lanes)] : v;
}
inline int32_t floor_to_int(float v) {
  constexpr float kLimit = 2147483648.0f;
  if (v != v) return 0;
  return v < -kLimit ? INT32_MIN : v >= kLimit ? INT32_MAX : static_cast<int32_t>(__builtin_floorf(v));
}

inline uint32_t ballot(bool v) {
  EmulatedThreads& e = EmulatedThreads::instance();
  const uint32_t first = e.thread / kWarp * kWarp;
  const uint32_t word = v;
  const uint32_t* const given = e.give(&word, 1);
  uint32_t result = 0;
  for (uint32_t i = 0; i < kWarp && first + i < e.threads; ++i)
    result |= given[EmulatedThreads::kWords * (first + i)] << i;
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
inline int32_t computed(int32_t x) { return x; }
inline float computed(float x) { return x; }
inline uint32_t choose_bytes(uint32_t a, uint32_t b, uint32_t selector) {
  uint32_t result = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    const uint32_t from = selector >> 4 * i & 7;
    result |= ((from < 4 ? a >> 8 * from : b >> 8 * (from - 4)) & 0xFF) << 8 * i;
  }
  return result;
}
template <bool kSigned>
uint32_t dot_lower(uint32_t a, uint32_t b, uint32_t sum) {
  const auto half = [&](uint32_t i) {
    const uint32_t v = a >> 16 * i & 0xFFFF;
    return kSigned ? static_cast<uint32_t>(static_cast<int16_t>(v)) : v;
  };
  return sum + half(0) * (b & 0xFF) + half(1) * (b >> 8 & 0xFF);
}
template <bool kSigned>
uint32_t dot_upper(uint32_t a, uint32_t b, uint32_t sum) {
  return dot_lower<kSigned>(a, b >> 16, sum);
}
inline uint32_t dot_bytes(uint32_t a, uint32_t b, uint32_t sum) {
  for (uint32_t i = 0; i < 4; ++i) sum += static_cast<uint32_t>(static_cast<int8_t>(a >> 8 * i)) * (b >> 8 * i & 0xFF);
  return sum;
}
inline int32_t signed_half(uint32_t word, bool upper) { return static_cast<int16_t>(upper ? word >> 16 : word); }
inline uint32_t bits_of(float v) {
  uint32_t bits;
  __builtin_memcpy(&bits, &v, sizeof bits);
  return bits;
}
inline uint32_t saturated(int32_t v, int32_t lowest, int32_t highest) {
  return static_cast<uint32_t>(v < lowest ? lowest : v > highest ? highest : v);
}
inline uint32_t saturated_pair(int32_t first, int32_t second) {
  return saturated(first, 0, 255) | saturated(second, 0, 255) << 8;
}
inline uint32_t saturated_pair16(int32_t first, int32_t second) {
  return (saturated(first, -32768, 32767) & 0xFFFF) | saturated(second, -32768, 32767) << 16;
}
inline uint32_t saturated_unsigned_pair16(int32_t first, int32_t second) {
  return saturated(first, 0, 65535) | saturated(second, 0, 65535) << 16;
}
inline uint32_t saturated_four(int32_t a, int32_t b, int32_t c, int32_t d) {
  return saturated_pair(a, b) | saturated_pair(c, d) << 16;
}
inline uint32_t saturated_signed_four(int32_t a, int32_t b, int32_t c, int32_t d) {
  return (saturated(a, -128, 127) & 0xFF) | (saturated(b, -128, 127) & 0xFF) << 8 |
         (saturated(c, -128, 127) & 0xFF) << 16 | saturated(d, -128, 127) << 24;
}
inline uint32_t saturated_upper_four(int32_t a, int32_t b, int32_t c, int32_t d) {
  return saturated_four(a >> 16, b >> 16, c >> 16, d >> 16);
}
template <bool kSigned>
inline void multiply_bytes(int32_t (&sum)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  EmulatedThreads& e = EmulatedThreads::instance();
  const uint32_t first = e.thread / kWarp * kWarp, lane = e.thread % kWarp;
  const uint32_t own[EmulatedThreads::kWords] = {a[0], a[1], a[2], a[3], b[0], b[1]};
  const uint32_t* const given = e.give(own, EmulatedThreads::kWords);
  for (uint32_t i = 0; i < 4; ++i)
    for (uint32_t k = 0; k < 32; ++k) {
      const uint32_t t = k / 4 % 4, column = 2 * (lane % 4) + i % 2;
      const uint32_t w =
          given[EmulatedThreads::kWords * (first + lane / 4 * 4 + t) + i / 2 + k / 16 * 2] >> 8 * (k % 4) & 0xFF;
      const uint32_t x = given[EmulatedThreads::kWords * (first + column * 4 + t) + 4 + k / 16] >> 8 * (k % 4) & 0xFF;
      sum[i] += (kSigned ? static_cast<int8_t>(w) : static_cast<int32_t>(w)) * static_cast<int32_t>(x);
    }
}
template <class T>
void compute_here(T*&) {}
inline uint32_t swap_bytes(uint32_t v) { return __builtin_bswap32(v); }
inline uint32_t bits_set(uint32_t v) { return static_cast<uint32_t>(__builtin_popcount(v)); }
inline void load_if(bool wanted, const uint32_t* from, uint32_t& to) {
  if (wanted) to = *from;
}

}  // namespace stoker::gpu
