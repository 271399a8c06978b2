// SPDX-License-Identifier: Apache-2.0
// Minima, maxima and medians of the windows of an image.
#include "filter/order.hpp"

#include <memory>
#include <stdexcept>
#include <string>

#include "base/whole.hpp"
#include "kernels/image_axes.hpp"
#include "kernels/registry.hpp"
#include "run/job.hpp"

namespace stoker {

namespace {

constexpr Types kOrdered = types(DType::Bool, DType::U8, DType::U16, DType::U32, DType::I8, DType::I16, DType::I32,
                                 DType::F16, DType::BF16, DType::F32);

Ports ports_of(const char* name, int32_t params) {
  return {.kernel = name,
          .in = {{.types = kOrdered, .most_rank = 4}},
          .out = {{.types = kOrdered, .same_type = 0, .same_extents = 0}},
          .params = params};
}

// Parameters: height and width of the window, then its rows above and pixels before the position.
class Extremes : public Kernel {
 public:
  Extremes(ImageAxes axes, int border, bool largest)
      : axes_(axes), border_(static_cast<Border>(border)), largest_(largest) {
    if (border < 0 || border_ > Border::Constant) throw std::invalid_argument("expected a border mode");
  }
  Ports ports() const override { return ports_of("extremes", 4); }
  void check(const StepFacts& step) const override { require_axes(step, axes_); }
  Outcome run(const Call& c) const override {
    const order::Window window{offset_of(c.params[0]), offset_of(c.params[1]), offset_of(c.params[2]),
                               offset_of(c.params[3]), border_};
    const bool done = each_plane(framed(*c.in[0], axes_), framed(*c.out[0], axes_), axes_,
                                 [&](View& a, View& b) { return order::extreme(a, window, largest_, b, c.work[0]); });
    if (done) return Outcome::Ok;
    *c.error = "expected a window that contains its anchor, got " + std::to_string(window.height) + "x" +
               std::to_string(window.width) + " with the anchor " + std::to_string(window.top) + ", " +
               std::to_string(window.left);
    return Outcome::Error;
  }

 private:
  ImageAxes axes_;
  Border border_;
  bool largest_;
};

// Parameters: height and width of the window.
class Median : public Kernel {
 public:
  explicit Median(ImageAxes axes) : axes_(axes) {}
  Ports ports() const override { return ports_of("median", 2); }
  void check(const StepFacts& step) const override { require_axes(step, axes_); }
  Outcome run(const Call& c) const override {
    const int64_t height = offset_of(c.params[0]), width = offset_of(c.params[1]);
    const bool done = each_plane(framed(*c.in[0], axes_), framed(*c.out[0], axes_), axes_,
                                 [&](View& a, View& b) { return order::median(a, height, width, b, c.work[0]); });
    if (done) return Outcome::Ok;
    *c.error = "expected a window of odd extents, got " + std::to_string(height) + "x" + std::to_string(width);
    return Outcome::Error;
  }

 private:
  ImageAxes axes_;
};

std::shared_ptr<Kernel> make_extremes(int32_t frame, int32_t height, int32_t width, int32_t channel, int border,
                                      bool largest) {
  return std::make_shared<Extremes>(ImageAxes{frame, height, width, channel}, border, largest);
}
std::shared_ptr<Kernel> make_median(int32_t frame, int32_t height, int32_t width, int32_t channel) {
  return std::make_shared<Median>(ImageAxes{frame, height, width, channel});
}

const Registered kExtremes{"extremes",
                           "Minima or maxima of windows.",
                           make_extremes,
                           {{"frame", kAxis},
                            {"height", kAxis},
                            {"width", kAxis},
                            {"channel", kAxis},
                            {"border", "a Border of shared/border.hpp"},
                            {"largest", "maxima, not minima"}}};
const Registered kMedian{"median",
                         "Medians of windows.",
                         make_median,
                         {{"frame", kAxis}, {"height", kAxis}, {"width", kAxis}, {"channel", kAxis}}};

}  // namespace

}  // namespace stoker
