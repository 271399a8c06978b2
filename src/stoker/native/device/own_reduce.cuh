// SPDX-License-Identifier: Apache-2.0
// Reductions: a warp folds a chunk of the numbers of one output, and later the chunks' results, in the order of
// shared/reduce_fold.hpp.
#pragma once
#include "device/own.cuh"
#include "shared/reduce_fold.hpp"

namespace stoker::own {

// kOperation is that of shared/reduce_fold.hpp; it reduces the axes of kRank whose bits are set in kGone. Inputs: the
// data, and for variance and deviation their mean. Number: ddof. A row's scratch memory if there are several chunks:
// [output][chunk] results of 8 bytes each.
template <class Ports, int kOperation, uint32_t kGone, int kRank>
struct Reduce {
  static constexpr auto kOp = static_cast<fold::Reduction>(kOperation);
  static constexpr bool kAbout = kOp == fold::Reduction::Variance || kOp == fold::Reduction::StdDev;
  static constexpr int64_t kTasks = kThreads / gpu::kWarp;  // tasks per block; also in ops/reductions/_reduction.py
  using In = typename Ports::template At<0>;
  using Mean = typename Ports::template At<kAbout ? 1 : 0>;
  using Out = typename Ports::template At<kAbout ? 2 : 1>;
  // These types are computed in float32.
  static constexpr bool kShort = std::is_same_v<In, F16> || std::is_same_v<In, BF16>;
  using Number = std::conditional_t<std::is_same_v<In, Bool>, uint8_t,
                                    std::conditional_t<kShort, typename In::Register, typename In::Value>>;
  using Fold = fold::Fold<kOp, Number>;
  using Result = typename Fold::Result;
  using Lanes = Array<Result, kThreads>;

  // Number of elements along the kept, or the reduced, axes.
  static int64_t extent(const Port& port, bool gone) {
    int64_t n = 1;
    STOKER_UNROLL for (int d = 0; d < kRank; ++d) if ((kGone >> d & 1) == gone) n *= port.shape[d];
    return n;
  }
  // Offset of element i of the kept, or the reduced, axes.
  template <class Count>
  static int64_t offset(const Port& port, bool gone, Count i) {
    int64_t at = 0;
    STOKER_UNROLL for (int d = kRank - 1; d >= 0; --d) {
      if ((kGone >> d & 1) != gone) continue;
      const auto n = static_cast<Count>(port.shape[d]);
      const Count above = i / n;
      at += static_cast<int64_t>(i - above * n) * port.stride[d];
      i = above;
    }
    return at;
  }

  // Return the mean that output `number` takes deviations from.
  static double about(const Row& row, int64_t number) {
    if constexpr (!kAbout) {
      return 0.0;
    } else {
      const Port& port = row.port(1);
      int64_t elements = 1, at = 0;
      for (int d = 0; d < port.rank; ++d) elements *= port.shape[d];
      for (int d = static_cast<int>(port.rank) - 1; elements > 1 && d >= 0; --d) {
        at += number % port.shape[d] * port.stride[d];
        number /= port.shape[d];
      }
      const auto x = load<Mean>(reinterpret_cast<const uint8_t*>(port.data) + at);
      if constexpr (std::is_same_v<Mean, U64>) return static_cast<double>(static_cast<uint64_t>(x));
      else if constexpr (std::is_same_v<Mean, Bool>) return x != 0 ? 1.0 : 0.0;
      else return static_cast<double>(x);
    }
  }

  static Number number_at(const uint8_t* p) {
    if constexpr (kShort) return load<In>(p);
    else return *reinterpret_cast<const Number*>(p);
  }

  // Whether the elements of the reduced axes follow each other without gaps.
  static bool is_dense(const Port& port) {
    int64_t bytes = sizeof(typename In::Memory);
    STOKER_UNROLL for (int d = kRank - 1; d >= 0; --d) {
      if ((kGone >> d & 1) == 0) continue;
      if (port.shape[d] > 1 && port.stride[d] != bytes) return false;
      bytes *= port.shape[d];
    }
    return true;
  }

  // Whether the elements of the reduced axes follow each other at equal distances, of `step` bytes.
  static bool is_even(const Port& port, int64_t& step) {
    int64_t count = 1;
    step = 0;
    STOKER_UNROLL for (int d = kRank - 1; d >= 0; --d) {
      if ((kGone >> d & 1) == 0 || port.shape[d] <= 1) continue;
      if (count == 1) step = port.stride[d];
      else if (port.stride[d] != step * count) return false;
      count *= port.shape[d];
    }
    return true;
  }

  // Join a lane's numbers, which are at equal distances: kStep bytes, or `given` bytes if kStep is 0.
  template <int64_t kStep>
  static Result even_lane_of(const uint8_t* data, int64_t begin, int64_t end, double mean, int64_t given) {
    constexpr int kAhead = 8;  // numbers that are loaded together, and joined in their order
    constexpr int64_t kLanes = gpu::kWarp;
    const int64_t step = kStep ? kStep : given;
    Result own = Fold::neutral();
    int64_t i = begin + gpu::thread_index() % gpu::kWarp;
    for (; i + (kAhead - 1) * kLanes < end; i += kAhead * kLanes) {
      const uint8_t* const from = data + i * step;
      Number x[kAhead];
      STOKER_UNROLL for (int k = 0; k < kAhead; ++k) x[k] = number_at(from + k * kLanes * step);
      STOKER_UNROLL for (int k = 0; k < kAhead; ++k) own = Fold::join(own, Fold::term(x[k], mean));
    }
    for (; i < end; i += kLanes) own = Fold::join(own, Fold::term(number_at(data + i * step), mean));
    return own;
  }

  template <class Count>
  static Result lane_of(const uint8_t* data, const Port& port, int64_t begin, int64_t end, double mean) {
    constexpr int64_t kItem = sizeof(typename In::Memory);
    int64_t step;
    if (is_even(port, step)) {
      return step == kItem ? even_lane_of<kItem>(data, begin, end, mean, 0)
                           : even_lane_of<0>(data, begin, end, mean, step);
    }
    Result own = Fold::neutral();
    int64_t i = begin + gpu::thread_index() % gpu::kWarp;
    for (; i < end; i += gpu::kWarp) {
      const uint8_t* p = data + offset(port, true, static_cast<Count>(i));
      own = Fold::join(own, Fold::term(number_at(p), mean));
    }
    return own;
  }

  // Reduce the lanes of each warp to one result, which the warp's first thread gets. All threads of the block must take
  // part.
  static Result joined(Lanes& lanes, Result own) {
    const uint32_t thread = gpu::thread_index(), lane = thread % gpu::kWarp;
    lanes[thread] = own;
    for (uint32_t half = gpu::kWarp / 2; half > 0; half /= 2) {
      gpu::warp_barrier();
      if (lane < half) lanes[thread] = Fold::join(lanes[thread], lanes[thread + half]);
    }
    return lanes[thread];
  }

  static void put(const Row& row, int64_t output, Result result, int64_t count) {
    constexpr int64_t item = sizeof(typename Out::Memory);
    auto* to = reinterpret_cast<uint8_t*>(row.port(kAbout ? 2 : 1).data) + output * item;
    if constexpr (!Fold::kExtreme && kOp != fold::Reduction::Sum) {
      store<Out>(to, op::cast<Out>(fold::averaged<kOp>(result, count, row.number(0))));
    } else if constexpr (Fold::kExtreme && kShort) {
      store<Out>(to, result);  // one of the inputs, unchanged
    } else if constexpr (sizeof(Result) == 8 && std::is_integral_v<Result> && item == 8 && !std::is_same_v<Out, F64>) {
      *reinterpret_cast<Result*>(to) = result;  // 64 bits do not fit into a double
    } else {
      store<Out>(to, op::cast<Out>(static_cast<double>(result)));
    }
  }

  // Reduce the chunks of the outputs of a block. `about_of(output)` is the mean of an output's deviations,
  // `put_one(output, result, count)` takes the result of an output with one chunk; others leave theirs in `partials`.
  template <class About, class Put>
  static void reduce_chunks(const Row& row, uint32_t block, Lanes& lanes, uint8_t* partials, About about_of,
                            Put put_one) {
    const Port& port = row.port(0);
    const int64_t each = extent(port, true), outputs = extent(port, false);
    const int64_t chunks = each > fold::kChunk ? (each + fold::kChunk - 1) / fold::kChunk : 1;
    const int64_t task = block * kTasks + gpu::thread_index() / gpu::kWarp;
    const int64_t output = task / chunks, chunk = task - output * chunks;
    Result own = Fold::neutral();
    if (output < outputs) {
      const int64_t begin = chunk * fold::kChunk, end = begin + fold::kChunk < each ? begin + fold::kChunk : each;
      const double mean = about_of(output);
      const auto* data =
          reinterpret_cast<const uint8_t*>(port.data) + offset(port, false, static_cast<uint64_t>(output));
      own = each <= 0xFFFFFFFFll ? lane_of<uint32_t>(data, port, begin, end, mean)
                                 : lane_of<uint64_t>(data, port, begin, end, mean);
    }
    const Result result = joined(lanes, own);
    if (output >= outputs || gpu::thread_index() % gpu::kWarp != 0) return;
    if (chunks == 1) put_one(output, result, each);
    else *reinterpret_cast<Result*>(partials + task * 8) = result;
  }

  // Reduce the results of chunks.
  template <class Put>
  static void reduce_partials(const Row& row, uint32_t block, Lanes& lanes, const uint8_t* partials, Put put_one) {
    const Port& port = row.port(0);
    const int64_t each = extent(port, true), outputs = extent(port, false);
    const int64_t chunks = (each + fold::kChunk - 1) / fold::kChunk;
    const int64_t output = block * kTasks + gpu::thread_index() / gpu::kWarp;
    Result own = Fold::neutral();
    if (output < outputs)
      for (int64_t c = gpu::thread_index() % gpu::kWarp; c < chunks; c += gpu::kWarp)
        own = Fold::join(own, *reinterpret_cast<const Result*>(partials + (output * chunks + c) * 8));
    const Result result = joined(lanes, own);
    if (output < outputs && gpu::thread_index() % gpu::kWarp == 0) put_one(output, result, each);
  }

  static void partial(const Row& row, uint32_t block) {
    STOKER_SHARED(Lanes, lanes);
    reduce_chunks(
        row, block, lanes, row.scratch<uint8_t>(), [&](int64_t output) { return about(row, output); },
        [&](int64_t output, Result result, int64_t count) { put(row, output, result, count); });
  }

  static void finish(const Row& row, uint32_t block) {
    STOKER_SHARED(Lanes, lanes);
    reduce_partials(row, block, lanes, row.scratch<uint8_t>(),
                    [&](int64_t output, Result result, int64_t count) { put(row, output, result, count); });
  }
};

}  // namespace stoker::own
