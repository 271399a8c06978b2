// SPDX-License-Identifier: Apache-2.0
// Thresholds of the Poisson distribution: the bisection finds the search's number for the words at each threshold and
// next to it. Prints faults, and nothing without one.
#include <cstdio>
#include <cstdlib>
#include <initializer_list>

#include "shared/poisson.hpp"

using namespace stoker::poisson;

namespace {

bool good = true;

void check(double mean) {
  uint32_t thresholds[kThresholds];
  find_thresholds(mean, thresholds);
  for (const uint32_t threshold : thresholds)
    for (const int64_t difference : {-1, 0, 1}) {
      const auto word = static_cast<uint32_t>(threshold + difference);
      const double found = by_thresholds(thresholds, word), wanted = search(mean, (word + 0.5) * 0x1p-32);
      if (found == wanted) continue;
      good = false;
      std::printf("mean %g, word %u: expected %g, got %g\n", mean, word, wanted, found);
    }
}

}  // namespace

int main() {
  for (const double factor : {0.7, 1.0, 4.0, 12.3, 20.0, 25.7, 255.0, 1e9})
    for (int x = 1; x < 256; ++x)
      if (x / factor < kSmall) check(x / factor);
  check(0x1.3ffffffffffffp3);  // the largest mean below 10
  check(5e-324);
  return good ? 0 : EXIT_FAILURE;
}
