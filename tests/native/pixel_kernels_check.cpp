// SPDX-License-Identifier: Apache-2.0
// Compares the vector forms of pixel-program kernels with the plain ones: every entry of the tables (operations, casts,
// loads, stores, interleaved pixels, mirrored rows, lookups) on random and extreme values. tests/native/neon.sh runs it on
// an emulated 64-bit Arm, and compares its digest with this machine's.
#include <algorithm>
#include <functional>

#include "kernel_values.hpp"
#include "pixel/kernels.hpp"

namespace {

using namespace kernel_check;   // NOLINT: a program of one file
using namespace stoker;         // NOLINT
using namespace stoker::pixel;  // NOLINT

constexpr int kMost = 160;
int64_t compared = 0;

// Calls visit(T{}) with the type of a register.
template <class Visit>
void with_register(int type, Visit&& visit) {
  switch (static_cast<Type>(type)) {
    case Type::I32: return visit(int32_t{});
    case Type::I64: return visit(int64_t{});
    case Type::F32: return visit(float{});
    case Type::F64: return visit(double{});
  }
}

// The values of a dtype, among all values of its register type.
template <class T>
T in_memory_range(T x, DType d) {
  switch (d) {
    case DType::Bool: return static_cast<T>(x != 0);
    case DType::U8: return static_cast<T>(static_cast<uint8_t>(x));
    case DType::I8: return static_cast<T>(static_cast<int8_t>(x));
    case DType::U16: return static_cast<T>(static_cast<uint16_t>(x));
    case DType::I16: return static_cast<T>(static_cast<int16_t>(x));
    default: return x;
  }
}

std::string name_at(const char* what, int a, int b) {
  return std::string(what) + " " + std::to_string(a) + " " + std::to_string(b);
}

void range_of_cast(Micro& m, DType d) {
  const auto set = [&]<class T>(T) {
    m.low = static_cast<double>(std::numeric_limits<T>::min());
    m.high = static_cast<double>(std::numeric_limits<T>::max());
  };
  switch (d) {
    case DType::U8: return set(uint8_t{});
    case DType::I8: return set(int8_t{});
    case DType::U16: return set(uint16_t{});
    case DType::I16: return set(int16_t{});
    default: return;
  }
}

// Runs one computation in both forms. Select has a condition of four bytes in its third operand.
template <class R, class T>
void compare_compute(ComputeFn plain, ComputeFn fast, Micro m, bool select, const std::string& name) {
  if (!plain && !fast) return;
  if (!plain || !fast) {
    ++failures;
    std::printf("missing: %s\n", name.c_str());
    return;
  }
  const int lanes = 1 + below(kMost - kLaneUnit);
  alignas(64) T operands[4][kMost];
  alignas(64) int32_t condition[kMost];
  alignas(64) R out[2][kMost] = {};
  for (int k = 0; k < 4; ++k) {
    m.step[k] = below(4) != 0;
    const T splat = random_value<T>();
    for (T& v : operands[k]) v = m.step[k] ? random_value<T>() : splat;
    m.arg[k] = reinterpret_cast<const uint8_t*>(operands[k]);
  }
  const int32_t splat = below(2);
  for (int32_t& v : condition) v = m.step[2] ? below(3) - 1 : splat;
  if (select) m.arg[2] = reinterpret_cast<const uint8_t*>(condition);
  int faults[2] = {};
  for (int i = 0; i < 2; ++i) {
    m.dst = reinterpret_cast<uint8_t*>(out[i]);
    m.fault = &faults[i];
    (i ? fast : plain)(m, lanes);
  }
  expect_same(out[0], out[1], lanes, name);
  expect_same(&faults[0], &faults[1], 1, name + ": fault");
  ++compared;
}

bool is_compare(Op op) { return op >= Op::Eq && op <= Op::UGe; }

void check_operations(const Kernels& p, const Kernels& f) {
  for (int type = 0; type < kTypes; ++type)
    with_register(type, [&]<class T>(T) {
      for (int op = 0; op < kOps; ++op) {
        const std::string name = std::string(name_of(static_cast<Op>(op))) + " " + std::to_string(type);
        const bool select = static_cast<Op>(op) == Op::Select;
        const ComputeFn plain = p.op[op][type], fast = f.op[op][type];
        if (is_compare(static_cast<Op>(op))) compare_compute<int32_t, T>(plain, fast, {}, false, name);
        else compare_compute<T, T>(plain, fast, {}, select, name);
      }
    });
  for (int i = 0; i < kPaired; ++i)
    for (int j = 0; j < kPaired; ++j)
      compare_compute<float, float>(p.pair[i][j], f.pair[i][j], {}, false, name_at("pair", i, j));
  for (const DType d : {DType::U8, DType::I8, DType::U16, DType::I16}) {
    Micro m;
    range_of_cast(m, d);
    compare_compute<float, float>(p.whole, f.whole, m, false, name_at("whole", static_cast<int>(d), 0));
    for (int i = 0; i < kPaired; ++i)
      compare_compute<float, float>(p.pair_whole[i], f.pair_whole[i], m, false,
                                    name_at("pair_whole", static_cast<int>(d), i));
    for (int i = 0; i <= kPaired; ++i)
      for (int j = 0; j < kPaired * kPaired; ++j) {
        const ComputeFn plain = p.whole_pair[i][j / kPaired][j % kPaired],
                        fast = f.whole_pair[i][j / kPaired][j % kPaired];
        compare_compute<float, float>(plain, fast, m, false, name_at("whole_pair", static_cast<int>(d), 9 * i + j));
      }
  }
}

void check_casts(const Kernels& p, const Kernels& f) {
  for (int from = 0; from < kTypes; ++from)
    with_register(from, [&]<class T>(T) {
      for (int to = 0; to < kTypes; ++to)
        with_register(to, [&]<class R>(R) {
          compare_compute<R, T>(p.cvt[from][to], f.cvt[from][to], {}, false, name_at("cvt", from, to));
        });
      for (int d = 0; d < kDTypes; ++d)
        with_register(at(type_of(static_cast<DType>(d))), [&]<class R>(R) {
          Micro m;
          range_of_cast(m, static_cast<DType>(d));
          compare_compute<R, T>(p.cast[from][d], f.cast[from][d], m, false, name_at("cast", from, d));
          compare_compute<R, T>(p.wrap[from][d], f.wrap[from][d], m, false, name_at("wrap", from, d));
        });
    });
  for (int to = 0; to < kTypes; ++to)
    with_register(to, [&]<class R>(R) {
      compare_compute<R, uint64_t>(p.ucvt[to], f.ucvt[to], {}, false, name_at("ucvt", to, 0));
    });
  for (int d = 0; d < kDTypes; ++d)
    with_register(at(type_of(static_cast<DType>(d))), [&]<class R>(R) {
      compare_compute<R, uint64_t>(p.ucast[d], f.ucast[d], {}, false, name_at("ucast", d, 0));
    });
}

constexpr int kGuard = 64;

// Runs both forms on guarded memory: they must not write beyond `bytes`.
void compare_memory(size_t bytes, const std::string& name, const std::function<void(uint8_t*, bool)>& run) {
  std::vector<uint8_t> out[2];
  for (int i = 0; i < 2; ++i) {
    out[i].assign(bytes + 2 * kGuard + 64, 77);
    auto* to = out[i].data() + (-reinterpret_cast<uintptr_t>(out[i].data()) & 63);  // the same alignment
    run(to + kGuard, i == 1);
    if (to != out[i].data()) std::memmove(out[i].data(), to, bytes + 2 * kGuard);
  }
  expect_same(out[0].data(), out[1].data(), static_cast<int>(bytes + 2 * kGuard), name);
  ++compared;
}

// Compares halves bit for bit, including the payload of a NaN.
void check_conversions(const Kernels& p, const Kernels& f) {
  const int n = 1 + below(kMost);
  for (int d = 0; d < kDTypes; ++d)
    for (int type = 0; type < kTypes; ++type) {
      const auto dtype = static_cast<DType>(d);
      const size_t element = static_cast<size_t>(size_of(dtype)), unaligned = static_cast<size_t>(below(2));
      if (p.load[d][type]) {
        auto memory = random_values<uint8_t>(8 * kMost + 1);
        if (dtype == DType::Bool)
          for (uint8_t& v : memory) v &= 1;
        const size_t bytes = static_cast<size_t>(n * register_size(static_cast<Type>(type)));
        compare_memory(bytes, name_at("load", d, type),
                       [&](uint8_t* to, bool fast) { (fast ? f : p).load[d][type](to, memory.data() + unaligned, n); });
      }
      if (p.store[d][type])
        with_register(type, [&]<class T>(T) {
          auto values = random_values<T>(n);
          if constexpr (std::is_integral_v<T>)
            for (T& v : values) v = in_memory_range(v, dtype);
          compare_memory(
              element * static_cast<size_t>(n) + unaligned, name_at("store", d, type),
              [&](uint8_t* to, bool fast) { (fast ? f : p).store[d][type](to + unaligned, values.data(), n); });
        });
    }
}

void check_groups(const Kernels& p, const Kernels& f) {
  const int n = 1 + below(kMost);
  for (int channels = 2; channels <= kMaxGroup; ++channels)
    for (const int type : {at(Type::I32), at(Type::F32)}) {
      const std::vector<uint8_t> pixels = random_values<uint8_t>(channels * n);
      const size_t plane = static_cast<size_t>(n) * 4;
      for (const bool back : {false, true}) {
        const LoadGroupFn fast_load = (back ? f.load_group_back : f.load_group)[channels][type];
        if (!fast_load) continue;
        const std::string name = name_at(back ? "load back" : "load pixels", channels, type);
        compare_memory(plane * static_cast<size_t>(channels), name, [&](uint8_t* to, bool fast) {
          std::vector<uint8_t> mirrored = pixels;
          if (back && !fast)  // no plain form reads backwards
            for (int i = 0; i < n; ++i)
              std::copy_n(pixels.begin() + channels * (n - 1 - i), channels, mirrored.begin() + channels * i);
          uint8_t* planes[kMaxGroup];
          for (int c = 0; c < channels; ++c) planes[c] = to + plane * static_cast<size_t>(c);
          (fast ? fast_load : p.load_group[channels][type])(planes, mirrored.data(), n);
        });
      }
      with_register(type, [&]<class T>(T) {
        auto values = random_values<T>(channels * n);
        if constexpr (std::is_integral_v<T>)
          for (T& v : values) v = in_memory_range(v, DType::U8);
        const uint8_t* planes[kMaxGroup];
        for (int c = 0; c < channels; ++c) planes[c] = reinterpret_cast<const uint8_t*>(values.data() + c * n);
        compare_memory(static_cast<size_t>(channels * n), name_at("store pixels", channels, type),
                       [&](uint8_t* to, bool fast) { (fast ? f : p).store_group[channels][type](to, planes, n); });
      });
    }
}

void check_moves(const Kernels& p, const Kernels& f) {
  const int n = 1 + below(kMost);
  for (const int pixel : {3, 6, 12, 16}) {
    const std::vector<uint8_t> memory = random_values<uint8_t>(n * pixel);
    compare_memory(static_cast<size_t>(n * pixel), name_at("reverse pixels", pixel, 0),
                   [&](uint8_t* to, bool fast) { (fast ? f : p).reverse[pixel](to, memory.data(), n); });
  }
  for (const int element : {1, 2, 4, 8}) {
    const size_t bytes = static_cast<size_t>(n * element);
    for (int channels = 2; channels <= kMaxGroup; ++channels) {
      const size_t all = bytes * static_cast<size_t>(channels);
      const std::vector<uint8_t> memory = random_values<uint8_t>(static_cast<int>(all));
      compare_memory(all, name_at("deal", element, channels), [&](uint8_t* to, bool fast) {
        uint8_t* planes[kMaxGroup];
        for (int c = 0; c < channels; ++c) planes[c] = to + bytes * static_cast<size_t>(c);
        (fast ? f : p).deal[element][channels](planes, memory.data(), n);
      });
      compare_memory(all, name_at("weave", element, channels), [&](uint8_t* to, bool fast) {
        const uint8_t* planes[kMaxGroup];
        for (int c = 0; c < channels; ++c) planes[c] = memory.data() + bytes * static_cast<size_t>(c);
        (fast ? f : p).weave[element][channels](to, planes, n);
      });
    }
    const std::vector<uint8_t> memory = random_values<uint8_t>(8 * kMost), table = random_values<uint8_t>(8 * 256);
    compare_memory(bytes, name_at("reverse", element, 0),
                   [&](uint8_t* to, bool fast) { (fast ? f : p).reverse[element](to, memory.data(), n); });
    compare_memory(bytes, name_at("lookup", element, 0),
                   [&](uint8_t* to, bool fast) { (fast ? f : p).lookup[element](to, memory.data(), table.data(), n); });
  }
}

// Compares every half, and floats with random bits.
void check_coordinates(const Kernels& p, const Kernels& f) {
  const int n = 1 + below(kMost), first = below(1 << 20), step = below(5) - 2;
  compare_memory(static_cast<size_t>(n) * sizeof(int32_t), "count",
                 [&](uint8_t* to, bool fast) { (fast ? f : p).count(reinterpret_cast<int32_t*>(to), first, step, n); });
}

void check_halves(const Kernels& p, const Kernels& f) {
  std::vector<uint16_t> halves(65536), back[2];
  for (size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<uint16_t>(i);
  std::vector<uint32_t> floats[2];
  std::vector<uint32_t> random(1 << 20);
  for (uint32_t& v : random) v = random_numbers() >> (below(2) ? 0 : 3);
  const int f16 = at(DType::F16), f32 = at(Type::F32);
  for (int i = 0; i < 2; ++i) {
    const Kernels& k = i ? f : p;
    floats[i].resize(halves.size());
    back[i].resize(random.size());
    k.load[f16][f32](floats[i].data(), halves.data(), static_cast<int>(halves.size()));
    k.store[f16][f32](back[i].data(), random.data(), static_cast<int>(random.size()));
  }
  expect_same(floats[0].data(), floats[1].data(), static_cast<int>(halves.size()), "every half");
  expect_same(back[0].data(), back[1].data(), static_cast<int>(random.size()), "floats to halves");
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 200;
  return compare_all("pixel kernels", [rounds](Isa) {
    const Kernels &p = plain_kernels(), &f = kernels();
    compared = 0;
    check_halves(p, f);
    for (int round = 0; round < rounds; ++round) {
      check_operations(p, f);
      check_casts(p, f);
      check_conversions(p, f);
      check_groups(p, f);
      check_moves(p, f);
      check_coordinates(p, f);
    }
    return compared;
  });
}
