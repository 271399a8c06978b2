// SPDX-License-Identifier: Apache-2.0
// Resampling of audio signals.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>

#include "base/whole.hpp"
#include "kernels/registry.hpp"
#include "plan/check.hpp"
#include "run/job.hpp"
#include "signal/resampler.hpp"
#include "signal/signal.hpp"

namespace stoker {

namespace {

constexpr const char* kRates = "expected positive rates with a ratio from 1/4096 to 4096";

bool are_rates(double up, double down) {
  constexpr double kLeast = 1.0 / 4096;
  return up > 0 && down > 0 && up / down >= kLeast && up / down <= 1 / kLeast;
}

// Signal [n] or [n, channels] at another rate. Parameters: the rates of the output and of the input. If they are the
// same for all rows, the weights are `given` as a second input (resample_weights).
class AudioResample : public Kernel {
 public:
  AudioResample(double quality, bool aliasing, bool given) : filter_{quality, aliasing}, given_(given) {}
  Ports ports() const override {
    Ports ports{.kernel = "audio_resample",
                .in = {{.types = types(DType::F32), .least_rank = 1, .most_rank = 2}},
                .out = {{.types = types(DType::F32), .least_rank = 1, .most_rank = 2, .same_rank = 0}},
                .params = 2};
    if (given_) ports.in.push_back(port_of(DType::F32, 2));
    return ports;
  }
  bool fits(const Call& c) const override {
    const double up = c.params[0], down = c.params[1];
    if (!are_rates(up, down)) {
      *c.error = kRates;
      return false;
    }
    if (c.in[0]->rank > 1 && c.in[0]->shape[1] != c.out[0]->shape[1]) {
      *c.error = "expected as many channels as the input has";
      return false;
    }
    if (!given_) return true;
    const signal::Ratio ratio = signal::ratio_of(up, down);
    const signal::Phases layout = signal::layout_of(filter_, ratio);
    const View& weights = *c.in[1];
    const int64_t rows = weights.shape[0];
    const bool reduced = static_cast<double>(ratio.up) == up && static_cast<double>(ratio.down) == down;
    // The form for GPUs finds out from the number of rows whether they are interpolated.
    const bool has_rows = layout.interpolated ? rows >= layout.rows() && rows != ratio.up : rows == ratio.up;
    if (reduced && has_rows && weights.shape[1] == layout.taps && weights.contiguous()) return true;
    *c.error = "expected the weights of these rates";
    return false;
  }
  Outcome run(const Call& c) const override {
    const View &in = *c.in[0], &out = *c.out[0];
    const signal::Ratio ratio = signal::ratio_of(c.params[0], c.params[1]);
    std::shared_ptr<const signal::Phases> phases;
    const float* weights = nullptr;
    if (given_) {
      phases = std::make_shared<const signal::Phases>(signal::layout_of(filter_, ratio));
      weights = reinterpret_cast<const float*>(c.in[1]->data);
    } else {
      phases = phases_of(ratio);
      weights = phases->weights.data();
    }
    const int64_t n = in.shape[0], channels = in.rank == 1 ? 1 : in.shape[1], taps = phases->taps;
    auto* padded = reinterpret_cast<float*>(c.work[0].get(static_cast<size_t>(n + 2 * taps) * sizeof(float)));
    std::fill_n(padded, phases->before, 0.0f);
    std::fill(padded + phases->before + n, padded + n + 2 * taps, 0.0f);
    const signal::Resampling r{out.shape[0],         ratio.up, ratio.down,         taps,    phases->phases,
                               phases->interpolated, weights,  n + phases->before, channels};
    for (int64_t k = 0; k < channels; ++k) {
      const uint8_t* p = in.data + (in.rank == 1 ? 0 : k * in.stride[1]);
      float* const to = padded + phases->before;
      if (n > 0 && in.stride[0] == static_cast<int64_t>(sizeof(float)))  // an empty signal may have no address
        std::memcpy(to, p, static_cast<size_t>(n) * sizeof(float));
      else
        for (int64_t i = 0; i < n; ++i) std::memcpy(to + i, p + i * in.stride[0], sizeof(float));
      signal::kernels().resample(padded, r, reinterpret_cast<float*>(out.data) + k);
    }
    return Outcome::Ok;
  }

 private:
  static constexpr size_t kKept = 16;
  struct Known {
    signal::Ratio ratio;
    std::shared_ptr<const signal::Phases> phases;
  };
  // Return the weights for a ratio. The last ones are kept.
  std::shared_ptr<const signal::Phases> phases_of(const signal::Ratio& ratio) const {
    {
      const std::lock_guard lock(mutex_);
      for (const Known& known : known_)
        if (known.ratio.up == ratio.up && known.ratio.down == ratio.down) return known.phases;
    }
    auto phases = std::make_shared<const signal::Phases>(signal::phases_of(filter_, ratio));
    const std::lock_guard lock(mutex_);
    known_.push_front({ratio, phases});
    if (known_.size() > kKept) known_.pop_back();
    return phases;
  }
  signal::Filter filter_;
  bool given_;
  mutable std::mutex mutex_;
  mutable std::deque<Known> known_;
};

// Numbers of the filter between two rates, which are the parameters: the rates in lowest terms, taps, rows of weights,
// phases, whether phases are interpolated, and the sinc's half width, cutoff, and parameter and height of its window.
class ResampleFilter : public Kernel {
 public:
  ResampleFilter(double quality, bool aliasing) : filter_{quality, aliasing} {}
  Ports ports() const override { return {.kernel = "resample_filter", .out = {port_of(DType::F64, 1)}, .params = 2}; }
  bool fits(const Call& c) const override {
    if (are_rates(c.params[0], c.params[1]) && c.out[0]->shape[0] == kNumbers) return true;
    *c.error = kRates;
    return false;
  }
  Outcome run(const Call& c) const override {
    const signal::Ratio ratio = signal::ratio_of(c.params[0], c.params[1]);
    const auto [phases, shape] = signal::shaped_layout_of(filter_, ratio);
    const auto number = [](int64_t x) { return static_cast<double>(x); };
    const double numbers[kNumbers] = {number(ratio.up),
                                      number(ratio.down),
                                      number(phases.taps),
                                      number(phases.rows()),
                                      number(phases.phases),
                                      phases.interpolated ? 1.0 : 0.0,
                                      shape.half,
                                      shape.cutoff,
                                      shape.beta,
                                      shape.bottom};
    std::memcpy(c.out[0]->data, numbers, sizeof numbers);
    return Outcome::Ok;
  }

 private:
  static constexpr int64_t kNumbers = 10;
  signal::Filter filter_;
};

void require_quality(double quality) {
  if (!(quality >= 0 && quality <= 100)) throw std::invalid_argument("expected a quality from 0 to 100");
}

std::shared_ptr<Kernel> make_resample_filter(double quality, bool aliasing) {
  require_quality(quality);
  return std::make_shared<ResampleFilter>(quality, aliasing);
}

std::shared_ptr<Kernel> make_audio_resample(double quality, bool aliasing, bool given) {
  require_quality(quality);
  return std::make_shared<AudioResample>(quality, aliasing, given);
}

const Registered kAudioResample{"audio_resample",
                                "A signal at another sampling rate.",
                                make_audio_resample,
                                {{"quality", "0 to 100"},
                                 {"aliasing", "DALI's filter, without an anti-aliasing band"},
                                 {"given", "whether the weights are an input"}}};
const Registered kResampleFilter{
    "resample_filter",
    "Numbers of the filter between two rates.",
    make_resample_filter,
    {{"quality", "0 to 100"}, {"aliasing", "DALI's filter, without an anti-aliasing band"}}};

}  // namespace

}  // namespace stoker
