// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "base/whole.hpp"
#include "kernels/registry.hpp"
#include "kernels/row_stream.hpp"
#include "kernels/store_scalar.hpp"
#include "plan/check.hpp"
#include "run/job.hpp"
#include "shared/draws.hpp"
#include "shared/xmath.hpp"

namespace stoker {

namespace {

using draws::Distribution;

struct DrawSpec {
  Distribution distribution;
  DrawName name;
};

philox::Stream stream_of(const DrawSpec& spec, const Call& c) { return spec.name.of(c); }

double normal(philox::Stream* s) {
  const double first = s->uniform();
  return draws::normal(first, s->uniform());
}

// The logarithm of a number from the gamma distribution (Marsaglia and Tsang, "A simple method for generating gamma
// variables", 2000). A shape below 1 is that of a larger one, times a power of a uniform number.
double log_gamma_variate(philox::Stream* s, double shape) {
  double power = 0, larger = shape;
  if (shape < 1) larger = shape + 1;
  const double d = larger - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  double result = 0;
  for (;;) {
    const double x = normal(s), u = 1.0 - s->uniform(), root = 1 + c * x, v = root * root * root;
    if (!(v > 0) || !(xm::log(u) < 0.5 * x * x + d - d * v + d * xm::log(v))) continue;
    result = xm::log(d * v);
    break;
  }
  if (shape < 1) power = xm::log(1.0 - s->uniform()) / shape;
  return result + power;
}

double beta(philox::Stream* s, double alpha, double beta) {
  const double x = log_gamma_variate(s, alpha), y = log_gamma_variate(s, beta);
  return x == y ? 0.5 : 1 / (1 + xm::exp(std::min(y - x, 709.0)));
}

draws::Rounding rounding_of(DType dtype) {
  if (dtype == DType::F16) return draws::Rounding::Half;
  if (dtype == DType::F32) return draws::Rounding::Float;
  return dtype == DType::F64 ? draws::Rounding::Double : draws::Rounding::Other;
}

constexpr double kSides[] = {0, 1};  // of a coin: a table, because compilers make a branch, which cannot be predicted

class Draw : public Kernel {
 public:
  explicit Draw(DrawSpec spec) : spec_(spec) {}
  Ports ports() const override {
    constexpr int32_t kParams[] = {2, 2, 1, 0, 2};  // by distribution
    Ports ports{.kernel = "draw", .out = {{}}, .params = kParams[static_cast<size_t>(spec_.distribution)]};
    if (spec_.distribution == Distribution::Values) ports.in.push_back({});
    return ports;
  }
  Outcome run(const Call& c) const override {
    philox::Stream s = stream_of(spec_, c);
    const View& out = *c.out[0];
    const double* p = c.params;
    switch (spec_.distribution) {
      case Distribution::Uniform: {
        const draws::Range range(p[0], p[1], rounding_of(out.dtype));
        fill(out, [&] { return range.at(s.uniform()); });
        break;
      }
      case Distribution::Normal: fill(out, [&] { return p[0] + p[1] * normal(&s); }); break;
      case Distribution::Coin: fill(out, [&] { return kSides[s.uniform() < p[0]]; }); break;
      case Distribution::Values: {
        const View& values = *c.in[0];
        const int64_t count = values.elements();
        if (count == 0 && out.elements() > 0) {
          *c.error = "expected at least one element in `values`, got none";
          return Outcome::Error;
        }
        fill(out, [&] { return read_element(values, draws::index_below(s.uniform(), count)); });
        break;
      }
      case Distribution::Beta: fill(out, [&] { return beta(&s, p[0], p[1]); }); break;
    }
    return Outcome::Ok;
  }

 private:
  template <class Number>
  static void fill(const View& out, const Number& number) {
    const int64_t n = out.elements(), item = size_of(out.dtype);
    for (int64_t i = 0; i < n; ++i) store_scalar(out.data + i * item, out.dtype, number());
  }
  DrawSpec spec_;
};

// Words of the row's random stream: names of its elements' streams (shared/element_random.hpp).
class DrawWords : public Kernel {
 public:
  explicit DrawWords(DrawSpec spec) : spec_(spec) {}
  Ports ports() const override { return {.kernel = "draw_words", .out = {port_of(DType::I32, 1)}}; }
  Outcome run(const Call& c) const override {
    philox::Stream s = stream_of(spec_, c);
    const View& out = *c.out[0];
    for (int64_t i = 0; i < out.shape[0]; ++i) {
      const uint32_t word = s.next();
      std::memcpy(out.data + i * out.stride[0], &word, sizeof word);
    }
    return Outcome::Ok;
  }

 private:
  DrawSpec spec_;
};

// Name of the row's random stream, for draws on a GPU: the epoch's key, the row's key (each the low word, then the high
// one), and the number of the draw.
class DrawStream : public Kernel {
 public:
  explicit DrawStream(DrawSpec spec) : spec_(spec) {}
  Ports ports() const override { return {.kernel = "draw_stream", .out = {port_of(DType::I32, 1)}}; }
  bool fits(const Call& c) const override {
    if (c.out[0]->shape[0] == 5) return true;
    *c.error = "expected five words for the name of a stream";
    return false;
  }
  Outcome run(const Call& c) const override {
    const uint64_t epoch = spec_.name.epoch_key(c), row = c.job.keys[c.row];
    const uint32_t words[] = {static_cast<uint32_t>(epoch), static_cast<uint32_t>(epoch >> 32),
                              static_cast<uint32_t>(row), static_cast<uint32_t>(row >> 32), spec_.name.draw};
    for (int i = 0; i < 5; ++i) std::memcpy(c.out[0]->data + i * c.out[0]->stride[0], &words[i], sizeof words[i]);
    return Outcome::Ok;
  }

 private:
  DrawSpec spec_;
};

class Choice : public Kernel {
 public:
  Choice(DrawSpec spec, bool has_weights) : spec_(spec), has_weights_(has_weights) {}
  Ports ports() const override {
    Ports ports{.kernel = "choice", .in = {{}}, .out = {{}}};
    if (has_weights_) ports.in.push_back({});
    return ports;
  }
  void check(const StepFacts& step) const override {
    const bool same = step.in_rank(0) == 0 || step.in_type(0) == step.out_type(0);
    step.require(same, "output", "the elements' type", "another one");
  }
  Outcome run(const Call& c) const override {
    const View& from = *c.in[0];
    const View& out = *c.out[0];
    const bool range = from.rank == 0;  // a scalar n means 0 .. n-1
    const int64_t count = range ? saturated<int64_t>(read_element(from, 0)) : from.shape[0];
    if (count <= 0) {
      *c.error = "expected at least one element to choose from, got none";
      return Outcome::Error;
    }
    if (has_weights_ && c.in[1]->elements() != count) {
      *c.error = "expected as many probabilities `p` as elements (" + std::to_string(count) + "), got " +
                 std::to_string(c.in[1]->elements());
      return Outcome::Error;
    }
    double total = static_cast<double>(count);
    if (has_weights_ && !sum_weights(*c.in[1], &total, c.error)) return Outcome::Error;
    int64_t inner = 1;
    for (int i = 1; i < from.rank; ++i) inner *= from.shape[i];
    philox::Stream s = stream_of(spec_, c);
    const int64_t item = size_of(out.dtype), draws = inner ? out.elements() / inner : 0;
    for (int64_t i = 0; i < draws; ++i) {
      const int64_t k = pick(c, s.uniform(), count, total);
      for (int64_t j = 0; j < inner; ++j)
        if (range) store_scalar(out.data + (i * inner + j) * item, out.dtype, static_cast<double>(k));
        else std::memcpy(out.data + (i * inner + j) * item, address_of(from, k * inner + j), static_cast<size_t>(item));
    }
    return Outcome::Ok;
  }

 private:
  static const uint8_t* address_of(const View& v, int64_t flat) {
    const uint8_t* p = v.data;
    for (int d = v.rank - 1; d >= 0; --d) {
      p += flat % v.shape[d] * v.stride[d];
      flat /= v.shape[d];
    }
    return p;
  }
  static bool sum_weights(const View& p, double* total, std::string* error) {
    *total = 0;
    for (int64_t i = 0; i < p.elements(); ++i) {
      const double w = read_element(p, i);
      if (!(w >= 0)) {
        *error = "expected probabilities `p` >= 0, got " + std::to_string(w);
        return false;
      }
      *total += w;
    }
    if (!(*total > 0) || std::isinf(*total)) {
      *error = "expected probabilities `p` with a positive sum";
      return false;
    }
    return true;
  }
  int64_t pick(const Call& c, double u, int64_t count, double total) const {
    if (!has_weights_) return std::min(count - 1, static_cast<int64_t>(u * total));
    double sum = 0;
    int64_t last = 0;
    for (int64_t k = 0; k < count; ++k) {
      const double w = read_element(*c.in[1], k);
      if (w > 0) last = k;
      sum += w;
      if (u * total < sum) return k;
    }
    return last;  // rounding left u slightly above the sum
  }
  DrawSpec spec_;
  bool has_weights_;
};

// torchvision's RandomResizedCrop.get_params: the area is uniform and the aspect ratio log-uniform; after a number of
// failed attempts the largest centred window with a permitted ratio. Parameters: height width area0 area1 ratio0
// ratio1; outputs: anchor and shape, int64 (y, x).
class CropWindow : public Kernel {
 public:
  CropWindow(DrawSpec spec, int attempts) : spec_(spec), attempts_(attempts) {}
  Ports ports() const override {
    return {.kernel = "crop_window",
            .in = {{}},  // the extents, which come as parameters too
            .out = {port_of(DType::I64, 1), port_of(DType::I64, 1)},
            .params = 6};
  }
  bool fits(const Call& c) const override {
    if (c.out[0]->shape[0] == 2 && c.out[1]->shape[0] == 2) return true;
    *c.error = "expected two elements each as anchor and shape";
    return false;
  }
  Outcome run(const Call& c) const override {
    const double height = c.params[0], width = c.params[1];
    philox::Stream s = stream_of(spec_, c);
    double h = 0, w = 0, y = 0, x = 0;
    if (!attempt(c.params, &s, &h, &w)) {
      fallback(c.params, &h, &w);
      y = std::floor((height - h) / 2);
      x = std::floor((width - w) / 2);
    } else {
      y = std::floor(s.uniform() * (height - h + 1));
      x = std::floor(s.uniform() * (width - w + 1));
    }
    const double anchor[] = {y, x}, shape[] = {h, w};
    for (int i = 0; i < 2; ++i) {
      store_scalar(c.out[0]->data + 8 * i, DType::I64, anchor[i]);
      store_scalar(c.out[1]->data + 8 * i, DType::I64, shape[i]);
    }
    return Outcome::Ok;
  }

 private:
  bool attempt(const double* p, philox::Stream* s, double* h, double* w) const {
    const double low = xm::log(p[4]), high = xm::log(p[5]);
    for (int i = 0; i < attempts_; ++i) {
      const double area = p[0] * p[1] * (p[2] + (p[3] - p[2]) * s->uniform());
      const double ratio = xm::exp(low + (high - low) * s->uniform());
      *w = round_even(std::sqrt(area * ratio));
      *h = round_even(std::sqrt(area / ratio));
      if (*w > 0 && *w <= p[1] && *h > 0 && *h <= p[0]) return true;
    }
    return false;
  }
  static void fallback(const double* p, double* h, double* w) {
    *h = p[0];
    *w = p[1];
    const double ratio = p[1] / p[0];
    if (ratio < p[4]) *h = round_even(*w / p[4]);
    else if (ratio > p[5]) *w = round_even(*h * p[5]);
    *h = std::max(1.0, std::min(*h, p[0]));
    *w = std::max(1.0, std::min(*w, p[1]));
  }
  DrawSpec spec_;
  int attempts_;
};

std::shared_ptr<Kernel> make_draw(Distribution distribution, uint32_t draw, bool own_seed, uint64_t seed) {
  if (distribution > Distribution::Beta) throw std::invalid_argument("expected a distribution");
  return std::make_shared<Draw>(DrawSpec{distribution, {draw, own_seed, seed}});
}
std::shared_ptr<Kernel> make_draw_words(uint32_t draw, bool own_seed, uint64_t seed) {
  return std::make_shared<DrawWords>(DrawSpec{Distribution::Uniform, {draw, own_seed, seed}});
}
std::shared_ptr<Kernel> make_draw_stream(uint32_t draw, bool own_seed, uint64_t seed) {
  return std::make_shared<DrawStream>(DrawSpec{Distribution::Uniform, {draw, own_seed, seed}});
}
std::shared_ptr<Kernel> make_choice(uint32_t draw, bool own_seed, uint64_t seed, bool has_weights) {
  return std::make_shared<Choice>(DrawSpec{Distribution::Uniform, {draw, own_seed, seed}}, has_weights);
}
std::shared_ptr<Kernel> make_crop_window(uint32_t draw, bool own_seed, uint64_t seed, int attempts) {
  return std::make_shared<CropWindow>(DrawSpec{Distribution::Uniform, {draw, own_seed, seed}}, attempts);
}

const Registered kDraw{"draw",
                       "Random numbers.",
                       make_draw,
                       {{"distribution", "a Distribution"}, {"draw", kDrawId}, {"own_seed", kOwnSeed}, {"seed", ""}}};
const Registered kDrawWords{"draw_words",
                            "Random bits, from which stages draw a number for each element.",
                            make_draw_words,
                            {{"draw", kDrawId}, {"own_seed", kOwnSeed}, {"seed", ""}}};
const Registered kDrawStream{"draw_stream",
                             "Name of a row's random stream, for draws on a GPU.",
                             make_draw_stream,
                             {{"draw", kDrawId}, {"own_seed", kOwnSeed}, {"seed", ""}}};
const Registered kChoice{
    "choice",
    "Random elements of the first input, with the weights of the second.",
    make_choice,
    {{"draw", kDrawId}, {"own_seed", kOwnSeed}, {"seed", ""}, {"weights", "whether there are weights"}}};
const Registered kCropWindow{
    "crop_window",
    "A random window of some area and aspect ratio.",
    make_crop_window,
    {{"draw", kDrawId}, {"own_seed", kOwnSeed}, {"seed", ""}, {"attempts", "draws before the fallback"}}};

}  // namespace

}  // namespace stoker
