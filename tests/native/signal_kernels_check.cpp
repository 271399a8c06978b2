// SPDX-License-Identifier: Apache-2.0
// Compares the vector forms of audio kernels with the plain ones: spectra of all kinds of sizes, sums over bins, decibels,
// differences and resampling. tests/native/neon.sh runs it on an emulated 64-bit Arm, and compares its digest with this
// machine's.
#include <vector>

#include "kernel_values.hpp"
#include "signal/resampler.hpp"
#include "signal/signal.hpp"
#include "signal/tables.hpp"

namespace {

using namespace kernel_check;  // NOLINT: a program of one file
using namespace stoker;        // NOLINT
using signal::Bins;

int64_t compared = 0;

// Memory that begins at a multiple of 64 bytes.
class Area {
 public:
  explicit Area(int64_t bytes) : memory_(static_cast<size_t>(bytes) + 64) {}
  uint8_t* get() { return memory_.data() + (64 - reinterpret_cast<uintptr_t>(memory_.data()) % 64) % 64; }

 private:
  std::vector<uint8_t> memory_;
};

std::vector<float> random_signal(int64_t n) {
  std::vector<float> x(static_cast<size_t>(n));
  for (float& v : x) v = static_cast<float>(below(1 << 20) - (1 << 19)) / static_cast<float>(1 << 20);
  if (below(8) == 0 && n > 0) x[static_cast<size_t>(below(static_cast<int>(n)))] = random_value<float>();
  return x;
}

// Run a kernel with the plain form and with that of `isa`, each into floats of its own.
template <class Run>
void compare(Isa isa, const char* name, int64_t values, Run run) {
  std::vector<float> plain(static_cast<size_t>(values), 7.0f), found(plain);
  isa_setting() = Isa::Plain;
  run(plain.data());
  isa_setting() = isa;
  run(found.data());
  expect_same(plain.data(), found.data(), static_cast<int>(values), name);
  ++compared;
}

void check_spectrum(Isa isa) {
  constexpr int32_t kSizes[] = {1, 2, 3, 5, 8, 14, 25, 30, 37, 64, 74, 90, 111, 128, 200, 240, 256, 400, 441, 512, 600};
  const int32_t nfft = kSizes[below(21)];
  const fft::Plan plan = fft::plan_of(nfft);
  const std::vector<float> table = signal::fft_table(plan);
  const int64_t length = 1 + below(nfft), step = 1 + below(90);
  // A large result, which the form by time writes past the cache.
  const int64_t large = ((1 << 18) + below(1 << 12)) / plan.bins;
  const int64_t count = nfft >= 200 && below(16) == 0 ? large : 1 + below(40);
  const std::vector<float> x = random_signal(1 + below(2000)), window = random_signal(length);
  const int64_t offset = below(4) == 0 ? 0 : (nfft - length) / 2;
  const bool reflect = below(2) == 0;
  const signal::Frames frames{
      x.data(), static_cast<int64_t>(x.size()), 1, count, step, -length / 2, length, reflect, window.data(), offset};
  const bool by_time = below(2) == 0, magnitude = below(4) == 0;
  Area memory(signal::spectrum_bytes(plan, length));
  compare(isa, "spectrum", plan.bins * count, [&](float* out) {
    const Bins bins = by_time ? Bins{out, plan.bins, 1} : Bins{out, 1, count};
    signal::kernels().spectrum(frames, plan, table.data(), magnitude, bins, memory.get());
  });
}

void check_project(Isa isa) {
  const int64_t bins = 1 + below(70), rows = 1 + below(20), count = 1 + below(300);
  const std::vector<float> x = random_signal(bins * count), weights = random_signal(rows * bins);
  const bool is_full = below(2) == 0;
  std::vector<int32_t> bands;
  for (int64_t r = 0; r < rows; ++r) {
    if (is_full) {
      bands.insert(bands.end(), {0, static_cast<int32_t>(bins)});
      continue;
    }
    const int begin = below(static_cast<int>(bins) + 1);
    bands.push_back(begin);
    bands.push_back(begin + below(static_cast<int>(bins) - begin + 1));
  }
  const bool by_time = below(2) == 0;
  Area memory(signal::project_bytes(bins, rows));
  compare(isa, "sums over bins", rows * count, [&](float* out) {
    const Bins to = by_time ? Bins{out, rows, 1} : Bins{out, 1, count};
    signal::kernels().project(x.data(), by_time ? bins : 1, by_time ? 1 : count, count, {weights.data(), rows, bins},
                              bands.data(), to, memory.get());
  });
}

void check_elements(Isa isa) {
  const int64_t n = 1 + below(100);
  std::vector<float> x(static_cast<size_t>(n));
  for (float& v : x) v = random_value<float>();
  compare(isa, "decibels", n, [&](float* out) { signal::kernels().decibels(x.data(), n, 1.0f, 1e-20f, 3.0103f, out); });
  compare(isa, "logarithms", n, [&](float* out) { signal::kernels().decibels(x.data(), n, 1.0f, -1.0f, 1.0f, out); });
  const std::vector<float> y = random_signal(n);
  compare(isa, "differences", n, [&](float* out) { signal::kernels().differences(y.data(), n, 0.97f, out); });
}

void check_resample(Isa isa) {
  const int up = 1 + below(50), down = 1 + below(50);
  const signal::Ratio ratio = signal::ratio_of(up, down);
  const double rough = static_cast<double>(50 + below(200)) / 100.0 + 1.0 / 700001;
  const bool many = below(8) == 0;
  const signal::Ratio used = many ? signal::ratio_of(rough, 1.0) : ratio;
  const signal::Filter filter{static_cast<double>(below(many ? 20 : 60)), below(4) == 0};
  const signal::Phases phases = signal::phases_of(filter, used);
  const int64_t n = below(300), count = n * used.up / used.down + 1;
  const std::vector<float> x = random_signal(n + 2 * phases.taps);
  const signal::Resampling r{count,
                             used.up,
                             used.down,
                             phases.taps,
                             phases.phases,
                             phases.interpolated,
                             phases.weights.data(),
                             n + phases.before,
                             1};
  compare(isa, "resampling", count, [&](float* out) { signal::kernels().resample(x.data(), r, out); });
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 60;
  return compare_all("audio kernels", [rounds](Isa isa) {
    compared = 0;
    for (int round = 0; round < rounds; ++round) {
      check_spectrum(isa);
      check_project(isa);
      check_elements(isa);
      check_resample(isa);
    }
    return compared;
  });
}
