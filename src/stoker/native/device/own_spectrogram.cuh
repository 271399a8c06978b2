// SPDX-License-Identifier: Apache-2.0
// `spectrogram`: a block transforms a few frames, with the butterflies of a pass divided over its threads.
#pragma once
#include "device/own_frames.cuh"
#include "shared/fft.hpp"

namespace stoker::own {

// Ports: those of Frames, output. Numbers: those of Frames, frames of a block, whether the block's memory is shared
// memory.
template <class Ports>
struct Spectrogram {
  struct Point {
    float re, im;
  };

  // Complex numbers of one frame. Elements that passes write 16 apart are in different banks.
  struct Points {
    float *re, *im;
    static int32_t index(int32_t i) { return i + (i >> 4); }
    Point at(int32_t i) const { return {re[index(i)], im[index(i)]}; }
    void set(int32_t i, Point x) const {
      re[index(i)] = x.re;
      im[index(i)] = x.im;
    }
  };

  struct Block : Frames {
    fft::Plan plan;
    float* memory;
    int32_t floats;  // of a frame in one of its four arrays

    Block(const Row& row, uint32_t block)
        : Frames(row, block, 0, static_cast<int32_t>(row.number(2)), static_cast<int64_t>(row.number(7))),
          plan(fft::plan_of(static_cast<int32_t>(row.number(2)))) {
      floats = Points::index(plan.length) + 1;
      memory = row.number(8) != 0 ? gpu::dynamic_shared<float>()
                                  : row.scratch<float>(first * 4 * floats * static_cast<int64_t>(sizeof(float)));
    }
    Points points(int32_t frame, int which) const {
      float* p = memory + int64_t{4 * frame + 2 * which} * floats;
      return {p, p + floats};
    }
    float sample(int32_t frame, int32_t i) const {
      return Frames::sample(frame, i, [&](int64_t from) { return signal[from * element]; });
    }
  };

  // Call visit(frame, i) for i < count of all frames, divided over the threads; then wait for all.
  template <class Visit>
  static void each(const Block& b, int32_t count, Visit&& visit) {
    const auto all = static_cast<uint32_t>(b.count * count), each = static_cast<uint32_t>(count);
    for (uint32_t i = gpu::thread_index(); i < all; i += gpu::thread_count()) {
      const uint32_t frame = i / each;
      visit(static_cast<int32_t>(frame), static_cast<int32_t>(i - frame * each));
    }
    gpu::block_barrier();
  }

  template <int R>
  static void pass(const Block& b, int from, int32_t n, int32_t blocks, const float* twiddles) {
    const int32_t m = n / R, apart = blocks * m;
    each(b, apart, [&](int32_t frame, int32_t i) {
      const auto p = static_cast<int32_t>(static_cast<uint32_t>(i) / static_cast<uint32_t>(blocks));
      const int32_t q = i - p * blocks, to = q + blocks * R * p;
      const Points x = b.points(frame, from), y = b.points(frame, 1 - from);
      const float* w = p ? twiddles + 2 * (p - 1) * (R - 1) : nullptr;  // a single pass has no table
      Point a[R];
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
  static int transform(const Block& b, int from) {
    int32_t n = b.plan.length, blocks = 1;
    for (int i = 0; i < b.plan.passes; ++i, from = 1 - from) {
      const float* w = b.table + b.plan.twiddles[i];
      switch (b.plan.radix[i]) {
        case 2: pass<2>(b, from, n, blocks, w); break;
        case 3: pass<3>(b, from, n, blocks, w); break;
        case 4: pass<4>(b, from, n, blocks, w); break;
        case 5: pass<5>(b, from, n, blocks, w); break;
        case 8: pass<8>(b, from, n, blocks, w); break;
        default: pass<16>(b, from, n, blocks, w); break;
      }
      n /= b.plan.radix[i];
      blocks *= b.plan.radix[i];
    }
    return from;
  }

  static int chirp(const Block& b) {
    const float *chirp = b.table + b.plan.chirp, *filter = b.table + b.plan.filter;
    each(b, b.plan.length, [&](int32_t frame, int32_t i) {
      const Points x = b.points(frame, 0);
      x.set(i, i < b.plan.points ? fft::times(x.at(i), chirp[2 * i], chirp[2 * i + 1]) : Point{0.0f, 0.0f});
    });
    int at = transform(b, 0);
    each(b, b.plan.length, [&](int32_t frame, int32_t i) {
      const Points x = b.points(frame, at);
      const Point c = fft::times(x.at(i), filter[2 * i], filter[2 * i + 1]);
      x.set(i, {c.im, c.re});
    });
    at = transform(b, at);
    each(b, b.plan.points, [&](int32_t frame, int32_t i) {
      const Points x = b.points(frame, at);
      const Point c = x.at(i);
      x.set(i, fft::times(Point{c.im, c.re}, chirp[2 * i], chirp[2 * i + 1]));
    });
    return at;
  }

  // Write the powers of a frame's pairs of bins into `to`.
  static void powers(const Block& b, Points z, float* to, int32_t k) {
    const int32_t n = b.plan.points;
    if (b.plan.is_odd()) {
      if (k < b.plan.bins) to[k] = b.power_of(z.at(k), 1.0f);
      return;
    }
    if (k == 0) {
      const Point x = z.at(0);
      to[0] = b.power_of(Point{x.re + x.im, 0.0f}, 1.0f);
      to[n] = b.power_of(Point{x.re - x.im, 0.0f}, 1.0f);
      return;
    }
    const float* w = b.table + b.plan.pair;
    Point low, high;
    fft::real_pair(z.at(k), z.at(n - k), w[2 * k], w[2 * k + 1], low, high);
    to[k] = b.power_of(low, 0.25f);
    to[n - k] = b.power_of(high, 0.25f);
  }

  static void frames(const Row& row, uint32_t block) {
    const Block b(row, block);
    const bool odd = b.plan.is_odd();
    each(b, b.plan.points, [&](int32_t frame, int32_t i) {
      const Points x = b.points(frame, 0);
      if (odd) x.set(i, {b.sample(frame, i), 0.0f});
      else x.set(i, {b.sample(frame, 2 * i), b.sample(frame, 2 * i + 1)});
    });
    const int at = b.plan.has_chirp() ? chirp(b) : transform(b, 0);
    // The other pair of arrays takes the powers, one frame after the other.
    each(b, odd ? b.plan.bins : b.plan.points / 2 + 1,
         [&](int32_t frame, int32_t k) { powers(b, b.points(frame, at), b.points(frame, 1 - at).re, k); });
    auto* out = reinterpret_cast<float*>(row.port(3).data);
    // Neighbouring threads write neighbouring elements.
    const auto bins = static_cast<uint32_t>(b.plan.bins), count = static_cast<uint32_t>(b.count);
    const uint32_t across = b.by_time ? bins : count;
    for (uint32_t i = gpu::thread_index(); i < count * bins; i += gpu::thread_count()) {
      const uint32_t slow = i / across, fast = i - slow * across, frame = b.by_time ? slow : fast;
      const uint32_t k = b.by_time ? fast : slow;
      const float value = b.points(static_cast<int32_t>(frame), 1 - at).re[k];
      if (b.by_time) out[(b.first + frame) * bins + k] = value;
      else out[k * b.frames + b.first + frame] = value;
    }
  }
};

}  // namespace stoker::own
