// SPDX-License-Identifier: Apache-2.0
#include "signal/tables.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "shared/fft_factors.hpp"
#include "shared/xmath.hpp"

namespace stoker::signal {

namespace {

// Transform complex numbers, a power of two of them, in double.
void transform(std::vector<double>* re, std::vector<double>* im) {
  const auto size = static_cast<int32_t>(re->size()), half = size / 2;
  std::vector<double> to_re(re->size()), to_im(re->size());
  std::vector<fft::Factor> factors;
  for (int32_t i = 0; i < half; ++i) factors.push_back(fft::pair_factor(i, half, 1));
  for (int32_t blocks = 1; blocks < size; blocks *= 2) {
    for (int32_t i = 0; i < half; ++i)
      fft::double_pair(i, half, blocks, factors[static_cast<size_t>(i - i % blocks)], re->data(), im->data(),
                       to_re.data(), to_im.data());
    std::swap(*re, to_re);
    std::swap(*im, to_im);
  }
}

}  // namespace

std::vector<float> fft_table(const fft::Plan& plan) {
  std::vector<float> table;
  table.reserve(static_cast<size_t>(plan.floats));
  const auto put = [&table](double re, double im) {
    table.push_back(static_cast<float>(re));
    table.push_back(static_cast<float>(im));
  };
  for (int32_t i = 0; 2 * i < plan.filter; ++i) {
    const fft::Factor x = fft::factor_of(plan, i);
    put(x.re, x.im);
  }
  if (!plan.has_chirp()) return table;
  std::vector<double> re, im;
  for (int32_t i = 0; i < plan.length; ++i) {
    const fft::Factor x = fft::chirp_filter(plan, i);
    re.push_back(x.re);
    im.push_back(x.im);
  }
  transform(&re, &im);
  for (size_t i = 0; i < re.size(); ++i) put(re[i], im[i]);
  return table;
}

std::shared_ptr<const Factors> FactorsCache::find(int32_t samples) const {
  {
    const std::lock_guard lock(mutex_);
    for (const auto& known : known_)
      if (known->plan.samples == samples) return known;
  }
  auto made = std::make_shared<Factors>(Factors{fft::plan_of(samples), {}});
  made->table = fft_table(made->plan);
  const std::lock_guard lock(mutex_);
  known_.push_front(made);
  if (known_.size() > kKept) known_.pop_back();
  return made;
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
