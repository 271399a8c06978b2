// SPDX-License-Identifier: Apache-2.0
// `power_spectrum`: transforms of the lines along an axis. A block transforms a few lines, then the next ones.
#pragma once
#include "device/own_factors.cuh"
#include "device/own_transforms.cuh"

namespace stoker::own {

// Ports: data, with kGiven the table (shared/fft.hpp), output. Numbers: points, axis, whether to take the root, lines that
// a block transforms together, whether the block's memory is shared memory, blocks of the pass `lines`, floats of the
// table without kGiven. Memory of a row: the table and the memory of its filter, then that of the transforms if it is not
// shared.
template <class Ports, int kGiven>
struct PowerSpectrum {
  static fft::Plan plan_of(const Row& row) { return fft::plan_of(static_cast<int32_t>(row.number(0))); }
  static int64_t filter_at(const Row& row) {  // in bytes, of doubles
    return (static_cast<int64_t>(row.number(6)) * static_cast<int64_t>(sizeof(float)) + 7) / 8 * 8;
  }

  static void factors(const Row& row, uint32_t block) { write_factors(plan_of(row), block, row.scratch<float>()); }
  static void filter(const Row& row, uint32_t) {
    write_filter(plan_of(row), row.scratch<double>(filter_at(row)), row.scratch<float>());
  }

  // Offset in bytes of the first element of a line.
  static int64_t line_of(const Port& port, int axis, int64_t line) {
    int64_t offset = 0;
    for (int d = static_cast<int>(port.rank) - 1; d >= 0; --d) {
      if (d == axis) continue;
      const int64_t above = quotient(line, port.shape[d]);
      offset += (line - above * port.shape[d]) * port.stride[d];
      line = above;
    }
    return offset;
  }

  static void lines(const Row& row, uint32_t block) {
    const Port &x = row.port(0), &out = row.port(kGiven ? 2 : 1);
    const auto nfft = static_cast<int32_t>(row.number(0));
    const auto axis = static_cast<int>(row.number(1));
    const bool magnitude = row.number(2) != 0;
    const auto most = static_cast<int64_t>(row.number(3)), blocks = static_cast<int64_t>(row.number(5));
    int64_t all = 1, inner = 1;
    for (int d = 0; d < x.rank; ++d) {
      if (d != axis) all *= x.shape[d];
      if (d > axis) inner *= x.shape[d];
    }
    const float* table = kGiven ? reinterpret_cast<const float*>(row.port(1).data) : row.scratch<const float>();
    Transforms t(nfft, table, 0);
    if (row.number(4) != 0) {
      t.memory = gpu::dynamic_shared<float>();
    } else {
      const int64_t before = kGiven ? 0 : filter_at(row) + (t.plan.has_chirp() ? 32 * int64_t{t.plan.length} : 0);
      t.memory = row.scratch<float>(before + t.bytes(block * most));
    }
    const int64_t samples = x.shape[axis], stride = x.stride[axis];
    auto* to = reinterpret_cast<float*>(out.data);
    for (int64_t first = block * most; first < all; first += blocks * most) {
      t.count = static_cast<int32_t>(all - first < most ? all - first : most);
      t.load([&](int32_t frame, int32_t i) {
        const int64_t from = line_of(x, axis, first + frame) + i * stride;
        return i < samples ? *reinterpret_cast<const float*>(x.data + static_cast<uint64_t>(from)) : 0.0f;
      });
      const int at = t.run();
      t.each(t.pairs(), [&](int32_t frame, int32_t k) {
        float* powers = t.points(frame, 1 - at).re;
        t.pair_of(t.points(frame, at), k, [&](int32_t bin, FramePoint z, float factor) {
          const float power = (z.re * z.re + z.im * z.im) * (factor * factor);
          powers[bin] = magnitude ? sqrtf(power) : power;
        });
      });
      const auto store = [&](int32_t frame, int32_t k) {
        const int64_t above = quotient(first + frame, inner), below = first + frame - above * inner;
        to[(above * t.plan.bins + k) * inner + below] = t.points(frame, 1 - at).re[k];
      };
      if (inner == 1) t.each(t.plan.bins, store);
      else t.each_across(t.plan.bins, store);
    }
  }
};

}  // namespace stoker::own
