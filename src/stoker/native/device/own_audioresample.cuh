// SPDX-License-Identifier: Apache-2.0
// `audio_resample` between rates that are known while planning.
//
// An output is the fold of 16 partial sums (shared/phases.hpp). Each lane of half a warp computes one of them, so that the
// lanes read neighbouring weights and inputs. The fold adds the sums of lanes that differ in one bit of their number. The
// result does not depend on the lane that has the first product, so the lanes of neighbouring outputs may begin at the
// same input, which is loaded once for all of them.
#pragma once
#include "device/own.cuh"
#include "shared/fused.hpp"
#include "shared/phases.hpp"

namespace stoker::own {

constexpr int32_t kResampleSums = static_cast<int32_t>(signal::kPartialSums);  // lanes of an output
static_assert(kResampleSums == 16, "half a warp");

// Weights of all phases, [rows, taps].
struct ResampleWeights {
  const float* weights;
  int64_t taps;
  bool interpolated;
};

// Outputs at `up` / `down` of the input's rate. Output o is at input o * down / up: a whole part, and a fraction of `up`.
// A value is a channel of an output.
struct Resampled {
  const uint8_t* data;
  int64_t n, sample, channel;  // inputs, and strides in bytes
  float* to;
  int64_t count, channels, up, down;
  int64_t step;  // floats from a value of the output to the next one
  ResampleWeights weights;

  // Return the same for one channel.
  Resampled only(int64_t number) const {
    return {data + number * channel, n, sample, 0, to + number, count, 1, up, down, channels, weights};
  }
};

inline Resampled resampled(const Port& x, const Port& y, int64_t up, int64_t down, const ResampleWeights& weights) {
  return {reinterpret_cast<const uint8_t*>(x.data),
          x.shape[0],
          x.stride[0],
          x.rank == 1 ? 0 : x.stride[1],
          reinterpret_cast<float*>(y.data),
          y.shape[0],
          y.rank == 1 ? 1 : y.shape[1],
          up,
          down,
          1,
          weights};
}

inline int32_t clamped(int64_t x, int32_t most) { return x < 0 ? 0 : x > most ? most : static_cast<int32_t>(x); }

inline float shuffled(float x, uint32_t bits) {
  uint32_t word;
  std::memcpy(&word, &x, sizeof word);
  word = gpu::shuffle_across(word, bits);
  std::memcpy(&x, &word, sizeof x);
  return x;
}

// Compute values first to first + 31 before `past`. All lanes of a warp take part. Half a warp computes kTogether values
// at a time, from the weights and inputs in global memory.
template <int kTogether, bool kMayInterpolate>
inline void resample_values(const Resampled& r, int64_t first, int64_t past) {
  const auto lane = static_cast<int32_t>(gpu::thread_index() % gpu::kWarp);
  const int32_t j = lane % kResampleSums;
  const auto taps = static_cast<int32_t>(r.weights.taps);
  const int64_t begin = first + lane - j, sample = r.sample;
  const int32_t left = clamped(past - begin, kResampleSums);
  const int64_t output = quotient(begin, r.channels);
  int64_t channel = begin - output * r.channels;
  // The whole part of a position repeats every `up` outputs.
  const int64_t periods = quotient(output, r.up), rest = (output - periods * r.up) * r.down;
  int64_t whole = quotient(rest, r.up), fraction = rest - whole * r.up;
  whole += periods * r.down - (taps / 2 - 1);
  const int64_t step = quotient(r.down, r.up), step_fraction = r.down - step * r.up;
  const bool interpolated = kMayInterpolate && r.weights.interpolated;
  float mine = 0;
  STOKER_NO_UNROLL for (int32_t t = 0; t < kResampleSums; t += kTogether) {
    const uint8_t* data[kTogether];
    const float* weights[kTogether];
    int32_t low[kTogether], high[kTogether];  // taps inside the signal
    float part[kTogether], sums[kTogether] = {};
    STOKER_UNROLL for (int u = 0; u < kTogether; ++u) {
      low[u] = clamped(-whole, taps);
      high[u] = t + u < left ? clamped(r.n - whole, taps) : 0;
      data[u] = r.data + channel * r.channel + (whole + j) * sample;
      int64_t row = fraction;
      part[u] = 0;
      if (interpolated) {
        const double phase = static_cast<double>(fraction) / static_cast<double>(r.up) *
                             static_cast<double>(signal::kInterpolatedPhases);
        row = static_cast<int64_t>(phase);
        part[u] = static_cast<float>(phase - static_cast<double>(row));
      }
      weights[u] = r.weights.weights + row * taps;
      if (++channel == r.channels) {
        channel = 0;
        whole += step;
        fraction += step_fraction;
        if (fraction >= r.up) {
          fraction -= r.up;
          ++whole;
        }
      }
    }
    STOKER_NO_UNROLL for (int32_t k = j; k < taps; k += kResampleSums) {
      float x[kTogether], weight[kTogether];
      STOKER_UNROLL for (int u = 0; u < kTogether; ++u) {
        x[u] = k >= low[u] && k < high[u] ? *reinterpret_cast<const float*>(data[u]) : 0.0f;
        weight[u] = weights[u][k];
        data[u] += kResampleSums * sample;
      }
      if (interpolated) {
        STOKER_UNROLL for (int u = 0; u < kTogether; ++u) weight[u] += (weights[u][taps + k] - weight[u]) * part[u];
      }
      STOKER_UNROLL for (int u = 0; u < kTogether; ++u) sums[u] += x[u] * weight[u];
    }
    STOKER_UNROLL for (int u = 0; u < kTogether; ++u) {
      STOKER_UNROLL for (uint32_t bit = kResampleSums / 2; bit > 0; bit /= 2) sums[u] += shuffled(sums[u], bit);
      if (t + u == j) mine = sums[u];
    }
  }
  if (first + lane < past) r.to[(first + lane) * r.step] = mine;
}

// The same for the values of a block, one for each thread.
inline void resample_block(const Resampled& r, uint32_t block) {
  const int64_t first = int64_t{block} * kThreads + gpu::thread_index() / gpu::kWarp * gpu::kWarp;
  const int64_t past = r.count * r.channels;
  if (first < past) resample_values<2, true>(r, first, past);
}

// Outputs of a block that share their weights and inputs: `phases` neighbouring outputs in each of `periods` periods.
// Also in ops/audio/audio_resample.py.
struct ResampleTile {
  static constexpr int32_t kTilePhases = 4, kTilePeriods = 16;  // of a warp
  static constexpr int32_t kMostPhases = 64;

  Resampled row;            // one channel
  int64_t up, down;         // outputs and inputs of a period
  int32_t phases, periods;  // of a block
  int32_t taps;             // inputs that the outputs of a warp read, a multiple of 16
  int32_t trim;             // taps at both ends whose weights are 0 for all phases
  int32_t pitch;            // floats from a period's inputs to the next ones in shared memory

  int64_t first_phase, first_period;  // of the block
  int64_t before;                     // whole part of the position of the first phase
  float* to;                          // the block's first output
  int32_t known, groups, rows;        // phases, groups of phases for a warp, and periods, which the block has
  int32_t period;                     // outputs of a period
  int32_t left;                       // outputs from the block's first one on, as many as its distances need
};

// Find the tile of a block. One thread computes it, because it takes hundreds of instructions.
STOKER_CALLED void find_tile(const Row& row, const Resampled& all, uint32_t block, ResampleTile& tile) {
  // All numbers before the tile is written: a load after a write waits for the one before it.
  const auto* const numbers = reinterpret_cast<const double*>(&row.port(static_cast<int>(row.slot().ports))) + 2;
  const int64_t times = static_cast<int64_t>(numbers[0]), phases = static_cast<int64_t>(numbers[1]);
  const auto periods = static_cast<int32_t>(numbers[2]), steps = static_cast<int32_t>(numbers[3]);
  const auto trim = static_cast<int32_t>(numbers[4]), pitch = static_cast<int32_t>(numbers[5]);
  const int64_t up = all.up * times;
  const int64_t count = quotient(all.count + up - 1, up), slices = quotient(up + phases - 1, phases);
  const int64_t parts = quotient(count + periods - 1, periods), place = quotient(block, slices);
  const int64_t channel = quotient(place, parts);
  const int64_t phase = (block - place * slices) * phases, period = (place - channel * parts) * periods;
  const int64_t before = quotient(phase * all.down, all.up), first = period * up + phase;
  const int32_t most = static_cast<int32_t>(phases), known = clamped(up - phase, most);
  tile.row = all.only(channel);
  tile.up = up;
  tile.down = all.down * times;
  tile.phases = most;
  tile.periods = periods;
  tile.taps = steps * kResampleSums;
  tile.trim = trim;
  tile.pitch = pitch;
  tile.first_phase = phase;
  tile.first_period = period;
  tile.before = before;
  tile.to = all.to + channel + first * all.channels;
  tile.known = known;
  tile.groups = (known + ResampleTile::kTilePhases - 1) / ResampleTile::kTilePhases;
  tile.rows = clamped(count - period, periods);
  tile.period = static_cast<int32_t>(up);
  tile.left = clamped(all.count - first, 0x7FFFFFFF);
}

// Numbers of a phase in a tile.
struct ResamplePhase {
  int32_t at;      // whole part of its position, from that of the tile's first phase on
  int32_t weight;  // index of its first weight; -1 beyond the last phase
};

// Copy the weights of a tile to shared memory, from the first input on that its group of phases reads. Return whether a
// weight is not 0 that `trim` leaves out.
inline bool load_tile_weights(const ResampleTile& tile, const ResamplePhase* phases, float* to) {
  constexpr int32_t kTogether = ResampleTile::kTilePhases, kColumns = 2;  // rows and columns whose loads are in flight
  constexpr auto kWarp = static_cast<int32_t>(gpu::kWarp);
  const auto lane = static_cast<int32_t>(gpu::thread_index() % gpu::kWarp);
  const int32_t count = tile.groups * ResampleTile::kTilePhases, wide = tile.taps, trim = tile.trim;
  const int32_t inner = static_cast<int32_t>(tile.row.weights.taps) - 2 * trim;
  const float* const table = tile.row.weights.weights + trim;
  bool left_out = false;
  for (auto p0 = static_cast<int32_t>(gpu::thread_index()) / kWarp * kTogether; p0 < count;
       p0 += kThreads / kWarp * kTogether) {
    const float* rows[kTogether];
    int32_t shift[kTogether];
    STOKER_UNROLL for (int32_t u = 0; u < kTogether; ++u) {
      const ResamplePhase phase = phases[p0 + u];
      rows[u] = phase.weight < 0 ? nullptr : table + phase.weight;
      shift[u] = phase.at - phases[p0].at;
      if (rows[u] != nullptr && lane < 2 * trim)
        left_out |= rows[u][lane < trim ? lane - trim : lane - trim + inner] != 0.0f;
    }
    for (int32_t c0 = lane; c0 < wide; c0 += kColumns * kWarp) {
      float found[kTogether * kColumns];
      STOKER_UNROLL for (int32_t i = 0; i < kTogether * kColumns; ++i) {
        const int32_t u = i % kTogether, c = c0 + i / kTogether * kWarp, k = c - shift[u];
        found[i] = rows[u] != nullptr && k >= 0 && k < inner ? rows[u][k] : 0.0f;
      }
      STOKER_UNROLL for (int32_t i = 0; i < kTogether * kColumns; ++i) {
        const int32_t u = i % kTogether, c = c0 + i / kTogether * kWarp;
        if (c < wide) to[(p0 + u) * wide + c] = found[i];
      }
    }
  }
  return left_out;
}

// Copy the inputs of a tile to shared memory, `width` for each period, with those at the taps that `trim` leaves out. Return
// whether one of them is not finite.
inline bool load_tile_inputs(const ResampleTile& tile, int32_t width, float* to) {
  constexpr int32_t kColumns = 5, kRows = 2;  // whose loads are in flight
  constexpr auto kWarp = static_cast<int32_t>(gpu::kWarp);
  const auto lane = static_cast<int32_t>(gpu::thread_index() % gpu::kWarp);
  const Resampled& r = tile.row;
  const int64_t n = r.n, sample = r.sample, down = tile.down;
  const int64_t first = tile.first_period * down + tile.before - (r.weights.taps / 2 - 1);
  const uint8_t* const data = r.data;
  const int32_t rows = tile.rows, pitch = tile.pitch;
  float zero = 0;  // NaN if an input is not finite
  for (auto q = static_cast<int32_t>(gpu::thread_index()) / kWarp * kRows; q < rows; q += kThreads / kWarp * kRows) {
    for (int32_t c0 = lane; c0 < width; c0 += kColumns * kWarp) {
      float found[kRows * kColumns];
      STOKER_UNROLL for (int32_t u = 0; u < kRows; ++u) {
        const int64_t start = first + (q + u) * down;
        const int32_t low = clamped(-start, width), high = q + u < rows ? clamped(n - start, width) : 0;
        const uint8_t* from = data + (start + c0) * sample;
        STOKER_UNROLL for (int32_t i = 0; i < kColumns; ++i) {
          const int32_t c = c0 + i * kWarp;
          found[u * kColumns + i] = c >= low && c < high ? *reinterpret_cast<const float*>(from) : 0.0f;
          from += kWarp * sample;
        }
      }
      STOKER_UNROLL for (int32_t u = 0; u < kRows; ++u) {
        STOKER_UNROLL for (int32_t i = 0; i < kColumns; ++i) {
          const float x = found[u * kColumns + i];
          zero = fused<true>(x, 0.0f, zero);
          if (const int32_t c = c0 + i * kWarp; c < width) to[(q + u) * pitch + c] = x;
        }
      }
    }
  }
  return zero != 0.0f;
}

// Compute 4 outputs in each of 16 periods. Register i of lane j holds a partial sum of output i ^ j of its half of the
// warp, so that the fold exchanges registers without choosing among them.
inline void resample_tile(const ResampleTile& tile, const ResamplePhase* phases, const float* weights,
                          const float* inputs, int32_t part, int32_t group) {
  constexpr int32_t kPhases = ResampleTile::kTilePhases, kPeriods = ResampleTile::kTilePeriods / 2;
  // Computed for each tile: numbers that the compiler keeps from tile to tile need more registers than there are.
  const int32_t lane = gpu::computed(static_cast<int32_t>(gpu::thread_index() % gpu::kWarp));
  const int32_t half = lane / kResampleSums, j = lane % kResampleSums;
  const int32_t phase = j % kPhases, period = j / kPhases;
  const int32_t row = part * ResampleTile::kTilePeriods + half;
  // Row i ^ k of a table, for i from 0 to 3, by additions to row k.
  const auto find_rows = [](const float* row, int32_t k, int32_t pitch, auto& rows) {
    const int32_t one = k & 1 ? -pitch : pitch, two = (k & 2 ? -2 : 2) * pitch;
    rows[0] = row;
    rows[1] = row + one;
    rows[2] = row + two;
    rows[3] = rows[1] + two;
  };
  const float* w[kPhases];
  const float* x[kPeriods];
  find_rows(weights + (group * kPhases + phase) * tile.taps + j, phase, tile.taps, w);
  // The halves read from rows with an odd distance, which an odd multiple of 16 floats separates: no bank conflict.
  const int32_t pitch = tile.pitch, begin = phases[group * kPhases].at + tile.trim + j;
  find_rows(inputs + (row + 2 * period) * pitch + begin, period, 2 * pitch, x);
  STOKER_UNROLL for (int32_t q = 4; q < kPeriods; ++q) x[q] = x[q - 4] + 8 * pitch;
  float sums[kPeriods * kPhases] = {};
  const auto add = [&](int32_t m) {
    float weight[kPhases];
    STOKER_UNROLL for (int32_t a = 0; a < kPhases; ++a) weight[a] = w[a][m];
    STOKER_UNROLL for (int32_t q = 0; q < kPeriods; ++q) {
      const float input = x[q][m];
      STOKER_UNROLL for (int32_t a = 0; a < kPhases; ++a) sums[q * kPhases + a] += input * weight[a];
    }
  };
  const auto advance = [&](int32_t m) {
    STOKER_UNROLL for (int32_t a = 0; a < kPhases; ++a) w[a] += m;
    STOKER_UNROLL for (int32_t q = 0; q < kPeriods; ++q) x[q] += m;
  };
  constexpr int32_t kLong = 4 * kResampleSums;  // taps without arithmetic of addresses
  int32_t left = tile.taps;
  STOKER_NO_UNROLL for (; left >= kLong; left -= kLong) {
    STOKER_UNROLL for (int32_t m = 0; m < kLong; m += kResampleSums) add(m);
    advance(kLong);
  }
  STOKER_NO_UNROLL for (; left > 0; left -= kResampleSums) {
    add(0);
    advance(kResampleSums);
  }
  STOKER_UNROLL for (int32_t bit = kResampleSums / 2; bit > 0; bit /= 2) {
    STOKER_UNROLL for (int32_t i = 0; i < kPeriods * kPhases; ++i) {
      if (i % kResampleSums < bit) sums[i] += shuffled(sums[i + bit], static_cast<uint32_t>(bit));
    }
  }
  const int32_t p = group * kPhases + phase, up = tile.period;
  STOKER_UNROLL for (int32_t i = 0; i < 2; ++i) {
    const int32_t output = (row + 2 * (i * kResampleSums / kPhases + period)) * up + p;
    if (p < tile.known && output < tile.left) tile.to[output * tile.row.step] = sums[i * kResampleSums];
  }
}

// Compute the outputs of a tile one by one, for inputs that are not finite. A tile multiplies inputs beyond an output's
// taps by weights of 0, and such a product would be a NaN.
STOKER_CALLED void resample_plainly(const ResampleTile& tile) {
  const int64_t count = tile.known;
  const int64_t warp = gpu::thread_index() / gpu::kWarp;
  for (int32_t q = 0; q < tile.rows; ++q) {
    const int64_t begin = (tile.first_period + q) * tile.up + tile.first_phase;
    const int64_t past = begin + count < tile.row.count ? begin + count : tile.row.count;
    for (int64_t i = begin + warp * gpu::kWarp; i < past; i += kThreads) resample_values<1, false>(tile.row, i, past);
  }
}

// Ports: signal, weights [rows, taps], output. Numbers: the rates of output and input, without a common divisor; then,
// for tiles, how many of the shortest periods are one, and ResampleTile's `phases`, `periods`, steps of 16 taps, `trim`
// and `pitch`. There are as many rows as phases, unless the weights are interpolated (kernels/signal_tables.cpp), for
// which there are no tiles.
template <class Ports>
struct AudioResample {
  static Resampled resampled_row(const Row& row) {
    const Port& w = row.port(1);
    const auto up = static_cast<int64_t>(row.number(0)), down = static_cast<int64_t>(row.number(1));
    return resampled(row.port(0), row.port(2), up, down,
                     {reinterpret_cast<const float*>(w.data), w.shape[1], w.shape[0] != up});
  }

  static void outputs(const Row& row, uint32_t block) { resample_block(resampled_row(row), block); }

  static void tiles(const Row& row, uint32_t block) {
    using Phases = Array<ResamplePhase, ResampleTile::kMostPhases>;
    STOKER_SHARED(Phases, phases);
    STOKER_SHARED(ResampleTile, tile);
    STOKER_SHARED(uint32_t, plain);
    const auto thread = static_cast<int32_t>(gpu::thread_index());
    if (thread == 0) {
      const Resampled all = resampled_row(row);
      find_tile(row, all, block, tile);
      plain = 0;
    }
    gpu::block_barrier();
    const int32_t count = tile.groups * ResampleTile::kTilePhases;
    if (thread < count) {
      const int64_t p = tile.first_phase + thread, at = quotient(p * tile.row.down, tile.row.up);
      const int64_t weight = (p * tile.row.down - at * tile.row.up) * tile.row.weights.taps;
      phases[thread] = {static_cast<int32_t>(at - tile.before), p < tile.up ? static_cast<int32_t>(weight) : -1};
    }
    gpu::block_barrier();
    auto* const weights = gpu::dynamic_shared<float>();
    float* const inputs = weights + tile.phases * tile.taps;
    bool differs = load_tile_weights(tile, phases.values, weights);
    const int32_t width = phases[count - ResampleTile::kTilePhases].at + tile.taps + 2 * tile.trim;
    differs |= load_tile_inputs(tile, width, inputs);
    if (differs) gpu::atomic_or(&plain, 1);
    gpu::block_barrier();
    if (plain != 0) return resample_plainly(tile);
    const int32_t groups = tile.groups, rows = tile.rows;
    int32_t group = thread / static_cast<int32_t>(gpu::kWarp), part = 0;
    while (true) {
      for (; group >= groups; group -= groups) ++part;
      if (part * ResampleTile::kTilePeriods >= rows) return;
      resample_tile(tile, phases.values, weights, inputs, part, group);
      group += static_cast<int32_t>(kThreads / gpu::kWarp);
    }
  }
};

}  // namespace stoker::own
