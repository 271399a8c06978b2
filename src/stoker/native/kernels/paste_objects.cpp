// SPDX-License-Identifier: Apache-2.0
// Objects of another image, pasted by their masks.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/registry.hpp"
#include "kernels/row_stream.hpp"

namespace stoker {

namespace {

constexpr Types kMasks = types(DType::Bool, DType::U8, DType::I8);

// Inputs: masks of the image's objects and of the other image's, [N,H,W] and [M,H,W]; an object is where its mask is not
// zero. Parameters: the probability that an object is pasted, the least share of an own object that stays visible.
// Outputs: 1 where a pasted object lies, [H,W]; the masks that are left; the smallest boxes around them; their numbers,
// those of the other image after the image's own; how many they are.
class PasteObjects : public Kernel {
 public:
  explicit PasteObjects(DrawName name) : name_(name) {}
  Ports ports() const override {
    return {.kernel = "paste_objects",
            .in = {{.types = kMasks, .least_rank = 3, .most_rank = 3},
                   {.types = kMasks, .least_rank = 3, .most_rank = 3, .same_type = 0}},
            .out = {port_of(DType::U8, 2),
                    {.types = kMasks, .least_rank = 3, .most_rank = 3, .same_type = 0},
                    port_of(DType::F32, 2),
                    port_of(DType::I32, 1),
                    port_of(DType::I32, 0)},
            .params = 2};
  }
  bool fits(const Call& c) const override {
    const View &own = *c.in[0], &other = *c.in[1], &covered = *c.out[0], &masks = *c.out[1];
    const int64_t n = own.shape[0] + other.shape[0];
    bool equal = masks.shape[0] == n && c.out[2]->shape[0] == n && c.out[2]->shape[1] == 4 && c.out[3]->shape[0] == n;
    for (int k = 1; k < 3; ++k)
      equal = equal && own.shape[k] == other.shape[k] && own.shape[k] == covered.shape[k - 1] &&
              own.shape[k] == masks.shape[k];
    if (equal && n < (int64_t{1} << 31)) return true;
    *c.error = "expected masks of one size, and memory for all of them";
    return false;
  }
  Outcome run(const Call& c) const override {
    const View &own = *c.in[0], &other = *c.in[1];
    const int64_t height = own.shape[1], width = own.shape[2];
    philox::Stream draws = name_.of(c);
    std::vector<int64_t> pasted;
    for (int64_t i = 0; i < other.shape[0]; ++i)
      if (draws.uniform() < c.params[0]) pasted.push_back(i);
    uint8_t* covered = c.out[0]->data;
    std::fill_n(covered, height * width, uint8_t{0});
    for (const int64_t i : pasted)
      for (int64_t y = 0; y < height; ++y)
        for (int64_t x = 0; x < width; ++x) covered[y * width + x] |= value(other, i, y, x) != 0;
    Writer to{c, height, width};
    for (int64_t i = 0; i < own.shape[0]; ++i) to.add(own, i, static_cast<int32_t>(i), covered, c.params[1]);
    for (const int64_t i : pasted) to.add(other, i, static_cast<int32_t>(own.shape[0] + i), nullptr, 0);
    std::memcpy(c.out[4]->data, &to.kept, sizeof to.kept);
    return Outcome::Ok;
  }

 private:
  static uint8_t value(const View& masks, int64_t i, int64_t y, int64_t x) {
    return masks.data[i * masks.stride[0] + y * masks.stride[1] + x * masks.stride[2]];
  }

  struct Writer {
    const Call& c;
    int64_t height, width;
    int32_t kept = 0;

    // Append an object, without the pixels that others cover, if enough of it is visible.
    void add(const View& masks, int64_t i, int32_t number, const uint8_t* covered, double least) {
      uint8_t* to = c.out[1]->data + kept * height * width;
      int64_t whole = 0, left = 0, x0 = width, y0 = height, x1 = 0, y1 = 0;
      for (int64_t y = 0; y < height; ++y)
        for (int64_t x = 0; x < width; ++x, ++to) {
          const uint8_t v = value(masks, i, y, x);
          const bool hidden = covered && covered[y * width + x];
          *to = hidden ? uint8_t{0} : v;
          whole += v != 0;
          if (v == 0 || hidden) continue;
          ++left;
          x0 = std::min(x0, x);
          y0 = std::min(y0, y);
          x1 = std::max(x1, x + 1);
          y1 = std::max(y1, y + 1);
        }
      if (left == 0 || static_cast<double>(left) < least * static_cast<double>(whole)) return;
      const float box[] = {static_cast<float>(x0), static_cast<float>(y0), static_cast<float>(x1),
                           static_cast<float>(y1)};
      std::memcpy(c.out[2]->data + int64_t{16} * kept, box, sizeof box);
      std::memcpy(c.out[3]->data + int64_t{4} * kept, &number, sizeof number);
      ++kept;
    }
  };
  DrawName name_;
};

std::shared_ptr<Kernel> make_paste_objects(uint32_t draw, bool own_seed, uint64_t seed) {
  return std::make_shared<PasteObjects>(DrawName{draw, own_seed, seed});
}

const Registered kPasteObjects{"paste_objects",
                               "Objects of another image, pasted by their masks.",
                               make_paste_objects,
                               {{"draw", kDrawId}, {"own_seed", kOwnSeed}, {"seed", ""}}};

}  // namespace

}  // namespace stoker
