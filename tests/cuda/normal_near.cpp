// SPDX-License-Identifier: Apache-2.0
// Numbers of the normal distribution to within a known error, against the exact ones: random words, and words at the ends
// of the uniform numbers and at the limits of the logarithm's and the cosine's parts. Prints faults, and nothing without
// one.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>

#include "shared/draws.hpp"
#include "shared/normal_near.hpp"

using namespace stoker;

namespace {

constexpr int kRandom = 1 << 21;
constexpr double kMostError = draws::kNearError / 2;  // a margin for the GPU's approximations of 1 / x and 1 / sqrt(x)
double most = 0;
uint64_t unknown = 0;

void check(const philox::Block& words) {
  const draws::Near near = draws::normal_near(words);
  const double first = philox::uniform(words.w[0], words.w[1]), second = philox::uniform(words.w[2], words.w[3]);
  if (!near.known) {
    ++unknown;
    return;
  }
  most = std::fmax(most, std::fabs(near.value - draws::normal(first, second)));
}

// The words of two numbers of 53 bits.
philox::Block words_of(uint64_t first, uint64_t second) {
  const auto high = [](uint64_t x) { return static_cast<uint32_t>(x >> 27) << 6; };
  const auto low = [](uint64_t x) { return static_cast<uint32_t>(x & ((1 << 27) - 1)) << 5; };
  return {{high(first), low(first), high(second), low(second)}};
}

}  // namespace

int main() {
  for (uint64_t i = 0; i < kRandom; ++i) check(philox::generate(7, i, 9));
  const uint64_t random = unknown;
  const uint64_t whole = uint64_t{1} << 53, root = 0x16A09E667F3BCC;  // 2^53 sqrt(1/2)
  // Around each power of two and each of these times sqrt(1/2), from either end.
  for (int i = 0; i < 53; ++i)
    for (const uint64_t base : {whole >> i, root >> i})
      for (const uint64_t at : {base, whole - base})
        for (uint64_t step = 0; step < 5; ++step)
          for (int j = 0; j < 53; ++j)
            for (const uint64_t second : {whole >> j, whole - (whole >> j), whole / 4 - (whole >> j) / 4 + step})
              if (const uint64_t first = at + step - 2; first < whole) check(words_of(first, second % whole));
  if (!(most < kMostError)) std::printf("expected an error below 2^-41, got %g\n", most);
  if (random > kRandom / 1000 || unknown == random)
    std::printf("expected up to 1 unknown in 1000 random numbers, and some at the ends, got %llu and %llu\n",
                static_cast<unsigned long long>(random), static_cast<unsigned long long>(unknown - random));
  return most < kMostError && random <= kRandom / 1000 && unknown > random ? 0 : EXIT_FAILURE;
}
