// SPDX-License-Identifier: Apache-2.0
// The primitives of device code. It compiles under NVRTC and nvcc, and as plain C++ for the host and for tests that
// emulate CUDA threads. Numbers are unsigned wherever they may wrap or are shifted.
#pragma once

#if defined(__CUDACC_RTC__)
namespace stoker {
using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned int;
using int64_t = long long;
using uint64_t = unsigned long long;
}  // namespace stoker
#else
#include <cstdint>
#endif

#if defined(__CUDACC__)

#define STOKER_DEVICE __device__ __forceinline__
#define STOKER_KERNEL extern "C" __global__ void
#define STOKER_SHARED(type, name) __shared__ type name  // uninitialised
#define STOKER_CONSTANT __constant__
#define STOKER_LAUNCH_BOUNDS(threads, blocks) __launch_bounds__(threads, blocks)
#define STOKER_CALLED static __noinline__  // not inlined, so that it gets registers of its own
#define STOKER_UNROLL _Pragma("unroll")
#define STOKER_NO_UNROLL _Pragma("unroll 1")

namespace stoker::gpu {

constexpr uint32_t kWarp = 32;
constexpr uint32_t kAllLanes = 0xFFFFFFFFu;

STOKER_DEVICE uint32_t thread_index() { return threadIdx.x; }
STOKER_DEVICE uint32_t thread_count() { return blockDim.x; }
STOKER_DEVICE uint32_t block_index() { return blockIdx.x; }
STOKER_DEVICE uint32_t block_count() { return gridDim.x; }
// The block's dynamic shared memory, 16-byte aligned; the launch defines its size.
template <class T>
STOKER_DEVICE T* dynamic_shared() {
  extern __shared__ __align__(16) unsigned char stoker_dynamic_shared[];
  return reinterpret_cast<T*>(stoker_dynamic_shared);
}
STOKER_DEVICE void block_barrier() { __syncthreads(); }
STOKER_DEVICE void warp_barrier() { __syncwarp(); }
// What this thread wrote before is visible to other blocks (CTAs) before what it writes after.
STOKER_DEVICE void device_fence() { __threadfence(); }
// Collectives: all lanes of the warp must take part.
STOKER_DEVICE uint32_t shuffle_up(uint32_t v, uint32_t lanes) { return __shfl_up_sync(kAllLanes, v, lanes); }
STOKER_DEVICE uint32_t shuffle_across(uint32_t v, uint32_t bits) {  // of the lane whose number differs in these bits
  return __shfl_xor_sync(kAllLanes, v, static_cast<int>(bits));
}
STOKER_DEVICE uint32_t ballot(bool v) { return __ballot_sync(kAllLanes, v); }
STOKER_DEVICE uint32_t atomic_add(uint32_t* p, uint32_t v) { return atomicAdd(p, v); }
STOKER_DEVICE void atomic_min(uint32_t* p, uint32_t v) { atomicMin(p, v); }
STOKER_DEVICE void atomic_or(uint32_t* p, uint32_t v) { atomicOr(p, v); }
// The upper 32 of the 64 bits hi:lo after a left shift by shift % 32.
STOKER_DEVICE uint32_t funnel_left(uint32_t hi, uint32_t lo, uint32_t shift) { return __funnelshift_l(lo, hi, shift); }
// The lower 32 of the 64 bits hi:lo after a right shift by shift % 32.
STOKER_DEVICE uint32_t funnel_right(uint32_t hi, uint32_t lo, uint32_t shift) { return __funnelshift_r(lo, hi, shift); }
// Return x. The compiler does not move the computation of x, such as a load, into the branch that uses it.
STOKER_DEVICE int32_t computed(int32_t x) {
  asm volatile("" : "+r"(x));
  return x;
}
STOKER_DEVICE float computed(float x) {
  asm volatile("" : "+f"(x));
  return x;
}
// Byte i of the result is byte n = (selector >> 4 i) % 8 of the pair: n from 0 to 3 selects from a, 4 to 7 from b.
STOKER_DEVICE uint32_t choose_bytes(uint32_t a, uint32_t b, uint32_t selector) { return __byte_perm(a, b, selector); }
// Return first | second << 8, each saturated to [0, 255].
STOKER_DEVICE uint32_t saturated_pair(int32_t first, int32_t second) {
  uint32_t pair;
  asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, 0;" : "=r"(pair) : "r"(second), "r"(first));
  return pair;
}
// Return first | second << 16, each saturated to [-32768, 32767].
STOKER_DEVICE uint32_t saturated_pair16(int32_t first, int32_t second) {
  uint32_t pair;
  asm("cvt.pack.sat.s16.s32 %0, %1, %2;" : "=r"(pair) : "r"(second), "r"(first));
  return pair;
}
// The same, each saturated to [0, 65535].
STOKER_DEVICE uint32_t saturated_unsigned_pair16(int32_t first, int32_t second) {
  uint32_t pair;
  asm("cvt.pack.sat.u16.s32 %0, %1, %2;" : "=r"(pair) : "r"(second), "r"(first));
  return pair;
}
// Return four bytes, the first one lowest, each saturated to [0, 255].
STOKER_DEVICE uint32_t saturated_four(int32_t a, int32_t b, int32_t c, int32_t d) {
  uint32_t upper, four;
  asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, 0;" : "=r"(upper) : "r"(d), "r"(c));
  asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(four) : "r"(b), "r"(a), "r"(upper));
  return four;
}
// The same, each saturated to [-128, 127].
STOKER_DEVICE uint32_t saturated_signed_four(int32_t a, int32_t b, int32_t c, int32_t d) {
  uint32_t upper, four;
  asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, 0;" : "=r"(upper) : "r"(d), "r"(c));
  asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;" : "=r"(four) : "r"(b), "r"(a), "r"(upper));
  return four;
}
// saturated_four for the upper halves of four words.
STOKER_DEVICE uint32_t saturated_upper_four(int32_t a, int32_t b, int32_t c, int32_t d) {
#if __CUDA_ARCH__ >= 900
  const uint32_t low = __byte_perm(static_cast<uint32_t>(a), static_cast<uint32_t>(b), 0x7632);
  const uint32_t high = __byte_perm(static_cast<uint32_t>(c), static_cast<uint32_t>(d), 0x7632);
  uint32_t first, second;
  asm("min.relu.s16x2 %0, %1, %2;" : "=r"(first) : "r"(low), "r"(0x00FF00FFu));
  asm("min.relu.s16x2 %0, %1, %2;" : "=r"(second) : "r"(high), "r"(0x00FF00FFu));
  return __byte_perm(first, second, 0x6420);
#else
  return saturated_four(a >> 16, b >> 16, c >> 16, d >> 16);
#endif
}
// sum += a b: a product of byte matrices in the register layout of mma.m16n8k32. All lanes take part. The bytes of b
// are unsigned; those of a are signed if kSigned is set.
template <bool kSigned>
STOKER_DEVICE void multiply_bytes(int32_t (&sum)[4], const uint32_t (&a)[4], const uint32_t (&b)[2]) {
  if constexpr (kSigned)
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
        "%3};"
        : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  else
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, "
        "%3};"
        : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// Return sum + a's two 16-bit numbers times two unsigned bytes of b, the lower or the upper ones. kSigned says whether
// the numbers are signed.
template <bool kSigned>
STOKER_DEVICE uint32_t dot_lower(uint32_t a, uint32_t b, uint32_t sum) {
  uint32_t result;
  if constexpr (kSigned) asm("dp2a.lo.s32.u32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
  else asm("dp2a.lo.u32.u32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
  return result;
}
template <bool kSigned>
STOKER_DEVICE uint32_t dot_upper(uint32_t a, uint32_t b, uint32_t sum) {
  uint32_t result;
  if constexpr (kSigned) asm("dp2a.hi.s32.u32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
  else asm("dp2a.hi.u32.u32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
  return result;
}
// Return sum + a's four signed bytes times b's unsigned ones.
STOKER_DEVICE uint32_t dot_bytes(uint32_t a, uint32_t b, uint32_t sum) {
  uint32_t result;
  asm("dp4a.s32.u32 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(sum));
  return result;
}
// Return the lower or the upper half of a word as a signed number.
STOKER_DEVICE int32_t signed_half(uint32_t word, bool upper) {
  int32_t result;
  asm("prmt.b32 %0, %1, 0, %2;" : "=r"(result) : "r"(word), "r"(upper ? 0xBB32u : 0x9910u));
  return result;
}
// Return the largest integer up to v, saturated, and 0 for NaN.
STOKER_DEVICE int32_t floor_to_int(float v) { return __float2int_rd(v); }
STOKER_DEVICE uint32_t bits_of(float v) { return __float_as_uint(v); }
// Make the compiler compute this address here. Of an address that an unrolled loop advances, it would otherwise compute
// all values first, which take the registers of loads in flight.
template <class T>
STOKER_DEVICE void compute_here(T*& address) {
  asm volatile("" : "+l"(address));
}
STOKER_DEVICE uint32_t swap_bytes(uint32_t v) { return __byte_perm(v, 0, 0x0123); }
STOKER_DEVICE uint32_t bits_set(uint32_t v) { return static_cast<uint32_t>(__popc(static_cast<int>(v))); }
// Equivalent to `if (wanted) to = *from;` for global memory. It is inline assembly because compilers load into another
// register and copy it immediately, which waits for the memory.
STOKER_DEVICE void load_if(bool wanted, const uint32_t* from, uint32_t& to) {
  asm volatile("{ .reg .pred p; setp.ne.u32 p, %2, 0; @p ld.global.u32 %0, [%1]; }"
               : "+r"(to)
               : "l"(from), "r"(static_cast<uint32_t>(wanted)));
}

}  // namespace stoker::gpu

#else

#define STOKER_DEVICE inline
#define STOKER_LAUNCH_BOUNDS(threads, blocks)
#define STOKER_CALLED inline
#define STOKER_UNROLL
#define STOKER_NO_UNROLL

#if defined(STOKER_EMULATION)  // a header that defines the rest: kernels, shared memory, collectives
#include STOKER_EMULATION
#endif

#endif
