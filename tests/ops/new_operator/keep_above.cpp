// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "kernels/registry.hpp"

namespace stoker {

namespace {

class KeepAbove : public Kernel {
 public:
  Ports ports() const override {
    return {.kernel = "throwaway_keep_above",
            .in = {port_of(DType::F32, 1)},
            .out = {port_of(DType::F32, 1), port_of(DType::I32, 0)},
            .params = 1};
  }
  Outcome run(const Call& c) const override {
    const View &in = *c.in[0], &out = *c.out[0];  // out.shape[0]: the upper bound
    const float threshold = static_cast<float>(c.params[0]);
    int32_t count = 0;
    for (int64_t i = 0; i < in.shape[0]; ++i) {
      float x;
      std::memcpy(&x, in.data + i * in.stride[0], sizeof x);
      if (!(x > threshold)) continue;
      if (count < out.shape[0]) std::memcpy(out.data + count * static_cast<int64_t>(sizeof x), &x, sizeof x);
      ++count;
    }
    std::memcpy(c.out[1]->data, &count, sizeof count);
    return Outcome::Ok;
  }
};

std::shared_ptr<Kernel> make() { return std::make_shared<KeepAbove>(); }

const Registered kKeepAbove{"throwaway_keep_above", "Values above a threshold, and their count.", make};

}  // namespace

}  // namespace stoker
