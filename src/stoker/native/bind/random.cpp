// SPDX-License-Identifier: Apache-2.0
// Bindings of random numbers and permutations, for orders and samplers in Python.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include "shared/philox.hpp"
#include "bind/arrays.hpp"
#include "bind/engine.hpp"

namespace nb = nanobind;

namespace stoker {

void bind_random(nb::module_& m) {
  m.def("philox", [](uint64_t key, uint64_t low, uint64_t high) {
    const philox::Block b = philox::generate(key, low, high);
    return nb::make_tuple(b.w[0], b.w[1], b.w[2], b.w[3]);
  });
  m.def("epoch_key", &philox::epoch_key);
  m.def("permute", [](uint64_t seed, int64_t epoch, uint64_t size, const Longs& positions) {
    const uint64_t key = philox::epoch_key(seed, epoch);
    return column<int64_t>(positions.shape(0), [&](size_t i) {
      return static_cast<int64_t>(philox::permute(key, size, static_cast<uint64_t>(positions.data()[i])));
    });
  });
  m.def("permute_each", [](uint64_t seed, const Longs& parts, const Longs& epochs, const Longs& sizes,
                           const Longs& positions) {
    const size_t n = positions.shape(0);
    if (parts.shape(0) != n || epochs.shape(0) != n || sizes.shape(0) != n)
      throw nb::value_error("one part, epoch and size per position");
    return column<int64_t>(n, [&](size_t i) {
      const uint64_t size = static_cast<uint64_t>(sizes.data()[i]), at = static_cast<uint64_t>(positions.data()[i]);
      if (at >= size) throw nb::index_error("a position is outside of its part");
      const uint64_t key = philox::part_key(seed, parts.data()[i], epochs.data()[i]);
      return static_cast<int64_t>(philox::permute(key, size, at));
    });
  });
  m.def("uniforms", [](uint64_t seed, int64_t epoch, uint32_t draw, const Keys& keys) {
    const uint64_t key = philox::epoch_key(seed, epoch);
    return column<double>(keys.shape(0), [&](size_t i) { return philox::Stream(key, keys.data()[i], draw).uniform(); });
  });
}

}  // namespace stoker
