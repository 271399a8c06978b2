// SPDX-License-Identifier: Apache-2.0
// Pixels after JPEG compression and decompression.
#include <memory>
#include <string>

#include "base/whole.hpp"
#include "jpeg/distort.hpp"
#include "kernels/image_axes.hpp"
#include "kernels/registry.hpp"
#include "run/job.hpp"

namespace stoker {

namespace {

// Parameter: the quality.
class JpegDistortion : public Kernel {
 public:
  explicit JpegDistortion(ImageAxes axes) : axes_(axes) {}
  Ports ports() const override {
    return {.kernel = "jpeg_distortion",
            .in = {{.types = types(DType::U8), .most_rank = 4}},
            .out = {{.types = types(DType::U8), .same_extents = 0}},
            .params = 1};
  }
  void check(const StepFacts& step) const override { require_axes(step, axes_); }
  Outcome run(const Call& c) const override {
    const View from = framed(*c.in[0], axes_), to = framed(*c.out[0], axes_);
    const auto quality = static_cast<int>(saturated<int64_t>(c.params[0], 1, 100));
    for (int64_t f = 0; f < from.shape[0]; ++f)
      if (!jpeg::distort(frame(from, f), quality, frame(to, f), c.work[0])) {
        *c.error =
            "expected an image of 3 channels and of 1 to " + std::to_string(jpeg::kMostPixels) + " pixels on a side";
        return Outcome::Error;
      }
    return Outcome::Ok;
  }

 private:
  ImageAxes axes_;
};

std::shared_ptr<Kernel> make_distortion(int32_t frame, int32_t height, int32_t width, int32_t channel) {
  return std::make_shared<JpegDistortion>(ImageAxes{frame, height, width, channel});
}

const Registered kDistortion{"jpeg_distortion",
                             "Pixels after JPEG compression and decompression.",
                             make_distortion,
                             {{"frame", kAxis}, {"height", kAxis}, {"width", kAxis}, {"channel", kAxis}}};

}  // namespace

}  // namespace stoker
