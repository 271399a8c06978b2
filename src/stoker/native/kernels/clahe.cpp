// SPDX-License-Identifier: Apache-2.0
// Contrast-limited adaptive histogram equalization.
#include "filter/clahe.hpp"

#include <memory>
#include <string>

#include "base/whole.hpp"
#include "kernels/image_axes.hpp"
#include "kernels/registry.hpp"
#include "run/job.hpp"
#include "shared/lab.hpp"

namespace stoker {

namespace {

constexpr int64_t kMostTiles = 256;  // along an axis

// Inputs: the image and the table of shared/lab.hpp. Parameters: tiles across, tiles down, limit.
class Clahe : public Kernel {
 public:
  Clahe(ImageAxes axes, bool lightness) : axes_(axes), lightness_(lightness) {}
  Ports ports() const override {
    const PortRule bytes{.types = types(DType::U8), .most_rank = 4};
    return {.kernel = "clahe",
            .in = {bytes, port_of(DType::U16, 1)},
            .out = {{.types = types(DType::U8), .same_extents = 0}},
            .params = 3};
  }
  void check(const StepFacts& step) const override { require_axes(step, axes_); }
  bool fits(const Call& c) const override {
    if (c.in[1]->shape[0] == lab::kTable && c.in[1]->contiguous()) return true;
    *c.error = "expected the table of L*a*b* as second input";
    return false;
  }
  Outcome run(const Call& c) const override {
    const clahe::Settings settings{offset_of(c.params[0]), offset_of(c.params[1]), c.params[2]};
    if (settings.across < 1 || settings.down < 1 || settings.across > kMostTiles || settings.down > kMostTiles) {
      *c.error = "expected 1 to 256 tiles along an axis, got " + std::to_string(settings.down) + "x" +
                 std::to_string(settings.across);
      return Outcome::Error;
    }
    const View from = framed(*c.in[0], axes_), to = framed(*c.out[0], axes_);
    if (from.elements() == 0) return Outcome::Ok;
    const auto* table = reinterpret_cast<const uint16_t*>(c.in[1]->data);
    const int64_t channels = from.shape[3];
    for (int64_t f = 0; f < from.shape[0]; ++f) {
      const View image = frame(from, f), result = frame(to, f);
      if (lightness_ && channels == 3) {
        clahe::equalize_lightness(image, settings, table, result, c.work[0]);
        continue;
      }
      for (int64_t k = 0; k < channels; ++k)
        clahe::equalize(channel(image, k), settings, channel(result, k), c.work[0]);
    }
    return Outcome::Ok;
  }

 private:
  static View channel(const View& image, int64_t k) {
    View plane = image;
    plane.data += k * image.stride[2];
    plane.shape[2] = 1;
    return plane;
  }
  ImageAxes axes_;
  bool lightness_;
};

std::shared_ptr<Kernel> make_clahe(int32_t frame, int32_t height, int32_t width, int32_t channel, bool lightness) {
  return std::make_shared<Clahe>(ImageAxes{frame, height, width, channel}, lightness);
}

const Registered kClahe{"clahe",
                        "Contrast-limited adaptive histogram equalization.",
                        make_clahe,
                        {{"frame", kAxis},
                         {"height", kAxis},
                         {"width", kAxis},
                         {"channel", kAxis},
                         {"lightness", "equalize the lightness of images of three channels"}}};

}  // namespace

}  // namespace stoker
