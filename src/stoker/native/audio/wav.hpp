// SPDX-License-Identifier: Apache-2.0
// WAV files: the header, and the conversion of samples.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/tensor.hpp"

namespace stoker::wav {

enum class Sample : uint8_t { U8, I16, I24, I32, F32, F64 };

constexpr int64_t size_of(Sample s) {
  switch (s) {
    case Sample::U8: return 1;
    case Sample::I16: return 2;
    case Sample::I24: return 3;
    case Sample::F64: return 8;
    default: return 4;
  }
}

template <class T>
T load(const uint8_t* p) {
  T x;
  std::memcpy(&x, p, sizeof x);
  return x;
}

constexpr int64_t kMostChannels = 1024;

// Samples of a file: `frames` times `channels` of them from byte `offset` on.
struct Wave {
  int64_t frames, channels, rate, offset;
  Sample sample;
};

enum class Parsed : uint8_t {
  Ok,
  Other,    // another format, or an encoding that is not plain numbers
  Damaged,  // *error says why
};

// Read the header of a RIFF or RF64 file. The samples lie within the file.
Parsed parse(const uint8_t* data, size_t size, Wave* wave, std::string* error);

// The same for the first `have` bytes of a file of `size` bytes. Other: the header goes on after them.
Parsed parse_start(const uint8_t* data, size_t have, size_t size, Wave* wave, std::string* error);

// Write frames from `first` on, which must exist: [count, channels] values, or with `downmix` their mean over the
// channels, [count]. `dtype` is F32, I16 or I32. Integers of a file are scaled by powers of two; floats to integers are
// scaled by the largest value, rounded half to even and saturated, and NaN becomes 0.
void convert(const uint8_t* data, const Wave& wave, int64_t first, int64_t count, bool downmix, DType dtype,
             uint8_t* out);

}  // namespace stoker::wav
