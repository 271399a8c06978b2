// SPDX-License-Identifier: Apache-2.0
// Spectra of frames, weighted sums over bins, and decibels, in one form per instruction set. All arithmetic is float32
// without fused operations, in the order of shared/fft.hpp, so every form gives the same bits.
#pragma once
#include <cstdint>
#include <vector>

#include "shared/fft.hpp"
#include "shared/loudness.hpp"

namespace stoker::signal {

// Signal that is computed in parts: samples `first` to `first + count - 1`, within the signal.
struct Source {
  void (*fill)(const void* context, int64_t first, int64_t count, float* out);
  const void* context;
};

// Frames of a signal. Frame t has `length` samples and begins at sample start + t * step.
struct Frames {
  const float* samples;  // null: those of `source`
  int64_t size;          // samples of the signal; at least 1
  int64_t element;       // floats from one sample to the next
  int64_t count, step, start;
  int64_t length;
  bool reflect;         // beyond the signal: its samples mirrored at the first and last one, else zeros
  const float* window;  // `length` factors, or null
  int64_t offset;       // of the frame in the samples of the transform; all others are zeros
  Source source = {};
};

// Matrix of floats, by frame and bin. One of the two steps is 1.
struct Bins {
  float* data;
  int64_t frame, bin;  // floats from one to the next
};

// Write the powers |X|^2 (or with `magnitude` their roots |X|) of all frames. `table` has plan.floats floats. `memory`
// has spectrum_bytes(plan, length) bytes, aligned to 64.
using Spectrum = void (*)(const Frames& frames, const fft::Plan& plan, const float* table, bool magnitude,
                          const Bins& out, uint8_t* memory);
int64_t spectrum_bytes(const fft::Plan& plan, int64_t length);
// The last bytes of them are a group's bins by frame; 0 for many bins. A group begins anywhere in a line of the cache.
int64_t tile_bytes(const fft::Plan& plan);

// Groups of frames: `Kernels::group` of them in the lanes of vectors, [bins][group] floats, aligned to 64. Lanes beyond
// the last frame repeat it.

// Prepare memory as above; write the powers of the frames from `first` on.
using BeginSpectrum = void (*)(const fft::Plan& plan, int64_t length, uint8_t* memory);
using GroupSpectrum = void (*)(const Frames& frames, int64_t first, const fft::Plan& plan, const float* table,
                               bool magnitude, float* out, uint8_t* memory);

// Rows of weights for sums over bins. Row r is weights[r * bins ..]; only bins from bands[2 r] to bands[2 r + 1] have
// weights other than 0.
struct Weights {
  const float* weights;
  int64_t rows, bins;
};

// Write for every frame the sums over bins, in ascending order: out(t, r) = sum over b of in(t, b) weights(r, b). `band`
// gets the range of bins of each row. `memory` has project_bytes(bins, rows) bytes, aligned to 64.
using Project = void (*)(const float* in, int64_t frame, int64_t bin, int64_t frames, const Weights& weights,
                         const int32_t* bands, const Bins& out, uint8_t* memory);
int64_t project_bytes(int64_t bins, int64_t rows);
constexpr int kTile = 8;              // vectors of each bin that are computed together
constexpr int64_t kPackedBins = 256;  // most bins of a tile that is copied to contiguous memory
using GroupProject = void (*)(const float* in, const Weights& weights, const int32_t* bands, float* out);

// Store the bins of the first `count` frames of a group, which is frame `first` and the following ones.
using StoreGroup = void (*)(const float* in, int64_t bins, int64_t first, int64_t count, const Bins& out);

// y = factor * log2(max(floor, x * scale)); a NaN stays one.
using Decibels = void (*)(const float* x, int64_t count, float scale, float floor, float factor, float* y);

// y[i] = x[i] - coefficient * x[i - 1] for i from 0 to count - 1.
using Differences = void (*)(const float* x, int64_t count, float coefficient, float* y);

// Outputs of one channel. Output o is at input o * down / up, in lowest terms.
struct Resampling {
  int64_t count, up, down;
  int64_t taps, phases;
  bool interpolated;
  const float* weights;  // signal::Phases
  int64_t size;          // largest whole part of a position: later outputs are at it
  int64_t stride;        // floats from one output to the next
};

// x[0] is the first tap of output 0; `taps` floats from x[size] on can be read too.
using Resample = void (*)(const float* x, const Resampling& r, float* y);

// Write the sums of squares of the weighted signal in every hop.
using HopPowers = void (*)(const float* x, int64_t stride, const loudness::Meter& meter, double* sums);

struct Kernels {
  Spectrum spectrum;
  Project project;
  Decibels decibels;
  Differences differences;
  Resample resample;
  int64_t group;  // frames
  BeginSpectrum begin_spectrum;
  GroupSpectrum group_spectrum;
  GroupProject group_project;
  StoreGroup store_group;
  HopPowers hop_powers;
};
constexpr int64_t kMostOfGroup = 16;

// Return the functions for this processor.
const Kernels& kernels();

void fill_plain(Kernels& k);
#if defined(__x86_64__)
void fill_avx2(Kernels& k);
void fill_avx512(Kernels& k);
#endif

}  // namespace stoker::signal
