// SPDX-License-Identifier: Apache-2.0
// Loudness of a signal (ITU-R BS.1770-4, EBU R128).
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include "kernels/registry.hpp"
#include "run/job.hpp"
#include "signal/signal.hpp"

namespace stoker {

namespace {

// Integrated loudness of [n] or [n, channels], in LUFS. Parameters: the sampling rate.
class Loudness : public Kernel {
 public:
  Ports ports() const override {
    return {.kernel = "loudness",
            .in = {{.types = types(DType::F32), .least_rank = 1, .most_rank = 2}},
            .out = {port_of(DType::F64, 0)},
            .params = 1};
  }
  bool fits(const Call& c) const override {
    const View& x = *c.in[0];
    const int64_t channels = x.rank == 1 ? 1 : x.shape[1];
    if (!(c.params[0] >= kLeastRate && c.params[0] <= kMostRate)) {
      *c.error = "expected a sampling rate from 4000 to 10000000 Hz";
      return false;
    }
    if (channels >= 1 && channels <= kMostChannels) return true;
    *c.error = "expected 1 to 5 channels (left, right, centre, and two of surround), got " + std::to_string(channels);
    return false;
  }
  Outcome run(const Call& c) const override {
    const View& x = *c.in[0];
    const int64_t channels = x.rank == 1 ? 1 : x.shape[1];
    const loudness::Meter meter(c.params[0], x.shape[0]);
    auto* powers = reinterpret_cast<double*>(c.work[0].get(static_cast<size_t>(4 * meter.hops) * sizeof(double)));
    double *sums = powers + meter.hops, *blocks = sums + meter.hops, *levels = blocks + meter.hops;
    std::fill_n(powers, meter.hops, 0.0);
    for (int64_t k = 0; k < channels; ++k) {
      const auto* from = reinterpret_cast<const float*>(x.data + (x.rank == 1 ? 0 : k * x.stride[1]));
      signal::kernels().hop_powers(from, x.stride[0] / static_cast<int64_t>(sizeof(float)), meter, sums);
      for (int64_t h = 0; h < meter.hops; ++h) powers[h] += loudness::channel_weight(k) * sums[h];
    }
    for (int64_t j = 0; j < meter.blocks; ++j) {
      double total = 0;
      for (int64_t h = j; h < j + loudness::kHops; ++h) total += powers[h];
      blocks[j] = total / meter.block_samples();
      levels[j] = loudness::lufs(blocks[j]);
    }
    const double found = loudness::gated(blocks, levels, meter.blocks);
    std::memcpy(c.out[0]->data, &found, sizeof found);
    return Outcome::Ok;
  }

 private:
  static constexpr int64_t kMostChannels = 5;
  static constexpr double kLeastRate = 4000, kMostRate = 1e7;
};

std::shared_ptr<Kernel> make_loudness() { return std::make_shared<Loudness>(); }

const Registered kLoudness{"loudness", "Integrated loudness of a signal in LUFS.", make_loudness};

}  // namespace

}  // namespace stoker
