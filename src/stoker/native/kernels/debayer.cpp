// SPDX-License-Identifier: Apache-2.0
// Colours from a mosaic of one colour per pixel.
#include "filter/debayer.hpp"

#include <memory>
#include <stdexcept>

#include "base/whole.hpp"
#include "jpeg/rows.hpp"
#include "kernels/image_axes.hpp"
#include "kernels/registry.hpp"
#include "run/job.hpp"

namespace stoker {

namespace {

// Input [F,H,W] or [H,W]; output with one more axis, the channels. Parameters: row and column of the blue pixel.
class Debayer : public Kernel {
 public:
  explicit Debayer(int algorithm) : algorithm_(static_cast<debayer::Algorithm>(algorithm)) {
    if (algorithm < 0 || algorithm_ > debayer::Algorithm::Gradients)
      throw std::invalid_argument("expected an algorithm");
  }
  Ports ports() const override {
    const Types mosaics = types(DType::U8, DType::U16);
    return {.kernel = "debayer",
            .in = {{.types = mosaics, .least_rank = 2, .most_rank = 3}},
            .out = {{.types = mosaics, .least_rank = 3, .most_rank = 4, .same_type = 0}},
            .params = 2};
  }
  void check(const StepFacts& step) const override {
    step.require(step.out_rank(0) == step.in_rank(0) + 1, "output", "one more axis than the input has", "another rank");
    if (algorithm_ == debayer::Algorithm::Gradients)
      step.require(step.in_type(0) == DType::U8, "input", "uint8", "another type");
  }
  bool fits(const Call& c) const override {
    const View from = source(c), to = result(c);
    bool same = to.shape[3] == (algorithm_ == debayer::Algorithm::Gray ? 1 : 3);
    for (int i = 0; i < 3; ++i) same = same && from.shape[i] == to.shape[i];
    if (same) return true;
    *c.error = "expected an output with the frames, rows and columns of the input, and its colours";
    return false;
  }
  Outcome run(const Call& c) const override {
    const View from = source(c), to = result(c);
    if (from.shape[1] < debayer::kLeast || from.shape[2] < debayer::kLeast) {
      *c.error = "expected an image of at least 3 pixels on a side";
      return Outcome::Error;
    }
    const debayer::Mosaic mosaic = debayer::mosaic_of(offset_of(c.params[0]), offset_of(c.params[1]));
    for (int64_t f = 0; f < from.shape[0]; ++f)
      debayer::demosaic(frame(from, f), mosaic, algorithm_, jpeg::row_kernels().interleave, frame(to, f), c.work[0]);
    return Outcome::Ok;
  }

 private:
  static View source(const Call& c) {
    const int32_t lead = c.in[0]->rank - 2;
    return framed(*c.in[0], {lead ? 0 : -1, lead, lead + 1, -1});
  }
  static View result(const Call& c) {
    const int32_t lead = c.out[0]->rank - 3;
    return framed(*c.out[0], {lead ? 0 : -1, lead, lead + 1, lead + 2});
  }
  debayer::Algorithm algorithm_;
};

std::shared_ptr<Kernel> make_debayer(int algorithm) { return std::make_shared<Debayer>(algorithm); }

const Registered kDebayer{"debayer",
                          "Colours from a mosaic of one colour per pixel.",
                          make_debayer,
                          {{"algorithm", "an Algorithm of shared/debayer.hpp"}}};

}  // namespace

}  // namespace stoker
