// SPDX-License-Identifier: Apache-2.0
// Pixel programs that compute inputs of an operator's own kernel in registers; `Inlining` in contract/step.py is the
// operator's side, gpu_kernels/inlined_program.cpp the host's. A value's last three axes are F, H and W.
#pragma once
#include "device/own.cuh"
#include "device/stage_group.cuh"

namespace stoker::own {

// A program's part of a row's descriptor.
template <class Program>
struct ProgramRow {
  const uint8_t* base;
  explicit ProgramRow(const Row& row) : base(row.base + row.slot().program) {}
  const ProgramInput& input(int i) const { return reinterpret_cast<const ProgramInput*>(base)[i]; }
  template <class T>
  T uniform(int u) const {
    return *reinterpret_cast<const T*>(base + Program::kInputs * sizeof(ProgramInput) + u * 8);
  }
};

// Whether the strides of all inputs within a frame have 32 bits.
template <class Program>
bool has_narrow_strides(const Row& row) {
  const typename Program::Source source(row);
  bool narrow = true;
#pragma unroll
  for (int i = 0; i < Program::kInputs; ++i) {
    const ProgramInput& p = source.input(i);
    narrow &= p.stride[1] == static_cast<int32_t>(p.stride[1]) && p.stride[2] == static_cast<int32_t>(p.stride[2]);
  }
  return narrow;
}

// A thread's copy of the inputs of a frame, and of the uniforms. With strides of 32 bits, a product is one instruction.
template <class Program, class Stride>
struct HeldProgram {
  static constexpr int kInputs = Program::kInputs > 0 ? Program::kInputs : 1;
  const uint8_t* data[kInputs];
  Stride row[kInputs], column[kInputs];
  typename Program::Numbers numbers;

  HeldProgram(const Row& of, int64_t frame) : HeldProgram(typename Program::Source(of), frame) {}
  HeldProgram(const typename Program::Source& source, int64_t frame) : numbers(source) {
#pragma unroll
    for (int i = 0; i < Program::kInputs; ++i) {
      const ProgramInput& p = source.input(i);
      data[i] = reinterpret_cast<const uint8_t*>(p.data) + (Program::kFramed ? frame * p.stride[0] : 0);
      row[i] = held(p.stride[1]);
      column[i] = held(p.stride[2]);
    }
  }
  const uint8_t* at(int i, int32_t y, int32_t x) const {
    return data[i] + int64_t{y} * row[i] + int64_t{x} * column[i];
  }

 private:
  static Stride held(int64_t stride) {
    // The compiler, which may know that the stride has 32 bits, would multiply the 64 that it has already.
    if constexpr (std::is_same_v<Stride, int32_t>) return gpu::computed(static_cast<int32_t>(stride));
    else return stride;
  }
};

// What a program computes for kLanes adjacent elements of a line: the interface of generated code.
template <class Program, class Stride, int kLanes>
class ProgramGroup {
 public:
  using Held = HeldProgram<Program, Stride>;
  // Compute the elements from column x on.
  ProgramGroup(const Held& held, int64_t f, int32_t y, int32_t x) : held_(held), f_(f), y_(y), x_(x) {
    stage::each<0, Program::kInputs>([&]<int i>() {
      if constexpr (Program::size(i) > 0) read<i>();
    });
    bool fault = false;  // such programs do not divide integers
#pragma unroll
    for (int k = 0; k < kLanes; ++k) Program::run(Lane{*this, k}, held.numbers, fault);
  }
  float value(int output, int k) const { return values_[output][k]; }

 private:
  struct Lane {
    ProgramGroup& group;
    int k;
    template <class E>
    typename E::Register load(int input, int) const {
      return stage::from_memory<E>(stage::unpack<typename E::Memory>(group.words_[input], k));
    }
    template <class E>
    typename E::Register lookup(int input, int32_t index, int32_t length) const {
      if (static_cast<uint32_t>(index) >= static_cast<uint32_t>(length)) return 0;
      const auto* table = reinterpret_cast<const typename E::Memory*>(group.held_.data[input]);
      return stage::from_memory<E>(table[index]);
    }
    template <class E>
    typename E::Register lookup_byte(int input, int32_t index, int32_t length) const {
      return lookup<E>(input, index, length);
    }
    template <class E>
    float load_as_float(int input, int c) const {
      return static_cast<float>(load<E>(input, c));
    }
    int32_t coordinate(int input) const {
      const int axis = Program::axis(input);
      return axis == 2 ? group.x_ + k : axis == 1 ? group.y_ : static_cast<int32_t>(group.f_);
    }
    template <class E>
    void store(int output, int, typename E::Register x) const {
      group.values_[output][k] = x;
    }
  };

  static constexpr int words_of(int size) { return (kLanes * size + 3) / 4; }
  template <int i = 0>
  static constexpr int most_words() {
    if constexpr (i == Program::kInputs) {
      return 1;
    } else {
      constexpr int kOwn = words_of(Program::size(i)), kOthers = most_words<i + 1>();
      return kOwn > kOthers ? kOwn : kOthers;
    }
  }

  // Read the words of an input's elements: by few accesses if they are contiguous and aligned, once if they are one.
  template <int i>
  void read() {
    constexpr int kSize = Program::size(i), kWords = words_of(kSize);
    constexpr int kVector = kWords % 4 == 0 ? 4 : kWords % 2 == 0 ? 2 : 1;
    using Bits = stage::BitsOf<kSize>;
    const uint8_t* at = held_.at(i, y_, x_);
    const Stride step = held_.column[i];
    const bool is_aligned = reinterpret_cast<uint64_t>(at) % (4 * kVector) == 0;
    if (kLanes * kSize % 4 == 0 && step == kSize && is_aligned) {
#pragma unroll
      for (int w = 0; w < kWords; w += kVector) {
        const auto v = *reinterpret_cast<const stage::Vector<kVector>*>(at + 4 * w);
#pragma unroll
        for (int k = 0; k < kVector; ++k) words_[i][w + k] = v.word[k];
      }
      return;
    }
#pragma unroll
    for (int w = 0; w < kWords; ++w) words_[i][w] = 0;
    if (step == 0) {
      const Bits x = *reinterpret_cast<const Bits*>(at);
#pragma unroll
      for (int k = 0; k < kLanes; ++k) stage::pack(words_[i], k, x);
    } else {
#pragma unroll
      for (int k = 0; k < kLanes; ++k) stage::pack(words_[i], k, *reinterpret_cast<const Bits*>(at + k * step));
    }
  }

  const Held& held_;
  const int64_t f_;
  const int32_t y_, x_;
  uint32_t words_[Held::kInputs][most_words()];
  float values_[Program::kOutputs][kLanes];
};

// Inputs of the kernel from `first` on, float32 of (H, W) or (F, H, W).
template <int first>
struct KernelInputs {
  const Row& row;
  explicit KernelInputs(const Row& row) : row(row) {}
  ProgramInput input(int i) const {
    const Port& port = row.port(first + i);
    const int last = static_cast<int>(port.rank) - 1;
    return {port.data, {last == 2 ? port.stride[0] : 0, port.stride[last - 1], port.stride[last]}};
  }
};

// The program of values that are in memory: `count` inputs from `first` on.
template <int first, int count>
struct LoadedProgram {
  using Source = KernelInputs<first>;
  static constexpr int kInputs = count, kOutputs = count;
  static constexpr bool kFramed = true;
  static constexpr int size(int) { return 4; }
  static constexpr int axis(int) { return -1; }
  struct Numbers {
    explicit Numbers(const Source&) {}
  };
  template <class Lane>
  static STOKER_DEVICE void run(const Lane& lane, const Numbers&, bool&) {
#pragma unroll
    for (int i = 0; i < count; ++i) lane.template store<F32>(i, 0, lane.template load<F32>(i, 0));
  }
};

}  // namespace stoker::own
