// SPDX-License-Identifier: Apache-2.0
// Loudness of a signal (ITU-R BS.1770-4, EBU R128).
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/whole.hpp"
#include "kernels/registry.hpp"
#include "run/job.hpp"
#include "shared/xmath.hpp"

namespace stoker {

namespace {

// Filter of second order, in double.
struct Biquad {
  double b0, b1, b2, a1, a2;
  double s1 = 0, s2 = 0;
  double operator()(double x) {
    const double y = b0 * x + s1;
    s1 = b1 * x - a1 * y + s2;
    s2 = b2 * x - a2 * y;
    return y;
  }
};

constexpr double kPi = 3.14159265358979323846;

// The first filter of the standard (the head's shelf), whose analog form gives the table for 48 kHz at any rate.
Biquad shelf(double rate) {
  constexpr double kGain = 3.999843853973347, kQ = 0.7071752369554196, kHz = 1681.974450955533;
  const double turn = kPi * kHz / rate, k = xm::sin(turn) / xm::cos(turn);
  const double high = xm::exp(kGain / 20 * 2.302585092994046), band = xm::exp(xm::log(high) * 0.4996667741545416);
  const double a0 = 1 + k / kQ + k * k;
  return {(high + band * k / kQ + k * k) / a0, 2 * (k * k - high) / a0, (high - band * k / kQ + k * k) / a0,
          2 * (k * k - 1) / a0, (1 - k / kQ + k * k) / a0};
}

// The second one, which removes low frequencies.
Biquad high_pass(double rate) {
  constexpr double kQ = 0.5003270373238773, kHz = 38.13547087602444;
  const double turn = kPi * kHz / rate, k = xm::sin(turn) / xm::cos(turn);
  const double a0 = 1 + k / kQ + k * k;
  return {1, -2, 1, 2 * (k * k - 1) / a0, (1 - k / kQ + k * k) / a0};
}

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
    const double rate = c.params[0];
    const int64_t n = x.shape[0], channels = x.rank == 1 ? 1 : x.shape[1];
    const double size = kBlock * rate;
    // A clip that is shorter than a block is one block.
    const int64_t whole = saturated<int64_t>((static_cast<double>(n) - size) / (kHop * rate) + kRounding, 0, kFarApart);
    const int64_t blocks = static_cast<double>(n) < size ? 1 : whole + 1;
    const auto edge = [&](int64_t hop) {
      return std::min(saturated<int64_t>(kHop * static_cast<double>(hop) * rate), n);
    };
    // Sums of squares up to every edge of a block, all channels together.
    auto* sums = reinterpret_cast<double*>(c.work[0].get(static_cast<size_t>(blocks + kHops + 1) * sizeof(double)));
    std::fill_n(sums, blocks + kHops + 1, 0.0);
    for (int64_t k = 0; k < channels; ++k) {
      Biquad first = shelf(rate), second = high_pass(rate);
      const double weight = k < 3 ? 1.0 : 1.41;
      const uint8_t* p = x.data + (x.rank == 1 ? 0 : k * x.stride[1]);
      int64_t at = 0;
      double sum = 0;
      for (int64_t hop = 1; hop <= blocks + kHops - 1; ++hop) {
        for (const int64_t end = edge(hop); at < end; ++at) {
          float v;
          std::memcpy(&v, p + at * x.stride[0], sizeof v);
          const double y = second(first(static_cast<double>(v)));
          sum += y * y;
        }
        sums[hop] += weight * sum;
      }
    }
    const double loudness = gated(sums, blocks, std::min(static_cast<double>(n), size));
    std::memcpy(c.out[0]->data, &loudness, sizeof loudness);
    return Outcome::Ok;
  }

 private:
  static constexpr double kBlock = 0.4, kHop = 0.1;  // seconds
  static constexpr double kRounding = 1e-9;          // of a quotient that is a whole number
  static constexpr int64_t kHops = 4;                // of a block
  static constexpr int64_t kMostChannels = 5;
  static constexpr double kLeastRate = 4000, kMostRate = 1e7;
  static constexpr double kAbsoluteGate = -70, kRelativeGate = -10;

  static double lufs(double power) {
    return power > 0 ? -0.691 + 10 / 2.302585092994046 * xm::log(power) : -std::numeric_limits<double>::infinity();
  }
  // Return the loudness of the mean power of blocks that are louder than -70 LUFS, and then of those that are louder
  // than 10 LU below that.
  static double gated(const double* sums, int64_t blocks, double samples) {
    double gate = kAbsoluteGate, found = 0;
    for (int round = 0; round < 2; ++round) {
      double total = 0;
      int64_t count = 0;
      for (int64_t j = 0; j < blocks; ++j) {
        const double power = (sums[j + kHops] - sums[j]) / samples;
        if (!(lufs(power) > gate) && !(power != power)) continue;
        total += power;
        ++count;
      }
      found = count ? lufs(total / static_cast<double>(count)) : -std::numeric_limits<double>::infinity();
      if (total != total) return total;  // NaN
      gate = std::max(found + kRelativeGate, kAbsoluteGate);
    }
    return found;
  }
};

std::shared_ptr<Kernel> make_loudness() { return std::make_shared<Loudness>(); }

const Registered kLoudness{"loudness", "Integrated loudness of a signal in LUFS.", make_loudness};

}  // namespace

}  // namespace stoker
