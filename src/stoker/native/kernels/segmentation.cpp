// SPDX-License-Identifier: Apache-2.0
// Masks of objects: random pixels, random objects, polygons of some masks.
#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/whole.hpp"
#include "kernels/registry.hpp"
#include "kernels/row_stream.hpp"

namespace stoker {

namespace {

Outcome refuse(const Call& c, std::string text) {
  *c.error = std::move(text);
  return Outcome::Error;
}

// Input: a mask. Parameters: whether to take only pixels of the foreground, the limit or value of these. Output: the
// coordinates of a pixel. Without pixels of the foreground all pixels count.
class RandomMaskPixel : public Kernel {
 public:
  RandomMaskPixel(DrawName name, bool equal) : name_(name), equal_(equal) {}
  Ports ports() const override {
    return {.kernel = "random_mask_pixel", .in = {{.least_rank = 1}}, .out = {port_of(DType::I64, 1)}, .params = 2};
  }
  bool fits(const Call& c) const override {
    if (c.out[0]->shape[0] == c.in[0]->rank) return true;
    *c.error = "expected a coordinate per axis";
    return false;
  }
  Outcome run(const Call& c) const override {
    const View& mask = *c.in[0];
    const int64_t n = mask.elements();
    if (n == 0) return refuse(c, "expected a mask with pixels, got none");
    philox::Stream s = name_.of(c);
    int64_t found = 0;
    if (c.params[0] != 0)
      for (int64_t i = 0; i < n; ++i) found += is_foreground(mask, i, c.params[1]);
    int64_t at = draw_below(&s, found ? found : n);
    if (found) {
      int64_t i = 0;
      for (int64_t left = at; !is_foreground(mask, i, c.params[1]) || left-- > 0; ++i) {}
      at = i;
    }
    for (int k = mask.rank - 1; k >= 0; --k) {
      const int64_t place = at % mask.shape[k];
      at /= mask.shape[k];
      std::memcpy(c.out[0]->data + 8 * k, &place, sizeof place);
    }
    return Outcome::Ok;
  }

 private:
  bool is_foreground(const View& mask, int64_t i, double limit) const {
    const double x = read_element(mask, i);
    return equal_ ? x == limit : x > limit;
  }
  DrawName name_;
  bool equal_;
};

// ---- objects ----

struct Blob {
  int32_t label;
  int64_t start[kMaxRank], end[kMaxRank];
};

struct ObjectRules {
  int32_t classes, weights;  // numbers of both; 0: all labels, equal weights
  bool ignore_class;
  int64_t largest;  // 0: all
};

constexpr Types kLabels = types(DType::Bool, DType::U8, DType::I8, DType::U16, DType::I16, DType::I32);

// Input: a mask of labels. Parameters: the probability of an object, the background, the least extents, the classes, their
// weights. Outputs: start and end, and the class, of a random connected object, or of the whole mask.
class RandomObject : public Kernel {
 public:
  RandomObject(DrawName name, ObjectRules rules) : name_(name), rules_(rules) {}
  Ports ports() const override {
    return {.kernel = "random_object",
            .in = {{.types = kLabels, .least_rank = 1}},
            .out = {port_of(DType::I32, 1), port_of(DType::I32, 0)},
            .params = 2 + rules_.classes + rules_.weights};
  }
  bool fits(const Call& c) const override {
    const View& mask = *c.in[0];
    if (mask.elements() < (int64_t{1} << 31) && c.out[0]->shape[0] == 2 * mask.rank &&
        c.param_count >= static_cast<size_t>(2 + mask.rank + rules_.classes + rules_.weights))
      return true;
    *c.error = "expected a mask of fewer than 2**31 pixels, two numbers per axis, and a least extent per axis";
    return false;
  }
  Outcome run(const Call& c) const override {
    const View& mask = *c.in[0];
    const int64_t n = mask.elements();
    const auto background = saturated<int32_t>(c.params[1]);
    const double* classes = c.params + 2 + mask.rank;
    philox::Stream s = name_.of(c);
    Blob whole{background, {}, {}};
    std::copy(mask.shape, mask.shape + mask.rank, whole.end);
    if (!(s.uniform() < c.params[0]) || n == 0) return write(c, whole);
    std::vector<Blob> blobs = find_blobs(c, classes, background);
    std::erase_if(blobs, [&](const Blob& b) { return !is_large(b, c.params + 2, mask.rank); });
    if (rules_.ignore_class) return write(c, pick(&s, blobs, mask.rank, whole));
    // Classes without a blob are dropped when they are drawn, which leaves the others their proportions.
    std::vector<std::pair<int32_t, double>> left;
    for (int32_t i = 0; i < rules_.classes; ++i)
      left.emplace_back(saturated<int32_t>(classes[i]), rules_.weights ? classes[rules_.classes + i] : 1.0);
    if (!rules_.classes) {
      for (const Blob& b : blobs) left.emplace_back(b.label, 1.0);
      std::sort(left.begin(), left.end());
      left.erase(std::unique(left.begin(), left.end()), left.end());
    }
    std::vector<Blob> own;
    while (!left.empty()) {
      const size_t at = pick_class(&s, left);
      if (at == left.size()) break;
      own.clear();
      for (const Blob& b : blobs)
        if (b.label == left[at].first) own.push_back(b);
      if (!own.empty()) return write(c, pick(&s, own, mask.rank, whole));
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(at));
    }
    return write(c, whole);
  }

 private:
  static size_t pick_class(philox::Stream* s, const std::vector<std::pair<int32_t, double>>& left) {
    double total = 0, sum = 0;
    for (const auto& one : left) total += one.second;
    if (!(total > 0)) return left.size();
    const double u = s->uniform() * total;
    size_t last = 0;
    for (size_t i = 0; i < left.size(); ++i) {
      if (left[i].second > 0) last = i;
      sum += left[i].second;
      if (u < sum) return i;
    }
    return last;
  }
  static int64_t volume(const Blob& b, int rank) {
    int64_t product = 1;
    for (int k = 0; k < rank; ++k) product *= b.end[k] - b.start[k];
    return product;
  }
  static bool is_large(const Blob& b, const double* least, int rank) {
    for (int k = 0; k < rank; ++k)
      if (static_cast<double>(b.end[k] - b.start[k]) < least[k]) return false;
    return true;
  }
  const Blob& pick(philox::Stream* s, std::vector<Blob>& blobs, int rank, const Blob& whole) const {
    if (blobs.empty()) return whole;
    auto count = static_cast<int64_t>(blobs.size());
    if (rules_.largest > 0 && rules_.largest < count) {
      std::stable_sort(blobs.begin(), blobs.end(),
                       [&](const Blob& a, const Blob& b) { return volume(a, rank) > volume(b, rank); });
      count = rules_.largest;
    }
    return blobs[static_cast<size_t>(draw_below(s, count))];
  }
  Outcome write(const Call& c, const Blob& b) const {
    const int rank = c.in[0]->rank;
    for (int k = 0; k < rank; ++k) {
      reinterpret_cast<int32_t*>(c.out[0]->data)[k] = static_cast<int32_t>(b.start[k]);
      reinterpret_cast<int32_t*>(c.out[0]->data)[rank + k] = static_cast<int32_t>(b.end[k]);
    }
    std::memcpy(c.out[1]->data, &b.label, sizeof b.label);
    return Outcome::Ok;
  }
  bool is_object(int32_t label, const double* classes, int32_t background) const {
    if (!rules_.classes) return label != background;
    return std::find(classes, classes + rules_.classes, static_cast<double>(label)) != classes + rules_.classes;
  }

  // Join pixels of one label that share a face: a forest in which each pixel's parent is an earlier pixel or itself.
  std::vector<Blob> find_blobs(const Call& c, const double* classes, int32_t background) const {
    const View& mask = *c.in[0];
    const int64_t n = mask.elements();
    const size_t bytes = static_cast<size_t>(n) * sizeof(int32_t);
    auto* labels = reinterpret_cast<int32_t*>(c.work[0].get(bytes));
    auto* parents = reinterpret_cast<int32_t*>(c.work[1].get(bytes));
    const auto root = [&](int32_t i) {
      while (parents[i] != i) i = parents[i] = parents[parents[i]];
      return i;
    };
    int64_t step[kMaxRank], at[kMaxRank] = {};
    for (int64_t k = mask.rank - 1, size = 1; k >= 0; size *= mask.shape[k--]) step[k] = size;
    for (int32_t i = 0; i < n; ++i) {
      labels[i] = static_cast<int32_t>(read_element(mask, i));
      parents[i] = is_object(labels[i], classes, background) ? i : -1;
      if (parents[i] >= 0)
        for (int k = 0; k < mask.rank; ++k) {
          if (at[k] == 0) continue;
          const auto before = static_cast<int32_t>(i - step[k]);
          if (parents[before] < 0 || labels[before] != labels[i]) continue;
          const int32_t a = root(before), b = root(i);
          parents[std::max(a, b)] = std::min(a, b);
        }
      for (int k = mask.rank - 1; k >= 0 && ++at[k] == mask.shape[k]; --k) at[k] = 0;
    }
    std::vector<Blob> blobs;
    auto* numbers = reinterpret_cast<int32_t*>(c.work[2].get(bytes));
    std::fill(at, at + mask.rank, 0);
    for (int32_t i = 0; i < n; ++i) {
      if (parents[i] >= 0) {
        const int32_t first = root(i);
        if (first == i) {
          numbers[i] = static_cast<int32_t>(blobs.size());
          blobs.push_back({labels[i], {}, {}});
          std::copy(at, at + mask.rank, blobs.back().start);
        }
        Blob& b = blobs[static_cast<size_t>(numbers[first])];
        for (int k = 0; k < mask.rank; ++k) {
          b.start[k] = std::min(b.start[k], at[k]);
          b.end[k] = std::max(b.end[k], at[k] + 1);
        }
      }
      for (int k = mask.rank - 1; k >= 0 && ++at[k] == mask.shape[k]; --k) at[k] = 0;
    }
    return blobs;
  }
  DrawName name_;
  ObjectRules rules_;
};

// ---- polygons ----

// Inputs: numbers of masks, polygons (mask, first vertex, end). Parameter: the number of vertices. Outputs: the polygons
// of these masks with their places among the selected vertices, their former first vertices, and how many they are.
class SelectPolygons : public Kernel {
 public:
  explicit SelectPolygons(bool renumber) : renumber_(renumber) {}
  Ports ports() const override {
    return {.kernel = "select_polygons",
            .in = {port_of(DType::I32, 1), port_of(DType::I32, 2)},
            .out = {port_of(DType::I32, 2), port_of(DType::I32, 1), port_of(DType::I32, 0)},
            .params = 1};
  }
  bool fits(const Call& c) const override {
    const int64_t n = c.in[1]->shape[0];
    if (c.in[1]->shape[1] == 3 && c.out[0]->shape[0] == n && c.out[0]->shape[1] == 3 && c.out[1]->shape[0] == n)
      return true;
    *c.error = "expected polygons of three numbers, and memory for all of them";
    return false;
  }
  Outcome run(const Call& c) const override {
    const View &ids = *c.in[0], &polygons = *c.in[1];
    const int64_t vertices = offset_of(c.params[0]);
    const auto number = [&](int64_t i, int64_t k) {
      int32_t x;
      std::memcpy(&x, polygons.data + i * polygons.stride[0] + k * polygons.stride[1], sizeof x);
      return x;
    };
    std::vector<std::pair<int32_t, int32_t>> by_mask;  // mask, polygon
    for (int64_t i = 0; i < polygons.shape[0]; ++i) {
      if (number(i, 1) < 0 || number(i, 1) > number(i, 2) || number(i, 2) > vertices)
        return refuse(c, "expected polygons with vertices from 0 to " + std::to_string(vertices) + ", got " +
                             std::to_string(number(i, 1)) + " to " + std::to_string(number(i, 2)) + " in polygon " +
                             std::to_string(i));
      by_mask.emplace_back(number(i, 0), static_cast<int32_t>(i));
    }
    std::sort(by_mask.begin(), by_mask.end());
    std::vector<int32_t> seen;
    int64_t used = 0;
    int32_t kept = 0;
    for (int64_t i = 0; i < ids.shape[0]; ++i) {
      int32_t id;
      std::memcpy(&id, ids.data + i * ids.stride[0], sizeof id);
      seen.push_back(id);
      auto found = std::lower_bound(by_mask.begin(), by_mask.end(), std::pair{id, int32_t{0}});
      if (found == by_mask.end() || found->first != id)
        return refuse(c, "expected `mask_ids` of masks that have polygons, got " + std::to_string(id));
      for (; found != by_mask.end() && found->first == id; ++found) {
        if (kept == polygons.shape[0]) break;  // a mask is named twice
        const int32_t first = number(found->second, 1), length = number(found->second, 2) - first;
        const int32_t row[] = {renumber_ ? static_cast<int32_t>(i) : id, saturated<int32_t>(static_cast<double>(used)),
                               saturated<int32_t>(static_cast<double>(used + length))};
        std::memcpy(c.out[0]->data + int64_t{12} * kept, row, sizeof row);
        std::memcpy(c.out[1]->data + int64_t{4} * kept, &first, sizeof first);
        used += length;
        ++kept;
      }
    }
    std::sort(seen.begin(), seen.end());
    const auto twice = std::adjacent_find(seen.begin(), seen.end());
    if (twice != seen.end())
      return refuse(c, "expected each of `mask_ids` once, got " + std::to_string(*twice) + " twice");
    if (used > vertices)
      return refuse(c, "expected polygons that share no vertices, got " + std::to_string(used) + " of " +
                           std::to_string(vertices));
    std::memcpy(c.out[2]->data, &kept, sizeof kept);
    return Outcome::Ok;
  }

 private:
  bool renumber_;
};

// Inputs: selected polygons, their former first vertices, all vertices. Outputs: the numbers of the selected vertices,
// and how many they are.
class SelectVertices : public Kernel {
 public:
  Ports ports() const override {
    return {.kernel = "select_vertices",
            .in = {port_of(DType::I32, 2), port_of(DType::I32, 1), {.least_rank = 1}},
            .out = {port_of(DType::I32, 1), port_of(DType::I32, 0)}};
  }
  bool fits(const Call& c) const override {
    if (c.in[0]->shape[1] == 3 && c.in[1]->shape[0] == c.in[0]->shape[0] && c.out[0]->shape[0] == c.in[2]->shape[0])
      return true;
    *c.error = "expected a first vertex for each polygon";
    return false;
  }
  Outcome run(const Call& c) const override {
    const View &polygons = *c.in[0], &firsts = *c.in[1];
    int32_t count = 0;
    for (int64_t i = 0; i < polygons.shape[0]; ++i) {
      int32_t begin, end, first;
      std::memcpy(&begin, polygons.data + i * polygons.stride[0] + polygons.stride[1], sizeof begin);
      std::memcpy(&end, polygons.data + i * polygons.stride[0] + 2 * polygons.stride[1], sizeof end);
      std::memcpy(&first, firsts.data + i * firsts.stride[0], sizeof first);
      if (begin > end || end - begin > c.out[0]->shape[0] - count)
        return refuse(c, "expected polygons that share no vertices");
      for (; begin < end; ++begin, ++first, ++count)
        std::memcpy(c.out[0]->data + int64_t{4} * count, &first, sizeof first);
    }
    std::memcpy(c.out[1]->data, &count, sizeof count);
    return Outcome::Ok;
  }
};

std::shared_ptr<Kernel> make_random_mask_pixel(uint32_t draw, bool own_seed, uint64_t seed, bool equal) {
  return std::make_shared<RandomMaskPixel>(DrawName{draw, own_seed, seed}, equal);
}
std::shared_ptr<Kernel> make_random_object(uint32_t draw, bool own_seed, uint64_t seed, int32_t classes,
                                           int32_t weights, bool ignore_class, int64_t largest) {
  if (classes < 0 || (weights != 0 && weights != classes))
    throw std::invalid_argument("expected as many weights as classes");
  return std::make_shared<RandomObject>(DrawName{draw, own_seed, seed},
                                        ObjectRules{classes, weights, ignore_class, largest});
}
std::shared_ptr<Kernel> make_select_polygons(bool renumber) { return std::make_shared<SelectPolygons>(renumber); }
std::shared_ptr<Kernel> make_select_vertices() { return std::make_shared<SelectVertices>(); }

const Registered kRandomMaskPixel{
    "random_mask_pixel",
    "Coordinates of a random pixel of a mask.",
    make_random_mask_pixel,
    {{"draw", kDrawId}, {"own_seed", kOwnSeed}, {"seed", ""}, {"equal", "foreground has a value"}}};
const Registered kRandomObject{"random_object",
                               "Start, end and class of a random connected object.",
                               make_random_object,
                               {{"draw", kDrawId},
                                {"own_seed", kOwnSeed},
                                {"seed", ""},
                                {"classes", "number of classes, 0: all labels"},
                                {"weights", "number of weights"},
                                {"ignore_class", "all objects are equally likely"},
                                {"largest", "number of objects that count, 0: all"}}};
const Registered kSelectPolygons{"select_polygons",
                                 "Polygons of some masks.",
                                 make_select_polygons,
                                 {{"renumber", "masks get the numbers of their places"}}};
const Registered kSelectVertices{"select_vertices", "Numbers of the vertices of selected polygons.",
                                 make_select_vertices};

}  // namespace

}  // namespace stoker
