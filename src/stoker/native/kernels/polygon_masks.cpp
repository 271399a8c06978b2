// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "container/masks.hpp"
#include "kernels/registry.hpp"
#include "plan/plan.hpp"

namespace stoker {

namespace {

// Inputs: polygons (object, first vertex, end), vertices. Output: a mask for each object, 1 within its polygons.
class PolygonMasks : public Kernel {
 public:
  Ports ports() const override {
    return {.kernel = "polygon_masks",
            .in = {port_of(DType::I32, 2), port_of(DType::F32, 2)},
            .out = {port_of(DType::U8, 3)}};
  }
  bool fits(const Call& c) const override {
    if (c.in[0]->shape[1] == 3 && c.in[1]->shape[1] == 2) return true;
    *c.error = "expected polygons of three numbers, and vertices of two";
    return false;
  }
  Outcome run(const Call& c) const override {
    const View &polygons = *c.in[0], &vertices = *c.in[1], &out = *c.out[0];
    const int64_t objects = out.shape[0], known = vertices.shape[0], pixels = out.shape[1] * out.shape[2];
    std::memset(out.data, 0, static_cast<size_t>(out.elements()));
    std::vector<float> corners;
    int64_t used = 0;
    for (int64_t i = 0; i < polygons.shape[0]; ++i) {
      int32_t row[3];
      for (int64_t k = 0; k < 3; ++k)
        std::memcpy(&row[k], polygons.data + i * polygons.stride[0] + k * polygons.stride[1], sizeof row[k]);
      const auto [object, first, end] = row;
      const std::string which = " in polygon " + std::to_string(i);
      if (object < 0 || object >= objects)
        return refuse(c, "expected polygons of objects from 0 to " + std::to_string(objects - 1) + ", got " +
                             std::to_string(object) + which);
      if (first < 0 || first > end || end > known)
        return refuse(c, "expected polygons with vertices from 0 to " + std::to_string(known) + ", got " +
                             std::to_string(first) + " to " + std::to_string(end) + which);
      used += end - first;
      if (used > known) return refuse(c, "expected polygons that share no vertices, got more in total than there are");
      corners.resize(2 * static_cast<size_t>(end - first));
      for (size_t k = 0; k < corners.size(); ++k)
        std::memcpy(&corners[k],
                    vertices.data + (first + static_cast<int64_t>(k / 2)) * vertices.stride[0] +
                        static_cast<int64_t>(k % 2) * vertices.stride[1],
                    sizeof corners[k]);
      const Canvas<uint8_t> mask{out.data + object * pixels, out.shape[1], out.shape[2]};
      if (!paint_polygon(corners.data(), end - first, uint8_t{1}, mask, c.work[0]))
        return refuse(c, "expected vertices from -2**20 to 2**20, got others" + which);
    }
    return Outcome::Ok;
  }

 private:
  static Outcome refuse(const Call& c, std::string text) {
    *c.error = std::move(text);
    return Outcome::Error;
  }
};

std::shared_ptr<Kernel> make_polygon_masks() { return std::make_shared<PolygonMasks>(); }

const Registered kPolygonMasks{"polygon_masks", "A mask for each object, painted from its polygons.",
                               make_polygon_masks};

}  // namespace

}  // namespace stoker
