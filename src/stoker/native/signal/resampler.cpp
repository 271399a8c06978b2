// SPDX-License-Identifier: Apache-2.0
#include "signal/resampler.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "shared/xmath.hpp"

namespace stoker::signal {

Ratio ratio_of(double up, double down) {
  const auto whole = [](double x) { return x == std::floor(x) && x <= static_cast<double>(kLargestTerm); };
  if (whole(up) && whole(down)) {
    const auto a = static_cast<int64_t>(up), b = static_cast<int64_t>(down), divisor = std::gcd(a, b);
    return {a / divisor, b / divisor};
  }
  // The continued fraction, until the error is that of a double, or the terms are too large.
  constexpr double kLargest = 1 << 20, kClose = 1e-13;
  const double x = up / down;
  double rest = x, p = 1, q = 0, before_p = 0, before_q = 1;
  for (int i = 0; i < 64; ++i) {
    const double part = std::floor(rest), next_p = part * p + before_p, next_q = part * q + before_q;
    if (i > 0 && (next_p > kLargest || next_q > kLargest)) break;
    before_p = p;
    before_q = q;
    p = next_p;
    q = next_q;
    if (rest == part || (p > 0 && std::fabs(p / q - x) <= kClose * x)) break;
    rest = 1 / (rest - part);
  }
  if (p < 1) return {1, static_cast<int64_t>(std::min(std::round(1 / x), static_cast<double>(kLargestTerm)))};
  return {static_cast<int64_t>(std::min(p, static_cast<double>(kLargestTerm))), static_cast<int64_t>(q)};
}

namespace {

constexpr int64_t kMostWeights = 1 << 22;

SincShape shape_of(const Filter& filter, double ratio) {
  const double q = filter.quality, lobes = std::round(0.007 * q * q - 0.09 * q + 3);
  if (filter.aliasing) return {lobes, 1, 0, 1, true};
  // Kaiser's formulas: attenuation in dB, the window's parameter, and the width of the transition relative to half of
  // the lower rate. The stop band begins at half of the lower rate.
  const double attenuation = 40 + 0.8 * q;
  const double above = attenuation - 21;
  const double beta =
      attenuation > 50 ? 0.1102 * (attenuation - 8.7) : 0.5842 * xm::exp(0.4 * xm::log(above)) + 0.07886 * above;
  const double transition = (attenuation - 7.95) / (14.36 * lobes);
  const double cutoff = (1 - transition / 2) * std::min(1.0, ratio);
  return {lobes / cutoff, cutoff, beta, bessel(beta), false};
}

}  // namespace

ShapedLayout shaped_layout_of(const Filter& filter, const Ratio& ratio) {
  const double lower = static_cast<double>(ratio.up) / static_cast<double>(ratio.down);
  SincShape shape = shape_of(filter, lower);
  const auto taps_of = [&] {
    const auto taps = 2 * static_cast<int64_t>(std::ceil(shape.half));
    return (taps + kPartialSums - 1) / kPartialSums * kPartialSums;
  };
  Phases out{taps_of(), 0, ratio.up, false, {}};
  if (out.taps * out.phases > kMostWeights) {
    // Rates in steps of a 64th, so that many ratios share a filter. A ratio below 1 takes the next lower one.
    if (lower < 1) shape = shape_of(filter, std::max(std::floor(lower * 64) / 64, lower / 2));
    out = {taps_of(), 0, kInterpolatedPhases, true, {}};
  }
  out.before = out.taps / 2 - 1;
  return {std::move(out), shape};
}

Phases layout_of(const Filter& filter, const Ratio& ratio) { return shaped_layout_of(filter, ratio).phases; }

Phases phases_of(const Filter& filter, const Ratio& ratio) {
  auto [out, shape] = shaped_layout_of(filter, ratio);
  const int64_t rows = out.rows();
  out.weights.resize(static_cast<size_t>(rows * out.taps));
  std::vector<double> row(static_cast<size_t>(out.taps));
  for (int64_t p = 0; p < rows; ++p) {
    double sum = 0;
    for (int64_t k = 0; k < out.taps; ++k) {
      row[static_cast<size_t>(k)] = shape.tap(k, out.before, p, out.phases);
      sum += row[static_cast<size_t>(k)];
    }
    const double scale = shape.scale(sum);
    for (int64_t k = 0; k < out.taps; ++k)
      out.weights[static_cast<size_t>(p * out.taps + k)] = static_cast<float>(row[static_cast<size_t>(k)] * scale);
  }
  return std::move(out);
}

}  // namespace stoker::signal
