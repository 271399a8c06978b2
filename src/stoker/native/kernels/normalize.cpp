// SPDX-License-Identifier: Apache-2.0
// Normalization of floats by their own mean and deviation: three passes over a column, which stays in the cache.
#include <stdexcept>
#include <string>

#include "base/copy_view.hpp"
#include "kernels/tiled.hpp"
#include "plan/check.hpp"
#include "reduce/floats.hpp"
#include "run/job.hpp"

namespace stoker {

namespace {

// Floats, normalized over `count` neighbouring axes from `first` on. Parameters: ddof, scale, shift, epsilon.
class Normalize : public tiled::Kernel {
 public:
  Normalize(int32_t first, int32_t count) : first_(first), count_(count) {}
  Ports ports() const override {
    return {.kernel = "normalize_floats",
            .in = {{.types = types(DType::F32), .least_rank = 1}},
            .out = {{.types = types(DType::F32), .same_extents = 0}},
            .params = 4};
  }
  void check(const StepFacts& step) const override {
    step.require(first_ >= 0 && count_ >= 1 && first_ + count_ <= step.in_rank(0), "axes", "neighbouring axes",
                 std::to_string(first_) + " to " + std::to_string(first_ + count_ - 1));
  }
  Outcome run(const Call& c) const override {
    const View& x = *c.in[0];
    const auto* from = reinterpret_cast<const float*>(x.data);
    if (!x.contiguous()) {
      uint8_t* copy = c.work[0].get(static_cast<size_t>(x.elements()) * sizeof(float) + 1);
      copy_contiguous(x, copy);
      from = reinterpret_cast<const float*>(copy);
    }
    normalize(c, from, x.shape, x.rank, reinterpret_cast<float*>(c.out[0]->data));
    return Outcome::Ok;
  }

  tiled::Part takes() const override { return tiled::Part::Columns; }
  tiled::Part gives() const override { return tiled::Part::Whole; }
  bool measure(tiled::Link* link) const override {
    if (!link->before || first_ + count_ > 2) {
      *link->call->error = "expected columns, and axes of a matrix";
      return false;
    }
    link->positions = link->before->positions;
    link->bins = link->before->bins;
    return true;
  }
  void finish(const tiled::Link& link, const int64_t (&shape)[2], float* data) const override {
    normalize(*link.call, data, shape, 2, data);
  }

 private:
  void normalize(const Call& c, const float* x, const int64_t* shape, int32_t rank, float* y) const {
    int64_t outer = 1, count = 1, inner = 1;
    for (int32_t i = 0; i < rank; ++i) (i < first_ ? outer : i < first_ + count_ ? count : inner) *= shape[i];
    const floats::Normalization n{c.params[0], static_cast<float>(c.params[1]), static_cast<float>(c.params[2]),
                                  static_cast<float>(c.params[3])};
    const auto columns = floats::kernels().normalize;
    for (int64_t i = 0; i < outer; ++i, x += count * inner, y += count * inner) columns(x, count, inner, inner, n, y);
  }
  int32_t first_, count_;
};

std::shared_ptr<Kernel> make_normalize(int32_t first, int32_t count) {
  if (first < 0 || count < 1 || first > kMaxRank || count > kMaxRank) throw std::invalid_argument("expected some axes");
  return std::make_shared<Normalize>(first, count);
}

const Registered kNormalize{"normalize_floats",
                            "Floats with a mean and a standard deviation of their own, along neighbouring axes.",
                            make_normalize,
                            {{"first", "the first axis"}, {"count", "number of axes"}}};

}  // namespace

}  // namespace stoker
