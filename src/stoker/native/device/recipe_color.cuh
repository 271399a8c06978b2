// SPDX-License-Identifier: Apache-2.0
// Recipe steps that change colours, with the arithmetic of the CPU's interpreter from the same headers.
#pragma once
#include "device/recipe_frame.cuh"
#include "shared/histogram_table.hpp"
#include "shared/pillow_color.hpp"
#include "shared/torch_color_point.hpp"
#include "shared/torch_sum.hpp"
#include "shared/xmath.hpp"

namespace stoker::recipe::gpu {

// ---- steps based on a histogram ----

// Phases of these steps: the counts, a table, the pixels. Counting starts by clearing the counts and ends with a
// barrier.
template <class Value>
inline void count(const Bitmap& image, int channels, Shared& shared, Value&& value) {
  for (uint32_t i = thread_index(); i < 3 * 256; i += thread_count()) shared.count[i / 256][i % 256] = 0;
  block_barrier();
  each(image, [&](int64_t y, int64_t x) {
    const uint8_t* p = image.at(y, x);
    for (int c = 0; c < channels; ++c) stoker::gpu::atomic_add(&shared.count[c][value(p, c)], 1);
  });
}

inline int64_t sum_of(const uint32_t* counts) {
  int64_t sum = 0;
  STOKER_NO_UNROLL
  for (int i = 0; i < 256; ++i) sum += int64_t{i} * counts[i];
  return sum;
}

STOKER_STEP void count_all(const Step& s, Shared& shared) {
  count(s.in, static_cast<int>(s.in.channels), shared, [&](const uint8_t* p, int c) { return p[c * s.in.channel]; });
}

// Compute a table per channel, by one thread each.
STOKER_STEP void tabulate(const Step& s, Shared& shared, bool first) {
  if (thread_index() >= static_cast<uint32_t>(s.in.channels)) return;
  const uint32_t* counts = shared.count[thread_index()];
  uint8_t* table = shared.table[thread_index()];
  switch (s.op) {
    case Op::Autocontrast: return histogram::stretched(counts, table);
    case Op::Equalize: return histogram::equalized_in_steps(counts, table);
    case Op::TorchEqualize: return histogram::equalized_whole(counts, table);
    default:
      if (first) torch_color::first_autocontrast_table(counts, table);
      else torch_color::autocontrast_table(counts, table);
  }
}

inline void by_histogram(const Step& s, int32_t phase, Shared& shared, bool first) {
  if (phase == 0) return count_all(s, shared);
  if (phase == 1) return tabulate(s, shared, first);
  return map(s, shared.table[0], 256);
}

// Contrast: blend with the mean of the grey values. One table serves all channels and is computed by one thread.
STOKER_STEP void count_grey(const Step& s, Shared& shared) {
  count(s.in, 1, shared,
        [&](const uint8_t* p, int) { return s.in.channels == 3 ? int{luma(p, s.in.channel)} : int{*p}; });
}

inline int torch_grey(const Step& s, const uint8_t* p, bool first) {
  if (s.in.channels != 3) return int{*p};
  return first ? torch_color::first_luma(p, s.in.channel) : static_cast<int>(torch_color::luma<true>(p, s.in.channel));
}

STOKER_STEP void count_torch_grey(const Step& s, Shared& shared, bool first) {
  count(s.in, 1, shared, [&](const uint8_t* p, int) { return torch_grey(s, p, first); });
}

// Sum more grey values than torch adds exactly, share by share as torch does. Each thread keeps the sum for an
// accumulator until it comes to another one. The total is left in count[2][0]; the shares' sums are in count[1].
STOKER_STEP void sum_torch_grey(const Step& s, Shared& shared, bool first) {
  const torch_sum::Order order{static_cast<int>(s.number[2]), static_cast<int>(s.number[3])};
  const int64_t pixels = s.in.height * s.in.width, share = torch_sum::share_of(pixels, order);
  auto* sums = reinterpret_cast<float*>(shared.count[1]);
  uint32_t* at = shared.count[0];
  int64_t shares = 0;
  for (int64_t begin = 0; begin < pixels; begin += share, ++shares) {
    for (uint32_t i = thread_index(); i < torch_sum::kAccumulators; i += thread_count()) at[i] = 0;
    block_barrier();
    const int64_t size = std::min(share, pixels - begin);
    const torch_sum::Accumulators places(size, order.lanes);
    int place = -1;
    uint32_t sum = 0;
    for (int64_t i = thread_index(); i < size; i += thread_count()) {
      const int64_t y = (begin + i) / s.in.width;
      const int here = places.of(i);
      if (here != place && place >= 0) {
        stoker::gpu::atomic_add(&at[place], sum);
        sum = 0;
      }
      place = here;
      sum += static_cast<uint32_t>(torch_grey(s, s.in.at(y, begin + i - y * s.in.width), first));
    }
    if (place >= 0) stoker::gpu::atomic_add(&at[place], sum);
    block_barrier();
    if (thread_index() == 0) sums[shares] = torch_sum::folded(at, order.lanes);
    block_barrier();
  }
  if (thread_index() == 0)
    *reinterpret_cast<float*>(shared.count[2]) =
        torch_sum::folded_shares(sums, shares, order, reinterpret_cast<float*>(at));
}

inline bool adds_exactly(const Step& s) { return s.in.height * s.in.width <= torch_sum::kExactBytes; }

STOKER_STEP void tabulate_contrast(const Step& s, Shared& shared) {
  if (thread_index() != 0) return;
  const float factor = static_cast<float>(s.number[0]);
  const int mean = mean_of(sum_of(shared.count[0]), s.in.height * s.in.width);
  STOKER_NO_UNROLL
  for (int i = 0; i < 256; ++i) shared.table[0][i] = blend(mean, i, factor);
}

STOKER_STEP void tabulate_torch_contrast(const Step& s, Shared& shared, bool first) {
  if (thread_index() != 0) return;
  const float ratio = static_cast<float>(s.number[1]), rest = static_cast<float>(1.0 - s.number[1]);
  const int64_t pixels = s.in.height * s.in.width;
  const float sum =
      adds_exactly(s) ? static_cast<float>(sum_of(shared.count[0])) : *reinterpret_cast<const float*>(shared.count[2]);
  if (first) torch_color::first_contrast_table(sum, pixels, ratio, rest, shared.table[0]);
  else torch_color::contrast_table<true>(sum, pixels, ratio, rest, shared.table[0]);
}

inline void contrast(const Step& s, int32_t phase, Shared& shared) {
  if (phase == 0) return count_grey(s, shared);
  if (phase == 1) return tabulate_contrast(s, shared);
  return map(s, shared.table[0], 0);
}

inline void torch_contrast(const Step& s, int32_t phase, Shared& shared, bool first) {
  if (phase == 0) return adds_exactly(s) ? count_torch_grey(s, shared, first) : sum_torch_grey(s, shared, first);
  if (phase == 1) return tabulate_torch_contrast(s, shared, first);
  return map(s, shared.table[0], 0);
}

// ---- steps per pixel ----

STOKER_STEP void saturate(const Step& s) {
  const float factor = static_cast<float>(s.number[0]);
  each_pair(s, [&](const uint8_t* from, uint8_t* to) {
    const uint8_t gray = luma(from, s.in.channel);
    for (int64_t c = 0; c < 3; ++c) to[c] = blend(gray, from[c * s.in.channel], factor);
  });
}

STOKER_STEP void hue(const Step& s) {
  const auto shift = static_cast<uint8_t>(s.number[0]);
  each_pair(s, [&](const uint8_t* from, uint8_t* to) {
    const uint8_t rgb[3] = {from[0], from[s.in.channel], from[2 * s.in.channel]};
    uint8_t hsv[3];
    hsv_of_rgb(rgb, hsv);
    hsv[0] = static_cast<uint8_t>(hsv[0] + shift);
    rgb_of_hsv(hsv, to);
  });
}

inline bool at_edge(const Bitmap& image, int64_t y, int64_t x) {
  return y == 0 || x == 0 || y + 1 == image.height || x + 1 == image.width;
}

STOKER_STEP void sharpen(const Step& s) {
  const float factor = static_cast<float>(s.number[0]);
  each(s.out, [&](int64_t y, int64_t x) {
    const uint8_t* from = s.in.at(y, x);
    uint8_t* to = s.out.at(y, x);
    for (int64_t c = 0; c < s.in.channels; ++c) {
      const uint8_t* p = from + c * s.in.channel;
      to[c] = blend(at_edge(s.in, y, x) ? *p : smoothed(p, s.in.row, s.in.pixel), *p, factor);
    }
  });
}

STOKER_STEP void torch_luma(const Step& s, bool first) {
  each_pair(s, [&](const uint8_t* from, uint8_t* to) {
    *to = first ? static_cast<uint8_t>(torch_color::first_luma(from, s.in.channel))
                : static_cast<uint8_t>(torch_color::luma<true>(from, s.in.channel));
  });
}

STOKER_STEP void torch_saturate(const Step& s, bool first) {
  const float ratio = static_cast<float>(s.number[1]), rest = static_cast<float>(1.0 - s.number[1]);
  each_pair(s, [&](const uint8_t* from, uint8_t* to) {
    const float grey = static_cast<float>(first ? torch_color::first_luma(from, s.in.channel)
                                                : static_cast<int>(torch_color::luma<true>(from, s.in.channel)));
    for (int64_t c = 0; c < 3; ++c) {
      const float v = static_cast<float>(from[c * s.in.channel]);
      to[c] = first ? torch_color::first_blend(v, grey, ratio, rest) : torch_color::blend<true>(v, grey, ratio, rest);
    }
  });
}

STOKER_STEP void torch_hue(const Step& s, bool first) {
  const float shift = static_cast<float>(s.number[1]);
  each_pair(s, [&](const uint8_t* from, uint8_t* to) {
    if (first) torch_color::turned<true>(from, s.in.channel, shift, to);
    else torch_color::turned<false>(from, s.in.channel, shift, to);
  });
}

// The window's products are added to 0 in the window's order, as in filter/correlate.hpp.
STOKER_STEP void torch_sharpen(const Step& s, bool first) {
  const float edge = static_cast<float>(1.0 / 13.0), middle = static_cast<float>(5.0 / 13.0);
  const float ratio = static_cast<float>(s.number[1]), rest = static_cast<float>(1.0 - s.number[1]);
  each(s.out, [&](int64_t y, int64_t x) {
    for (int64_t c = 0; c < s.in.channels; ++c) {
      const uint8_t here = s.in.at(y, x)[c * s.in.channel];
      const float v = static_cast<float>(here);
      uint8_t& to = s.out.at(y, x)[c];
      if (at_edge(s.in, y, x)) {
        to = first ? torch_color::first_blend(v, v, ratio, rest) : here;
        continue;
      }
      float sum = 0.0f;
      for (int64_t i = -1; i < 2; ++i)
        for (int64_t j = -1; j < 2; ++j)
          sum = fused<true>(static_cast<float>(s.in.at(y + i, x + j)[c * s.in.channel]), i || j ? edge : middle, sum);
      const float round = static_cast<float>(xm::round_even(static_cast<double>(sum)));
      to = first ? torch_color::first_blend(v, torch_color::byte(round), ratio, rest)
                 : torch_color::byte(fused<true>(round - v, rest, v));
    }
  });
}

STOKER_STEP void to_luma(const Step& s) {
  each_pair(s, [&](const uint8_t* from, uint8_t* to) { *to = luma(from, s.in.channel); });
}

STOKER_STEP void channels(const Step& s) {
  each_pair(s, [&](const uint8_t* from, uint8_t* to) {
    for (int64_t c = 0; c < 3; ++c) to[c] = from[static_cast<int64_t>(s.number[c]) * s.in.channel];
  });
}

// Pillow's Image.blend.
STOKER_STEP void blended(const Step& s) {
  const Bitmap& other = *array_at<Bitmap>(s.extra);
  const float factor = static_cast<float>(s.number[0]);
  each(s.out, [&](int64_t y, int64_t x) {
    for (int64_t c = 0; c < s.out.channels; ++c)
      s.out.at(y, x)[c] = blend(s.in.at(y, x)[c * s.in.channel], other.at(y, x)[c * other.channel], factor);
  });
}

// Sum in floats, truncated.
STOKER_STEP void mix(const Step& s) {
  const auto* terms = array_at<Term>(s.extra);
  const auto count = static_cast<int>(s.number[0]);
  each(s.out, [&](int64_t y, int64_t x) {
    for (int64_t c = 0; c < s.out.channels; ++c) {
      float sum = 0.0f;
      for (int i = 0; i < count; ++i) {
        const Term& t = terms[i];
        const float term =
            array_at<float>(t.table)[(t.per_channel ? 256 * c : 0) + t.image.at(y, x)[c * t.image.channel]];
        sum = i == 0 ? term : sum + term;
      }
      s.out.at(y, x)[c] = torch_color::byte(sum);
    }
  });
}

}  // namespace stoker::recipe::gpu
