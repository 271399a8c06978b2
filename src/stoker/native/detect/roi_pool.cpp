// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "detect/channels.hpp"
#include "detect/columns.hpp"
#include "detect/roi.hpp"

namespace stoker::detect {

namespace {

constexpr double kMostCoordinate = 1 << 30;  // sums of two such numbers are whole numbers of 32 bits

using roi::Range;
using roi::range_of;

template <class T>
void pool(const View& features, const View& regions, double given_scale, const View& out, const View* chosen,
          Scratch* scratch) {
  const int64_t channels = features.shape[1], height = features.shape[2], width = features.shape[3];
  const int64_t rows = out.shape[2], columns = out.shape[3], bins = rows * columns;
  Map<T> first{};
  int64_t map_step = 0;
  channels_innermost<T>(features, scratch[0], first, map_step);
  Pieces p(scratch[1].get(Pieces::bytes_of<T>(channels) + Pieces::bytes_of<int32_t>(channels)));
  auto* const best = p.take<T>(channels);
  auto* const which = p.take<int32_t>(channels);
  const T scale = static_cast<T>(given_scale);
  for (int64_t k = 0; k < regions.shape[0]; ++k) {
    const auto map = static_cast<int64_t>(element<T>(regions, k, 0));
    int64_t corner[4];
    for (int i = 0; i < 4; ++i) corner[i] = static_cast<int64_t>(std::round(element<T>(regions, k, i + 1) * scale));
    const int64_t w = std::max<int64_t>(corner[2] - corner[0] + 1, 1),
                  h = std::max<int64_t>(corner[3] - corner[1] + 1, 1);
    const Map<T> pixels{first.data + map * map_step, first.row, first.column};
    for (int64_t b = 0; b < bins; ++b) {
      const int64_t by = b / columns, bx = b % columns;
      const Range ys = range_of<T>(corner[1], h, by, rows, height), xs = range_of<T>(corner[0], w, bx, columns, width);
      const bool empty = ys.end <= ys.begin || xs.end <= xs.begin;
      std::fill(best, best + channels, empty ? T(0) : static_cast<T>(std::numeric_limits<float>::lowest()));
      std::fill(which, which + channels, -1);
      for (int64_t y = ys.begin; y < ys.end; ++y)
        for (int64_t x = xs.begin; x < xs.end; ++x) {
          const T* const pixel = pixels.at(y, x);
          const auto number = static_cast<int32_t>(y * width + x);
          for (int64_t c = 0; c < channels; ++c) {
            const bool above = pixel[c] > best[c];
            best[c] = above ? pixel[c] : best[c];
            which[c] = above ? number : which[c];
          }
        }
      auto* const to = reinterpret_cast<T*>(out.data + k * out.stride[0] + by * out.stride[2] + bx * out.stride[3]);
      for (int64_t c = 0; c < channels; ++c) to[c * steps<T>(out, 1)] = best[c];
      if (!chosen) continue;
      auto* const numbers = reinterpret_cast<int32_t*>(chosen->data) + k * channels * bins + b;
      for (int64_t c = 0; c < channels; ++c) numbers[c * bins] = which[c];
    }
  }
}

template <class T>
void pool_backward(const View& gradient, const View& regions, const View& chosen, const View& result) {
  const int64_t channels = result.shape[1], pixels = result.shape[2] * result.shape[3];
  const int64_t rows = gradient.shape[2], columns = gradient.shape[3];
  auto* const out = reinterpret_cast<T*>(result.data);
  std::fill(out, out + result.elements(), T(0));
  const auto* which = reinterpret_cast<const int32_t*>(chosen.data);
  for (int64_t k = 0; k < regions.shape[0]; ++k) {
    const auto map = static_cast<int64_t>(element<T>(regions, k, 0));
    for (int64_t c = 0; c < channels; ++c) {
      T* const to = out + (map * channels + c) * pixels;
      for (int64_t by = 0; by < rows; ++by)
        for (int64_t bx = 0; bx < columns; ++bx, ++which) {
          if (*which < 0 || *which >= pixels) continue;
          const uint8_t* const from = gradient.data + k * gradient.stride[0] + c * gradient.stride[1] +
                                      by * gradient.stride[2] + bx * gradient.stride[3];
          to[*which] += *reinterpret_cast<const T*>(from);
        }
    }
  }
}

template <class T>
bool is_readable(const View& features, const View& regions, double scale, std::string& error) {
  if (features.shape[2] * features.shape[3] > std::numeric_limits<int32_t>::max()) {
    error = "expected feature maps of at most 2**31 - 1 pixels";
    return false;
  }
  for (int64_t k = 0; k < regions.shape[0]; ++k) {
    const std::string name = "region " + std::to_string(k);
    const T map = element<T>(regions, k, 0);
    if (!(map >= T(0) && map < static_cast<T>(features.shape[0]))) {
      error = name + ": expected the number of one of the " + std::to_string(features.shape[0]) +
              " feature maps, got " + std::to_string(map);
      return false;
    }
    for (int i = 1; i < 5; ++i) {
      const T at = element<T>(regions, k, i) * static_cast<T>(scale);
      if (!(std::abs(static_cast<double>(at)) <= kMostCoordinate)) {
        error = name + ": expected coordinates up to 2**30 after the spatial scale, got " + std::to_string(at);
        return false;
      }
    }
  }
  return true;
}

}  // namespace

bool can_pool(const View& features, const View& regions, double scale, std::string& error) {
  return features.dtype == DType::F64 ? is_readable<double>(features, regions, scale, error)
                                      : is_readable<float>(features, regions, scale, error);
}

void roi_pool(const View& features, const View& regions, double scale, const View& out, const View* chosen,
              Scratch* scratch) {
  const auto form = features.dtype == DType::F64 ? pool<double> : pool<float>;
  form(features, regions, scale, out, chosen, scratch);
}

void roi_pool_backward(const View& gradient, const View& regions, const View& chosen, const View& features_gradient) {
  const auto form = gradient.dtype == DType::F64 ? pool_backward<double> : pool_backward<float>;
  form(gradient, regions, chosen, features_gradient);
}

}  // namespace stoker::detect
