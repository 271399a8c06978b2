// SPDX-License-Identifier: Apache-2.0
// Values, comparisons and a digest for the programs that compare vector code with plain code. Results, and so the
// digest, are the same on every machine.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "base/simd.hpp"

namespace kernel_check {

inline std::mt19937 random_numbers(7);
inline int below(int n) { return static_cast<int>(random_numbers() % static_cast<unsigned>(n)); }

inline int failures = 0;
inline uint64_t digest = 0xcbf29ce484222325;  // FNV-1a

inline void add_to_digest(const void* bytes, size_t n) {
  const auto* p = static_cast<const uint8_t*>(bytes);
  for (size_t i = 0; i < n; ++i) digest = (digest ^ p[i]) * 0x100000001b3;
}

// Sign and payload of a NaN from arithmetic differ between processors. A conversion keeps them.
template <class T>
T without_nan_bits(T x) {
  if constexpr (std::is_floating_point_v<T>)
    if (x != x) return std::numeric_limits<T>::quiet_NaN();
  return x;
}

// Compares `n` results and adds them to the digest.
template <class T>
void expect_same(const T* plain, const T* found, int n, const std::string& name) {
  for (int i = 0; i < n; ++i) {
    const T a = without_nan_bits(plain[i]), b = without_nan_bits(found[i]);
    add_to_digest(&a, sizeof a);
    if (!std::memcmp(&a, &b, sizeof a)) continue;
    if (++failures <= 20) std::printf("differs: %s, value %d of %d\n", name.c_str(), i, n);
    return;
  }
}

template <class T>
T random_value() {
  const uint64_t high = random_numbers(), bits = high << 32 | random_numbers();
  T x;
  if constexpr (std::is_floating_point_v<T>) {
    static const T kEdges[] = {
        0,          T(-0.0),    T(0.5),      T(1.5),        T(2.5),          T(-0.5),    T(254.5), T(255.5), 256,
        T(-1.5),    T(-128.5),  T(127.5),    T(32767.5),    T(-32768.5),     T(65535.5), 65504,    65519,    65520,
        T(2.98e-8), T(5.96e-8), T(6.103e-5), T(2147483647), T(-2147483648.), T(9.3e18),  T(1e30)};
    const T inf = std::numeric_limits<T>::infinity();
    switch (below(8)) {
      case 0: return kEdges[below(static_cast<int>(std::size(kEdges)))];
      case 1: return below(3) ? (below(2) ? inf : -inf) : std::numeric_limits<T>::quiet_NaN();
      case 2:
      case 3: std::memcpy(&x, &bits, sizeof x); return x;  // any bits: subnormal, huge, NaN
      default: return static_cast<T>(static_cast<int32_t>(bits)) / static_cast<T>(1 << below(31));
    }
  } else {
    x = static_cast<T>(bits);
    switch (below(4)) {
      case 0: return static_cast<T>(below(9) - 4);
      case 1: return below(2) ? std::numeric_limits<T>::max() : std::numeric_limits<T>::min();
      case 2: return static_cast<T>(x >> below(8 * sizeof(T)));
      default: return x;
    }
  }
}

template <class T>
std::vector<T> random_values(int n) {
  std::vector<T> x(static_cast<size_t>(n));
  for (T& v : x) v = random_value<T>();
  return x;
}

// Runs `check` for each instruction set of this machine, on the same values.
template <class Check>
int compare_all(const char* name, Check&& check) {
  uint64_t first = 0;
  for (const stoker::Isa isa : stoker::kIsas) {
    const bool alone = stoker::detect_isa() == stoker::Isa::Plain;  // then only the digest says something
    if (!stoker::can_use(isa) || (isa == stoker::Isa::Plain && !alone)) continue;
    random_numbers.seed(7);
    digest = 0xcbf29ce484222325;
    stoker::isa_setting() = isa;
    const long long compared = check(isa);
    std::printf("%s, %s against plain: %lld comparisons, %d differences\n", name, stoker::isa_name(isa), compared,
                failures);
    if (first && first != digest) ++failures;
    first = digest;
  }
  std::printf("%s: digest %016llx\n", name, static_cast<unsigned long long>(first));
  return failures != 0;
}

}  // namespace kernel_check
