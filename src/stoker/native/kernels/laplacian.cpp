// SPDX-License-Identifier: Apache-2.0
// The Laplacian of an image: the sum of two second derivatives.
#include <memory>

#include "base/whole.hpp"
#include "filter/correlate.hpp"
#include "kernels/image_axes.hpp"
#include "kernels/registry.hpp"
#include "run/job.hpp"
#include "shared/derivative.hpp"

namespace stoker {

namespace {

constexpr Types kFiltered = types(DType::U8, DType::U16, DType::I8, DType::I16, DType::F16, DType::F32);

// Parameters, for the derivative along the rows' numbers and then for that along a row: size of the derivative's window,
// size of the smoothing window across it, scale.
class Laplacian : public Kernel {
 public:
  explicit Laplacian(ImageAxes axes) : axes_(axes) {}
  Ports ports() const override {
    return {.kernel = "laplacian",
            .in = {{.types = kFiltered, .most_rank = 4}},
            .out = {{.types = kFiltered, .same_extents = 0}},
            .params = 6};
  }
  void check(const StepFacts& step) const override { require_axes(step, axes_); }
  Outcome run(const Call& c) const override {
    float weights[4][derivative::kMost];
    int64_t sizes[4];
    for (int k = 0; k < 2; ++k) {
      sizes[2 * k] = offset_of(c.params[3 * k]);
      sizes[2 * k + 1] = offset_of(c.params[3 * k + 1]);
      if (!write(weights[2 * k], sizes[2 * k], 2, 3) || !write(weights[2 * k + 1], sizes[2 * k + 1], 0, 1)) {
        *c.error = "expected windows of odd extents up to 31";
        return Outcome::Error;
      }
      // The scale belongs to the vertical window, whose sums come last.
      float* const down = weights[k ? 3 : 0];
      for (int64_t i = 0; i < sizes[k ? 3 : 0]; ++i)
        down[i] = static_cast<float>(static_cast<double>(down[i]) * c.params[3 * k + 2]);
    }
    const auto row_of = [&](int k) { return correlate::Window{weights[k], 1, sizes[k], 0, sizes[k] / 2}; };
    const auto column_of = [&](int k) { return correlate::Window{weights[k], sizes[k], 1, sizes[k] / 2, 0}; };
    const correlate::Window across[2] = {row_of(1), row_of(2)}, down[2] = {column_of(0), column_of(3)};
    const bool done = each_plane(framed(*c.in[0], axes_), framed(*c.out[0], axes_), axes_, [&](View& a, View& b) {
      return correlate::correlate_sum(a, across, down, b, c.work[0]);
    });
    if (done) return Outcome::Ok;
    *c.error = "an image without pixels has no derivatives";
    return Outcome::Error;
  }

 private:
  static bool write(float* to, int64_t size, int64_t order, int64_t least) {
    if (size < least || size > derivative::kMost || size % 2 == 0) return false;
    double exact[derivative::kMost];
    derivative::window(exact, size, order);
    for (int64_t i = 0; i < size; ++i) to[i] = static_cast<float>(exact[i]);
    return true;
  }
  ImageAxes axes_;
};

std::shared_ptr<Kernel> make_laplacian(int32_t frame, int32_t height, int32_t width, int32_t channel) {
  return std::make_shared<Laplacian>(ImageAxes{frame, height, width, channel});
}

const Registered kLaplacian{"laplacian",
                            "The sum of the second derivatives of an image.",
                            make_laplacian,
                            {{"frame", kAxis}, {"height", kAxis}, {"width", kAxis}, {"channel", kAxis}}};

}  // namespace

}  // namespace stoker
