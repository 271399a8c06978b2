// SPDX-License-Identifier: Apache-2.0
// An image sampled at coordinates that two other tensors have.
#include <cstring>
#include <stdexcept>
#include <string>

#include "base/whole.hpp"
#include "kernels/registry.hpp"
#include "plan/check.hpp"
#include "run/job.hpp"
#include "shared/map_point.hpp"
#include "shared/pixel_scalar.hpp"

namespace stoker {

namespace {

constexpr Types kMapped = types(DType::U8, DType::I8, DType::U16, DType::I16, DType::I32, DType::F32);

// Axes of the image; -1: none.
struct MapAxes {
  int32_t of[4];  // F, H, W, C
};

// An image as four axes F, H, W and C.
View four_axes(const View& v, const MapAxes& axes) {
  View out = v;
  out.rank = 4;
  for (int i = 0; i < 4; ++i) {
    out.shape[i] = axes.of[i] < 0 ? 1 : v.shape[axes.of[i]];
    out.stride[i] = axes.of[i] < 0 ? 0 : v.stride[axes.of[i]];
  }
  return out;
}

// A map as three axes F, H and W; without an axis of frames, all frames have the same one.
View three_axes(const View& v) {
  View out = v;
  out.rank = 3;
  const int lead = 3 - v.rank;
  for (int i = 0; i < 3; ++i) {
    out.shape[i] = i < lead ? 1 : v.shape[i - lead];
    out.stride[i] = i < lead ? 0 : v.stride[i - lead];
  }
  return out;
}

template <class T>
T element(const uint8_t* p) {
  T x;
  std::memcpy(&x, p, sizeof x);
  return x;
}

using mapped::Sampling;

template <class T, Sampling kSampling>
void sample_row(const View& from, const uint8_t* frame, const uint8_t* map_y, const uint8_t* map_x, int64_t step_y,
                int64_t step_x, double fill, Border border, const View& to, uint8_t* out) {
  using S = mapped::Sum<T>;
  const auto constant = pixel::scalar::in_range<T, double>(fill);
  const int64_t channels = to.shape[3];
  const auto height = static_cast<int32_t>(from.shape[1]), width = static_cast<int32_t>(from.shape[2]);
  for (int64_t x = 0; x < to.shape[2]; ++x, map_y += step_y, map_x += step_x, out += to.stride[2]) {
    const mapped::Place p(element<float>(map_y), element<float>(map_x), height, width, border);
    for (int64_t c = 0; c < channels; ++c) {
      const uint8_t* plane = frame + c * from.stride[3];
      const auto load = [&](int64_t row, int64_t column) {
        return element<T>(plane + row * from.stride[1] + column * from.stride[2]);
      };
      const auto wide = [&](int64_t row, int64_t column) { return static_cast<S>(load(row, column)); };
      T value;
      if constexpr (kSampling == Sampling::Linear) {
        value = pixel::scalar::in_range<T, S>(mapped::linear<S>(p, static_cast<S>(constant), wide));
      } else if constexpr (kSampling == Sampling::Cubic) {
        value = pixel::scalar::in_range<T, S>(mapped::cubic<S>(p, static_cast<S>(constant), wide));
      } else {
        value = p.at(p.y.index, p.x.index, constant, load);
      }
      std::memcpy(out + c * to.stride[3], &value, sizeof value);
    }
  }
}

template <class T>
void sample(const View& from, const View& map_y, const View& map_x, Sampling sampling, double fill, Border border,
            const View& to) {
  const auto run = sampling == Sampling::Linear  ? sample_row<T, Sampling::Linear>
                   : sampling == Sampling::Cubic ? sample_row<T, Sampling::Cubic>
                                                 : sample_row<T, Sampling::Nearest>;
  for (int64_t f = 0; f < to.shape[0]; ++f)
    for (int64_t y = 0; y < to.shape[1]; ++y)
      run(from, from.data + f * from.stride[0], map_y.data + f * map_y.stride[0] + y * map_y.stride[1],
          map_x.data + f * map_x.stride[0] + y * map_x.stride[1], map_y.stride[2], map_x.stride[2], fill, border, to,
          to.data + f * to.stride[0] + y * to.stride[1]);
}

// Inputs: image, coordinates of rows, coordinates of columns. Parameter: value beyond the edges.
class Map : public Kernel {
 public:
  Map(MapAxes axes, Sampling sampling, Border border) : axes_(axes), sampling_(sampling), border_(border) {}
  Ports ports() const override {
    const PortRule map{.types = types(DType::F32), .least_rank = 2, .most_rank = 3};
    return {.kernel = "map",
            .in = {{.types = kMapped, .most_rank = 4}, map, map},
            .out = {{.types = kMapped, .same_type = 0, .same_rank = 0}},
            .params = 1};
  }
  void check(const StepFacts& step) const override {
    const int32_t rank = step.in_rank(0);
    uint32_t named = 0;
    int32_t count = 0;
    for (const int32_t axis : axes_.of) {
      if (axis == -1) continue;
      step.require(axis >= 0 && axis < rank && !(named >> axis & 1), "axes", "each axis once", std::to_string(axis));
      named |= uint32_t{1} << axis;
      ++count;
    }
    step.require(count == rank, "axes", "names for " + std::to_string(rank) + " axes", std::to_string(count));
  }
  bool fits(const Call& c) const override {
    const View from = four_axes(*c.in[0], axes_), to = four_axes(*c.out[0], axes_), map = three_axes(*c.in[1]);
    const bool frames = from.shape[0] == to.shape[0] && (c.in[1]->rank == 2 || map.shape[0] == to.shape[0]);
    if (frames && c.in[1]->has_extents_of(*c.in[2]) && from.shape[3] == to.shape[3] && map.shape[1] == to.shape[1] &&
        map.shape[2] == to.shape[2])
      return true;
    *c.error = "expected coordinates for each pixel of the output, and frames and channels as the input has";
    return false;
  }
  Outcome run(const Call& c) const override {
    const View from = four_axes(*c.in[0], axes_), to = four_axes(*c.out[0], axes_);
    const View map_y = three_axes(*c.in[1]), map_x = three_axes(*c.in[2]);
    const double fill = c.params[0];
    switch (from.dtype) {
      case DType::U8: sample<uint8_t>(from, map_y, map_x, sampling_, fill, border_, to); break;
      case DType::I8: sample<int8_t>(from, map_y, map_x, sampling_, fill, border_, to); break;
      case DType::U16: sample<uint16_t>(from, map_y, map_x, sampling_, fill, border_, to); break;
      case DType::I16: sample<int16_t>(from, map_y, map_x, sampling_, fill, border_, to); break;
      case DType::I32: sample<int32_t>(from, map_y, map_x, sampling_, fill, border_, to); break;
      default: sample<float>(from, map_y, map_x, sampling_, fill, border_, to); break;
    }
    return Outcome::Ok;
  }

 private:
  MapAxes axes_;
  Sampling sampling_;
  Border border_;
};

std::shared_ptr<Kernel> make_map(int32_t frame, int32_t height, int32_t width, int32_t channel, int32_t sampling,
                                 int32_t border) {
  if (sampling < 0 || sampling > static_cast<int32_t>(Sampling::Cubic))
    throw std::invalid_argument("expected 0, 1 or 2 as sampling, got " + std::to_string(sampling));
  if (border < 0 || border > static_cast<int32_t>(Border::Constant))
    throw std::invalid_argument("expected 0 to 4 as border, got " + std::to_string(border));
  return std::make_shared<Map>(MapAxes{{frame, height, width, channel}}, static_cast<Sampling>(sampling),
                               static_cast<Border>(border));
}

constexpr const char* kAxis = "the axis, -1: none";
const Registered kMap{"map",
                      "The image at the coordinates of the other two inputs.",
                      make_map,
                      {{"frame", kAxis},
                       {"height", kAxis},
                       {"width", kAxis},
                       {"channel", kAxis},
                       {"sampling", "0: the element at the whole parts; 1: linear; 2: cubic"},
                       {"border", "elements beyond the edges, numbered as Border"}}};

}  // namespace

}  // namespace stoker
