// SPDX-License-Identifier: Apache-2.0
// Resampling as an interpolator of stages: one resampled pixel, from the tables of device/interpolator_kernels.cuh.
#pragma once
#include "device/row_blocks.cuh"
#include "shared/device.cuh"
#include "shared/resample_taps.hpp"
#include "shared/stage_slot.hpp"

namespace stoker::stage {

template <class T>
inline T load_at(const uint8_t* p) {
  return *reinterpret_cast<const T*>(p);
}
template <class T>
inline const T* array_at(uint64_t address) {
  return reinterpret_cast<const T*>(address);
}

// Load from memory that nothing writes while the kernel runs.
#if defined(__CUDA_ARCH__)
inline uint32_t load_word(const void* p) {
  uint32_t word;
  asm("ld.global.nc.u32 %0, [%1];" : "=r"(word) : "l"(p));
  return word;
}
#else
inline uint32_t load_word(const void* p) { return *static_cast<const uint32_t*>(p); }
#endif

// Weighted sum of one pixel's channels: 8-bit pixels in fixed point, which wraps, all others in double.
template <class T>
struct Sum {
  using Weight = double;
  double value = 0.0;
  void add(T x, double w) { value += static_cast<double>(x) * w; }
  T result() const { return resample::from_double<T>(value); }
};
template <>
struct Sum<uint8_t> {
  using Weight = int32_t;
  uint32_t value = resample::kFixedHalf;
  void add(uint8_t x, int32_t w) { value += x * static_cast<uint32_t>(w); }
  uint8_t result() const { return resample::from_fixed(value); }
};

template <class T, int N>
inline void pick(const uint8_t* p, int64_t channel, T* out) {
#pragma unroll
  for (int c = 0; c < N; ++c) out[c] = load_at<T>(p + c * channel);
}

// Load a pixel, from a word that contains all channels or from any layout.
template <class T, int N, bool kWord>
inline void load_pixel(const uint8_t* p, int64_t channel, T* out) {
  if constexpr (kWord) {
    const auto word = load_at<uint32_t>(p);
#pragma unroll
    for (int c = 0; c < N; ++c) out[c] = static_cast<uint8_t>(word >> (8 * c));
  } else {
    pick<T, N>(p, channel, out);
  }
}

// With up to kFew taps all 8-bit pixels are loaded before the first one is used, because waiting for each of them would
// dominate. Missing pixels are replaced by the last one with a weight of zero.
constexpr int kFew = 4;

template <class T>
inline void few_weights(const typename Sum<T>::Weight* weight, int32_t count, typename Sum<T>::Weight (&few)[kFew]) {
#pragma unroll
  for (int t = 0; t < kFew; ++t) few[t] = t < count ? weight[t] : 0;
}

template <class T, int N>
inline void sum_few(const T (&pixel)[kFew][N], const typename Sum<T>::Weight (&weight)[kFew], T* out) {
  Sum<T> sum[N];
#pragma unroll
  for (int t = 0; t < kFew; ++t)
#pragma unroll
    for (int c = 0; c < N; ++c) sum[c].add(pixel[t][c], weight[t]);
#pragma unroll
  for (int c = 0; c < N; ++c) out[c] = sum[c].result();
}

// Filter N channels: `count` pixels from p on, `step` bytes apart.
template <class T, int N, bool kWord>
inline void filter(const uint8_t* p, int64_t step, int64_t channel, int32_t count,
                   const typename Sum<T>::Weight* weight, T* out) {
  if constexpr (std::is_same_v<T, uint8_t>) {
    if (count > 0 && count <= kFew) {
      typename Sum<T>::Weight few[kFew];
      T pixel[kFew][N];
#pragma unroll
      for (int t = 0; t < kFew; ++t) load_pixel<T, N, kWord>(p + (t < count ? t : count - 1) * step, channel, pixel[t]);
      few_weights<T>(weight, count, few);
      return sum_few<T, N>(pixel, few, out);
    }
  }
  Sum<T> sum[N];
  for (int32_t t = 0; t < count; ++t, p += step) {
    const auto w = weight[t];
    T pixel[N];
    load_pixel<T, N, kWord>(p, channel, pixel);
#pragma unroll
    for (int c = 0; c < N; ++c) sum[c].add(pixel[c], w);
  }
#pragma unroll
  for (int c = 0; c < N; ++c) out[c] = sum[c].result();
}

// Load up to kFew adjacent pixels of three bytes as the words that contain them. Words without any of their bytes are
// not read.
inline void load_triples(const uint8_t* p, int32_t count, uint8_t (&pixel)[kFew][3]) {
  const auto address = reinterpret_cast<uintptr_t>(p);
  const auto* words = reinterpret_cast<const uint32_t*>(address & ~uintptr_t{3});
  const uint32_t skip = address & 3, last = (skip + 3 * static_cast<uint32_t>(count) - 1) / 4;
  uint32_t word[4], bytes[3];
#pragma unroll
  for (uint32_t i = 0; i < 4; ++i) word[i] = words[i < last ? i : last];
#pragma unroll
  for (int i = 0; i < 3; ++i)
    bytes[i] = static_cast<uint32_t>((static_cast<uint64_t>(word[i + 1]) << 32 | word[i]) >> (8 * skip));
#pragma unroll
  for (int k = 0; k < 3 * kFew; ++k) pixel[k / 3][k % 3] = static_cast<uint8_t>(bytes[k / 4] >> (8 * (k % 4)));
}

// Inputs of the last pass, held by a thread: both passes pick, or one filters, or the image between the passes is
// filtered.
template <class T>
struct ResampleReader {
  using Weight = typename Sum<T>::Weight;
  const uint8_t* data;
  int64_t row, pixel, channel;
  const resample::Taps *vertical, *horizontal;
  const Weight *vertical_weights, *horizontal_weights;
  int64_t vertical_pitch, horizontal_pitch;
  bool two, along_y, along_x, single, word;

  ResampleReader(const ResampleSlot& s, const ResampleScratch& scratch)
      : vertical(array_at<resample::Taps>(scratch.vertical_taps)),
        horizontal(array_at<resample::Taps>(scratch.horizontal_taps)),
        vertical_weights(array_at<Weight>(scratch.vertical_weights)),
        horizontal_weights(array_at<Weight>(scratch.horizontal_weights)),
        vertical_pitch(scratch.vertical_pitch),
        horizontal_pitch(scratch.horizontal_pitch),
        two(s.two_passes()),
        single(false),
        word(false) {
    const Source& i = s.source;
    const bool across = s.vertical_first;
    along_y = two ? !across : !s.picks(true);
    along_x = two ? across : !s.picks(false);
    data = array_at<uint8_t>(i.data);
    row = i.row;
    pixel = i.pixel;
    channel = i.channel;
    if (!two) return;
    channel = static_cast<int64_t>(sizeof(T));
    pixel = s.between_pixel(channel);
    word = pixel == 4 && channel == 1;
    row = s.between_width() * pixel;
    data = array_at<uint8_t>(scratch.between) - (across ? s.first_column * pixel : s.first_row * row);
  }

  // Compute channels [c, c + N) of output pixel (y, x).
  template <int N>
  void sample(int64_t y, int64_t x, int64_t c, T* out) const {
    resample::Taps v{static_cast<int32_t>(y), 1}, h{static_cast<int32_t>(x), 1};  // for a pass that is done already
    if (along_y || !two) v = vertical[y];
    if (along_x || !two) h = horizontal[x];
    const uint8_t* p = data + v.start * row + h.start * pixel + c * channel;
    if constexpr (std::is_same_v<T, uint8_t> && N >= 3) {
      if (word) return filter_words<N>(p, y, x, v.count, h.count, out);
    }
    if (!two && ((!along_y && v.count == 0) || (!along_x && h.count == 0))) {
#pragma unroll
      for (int i = 0; i < N; ++i) out[i] = 0;  // beyond the last pixel
    } else if (along_y) {
      filter<T, N, false>(p, row, channel, v.count, vertical_weights + y * vertical_pitch, out);
    } else if (along_x) {
      filter<T, N, false>(p, pixel, channel, h.count, horizontal_weights + x * horizontal_pitch, out);
    } else {
      pick<T, N>(p, channel, out);
    }
  }

 private:
  template <int N>
  void filter_words(const uint8_t* p, int64_t y, int64_t x, int32_t down, int32_t across, T* out) const {
    if (along_y) filter<T, N, true>(p, row, channel, down, vertical_weights + y * vertical_pitch, out);
    else filter<T, N, true>(p, pixel, channel, across, horizontal_weights + x * horizontal_pitch, out);
  }
};

template <class T, int N>
inline void store_between(const T (&pixel)[N], uint8_t* to) {
  if constexpr (std::is_same_v<T, uint8_t> && N == 3) {
    *reinterpret_cast<uint32_t*>(to) = pixel[0] | pixel[1] << 8 | pixel[2] << 16;
  } else {
#pragma unroll
    for (int c = 0; c < N; ++c) reinterpret_cast<T*>(to)[c] = pixel[c];
  }
}

// Compute channels [c, c + N) of the image between two passes: column x, rows [y0, y1).
template <class T, int N>
inline void between_column(const ResampleSlot& s, const ResampleScratch& scratch, int64_t x, int64_t y0, int64_t y1,
                           int64_t c) {
  using Weight = typename Sum<T>::Weight;
  const Source i = s.source;
  const int64_t size = sizeof(T), pixel = s.between_pixel(size), out_row = s.between_width() * pixel;
  uint8_t* out = reinterpret_cast<uint8_t*>(scratch.between) + y0 * out_row + x * pixel + c * size;
  const uint8_t* base = array_at<uint8_t>(i.data) + c * i.channel;
  T filtered[N];
  if (s.vertical_first) {
    const auto* taps = array_at<resample::Taps>(scratch.vertical_taps);
    const auto* weights = array_at<Weight>(scratch.vertical_weights);
    const int64_t pitch = scratch.vertical_pitch;
    base += (s.first_column + x) * i.pixel;
    for (int64_t y = y0; y < y1; ++y, out += out_row) {
      filter<T, N, false>(base + taps[y].start * i.row, i.row, i.channel, taps[y].count, weights + y * pitch, filtered);
      store_between<T, N>(filtered, out);
    }
    return;
  }
  const resample::Taps h = array_at<resample::Taps>(scratch.horizontal_taps)[x];
  const Weight* weights = array_at<Weight>(scratch.horizontal_weights) + x * scratch.horizontal_pitch;
  base += (s.first_row + y0) * i.row + h.start * i.pixel;
  if constexpr (std::is_same_v<T, uint8_t> && N == 3) {
    if (i.pixel == 3 && i.channel == 1 && h.count > 0 && h.count <= kFew) {
      Weight few[kFew];
      few_weights<T>(weights, h.count, few);
      for (int64_t y = y0; y < y1; ++y, base += i.row, out += out_row) {
        T triple[kFew][3];
        load_triples(base, h.count, triple);
        sum_few<T, N>(triple, few, filtered);
        store_between<T, N>(filtered, out);
      }
      return;
    }
  }
  for (int64_t y = y0; y < y1; ++y, base += i.row, out += out_row) {
    filter<T, N, false>(base, i.pixel, i.channel, h.count, weights, filtered);
    store_between<T, N>(filtered, out);
  }
}

// Pixels of a thread: column x, every kStep-th row from y0 to y1 of an image of width by height. A warp processes kStep
// rows at a time.
template <int kStep>
struct TilePlace {
  int64_t x, y0, y1;
  TilePlace(uint32_t tile, int64_t width, int64_t height) {
    constexpr uint32_t kAcross = kTileWidth / kStep;  // columns of a warp
    const auto across = (static_cast<uint32_t>(width) + kTileWidth - 1) / kTileWidth;
    const uint32_t down = tile / across, thread = gpu::thread_index(), warp = thread / gpu::kWarp;
    x = int64_t{tile - down * across} * kTileWidth + warp % kStep * kAcross + thread % kAcross;
    const int64_t first = int64_t{down} * kTileHeight + warp / kStep * (kTileRows * kStep);
    y0 = first + thread % gpu::kWarp / kAcross;
    y1 = x < width ? (first + kTileRows * kStep < height ? first + kTileRows * kStep : height) : y0;
  }
};

// Empty interpolator: a generated stage that does not interpolate.
struct Unsampled {
  struct Slot {};
  struct Scratch {};
  static constexpr bool kSamples = false, kHasScratch = false;
};
// Column of an image that has been resampled already, one word per pixel.
class WordColumn {
 public:
  using Index = int64_t;

  WordColumn(const ResampleSlot& s, const ResampleScratch& scratch, int64_t x)
      : data_(array_at<uint8_t>(scratch.between) + 4 * x), row_(4 * s.resampled_pitch()) {}

  class Pixel {
   public:
    Pixel(const WordColumn& column, int64_t y) : word_(load_at<uint32_t>(column.data_ + y * column.row_)) {}
    template <class Value>
    void take(const WordColumn&, Value* out) const {
#pragma unroll
      for (int c = 0; c < 3; ++c) out[c] = static_cast<Value>(word_ >> (8 * c) & 0xFF);
    }

   private:
    uint32_t word_;
  };

 private:
  const uint8_t* data_;
  const int64_t row_;
};

template <class T>
struct Resampled {
  using Slot = ResampleSlot;
  using Scratch = ResampleScratch;
  using Reader = ResampleReader<T>;
  using Type = T;
  static constexpr bool kSamples = true, kHasScratch = true, kQuick = false;
  static constexpr int kStep = 1;
};
}  // namespace stoker::stage

// Define a kernel of an interpolator, which runs before a stage: function(slots, slot_bytes, scratches, work) for each
// block. `blocks` is the minimum number of resident blocks per multiprocessor.
#define STOKER_INTERPOLATOR_KERNEL(name, function, blocks)                                                             \
  STOKER_KERNEL STOKER_LAUNCH_BOUNDS(stoker::stage::kThreads, blocks)                                                  \
      name(uint64_t slots, uint64_t slot_bytes, uint64_t scratches, uint64_t starts, uint64_t count, uint64_t first) { \
    function(slots, slot_bytes, scratches, stoker::gpu::find_work(starts, count, first));                              \
  }
