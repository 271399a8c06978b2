// SPDX-License-Identifier: Apache-2.0
// Kernels of audio: spectra of frames, weighted sums over bins, decibels, pre-emphasis, and their tables.
#include "signal/signal.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
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

// Power spectrum along an axis. Parameter: points of the transform, at least the extent of the axis. If they are the same
// for all rows, a table of fft_table is `given` as a second input.
class PowerSpectrum : public Kernel {
 public:
  PowerSpectrum(int32_t axis, bool magnitude, bool given) : axis_(axis), magnitude_(magnitude), given_(given) {}
  Ports ports() const override {
    Ports ports{.kernel = "power_spectrum",
                .in = {{.types = types(DType::F32), .least_rank = 1}},
                .out = {{.types = types(DType::F32), .least_rank = 1, .same_rank = 0}},
                .params = 1};
    if (given_) ports.in.push_back(port_of(DType::F32, 1));
    return ports;
  }
  void check(const StepFacts& step) const override {
    step.require(axis_ >= 0 && axis_ < step.in_rank(0), "axis", "an axis", std::to_string(axis_));
  }
  bool fits(const Call& c) const override {
    const View &x = *c.in[0], &out = *c.out[0];
    const int64_t nfft = offset_of(c.params[0]);
    if (nfft >= 1 && nfft <= fft::kMaxSamples && x.shape[axis_] >= 1 && x.shape[axis_] <= nfft &&
        alike_but_for(x, out, axis_) && out.shape[axis_] == nfft / 2 + 1) {
      if (!given_ || c.in[1]->shape[0] == fft::plan_of(static_cast<int32_t>(nfft)).floats) return true;
      *c.error = "expected a table for " + std::to_string(nfft) + " points";
      return false;
    }
    *c.error = "expected 1 to nfft elements along the axis and nfft at most 2**20, got " +
               std::to_string(x.shape[axis_]) + " and " + std::to_string(nfft);
    return false;
  }
  Outcome run(const Call& c) const override {
    const auto nfft = static_cast<int32_t>(c.params[0]);
    const std::shared_ptr<const signal::Factors> factors = given_ ? nullptr : factors_.find(nfft);
    const fft::Plan plan = given_ ? fft::plan_of(nfft) : factors->plan;
    const float* table = given_ ? contiguous_floats(*c.in[1], c.work[3]) : factors->table.data();
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
        signal::kernels().spectrum(frames, plan, table, magnitude_, {to, plan.bins, 1}, memory);
        continue;
      }
      float* rows = reinterpret_cast<float*>(c.work[2].get(static_cast<size_t>(lines * in.extent) * sizeof(float)));
      for (int64_t l = 0; l < lines; ++l)
        for (int64_t k = 0; k < in.extent; ++k) rows[l * in.extent + k] = x[k * in.inner + l];
      signal::Frames copied = frames;
      copied.samples = rows;
      signal::kernels().spectrum(copied, plan, table, magnitude_, {to, 1, in.inner}, memory);
    }
    return Outcome::Ok;
  }

 private:
  int32_t axis_;
  bool magnitude_, given_;
  signal::FactorsCache factors_;
};

std::shared_ptr<Kernel> make_power_spectrum(int32_t axis, bool magnitude, bool given) {
  return std::make_shared<PowerSpectrum>(axis, magnitude, given);
}

// Numbers of a transform whose points are the parameter: complex points of its FFT, floats of its table.
class FftSizes : public Kernel {
 public:
  Ports ports() const override { return {.kernel = "fft_sizes", .out = {port_of(DType::F64, 1)}, .params = 1}; }
  bool fits(const Call& c) const override {
    const int64_t nfft = offset_of(c.params[0]);
    if (nfft >= 1 && nfft <= fft::kMaxSamples && c.out[0]->shape[0] == 2) return true;
    *c.error = "expected 1 to 2**20 points, got " + std::to_string(nfft);
    return false;
  }
  Outcome run(const Call& c) const override {
    const fft::Plan plan = fft::plan_of(static_cast<int32_t>(c.params[0]));
    const double sizes[2] = {static_cast<double>(plan.length), static_cast<double>(plan.floats)};
    std::memcpy(c.out[0]->data, sizes, sizeof sizes);
    return Outcome::Ok;
  }
};

std::shared_ptr<Kernel> make_fft_sizes() { return std::make_shared<FftSizes>(); }

// Sums over the elements of an axis. Inputs: data, weights [rows, 2 + widest band].
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
    if (weights.shape[0] == out.shape[axis_] && alike_but_for(x, out, axis_) && are_possible(weights, x.shape[axis_]))
      return true;
    *c.error = "expected " + std::to_string(out.shape[axis_]) + " rows of weights for ranges of " +
               std::to_string(x.shape[axis_]) + " elements along the axis, got " + std::to_string(weights.shape[0]);
    return false;
  }
  Outcome run(const Call& c) const override {
    const AroundAxis in(*c.in[0], axis_);
    const View& given = *c.in[1];
    const int64_t rows = given.shape[0];
    uint8_t* const expanded = c.work[3].get(static_cast<size_t>(expanded_bytes(rows, in.extent)) + 1);
    expand(given, in.extent, expanded);
    const auto* bands = reinterpret_cast<const int32_t*>(expanded);
    const signal::Weights weights = weights_in(expanded, rows, in.extent);
    const float* x = contiguous_floats(*c.in[0], c.work[2]);
    float* to = floats(c.out[0]);
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
    if (link->before == nullptr || !are_possible(weights, link->before->bins)) {
      *c.error = "expected columns, and rows of weights for ranges of them";
      return false;
    }
    link->positions = link->before->positions;
    link->bins = weights.shape[0];
    return true;
  }
  int64_t bytes(const tiled::Link& link) const override {
    return expanded_bytes(link.bins, link.before->bins) +
           link.before->bins * signal::kMostOfGroup * static_cast<int64_t>(sizeof(float));
  }
  void begin(const tiled::Link& link) const override { expand(*link.call->in[1], link.before->bins, link.memory); }
  void columns(const tiled::Link& link, int64_t first, float* out) const override {
    const int64_t bins = link.before->bins;
    auto* tile = reinterpret_cast<float*>(link.memory + expanded_bytes(link.bins, bins));
    link.before->columns(first, tile);
    signal::kernels().group_project(tile, weights_in(link.memory, link.bins, bins),
                                    reinterpret_cast<const int32_t*>(link.memory), out);
  }

 private:
  // Rows of weights as the step gets them: the first bin with a weight, the bin after the last one, and the weights
  // between them (signal::banded).
  static bool are_possible(const View& weights, int64_t bins) {
    int64_t all = 0;
    if (weights.shape[1] < 2 || __builtin_mul_overflow(weights.shape[0], bins, &all) ||
        all > std::numeric_limits<int32_t>::max())
      return false;
    if (weights.device) return true;  // the GPU's kernel stays within the bins
    for (int64_t r = 0; r < weights.shape[0]; ++r) {
      const float begin = weight(weights, r, 0), end = weight(weights, r, 1);
      if (!(begin >= 0 && begin <= end && end <= static_cast<float>(bins))) return false;
      if (static_cast<int64_t>(end) - static_cast<int64_t>(begin) > weights.shape[1] - 2) return false;
    }
    return true;
  }
  static float weight(const View& weights, int64_t row, int64_t column) {
    return *reinterpret_cast<const float*>(weights.data + row * weights.stride[0] + column * weights.stride[1]);
  }

  // Memory of a row's expanded weights: the bands, then all weights.
  static int64_t band_bytes(int64_t rows) { return (rows * 2 * static_cast<int64_t>(sizeof(int32_t)) + 63) / 64 * 64; }
  static int64_t expanded_bytes(int64_t rows, int64_t bins) {
    return band_bytes(rows) + (rows * bins * static_cast<int64_t>(sizeof(float)) + 63) / 64 * 64;
  }
  static signal::Weights weights_in(const uint8_t* expanded, int64_t rows, int64_t bins) {
    return {reinterpret_cast<const float*>(expanded + band_bytes(rows)), rows, bins};
  }
  // Weights outside of a band are not read.
  static void expand(const View& given, int64_t bins, uint8_t* memory) {
    auto* bands = reinterpret_cast<int32_t*>(memory);
    auto* weights = reinterpret_cast<float*>(memory + band_bytes(given.shape[0]));
    for (int64_t r = 0; r < given.shape[0]; ++r, weights += bins) {
      const auto begin = static_cast<int32_t>(weight(given, r, 0)), end = static_cast<int32_t>(weight(given, r, 1));
      bands[2 * r] = begin;
      bands[2 * r + 1] = end;
      for (int32_t b = begin; b < end; ++b) weights[b] = weight(given, r, 2 + b - begin);
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
    // A GPU reads a signal with its strides.
    return link->call->in[0]->device || is_contiguous(*link->call, *link->call->in[0]);
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
                                {{"axis", "the axis"},
                                 {"magnitude", "the root of the power"},
                                 {"given", "whether the table of the transform is an input"}}};
const Registered kFftSizes{"fft_sizes", "Complex points of a transform, and floats of its table.", make_fft_sizes};
const Registered kProject{
    "project", "Weighted sums over the elements of an axis, in their order.", make_project, {{"axis", "the axis"}}};
const Registered kDecibels{"decibels", "Logarithm of the ratio to a reference.", make_decibels};
const Registered kPreemphasis{"preemphasis",
                              "Differences of a signal and its delayed form.",
                              make_preemphasis,
                              {{"before", "the sample before the first one: the first one, zero, the second one"}}};
}  // namespace

}  // namespace stoker
