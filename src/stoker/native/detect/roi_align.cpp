// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "detect/channels.hpp"
#include "detect/columns.hpp"
#include "detect/roi.hpp"

namespace stoker::detect {

namespace {

using roi::Tap;

int32_t& chosen_of(const View& v, int64_t k, int64_t c, int64_t y, int64_t x) {
  return *reinterpret_cast<int32_t*>(v.data + k * v.stride[0] + c * v.stride[1] + y * v.stride[2] + x * v.stride[3]);
}

// Region with the number of its feature map.
template <class T>
struct Region : roi::Region<T> {
  int64_t map;

  Region(const View& regions, int64_t k, const RoiAlign& rule) : Region(numbers_of(regions, k), rule) {}

 private:
  struct Numbers {
    T value[5];
  };
  Region(const Numbers& n, const RoiAlign& rule)
      : roi::Region<T>(n.value, rule), map(static_cast<int64_t>(n.value[0])) {}
  static Numbers numbers_of(const View& regions, int64_t k) {
    Numbers n;
    for (int i = 0; i < 5; ++i) n.value[i] = element<T>(regions, k, i);
    return n;
  }
};

// Taps of all samples of all bins along an axis.
template <class T>
void fill_taps(T start, T bin, int64_t bins, int64_t samples, int64_t extent, Tap<T>* taps) {
  for (int64_t b = 0; b < bins; ++b)
    for (int64_t i = 0; i < samples; ++i) *taps++ = roi::tap_of(start, bin, b, i, samples, extent);
}

template <class T>
struct Taps2d {
  Tap<T>*y, *x;
  int64_t rows, columns;

  Taps2d(const Region<T>& r, const RoiAlign& rule, int64_t height, int64_t width, Scratch& scratch)
      : rows(static_cast<int64_t>(r.rows)), columns(static_cast<int64_t>(r.columns)) {
    Pieces p(
        scratch.get(Pieces::bytes_of<Tap<T>>(rule.height * rows) + Pieces::bytes_of<Tap<T>>(rule.width * columns)));
    y = p.take<Tap<T>>(rule.height * rows);
    x = p.take<Tap<T>>(rule.width * columns);
    fill_taps(r.y, r.bin_height, rule.height, rows, height, y);
    fill_taps(r.x, r.bin_width, rule.width, columns, width, x);
  }
  // Call f(sample, y, x) for the samples of a bin that are inside.
  template <class F>
  void each(int64_t bin_y, int64_t bin_x, F&& f) const {
    for (int64_t i = 0; i < rows; ++i) {
      const Tap<T>& v = y[bin_y * rows + i];
      if (v.low < 0) continue;
      for (int64_t k = 0; k < columns; ++k) {
        const Tap<T>& h = x[bin_x * columns + k];
        if (h.low >= 0) f(i * columns + k, v, h);
      }
    }
  }
  // Call f(samples) for runs of samples with the same neighbours.
  template <class F>
  void each_run(int64_t bin_y, int64_t bin_x, F&& f) const {
    Samples<T> run;
    each(bin_y, bin_x, [&](int64_t, const Tap<T>& v, const Tap<T>& h) {
      if (!run.takes(v.low, v.high, h.low, h.high)) {
        f(run);
        run.count = 0;
      }
      run.y0 = v.low;
      run.y1 = v.high;
      run.x0 = h.low;
      run.x1 = h.high;
      set_weights(run.weight[run.count++], v, h);
    });
    if (run.count > 0) f(run);
  }
  static void set_weights(T weight[4], const Tap<T>& v, const Tap<T>& h) {
    weight[0] = v.lower * h.lower;
    weight[1] = v.lower * h.upper;
    weight[2] = v.upper * h.lower;
    weight[3] = v.upper * h.upper;
  }
};

// Maximum over the samples, of which those outside are zero.
template <class T>
void maximum(const Map<T>& map, const Taps2d<T>& taps, int64_t by, int64_t bx, int64_t channels, T* best,
             int32_t* which) {
  std::fill(best, best + channels, -std::numeric_limits<T>::infinity());
  std::fill(which, which + channels, -1);
  for (int64_t i = 0; i < taps.rows; ++i)
    for (int64_t k = 0; k < taps.columns; ++k) {
      const Tap<T>&y = taps.y[by * taps.rows + i], &x = taps.x[bx * taps.columns + k];
      const bool inside = y.low >= 0 && x.low >= 0;
      T w[4] = {};
      const T* pixel[4] = {};
      if (inside) {
        Taps2d<T>::set_weights(w, y, x);
        for (int n = 0; n < 4; ++n) pixel[n] = map.at(n < 2 ? y.low : y.high, n % 2 ? x.high : x.low);
      }
      for (int64_t c = 0; c < channels; ++c) {
        const T value =
            inside ? w[0] * pixel[0][c] + w[1] * pixel[1][c] + w[2] * pixel[2][c] + w[3] * pixel[3][c] : T(0);
        if (which[c] >= 0 && !(value > best[c])) continue;
        best[c] = value;
        which[c] = static_cast<int32_t>(i * taps.columns + k);
      }
    }
  for (int64_t c = 0; c < channels; ++c)
    if (which[c] < 0) best[c] = T(0);
}

// Bins that one stride reaches: all, or those of a row.
struct Runs {
  int64_t count, bins;
  Runs(const RoiAlign& rule, int64_t row, int64_t column)
      : count(row == rule.width * column ? 1 : rule.height), bins(rule.height * rule.width / count) {}
};

template <class T>
void align(const View& features, const View& regions, const RoiAlign& rule, const View& out, const View* chosen,
           Scratch* scratch) {
  const int64_t channels = features.shape[1], height = features.shape[2], width = features.shape[3];
  const int64_t bins = rule.height * rule.width;
  Map<T> first{};
  int64_t map_step = 0;
  channels_innermost<T>(features, scratch[0], first, map_step);
  const OverChannels<T> over;
  Pieces p(scratch[1].get(Pieces::bytes_of<T>(channels * (bins + 1)) + Pieces::bytes_of<int32_t>(channels)));
  auto* const sum = p.take<T>(channels * (bins + 1));
  auto* const which = p.take<int32_t>(channels);
  const int64_t out_channel = steps<T>(out, 1), out_row = steps<T>(out, 2), out_column = steps<T>(out, 3);
  const bool direct = out_channel == 1;
  T* const pooled = sum + channels;
  for (int64_t k = 0; k < regions.shape[0]; ++k) {
    const Region<T> r(regions, k, rule);
    const Taps2d<T> taps(r, rule, height, width, scratch[2]);
    const Map<T> map{first.data + r.map * map_step, first.row, first.column};
    const T count = static_cast<T>(std::max<int64_t>(taps.rows * taps.columns, 1));
    T* const to = reinterpret_cast<T*>(out.data) + k * steps<T>(out, 0);
    for (int64_t b = 0; b < bins; ++b) {
      const int64_t by = b / rule.width, bx = b % rule.width;
      T* const bin = direct ? to + by * out_row + bx * out_column : pooled + b * channels;
      if (rule.pool == Pool::Maximum) {
        maximum(map, taps, by, bx, channels, sum, which);
        std::copy(sum, sum + channels, bin);
        if (chosen)
          for (int64_t c = 0; c < channels; ++c) chosen_of(*chosen, k, c, by, bx) = which[c];
        continue;
      }
      std::fill(sum, sum + channels, T(0));
      taps.each_run(by, bx, [&](const Samples<T>& s) {
        const T* const pixel[4] = {map.at(s.y0, s.x0), map.at(s.y0, s.x1), map.at(s.y1, s.x0), map.at(s.y1, s.x1)};
        over.add(sum, pixel, s, channels);
      });
      over.divide(sum, count, bin, channels);
    }
    if (direct) continue;
    const Runs runs(rule, out_row, out_column);
    for (int64_t i = 0; i < runs.count; ++i)
      transpose(pooled + i * runs.bins * channels, channels, int64_t{1}, to + i * out_row, out_column, out_channel,
                runs.bins, channels);
  }
}

// Conditions under which weights are divided by the number of samples instead of all products with them. The bits are the
// same if that number is a power of two, unless a product is below the least normal number.
template <class T>
class ScaledWeights {
 public:
  using Bits = typename OverChannels<T>::Bits;

  ScaledWeights(const Taps2d<T>& taps, const RoiAlign& rule, T count) {
    int exponent = 0;
    if (std::frexp(count, &exponent) != T(0.5)) return;
    // In double, where the product of two weights of T is exact or zero. Twice the bound: weights are rounded.
    const double weight = least_of(taps.y, rule.height * taps.rows) * least_of(taps.x, rule.width * taps.columns);
    const double least = 2 * static_cast<double>(std::numeric_limits<T>::min()) * static_cast<double>(count) / weight;
    if (!(least < 1)) return;
    factor_ = T(1) / count;
    const T number = static_cast<T>(least);
    std::memcpy(&least_, &number, sizeof least_);
  }
  // Return 1 / count if weights may be multiplied by it for these gradients, or 0.
  T factor(const OverChannels<T>& over, const T* gradient, int64_t channels) const {
    return factor_ != T(0) && over.least(gradient, channels) >= least_ ? factor_ : T(0);
  }

 private:
  // Least weight above 0.
  static double least_of(const Tap<T>* taps, int64_t count) {
    T least = T(1);
    for (int64_t i = 0; i < count; ++i)
      for (const T w : {taps[i].lower, taps[i].upper})
        if (w > T(0)) least = std::min(least, w);
    return static_cast<double>(least);
  }

  T factor_ = T(0);
  Bits least_ = 0;
};

// Load the cache lines of `n` numbers into the second level of the cache.
template <class T>
void prefetch(const T* numbers, int64_t n) {
  for (int64_t i = 0; i < n; i += static_cast<int64_t>(64 / sizeof(T))) __builtin_prefetch(numbers + i, 0, 2);
}

template <class T>
void align_backward(const View& gradient, const View& regions, const View* chosen, const RoiAlign& rule,
                    const View& result, Scratch* scratch) {
  const int64_t maps = result.shape[0], channels = result.shape[1], height = result.shape[2], width = result.shape[3];
  const int64_t bins = rule.height * rule.width, pixels = height * width;
  const auto size = static_cast<size_t>(maps * pixels * channels);
  auto* const sums = reinterpret_cast<T*>(scratch[0].get(size * sizeof(T)));
  std::fill(sums, sums + size, T(0));
  const int64_t given_row = padded_row<T>(channels);
  auto* const given = reinterpret_cast<T*>(scratch[1].get(static_cast<size_t>(given_row * bins) * sizeof(T)));
  const OverChannels<T> over;
  for (int64_t k = 0; k < regions.shape[0]; ++k) {
    const Region<T> r(regions, k, rule);
    const Taps2d<T> taps(r, rule, height, width, scratch[2]);
    T* const map = sums + r.map * pixels * channels;
    const auto pixel = [&](int64_t y, int64_t x) { return map + (y * width + x) * channels; };
    const T* const from = reinterpret_cast<const T*>(gradient.data) + k * steps<T>(gradient, 0);
    const Runs runs(rule, steps<T>(gradient, 2), steps<T>(gradient, 3));
    for (int64_t i = 0; i < runs.count; ++i)
      transpose(from + i * steps<T>(gradient, 2), steps<T>(gradient, 3), steps<T>(gradient, 1),
                given + i * runs.bins * given_row, given_row, int64_t{1}, runs.bins, channels);
    const T count = static_cast<T>(taps.rows * taps.columns);
    const ScaledWeights<T> scaled(taps, rule, count);
    const bool has_next = k + 1 < regions.shape[0] && steps<T>(gradient, 0) == channels * bins;
    for (int64_t b = 0; b < bins; ++b) {
      const int64_t by = b / rule.width, bx = b % rule.width;
      const T* const g = given + b * given_row;
      if (has_next) prefetch(from + (bins + b) * channels, channels);  // a part of the next region's gradients
      if (!chosen) {
        const T factor = scaled.factor(over, g, channels);
        taps.each_run(by, bx, [&](const Samples<T>& s) {
          T* const to[4] = {pixel(s.y0, s.x0), pixel(s.y0, s.x1), pixel(s.y1, s.x0), pixel(s.y1, s.x1)};
          over.spread(to, g, s, count, factor, channels);
        });
        continue;
      }
      taps.each(by, bx, [&](int64_t sample, const Tap<T>& y, const Tap<T>& x) {
        T* const to[4] = {pixel(y.low, x.low), pixel(y.low, x.high), pixel(y.high, x.low), pixel(y.high, x.high)};
        T weight[4];
        Taps2d<T>::set_weights(weight, y, x);
        for (int i = 0; i < 4; ++i)
          for (int64_t c = 0; c < channels; ++c)
            if (chosen_of(*chosen, k, c, by, bx) == sample) to[i][c] += g[c] * weight[i];
      });
    }
  }
  auto* const out = reinterpret_cast<T*>(result.data);
  for (int64_t i = 0; i < maps; ++i)
    transpose(sums + i * pixels * channels, channels, int64_t{1}, out + i * pixels * channels, int64_t{1}, pixels,
              pixels, channels);
}

template <class T>
bool is_readable(const View& features, const View& regions, const RoiAlign& rule, std::string& error) {
  for (int64_t k = 0; k < regions.shape[0]; ++k) {
    const std::string name = "region " + std::to_string(k);
    const T map = element<T>(regions, k, 0);
    if (!(map >= T(0) && map < static_cast<T>(features.shape[0]))) {
      error = name + ": expected the number of one of the " + std::to_string(features.shape[0]) +
              " feature maps, got " + std::to_string(map);
      return false;
    }
    for (int i = 1; i < 5; ++i)
      if (!std::isfinite(element<T>(regions, k, i) * static_cast<T>(rule.scale))) {
        error = name + ": expected finite coordinates, got " + std::to_string(element<T>(regions, k, i)) +
                " (times the spatial scale)";
        return false;
      }
    const Region<T> r(regions, k, rule);
    if (!r.has_possible_samples(rule)) {
      error = name + ": expected at most 2**24 samples, got " + std::to_string(r.samples(rule)) +
              "; check the coordinates, the spatial scale and the sampling ratio";
      return false;
    }
  }
  if (regions.shape[0] == 0 || (features.shape[2] > 0 && features.shape[3] > 0)) return true;
  error = "expected features with pixels, got " + std::to_string(features.shape[2]) + " x " +
          std::to_string(features.shape[3]);
  return false;
}

}  // namespace

bool can_align(const View& features, const View& regions, const RoiAlign& rule, std::string& error) {
  return features.dtype == DType::F64 ? is_readable<double>(features, regions, rule, error)
                                      : is_readable<float>(features, regions, rule, error);
}

void roi_align(const View& features, const View& regions, const RoiAlign& rule, const View& out, const View* chosen,
               Scratch* scratch) {
  const auto form = features.dtype == DType::F64 ? align<double> : align<float>;
  form(features, regions, rule, out, chosen, scratch);
}

void roi_align_backward(const View& gradient, const View& regions, const View* chosen, const RoiAlign& rule,
                        const View& features_gradient, Scratch* scratch) {
  const auto form = gradient.dtype == DType::F64 ? align_backward<double> : align_backward<float>;
  form(gradient, regions, chosen, rule, features_gradient, scratch);
}

}  // namespace stoker::detect
