// SPDX-License-Identifier: Apache-2.0
// Largest error of every function of one argument over float32: xmath_range STRIDE THREADS [NAME...]. It takes every
// STRIDE-th bit pattern, all of them for 1. An error is that of the result rounded to float, in units of the last place
// (ulp) of the exact value; the exact value is that of the system's libm in double. Exit status 1 for more than 1 ulp,
// or a NaN, infinity or sign of zero that differs.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "shared/xmath.hpp"
#include "shared/xmath_more.hpp"

namespace {

namespace xm = stoker::xm;

struct Function {
  const char* name;
  double (*ours)(double);
  double (*exact)(double);
};

const Function kFunctions[] = {
    {"exp", xm::exp, std::exp},       {"log", xm::log, std::log},       {"log2", xm::log2, std::log2},
    {"log10", xm::log10, std::log10}, {"sin", xm::sin, std::sin},       {"cos", xm::cos, std::cos},
    {"tan", xm::tan, std::tan},       {"asin", xm::asin, std::asin},    {"acos", xm::acos, std::acos},
    {"atan", xm::atan, std::atan},    {"sinh", xm::sinh, std::sinh},    {"cosh", xm::cosh, std::cosh},
    {"tanh", xm::tanh, std::tanh},    {"asinh", xm::asinh, std::asinh}, {"acosh", xm::acosh, std::acosh},
    {"atanh", xm::atanh, std::atanh}, {"cbrt", xm::cbrt, std::cbrt},
};

struct Worst {
  double error = 0;
  float at = 0;
  uint64_t different = 0;  // results of another kind
  float example = 0;

  void add(const Worst& o) {
    if (o.error > error) {
      error = o.error;
      at = o.at;
    }
    if (o.different) example = o.example;
    different += o.different;
  }
};

void measure(const Function& f, float x, Worst& worst) {
  const double exact = f.exact(x);
  const auto y = static_cast<float>(f.ours(x)), rounded = static_cast<float>(exact);
  if (std::isnan(y) && std::isnan(rounded)) return;
  if (std::isinf(rounded) || std::isinf(y) || y == 0 || rounded == 0 || std::isnan(y) || std::isnan(rounded)) {
    // Both neighbours of a limit of the type are right if the exact value lies between them.
    const bool close = std::isfinite(exact) && std::abs(static_cast<double>(y) - exact) <= std::abs(exact) * 0x1p-23;
    const bool tiny =
        std::abs(exact) < 0x1p-149 && std::abs(y) <= 0x1p-149f && std::signbit(y) == std::signbit(rounded);
    if (std::memcmp(&y, &rounded, sizeof y) != 0 && !close && !tiny) {
      ++worst.different;
      worst.example = x;
    }
    return;
  }
  int exponent;
  std::frexp(exact, &exponent);
  const double ulp = std::ldexp(1.0, std::max(exponent - 24, -149));
  const double error = std::abs(static_cast<double>(y) - exact) / ulp;
  if (error > worst.error) {
    worst.error = error;
    worst.at = x;
  }
}

}  // namespace

int main(int count, char** words) {
  const uint64_t stride = count > 1 ? std::strtoull(words[1], nullptr, 10) : 1;
  const int threads = count > 2 ? std::atoi(words[2]) : 1;
  if (stride < 1 || threads < 1) return std::fprintf(stderr, "usage: xmath_range STRIDE THREADS [NAME...]\n"), 2;
  bool failed = false;
  for (const Function& f : kFunctions) {
    bool wanted = count <= 3;
    for (int i = 3; i < count; ++i) wanted = wanted || std::string(words[i]) == f.name;
    if (!wanted) continue;
    std::vector<Worst> parts(static_cast<size_t>(threads));
    std::vector<std::thread> running;
    for (int t = 0; t < threads; ++t)
      running.emplace_back([&, t] {
        Worst worst;
        const uint64_t step = stride * static_cast<uint64_t>(threads);
        for (uint64_t u = stride * static_cast<uint64_t>(t); u < uint64_t{1} << 32; u += step) {
          const auto bits = static_cast<uint32_t>(u);
          float x;
          std::memcpy(&x, &bits, sizeof x);
          measure(f, x, worst);
        }
        parts[static_cast<size_t>(t)] = worst;
      });
    for (std::thread& one : running) one.join();
    Worst all;
    for (const Worst& part : parts) all.add(part);
    std::printf("%-6s %.3f ulp at %a; of another kind: %llu", f.name, all.error, static_cast<double>(all.at),
                static_cast<unsigned long long>(all.different));
    if (all.different) std::printf(", such as %a", static_cast<double>(all.example));
    std::printf("\n");
    std::fflush(stdout);
    failed = failed || all.error > 1 || all.different;
  }
  return failed;
}
