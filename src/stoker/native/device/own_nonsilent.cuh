// SPDX-License-Identifier: Apache-2.0
// `nonsilent_region`: a thread for each part of the signal with a moving sum of its own; then the whole row.
#pragma once
#include "device/own.cuh"

namespace stoker::own {

// Ports: signal, first sample, number of samples. Numbers: samples of the window, the threshold relative to the reference,
// the reference (0: the largest sum). Memory of a row: of each part the largest sum, and the first and last loud sample.
template <class Ports>
struct Nonsilent {
  static constexpr int64_t kPart = 8192;  // also in kernels/nonsilent_region.cpp
  static constexpr uint32_t kWarp = 32;   // threads of a block

  using Largest = Array<double, kWarp>;
  using Ends = Array<int32_t, kWarp>;
  struct Loud {
    int32_t first, last;
  };

  static int64_t parts(const Row& row) { return (row.port(0).shape[0] + kPart - 1) / kPart; }
  static int64_t window_of(const Row& row) {
    const double window = row.number(0);
    const int64_t n = row.port(0).shape[0];
    return window < static_cast<double>(n) ? static_cast<int64_t>(window) : n;
  }
  static Loud* loud_of(const Row& row) { return row.scratch<Loud>(parts(row) * static_cast<int64_t>(sizeof(double))); }

  // Call visit(i, sum) for the samples of a part, in their order.
  template <class Visit>
  static void sums(const Row& row, int64_t part, Visit&& visit) {
    const Port& x = row.port(0);
    const int64_t n = x.shape[0], window = window_of(row), begin = part * kPart;
    const int64_t end = begin + kPart < n ? begin + kPart : n;
    const auto square = [&](int64_t i) {
      const auto v =
          static_cast<double>(*reinterpret_cast<const float*>(x.data + static_cast<uint64_t>(i * x.stride[0])));
      return v * v;
    };
    double sum = 0;
    for (int64_t i = begin > window ? begin - window : 0; i < begin; ++i) sum += square(i);
    for (int64_t i = begin; i < end; ++i) {
      sum += square(i);
      if (i >= window) sum -= square(i - window);
      visit(i, sum < 0 ? 0.0 : sum);
    }
  }
  // The larger one; a NaN only if both are.
  static double larger(double a, double b) { return a < b || a != a ? b : a; }

  static void largest(const Row& row, uint32_t block) {
    const int64_t part = int64_t{block} * kWarp + gpu::thread_index();
    if (part >= parts(row)) return;
    double most = -1;
    bool any = false;
    sums(row, part, [&](int64_t, double sum) {
      most = any ? larger(most, sum) : sum;
      any = true;
    });
    row.scratch<double>()[part] = most;
  }

  static void loud(const Row& row, uint32_t block) {
    STOKER_SHARED(Largest, shared);
    const uint32_t thread = gpu::thread_index();
    const int64_t all = parts(row), part = int64_t{block} * kWarp + thread;
    const auto* most = row.scratch<const double>();
    double own = most[0];
    for (int64_t i = thread; i < all; i += kWarp) own = larger(own, most[i]);
    shared[thread] = own;
    gpu::block_barrier();
    double reference = row.number(2) * static_cast<double>(window_of(row));
    if (row.number(2) == 0) {
      reference = shared[0];
      for (uint32_t i = 1; i < kWarp; ++i) reference = larger(reference, shared[i]);
    }
    if (part >= all) return;
    const double least = reference * row.number(1);
    Loud found = {-1, -1};
    sums(row, part, [&](int64_t i, double sum) {
      if (!(sum >= least)) return;
      if (found.first < 0) found.first = static_cast<int32_t>(i);
      found.last = static_cast<int32_t>(i);
    });
    loud_of(row)[part] = found;
  }

  static void region(const Row& row, uint32_t) {
    STOKER_SHARED(Ends, firsts);
    STOKER_SHARED(Ends, lasts);
    const uint32_t thread = gpu::thread_index();
    const Loud* const loud = loud_of(row);
    Loud own = {-1, -1};
    const auto join = [&own](int32_t first, int32_t last) {
      if (first >= 0 && (own.first < 0 || first < own.first)) own.first = first;
      if (last > own.last) own.last = last;
    };
    for (int64_t i = thread; i < parts(row); i += kWarp) join(loud[i].first, loud[i].last);
    firsts[thread] = own.first;
    lasts[thread] = own.last;
    gpu::block_barrier();
    if (thread != 0) return;
    for (uint32_t i = 1; i < kWarp; ++i) join(firsts[i], lasts[i]);
    const int64_t from = int64_t{own.first} - (window_of(row) - 1);
    const auto begin = own.first < 0 || from < 0 ? 0 : static_cast<int32_t>(from);
    *reinterpret_cast<int32_t*>(row.port(1).data) = begin;
    *reinterpret_cast<int32_t*>(row.port(2).data) = own.first < 0 ? 0 : own.last - begin + 1;
  }
};

}  // namespace stoker::own
