// SPDX-License-Identifier: Apache-2.0
// Shot noise.
#include <cstring>

#include "base/whole.hpp"
#include "kernels/registry.hpp"
#include "kernels/store_scalar.hpp"
#include "run/job.hpp"
#include "shared/poisson.hpp"

namespace stoker {

namespace {

constexpr Types kShot =
    types(DType::U8, DType::I8, DType::U16, DType::I16, DType::U32, DType::I32, DType::F32, DType::F64);

// Parameters: factor, and the two words that name the row's stream.
class Shot : public Kernel {
 public:
  Ports ports() const override {
    return {.kernel = "shot",
            .in = {{.types = kShot}},
            .out = {{.types = kShot, .same_type = 0, .same_extents = 0}},
            .params = 3};
  }
  Outcome run(const Call& c) const override {
    const View &from = *c.in[0], &to = *c.out[0];
    const double factor = c.params[0];
    const auto key = static_cast<uint32_t>(either_int64(c.params[1])),
               stream = static_cast<uint32_t>(either_int64(c.params[2]));
    const int64_t item = size_of(to.dtype), n = to.elements();
    for (int64_t i = 0; i < n; ++i)
      store_scalar(to.data + i * item, to.dtype,
                   poisson::shot(read_element(from, i), factor, static_cast<uint32_t>(i), key, stream));
    return Outcome::Ok;
  }
};

std::shared_ptr<Kernel> make_shot() { return std::make_shared<Shot>(); }

const Registered kShotNoise{"shot", "Shot noise: events of a factor's size, from the Poisson distribution.", make_shot};

}  // namespace

}  // namespace stoker
