// SPDX-License-Identifier: Apache-2.0
// Kernels of audio: spectra of frames, weighted sums over bins, decibels, pre-emphasis, and their tables.
#include "signal/signal.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>

#include "base/copy_view.hpp"
#include "base/whole.hpp"
#include "kernels/tiled.hpp"
#include "plan/check.hpp"
#include "run/job.hpp"
#include "signal/tables.hpp"

namespace stoker {

namespace {

using signal::Bins;

const float* floats(const View& v) { return reinterpret_cast<const float*>(v.data); }
float* floats(View* v) { return reinterpret_cast<float*>(v->data); }

// Return whether a tensor is contiguous, as the inputs of kernels in a chain must be: they have no memory for copies.
bool is_contiguous(const Call& c, const View& v) {
  if (v.contiguous()) return true;
  *c.error = "expected a contiguous tensor";
  return false;
}

// Return the elements of a view of floats in contiguous memory: its own, or a copy in `area`.
const float* contiguous_floats(const View& v, Scratch& area) {
  if (v.contiguous()) return floats(v);
  uint8_t* copy = area.get(static_cast<size_t>(v.elements()) * sizeof(float) + 1);
  copy_contiguous(v, copy);
  return reinterpret_cast<const float*>(copy);
}

// Spectrogram of a signal [n]. Inputs: the signal, a window [length], a table of fft_table. Parameters: frames of the
// row, first sample of the first frame. Output: [bins, frames], or with `by_time` [frames, bins].
class Spectrogram : public tiled::Kernel {
 public:
  Spectrogram(int32_t nfft, int64_t step, bool reflect, bool magnitude, bool by_time)
      : plan_(fft::plan_of(nfft)), step_(step), reflect_(reflect), magnitude_(magnitude), by_time_(by_time) {}
  Ports ports() const override {
    return {.kernel = "spectrogram",
            .in = {port_of(DType::F32, 1),
                   {.types = types(DType::F32), .least_rank = 1, .most_rank = 1},
                   {.types = types(DType::F32), .least_rank = 1, .most_rank = 1}},
            .out = {{.types = types(DType::F32), .least_rank = 2, .most_rank = 2}},
            .params = 2};
  }
  bool fits(const Call& c) const override {
    const View& out = *c.out[0];
    const int64_t bins = out.shape[by_time_ ? 1 : 0], frames = out.shape[by_time_ ? 0 : 1];
    if (!has_inputs(c, c.in[0]->shape[0])) return false;
    if (bins == plan_.bins && frames == offset_of(c.params[0])) return true;
    *c.error = "expected an output for " + std::to_string(plan_.samples) + " points";
    return false;
  }
  Outcome run(const Call& c) const override {
    const signal::Frames frames = frames_of(c, contiguous_floats(*c.in[1], c.work[1]));
    const float* table = contiguous_floats(*c.in[2], c.work[2]);
    const Bins out = by_time_ ? Bins{floats(c.out[0]), plan_.bins, 1} : Bins{floats(c.out[0]), 1, frames.count};
    uint8_t* memory = c.work[0].get(static_cast<size_t>(signal::spectrum_bytes(plan_, frames.length)));
    signal::kernels().spectrum(frames, plan_, table, magnitude_, out, memory);
    return Outcome::Ok;
  }

  tiled::Part takes() const override { return tiled::Part::Samples; }
  tiled::Part gives() const override { return tiled::Part::Columns; }
  bool measure(tiled::Link* link) const override {
    const Call& c = *link->call;
    const int64_t size = link->before ? link->before->positions : c.in[0]->shape[0];
    link->positions = offset_of(c.params[0]);
    link->bins = plan_.bins;
    return has_inputs(c, size) && is_contiguous(c, *c.in[1]) && is_contiguous(c, *c.in[2]);
  }
  int64_t bytes(const tiled::Link& link) const override {
    return kState + signal::spectrum_bytes(plan_, link.call->in[1]->shape[0]);
  }
  void begin(const tiled::Link& link) const override {
    signal::Frames frames = frames_of(*link.call, floats(*link.call->in[1]));
    if (link.before) {
      frames.size = link.before->positions;
      frames.source = {[](const void* before, int64_t first, int64_t count, float* out) {
                         static_cast<const tiled::Link*>(before)->samples(first, count, out);
                       },
                       link.before};
    }
    static_assert(sizeof frames <= kState);
    new (link.memory) signal::Frames(frames);
    signal::kernels().begin_spectrum(plan_, frames.length, link.memory + kState);
  }
  void columns(const tiled::Link& link, int64_t first, float* out) const override {
    const auto& frames = *std::launder(reinterpret_cast<const signal::Frames*>(link.memory));
    signal::kernels().group_spectrum(frames, first, plan_, floats(*link.call->in[2]), magnitude_, out,
                                     link.memory + kState);
  }

 private:
  static constexpr int64_t kState = 128;  // bytes of a row's frames

  bool has_inputs(const Call& c, int64_t size) const {
    const View &window = *c.in[1], &table = *c.in[2];
    if (table.shape[0] != plan_.floats || window.shape[0] > plan_.samples) {
      *c.error = "expected a window and a table for " + std::to_string(plan_.samples) + " points";
      return false;
    }
    if (size > 0 && window.shape[0] > 0 && offset_of(c.params[0]) >= 0) return true;
    *c.error = "expected a signal with samples, got none";
    return false;
  }
  // Return the frames of a row; those of a chain, whose input 0 is null, have no samples yet.
  signal::Frames frames_of(const Call& c, const float* window) const {
    const View* x = c.in[0];
    const int64_t length = c.in[1]->shape[0];
    return {x ? floats(*x) : nullptr,
            x ? x->shape[0] : 0,
            x ? x->stride[0] / static_cast<int64_t>(sizeof(float)) : 1,
            offset_of(c.params[0]),
            step_,
            offset_of(c.params[1]),
            length,
            reflect_,
            window,
            (plan_.samples - length) / 2};
  }
  fft::Plan plan_;
  int64_t step_;
  bool reflect_, magnitude_, by_time_;
};

std::shared_ptr<Kernel> make_spectrogram(int32_t nfft, int64_t step, bool reflect, bool magnitude, bool by_time) {
  if (nfft < 1 || nfft > fft::kMaxSamples) throw std::invalid_argument("expected nfft from 1 to 2**20");
  if (step < 1 || step > kFarApart) throw std::invalid_argument("expected a positive step");
  return std::make_shared<Spectrogram>(nfft, step, reflect, magnitude, by_time);
}

// The extents of a tensor before, along and after an axis.
struct AroundAxis {
  int64_t outer = 1, extent, inner = 1;
  AroundAxis(const View& v, int32_t axis) : extent(v.shape[axis]) {
    for (int i = 0; i < v.rank; ++i)
      if (i != axis) (i < axis ? outer : inner) *= v.shape[i];
  }
};

// Return whether two tensors have the same extents but for one axis.
bool alike_but_for(const View& a, const View& b, int32_t axis) {
  for (int i = 0; i < a.rank; ++i)
    if (i != axis && a.shape[i] != b.shape[i]) return false;
  return true;
}

// Power spectrum along an axis. Number of points of the transform: at least the extent of the axis.
class PowerSpectrum : public Kernel {
 public:
  PowerSpectrum(int32_t axis, bool magnitude) : axis_(axis), magnitude_(magnitude) {}
  Ports ports() const override {
    return {.kernel = "power_spectrum",
            .in = {{.types = types(DType::F32), .least_rank = 1}},
            .out = {{.types = types(DType::F32), .least_rank = 1, .same_rank = 0}},
            .params = 1};
  }
  void check(const StepFacts& step) const override {
    step.require(axis_ >= 0 && axis_ < step.in_rank(0), "axis", "an axis", std::to_string(axis_));
  }
  bool fits(const Call& c) const override {
    const View &x = *c.in[0], &out = *c.out[0];
    const int64_t nfft = offset_of(c.params[0]);
    if (nfft >= 1 && nfft <= fft::kMaxSamples && x.shape[axis_] >= 1 && x.shape[axis_] <= nfft &&
        alike_but_for(x, out, axis_) && out.shape[axis_] == nfft / 2 + 1)
      return true;
    *c.error = "expected 1 to nfft elements along the axis and nfft at most 2**20, got " +
               std::to_string(x.shape[axis_]) + " and " + std::to_string(nfft);
    return false;
  }
  Outcome run(const Call& c) const override {
    const auto nfft = static_cast<int32_t>(c.params[0]);
    const std::shared_ptr<const Transform> transform = transform_of(nfft);
    const fft::Plan& plan = transform->plan;
    const AroundAxis in(*c.in[0], axis_);
    const float* x = contiguous_floats(*c.in[0], c.work[1]);
    uint8_t* memory = c.work[0].get(static_cast<size_t>(signal::spectrum_bytes(plan, in.extent)));
    float* to = floats(c.out[0]);
    if (in.outer * in.inner == 0) return Outcome::Ok;
    const int64_t lines = in.inner == 1 ? in.outer : in.inner, calls = in.inner == 1 ? 1 : in.outer;
    for (int64_t i = 0; i < calls; ++i, x += in.extent * in.inner, to += plan.bins * in.inner) {
      // Without an inner axis lines follow each other; else line l begins at element l.
      const signal::Frames frames{
          x, std::numeric_limits<int64_t>::max(), 1, lines, in.extent, 0, in.extent, false, nullptr, 0};
      if (in.inner == 1) {
        signal::kernels().spectrum(frames, plan, transform->table.data(), magnitude_, {to, plan.bins, 1}, memory);
        continue;
      }
      float* rows = reinterpret_cast<float*>(c.work[2].get(static_cast<size_t>(lines * in.extent) * sizeof(float)));
      for (int64_t l = 0; l < lines; ++l)
        for (int64_t k = 0; k < in.extent; ++k) rows[l * in.extent + k] = x[k * in.inner + l];
      signal::Frames copied = frames;
      copied.samples = rows;
      signal::kernels().spectrum(copied, plan, transform->table.data(), magnitude_, {to, 1, in.inner}, memory);
    }
    return Outcome::Ok;
  }

 private:
  struct Transform {
    fft::Plan plan;
    std::vector<float> table;
  };
  // Return the plan and the table for a number of points. The last one is kept.
  std::shared_ptr<const Transform> transform_of(int32_t nfft) const {
    const std::lock_guard lock(mutex_);
    if (last_ && last_->plan.samples == nfft) return last_;
    const fft::Plan plan = fft::plan_of(nfft);
    last_ = std::make_shared<Transform>(Transform{plan, signal::fft_table(plan)});
    return last_;
  }
  int32_t axis_;
  bool magnitude_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Transform> last_;
};

std::shared_ptr<Kernel> make_power_spectrum(int32_t axis, bool magnitude) {
  return std::make_shared<PowerSpectrum>(axis, magnitude);
}

// Sums over the elements of an axis. Inputs: data, weights [rows, bins].
class Project : public tiled::Kernel {
 public:
  explicit Project(int32_t axis) : axis_(axis) {}
  Ports ports() const override {
    return {.kernel = "project",
            .in = {{.types = types(DType::F32), .least_rank = 1}, port_of(DType::F32, 2)},
            .out = {{.types = types(DType::F32), .least_rank = 1, .same_rank = 0}}};
  }
  void check(const StepFacts& step) const override {
    step.require(axis_ >= 0 && axis_ < step.in_rank(0), "axis", "an axis", std::to_string(axis_));
  }
  bool fits(const Call& c) const override {
    const View &x = *c.in[0], &weights = *c.in[1], &out = *c.out[0];
    if (weights.shape[1] == x.shape[axis_] && weights.shape[0] == out.shape[axis_] && alike_but_for(x, out, axis_) &&
        weights.elements() <= std::numeric_limits<int32_t>::max())
      return true;
    *c.error = "expected weights for " + std::to_string(x.shape[axis_]) + " elements along the axis, got " +
               std::to_string(weights.shape[1]);
    return false;
  }
  Outcome run(const Call& c) const override {
    const AroundAxis in(*c.in[0], axis_);
    const signal::Weights weights{contiguous_floats(*c.in[1], c.work[1]), c.in[1]->shape[0], c.in[1]->shape[1]};
    const float* x = contiguous_floats(*c.in[0], c.work[2]);
    float* to = floats(c.out[0]);
    auto* bands =
        reinterpret_cast<int32_t*>(c.work[3].get(static_cast<size_t>(weights.rows) * 2 * sizeof(int32_t) + 1));
    find_bands(weights, bands);
    uint8_t* memory = c.work[0].get(static_cast<size_t>(signal::project_bytes(weights.bins, weights.rows)) + 1);
    const auto project = signal::kernels().project;
    if (in.inner == 1) {
      project(x, in.extent, 1, in.outer, weights, bands, {to, weights.rows, 1}, memory);
      return Outcome::Ok;
    }
    for (int64_t i = 0; i < in.outer; ++i, x += in.extent * in.inner, to += weights.rows * in.inner)
      project(x, 1, in.inner, in.inner, weights, bands, {to, 1, in.inner}, memory);
    return Outcome::Ok;
  }

  tiled::Part takes() const override { return tiled::Part::Columns; }
  tiled::Part gives() const override { return tiled::Part::Columns; }
  bool measure(tiled::Link* link) const override {
    const Call& c = *link->call;
    const View& weights = *c.in[1];
    const bool alone = link->before == nullptr;
    if (alone || weights.shape[1] != link->before->bins || weights.elements() > std::numeric_limits<int32_t>::max()) {
      *c.error = "expected columns of " + std::to_string(weights.shape[1]) + " elements";
      return false;
    }
    link->positions = link->before->positions;
    link->bins = weights.shape[0];
    return is_contiguous(c, weights);
  }
  int64_t bytes(const tiled::Link& link) const override {
    return band_bytes(link) + link.before->bins * signal::kMostOfGroup * static_cast<int64_t>(sizeof(float));
  }
  void begin(const tiled::Link& link) const override {
    find_bands(weights_of(link), reinterpret_cast<int32_t*>(link.memory));
  }
  void columns(const tiled::Link& link, int64_t first, float* out) const override {
    auto* tile = reinterpret_cast<float*>(link.memory + band_bytes(link));
    link.before->columns(first, tile);
    signal::kernels().group_project(tile, weights_of(link), reinterpret_cast<const int32_t*>(link.memory), out);
  }

 private:
  static signal::Weights weights_of(const tiled::Link& link) {
    const View& weights = *link.call->in[1];
    return {floats(weights), weights.shape[0], weights.shape[1]};
  }
  static int64_t band_bytes(const tiled::Link& link) {
    return (link.bins * 2 * static_cast<int64_t>(sizeof(int32_t)) + 63) / 64 * 64;
  }
  static void find_bands(const signal::Weights& w, int32_t* bands) {
    for (int64_t r = 0; r < w.rows; ++r) {
      const float* row = w.weights + r * w.bins;
      int64_t begin = 0, end = w.bins;
      while (begin < end && row[begin] == 0.0f) ++begin;
      while (end > begin && row[end - 1] == 0.0f) --end;
      bands[2 * r] = static_cast<int32_t>(begin);
      bands[2 * r + 1] = static_cast<int32_t>(end);
    }
  }
  int32_t axis_;
};

std::shared_ptr<Kernel> make_project(int32_t axis) { return std::make_shared<Project>(axis); }

// Logarithm of a ratio. Inputs: data, the reference (0: 1 instead). Parameters: the factor of log2, the smallest ratio.
class Decibels : public tiled::Kernel {
 public:
  Ports ports() const override {
    return {.kernel = "decibels",
            .in = {{.types = types(DType::F32)}, port_of(DType::F32, 0)},
            .out = {{.types = types(DType::F32), .same_extents = 0}},
            .params = 2};
  }
  Outcome run(const Call& c) const override {
    convert(c, contiguous_floats(*c.in[0], c.work[0]), c.in[0]->elements(), floats(c.out[0]));
    return Outcome::Ok;
  }

  tiled::Part takes() const override { return tiled::Part::Columns; }
  tiled::Part gives() const override { return tiled::Part::Columns; }
  bool measure(tiled::Link* link) const override {
    if (!link->before) {
      *link->call->error = "expected columns";
      return false;
    }
    link->positions = link->before->positions;
    link->bins = link->before->bins;
    return true;
  }
  void columns(const tiled::Link& link, int64_t first, float* out) const override {
    link.before->columns(first, out);
    convert(*link.call, out, link.bins * signal::kernels().group, out);
  }

 private:
  static void convert(const Call& c, const float* x, int64_t count, float* y) {
    float reference;
    std::memcpy(&reference, c.in[1]->data, sizeof reference);
    if (reference == 0.0f) reference = 1.0f;
    signal::kernels().decibels(x, count, 1.0f / reference, static_cast<float>(c.params[1]),
                               static_cast<float>(c.params[0]), y);
  }
};

std::shared_ptr<Kernel> make_decibels() { return std::make_shared<Decibels>(); }

// Values of the sample before the first one.
enum class Before : int { Clamp, Zero, Reflect };

// y[t] = x[t] - c x[t - 1]. Parameter: c.
class Preemphasis : public tiled::Kernel {
 public:
  explicit Preemphasis(Before before) : before_(before) {}
  Ports ports() const override {
    return {.kernel = "preemphasis",
            .in = {{.types = types(DType::F32), .least_rank = 1}},
            .out = {{.types = types(DType::F32), .same_extents = 0}},
            .params = 1};
  }
  Outcome run(const Call& c) const override {
    const int64_t count = c.in[0]->elements();
    filter(c, contiguous_floats(*c.in[0], c.work[0]), 0, count, floats(c.out[0]));
    return Outcome::Ok;
  }

  tiled::Part takes() const override { return tiled::Part::Whole; }
  tiled::Part gives() const override { return tiled::Part::Samples; }
  bool measure(tiled::Link* link) const override {
    link->positions = link->call->in[0]->elements();
    link->bins = 1;
    return is_contiguous(*link->call, *link->call->in[0]);
  }
  void samples(const tiled::Link& link, int64_t first, int64_t count, float* out) const override {
    filter(*link.call, floats(*link.call->in[0]), first, count, out);
  }

 private:
  void filter(const Call& c, const float* x, int64_t first, int64_t count, float* y) const {
    if (count == 0) return;
    const auto coefficient = static_cast<float>(c.params[0]);
    if (first == 0) {
      const bool second = before_ == Before::Reflect && c.in[0]->elements() > 1;
      const float before = before_ == Before::Zero ? 0.0f : x[second ? 1 : 0];
      y[0] = x[0] - before * coefficient;
      ++first;
      ++y;
      --count;
    }
    signal::kernels().differences(x + first, count, coefficient, y);
  }
  Before before_;
};

std::shared_ptr<Kernel> make_preemphasis(int before) {
  if (before < 0 || before > static_cast<int>(Before::Reflect)) throw std::invalid_argument("expected a border");
  return std::make_shared<Preemphasis>(static_cast<Before>(before));
}

// Weights for an axis whose extent is the parameter. The last ones are kept.
template <class Form, std::vector<float> (*kMake)(const Form&, int64_t)>
class WeightsOf : public Kernel {
 public:
  WeightsOf(const char* name, Form form, int64_t rows, int64_t least)
      : name_(name), form_(form), rows_(rows), least_(least) {}
  Ports ports() const override { return {.kernel = name_, .out = {port_of(DType::F32, 2)}, .params = 1}; }
  bool fits(const Call& c) const override {
    const int64_t bins = offset_of(c.params[0]);
    if (c.out[0]->shape[0] == rows_ && c.out[0]->shape[1] == bins && bins >= least_ && bins <= kMostBins) return true;
    *c.error = "expected " + std::to_string(least_) + " to " + std::to_string(kMostBins) + " bins, got " +
               std::to_string(bins);
    return false;
  }
  Outcome run(const Call& c) const override {
    const int64_t bins = offset_of(c.params[0]);
    std::shared_ptr<const std::vector<float>> weights;
    {
      const std::lock_guard lock(mutex_);
      if (!last_ || last_bins_ != bins) last_ = std::make_shared<std::vector<float>>(kMake(form_, bins));
      last_bins_ = bins;
      weights = last_;
    }
    std::memcpy(c.out[0]->data, weights->data(), weights->size() * sizeof(float));
    return Outcome::Ok;
  }

 private:
  static constexpr int64_t kMostBins = fft::kMaxSamples;
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

std::shared_ptr<Kernel> make_mel_weights(int64_t filters, double sample_rate, double low, double high, bool htk,
                                         bool normalize) {
  require_rows(filters);
  return std::make_shared<WeightsOf<signal::Mel, signal::mel_weights>>(
      "mel_weights", signal::Mel{filters, sample_rate, low, high, htk, normalize}, filters, 2);
}

std::shared_ptr<Kernel> make_dct_weights(int64_t coefficients, int type, bool normalize, double lifter) {
  require_rows(coefficients);
  if (type < 1 || type > 4) throw std::invalid_argument("expected a type from 1 to 4");
  return std::make_shared<WeightsOf<signal::Dct, signal::dct_weights>>(
      "dct_weights", signal::Dct{coefficients, type, normalize, lifter}, coefficients, type == 1 ? 2 : 1);
}

// Table of a transform.
class FftTable : public Kernel {
 public:
  explicit FftTable(int32_t nfft) : table_(signal::fft_table(fft::plan_of(nfft))) {}
  Ports ports() const override { return {.kernel = "fft_table", .out = {port_of(DType::F32, 1)}}; }
  bool aliases() const override { return true; }
  Outcome run(const Call& c) const override {
    View& out = *c.out[0];
    out.data = reinterpret_cast<uint8_t*>(const_cast<float*>(table_.data()));
    out.shape[0] = static_cast<int64_t>(table_.size());
    out.set_contiguous_strides();
    return Outcome::Ok;
  }

 private:
  std::vector<float> table_;
};

std::shared_ptr<Kernel> make_fft_table(int32_t nfft) {
  if (nfft < 1 || nfft > fft::kMaxSamples) throw std::invalid_argument("expected nfft from 1 to 2**20");
  return std::make_shared<FftTable>(nfft);
}

const Registered kSpectrogram{"spectrogram",
                              "Power of the spectrum of frames of a signal.",
                              make_spectrogram,
                              {{"nfft", "points of the transform"},
                               {"step", "samples from one frame to the next"},
                               {"reflect", "mirror the signal at its ends, else zeros follow"},
                               {"magnitude", "the root of the power"},
                               {"by_time", "frames are the first axis of the output"}}};
const Registered kPowerSpectrum{"power_spectrum",
                                "Power of the spectrum along an axis.",
                                make_power_spectrum,
                                {{"axis", "the axis"}, {"magnitude", "the root of the power"}}};
const Registered kProject{
    "project", "Weighted sums over the elements of an axis, in their order.", make_project, {{"axis", "the axis"}}};
const Registered kDecibels{"decibels", "Logarithm of the ratio to a reference.", make_decibels};
const Registered kPreemphasis{"preemphasis",
                              "Differences of a signal and its delayed form.",
                              make_preemphasis,
                              {{"before", "the sample before the first one: the first one, zero, the second one"}}};
const Registered kMelWeights{"mel_weights",
                             "Triangular filters over the bins of a spectrum.",
                             make_mel_weights,
                             {{"filters", "number of filters"},
                              {"sample_rate", "of the signal, in Hz"},
                              {"low", "lowest frequency in Hz"},
                              {"high", "highest frequency in Hz"},
                              {"htk", "HTK's mel scale, else Slaney's"},
                              {"normalize", "divide by half the width of the filter"}}};
const Registered kDctWeights{"dct_weights",
                             "Rows of a discrete cosine transform.",
                             make_dct_weights,
                             {{"coefficients", "number of rows"},
                              {"type", "1 to 4"},
                              {"normalize", "orthonormal"},
                              {"lifter", "liftering coefficient, 0: none"}}};
const Registered kFftTable{
    "fft_table", "Factors of a transform.", make_fft_table, {{"nfft", "points of the transform"}}};

}  // namespace

}  // namespace stoker
