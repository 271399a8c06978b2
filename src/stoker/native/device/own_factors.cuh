// SPDX-License-Identifier: Apache-2.0
// Tables of transforms whose points differ by row: the numbers of signal/tables.cpp, made by the GPU.
#pragma once
#include "device/own.cuh"
#include "shared/fft_factors.hpp"

namespace stoker::own {

constexpr int64_t kFactors = 1024;  // of a block; also in ops/audio/_signals.py

// Write the factors of a block, all but the filter of Bluestein's algorithm.
inline void write_factors(const fft::Plan& plan, uint32_t block, float* table) {
  const int64_t begin = block * kFactors, all = plan.filter / 2, end = begin + kFactors < all ? begin + kFactors : all;
  for (int64_t i = begin + gpu::thread_index(); i < end; i += gpu::thread_count()) {
    const fft::Factor x = fft::factor_of(plan, static_cast<int32_t>(i));
    table[2 * i] = static_cast<float>(x.re);
    table[2 * i + 1] = static_cast<float>(x.im);
  }
}

// Write the filter of Bluestein's algorithm with one block. `memory`: 4 * plan.length doubles.
inline void write_filter(const fft::Plan& plan, double* memory, float* table) {
  const int32_t size = plan.length, half = size / 2;
  double *re = memory, *im = re + size, *to_re = im + size, *to_im = to_re + size;
  const auto first = static_cast<int32_t>(gpu::thread_index()), step = static_cast<int32_t>(gpu::thread_count());
  for (int32_t i = first; i < size; i += step) {
    const fft::Factor x = fft::chirp_filter(plan, i);
    re[i] = x.re;
    im[i] = x.im;
  }
  gpu::block_barrier();
  const auto exchange = [](double*& a, double*& b) {
    double* const c = a;
    a = b;
    b = c;
  };
  for (int32_t blocks = 1; blocks < size; blocks *= 2) {
    for (int32_t i = first; i < half; i += step)
      fft::double_pair(i, half, blocks, fft::pair_factor(i, half, blocks), re, im, to_re, to_im);
    gpu::block_barrier();
    exchange(re, to_re);
    exchange(im, to_im);
  }
  float* const to = table + plan.filter;
  for (int32_t i = first; i < size; i += step) {
    to[2 * i] = static_cast<float>(re[i]);
    to[2 * i + 1] = static_cast<float>(im[i]);
  }
}

}  // namespace stoker::own
