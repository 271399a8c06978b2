// SPDX-License-Identifier: Apache-2.0
#include "torch_warp.hpp"

#include <algorithm>
#include <cmath>

#include "simd.hpp"

namespace stoker::torch_warp {

namespace {

constexpr int64_t kMaxChannels = 3;

template <bool kHardware, bool kLinear>
[[gnu::always_inline]] inline void rows(const View& src, const Grid& g, const Fill& fill, const View& dst) {
  const Bitmap from = bitmap_of(src);
  const Middle middle(from, g.projective, dst.shape[0], dst.shape[1]);
  for (int64_t j = 0; j < dst.shape[0]; ++j) {
    uint8_t* to = dst.data + j * dst.stride[0];
    const float* given = g.given ? g.given + 2 * j * dst.shape[1] : nullptr;
    for (int64_t i = 0; i < dst.shape[1]; ++i, to += dst.stride[1])
      sample_pixel<kHardware, kLinear>(from, g, middle, fill, given, i, j, to);
  }
}

template <bool kLinear>
void rows_plain(const View& src, const Grid& g, const Fill& fill, const View& dst) {
  rows<false, kLinear>(src, g, fill, dst);
}

#if defined(__x86_64__)
template <bool kLinear>
__attribute__((target("avx2,fma"))) void rows_avx2(const View& src, const Grid& g, const Fill& fill, const View& dst) {
  rows<true, kLinear>(src, g, fill, dst);
}
#endif

template <bool kLinear>
void run(const View& src, const Grid& g, const Fill& fill, const View& dst) {
#if defined(__x86_64__)
  if ((isa() == Isa::AVX2 || isa() == Isa::AVX512) && __builtin_cpu_supports("fma"))
    return rows_avx2<kLinear>(src, g, fill, dst);
#endif
  rows_plain<kLinear>(src, g, fill, dst);
}

}  // namespace

bool sample(const View& src, const Grid& grid, bool linear, const Fill& fill, const View& dst) {
  if (src.rank != 3 || dst.rank != 3 || src.dtype != DType::U8 || dst.dtype != DType::U8) return false;
  if (src.shape[2] != dst.shape[2] || src.shape[2] > kMaxChannels || dst.stride[2] != 1) return false;
  if (src.elements() == 0 || std::max(src.shape[0], src.shape[1]) > 1 << 24) return false;
  linear ? run<true>(src, grid, fill, dst) : run<false>(src, grid, fill, dst);
  return true;
}

}  // namespace stoker::torch_warp
