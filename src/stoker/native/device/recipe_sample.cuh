// SPDX-License-Identifier: Apache-2.0
// Recipe steps that resize and warp.
#pragma once
#include "device/recipe_frame.cuh"
#include "device/interpolator_kernels.cuh"
#include "shared/torch_resize_float_sum.hpp"
#include "shared/torch_warp_point.hpp"
#include "shared/warp_point.hpp"
#include "shared/warp_project_point.hpp"

namespace stoker::recipe::gpu {

// ---- Pillow's resampling ----

// Taps and weights of one axis.
struct Line {
  const resample::Taps* taps;
  const int32_t* weights;
  int32_t pitch;
};

inline Line line_of(const Step& s, const Axes& a, bool down) {
  const resample::Window& w = down ? a.vertical : a.horizontal;
  return {array_at<resample::Taps>(s.scratch[down ? 0 : 1]), array_at<int32_t>(s.scratch[down ? 2 : 3]),
          static_cast<int32_t>(w.max_taps)};
}

// Add weighted pixels from p on, `step` bytes apart, kTaps at a time.
template <int kTaps>
inline void filter(const Line& line, int32_t i, const uint8_t* p, int32_t step, int32_t channels, int32_t channel,
                   uint8_t* to) {
  const int32_t count = line.taps[i].count;
  const int32_t* weight = line.weights + i * line.pitch;
  stage::Sum<uint8_t> sum[3];
#pragma unroll kTaps
  for (int32_t t = 0; t < count; ++t, p += step)
    for (int32_t c = 0; c < 3; ++c)
      if (c < channels) sum[c].add(p[c * channel], weight[t]);
  for (int32_t c = 0; c < 3; ++c)
    if (c < channels) to[c] = sum[c].result();
}

// Run one of the two passes. The image between them is contiguous.
STOKER_STEP void resize_pass(const Step& s, bool second) {
  const Axes& a = *array_at<Axes>(s.extra);
  const bool down = (a.vertical_first != 0) != second;
  const auto channels = static_cast<int32_t>(s.in.channels);
  const int64_t width = second || !down ? s.out.width : s.in.width;
  Picture in(s.in), out(s.out), between(s.out);
  between.data = reinterpret_cast<uint8_t*>(s.scratch[4]);
  between.row = static_cast<int32_t>(a.vertical_first ? s.in.width : s.out.width) * channels;
  between.pixel = channels;
  between.channel = 1;
  if (second) in = between;
  else out = between;
  const Line line = line_of(s, a, down);
  each(second || down ? s.out.height : s.in.height, width, [&](int32_t y, int32_t x) {
    const int32_t i = down ? y : x, start = line.taps[i].start;
    filter<4>(line, i, down ? in.at(start, x) : in.at(y, start), down ? in.row : in.pixel, channels, in.channel,
              out.at(y, x));
  });
}

// Resize if at most one axis filters and the other one only picks pixels.
STOKER_STEP void pick_or_filter(const Step& s) {
  const Axes& a = *array_at<Axes>(s.extra);
  const auto* rows = array_at<resample::Taps>(s.scratch[0]);
  const auto* columns = array_at<resample::Taps>(s.scratch[1]);
  const bool picks_rows = a.vertical.filter == resample::Filter::Nearest;
  const bool picks_columns = a.horizontal.filter == resample::Filter::Nearest;
  const Line line = line_of(s, a, !picks_rows);  // the filtered axis, if there is one
  const Picture in(s.in), out(s.out);
  const auto channels = static_cast<int32_t>(s.in.channels);
  each(s.out.height, s.out.width, [&](int32_t y, int32_t x) {
    const resample::Taps v = rows[y], h = columns[x];
    const uint8_t* p = in.at(v.start, h.start);
    uint8_t* to = out.at(y, x);
    if ((picks_rows && v.count == 0) || (picks_columns && h.count == 0)) {
      for (int32_t c = 0; c < channels; ++c) to[c] = 0;  // beyond the last pixel
    } else if (!picks_rows || !picks_columns) {
      filter<1>(line, picks_rows ? x : y, p, picks_rows ? in.pixel : in.row, channels, in.channel, to);
    } else {
      for (int32_t c = 0; c < channels; ++c) to[c] = p[c * in.channel];
    }
  });
}

STOKER_STEP void find_taps(const Step& s) {
  const Axes& a = *array_at<Axes>(s.extra);
  const resample::Window &v = a.vertical, &h = a.horizontal;
  for (int64_t i = thread_index(); i < v.out + h.out; i += thread_count()) {
    const bool is_down = i < v.out;  // one call for both axes, since every call is compiled with all filters
    stage::find_output<int32_t>(is_down ? v : h, is_down ? i : i - v.out, is_down ? s.scratch[0] : s.scratch[1],
                                is_down ? s.scratch[2] : s.scratch[3], is_down ? v.max_taps : h.max_taps, false);
  }
}

inline bool picks(const Axes& a) {
  return a.vertical.filter == resample::Filter::Nearest || a.horizontal.filter == resample::Filter::Nearest;
}

inline int32_t phases_of_resize(const Step& s) { return picks(*array_at<Axes>(s.extra)) ? 2 : 3; }

inline void resize(const Step& s, int32_t phase) {
  if (phase == 0) return find_taps(s);
  if (picks(*array_at<Axes>(s.extra))) return pick_or_filter(s);
  return resize_pass(s, phase == 2);
}

// ---- torch's resampling ----

// Run the horizontal pass on the input, or the vertical pass to the output. If both are needed, the image between them
// is as wide as the output.
STOKER_STEP void pair_pass(const Step& s, bool down) {
  const PairAxes& axes = *array_at<PairAxes>(s.extra);
  const PairAxis& a = down ? axes.vertical : axes.horizontal;
  const auto* starts = array_at<int32_t>(a.start);
  const auto* pairs = array_at<int32_t>(a.pairs);
  const auto most = static_cast<int32_t>(a.most), precision = static_cast<int32_t>(a.precision);
  const int32_t half = precision ? 1 << (precision - 1) : 0;
  Picture in(s.in), out(s.out), between(s.out);
  between.data = reinterpret_cast<uint8_t*>(s.scratch[0]);
  if (axes.horizontal.pairs != 0 && axes.vertical.pairs != 0) {
    if (down) in = between;
    else out = between;
  }
  const int32_t step = down ? in.row : in.pixel, channels = static_cast<int32_t>(s.in.channels);
  each(down ? s.out.height : s.in.height, s.out.width, [&](int32_t y, int32_t x) {
    const int32_t i = down ? y : x, start = starts[i];
    const uint8_t* from = down ? in.at(start, x) : in.at(y, start);
    const int32_t* pair = pairs + i * most;
    int32_t sum[3] = {half, half, half};
    STOKER_NO_UNROLL
    for (int32_t k = 0; k < most; ++k, from += 2 * step) {
      const int32_t low = static_cast<int16_t>(pair[k] & 0xffff), high = pair[k] >> 16;
      for (int32_t c = 0; c < 3; ++c) {
        if (c >= channels) continue;
        if (low) sum[c] += from[c * in.channel] * low;  // weights beyond the last pixel are zero
        if (high) sum[c] += from[c * in.channel + step] * high;
      }
    }
    uint8_t* to = out.at(y, x);
    for (int32_t c = 0; c < 3; ++c)
      if (c < channels) to[c] = static_cast<uint8_t>(std::clamp(sum[c] >> precision, 0, 255));
  });
}

inline int32_t phases_of_torch_resize(const Step& s) {
  const PairAxes& a = *array_at<PairAxes>(s.extra);
  return a.horizontal.pairs != 0 && a.vertical.pairs != 0 ? 2 : 1;
}

inline void torch_resize(const Step& s, int32_t phase) {
  const PairAxes& a = *array_at<PairAxes>(s.extra);
  if (a.horizontal.pairs == 0 && a.vertical.pairs == 0) return copy(s);
  return pair_pass(s, a.horizontal.pairs == 0 || phase == 1);
}

// Resizing with float arithmetic: columns, then rows; without antialiasing both together.
STOKER_STEP void float_columns(const Step& s) {
  const FloatAxis& h = array_at<FloatAxes>(s.extra)->horizontal;
  const auto channels = static_cast<int32_t>(s.in.channels);
  const Picture in(s.in);
  auto* between = reinterpret_cast<float*>(s.scratch[0]);
  each(s.in.height, s.out.width, [&](int32_t y, int32_t x) {
    const uint8_t* p = in.at(y, array_at<int32_t>(h.index)[x]);
    for (int32_t c = 0; c < channels; ++c)
      between[(int64_t{y} * s.out.width + x) * channels + c] = stoker::torch_resize::smooth_sum<true>(
          array_at<float>(h.weights) + x * h.max_taps, array_at<int32_t>(h.count)[x],
          [&](int64_t j) { return static_cast<float>(p[j * in.pixel + c * in.channel]); });
  });
}

STOKER_STEP void float_rows(const Step& s) {
  const FloatAxis& v = array_at<FloatAxes>(s.extra)->vertical;
  const auto channels = static_cast<int32_t>(s.in.channels);
  const Picture out(s.out);
  const auto* between = array_at<float>(s.scratch[0]);
  const int64_t line = s.out.width * channels;
  each(s.out.height, s.out.width, [&](int32_t y, int32_t x) {
    const float* p = between + array_at<int32_t>(v.index)[y] * line + x * channels;
    for (int32_t c = 0; c < channels; ++c)
      out.at(y, x)[c] = stoker::torch_resize::rounded_byte(stoker::torch_resize::smooth_sum<true>(
          array_at<float>(v.weights) + y * v.max_taps, array_at<int32_t>(v.count)[y],
          [&](int64_t j) { return p[j * line + c]; }));
  });
}

STOKER_STEP void float_sharp(const Step& s) {
  const FloatAxes& a = *array_at<FloatAxes>(s.extra);
  const bool joint = a.way == stoker::torch_resize::Way::Together;
  const auto max_taps = static_cast<int32_t>(a.horizontal.max_taps);
  const Picture in(s.in), out(s.out);
  each(s.out.height, s.out.width, [&](int32_t y, int32_t x) {
    const float* down = array_at<float>(a.vertical.weights) + y * max_taps;
    const float* across = array_at<float>(a.horizontal.weights) + x * max_taps;
    const int32_t* rows = array_at<int32_t>(a.vertical.index) + y * max_taps;
    const int32_t* columns = array_at<int32_t>(a.horizontal.index) + x * max_taps;
    for (int32_t c = 0; c < static_cast<int32_t>(s.in.channels); ++c) {
      const auto at = [&](int64_t i, int64_t j) {
        return static_cast<float>(in.at(rows[i], columns[j])[c * in.channel]);
      };
      out.at(y, x)[c] = stoker::torch_resize::rounded_byte(
          joint ? stoker::torch_resize::joint_sum<true>(down, across, at)
                : stoker::torch_resize::sharp_sum<true>(down, max_taps, [&](int64_t i) {
                    return stoker::torch_resize::sharp_sum<true>(across, max_taps, [&](int64_t j) { return at(i, j); });
                  }));
    }
  });
}

inline int32_t phases_of_torch_resize_floats(const Step& s) {
  return array_at<FloatAxes>(s.extra)->way == stoker::torch_resize::Way::Smooth ? 2 : 1;
}

inline void torch_resize_floats(const Step& s, int32_t phase) {
  if (array_at<FloatAxes>(s.extra)->way != stoker::torch_resize::Way::Smooth) return float_sharp(s);
  return phase == 0 ? float_columns(s) : float_rows(s);
}

inline int64_t picked(int64_t i, int64_t in, int64_t out, bool exact) {
  const float scale = static_cast<float>(in) / static_cast<float>(out);
  if (exact) return std::min<int64_t>(static_cast<int64_t>(std::floor((static_cast<float>(i) + 0.5f) * scale)), in - 1);
  if (in == out) return i;
  if (out == 2 * in) return i >> 1;
  return std::min<int64_t>(static_cast<int64_t>(std::floor(static_cast<float>(i) * scale)), in - 1);
}

STOKER_STEP void torch_pick(const Step& s) {
  const bool exact = s.kind != 0;
  each(s.out, [&](int64_t y, int64_t x) {
    const uint8_t* from =
        s.in.at(picked(y, s.in.height, s.out.height, exact), picked(x, s.in.width, s.out.width, exact));
    for (int64_t c = 0; c < s.in.channels; ++c) s.out.at(y, x)[c] = from[c * s.in.channel];
  });
}

// ---- warps ----

inline void put(const Step& s, int64_t y, int64_t x, int32_t from_y, int32_t from_x) {
  uint8_t* to = s.out.at(y, x);
  if ((from_y | from_x) < 0) {
    for (int64_t c = 0; c < s.out.channels; ++c) to[c] = static_cast<uint8_t>(s.number[6 + c]);
    return;
  }
  const uint8_t* from = s.in.at(from_y, from_x);
  for (int64_t c = 0; c < s.out.channels; ++c) to[c] = from[c * s.in.channel];
}

STOKER_STEP void affine_linear(const Step& s) {
  const double* m = s.number;
  const double width = static_cast<double>(s.in.width), height = static_cast<double>(s.in.height);
  each(s.out, [&](int64_t y, int64_t x) {
    const double yin = static_cast<double>(y) + 0.5;
    const warp::Line xs{m[0], m[1] * yin, m[2], width}, ys{m[3], m[4] * yin, m[5], height};
    const double vx = xs.at(x), vy = ys.at(x);
    if (!(vx >= 0.0 && vx < width && vy >= 0.0 && vy < height)) return put(s, y, x, -1, -1);
    const warp::Neighbours h = warp::neighbours(vx, width, s.in.width - 1, s.in.pixel);
    const warp::Neighbours v = warp::neighbours(vy, height, s.in.height - 1, s.in.row);
    for (int64_t c = 0; c < s.in.channels; ++c) {
      const uint8_t* top = s.in.data + v.a + c * s.in.channel;
      const uint8_t* bottom = s.in.data + v.b + c * s.in.channel;
      const double upper = warp::lerp(top[h.a], top[h.b], h.weight);
      const double lower = warp::lerp(bottom[h.a], bottom[h.b], h.weight);
      s.out.at(y, x)[c] = warp::from_interpolated<uint8_t>(warp::lerp(upper, lower, v.weight));
    }
  });
}

// Positions are accumulated step by step as in Pillow, so each line is computed by one thread.
STOKER_STEP void affine_steps(const Step& s) {
  const double* m = s.number;
  for (int64_t y = thread_index(); y < s.out.height; y += thread_count()) {
    double xx = m[2] + m[1] * 0.5 + m[0] * 0.5, yy = m[5] + m[4] * 0.5 + m[3] * 0.5;
    for (int64_t k = 0; k < y; ++k) {
      xx += m[1];
      yy += m[4];
    }
    for (int64_t x = 0; x < s.out.width; ++x, xx += m[0], yy += m[3])
      put(s, y, x, warp::index_of(yy, s.in.height, false), warp::index_of(xx, s.in.width, false));
  }
}

STOKER_STEP void affine_fixed(const Step& s) {
  const double* m = s.number;
  const uint32_t a0 = warp::to_fixed(m[0]), a1 = warp::to_fixed(m[1]), a3 = warp::to_fixed(m[3]),
                 a4 = warp::to_fixed(m[4]);
  const uint32_t x0 = warp::to_fixed(m[2] + m[0] * 0.5 + m[1] * 0.5),
                 y0 = warp::to_fixed(m[5] + m[3] * 0.5 + m[4] * 0.5);
  each(s.out, [&](int64_t y, int64_t x) {
    const auto row = static_cast<uint32_t>(y), column = static_cast<uint32_t>(x);
    const uint32_t fx = x0 + row * a1 + column * a0, fy = y0 + row * a4 + column * a3;
    put(s, y, x, warp::index_of(static_cast<int32_t>(fy), s.in.height, false),
        warp::index_of(static_cast<int32_t>(fx), s.in.width, false));
  });
}

inline void affine(const Step& s) {
  switch (static_cast<Walk>(s.kind)) {
    case Walk::Linear: return affine_linear(s);
    case Walk::Fixed: return affine_fixed(s);
    default: return affine_steps(s);
  }
}

// Numbers: a matrix of eight, a fill value of three. kind: the sampling, plus 4 if projective.
template <bool kProjective, class At>
STOKER_STEP void project_as(const Step& s) {
  const Picture out(s.out);
  const auto channels = static_cast<int32_t>(s.out.channels);
  each(s.out.height, s.out.width, [&](int32_t y, int32_t x) {
    uint8_t* to = out.at(y, x);
    // Constructed for each pixel, so that it takes no registers in between.
    const warp::Bytes from{s.in.data, s.in.height, s.in.width, s.in.row, s.in.pixel, s.in.channel};
    const warp::Point point = warp::point_of<kProjective>(s.number, x, y);
    if (!point.inside(from)) {
      for (int32_t c = 0; c < channels; ++c) to[c] = static_cast<uint8_t>(s.number[8 + c]);
      return;
    }
    const At shown(from, point);
    STOKER_NO_UNROLL
    for (int32_t c = 0; c < channels; ++c) to[c] = shown.at(c);
  });
}

inline void project(const Step& s) {
  switch (s.kind) {
    case 1: return project_as<false, warp::LinearAt>(s);
    case 2: return project_as<false, warp::CubicOf<int32_t>>(s);
    case 4: return project_as<true, warp::NearestAt>(s);
    case 5: return project_as<true, warp::LinearAt>(s);
    default: return project_as<true, warp::CubicOf<int32_t>>(s);
  }
}

// Numbers: a grid of eight, whether there is a fill value, a fill value of three. kind: linear, plus 2 if projective.
// extra: sample points, or 0.
STOKER_STEP void torch_warp(const Step& s) {
  stoker::torch_warp::Grid grid{};
  for (int i = 0; i < 8; ++i) grid.m[i] = static_cast<float>(s.number[i]);
  grid.projective = (s.kind & 2) != 0;
  grid.given = array_at<float>(s.extra);
  stoker::torch_warp::Fill fill{s.number[8] != 0, {}, s.number[8] == 2};
  for (int i = 0; i < 3; ++i) fill.value[i] = static_cast<float>(s.number[9 + i]);
  const stoker::torch_warp::Middle middle(s.in, grid.projective, s.out.height, s.out.width);
  each(s.out, [&](int64_t y, int64_t x) {
    const float* given = grid.given ? grid.given + 2 * y * s.out.width : nullptr;
    if (s.kind & 1) stoker::torch_warp::sample_pixel<true, true>(s.in, grid, middle, fill, given, x, y, s.out.at(y, x));
    else stoker::torch_warp::sample_pixel<true, false>(s.in, grid, middle, fill, given, x, y, s.out.at(y, x));
  });
}

}  // namespace stoker::recipe::gpu
