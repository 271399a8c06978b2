// SPDX-License-Identifier: Apache-2.0
// The image at coordinates that the operator's other two inputs have. A block computes kPixels pixels.
#pragma once
#include "device/own.cuh"
#include "device/stage_group.cuh"
#include "shared/map_point.hpp"

namespace stoker::own {

// border_position for few pixels, at the edges: its divisions would be inlined for every element.
template <Border border>
STOKER_CALLED int32_t position_beyond(int32_t i, int32_t extent) {
  return border_position(i, extent, border);
}

// Numbers: value beyond the edges, the image's axes. The constants are the sampling and the border mode.
template <class Ports, int sampling, int border>
struct Map {
  using Element = typename Ports::template At<0>;
  using Memory = typename Element::Memory;
  using Register = typename Element::Register;
  using S = mapped::Sum<Memory>;
  static constexpr auto kSampling = static_cast<mapped::Sampling>(sampling);
  static constexpr auto kBorder = static_cast<Border>(border);
  static constexpr int64_t kPixels = 4096;  // also in ops/geometry/_map.py
  static constexpr int kGroup = 4;          // adjacent pixels, which a thread computes together
  static constexpr int kItem = sizeof(Memory);
  static constexpr int kTaps = kSampling == mapped::Sampling::Linear ? 2 : 1;  // of an axis, in a group

  // The coordinates of one axis.
  struct Coordinates {
    const uint8_t* data;
    int64_t frame, row, column;
    bool dense;

    Coordinates(const Port& map) : data(reinterpret_cast<const uint8_t*>(map.data)), dense(is_contiguous(map, 4)) {
      const int last = static_cast<int>(map.rank) - 1;
      frame = last == 2 ? map.stride[0] : 0;
      row = map.stride[last - 1];
      column = map.stride[last];
    }
    float at(int64_t f, int64_t y, int64_t x) const { return load<F32>(data + f * frame + y * row + x * column); }
    // Read a group's coordinates of a dense map, from number `i` of frame `f` on.
    void read(int64_t f, int64_t i, float (&out)[kGroup]) const {
      const auto* p = reinterpret_cast<const float*>(data + f * frame) + i;
      if (reinterpret_cast<uint64_t>(p) % sizeof(stage::Vector<kGroup>) == 0) {
        const auto v = *reinterpret_cast<const stage::Vector<kGroup>*>(p);
        std::memcpy(out, &v, sizeof v);
      } else {
#pragma unroll
        for (int k = 0; k < kGroup; ++k) out[k] = p[k];
      }
    }
  };

  // The elements of one axis that a pixel needs. Those beyond the edges are replaced by ones that can be read.
  struct Line {
    int32_t index[kTaps];
    bool inside[kTaps];
    float rest;

    Line(float at, int32_t extent) {
      const mapped::Whole whole(at, extent, kBorder);
      rest = whole.rest;
#pragma unroll
      for (int k = 0; k < kTaps; ++k) {
        const int32_t i = whole.index + k;
        const bool there = static_cast<uint32_t>(i) < static_cast<uint32_t>(extent);
        inside[k] = kBorder != Border::Constant || there;
        if constexpr (kBorder == Border::Constant || kBorder == Border::Clamp)
          index[k] = i < 0 ? 0 : i < extent ? i : extent - 1;
        else index[k] = there ? i : position_beyond<kBorder>(i, extent);
      }
    }
  };

  // Sample a group's pixel. `whole` says that no element lies beyond the edges.
  template <bool whole>
  static Register value(const uint8_t* source, const Line& y, const Line& x, int32_t row, int32_t column,
                        Register constant) {
    const auto at = [&](int j, int i) {
      const uint8_t* p = source + (y.index[j] * row + x.index[i] * column);
      if constexpr (whole) return load<Element>(p);
      const auto v = gpu::computed(load<Element>(p));  // without a branch, so that loads overlap
      return y.inside[j] && x.inside[i] ? v : constant;
    };
    if constexpr (kTaps == 1) {
      return at(0, 0);
    } else {
      const auto wide = [&](int j, int i) { return static_cast<S>(at(j, i)); };
      return op::cast<Element>(mapped::linear_between(wide(0, 0), wide(0, 1), wide(1, 0), wide(1, 1),
                                                      static_cast<S>(x.rest), static_cast<S>(y.rest)));
    }
  }

  struct Images {
    Image from, to;
    Coordinates down, across;
    Register constant;
    int32_t height, width;  // of the source

    explicit Images(const Row& row)
        : from(row, 0, 1),
          to(row, 3, 1),
          down(row.port(1)),
          across(row.port(2)),
          constant(op::cast<Element>(row.number(0))),
          height(static_cast<int32_t>(from.height)),
          width(static_cast<int32_t>(from.width)) {}

    // Whether words can be written: pixels of `channels` contiguous elements lie without gaps, or each of the channels
    // does (`channels` 1), and offsets within a frame of the source have 32 bits.
    bool dense(int channels) const {
      const int64_t plane = to.height * to.width, pixel = channels * kItem;
      if (!down.dense || !across.dense || (to.frames > 1 && plane % kGroup)) return false;
      if (to.column != pixel || to.row != to.width * pixel) return false;
      if (channels > 1 && (from.channel != kItem || to.channel != kItem)) return false;
      uint64_t address = reinterpret_cast<uint64_t>(to.data);
      if (to.frames > 1) address |= static_cast<uint64_t>(to.frame);
      if (channels == 1 && to.channels > 1) address |= static_cast<uint64_t>(to.channel);
      const int64_t row = from.row < 0 ? -from.row : from.row, column = from.column < 0 ? -from.column : from.column;
      return address % (4 * vector_of(channels)) == 0 && row <= kMost && column <= kMost &&
             from.height * row + from.width * column <= kMost;
    }
    static constexpr int64_t kMost = 0x7FFFFFFF;
  };

  static constexpr int words_of(int channels) { return kGroup * channels * kItem / 4; }
  // Words of one access.
  static constexpr int vector_of(int channels) {
    return words_of(channels) % 4 == 0 ? 4 : words_of(channels) % 2 == 0 ? 2 : 1;
  }

  template <int kChannels, bool whole>
  static void pixel(const Images& images, const uint8_t* source, const Line& y, const Line& x, int k, uint32_t* words) {
    const auto row = static_cast<int32_t>(images.from.row), column = static_cast<int32_t>(images.from.column);
#pragma unroll
    for (int c = 0; c < kChannels; ++c) {
      const auto v = value<whole>(source + c * kItem, y, x, row, column, images.constant);
      stage::pack(words, k * kChannels + c, static_cast<Memory>(v));
    }
  }

  // Compute a group of dense pixels, from number `i` of frame `f` on.
  template <int kChannels>
  static void group(const Images& images, int64_t f, int64_t i) {
    float down[kGroup], across[kGroup];
    images.down.read(f, i, down);
    images.across.read(f, i, across);
    const uint8_t* source = images.from.data + f * images.from.frame;
    uint8_t* target = images.to.data + f * images.to.frame + i * (kChannels * kItem);
    const int64_t planes = kChannels == 1 ? images.to.channels : 1;
    for (int64_t plane = 0; plane < planes; ++plane) {
      uint32_t words[words_of(kChannels)] = {};
#pragma unroll
      for (int k = 0; k < kGroup; ++k) {
        const Line y(down[k], images.height), x(across[k], images.width);
        if constexpr (kBorder != Border::Constant) {
          pixel<kChannels, true>(images, source, y, x, k, words);
        } else if constexpr (kTaps == 1) {
          pixel<kChannels, false>(images, source, y, x, k, words);
        } else {
          const bool whole = y.inside[0] && y.inside[1] && x.inside[0] && x.inside[1];
          if (whole) pixel<kChannels, true>(images, source, y, x, k, words);
          else pixel<kChannels, false>(images, source, y, x, k, words);
        }
      }
      constexpr int kVector = vector_of(kChannels);
#pragma unroll
      for (int w = 0; w < words_of(kChannels); w += kVector) {
        stage::Vector<kVector> v;
#pragma unroll
        for (int k = 0; k < kVector; ++k) v.word[k] = words[w + k];
        *reinterpret_cast<stage::Vector<kVector>*>(target + 4 * w) = v;
      }
      source += images.from.channel;
      target += images.to.channel;
    }
  }

  // Compute pixels of any layout one by one.
  static void each(const Images& images, int64_t begin, int64_t end) {
    const Image &from = images.from, &to = images.to;
    const int64_t plane = to.height * to.width;
    int64_t f = quotient(begin, plane), y = quotient(begin - f * plane, to.width);
    int64_t x = begin - f * plane - y * to.width;
    STOKER_NO_UNROLL
    for (int64_t i = begin; i < end; ++i) {
      const float down = images.down.at(f, y, x), across = images.across.at(f, y, x);
      const uint8_t* source = from.data + f * from.frame;
      uint8_t* target = to.data + f * to.frame + y * to.row + x * to.column;
      STOKER_NO_UNROLL
      for (int64_t c = 0; c < to.channels; ++c, source += from.channel, target += to.channel) {
        // Computed again for each channel: positions of sixteen elements take more registers than there are.
        const mapped::Place p(gpu::computed(down), gpu::computed(across), images.height, images.width, kBorder);
        const auto at = [&](int64_t line, int64_t column) {
          return load<Element>(source + line * from.row + column * from.column);
        };
        const auto wide = [&](int64_t line, int64_t column) { return static_cast<S>(at(line, column)); };
        const auto fill = static_cast<S>(images.constant);
        if constexpr (kSampling == mapped::Sampling::Linear)
          store<Element>(target, op::cast<Element>(mapped::linear<S>(p, fill, wide)));
        else if constexpr (kSampling == mapped::Sampling::Cubic)
          store<Element>(target, op::cast<Element>(mapped::cubic<S>(p, fill, wide)));
        else store<Element>(target, p.at(p.y.index, p.x.index, images.constant, at));
      }
      if (++x == to.width) {
        x = 0;
        if (++y == to.height) {
          y = 0;
          ++f;
        }
      }
    }
  }

  template <int kChannels>
  static void groups(const Images& images, int64_t begin, int64_t end) {
    const int64_t plane = images.to.height * images.to.width;
    STOKER_NO_UNROLL
    for (int64_t i = begin + kGroup * int64_t{gpu::thread_index()}; i < end; i += kGroup * int64_t{kThreads}) {
      const int64_t f = images.to.frames == 1 ? 0 : quotient(i, plane);
      group<kChannels>(images, f, i - f * plane);
    }
  }

  // Compute groups from pixel `begin` on, if the image is dense. Return the first pixel that remains.
  static int64_t all_groups(const Row& row, int64_t begin, int64_t end) {
    const Images images(row);
    if constexpr (kSampling == mapped::Sampling::Cubic) return begin;  // a group's elements take too many registers
    const int64_t next = end - end % kGroup;                           // begin is a multiple of kGroup
    if (images.to.channels == 3 && images.dense(3)) groups<3>(images, begin, next);
    else if (images.to.channels == 4 && images.dense(4)) groups<4>(images, begin, next);
    else if (images.dense(1)) groups<1>(images, begin, next);
    else return begin;
    return next;
  }

  static void sample(const Row& row, uint32_t block) {
    const Image to(row, 3, 1);
    const int64_t count = to.frames * to.height * to.width;
    const int64_t begin = block * kPixels, end = begin + kPixels < count ? begin + kPixels : count;
    const int64_t next = all_groups(row, begin, end);
    if (next == end) return;
    const Images images(row);  // read again, so that groups have its registers
    STOKER_NO_UNROLL
    for (int64_t i = next + kGroup * int64_t{gpu::thread_index()}; i < end; i += kGroup * int64_t{kThreads})
      each(images, i, i + kGroup < end ? i + kGroup : end);
  }
};

}  // namespace stoker::own
