// SPDX-License-Identifier: Apache-2.0
// Checks that filters of bytes compute with no subnormal numbers. They compute whole vectors, beyond the end of a row too, so
// what lies there must not be one, whatever the scratch memory held: Intel processors take about 150 cycles for an
// operation with such a number. The processor records them in the register of modes.
#include <xmmintrin.h>

#include "base/scratch.hpp"
#include "base/simd.hpp"
#include "filter/box_blur.hpp"
#include "filter/correlate.hpp"
#include "kernel_values.hpp"
#include "resample/resample.hpp"

namespace {

using namespace kernel_check;  // NOLINT: a program of one file
using namespace stoker;        // NOLINT

int64_t checked = 0;

struct Picture {
  std::vector<uint8_t> bytes;
  View view;

  Picture(DType dtype, int64_t height, int64_t width, int64_t channels) {
    view.dtype = dtype;
    view.rank = 3;
    view.shape[0] = height;
    view.shape[1] = width;
    view.shape[2] = channels;
    view.stride[2] = size_of(dtype);
    view.stride[1] = channels * view.stride[2];
    view.stride[0] = width * view.stride[1];
    bytes = random_values<uint8_t>(static_cast<int>(height * view.stride[0]));
    view.data = bytes.data();
  }
};

template <class Operation>
void expect_no_subnormals(Isa isa, const char* name, Operation&& operation) {
  constexpr size_t kBytes = 1 << 20;  // more than the operations request
  Scratch scratch;
  uint8_t* const memory = scratch.get(kBytes);
  const uint32_t subnormal = 1;  // as a float
  for (size_t i = 0; i < kBytes; i += sizeof subnormal) std::memcpy(memory + i, &subnormal, sizeof subnormal);
  _mm_setcsr(_mm_getcsr() & ~static_cast<unsigned>(_MM_EXCEPT_MASK));
  const bool done = operation(scratch);
  const bool met = _mm_getcsr() & _MM_EXCEPT_DENORM;
  ++checked;
  if (done && !met) return;
  if (++failures <= 20)
    std::printf("%s, %s: %s\n", name, isa_name(isa), met ? "operations with subnormal numbers" : "refused");
}

void check(Isa isa) {
  const int64_t height = 1 + below(20), width = 1 + below(150), channels = 1 + below(4);
  const Picture src(DType::U8, height, width, channels),
      dst(below(2) ? DType::U8 : DType::F32, height, width, channels);
  float weights[25];
  for (float& w : weights) w = 0.01f * static_cast<float>(1 + below(100));
  const int64_t high = 1 + 2 * below(3), wide = 1 + 2 * below(3);
  const bool fused = below(2);
  const correlate::Window whole{weights, high, wide, high / 2, wide / 2, Border::Reflect101, 0, fused};
  const correlate::Window across{weights, 1, wide, 0, wide / 2}, down{weights, high, 1, high / 2, 0};
  expect_no_subnormals(isa, "correlate",
                       [&](Scratch& scratch) { return correlate::correlate(src.view, whole, dst.view, scratch); });
  expect_no_subnormals(isa, "correlate_twice", [&](Scratch& scratch) {
    return correlate::correlate_twice(src.view, across, down, dst.view, scratch);
  });
  expect_no_subnormals(isa, "correlate_sum", [&](Scratch& scratch) {
    return correlate::correlate_sum(src.view, {across, across}, {down, down}, dst.view, scratch);
  });
  const Picture blurred(DType::U8, height, width, channels), small(DType::U8, 1 + below(20), 1 + below(60), channels);
  expect_no_subnormals(isa, "box blur", [&](Scratch& scratch) {
    return box_blur::blur(src.view, 1.5f, 2.5f, 2, blurred.view, scratch);
  });
  const auto axis = [](int64_t from, int64_t to) {
    return resample::Axis{from, to, 0, static_cast<double>(from), resample::Filter::Triangular, true};
  };
  const auto vertical = axis(height, small.view.shape[0]), horizontal = axis(width, small.view.shape[1]);
  expect_no_subnormals(isa, "resample", [&](Scratch& scratch) {
    return resample::resample_into(src.view, vertical, horizontal, small.view, scratch,
                                   resample::Order::HorizontalFirst);
  });
}

}  // namespace

int main() {
  for (const Isa isa : kIsas) {
    if (!can_use(isa)) continue;
    isa_setting() = isa;
    for (int round = 0; round < 200; ++round) check(isa);
  }
  std::printf("%lld operations, %d failures\n", static_cast<long long>(checked), failures);
  return failures != 0;
}
