// SPDX-License-Identifier: Apache-2.0
// Boxes, rotated boxes, key points and polygons that move with an image by an affine matrix, in double. Coordinates are
// x, y; corners of pixels are at whole numbers.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/whole.hpp"
#include "kernels/registry.hpp"
#include "run/job.hpp"
#include "shared/xmath.hpp"
#include "shared/xmath_more.hpp"

namespace stoker {

namespace {

constexpr size_t kFrameParams = 14;

Outcome refuse(const Call& c, std::string text) {
  *c.error = std::move(text);
  return Outcome::Error;
}

struct Point {
  double x, y;
};

// The first parameters of all kernels here: the matrix, width and height that multiply coordinates before, the window
// that is seen (x and y of its start and of its end), width and height that divide coordinates afterwards.
struct Frame {
  explicit Frame(const double* p)
      : m{p[0], p[1], p[2], p[3], p[4], p[5]},
        scale{p[6], p[7]},
        start{p[8], p[9]},
        end{p[10], p[11]},
        unit{p[12], p[13]} {}
  Point move(double x, double y) const {
    x *= scale.x;
    y *= scale.y;
    return {m[0] * x + m[1] * y + m[2], m[3] * x + m[4] * y + m[5]};
  }
  Point clamp(Point p) const { return {std::clamp(p.x, start.x, end.x), std::clamp(p.y, start.y, end.y)}; }
  Point relative(Point p) const { return {p.x / unit.x, p.y / unit.y}; }
  bool sees(Point p) const { return p.x >= start.x && p.x < end.x && p.y >= start.y && p.y < end.y; }
  bool mirrors() const { return m[0] * m[4] - m[1] * m[3] < 0; }
  bool fits() const { return start.x <= end.x && start.y <= end.y; }

  double m[6];
  Point scale, start, end, unit;
};

float element(const View& x, int64_t i, int64_t k) {
  float v;
  std::memcpy(&v, x.data + i * x.stride[0] + k * x.stride[1], sizeof v);
  return v;
}

double area_of(const std::vector<Point>& polygon) {
  double twice = 0;
  for (size_t i = 2; i < polygon.size(); ++i) {
    const Point a{polygon[i - 1].x - polygon[0].x, polygon[i - 1].y - polygon[0].y},
        b{polygon[i].x - polygon[0].x, polygon[i].y - polygon[0].y};
    twice += a.x * b.y - b.x * a.y;
  }
  return std::abs(twice) / 2;
}

// Clip a polygon at the four edges of the window (Sutherland and Hodgman, "Reentrant polygon clipping", 1974). An edge
// adds at most half as many vertices as there are, so the result has at most six times as many as the polygon.
void clip(const Frame& frame, std::vector<Point>* polygon, std::vector<Point>* spare) {
  for (int edge = 0; edge < 4; ++edge) {
    const bool along_x = edge < 2;
    const double limit = along_x ? (edge & 1 ? frame.end.x : frame.start.x) : (edge & 1 ? frame.end.y : frame.start.y);
    const auto depth = [&](const Point& p) {
      const double at = along_x ? p.x : p.y;
      return edge & 1 ? limit - at : at - limit;
    };
    spare->clear();
    for (size_t i = 0; i < polygon->size(); ++i) {
      const Point &p = (*polygon)[i], &q = (*polygon)[i + 1 < polygon->size() ? i + 1 : 0];
      const double d = depth(p), e = depth(q);
      if (d >= 0) spare->push_back(p);
      if ((d >= 0) == (e >= 0)) continue;
      const double t = d / (d - e);
      Point cut{p.x + t * (q.x - p.x), p.y + t * (q.y - p.y)};
      (along_x ? cut.x : cut.y) = limit;
      spare->push_back(cut);
    }
    polygon->swap(*spare);
  }
}

// The least area that is left, and the least share of the whole object.
struct Least {
  double area, share;
  bool keeps(double whole, double left) const { return left > 0 && left >= area && left >= share * whole; }
};

// ---- boxes ----

// Input: boxes. Parameters: the frame, the least area and share. Outputs: the boxes that are left, each the smallest one
// around its moved corners, cut at the window; their numbers; how many they are.
class AffineBoxes : public Kernel {
 public:
  AffineBoxes(std::array<int32_t, 4> numbers, bool extents) : numbers_(numbers), extents_(extents) {}
  Ports ports() const override {
    return {.kernel = "affine_boxes",
            .in = {port_of(DType::F32, 2)},
            .out = {port_of(DType::F32, 2), port_of(DType::I32, 1), port_of(DType::I32, 0)},
            .params = kFrameParams + 2};
  }
  bool fits(const Call& c) const override {
    const int64_t n = c.in[0]->shape[0];
    if (c.in[0]->shape[1] == 4 && c.out[0]->shape[0] == n && c.out[0]->shape[1] == 4 && c.out[1]->shape[0] == n &&
        n < (int64_t{1} << 31) && Frame(c.params).fits())
      return true;
    *c.error = "expected boxes of four numbers, memory for all of them, and a window";
    return false;
  }
  Outcome run(const Call& c) const override {
    const View& boxes = *c.in[0];
    const Frame frame(c.params);
    const Least least{c.params[kFrameParams], c.params[kFrameParams + 1]};
    int32_t kept = 0;
    for (int64_t i = 0; i < boxes.shape[0]; ++i) {
      double b[4];
      for (size_t k = 0; k < 4; ++k) b[k] = element(boxes, i, numbers_[k]);
      if (extents_) {
        b[2] += b[0];
        b[3] += b[1];
      }
      if (!(b[0] <= b[2] && b[1] <= b[3]) || !std::isfinite(b[0] + b[1] + b[2] + b[3]))
        return refuse(c, "expected finite boxes whose ends are not below their starts, got box " + std::to_string(i));
      Point low = frame.move(b[0], b[1]), high = low;
      for (const Point& p : {frame.move(b[2], b[1]), frame.move(b[0], b[3]), frame.move(b[2], b[3])}) {
        low = {std::min(low.x, p.x), std::min(low.y, p.y)};
        high = {std::max(high.x, p.x), std::max(high.y, p.y)};
      }
      const double whole = (high.x - low.x) * (high.y - low.y);
      low = frame.clamp(low);
      high = frame.clamp(high);
      if (!least.keeps(whole, (high.x - low.x) * (high.y - low.y))) continue;
      low = frame.relative(low);
      high = frame.relative(high);
      auto* to = reinterpret_cast<float*>(c.out[0]->data) + 4 * int64_t{kept};
      to[numbers_[0]] = static_cast<float>(low.x);
      to[numbers_[1]] = static_cast<float>(low.y);
      to[numbers_[2]] = static_cast<float>(extents_ ? high.x - low.x : high.x);
      to[numbers_[3]] = static_cast<float>(extents_ ? high.y - low.y : high.y);
      reinterpret_cast<int32_t*>(c.out[1]->data)[kept++] = static_cast<int32_t>(i);
    }
    std::memcpy(c.out[2]->data, &kept, sizeof kept);
    return Outcome::Ok;
  }

 private:
  std::array<int32_t, 4> numbers_;  // places of the starts and of the ends or extents
  bool extents_;
};

// ---- rotated boxes ----

// Input: rotated boxes (centre, width, height, degrees from x towards y). Parameters: as above. Outputs: the smallest
// rotated boxes around the parallelograms that the matrix makes of them; their numbers; how many they are.
class AffineRotatedBoxes : public Kernel {
 public:
  explicit AffineRotatedBoxes(bool filters) : filters_(filters) {}
  Ports ports() const override {
    return {.kernel = "affine_rotated_boxes",
            .in = {port_of(DType::F32, 2)},
            .out = {port_of(DType::F32, 2), port_of(DType::I32, 1), port_of(DType::I32, 0)},
            .params = kFrameParams + 2};
  }
  bool fits(const Call& c) const override {
    const int64_t n = c.in[0]->shape[0];
    if (c.in[0]->shape[1] == 5 && c.out[0]->shape[0] == n && c.out[0]->shape[1] == 5 && c.out[1]->shape[0] == n &&
        n < (int64_t{1} << 31) && Frame(c.params).fits())
      return true;
    *c.error = "expected rotated boxes of five numbers, memory for all of them, and a window";
    return false;
  }
  Outcome run(const Call& c) const override {
    const View& boxes = *c.in[0];
    const Frame frame(c.params);
    const Least least{c.params[kFrameParams], c.params[kFrameParams + 1]};
    std::vector<Point> corners, spare;
    int32_t kept = 0;
    for (int64_t i = 0; i < boxes.shape[0]; ++i) {
      double b[5];
      for (int64_t k = 0; k < 5; ++k) b[k] = element(boxes, i, k);
      if (!(b[2] >= 0 && b[3] >= 0) || !std::isfinite(b[0] + b[1] + b[2] + b[3] + b[4]))
        return refuse(c, "expected finite rotated boxes with extents of at least 0, got box " + std::to_string(i));
      const double cosine = xm::cos_pi(b[4] / 180), sine = xm::sin_pi(b[4] / 180);
      const Point centre = frame.move(b[0], b[1]);
      const Point u = side(frame, b[2] * cosine, b[2] * sine), v = side(frame, -b[3] * sine, b[3] * cosine);
      if (filters_) {
        corners.clear();
        for (const auto& [s, t] : {std::pair{-0.5, -0.5}, {0.5, -0.5}, {0.5, 0.5}, {-0.5, 0.5}})
          corners.push_back({centre.x + s * u.x + t * v.x, centre.y + s * u.y + t * v.y});
        clip(frame, &corners, &spare);
        if (!least.keeps(std::abs(u.x * v.y - u.y * v.x), area_of(corners))) continue;
      }
      write(reinterpret_cast<float*>(c.out[0]->data) + 5 * int64_t{kept}, frame.relative(centre), u, v);
      reinterpret_cast<int32_t*>(c.out[1]->data)[kept++] = static_cast<int32_t>(i);
    }
    std::memcpy(c.out[2]->data, &kept, sizeof kept);
    return Outcome::Ok;
  }

 private:
  static Point side(const Frame& frame, double x, double y) {
    return {frame.m[0] * x + frame.m[1] * y, frame.m[3] * x + frame.m[4] * y};
  }
  // The smallest rectangle around a parallelogram lies along one of its sides u and v (Freeman and Shapira,
  // "Determining the minimum-area encasing rectangle for an arbitrary closed curve", 1975).
  static void write(float* to, Point centre, Point u, Point v) {
    const double across = std::sqrt(u.x * u.x + u.y * u.y), down = std::sqrt(v.x * v.x + v.y * v.y);
    const double inner = std::abs(u.x * v.x + u.y * v.y), outer = std::abs(u.x * v.y - u.y * v.x);
    double width = across, height = down;
    Point along = u;
    if (across > 0 && down > 0) {
      // Areas: (across + inner / across) * outer / across, and with v instead of u.
      const bool by_u = inner / (across * across) <= inner / (down * down);
      width = by_u ? across + inner / across : outer / down;
      height = by_u ? outer / across : down + inner / down;
      if (!by_u) along = along_width(u, v);
    } else if (down > 0) {
      along = along_width(u, v);
    }
    const double angle =
        along.x == 0 && along.y == 0 ? 0 : xm::atan2(along.y, along.x) * (180 / 3.14159265358979323846);
    to[0] = static_cast<float>(centre.x);
    to[1] = static_cast<float>(centre.y);
    to[2] = static_cast<float>(width);
    to[3] = static_cast<float>(height);
    to[4] = static_cast<float>(angle);
  }
  // The direction across v that points like u.
  static Point along_width(Point u, Point v) { return u.x * v.y - u.y * v.x < 0 ? Point{-v.y, v.x} : Point{v.y, -v.x}; }
  bool filters_;
};

// ---- key points ----

// Input: points x, y or x, y, visibility, (..., points, numbers). Parameters: the frame. Output: the same shape.
// A point whose visibility is 0, or that the window does not show, becomes 0, 0, 0. A mirroring matrix exchanges points.
class AffineKeypoints : public Kernel {
 public:
  explicit AffineKeypoints(std::vector<int32_t> mirrored) : mirrored_(std::move(mirrored)) {}
  Ports ports() const override {
    return {.kernel = "affine_keypoints",
            .in = {{.types = types(DType::F32), .least_rank = 1}},
            .out = {{.types = types(DType::F32), .least_rank = 1}},
            .params = kFrameParams};
  }
  bool fits(const Call& c) const override {
    const View &x = *c.in[0], &out = *c.out[0];
    const auto count = static_cast<int64_t>(mirrored_.size());
    const int64_t numbers = x.shape[x.rank - 1];
    if ((numbers == 2 || numbers == 3) && out.rank == x.rank && std::equal(x.shape, x.shape + x.rank, out.shape) &&
        (!count || (x.rank >= 2 && x.shape[x.rank - 2] == count)) && Frame(c.params).fits())
      return true;
    *c.error = "expected key points of two or three numbers, and as many of them as the mirrored order names";
    return false;
  }
  Outcome run(const Call& c) const override {
    const View& x = *c.in[0];
    const Frame frame(c.params);
    const int64_t numbers = x.shape[x.rank - 1], points = x.elements() / numbers;
    const auto count = static_cast<int64_t>(mirrored_.size());
    const bool exchanges = count && frame.mirrors();
    auto* to = reinterpret_cast<float*>(c.out[0]->data);
    for (int64_t i = 0; i < points; ++i, to += numbers) {
      const int64_t from = exchanges ? i - i % count + mirrored_[static_cast<size_t>(i % count)] : i;
      double p[3] = {};
      for (int64_t k = 0; k < numbers; ++k) p[k] = read_element(x, from * numbers + k);
      if (!std::isfinite(p[0] + p[1] + p[2]))
        return refuse(c, "expected finite key points, got point " + std::to_string(from));
      const Point at = frame.move(p[0], p[1]), relative = frame.relative(at);
      const bool hidden = numbers == 3 && (p[2] == 0 || !frame.sees(at));
      to[0] = hidden ? 0.0F : static_cast<float>(relative.x);
      to[1] = hidden ? 0.0F : static_cast<float>(relative.y);
      if (numbers == 3) to[2] = hidden ? 0.0F : static_cast<float>(p[2]);
    }
    return Outcome::Ok;
  }

 private:
  std::vector<int32_t> mirrored_;
};

// ---- polygons ----

// Polygons in the form of COCO's reader (object, first vertex, end), moved and clipped. Two kernels run the same loop: one
// writes the polygons, the other one their vertices, because a kernel has outputs of one counted extent.
class AffinePolygons : public Kernel {
 public:
  AffinePolygons(bool selects, bool vertices) : selects_(selects), vertices_(vertices) {}
  Ports ports() const override {
    return {.kernel = vertices_ ? "affine_vertices" : "affine_polygons",
            .in = {port_of(DType::I32, 2), port_of(DType::F32, 2), port_of(DType::I32, 1)},
            .out = {port_of(vertices_ ? DType::F32 : DType::I32, 2), port_of(DType::I32, 0)},
            .params = kFrameParams};
  }
  bool fits(const Call& c) const override {
    const int64_t polygons = c.in[0]->shape[0], vertices = c.in[1]->shape[0];
    const bool memory = vertices_ ? c.out[0]->shape[0] == 6 * vertices && c.out[0]->shape[1] == 2
                                  : c.out[0]->shape[0] == polygons && c.out[0]->shape[1] == 3;
    if (memory && c.in[0]->shape[1] == 3 && c.in[1]->shape[1] == 2 && 6 * vertices < (int64_t{1} << 31) &&
        Frame(c.params).fits())
      return true;
    *c.error = "expected polygons of three numbers, vertices of two, memory for all of them, and a window";
    return false;
  }
  Outcome run(const Call& c) const override {
    const View &polygons = *c.in[0], &vertices = *c.in[1], &kept = *c.in[2];
    const Frame frame(c.params);
    std::vector<std::pair<int32_t, int32_t>> places;  // number of an object before and now
    for (int64_t i = 0; i < kept.shape[0]; ++i) {
      int32_t id;
      std::memcpy(&id, kept.data + i * kept.stride[0], sizeof id);
      places.emplace_back(id, static_cast<int32_t>(i));
    }
    std::sort(places.begin(), places.end());
    std::vector<Point> polygon, spare;
    int32_t count = 0, written = 0;
    int64_t used = 0;
    for (int64_t i = 0; i < polygons.shape[0]; ++i) {
      int32_t row[3];
      for (int64_t k = 0; k < 3; ++k)
        std::memcpy(&row[k], polygons.data + i * polygons.stride[0] + k * polygons.stride[1], sizeof row[k]);
      if (row[1] < 0 || row[1] > row[2] || row[2] > vertices.shape[0])
        return refuse(c, "expected polygons with vertices from 0 to " + std::to_string(vertices.shape[0]) + ", got " +
                             std::to_string(row[1]) + " to " + std::to_string(row[2]) + " in polygon " +
                             std::to_string(i));
      used += row[2] - row[1];
      if (used > vertices.shape[0]) return refuse(c, "expected polygons that share no vertices");
      if (selects_) {
        const auto found = std::lower_bound(places.begin(), places.end(), std::pair{row[0], int32_t{0}});
        if (found == places.end() || found->first != row[0]) continue;
        row[0] = found->second;
      }
      polygon.clear();
      for (int32_t k = row[1]; k < row[2]; ++k) {
        polygon.push_back(frame.move(element(vertices, k, 0), element(vertices, k, 1)));
        if (!std::isfinite(polygon.back().x + polygon.back().y))
          return refuse(c, "expected finite vertices, got vertex " + std::to_string(k));
      }
      clip(frame, &polygon, &spare);
      if (!(area_of(polygon) > 0)) continue;
      const auto size = static_cast<int32_t>(polygon.size());
      if (written + int64_t{size} > 6 * vertices.shape[0]) return refuse(c, "expected fewer vertices after clipping");
      if (vertices_) {
        auto* to = reinterpret_cast<float*>(c.out[0]->data) + 2 * int64_t{written};
        for (const Point& p : polygon) {
          const Point q = frame.relative(p);
          *to++ = static_cast<float>(q.x);
          *to++ = static_cast<float>(q.y);
        }
      } else {
        const int32_t now[] = {row[0], written, written + size};
        std::memcpy(c.out[0]->data + int64_t{12} * count, now, sizeof now);
      }
      written += size;
      ++count;
    }
    std::memcpy(c.out[1]->data, vertices_ ? &written : &count, sizeof count);
    return Outcome::Ok;
  }

 private:
  bool selects_, vertices_;
};

std::shared_ptr<Kernel> make_affine_boxes(std::vector<int32_t> numbers, bool extents) {
  std::vector<int32_t> sorted(numbers);
  std::sort(sorted.begin(), sorted.end());
  if (sorted != std::vector<int32_t>{0, 1, 2, 3}) throw std::invalid_argument("expected each number of a box once");
  return std::make_shared<AffineBoxes>(std::array<int32_t, 4>{numbers[0], numbers[1], numbers[2], numbers[3]}, extents);
}
std::shared_ptr<Kernel> make_affine_rotated_boxes(bool filters) {
  return std::make_shared<AffineRotatedBoxes>(filters);
}
std::shared_ptr<Kernel> make_affine_keypoints(std::vector<int32_t> mirrored) {
  for (const int32_t at : mirrored)
    if (at < 0 || static_cast<size_t>(at) >= mirrored.size())
      throw std::invalid_argument("expected numbers of key points below their count");
  return std::make_shared<AffineKeypoints>(std::move(mirrored));
}
std::shared_ptr<Kernel> make_affine_polygons(bool selects) { return std::make_shared<AffinePolygons>(selects, false); }
std::shared_ptr<Kernel> make_affine_vertices(bool selects) { return std::make_shared<AffinePolygons>(selects, true); }

const Registered kAffineBoxes{
    "affine_boxes",
    "Boxes that move with an image.",
    make_affine_boxes,
    {{"numbers", "places of x, y and the second x, y in a box"}, {"extents", "the second numbers are extents"}}};
const Registered kAffineRotatedBoxes{"affine_rotated_boxes",
                                     "Rotated boxes that move with an image.",
                                     make_affine_rotated_boxes,
                                     {{"filters", "drop boxes of which too little is left"}}};
const Registered kAffineKeypoints{"affine_keypoints",
                                  "Key points that move with an image.",
                                  make_affine_keypoints,
                                  {{"mirrored", "order of the points of a mirrored object; empty: as they are"}}};
const Registered kAffinePolygons{"affine_polygons",
                                 "Polygons that move with an image.",
                                 make_affine_polygons,
                                 {{"selects", "only polygons of the objects that are left"}}};
const Registered kAffineVertices{"affine_vertices",
                                 "Vertices of polygons that move with an image.",
                                 make_affine_vertices,
                                 {{"selects", "only polygons of the objects that are left"}}};

}  // namespace

}  // namespace stoker
