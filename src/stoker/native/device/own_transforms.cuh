// SPDX-License-Identifier: Apache-2.0
// Transforms of the frames of a block, with the butterflies of a pass divided over its threads: the common part of the
// kernels that take any number of points.
#pragma once
#include "device/own.cuh"
#include "shared/fft.hpp"

namespace stoker::own {

struct FramePoint {
  float re, im;
};

// Complex numbers of one frame. Elements that passes write 16 apart are in different banks.
struct FramePoints {
  float *re, *im;
  static int32_t index(int32_t i) { return i + (i >> 4); }
  FramePoint at(int32_t i) const { return {re[index(i)], im[index(i)]}; }
  void set(int32_t i, FramePoint x) const {
    re[index(i)] = x.re;
    im[index(i)] = x.im;
  }
};

// A frame has two arrays of complex numbers, which passes read and write alternately.
struct Transforms {
  fft::Plan plan;
  const float* table;  // of fft_table, for the plan
  int32_t count;       // frames
  float* memory;
  int32_t floats;  // of a frame in one of its four arrays

  Transforms(int32_t nfft, const float* factors, int32_t frames)
      : plan(fft::plan_of(nfft)), table(factors), count(frames), memory(nullptr) {
    floats = FramePoints::index(plan.length) + 1;
  }
  // Bytes of frames in device memory; ops/audio/_transforms.py computes at least as many.
  int64_t bytes(int64_t frames) const { return frames * 4 * floats * static_cast<int64_t>(sizeof(float)); }

  FramePoints points(int32_t frame, int which) const {
    float* p = memory + int64_t{4 * frame + 2 * which} * floats;
    return {p, p + floats};
  }

  // Call visit(frame, i) for i < each of all frames, divided over the threads; then wait for all. Neighbouring threads
  // have neighbouring i.
  template <class Visit>
  void each(int32_t each, Visit&& visit) const {
    const auto all = static_cast<uint32_t>(count * each), divisor = static_cast<uint32_t>(each);
    for (uint32_t i = gpu::thread_index(); i < all; i += gpu::thread_count()) {
      const uint32_t frame = i / divisor;
      visit(static_cast<int32_t>(frame), static_cast<int32_t>(i - frame * divisor));
    }
    gpu::block_barrier();
  }
  // The same, with neighbouring threads at neighbouring frames, whose elements are neighbours in spectra.
  template <class Visit>
  void each_across(int32_t each, Visit&& visit) const {
    const auto all = static_cast<uint32_t>(count * each), divisor = static_cast<uint32_t>(count);
    for (uint32_t i = gpu::thread_index(); i < all; i += gpu::thread_count()) {
      const uint32_t at = i / divisor;
      visit(static_cast<int32_t>(i - at * divisor), static_cast<int32_t>(at));
    }
    gpu::block_barrier();
  }

  template <int R>
  void pass(int from, int32_t n, int32_t blocks, const float* twiddles) const {
    const int32_t m = n / R, apart = blocks * m;
    each(apart, [&](int32_t frame, int32_t i) {
      const auto p = static_cast<int32_t>(static_cast<uint32_t>(i) / static_cast<uint32_t>(blocks));
      const int32_t q = i - p * blocks, to = q + blocks * R * p;
      const FramePoints x = points(frame, from), y = points(frame, 1 - from);
      const float* w = p ? twiddles + 2 * (p - 1) * (R - 1) : nullptr;  // a single pass has no table
      FramePoint a[R];
      STOKER_UNROLL for (int k = 0; k < R; ++k) a[k] = x.at(i + apart * k);
      fft::butterfly(a);
      y.set(to, a[fft::place<R>(0)]);
      if (p == 0) {
        STOKER_UNROLL for (int k = 1; k < R; ++k) y.set(to + blocks * k, a[fft::place<R>(k)]);
      } else {
        STOKER_UNROLL for (int k = 1; k < R; ++k)
            y.set(to + blocks * k, fft::times(a[fft::place<R>(k)], w[2 * (k - 1)], w[2 * (k - 1) + 1]));
      }
    });
  }

  // Transform plan.length points of array `from`; return the array with the result.
  int transform(int from) const {
    int32_t n = plan.length, blocks = 1;
    for (int i = 0; i < plan.passes; ++i, from = 1 - from) {
      const float* w = table + plan.twiddles[i];
      switch (plan.radix[i]) {
        case 2: pass<2>(from, n, blocks, w); break;
        case 3: pass<3>(from, n, blocks, w); break;
        case 4: pass<4>(from, n, blocks, w); break;
        case 5: pass<5>(from, n, blocks, w); break;
        case 8: pass<8>(from, n, blocks, w); break;
        default: pass<16>(from, n, blocks, w); break;
      }
      n /= plan.radix[i];
      blocks *= plan.radix[i];
    }
    return from;
  }

  int chirp() const {
    const float *chirp = table + plan.chirp, *filter = table + plan.filter;
    each(plan.length, [&](int32_t frame, int32_t i) {
      const FramePoints x = points(frame, 0);
      x.set(i, i < plan.points ? fft::times(x.at(i), chirp[2 * i], chirp[2 * i + 1]) : FramePoint{0.0f, 0.0f});
    });
    int at = transform(0);
    each(plan.length, [&](int32_t frame, int32_t i) {
      const FramePoints x = points(frame, at);
      const FramePoint c = fft::times(x.at(i), filter[2 * i], filter[2 * i + 1]);
      x.set(i, {c.im, c.re});
    });
    at = transform(at);
    each(plan.points, [&](int32_t frame, int32_t i) {
      const FramePoints x = points(frame, at);
      const FramePoint c = x.at(i);
      x.set(i, fft::times(FramePoint{c.im, c.re}, chirp[2 * i], chirp[2 * i + 1]));
    });
    return at;
  }

  // Transform plan.points points of array 0; return the array with the result.
  int run() const { return plan.has_chirp() ? chirp() : transform(0); }

  // Write samples of real signals to the points of array 0: sample(frame, i).
  template <class Sample>
  void load(Sample&& sample) const {
    const bool odd = plan.is_odd();
    each(plan.points, [&](int32_t frame, int32_t i) {
      const FramePoints x = points(frame, 0);
      if (odd) x.set(i, {sample(frame, i), 0.0f});
      else x.set(i, {sample(frame, 2 * i), sample(frame, 2 * i + 1)});
    });
  }

  // Number of pairs of bins of a real transform: bins k and points - k, or for odd sizes bin k alone.
  int32_t pairs() const { return plan.is_odd() ? plan.bins : plan.points / 2 + 1; }

  // Call visit(bin, value, factor) for a pair of bins of the transform `z`; the spectrum is value * factor.
  template <class Visit>
  void pair_of(FramePoints z, int32_t k, Visit&& visit) const {
    const int32_t n = plan.points;
    if (plan.is_odd()) {
      visit(k, z.at(k), 1.0f);
      return;
    }
    if (k == 0) {
      const FramePoint x = z.at(0);
      visit(0, FramePoint{x.re + x.im, 0.0f}, 1.0f);
      visit(n, FramePoint{x.re - x.im, 0.0f}, 1.0f);
      return;
    }
    const float* w = table + plan.pair;
    FramePoint low, high;
    fft::real_pair(z.at(k), z.at(n - k), w[2 * k], w[2 * k + 1], low, high);
    visit(k, low, 0.5f);
    visit(n - k, high, 0.5f);
  }
  // The same with the spectrum as the value.
  template <class Visit>
  void bins_of(FramePoints z, int32_t k, Visit&& visit) const {
    pair_of(z, k, [&](int32_t bin, FramePoint x, float factor) {
      if (factor == 1.0f) visit(bin, x);
      else visit(bin, FramePoint{x.re * factor, x.im * factor});
    });
  }

  // From bins k and points - k of an even transform, write the points that the forward transform turns into the samples,
  // with real and imaginary parts exchanged.
  void inverse_pair(FramePoint a, FramePoint b, FramePoints x, int32_t k) const {
    if (k == 0) {
      x.set(0, {a.re - b.re, a.re + b.re});
      return;
    }
    const float* w = table + plan.pair;
    const FramePoint even = {a.re + b.re, a.im - b.im}, d = {a.re - b.re, a.im + b.im};
    const FramePoint odd = fft::times(d, w[2 * k], -w[2 * k + 1]);
    x.set(plan.points - k, {odd.re - even.im, even.re + odd.im});
    x.set(k, {even.im + odd.re, even.re - odd.im});
  }
};

}  // namespace stoker::own
