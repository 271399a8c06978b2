// SPDX-License-Identifier: Apache-2.0
#include "signal/tables.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "shared/xmath.hpp"

namespace stoker::signal {

namespace {

// exp(-i pi a / b)
std::pair<double, double> turn(int64_t a, int64_t b) {
  const double x = static_cast<double>(a % (2 * b)) / static_cast<double>(b);
  return {xm::cos_pi(x), -xm::sin_pi(x)};
}

void put(std::vector<float>* to, int32_t at, std::pair<double, double> x) {
  (*to)[static_cast<size_t>(at)] = static_cast<float>(x.first);
  (*to)[static_cast<size_t>(at) + 1] = static_cast<float>(x.second);
}

// Transform complex numbers, a power of two of them, in double.
void transform(std::vector<double>* re, std::vector<double>* im) {
  const size_t size = re->size();
  std::vector<double> to_re(size), to_im(size), cosines(size / 2 + 1), sines(size / 2 + 1);
  for (size_t i = 0; i < size / 2; ++i)
    std::tie(cosines[i], sines[i]) = turn(2 * static_cast<int64_t>(i), static_cast<int64_t>(size));
  for (size_t n = size, blocks = 1; n > 1; n /= 2, blocks *= 2) {
    const size_t m = n / 2;
    for (size_t p = 0; p < m; ++p)
      for (size_t q = 0; q < blocks; ++q) {
        const size_t a = q + blocks * p, b = a + blocks * m, to = q + 2 * blocks * p;
        const double d_re = (*re)[a] - (*re)[b], d_im = (*im)[a] - (*im)[b];
        const double c = cosines[p * blocks], s = sines[p * blocks];
        to_re[to] = (*re)[a] + (*re)[b];
        to_im[to] = (*im)[a] + (*im)[b];
        to_re[to + blocks] = d_re * c - d_im * s;
        to_im[to + blocks] = d_re * s + d_im * c;
      }
    std::swap(*re, to_re);
    std::swap(*im, to_im);
  }
}

}  // namespace

std::vector<float> fft_table(const fft::Plan& plan) {
  std::vector<float> table(static_cast<size_t>(plan.floats));
  int64_t n = plan.length;
  for (int i = 0; i < plan.passes; ++i) {
    const int32_t radix = plan.radix[i];
    int32_t at = plan.twiddles[i];
    for (int64_t p = 1; p < n / radix; ++p)
      for (int32_t k = 1; k < radix; ++k, at += 2) put(&table, at, turn(2 * p * k, n));
    n /= radix;
  }
  if (!plan.is_odd())
    for (int32_t k = 0; k <= plan.points / 2; ++k) put(&table, plan.pair + 2 * k, turn(k, plan.points));
  if (!plan.has_chirp()) return table;
  std::vector<double> re(static_cast<size_t>(plan.length)), im(re.size());
  for (int64_t j = 0; j < plan.points; ++j) {
    const auto factor = turn(j * j, plan.points);
    put(&table, plan.chirp + 2 * static_cast<int32_t>(j), factor);
    for (const size_t at : {static_cast<size_t>(j), (re.size() - static_cast<size_t>(j)) % re.size()}) {
      re[at] = factor.first / plan.length;
      im[at] = -factor.second / plan.length;
    }
  }
  transform(&re, &im);
  for (size_t i = 0; i < re.size(); ++i) put(&table, plan.filter + 2 * static_cast<int32_t>(i), {re[i], im[i]});
  return table;
}

namespace {

// Slaney's mel scale: linear up to 1 kHz, then logarithmic, 27 steps for a factor of 6.4.
constexpr double kLinear = 200.0 / 3, kBreak = 1000.0, kBreakMel = kBreak / kLinear;
double log_step() { return xm::log(6.4) / 27.0; }

double mel_of(double hz, bool htk) {
  if (htk) return 1127.0 * xm::log(1.0 + hz / 700.0);
  return hz < kBreak ? hz / kLinear : kBreakMel + xm::log(hz / kBreak) / log_step();
}
double hz_of(double mel, bool htk) {
  if (htk) return 700.0 * (xm::exp(mel / 1127.0) - 1.0);
  return mel < kBreakMel ? mel * kLinear : kBreak * xm::exp((mel - kBreakMel) * log_step());
}

// Return the range of bins of a row that have weights.
std::pair<int64_t, int64_t> band_of(const float* row, int64_t bins) {
  int64_t begin = 0, end = bins;
  while (begin < end && row[begin] == 0.0f) ++begin;
  while (end > begin && row[end - 1] == 0.0f) --end;
  return {begin, end};
}

}  // namespace

int64_t widest_band(const std::vector<float>& weights, int64_t rows, int64_t bins) {
  int64_t widest = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const auto [begin, end] = band_of(weights.data() + r * bins, bins);
    widest = std::max(widest, end - begin);
  }
  return widest;
}

std::vector<float> banded(const std::vector<float>& weights, int64_t rows, int64_t bins, int64_t width) {
  std::vector<float> all(static_cast<size_t>(rows * width));
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = weights.data() + r * bins;
    float* to = all.data() + r * width;
    const auto [begin, end] = band_of(row, bins);
    to[0] = static_cast<float>(begin);
    to[1] = static_cast<float>(end);
    std::copy(row + begin, row + end, to + 2);
  }
  return all;
}

std::vector<float> mel_weights(const Mel& mel, int64_t bins) {
  std::vector<float> weights(static_cast<size_t>(mel.filters * bins));
  const double low = mel_of(mel.low, mel.htk), high = mel_of(mel.high, mel.htk);
  const auto edge = [&](int64_t i) {
    return hz_of(low + (high - low) * static_cast<double>(i) / static_cast<double>(mel.filters + 1), mel.htk);
  };
  const double step = mel.sample_rate / (2.0 * static_cast<double>(bins - 1));  // Hz from one bin to the next
  for (int64_t f = 0; f < mel.filters; ++f) {
    const double left = edge(f), middle = edge(f + 1), right = edge(f + 2);
    const double norm = mel.normalize ? 2.0 / (right - left) : 1.0;
    for (int64_t b = 0; b < bins; ++b) {
      const double hz = static_cast<double>(b) * step;
      const double height = std::min((hz - left) / (middle - left), (right - hz) / (right - middle));
      if (height > 0) weights[static_cast<size_t>(f * bins + b)] = static_cast<float>(height * norm);
    }
  }
  return weights;
}

namespace {

// Element of a transform with SciPy's factor of 2 left out.
double dct_element(const Dct& dct, int64_t k, int64_t i, int64_t n) {
  const auto angle = [](int64_t a, int64_t b) {
    return xm::cos_pi(static_cast<double>(a % (2 * b)) / static_cast<double>(b));
  };
  switch (dct.type) {
    case 1: return i == 0 ? 0.5 : i == n - 1 ? (k % 2 ? -0.5 : 0.5) : angle(k * i, n - 1);
    case 2: return angle(k * (2 * i + 1), 2 * n);
    case 3: return i == 0 ? 0.5 : angle(i * (2 * k + 1), 2 * n);
    default: return angle((2 * k + 1) * (2 * i + 1), 4 * n);
  }
}

// Factor of an element of an orthonormal transform.
double dct_norm(const Dct& dct, int64_t k, int64_t i, int64_t n) {
  const double root = std::sqrt(2.0 / static_cast<double>(n)), half = std::sqrt(0.5);
  if (dct.type == 2) return k == 0 ? root * half : root;
  if (dct.type == 3) return i == 0 ? root * half * 2.0 : root;
  return root;
}

}  // namespace

std::vector<float> dct_weights(const Dct& dct, int64_t points) {
  std::vector<float> weights(static_cast<size_t>(dct.coefficients * points));
  for (int64_t k = 0; k < dct.coefficients; ++k) {
    const double lift =
        dct.lifter == 0 ? 1.0 : 1.0 + dct.lifter / 2 * xm::sin_pi(static_cast<double>(k + 1) / dct.lifter);
    for (int64_t i = 0; i < points; ++i) {
      const double norm = dct.normalize ? dct_norm(dct, k, i, points) : 1.0;
      weights[static_cast<size_t>(k * points + i)] = static_cast<float>(dct_element(dct, k, i, points) * norm * lift);
    }
  }
  return weights;
}

}  // namespace stoker::signal
