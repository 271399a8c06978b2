// SPDX-License-Identifier: Apache-2.0
#include "detect/nms.hpp"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "kernels/registry.hpp"

namespace stoker {

namespace {

constexpr Types kFloats = types(DType::F32, DType::F64);
static_assert(detect::kNmsAreas <= kWorkAreas);

// Inputs: boxes, scores, and labels if the kernel is made so. Outputs: numbers of the kept boxes, more by form, the count.
class OnBoxes : public Kernel {
 public:
  OnBoxes(const char* name, bool labelled, int64_t numbers) : name_(name), labelled_(labelled), numbers_(numbers) {}
  Ports ports() const override {
    Ports p{.kernel = name_,
            .in = {{.types = kFloats, .least_rank = 2, .most_rank = 2},
                   {.types = kFloats, .least_rank = 1, .most_rank = 1, .same_type = 0}}};
    if (labelled_) p.in.push_back(port_of(DType::I64, 1));
    p.out = {port_of(DType::I64, 1)};
    return p;
  }
  bool fits(const Call& c) const override {
    const int64_t n = c.in[0]->shape[0];
    if (c.in[0]->shape[1] == numbers_ && c.in[1]->shape[0] == n && (!labelled_ || c.in[2]->shape[0] == n) &&
        n <= std::numeric_limits<int32_t>::max())
      return true;
    *c.error = "expected boxes of shape (N, " + std::to_string(numbers_) + ") with N scores" +
               (labelled_ ? " and labels" : "") + ", at most 2**31 - 1, got " + std::to_string(n) + " boxes of " +
               std::to_string(c.in[0]->shape[1]) + " numbers and " + std::to_string(c.in[1]->shape[0]) + " scores";
    return false;
  }

 protected:
  const View* labels(const Call& c) const { return labelled_ ? c.in[2] : nullptr; }
  static void write_count(const View& out, int64_t count) {
    const auto n = static_cast<int32_t>(count);
    std::memcpy(out.data, &n, sizeof n);
  }

 private:
  const char* name_;
  bool labelled_;
  int64_t numbers_;
};

// Parameter: the threshold.
class Nms : public OnBoxes {
 public:
  Nms(bool labelled, bool rotated) : OnBoxes("nms", labelled, rotated ? 5 : 4), rotated_(rotated) {}
  Ports ports() const override {
    Ports p = OnBoxes::ports();
    p.out.push_back(port_of(DType::I32, 0));
    p.params = 1;
    return p;
  }
  Outcome run(const Call& c) const override {
    const auto form = rotated_ ? detect::nms_rotated : detect::nms;
    auto* const keep = reinterpret_cast<int64_t*>(c.out[0]->data);
    write_count(*c.out[1], form(*c.in[0], *c.in[1], labels(c), c.params[0], c.out[0]->shape[0], keep, c.work));
    return Outcome::Ok;
  }

 private:
  bool rotated_;
};

// Parameters: the threshold, sigma, the least score.
class SoftNms : public OnBoxes {
 public:
  SoftNms(bool labelled, detect::Decay decay) : OnBoxes("soft_nms", labelled, 4), decay_(decay) {}
  Ports ports() const override {
    Ports p = OnBoxes::ports();
    p.out.push_back({.types = kFloats, .least_rank = 1, .most_rank = 1, .same_type = 0});
    p.out.push_back(port_of(DType::I32, 0));
    p.params = 3;
    return p;
  }
  bool fits(const Call& c) const override {
    if (!OnBoxes::fits(c)) return false;
    if (c.out[1]->shape[0] == c.out[0]->shape[0] && c.params[1] > 0) return true;
    *c.error = "expected a sigma above 0, and as many scores as numbers of boxes";
    return false;
  }
  Outcome run(const Call& c) const override {
    const detect::SoftRule rule{decay_, c.params[0], c.params[1], c.params[2]};
    auto* const keep = reinterpret_cast<int64_t*>(c.out[0]->data);
    write_count(*c.out[2], detect::soft_nms(*c.in[0], *c.in[1], labels(c), rule, c.out[0]->shape[0], keep,
                                            c.out[1]->data, c.work));
    return Outcome::Ok;
  }

 private:
  detect::Decay decay_;
};

std::shared_ptr<Kernel> make_nms(bool labelled, bool rotated) { return std::make_shared<Nms>(labelled, rotated); }

std::shared_ptr<Kernel> make_soft_nms(bool labelled, int64_t decay) {
  if (decay < 0 || decay > 1) throw std::invalid_argument("expected `decay` 0 (linear) or 1 (Gaussian)");
  return std::make_shared<SoftNms>(labelled, static_cast<detect::Decay>(decay));
}

const Registered kNms{"nms",
                      "Numbers of the boxes that no better box of their label overlaps, and their count.",
                      make_nms,
                      {{"labelled", "the third input has labels"}, {"rotated", "boxes have an angle"}}};
const Registered kSoftNms{"soft_nms",
                          "Numbers and scores of boxes, with scores that decay by the overlap with better boxes.",
                          make_soft_nms,
                          {{"labelled", "the third input has labels"}, {"decay", "0: linear, 1: Gaussian"}}};

}  // namespace

}  // namespace stoker
