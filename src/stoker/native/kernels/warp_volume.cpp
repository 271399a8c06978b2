// SPDX-License-Identifier: Apache-2.0
// Volumes sampled through an affine matrix.
#include <cstring>
#include <string>

#include "kernels/registry.hpp"
#include "plan/check.hpp"
#include "run/job.hpp"
#include "shared/map_point.hpp"
#include "shared/pixel_scalar.hpp"
#include "shared/volume_point.hpp"

namespace stoker {

namespace {

constexpr Types kSampled = types(DType::U8, DType::U16, DType::I16, DType::I32, DType::F32);
constexpr int64_t kNumbers = 12;

// Axes F, D, H, W and C of the volume; -1: none.
struct VolumeAxes {
  int32_t of[5];
};

View five_axes(const View& v, const VolumeAxes& axes) {
  View out = v;
  out.rank = 5;
  for (int i = 0; i < 5; ++i) {
    out.shape[i] = axes.of[i] < 0 ? 1 : v.shape[axes.of[i]];
    out.stride[i] = axes.of[i] < 0 ? 0 : v.stride[axes.of[i]];
  }
  return out;
}

template <class T>
T element(const uint8_t* p) {
  T x;
  std::memcpy(&x, p, sizeof x);
  return x;
}

template <class T>
void sample(const View& from, const double* m, bool linear, bool has_fill, double fill, const View& to,
            const uint8_t* in, uint8_t* out) {
  using S = mapped::Sum<T>;
  const auto constant = pixel::scalar::in_range<T, double>(fill);
  for (int64_t z = 0; z < to.shape[1]; ++z)
    for (int64_t y = 0; y < to.shape[2]; ++y) {
      uint8_t* line = out + z * to.stride[1] + y * to.stride[2];
      for (int64_t x = 0; x < to.shape[3]; ++x, line += to.stride[3]) {
        const auto place = volume::Place::of(m, z, y, x, linear, &from.shape[1]);
        for (int64_t c = 0; c < to.shape[4]; ++c) {
          const uint8_t* channel = in + c * from.stride[4];
          const auto load = [&](int64_t k, int64_t j, int64_t i) {
            return element<T>(channel + k * from.stride[1] + j * from.stride[2] + i * from.stride[3]);
          };
          const auto wide = [&](int64_t k, int64_t j, int64_t i) { return static_cast<S>(load(k, j, i)); };
          const T value =
              linear ? pixel::scalar::in_range<T, S>(volume::linear<S>(place, has_fill, static_cast<S>(constant), wide))
                     : place.at(0, 0, 0, has_fill, constant, load);
          std::memcpy(line + c * to.stride[4], &value, sizeof value);
        }
      }
    }
}

// Inputs: volume, twelve numbers of a matrix, or twelve for each frame. Parameter: value outside of the volume.
class WarpVolume : public Kernel {
 public:
  WarpVolume(VolumeAxes axes, bool linear, bool has_fill) : axes_(axes), linear_(linear), has_fill_(has_fill) {}
  Ports ports() const override {
    return {.kernel = "warp_volume",
            .in = {{.types = kSampled, .least_rank = 3, .most_rank = 5},
                   {.types = types(DType::F64), .least_rank = 1, .most_rank = 2}},
            .out = {{.types = kSampled, .same_type = 0, .same_rank = 0}},
            .params = 1};
  }
  void check(const StepFacts& step) const override {
    const int32_t rank = step.in_rank(0);
    uint32_t named = 0;
    int32_t count = 0;
    for (int i = 0; i < 5; ++i) {
      const int32_t axis = axes_.of[i];
      const bool may_lack = i == 0 || i == 4;
      if (axis == -1 && may_lack) continue;
      step.require(axis >= 0 && axis < rank && !(named >> axis & 1), "axes", "each axis once", std::to_string(axis));
      named |= uint32_t{1} << axis;
      ++count;
    }
    step.require(count == rank, "axes", "names for " + std::to_string(rank) + " axes", std::to_string(count));
  }
  bool fits(const Call& c) const override {
    const View from = five_axes(*c.in[0], axes_), to = five_axes(*c.out[0], axes_);
    const View& m = *c.in[1];
    const bool numbers = m.shape[m.rank - 1] == kNumbers && (m.rank == 1 || m.shape[0] == to.shape[0]);
    if (numbers && from.shape[0] == to.shape[0] && from.shape[4] == to.shape[4] &&
        (to.elements() == 0 || from.elements() > 0))
      return true;
    *c.error = "expected a volume with elements, twelve numbers per frame, and frames and channels as the input has";
    return false;
  }
  Outcome run(const Call& c) const override {
    const View from = five_axes(*c.in[0], axes_), to = five_axes(*c.out[0], axes_);
    const View& numbers = *c.in[1];
    const double fill = c.params[0];
    for (int64_t f = 0; f < to.shape[0]; ++f) {
      double m[kNumbers];
      const int last = numbers.rank - 1;
      const uint8_t* row = numbers.data + (last ? f * numbers.stride[0] : 0);
      for (int64_t i = 0; i < kNumbers; ++i) m[i] = element<double>(row + i * numbers.stride[last]);
      const uint8_t* in = from.data + f * from.stride[0];
      uint8_t* out = to.data + f * to.stride[0];
      switch (from.dtype) {
        case DType::U8: sample<uint8_t>(from, m, linear_, has_fill_, fill, to, in, out); break;
        case DType::U16: sample<uint16_t>(from, m, linear_, has_fill_, fill, to, in, out); break;
        case DType::I16: sample<int16_t>(from, m, linear_, has_fill_, fill, to, in, out); break;
        case DType::I32: sample<int32_t>(from, m, linear_, has_fill_, fill, to, in, out); break;
        default: sample<float>(from, m, linear_, has_fill_, fill, to, in, out); break;
      }
    }
    return Outcome::Ok;
  }

 private:
  VolumeAxes axes_;
  bool linear_, has_fill_;
};

std::shared_ptr<Kernel> make_warp_volume(int32_t frame, int32_t depth, int32_t height, int32_t width, int32_t channel,
                                         bool linear, bool has_fill) {
  return std::make_shared<WarpVolume>(VolumeAxes{{frame, depth, height, width, channel}}, linear, has_fill);
}

constexpr const char* kAxis = "the axis, -1: none";
const Registered kWarpVolume{"warp_volume",
                             "A volume through an affine matrix, from the output's elements to the input's.",
                             make_warp_volume,
                             {{"frame", kAxis},
                              {"depth", "the axis"},
                              {"height", "the axis"},
                              {"width", "the axis"},
                              {"channel", kAxis},
                              {"linear", "interpolate; else the nearest element"},
                              {"has_fill", "elements outside have the value; else that of the nearest element"}}};

}  // namespace

}  // namespace stoker
