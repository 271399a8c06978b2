// SPDX-License-Identifier: Apache-2.0
// Pooling of regions of interest on a GPU, with the results of detect/roi_align.cpp and detect/roi_pool.cpp. Gradients
// are gathered: a block has the channels of one pixel and adds what regions, bins and samples give to it, in their order
// on the CPU. So they are repeatable.
//
// A GPU cannot report a region without waiting for it: what the CPU refuses becomes NaN, and adds nothing to gradients.
#pragma once
#include "device/own.cuh"
#include "shared/device.cuh"
#include "shared/roi_region.hpp"
#include "shared/xmath.hpp"

namespace stoker::roi {

constexpr uint32_t kMaxThreads = 256;
constexpr double kMostCoordinate = 1 << 30;

// Numbers of a call, two of 32 bits in each parameter of a kernel.
struct Call {
  int64_t regions, maps, channels, height, width;
  Rule rule;
  bool channels_last, pooled_last;                        // whether a pixel's or a bin's channels are neighbours
  int64_t map_step, channel_step, row_step, column_step;  // of the features, in elements

  Call() = default;
  Call(uint64_t count, uint64_t maps_channels, uint64_t size, uint64_t bins, uint64_t samples_flags, uint64_t scale)
      : regions(static_cast<int64_t>(count)),
        maps(high(maps_channels)),
        channels(low(maps_channels)),
        height(high(size)),
        width(low(size)),
        rule{xm::detail::from_bits(scale), high(bins), low(bins), high(samples_flags), (samples_flags & 1) != 0},
        channels_last((samples_flags & 2) != 0),
        pooled_last(false),
        map_step(height * width * channels),
        channel_step(channels_last ? 1 : height * width),
        row_step(channels_last ? width * channels : width),
        column_step(channels_last ? channels : 1) {}
  static int64_t high(uint64_t x) { return static_cast<int64_t>(x >> 32); }
  static int64_t low(uint64_t x) { return static_cast<int64_t>(x & 0xFFFFFFFFu); }
  int64_t bins() const { return rule.height * rule.width; }
  // Place of a result.
  int64_t place(int64_t region, int64_t channel, int64_t bin) const {
    return pooled_last ? (region * bins() + bin) * channels + channel : (region * channels + channel) * bins() + bin;
  }
};

// Return whether the CPU accepts a region: an existing feature map, and coordinates up to a limit.
template <class T>
bool is_possible(const T* numbers, const Call& call, double most) {
  bool possible = numbers[0] >= T(0) && numbers[0] < static_cast<T>(call.maps);
  for (int i = 1; i < 5; ++i) {
    const auto at = static_cast<double>(numbers[i] * static_cast<T>(call.rule.scale));
    possible = possible && at >= -most && at <= most;
  }
  return possible;
}

template <class T>
constexpr double most_finite() {
  return sizeof(T) == 4 ? 3.4028234663852886e38 : 1.7976931348623157e308;
}

// One result: region, channel and bin.
struct Place {
  int64_t region, channel, row, column, element;

  // Number `i` of the results in the order in which the features lie, so that neighbouring threads read neighbours.
  Place(int64_t i, const Call& call) {
    int64_t bin = 0;
    if (call.channels_last) {
      const int64_t pooled = own::quotient(i, call.channels);
      channel = i - pooled * call.channels;
      region = own::quotient(pooled, call.bins());
      bin = pooled - region * call.bins();
    } else {
      const int64_t plane = own::quotient(i, call.bins());
      bin = i - plane * call.bins();
      region = own::quotient(plane, call.channels);
      channel = plane - region * call.channels;
    }
    row = own::quotient(bin, call.rule.width);
    column = bin - row * call.rule.width;
    element = call.place(region, channel, bin);
  }
};

// One channel of a feature map.
template <class T>
struct Plane {
  const T* data;
  int64_t row, column;

  Plane(const T* features, const Call& call, int64_t map, int64_t channel)
      : data(features + (map * call.map_step + channel * call.channel_step)),
        row(call.row_step),
        column(call.column_step) {}
  T operator()(int64_t y, int64_t x) const { return data[y * row + x * column]; }
};

template <class T>
T nothing() {
  return static_cast<T>(xm::detail::from_bits(0x7FF8000000000000u));
}

constexpr int64_t kGroup = 32;  // channels of a block

// A tap with numbers of 32 bits.
template <class T>
struct ShortTap {
  int32_t low, high;
  T lower, upper;

  ShortTap() = default;
  explicit ShortTap(const Tap<T>& t)
      : low(static_cast<int32_t>(t.low)), high(static_cast<int32_t>(t.high)), lower(t.lower), upper(t.upper) {}
};

// Taps of a block's region, computed once if they are few.
template <class T>
struct KeptTaps {
  static constexpr int64_t kMost = 256;
  ShortTap<T> y[kMost], x[kMost];
};

// The samples of one region.
template <class T>
class Samples {
 public:
  // All threads of the block take part; a barrier must follow.
  Samples(const Region<T>& region, const Call& call, KeptTaps<T>& kept)
      : rows(static_cast<int64_t>(region.rows)),
        columns(static_cast<int64_t>(region.columns)),
        region_(region),
        call_(call),
        kept_(kept),
        keeps_(rows * call.rule.height <= KeptTaps<T>::kMost && columns * call.rule.width <= KeptTaps<T>::kMost) {
    if (!keeps_) return;
    for (int64_t i = gpu::thread_index(); i < rows * call.rule.height; i += gpu::thread_count())
      kept.y[i] = compute_down(own::quotient(i, rows), i % rows);
    for (int64_t i = gpu::thread_index(); i < columns * call.rule.width; i += gpu::thread_count())
      kept.x[i] = compute_across(own::quotient(i, columns), i % columns);
  }
  ShortTap<T> down(int64_t bin, int64_t i) const { return keeps_ ? kept_.y[bin * rows + i] : compute_down(bin, i); }
  ShortTap<T> across(int64_t bin, int64_t i) const {
    return keeps_ ? kept_.x[bin * columns + i] : compute_across(bin, i);
  }

  const int64_t rows, columns;  // of a bin

 private:
  ShortTap<T> compute_down(int64_t bin, int64_t i) const {
    return ShortTap<T>(tap_of(region_.y, region_.bin_height, bin, i, rows, call_.height));
  }
  ShortTap<T> compute_across(int64_t bin, int64_t i) const {
    return ShortTap<T>(tap_of(region_.x, region_.bin_width, bin, i, columns, call_.width));
  }

  const Region<T>& region_;
  const Call& call_;
  const KeptTaps<T>& kept_;
  const bool keeps_;
};

// Return the mean of a bin's samples, or with kMax the maximum, and the number of its sample in `which`, unless that is null. `Step` is void if
// the pixels of a row are neighbours, else an integer that the distance of pixels fits.
template <class T, class Step, bool kMax>
T pooled(const Samples<T>& samples, const Plane<T>& pixel, int64_t bin, const Call& call, int32_t* which) {
  const int64_t by = own::quotient(bin, call.rule.width), bx = bin - by * call.rule.width;
  const auto at = [&](const T* row, int32_t x) {
    if constexpr (std::is_same_v<Step, void>) return row[x];
    else return row[static_cast<int64_t>(x) * static_cast<Step>(pixel.column)];
  };
  T sum = T(0);
  int32_t number = -1;
  for (int64_t a = 0; a < samples.rows; ++a) {
    const ShortTap<T> v = samples.down(by, a);
    if (v.low < 0 && !kMax) continue;
    const T* const top = pixel.data + (v.low < 0 ? 0 : v.low * pixel.row);
    const T* const bottom = pixel.data + (v.low < 0 ? 0 : v.high * pixel.row);
    for (int64_t b = 0; b < samples.columns; ++b) {
      const ShortTap<T> h = samples.across(bx, b);
      const bool inside = v.low >= 0 && h.low >= 0;
      if (!inside && !kMax) continue;
      T value = T(0);
      if (inside)
        value = v.lower * h.lower * at(top, h.low) + v.lower * h.upper * at(top, h.high) +
                v.upper * h.lower * at(bottom, h.low) + v.upper * h.upper * at(bottom, h.high);
      if constexpr (!kMax) {
        sum += value;
      } else if (number < 0 || value > sum) {
        sum = value;
        number = static_cast<int32_t>(a * samples.columns + b);
      }
    }
  }
  if (kMax && which) *which = number;
  return kMax ? sum : sum / static_cast<T>(std::max<int64_t>(samples.rows * samples.columns, 1));
}

// Pooled bins of neighbouring channels, from threads with a channel each, on the way to threads with a bin each.
template <class T>
struct Turned {
  static constexpr int64_t kBins = 64;
  T value[kGroup][kBins + 1];
};

// Shared memory of a block.
template <class T>
struct Room {
  KeptTaps<T> kept;
  Turned<T> turned;
};

// Some of the channels of one region.
struct Part {
  int64_t map, region, first, channels;
};

// A thread has a channel at a time.
template <class T, class Step, bool kMax>
void align_last(const Samples<T>& samples, const T* features, const Call& call, const Part& part, T* out,
                int32_t* chosen, Turned<T>& turned) {
  const int64_t bins = call.bins(), thread = gpu::thread_index(), threads = gpu::thread_count();
  const int64_t lane = thread % kGroup, warps = threads / kGroup, channels = part.channels;
  const Plane<T> pixel(features, call, part.map, std::min(part.first + lane, call.channels - 1));
  const auto place = [&](int64_t channel, int64_t bin) { return call.place(part.region, part.first + channel, bin); };
  for (int64_t begin = 0; begin < bins; begin += Turned<T>::kBins) {
    const int64_t count = std::min<int64_t>(Turned<T>::kBins, bins - begin);
    for (int64_t k = thread / kGroup; k < count && lane < channels; k += warps) {
      const T value =
          pooled<T, Step, kMax>(samples, pixel, begin + k, call, chosen ? chosen + place(lane, begin + k) : nullptr);
      if (call.pooled_last) out[place(lane, begin + k)] = value;
      else turned.value[lane][k] = value;
    }
    if (call.pooled_last) continue;
    gpu::block_barrier();
    for (int64_t i = thread; i < channels * count; i += threads) {
      const int64_t c = own::quotient(i, count), k = i - c * count;
      out[place(c, begin + k)] = turned.value[c][k];
    }
    gpu::block_barrier();
  }
}

// A block has up to kGroup channels of one region, whose five numbers are given.
template <class T, class Step, bool kMax>
void align_group(const T* features, const T* numbers, int64_t region, int64_t group, const Call& call, T* out,
                 int32_t* chosen, Room<T>& room) {
  const int64_t first = group * kGroup, bins = call.bins();
  const Part part{static_cast<int64_t>(numbers[0]), region, first, std::min(kGroup, call.channels - first)};
  const Region<T> r(numbers, call.rule);
  const auto each = [&](auto&& compute) {
    for (int64_t i = gpu::thread_index(); i < part.channels * bins; i += gpu::thread_count()) {
      const int64_t channel = own::quotient(i, bins), bin = i - channel * bins;
      compute(first + channel, bin, call.place(region, first + channel, bin));
    }
  };
  if (!is_possible(numbers, call, most_finite<T>()) || !r.has_possible_samples(call.rule))
    return each([&](int64_t, int64_t, int64_t place) {
      out[place] = nothing<T>();
      if (chosen) chosen[place] = -1;
    });
  const Samples<T> samples(r, call, room.kept);
  gpu::block_barrier();
  if (call.column_step != 1) return align_last<T, Step, kMax>(samples, features, call, part, out, chosen, room.turned);
  each([&](int64_t channel, int64_t bin, int64_t place) {
    const Plane<T> pixel(features, call, part.map, channel);
    out[place] = pooled<T, void, kMax>(samples, pixel, bin, call, chosen ? chosen + place : nullptr);
  });
}

// `chosen` is null: means; else maxima, and the numbers of their samples.
template <class T>
void align(const T* features, const T* regions, const Call& call, T* out, int32_t* chosen) {
  STOKER_SHARED(Room<T>, room);
  const int64_t groups = (call.channels + kGroup - 1) / kGroup, block = gpu::block_index();
  const int64_t region = own::quotient(block, groups), group = block - region * groups;
  const T* const numbers = regions + region * 5;
  // A pixel's channels are fewer than 2^31.
  if (chosen) align_group<T, int32_t, true>(features, numbers, region, group, call, out, chosen, room);
  else align_group<T, int32_t, false>(features, numbers, region, group, call, out, chosen, room);
}

// Return whether positions from `start` on may have pixel `at` as a neighbour; true if in doubt.
inline bool may_reach(double start, double length, int64_t at) {
  const double end = start + length, size = std::fabs(start) + std::fabs(end), slack = 3 + size * 1e-5;
  const auto pixel = static_cast<double>(at);
  return std::min(start, end) - slack <= pixel && std::max(start, end) + slack >= pixel;
}

// A pixel of a gradient, and this thread's channel.
struct Pixel {
  int64_t map, y, x, channel;
  bool is_real;  // there are as many channels

  explicit Pixel(const Call& call) {
    const int64_t parts = (call.channels + gpu::thread_count() - 1) / gpu::thread_count();
    const int64_t block = gpu::block_index(), at = block / parts, line = at / call.width;
    map = line / call.height;
    y = line % call.height;
    x = at % call.width;
    channel = block % parts * gpu::thread_count() + gpu::thread_index();
    is_real = channel < call.channels;
  }
};

struct Found {
  uint32_t word[kMaxThreads / gpu::kWarp];
};

// Call add(region) for the regions that `reaches` names, in their order. All threads of the block take part.
template <class Reaches, class Add>
void each_region(int64_t regions, Reaches&& reaches, Add&& add) {
  STOKER_SHARED(Found, found);
  const uint32_t thread = gpu::thread_index(), threads = gpu::thread_count();
  for (int64_t first = 0; first < regions; first += threads) {
    const uint32_t word = gpu::ballot(first + thread < regions && reaches(first + thread));
    if (thread % gpu::kWarp == 0) found.word[thread / gpu::kWarp] = word;
    gpu::block_barrier();
    for (uint32_t w = 0; w < threads / gpu::kWarp; ++w)
      for (uint32_t rest = found.word[w]; rest != 0; rest &= rest - 1)
        add(first + w * gpu::kWarp + gpu::bits_set((rest & (0 - rest)) - 1));
    gpu::block_barrier();
  }
}

// Weights of a sample for a pixel along an axis, in the order of its neighbours; both at the border.
template <class T>
struct Weights {
  T weight[2];
  int count = 0;

  Weights(const Tap<T>& tap, int64_t pixel) {
    if (tap.low < 0) return;
    if (tap.low == pixel) weight[count++] = tap.lower;
    if (tap.high == pixel) weight[count++] = tap.upper;
  }
};

// `gradient` and `chosen`: (K, bins, C), neighbouring channels; `result`: (N, H, W, C).
template <class T>
void align_backward(const T* gradient, const T* regions, const Call& call, T* result, const int32_t* chosen) {
  const Pixel pixel(call);
  T sum = T(0);
  const auto reaches = [&](int64_t k) {
    const T* const numbers = regions + k * 5;
    if (!is_possible(numbers, call, most_finite<T>()) || static_cast<int64_t>(numbers[0]) != pixel.map) return false;
    const Region<T> r(numbers, call.rule);
    return r.has_possible_samples(call.rule) &&
           may_reach(static_cast<double>(r.y),
                     static_cast<double>(r.bin_height) * static_cast<double>(call.rule.height), pixel.y) &&
           may_reach(static_cast<double>(r.x), static_cast<double>(r.bin_width) * static_cast<double>(call.rule.width),
                     pixel.x);
  };
  each_region(call.regions, reaches, [&](int64_t k) {
    const Region<T> r(regions + k * 5, call.rule);
    const auto rows = static_cast<int64_t>(r.rows), columns = static_cast<int64_t>(r.columns);
    const T count = static_cast<T>(rows * columns);
    const auto down = [&](int64_t bin, int64_t i) {
      return Weights<T>(tap_of(r.y, r.bin_height, bin, i, rows, call.height), pixel.y);
    };
    for (int64_t by = 0; by < call.rule.height; ++by) {
      bool touches = false;
      for (int64_t i = 0; i < rows; ++i) touches = touches || down(by, i).count > 0;
      if (!touches) continue;
      for (int64_t bx = 0; bx < call.rule.width; ++bx) {
        const int64_t place = ((k * call.rule.height + by) * call.rule.width + bx) * call.channels + pixel.channel;
        for (int64_t i = 0; i < rows; ++i) {
          const Weights<T> v = down(by, i);
          if (v.count == 0) continue;
          for (int64_t n = 0; n < columns; ++n) {
            const Weights<T> h(tap_of(r.x, r.bin_width, bx, n, columns, call.width), pixel.x);
            if (h.count == 0 || !pixel.is_real) continue;
            if (chosen && chosen[place] != i * columns + n) continue;
            const T g = gradient[place];
            for (int a = 0; a < v.count; ++a)
              for (int b = 0; b < h.count; ++b) {
                const T part = g * (v.weight[a] * h.weight[b]);
                sum += chosen ? part : part / count;
              }
          }
        }
      }
    }
  });
  if (pixel.is_real)
    result[((pixel.map * call.height + pixel.y) * call.width + pixel.x) * call.channels + pixel.channel] = sum;
}

// The corners of a region in whole pixels, and its size.
struct Corners {
  int64_t x, y, width, height;

  template <class T>
  Corners(const T* numbers, const Rule& rule) {
    int64_t corner[4];
    for (int i = 0; i < 4; ++i)
      corner[i] = static_cast<int64_t>(std::round(static_cast<double>(numbers[i + 1] * static_cast<T>(rule.scale))));
    x = corner[0];
    y = corner[1];
    width = std::max<int64_t>(corner[2] - corner[0] + 1, 1);
    height = std::max<int64_t>(corner[3] - corner[1] + 1, 1);
  }
};

// One result, of the region with the given numbers; `chosen` may be null.
template <class T>
void pool_bin(const T* features, const T* numbers, const Place& place, const Call& call, T* out, int32_t* chosen) {
  T best = nothing<T>();
  int32_t which = -1;
  if (is_possible(numbers, call, kMostCoordinate)) {
    const Corners r(numbers, call.rule);
    const Range ys = range_of<T>(r.y, r.height, place.row, call.rule.height, call.height);
    const Range xs = range_of<T>(r.x, r.width, place.column, call.rule.width, call.width);
    const Plane<T> pixel(features, call, static_cast<int64_t>(numbers[0]), place.channel);
    best = ys.end <= ys.begin || xs.end <= xs.begin ? T(0) : static_cast<T>(-3.4028234663852886e38);
    for (int64_t y = ys.begin; y < ys.end; ++y)
      for (int64_t x = xs.begin; x < xs.end; ++x) {
        const T value = pixel(y, x);
        if (!(value > best)) continue;
        best = value;
        which = static_cast<int32_t>(y * call.width + x);
      }
  }
  out[place.element] = best;
  if (chosen) chosen[place.element] = which;
}

template <class T>
void pool(const T* features, const T* regions, const Call& call, T* out, int32_t* chosen) {
  const int64_t i = int64_t{gpu::block_index()} * gpu::thread_count() + gpu::thread_index();
  if (i >= call.regions * call.channels * call.bins()) return;
  const Place place(i, call);
  pool_bin(features, regions + place.region * 5, place, call, out, chosen);
}

template <class T>
void pool_backward(const T* gradient, const T* regions, const Call& call, T* result, const int32_t* chosen) {
  const Pixel pixel(call);
  const auto own = static_cast<int32_t>(pixel.y * call.width + pixel.x);
  T sum = T(0);
  const auto reaches = [&](int64_t k) {
    const T* const numbers = regions + k * 5;
    if (!is_possible(numbers, call, kMostCoordinate) || static_cast<int64_t>(numbers[0]) != pixel.map) return false;
    const Corners r(numbers, call.rule);
    return may_reach(static_cast<double>(r.y), static_cast<double>(r.height), pixel.y) &&
           may_reach(static_cast<double>(r.x), static_cast<double>(r.width), pixel.x);
  };
  each_region(call.regions, reaches, [&](int64_t k) {
    const Corners r(regions + k * 5, call.rule);
    for (int64_t by = 0; by < call.rule.height; ++by) {
      const Range ys = range_of<T>(r.y, r.height, by, call.rule.height, call.height);
      if (pixel.y < ys.begin || pixel.y >= ys.end) continue;
      for (int64_t bx = 0; bx < call.rule.width; ++bx) {
        const int64_t place = ((k * call.rule.height + by) * call.rule.width + bx) * call.channels + pixel.channel;
        if (pixel.is_real && chosen[place] == own) sum += gradient[place];
      }
    }
  });
  if (pixel.is_real)
    result[((pixel.map * call.height + pixel.y) * call.width + pixel.x) * call.channels + pixel.channel] = sum;
}

}  // namespace stoker::roi

// Kernel `name` of one of the functions above. Forward: `to` are the pooled regions; backward: the gradient of the
// features.
#define STOKER_ROI_KERNEL(name, function, T, Chosen, blocks)                                                      \
  STOKER_KERNEL STOKER_LAUNCH_BOUNDS(256, blocks)                                                                 \
      name(uint64_t from, uint64_t regions, uint64_t count, uint64_t maps_channels, uint64_t size, uint64_t bins, \
           uint64_t samples_flags, uint64_t scale, uint64_t to, uint64_t chosen) {                                \
    const stoker::roi::Call call(count, maps_channels, size, bins, samples_flags, scale);                         \
    stoker::roi::function<T>(reinterpret_cast<const T*>(from), reinterpret_cast<const T*>(regions), call,         \
                             reinterpret_cast<T*>(to), reinterpret_cast<Chosen*>(chosen));                        \
  }
#define STOKER_ROI(T)                                                               \
  STOKER_ROI_KERNEL(stoker_roi_align, align, T, int32_t, sizeof(T) == 4 ? 3 : 2)    \
  STOKER_ROI_KERNEL(stoker_roi_align_backward, align_backward, T, const int32_t, 1) \
  STOKER_ROI_KERNEL(stoker_roi_pool, pool, T, int32_t, 1)                           \
  STOKER_ROI_KERNEL(stoker_roi_pool_backward, pool_backward, T, const int32_t, 1)
