// SPDX-License-Identifier: Apache-2.0
// Complex spectra of frames, their inverse, and convolution, in one form per instruction set. All arithmetic is float32
// without fused operations, in the order of shared/fft.hpp, so every form gives the same bits.
#pragma once
#include <cstdint>

#include "shared/fft.hpp"
#include "signal/signal.hpp"

namespace stoker::signal {

// Spectrum of frames: complex numbers (re, im), by bin and frame.
struct Spectra {
  float* data;
  int64_t bin, frame;  // floats from one to the next
};

struct Transforms {
  int64_t group;  // frames that are transformed together
  // Write the spectra of all frames.
  void (*forward)(const Frames& frames, const fft::Plan& plan, const float* table, const Spectra& out, uint8_t* memory);
  // Write the real parts of the inverse transforms of the frames from `first` on, `count` of them, at most `group`:
  // [count][samples] floats. Imaginary parts at frequency 0 and at half of the rate have no effect.
  void (*inverse)(const Spectra& in, int64_t first, int64_t count, const fft::Plan& plan, const float* table,
                  float* out, uint8_t* memory);
  // Write the blocks of a convolution with a filter: block b has step samples from b * step on. Frame b has all samples
  // of the transform and begins at b * step - (filter - 1), so that its last `step` samples are free of wrapping.
  void (*convolve)(const Frames& blocks, const float* filter, int64_t filter_size, const fft::Plan& plan,
                   const float* table, float* out, uint8_t* memory);
};

// Memory of each function in bytes, aligned to 64. `length`: samples of a frame.
int64_t transform_bytes(const fft::Plan& plan, int64_t length);

// Return the functions for this processor.
const Transforms& transforms();

void fill_plain(Transforms& t);
#if defined(__x86_64__)
void fill_avx2(Transforms& t);
void fill_avx512(Transforms& t);
#endif

}  // namespace stoker::signal
