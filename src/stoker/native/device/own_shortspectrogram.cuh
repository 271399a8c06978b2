// SPDX-License-Identifier: Apache-2.0
// `spectrogram` of up to 8192 points, compiled for their number: a thread keeps up to about 16 points of a frame in
// registers, computes its butterflies, and exchanges the results through shared memory. The same launch can filter the
// signal first and sum the bins with weights afterwards, so that neither the filtered signal nor the spectrum is written.
#pragma once
#include "device/own_frames.cuh"
#include "device/own_project.cuh"
#include "shared/fft.hpp"

namespace stoker::own {

// Ports: those of Frames, with kProjects weights (own_project.cuh), output. Numbers: with kFilters those of Preemphasis
// and its launch; then those of Frames. kFrames: frames of a block (ops/audio/spectrogram.py).
template <class Ports, int32_t kSamples, int32_t kFrames, bool kFilters, bool kProjects>
struct ShortSpectrogram {
  static constexpr int kFirst = kFilters ? 4 : 0;  // number of the first number of the spectrogram
  static constexpr fft::Plan kPlan = fft::plan_of(kSamples);
  static constexpr int32_t kLength = kPlan.length;
  static_assert(kPlan.passes > 0 && !kPlan.has_chirp());

  struct alignas(8) Point {
    float re, im;
  };

  // Points of one frame. Those that passes write 16 apart are in different banks, as are equal points of neighbouring
  // frames.
  static constexpr int32_t place(int32_t i) { return i + (i >> 4); }
  static constexpr int32_t kFramePoints = place(kLength - 1) + 1 | 1;

  struct Block : Frames {
    bool in_pairs;
    Point* points;
    float coefficient, edge;  // with kFilters; the sample before the first one

    Block(const Row& row, uint32_t block) : Frames(row, block, kFirst, kSamples, kFrames) {
      const Port &x = row.port(0), &w = row.port(1);
      points = gpu::dynamic_shared<Point>();
      // All samples exist, and a point's two samples are an aligned pair with factors that are one as well.
      const auto odd = static_cast<uint64_t>(start) | static_cast<uint64_t>(step) | static_cast<uint64_t>(length) |
                       static_cast<uint64_t>(before);
      constexpr int64_t kLeast = kFilters ? 1 : 0;  // sample before which there is one
      in_pairs = element == 1 && start >= kLeast && start + (count - 1) * step + length <= samples && (odd & 1) == 0 &&
                 (x.data & 7) == 0 && (w.data & 7) == 0 && !kPlan.is_odd();
      coefficient = kFilters ? static_cast<float>(row.number(0)) : 0.0f;
      edge = 0.0f;
      if constexpr (kFilters)
        if (const auto border = static_cast<int>(row.number(1)); border != 1 && samples > 0)
          edge = signal[border == 2 && samples > 1 ? element : 0];
    }
    float at(int64_t i) const {
      const float x = signal[i * element];
      if constexpr (!kFilters) return x;
      const float before = i > 0 ? signal[(i - 1) * element] : edge;
      return x - before * coefficient;
    }
    float sample(int32_t frame, int32_t i) const {
      return Frames::sample(frame, i, [&](int64_t from) { return at(from); });
    }
    Point* frame(int32_t number) const { return points + number * kFramePoints; }
  };

  // Floats of the table of factors that are copied to shared memory, since the threads of a warp read different ones.
  static constexpr int32_t kShared = kLength <= 2048 ? kPlan.pair : 0;

  // The butterflies of one pass: kRadix points that are kApart from each other in the input.
  template <int kPass>
  struct Pass {
    static constexpr int kRadix = kPlan.radix[kPass];
    static constexpr int32_t kApart = kLength / kRadix;  // also the butterflies of a frame
    static constexpr int32_t blocks() {
      int32_t n = 1;
      for (int i = 0; i < kPass; ++i) n *= kPlan.radix[i];
      return n;
    }
    static constexpr int32_t kBlocks = blocks(), kOf = kFrames * kApart;
    static constexpr int32_t kEach = (kOf + kThreads - 1) / kThreads;  // of a thread
  };

  // Call visit(slot, frame, i) for the butterflies of this thread in the block's frames.
  template <int kPass, class Visit>
  static void each(const Block& b, Visit&& visit) {
    using P = Pass<kPass>;
    STOKER_UNROLL for (int32_t slot = 0; slot < P::kEach; ++slot) {
      const uint32_t t = gpu::thread_index() + static_cast<uint32_t>(slot) * kThreads;
      const uint32_t frame = t / static_cast<uint32_t>(P::kApart);
      if (static_cast<int32_t>(frame) < b.count)
        visit(slot, static_cast<int32_t>(frame), static_cast<int32_t>(t - frame * static_cast<uint32_t>(P::kApart)));
    }
  }

  template <int kPass>
  static void load(const Block& b, int32_t frame, int32_t i, Point (&a)[Pass<kPass>::kRadix]) {
    using P = Pass<kPass>;
    if (kPass > 0 || !b.in_pairs) {
      STOKER_UNROLL for (int k = 0; k < P::kRadix; ++k) a[k] = b.frame(frame)[place(i + P::kApart * k)];
      return;
    }
    const auto* x = reinterpret_cast<const Point*>(b.signal + b.start + frame * b.step);
    const auto* w = reinterpret_cast<const Point*>(b.window);
    const int32_t begin = i - b.before / 2;
    STOKER_UNROLL for (int k = 0; k < P::kRadix; ++k) {
      const int32_t at = begin + P::kApart * k;
      a[k] = {0.0f, 0.0f};
      if (at < 0 || at >= b.length / 2) continue;
      Point two = x[at];
      if constexpr (kFilters) {
        const float before = x[at - 1].im;
        two = {two.re - before * b.coefficient, two.im - two.re * b.coefficient};
      }
      a[k] = {two.re * w[at].re, two.im * w[at].im};
    }
  }

  template <int kPass>
  static void put(const Block& b, const float* table, int32_t frame, int32_t i, Point (&a)[Pass<kPass>::kRadix]) {
    using P = Pass<kPass>;
    constexpr int R = P::kRadix;
    const int32_t p = i / P::kBlocks, q = i - p * P::kBlocks;
    Point* to = b.frame(frame);
    const int32_t at = q + P::kBlocks * R * p;
    to[place(at)] = a[fft::place<R>(0)];
    const auto* w = reinterpret_cast<const Point*>(table + kPlan.twiddles[kPass]) + (p - 1) * (R - 1);
    STOKER_UNROLL for (int k = 1; k < R; ++k) {
      Point x = a[fft::place<R>(k)];
      if (P::kApart > P::kBlocks && p > 0) x = fft::times(x, w[k - 1].re, w[k - 1].im);
      to[place(at + P::kBlocks * k)] = x;
    }
  }

  template <int kPass>
  static void transform(const Block& b, const float* table) {
    using P = Pass<kPass>;
    Point a[P::kEach][P::kRadix];
    each<kPass>(b, [&](int32_t slot, int32_t frame, int32_t i) {
      load<kPass>(b, frame, i, a[slot]);
      fft::butterfly(a[slot]);
    });
    gpu::block_barrier();  // all have read the points, or the table is complete
    each<kPass>(b, [&](int32_t slot, int32_t frame, int32_t i) { put<kPass>(b, table, frame, i, a[slot]); });
    gpu::block_barrier();
    if constexpr (kPass + 1 < kPlan.passes) transform<kPass + 1>(b, table);
  }

  // Pass the powers of bins k and points - k of a frame to put(bin, power).
  template <class Put>
  static void powers(const Block& b, int32_t frame, int32_t k, Put&& put) {
    constexpr int32_t n = kPlan.points;
    const Point z = b.frame(frame)[place(k)];
    if constexpr (kPlan.is_odd()) {
      put(k, b.power_of(z, 1.0f));
    } else if (k == 0) {
      put(0, b.power_of(Point{z.re + z.im, 0.0f}, 1.0f));
      put(n, b.power_of(Point{z.re - z.im, 0.0f}, 1.0f));
    } else {
      const auto w = reinterpret_cast<const Point*>(b.table + kPlan.pair)[k];
      Point low, high;
      fft::real_pair(z, b.frame(frame)[place(n - k)], w.re, w.im, low, high);
      put(k, b.power_of(low, 0.25f));
      put(n - k, b.power_of(high, 0.25f));
    }
  }

  static constexpr uint32_t kPairs = kPlan.is_odd() ? kPlan.bins : kPlan.points / 2 + 1, kAll = kFrames * kPairs;

  // Write the powers of all bins. Neighbouring threads write neighbouring elements.
  static void store(const Block& b, float* out) {
    if (b.by_time) {
      for (uint32_t i = gpu::thread_index(); i < kAll; i += kThreads) {
        const auto frame = static_cast<int32_t>(i / kPairs), k = static_cast<int32_t>(i % kPairs);
        if (frame >= b.count) break;
        float* to = out + (b.first + frame) * kPlan.bins;
        powers(b, frame, k, [&](int32_t bin, float power) { to[bin] = power; });
      }
    } else {
      for (uint32_t i = gpu::thread_index(); i < kAll; i += kThreads) {
        const auto frame = static_cast<int32_t>(i % kFrames), k = static_cast<int32_t>(i / kFrames);
        if (frame >= b.count) continue;
        float* to = out + b.first + frame;
        powers(b, frame, k, [&](int32_t bin, float power) { to[bin * b.frames] = power; });
      }
    }
  }

  // Write the weighted sums of the powers.
  static void project(const Row& row, const Block& b, float* out) {
    // A bin in the middle, which is its own partner, is apart: the others are often the same number for each thread.
    constexpr bool kHasMiddle = !kPlan.is_odd() && kPlan.points % 2 == 0;
    constexpr uint32_t kOthers = kPairs - kHasMiddle, kOfAll = kFrames * kOthers;
    constexpr uint32_t kEach = (kOfAll + kThreads - 1) / kThreads;
    constexpr int32_t kBins = kPlan.bins | 1;  // of a frame, so that equal bins of its frames are in different banks
    float found[kEach][2], middle = 0.0f;
    STOKER_UNROLL for (uint32_t slot = 0; slot < kEach; ++slot) {
      const uint32_t i = gpu::thread_index() + slot * kThreads;
      const auto frame = static_cast<int32_t>(i / kOthers);
      if (i >= kOfAll || frame >= b.count) continue;
      int32_t which = 0;
      powers(b, frame, static_cast<int32_t>(i % kOthers), [&](int32_t, float power) { found[slot][which++] = power; });
    }
    const auto of_middle = static_cast<int32_t>(gpu::thread_index());  // frame
    if (kHasMiddle && of_middle < b.count)
      powers(b, of_middle, static_cast<int32_t>(kOthers), [&](int32_t, float power) { middle = power; });
    gpu::block_barrier();  // the powers take the memory of the points
    auto* all = reinterpret_cast<float*>(b.points);
    STOKER_UNROLL for (uint32_t slot = 0; slot < kEach; ++slot) {
      const uint32_t i = gpu::thread_index() + slot * kThreads;
      const auto frame = static_cast<int32_t>(i / kOthers), k = static_cast<int32_t>(i % kOthers);
      if (i >= kOfAll || frame >= b.count) continue;
      float* to = all + frame * kBins;
      to[k] = found[slot][0];
      if (!kPlan.is_odd()) to[kPlan.points - k] = found[slot][1];
    }
    if (kHasMiddle && of_middle < b.count) all[of_middle * kBins + static_cast<int32_t>(kOthers)] = middle;
    gpu::block_barrier();
    const Port& w = row.port(3);
    const auto rows = static_cast<uint32_t>(w.shape[0]);
    for (uint32_t i = gpu::thread_index(); i < kFrames * rows; i += kThreads) {
      const auto frame = static_cast<int32_t>(i % kFrames);
      const uint32_t r = i / kFrames;
      if (frame >= b.count) continue;
      const Band band(w, r, kPlan.bins);
      const float* of = all + frame * kBins + band.begin;
      float sum = 0.0f;
      for (int32_t bin = 0; bin < band.end - band.begin; ++bin) sum += of[bin] * band.weights[bin];
      out[b.by_time ? (b.first + frame) * rows + r : r * b.frames + b.first + frame] = sum;
    }
  }

  static void frames(const Row& row, uint32_t block) {
    const Block b(row, block);
    const float* table = b.table;
    if constexpr (kShared > 0) {
      auto* shared = reinterpret_cast<float*>(b.points + kFrames * kFramePoints);
      for (int32_t i = static_cast<int32_t>(gpu::thread_index()); i < kShared; i += kThreads) shared[i] = table[i];
      table = shared;
    }
    if (!b.in_pairs) {
      STOKER_NO_UNROLL for (uint32_t i = gpu::thread_index(); i < kFrames * kLength; i += kThreads) {
        const auto frame = static_cast<int32_t>(i / kLength), at = static_cast<int32_t>(i % kLength);
        if (frame >= b.count) break;
        Point x = {b.sample(frame, kPlan.is_odd() ? at : 2 * at), 0.0f};
        if (!kPlan.is_odd()) x.im = b.sample(frame, 2 * at + 1);
        b.frame(frame)[place(at)] = x;
      }
      gpu::block_barrier();
    }
    transform<0>(b, table);
    auto* out = reinterpret_cast<float*>(row.port(kProjects ? 4 : 3).data);
    if constexpr (kProjects) project(row, b, out);
    else store(b, out);
  }
};

}  // namespace stoker::own
