// SPDX-License-Identifier: Apache-2.0
// Kernels of audio that transform a signal and back: complex spectra, their inverse, another tempo, convolution.
#include "signal/transforms.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/copy_view.hpp"
#include "base/whole.hpp"
#include "kernels/registry.hpp"
#include "run/job.hpp"
#include "signal/tables.hpp"

namespace stoker {

namespace {

constexpr PortRule kSignal = port_of(DType::F32, 1);
constexpr PortRule kSpectra = port_of(DType::F32, 3);  // [bins, frames, 2]

// Return the elements of a view of floats in contiguous memory: its own, or a copy in `area`.
const float* in_order(const View& v, Scratch& area) {
  if (v.contiguous()) return reinterpret_cast<const float*>(v.data);
  uint8_t* copy = area.get(static_cast<size_t>(v.elements()) * sizeof(float) + 1);
  copy_contiguous(v, copy);
  return reinterpret_cast<const float*>(copy);
}

float* floats_of(const View* v) { return reinterpret_cast<float*>(v->data); }

void require_transform(int32_t nfft, int64_t step) {
  if (nfft < 1 || nfft > fft::kMaxSamples) throw std::invalid_argument("expected nfft from 1 to 2**20");
  if (step < 1 || step > kFarApart) throw std::invalid_argument("expected a positive step");
}

// Complex spectra of the frames of a signal [n]. Inputs: the signal, a window [length], a table of fft_table. Parameters:
// frames of the row, first sample of the first frame's window. Output: [bins, frames, 2].
class Stft : public Kernel {
 public:
  Stft(int32_t nfft, int64_t step, bool reflect) : plan_(fft::plan_of(nfft)), step_(step), reflect_(reflect) {}
  Ports ports() const override {
    return {.kernel = "stft", .in = {kSignal, kSignal, kSignal}, .out = {kSpectra}, .params = 2};
  }
  bool fits(const Call& c) const override {
    const View &window = *c.in[1], &out = *c.out[0];
    if (c.in[0]->shape[0] > 0 && window.shape[0] > 0 && window.shape[0] <= plan_.samples &&
        c.in[2]->shape[0] == plan_.floats && out.shape[1] == offset_of(c.params[0]) && out.shape[0] == plan_.bins &&
        out.shape[2] == 2)
      return true;
    *c.error = "expected a signal with samples, and a window, a table and an output for " +
               std::to_string(plan_.samples) + " points";
    return false;
  }
  Outcome run(const Call& c) const override {
    const View &x = *c.in[0], &out = *c.out[0];
    const int64_t length = c.in[1]->shape[0];
    const signal::Frames frames{reinterpret_cast<const float*>(x.data),
                                x.shape[0],
                                x.stride[0] / static_cast<int64_t>(sizeof(float)),
                                out.shape[1],
                                step_,
                                offset_of(c.params[1]),
                                length,
                                reflect_,
                                in_order(*c.in[1], c.work[1]),
                                (plan_.samples - length) / 2};
    uint8_t* memory = c.work[0].get(static_cast<size_t>(signal::transform_bytes(plan_, length)));
    signal::transforms().forward(frames, plan_, in_order(*c.in[2], c.work[2]), {floats_of(&out), 2 * out.shape[1], 2},
                                 memory);
    return Outcome::Ok;
  }

 private:
  fft::Plan plan_;
  int64_t step_;
  bool reflect_;
};

std::shared_ptr<Kernel> make_stft(int32_t nfft, int64_t step, bool reflect) {
  require_transform(nfft, step);
  return std::make_shared<Stft>(nfft, step, reflect);
}

// Signal [n] from the spectra of its frames: the sum of the frames with their windows, over the sum of the windows'
// squares. Inputs: [bins, frames, 2], a window [length], a table of fft_table. Parameters: first sample of the first frame's window.
class Istft : public Kernel {
 public:
  Istft(int32_t nfft, int64_t step) : plan_(fft::plan_of(nfft)), step_(step) {}
  Ports ports() const override {
    return {.kernel = "istft", .in = {kSpectra, kSignal, kSignal}, .out = {kSignal}, .params = 1};
  }
  bool fits(const Call& c) const override {
    const View &x = *c.in[0], &window = *c.in[1];
    if (x.shape[0] == plan_.bins && x.shape[2] == 2 && window.shape[0] <= plan_.samples &&
        c.in[2]->shape[0] == plan_.floats)
      return true;
    *c.error = "expected spectra of " + std::to_string(plan_.bins) + " complex bins (" + std::to_string(plan_.samples) +
               " points), got " + std::to_string(x.shape[0]) + " bins of " + std::to_string(x.shape[2]) +
               " numbers, or another table";
    return false;
  }
  Outcome run(const Call& c) const override {
    const fft::Plan& plan = plan_;
    const float* table = in_order(*c.in[2], c.work[3]);
    const signal::Transforms& transforms = signal::transforms();
    const View& x = *c.in[0];
    const int64_t frames = x.shape[1], length = c.in[1]->shape[0], n = c.out[0]->shape[0];
    const int64_t start = offset_of(c.params[0]), offset = (plan.samples - length) / 2;
    const signal::Spectra in{const_cast<float*>(in_order(x, c.work[1])), 2 * frames, 2};
    const float* window = in_order(*c.in[1], c.work[2]);
    const auto bytes = static_cast<size_t>(signal::transform_bytes(plan, 0));
    const int64_t group = transforms.group * plan.samples;
    uint8_t* memory = c.work[0].get(bytes + static_cast<size_t>(group + n) * sizeof(float));
    auto* parts = reinterpret_cast<float*>(memory + bytes);
    float* weights = parts + group;
    float* y = floats_of(c.out[0]);
    std::fill_n(y, n, 0.0f);
    std::fill_n(weights, n, 0.0f);
    for (int64_t first = 0; first < frames; first += transforms.group) {
      const int64_t count = std::min(transforms.group, frames - first);
      transforms.inverse(in, first, count, plan, table, parts, memory);
      for (int64_t t = 0; t < count; ++t) {
        const int64_t at = start + (first + t) * step_;
        const float* part = parts + t * plan.samples + offset;
        const int64_t begin = std::clamp<int64_t>(-at, 0, length), end = std::clamp<int64_t>(n - at, begin, length);
        for (int64_t i = begin; i < end; ++i) y[at + i] += part[i] * window[i];
        for (int64_t i = begin; i < end; ++i) weights[at + i] += window[i] * window[i];
      }
    }
    for (int64_t i = 0; i < n; ++i)
      if (weights[i] > kLeastWeight) y[i] /= weights[i];
    return Outcome::Ok;
  }

 private:
  static constexpr float kLeastWeight = 1e-11f;  // below it, windows leave a sample undetermined
  fft::Plan plan_;
  int64_t step_;
};

std::shared_ptr<Kernel> make_istft(int32_t nfft, int64_t step) {
  require_transform(nfft, step);
  return std::make_shared<Istft>(nfft, step);
}

// Spectra [bins, frames, 2] at another tempo (phase vocoder). Parameters: the rate. Output t is at input t * rate: the
// magnitude is interpolated, and the phase advances by the difference of the two neighbours' phases.
class PhaseVocoder : public Kernel {
 public:
  Ports ports() const override { return {.kernel = "phase_vocoder", .in = {kSpectra}, .out = {kSpectra}, .params = 1}; }
  bool fits(const Call& c) const override {
    const View &x = *c.in[0], &out = *c.out[0];
    if (x.shape[0] == out.shape[0] && x.shape[2] == 2 && out.shape[2] == 2 && c.params[0] > 0 && x.shape[1] > 0)
      return true;
    *c.error = "expected spectra with frames and a positive rate";
    return false;
  }
  Outcome run(const Call& c) const override {
    const View &x = *c.in[0], &out = *c.out[0];
    const int64_t bins = x.shape[0], frames = x.shape[1], count = out.shape[1];
    const float* in = in_order(x, c.work[0]);
    const double rate = c.params[0];
    for (int64_t k = 0; k < bins; ++k) {
      const float* row = in + k * frames * 2;
      float* to = floats_of(&out) + k * count * 2;
      Number phase = at(row, 0, frames).direction();
      for (int64_t t = 0; t < count; ++t) {
        const double position = static_cast<double>(t) * rate;
        const int64_t whole = saturated<int64_t>(position, 0, frames);
        const double share = position - std::floor(position);
        const Number a = at(row, whole, frames), b = at(row, whole + 1, frames);
        const double magnitude = (1 - share) * a.magnitude() + share * b.magnitude();
        to[2 * t] = static_cast<float>(magnitude * phase.re);
        to[2 * t + 1] = static_cast<float>(magnitude * phase.im);
        // Differences of phases are products of directions, so no angle is computed. The last step keeps rounding errors
        // from growing.
        const Number from = a.direction();
        phase = (phase * b.direction() * Number{from.re, -from.im}).direction();
      }
    }
    return Outcome::Ok;
  }

 private:
  struct Number {
    double re, im;
    double magnitude() const { return std::sqrt(re * re + im * im); }
    Number direction() const {  // 1 for 0
      const double length = magnitude();
      return length > 0 ? Number{re / length, im / length} : Number{1, 0};
    }
    Number operator*(const Number& o) const { return {re * o.re - im * o.im, re * o.im + im * o.re}; }
  };
  static Number at(const float* row, int64_t t, int64_t frames) {  // zeros follow the last frame
    return t < frames ? Number{row[2 * t], row[2 * t + 1]} : Number{0, 0};
  }
};

std::shared_ptr<Kernel> make_phase_vocoder() { return std::make_shared<PhaseVocoder>(); }

// Spectra [bins, frames, 2] with given magnitudes [bins, frames] and the phases of `rebuilt` - share * `before` (fast
// Griffin-Lim algorithm). Inputs: magnitudes, `rebuilt`, `before`. With `zero` all phases are 0, and the other inputs have
// no effect. With `root` the first input has squared magnitudes.
class Phased : public Kernel {
 public:
  Phased(double share, bool zero, bool root) : share_(static_cast<float>(share)), zero_(zero), root_(root) {}
  Ports ports() const override {
    constexpr PortRule kEither = {.types = types(DType::F32), .least_rank = 2, .most_rank = 3};
    return {.kernel = "phased", .in = {port_of(DType::F32, 2), kEither, kEither}, .out = {kSpectra}};
  }
  bool fits(const Call& c) const override {
    const View &x = *c.in[0], &out = *c.out[0];
    const auto alike = [&](const View& v) { return zero_ || v.has_extents_of(out); };
    if (out.shape[0] == x.shape[0] && out.shape[1] == x.shape[1] && out.shape[2] == 2 && alike(*c.in[1]) &&
        alike(*c.in[2]))
      return true;
    *c.error = "expected magnitudes and spectra of the same bins and frames";
    return false;
  }
  Outcome run(const Call& c) const override {
    const int64_t count = c.in[0]->elements();
    const float* x = in_order(*c.in[0], c.work[0]);
    const float* rebuilt = zero_ ? nullptr : in_order(*c.in[1], c.work[1]);
    const float* before = zero_ ? nullptr : in_order(*c.in[2], c.work[2]);
    float* to = floats_of(c.out[0]);
    for (int64_t i = 0; i < count; ++i) {
      const float magnitude = root_ ? std::sqrt(x[i]) : x[i];
      float re = magnitude, im = 0.0f;
      if (!zero_) {
        const float a = rebuilt[2 * i] - share_ * before[2 * i], b = rebuilt[2 * i + 1] - share_ * before[2 * i + 1];
        const float length = std::sqrt(a * a + b * b) + kTiny;
        re = magnitude * (a / length);
        im = magnitude * (b / length);
      }
      to[2 * i] = re;
      to[2 * i + 1] = im;
    }
    return Outcome::Ok;
  }

 private:
  static constexpr float kTiny = 1e-16f;
  float share_;
  bool zero_, root_;
};

std::shared_ptr<Kernel> make_phased(double share, bool zero, bool root) {
  if (!(share >= 0 && share <= 1)) throw std::invalid_argument("expected a share from 0 to 1");
  return std::make_shared<Phased>(share, zero, root);
}

// Convolution of two signals [n] and [m], by blocks whose spectra are multiplied. Parameters: first sample of the
// output in the whole convolution, n + m - 1 samples (and the numbers of the form for GPUs).
class Convolve : public Kernel {
 public:
  Ports ports() const override {
    return {.kernel = "convolve", .in = {kSignal, kSignal}, .out = {kSignal}, .params = 1};
  }
  bool fits(const Call& c) const override {
    const int64_t n = c.in[0]->shape[0], m = c.in[1]->shape[0], first = offset_of(c.params[0]);
    if (n < 1 || m < 1 || std::min(n, m) > kLongest) {
      *c.error = "expected two signals with samples, the shorter one of at most " + std::to_string(kLongest) +
                 ", got " + std::to_string(n) + " and " + std::to_string(m);
      return false;
    }
    if (first >= 0 && first + c.out[0]->shape[0] <= n + m - 1) return true;
    *c.error = "expected a part of the convolution";
    return false;
  }
  Outcome run(const Call& c) const override {
    const View *x = c.in[0], *filter = c.in[1];
    if (x->shape[0] < filter->shape[0]) std::swap(x, filter);
    const int64_t m = filter->shape[0], first = offset_of(c.params[0]), count = c.out[0]->shape[0];
    int32_t size = kLeastSize;  // of the transform
    while (size < 2 * m) size *= 2;
    const std::shared_ptr<const signal::Factors> factors = factors_.find(size);
    const int64_t step = size - (m - 1), begin = first / step, blocks = (first + count + step - 1) / step - begin;
    const signal::Frames frames{reinterpret_cast<const float*>(x->data),
                                x->shape[0],
                                x->stride[0] / static_cast<int64_t>(sizeof(float)),
                                blocks,
                                step,
                                begin * step - (m - 1),
                                size,
                                false,
                                nullptr,
                                0};
    const int64_t bytes = signal::transform_bytes(factors->plan, size) + 2 * factors->plan.bins * kVectorBytes;
    uint8_t* memory = c.work[0].get(static_cast<size_t>(bytes));
    auto* whole = reinterpret_cast<float*>(c.work[2].get(static_cast<size_t>(blocks * step) * sizeof(float) + 1));
    signal::transforms().convolve(frames, in_order(*filter, c.work[1]), m, factors->plan, factors->table.data(), whole,
                                  memory);
    std::copy_n(whole + (first - begin * step), count, floats_of(c.out[0]));
    return Outcome::Ok;
  }

 private:
  static constexpr int64_t kLongest = 1 << 18;  // samples of the shorter signal, for bounded memory
  static constexpr int32_t kLeastSize = 512;
  static constexpr int64_t kVectorBytes = 64;
  signal::FactorsCache factors_;
};

std::shared_ptr<Kernel> make_convolve() { return std::make_shared<Convolve>(); }

const Registered kStft{"stft",
                       "Complex spectra of the frames of a signal.",
                       make_stft,
                       {{"nfft", "points of the transform"},
                        {"step", "samples from one frame to the next"},
                        {"reflect", "mirror the signal at its ends, else zeros follow"}}};
const Registered kIstft{"istft",
                        "Signal from complex spectra of its frames.",
                        make_istft,
                        {{"nfft", "points of the transform"}, {"step", "samples from one frame to the next"}}};
const Registered kPhaseVocoder{"phase_vocoder", "Complex spectra at another tempo.", make_phase_vocoder};
const Registered kPhased{"phased",
                         "Complex spectra with given magnitudes and the phases of others.",
                         make_phased,
                         {{"share", "factor of the spectra that are subtracted"},
                          {"zero", "phases are 0"},
                          {"root", "the magnitudes are squared"}}};
const Registered kConvolve{"convolve", "Convolution of two signals.", make_convolve};

}  // namespace

}  // namespace stoker
