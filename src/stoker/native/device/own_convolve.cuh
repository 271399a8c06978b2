// SPDX-License-Identifier: Apache-2.0
// `convolve`: the table of the row's transforms, the spectrum of the shorter signal, then the blocks of the longer one.
#pragma once
#include "device/own_factors.cuh"
#include "device/own_transforms.cuh"

namespace stoker::own {

// Ports: two signals, output. Numbers: first sample of the output in the whole convolution, points of the transforms,
// first block, blocks that a GPU's block transforms together, whether their memory is shared memory, floats of the table (or more).
// Memory of a row: the table, the spectrum of the shorter signal, then the memory of the transforms if it is not shared.
template <class Ports>
struct Convolve {
  static int32_t points(const Row& row) { return static_cast<int32_t>(row.number(1)); }
  static const Port& longer(const Row& row) { return row.port(row.port(0).shape[0] < row.port(1).shape[0] ? 1 : 0); }
  static const Port& shorter(const Row& row) { return row.port(row.port(0).shape[0] < row.port(1).shape[0] ? 0 : 1); }
  static FramePoint* spectrum(const Row& row) {
    return row.scratch<FramePoint>(static_cast<int64_t>(row.number(5)) * static_cast<int64_t>(sizeof(float)));
  }
  static Transforms transforms(const Row& row, int32_t count, int64_t first) {
    Transforms t(points(row), row.scratch<const float>(), count);
    const int64_t before = static_cast<int64_t>(row.number(5)) + 2 * int64_t{t.plan.bins};
    t.memory = row.number(4) != 0 ? gpu::dynamic_shared<float>()
                                  : row.scratch<float>(before * static_cast<int64_t>(sizeof(float)) + t.bytes(first));
    return t;
  }
  static float sample(const Port& x, int64_t i) {  // zeros around the signal
    return i >= 0 && i < x.shape[0] ? *reinterpret_cast<const float*>(x.data + static_cast<uint64_t>(i * x.stride[0]))
                                    : 0.0f;
  }

  static void factors(const Row& row, uint32_t block) {
    write_factors(fft::plan_of(points(row)), block, row.scratch<float>());
  }

  static void response(const Row& row, uint32_t) {
    const Transforms t = transforms(row, 1, 0);
    const Port& filter = shorter(row);
    t.load([&](int32_t, int32_t i) { return sample(filter, i); });
    const int at = t.run();
    FramePoint* const to = spectrum(row);
    t.each(t.pairs(),
           [&](int32_t, int32_t k) { t.bins_of(t.points(0, at), k, [&](int32_t bin, FramePoint x) { to[bin] = x; }); });
  }

  static void blocks(const Row& row, uint32_t block) {
    const Port &x = longer(row), &out = row.port(2);
    const auto before = static_cast<int64_t>(row.number(0)), begin = static_cast<int64_t>(row.number(2)),
               most = static_cast<int64_t>(row.number(3));
    const int64_t skip = shorter(row).shape[0] - 1, step = points(row) - skip, count = out.shape[0];
    const int64_t first = block * most, all = quotient(before + count + step - 1, step) - begin;
    const Transforms t = transforms(row, static_cast<int32_t>(all - first < most ? all - first : most), first);
    t.load([&](int32_t frame, int32_t i) { return sample(x, (begin + first + frame) * step - skip + i); });
    int at = t.run();
    const FramePoint* const response = spectrum(row);
    const int32_t n = t.plan.points;
    t.each(t.pairs(), [&](int32_t frame, int32_t k) {
      FramePoint a = {}, b = {};  // bins k and n - k
      t.bins_of(t.points(frame, at), k, [&](int32_t bin, FramePoint z) {
        const FramePoint y = response[bin];
        const FramePoint product = {z.re * y.re - z.im * y.im, z.re * y.im + z.im * y.re};
        if (bin == k) a = product;
        if (bin == n - k) b = product;
      });
      if (k == n - k) a = b;
      t.inverse_pair(a, b, t.points(frame, 1 - at), k);
    });
    at = t.transform(1 - at);
    const float scale = 1.0f / static_cast<float>(t.plan.samples);
    auto* const y = reinterpret_cast<float*>(out.data);
    t.each(n, [&](int32_t frame, int32_t i) {
      const FramePoint a = t.points(frame, at).at(i);
      const int64_t to = (begin + first + frame) * step - before - skip;
      const auto store = [&](int64_t j, float value) {
        if (j >= skip && to + j >= 0 && to + j < count) y[to + j] = value * scale;
      };
      store(2 * i, a.im);
      store(2 * i + 1, a.re);
    });
  }
};

}  // namespace stoker::own
