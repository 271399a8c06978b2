// SPDX-License-Identifier: Apache-2.0
// Constants of spectra: computed in double with shared/xmath.hpp, so that every machine rounds them to the same floats.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "shared/fft.hpp"

namespace stoker::signal {

// Return the factors of a transform, in the layout of fft::Plan.
std::vector<float> fft_table(const fft::Plan& plan);

// Transform with its factors.
struct Factors {
  fft::Plan plan;
  std::vector<float> table;
};

// The last transforms that were used.
class FactorsCache {
 public:
  // 1 <= samples <= fft::kMaxSamples
  std::shared_ptr<const Factors> find(int32_t samples) const;

 private:
  static constexpr size_t kKept = 8;
  mutable std::mutex mutex_;
  mutable std::deque<std::shared_ptr<const Factors>> known_;
};

// Bank of triangular filters over the bins of a spectrum.
struct Mel {
  int64_t filters;
  double sample_rate, low, high;  // Hz
  bool htk;                       // HTK's formula of the mel scale, else Slaney's
  bool normalize;                 // divide each filter by half the width of its base
};
// Return [filters][bins] weights.
std::vector<float> mel_weights(const Mel& mel, int64_t bins);

// Return rows of weights in bands, [rows][width]: the first bin with a weight, the bin after the last one, and the weights
// between them.
std::vector<float> banded(const std::vector<float>& weights, int64_t rows, int64_t bins, int64_t width);
// Return the bins of the widest band.
int64_t widest_band(const std::vector<float>& weights, int64_t rows, int64_t bins);

// Discrete cosine transform of `points` values, of type 1 to 4.
struct Dct {
  int64_t coefficients;
  int type;
  bool normalize;  // orthonormal
  double lifter;   // 0: none
};
// Return [coefficients][points] weights. Type 1 needs two points.
std::vector<float> dct_weights(const Dct& dct, int64_t points);

}  // namespace stoker::signal
