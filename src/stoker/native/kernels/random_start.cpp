// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "base/whole.hpp"
#include "kernels/registry.hpp"
#include "kernels/row_stream.hpp"

namespace stoker {

namespace {

// Random start of a window. Parameters: per axis, the first start and the last one.
class RandomStart : public Kernel {
 public:
  explicit RandomStart(DrawName name) : name_(name) {}
  Ports ports() const override { return {.kernel = "random_start", .out = {port_of(DType::I64, 1)}}; }
  bool fits(const Call& c) const override {
    if (c.param_count == static_cast<size_t>(2 * c.out[0]->shape[0])) return true;
    *c.error = "expected two numbers per axis";
    return false;
  }
  Outcome run(const Call& c) const override {
    philox::Stream s = name_.of(c);
    for (int64_t k = 0; k < c.out[0]->shape[0]; ++k) {
      const int64_t first = offset_of(c.params[2 * k]), last = offset_of(c.params[2 * k + 1]);
      const int64_t start = first + draw_below(&s, std::max<int64_t>(last - first, 0) + 1);
      std::memcpy(c.out[0]->data + 8 * k, &start, sizeof start);
    }
    return Outcome::Ok;
  }

 private:
  DrawName name_;
};

std::shared_ptr<Kernel> make_random_start(uint32_t draw, bool own_seed, uint64_t seed) {
  return std::make_shared<RandomStart>(DrawName{draw, own_seed, seed});
}

const Registered kRandomStart{"random_start",
                              "A random place in each of some ranges.",
                              make_random_start,
                              {{"draw", kDrawId}, {"own_seed", kOwnSeed}, {"seed", ""}}};

}  // namespace

}  // namespace stoker
