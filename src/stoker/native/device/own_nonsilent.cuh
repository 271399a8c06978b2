// SPDX-License-Identifier: Apache-2.0
// `nonsilent_region`: a block for 32 parts of the signal, each of which has a moving sum of its own; then the whole row.
#pragma once
#include "device/own.cuh"

namespace stoker::own {

// Ports: signal, first sample, number of samples. Numbers: samples of the window, the threshold relative to the reference,
// the reference (0: the largest sum). Memory of a row: for each run of kRun samples the sum before it, then for each run
// its largest sum. Runs of equal number in their parts are adjacent.
template <class Ports>
struct Nonsilent {
  static constexpr int64_t kPart = 8192;  // samples; also in kernels/nonsilent_region.cpp
  static constexpr int kRun = 32;         // samples; also in ops/audio/nonsilent_region.py
  static constexpr int64_t kRuns = kPart / kRun;
  static constexpr uint32_t kParts = 32;     // of a block: the first warp adds, a thread for each part
  static constexpr uint32_t kThreads = 256;  // of a block: the other warps load
  static constexpr uint32_t kLoaders = (kThreads - kParts) / kRun;
  static constexpr int kLoads = (kParts + kLoaders - 1) / kLoaders;  // parts of a loading thread

  // Squares of kRun samples of each part, with a gap that puts the parts into different banks.
  using Squares = Array<double, kParts*(kRun + 1)>;
  struct Tile {
    Squares entering, leaving;
  };
  using Tiles = Array<Tile, 2>;
  struct Found {
    double largest;
    int32_t first, last;
  };
  using Founds = Array<Found, kThreads>;

  static int64_t parts(const Row& row) { return (row.port(0).shape[0] + kPart - 1) / kPart; }
  static int64_t window_of(const Row& row) {
    const double window = row.number(0);
    const int64_t n = row.port(0).shape[0];
    return window < static_cast<double>(n) ? static_cast<int64_t>(window) : n;
  }
  static double* before_of(const Row& row) { return row.scratch<double>(); }
  static double* largest_of(const Row& row) {
    return row.scratch<double>(parts(row) * kRuns * static_cast<int64_t>(sizeof(double)));
  }
  static float sample(const Port& x, int64_t i) {
    return *reinterpret_cast<const float*>(x.data + static_cast<uint64_t>(i * x.stride[0]));
  }
  static double square(float v) { return static_cast<double>(v) * static_cast<double>(v); }

  // The sum after one more sample.
  static double moved(double sum, double entering, double leaving) {
    sum += entering;
    return sum - leaving;
  }
  static double at_least_0(double sum) { return sum < 0 ? 0.0 : sum; }

  // Load the squares that enter and leave the sums of the parts from `first` on, by the threads after the first warp.
  // `offset` is the distance of the first sample from its part. Samples outside of the signal, and outside of the window
  // before a part, are zeros, which change no sum.
  static void load(const Row& row, int64_t first, int64_t offset, int64_t window, Tile& tile) {
    const Port& x = row.port(0);
    const int64_t n = x.shape[0];
    const uint32_t thread = gpu::thread_index() - kParts, lane = thread % kRun, begin = thread / kRun;
    const int64_t at = first * kPart + offset + lane;
    const bool counts = offset + static_cast<int64_t>(lane) >= -window;
    float entering[kLoads], leaving[kLoads];
    STOKER_UNROLL
    for (int k = 0; k < kLoads; ++k) {
      const int64_t i = at + int64_t{begin + k * kLoaders} * kPart;
      const bool within = counts && i >= 0 && i < n;
      entering[k] = within ? sample(x, i) : 0;
      leaving[k] = within && offset >= 0 && i >= window ? sample(x, i - window) : 0;
    }
    STOKER_UNROLL
    for (int k = 0; k < kLoads; ++k) {
      const uint32_t part = begin + k * kLoaders;
      if (part >= kParts) break;
      tile.entering[part * (kRun + 1) + lane] = square(entering[k]);
      tile.leaving[part * (kRun + 1) + lane] = square(leaving[k]);
    }
  }

  // The moving sums, and the largest one of each run.
  static void sums(const Row& row, uint32_t block) {
    STOKER_SHARED(Tiles, tiles);
    const int64_t window = window_of(row), all = parts(row), first = int64_t{block} * kParts;
    const int64_t warm_up = (window + kRun - 1) / kRun;
    const uint32_t thread = gpu::thread_index();
    const bool adds = thread < kParts && first + thread < all;
    double sum = 0;
    for (int64_t step = -1; step < warm_up + kRuns; ++step) {
      if (thread >= kParts) {
        if (step + 1 < warm_up + kRuns) load(row, first, (step + 1 - warm_up) * kRun, window, tiles[(step + 1) & 1]);
      } else if (adds && step >= 0) {
        Tile& tile = tiles[step & 1];
        const int64_t begin = thread * (kRun + 1), run = (step - warm_up) * all + first + thread;
        if (step < warm_up) {
          for (int k = 0; k < kRun; ++k) sum += tile.entering[begin + k];
        } else {
          before_of(row)[run] = sum;
          double most = -1;
          for (int k = 0; k < kRun; ++k) {
            sum = moved(sum, tile.entering[begin + k], tile.leaving[begin + k]);
            const double own = at_least_0(sum);
            most = most < own ? own : most;  // ignores NaNs
          }
          largest_of(row)[run] = most;
        }
      }
      gpu::block_barrier();
    }
  }

  // Call visit(i) for the loud samples of a run, in their order. Runs are numbered in the order of the signal.
  template <class Visit>
  static void loud_samples(const Row& row, int64_t run, double least, Visit&& visit) {
    const Port& x = row.port(0);
    const int64_t window = window_of(row), begin = run * kRun;
    const int64_t end = begin + kRun < x.shape[0] ? begin + kRun : x.shape[0], part = run / kRuns;
    double sum = before_of(row)[(run - part * kRuns) * parts(row) + part];
    for (int64_t i = begin; i < end; ++i) {
      sum = moved(sum, square(sample(x, i)), i < window ? 0.0 : square(sample(x, i - window)));
      if (at_least_0(sum) >= least) visit(static_cast<int32_t>(i));
    }
  }

  // Join the threads' findings into the first one's.
  static void join(Founds& found, uint32_t thread) {
    for (uint32_t half = kThreads / 2; half > 0; half /= 2) {
      gpu::block_barrier();
      if (thread >= half) continue;
      Found& own = found[thread];
      const Found& other = found[thread + half];
      if (own.largest < other.largest) own.largest = other.largest;
      if (other.first < own.first) own.first = other.first;
      if (other.last > own.last) own.last = other.last;
    }
    gpu::block_barrier();
  }

  // The first and the last run that have a loud sample, and that sample.
  static void region(const Row& row, uint32_t) {
    STOKER_SHARED(Founds, found);
    constexpr int32_t kNone = 0x7FFFFFFF;
    const uint32_t thread = gpu::thread_index();
    const int64_t n = row.port(0).shape[0], all = parts(row), runs = (n + kRun - 1) / kRun;
    const double* const largest = largest_of(row);
    Found own = {-1, kNone, -1};
    // Call visit(run, its largest sum) for this thread's runs that have samples.
    const auto each = [&](auto&& visit) {
      for (int64_t i = thread; i < all * kRuns; i += kThreads) {
        const int64_t above = quotient(i, all), run = (i - above * all) * kRuns + above;
        if (run < runs) visit(static_cast<int32_t>(run), largest[i]);
      }
    };
    each([&](int32_t, double most) { own.largest = own.largest < most ? most : own.largest; });
    found[thread] = own;
    join(found, thread);
    const double reference =
        row.number(2) == 0 ? found[0].largest : row.number(2) * static_cast<double>(window_of(row));
    const double least = reference * row.number(1);
    gpu::block_barrier();
    each([&](int32_t run, double most) {
      if (!(most >= 0 && most >= least)) return;  // a run of NaNs has -1
      if (run < own.first) own.first = run;
      if (run > own.last) own.last = run;
    });
    found[thread] = own;
    join(found, thread);
    const int32_t first_run = found[0].first, last_run = found[0].last;
    gpu::block_barrier();
    int32_t first = kNone, last = -1;
    if (last_run >= 0 && thread == 0)
      loud_samples(row, first_run, least, [&first](int32_t i) { first = i < first ? i : first; });
    if (last_run >= 0 && thread == kThreads - 1) {
      loud_samples(row, last_run, least, [&last](int32_t i) { last = i; });
      found[1].last = last;
    }
    gpu::block_barrier();
    if (thread != 0) return;
    const int64_t from = int64_t{first} - (window_of(row) - 1);
    const auto begin = last_run < 0 || from < 0 ? 0 : static_cast<int32_t>(from);
    *reinterpret_cast<int32_t*>(row.port(1).data) = begin;
    *reinterpret_cast<int32_t*>(row.port(2).data) = last_run < 0 ? 0 : found[1].last - begin + 1;
  }
};

}  // namespace stoker::own
