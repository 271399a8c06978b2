// SPDX-License-Identifier: Apache-2.0
// `time_stretch`: spectra at another tempo. A bin's phases follow from each other, so a thread computes a bin.
#pragma once
#include "device/own.cuh"

namespace stoker::own {

// Ports: spectra, output. Numbers: the rate.
template <class Ports>
struct PhaseVocoder {
  struct Number {
    double re, im;
    double magnitude() const { return sqrt(re * re + im * im); }
    Number direction() const {  // 1 for 0
      const double length = magnitude();
      return length > 0 ? Number{re / length, im / length} : Number{1, 0};
    }
    Number operator*(const Number& o) const { return {re * o.re - im * o.im, re * o.im + im * o.re}; }
  };

  static void bins(const Row& row, uint32_t block) {
    const Port &x = row.port(0), &out = row.port(1);
    const int64_t frames = x.shape[1], count = out.shape[1];
    const int64_t k = block * int64_t{gpu::thread_count()} + gpu::thread_index();
    if (k >= x.shape[0]) return;
    const auto at = [&](int64_t t) {  // zeros follow the last frame
      if (t >= frames) return Number{0, 0};
      const auto part = [&](int64_t offset) {
        const int64_t from = k * x.stride[0] + t * x.stride[1] + offset;
        return static_cast<double>(*reinterpret_cast<const float*>(x.data + static_cast<uint64_t>(from)));
      };
      return Number{part(0), part(x.stride[2])};
    };
    const double rate = row.number(0);
    auto* to = reinterpret_cast<float*>(out.data) + k * count * 2;
    Number phase = at(0).direction();
    for (int64_t t = 0; t < count; ++t) {
      const double position = static_cast<double>(t) * rate;
      const int64_t whole = position < static_cast<double>(frames) ? static_cast<int64_t>(position) : frames;
      const double share = position - floor(position);
      const Number a = at(whole), b = at(whole + 1);
      const double magnitude = (1 - share) * a.magnitude() + share * b.magnitude();
      to[2 * t] = static_cast<float>(magnitude * phase.re);
      to[2 * t + 1] = static_cast<float>(magnitude * phase.im);
      const Number from = a.direction();
      phase = (phase * b.direction() * Number{from.re, -from.im}).direction();
    }
  }
};

}  // namespace stoker::own
