// SPDX-License-Identifier: Apache-2.0
// Constants of spectra as steps: the same numbers for every row.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/whole.hpp"
#include "kernels/registry.hpp"
#include "plan/check.hpp"
#include "run/job.hpp"
#include "signal/resampler.hpp"
#include "signal/tables.hpp"

namespace stoker {

namespace {

constexpr int64_t kMostBins = fft::kMaxSamples;

// Weights in bands (signal::banded) for an axis whose extent is the parameter. The last ones are kept.
template <class Form, std::vector<float> (*kMake)(const Form&, int64_t)>
class WeightsOf : public Kernel {
 public:
  WeightsOf(const char* name, Form form, int64_t rows, int64_t least)
      : name_(name), form_(form), rows_(rows), least_(least) {}
  Ports ports() const override { return {.kernel = name_, .out = {port_of(DType::F32, 2)}, .params = 1}; }
  bool fits(const Call& c) const override {
    const int64_t bins = offset_of(c.params[0]);
    if (c.out[0]->shape[0] == rows_ && c.out[0]->shape[1] == bins + 2 && bins >= least_ && bins <= kMostBins)
      return true;
    *c.error = "expected " + std::to_string(least_) + " to " + std::to_string(kMostBins) + " bins, got " +
               std::to_string(bins);
    return false;
  }
  Outcome run(const Call& c) const override {
    const int64_t bins = offset_of(c.params[0]);
    std::shared_ptr<const std::vector<float>> weights;
    {
      const std::lock_guard lock(mutex_);
      if (!last_ || last_bins_ != bins)
        last_ = std::make_shared<std::vector<float>>(signal::banded(kMake(form_, bins), rows_, bins, bins + 2));
      last_bins_ = bins;
      weights = last_;
    }
    std::memcpy(c.out[0]->data, weights->data(), weights->size() * sizeof(float));
    return Outcome::Ok;
  }

 private:
  const char* name_;
  Form form_;
  int64_t rows_, least_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const std::vector<float>> last_;
  mutable int64_t last_bins_ = 0;
};

constexpr int64_t kMostRows = 1 << 16;

void require_rows(int64_t rows) {
  if (rows < 1 || rows > kMostRows) throw std::invalid_argument("expected 1 to 65536 rows of weights");
}

// Numbers that are the same for every row.
class Table : public Kernel {
 public:
  Table(const char* name, std::vector<float> values, std::vector<int64_t> shape)
      : name_(name), values_(std::move(values)), shape_(std::move(shape)) {}
  Ports ports() const override {
    return {.kernel = name_, .out = {port_of(DType::F32, static_cast<int32_t>(shape_.size()))}};
  }
  bool aliases() const override { return true; }
  Outcome run(const Call& c) const override {
    View& out = *c.out[0];
    out.data = reinterpret_cast<uint8_t*>(const_cast<float*>(values_.data()));
    std::copy(shape_.begin(), shape_.end(), out.shape);
    out.set_contiguous_strides();
    return Outcome::Ok;
  }

 private:
  const char* name_;
  std::vector<float> values_;
  std::vector<int64_t> shape_;
};

std::shared_ptr<Kernel> make_fft_table(int32_t nfft) {
  if (nfft < 1 || nfft > fft::kMaxSamples) throw std::invalid_argument("expected nfft from 1 to 2**20");
  std::vector<float> values = signal::fft_table(fft::plan_of(nfft));
  const auto size = static_cast<int64_t>(values.size());
  return std::make_shared<Table>("fft_table", std::move(values), std::vector<int64_t>{size});
}

// Weights of `audio_resample`, [rows, taps]. Only if they are not interpolated, there are as many rows as phases.
std::shared_ptr<Kernel> make_resample_weights(double up, double down, double quality, bool aliasing) {
  const double ratio = up / down;
  if (!(up > 0 && down > 0 && ratio >= 1.0 / 4096 && ratio <= 4096))
    throw std::invalid_argument("expected positive rates with a ratio from 1/4096 to 4096");
  if (!(quality >= 0 && quality <= 100)) throw std::invalid_argument("expected a quality from 0 to 100");
  const signal::Ratio reduced = signal::ratio_of(up, down);
  signal::Phases phases = signal::phases_of({quality, aliasing}, reduced);
  const int64_t rows = phases.rows() + (phases.interpolated && phases.rows() == reduced.up ? 1 : 0);
  phases.weights.resize(static_cast<size_t>(rows * phases.taps));
  return std::make_shared<Table>("resample_weights", std::move(phases.weights),
                                 std::vector<int64_t>{rows, phases.taps});
}

constexpr int64_t kMostWeights = int64_t{1} << 24;  // also in ops/audio/_signals.py

// Weights in bands for `bins` elements of an axis; 0: for an axis whose extent is the step's parameter.
template <class Form, std::vector<float> (*kMake)(const Form&, int64_t)>
std::shared_ptr<Kernel> make_weights(const char* name, const Form& form, int64_t rows, int64_t least, int64_t bins) {
  if (bins == 0) return std::make_shared<WeightsOf<Form, kMake>>(name, form, rows, least);
  if (bins < least || bins > kMostBins)
    throw std::invalid_argument("expected " + std::to_string(least) + " to " + std::to_string(kMostBins) + " bins");
  if (rows > kMostWeights / bins)
    throw std::invalid_argument("expected at most 2**24 weights, got " + std::to_string(rows) + " rows of " +
                                std::to_string(bins));
  const std::vector<float> weights = kMake(form, bins);
  const int64_t width = signal::widest_band(weights, rows, bins) + 2;
  return std::make_shared<Table>(name, signal::banded(weights, rows, bins, width), std::vector<int64_t>{rows, width});
}

std::shared_ptr<Kernel> make_mel_weights(int64_t filters, double sample_rate, double low, double high, bool htk,
                                         bool normalize, int64_t bins) {
  require_rows(filters);
  const signal::Mel mel{filters, sample_rate, low, high, htk, normalize};
  return make_weights<signal::Mel, signal::mel_weights>("mel_weights", mel, filters, 2, bins);
}

std::shared_ptr<Kernel> make_dct_weights(int64_t coefficients, int type, bool normalize, double lifter, int64_t bins) {
  require_rows(coefficients);
  if (type < 1 || type > 4) throw std::invalid_argument("expected a type from 1 to 4");
  const signal::Dct dct{coefficients, type, normalize, lifter};
  return make_weights<signal::Dct, signal::dct_weights>("dct_weights", dct, coefficients, type == 1 ? 2 : 1, bins);
}

const Registered kResampleWeights{"resample_weights",
                                  "Weights of the filters of `audio_resample`.",
                                  make_resample_weights,
                                  {{"up", "rate of the output"},
                                   {"down", "rate of the input"},
                                   {"quality", "0 to 100"},
                                   {"aliasing", "DALI's filter, without an anti-aliasing band"}}};

const Registered kMelWeights{"mel_weights",
                             "Triangular filters over the bins of a spectrum.",
                             make_mel_weights,
                             {{"filters", "number of filters"},
                              {"sample_rate", "of the signal, in Hz"},
                              {"low", "lowest frequency in Hz"},
                              {"high", "highest frequency in Hz"},
                              {"htk", "HTK's mel scale, else Slaney's"},
                              {"normalize", "divide by half the width of the filter"},
                              {"bins", "of the spectrum; 0: the step's parameter says it"}}};
const Registered kDctWeights{"dct_weights",
                             "Rows of a discrete cosine transform.",
                             make_dct_weights,
                             {{"coefficients", "number of rows"},
                              {"type", "1 to 4"},
                              {"normalize", "orthonormal"},
                              {"lifter", "liftering coefficient, 0: none"},
                              {"bins", "values of a column; 0: the step's parameter says it"}}};
const Registered kFftTable{
    "fft_table", "Factors of a transform.", make_fft_table, {{"nfft", "points of the transform"}}};

}  // namespace

}  // namespace stoker
