// SPDX-License-Identifier: Apache-2.0
#include "base/elements.hpp"
#include "kernels/registry.hpp"

namespace stoker {

namespace {

class ReverseBits : public Kernel {
 public:
  explicit ReverseBits(uint8_t keep) : keep_(keep) {}
  Ports ports() const override {
    return {.kernel = "throwaway_reverse_bits",
            .in = {{.types = types(DType::U8)}},
            .out = {{.types = types(DType::U8), .same_extents = 0}}};
  }
  Outcome run(const Call& c) const override {
    const View& in = *c.in[0];
    for (int64_t i = 0, n = in.elements(); i < n; ++i) {
      const auto x = static_cast<uint8_t>(read_element(in, i));
      uint8_t y = 0;
      for (int bit = 0; bit < 8; ++bit) y |= static_cast<uint8_t>((x >> bit & 1) << (7 - bit));
      c.out[0]->data[i] = static_cast<uint8_t>((y & ~keep_) | (x & keep_));
    }
    return Outcome::Ok;
  }

 private:
  uint8_t keep_;
};

std::shared_ptr<Kernel> make(uint8_t keep) { return std::make_shared<ReverseBits>(keep); }

const Registered kReverseBits{
    "throwaway_reverse_bits", "Bytes with their bits reversed.", make, {{"keep", "bits that stay as they are"}}};

}  // namespace

}  // namespace stoker
