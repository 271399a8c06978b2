// SPDX-License-Identifier: Apache-2.0
// The image at coordinates that a pixel program computes, or that the operator's other two inputs have. A block computes
// kPixels pixels.
#pragma once
#include "device/inlined_program.cuh"
#include "shared/map_point.hpp"

namespace stoker::own {

// border_position for few pixels, at the edges: its divisions would be inlined for every element.
template <Border border>
STOKER_CALLED int32_t position_beyond(int32_t i, int32_t extent) {
  return border_position(i, extent, border);
}

// Single pixels of a Map, with registers of their own.
template <class Own>
STOKER_CALLED void map_singles(const Row& row, int64_t begin, int64_t end, bool after_groups) {
  Own::singles(row, begin, end, after_groups);
}

// Numbers: value beyond the edges, the image's axes. The constants are the sampling and the border mode.
template <class Ports, int sampling, int border, class Program = LoadedProgram<1, 2>>
struct Map {
  using Element = typename Ports::template At<0>;
  using Memory = typename Element::Memory;
  using Register = typename Element::Register;
  using S = mapped::Sum<Memory>;
  using Held = HeldProgram<Program, int32_t>;
  static constexpr auto kSampling = static_cast<mapped::Sampling>(sampling);
  static constexpr auto kBorder = static_cast<Border>(border);
  static constexpr int64_t kPixels = 16384;            // also in ops/geometry/_map.py
  static constexpr int kGroup = 4;                     // adjacent pixels, which a thread computes together
  static constexpr int32_t kStep = kGroup * kThreads;  // from a thread's group to the next one
  static constexpr int kItem = sizeof(Memory);
  static constexpr int kTaps = kSampling == mapped::Sampling::Linear ? 2 : 1;  // of an axis, in a group

  // The elements of one axis that a pixel needs. Those beyond the edges are replaced by ones that can be read.
  struct Line {
    int32_t index[kTaps];
    bool inside[kTaps];
    float rest;

    Line(float at, int32_t extent) {
      if constexpr (kTaps == 1 && (kBorder == Border::Constant || kBorder == Border::Clamp)) {
        rest = 0.0f;
        if constexpr (kBorder == Border::Constant) {
          inside[0] = at >= 0.0f && at < static_cast<float>(extent);  // not NaN; a float represents the extent
          index[0] = static_cast<int32_t>(inside[0] ? at : 0.0f);
        } else {
          const int32_t i = gpu::floor_to_int(at);  // 0 for NaN, whose index is below that of the first element
          inside[0] = true;
          index[0] = i < 0 ? 0 : i < extent ? i : extent - 1;
        }
        return;
      }
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
    Register constant;
    int32_t height, width;  // of the source

    explicit Images(const Row& row)
        : from(row, 0, 1),
          to(row, static_cast<int>(row.slot().ports) - 1, 1),
          constant(op::cast<Element>(row.number(0))),
          height(static_cast<int32_t>(from.height)),
          width(static_cast<int32_t>(from.width)) {}

    // Whether words can be written: pixels of `channels` contiguous elements lie without gaps, or each of the channels
    // does (`channels` 1), and offsets within a frame have 32 bits.
    bool dense(int channels) const {
      const int64_t plane = to.height * to.width, pixel = channels * kItem;
      if (plane > kMost || to.frames > kMost || (to.frames > 1 && plane % kGroup)) return false;
      if (to.column != pixel || to.row != to.width * pixel) return false;
      if (channels > 1 && (from.channel != kItem || to.channel != kItem)) return false;
      uint64_t address = reinterpret_cast<uint64_t>(to.data);
      if (to.frames > 1) address |= static_cast<uint64_t>(to.frame);
      if (channels == 1 && to.channels > 1) address |= static_cast<uint64_t>(to.channel);
      const int64_t row = from.row < 0 ? -from.row : from.row, column = from.column < 0 ? -from.column : from.column;
      return address % (4 * vector_of(channels)) == 0 && row <= kMost && column <= kMost &&
             from.height * row + from.width * column <= kMost;
    }
    static constexpr int64_t kMost = 0x7FFFFFFF - kPixels;
  };

  static constexpr int words_of(int channels) { return kGroup * channels * kItem / 4; }
  // Words of one access.
  static constexpr int vector_of(int channels) {
    return words_of(channels) % 4 == 0 ? 4 : words_of(channels) % 2 == 0 ? 2 : 1;
  }

  // Pixels of a few contiguous bytes, which one or two words of the source contain.
  static constexpr bool in_word(int channels) {
    return kSampling == mapped::Sampling::Nearest && channels > 1 && channels * kItem <= 4;
  }
  template <int kChannels>
  struct Words {
    static constexpr int kBytes = kChannels * kItem;
    // The source of a byte, if each pixel is in a word of its own.
    struct Packed {
      static constexpr int of(int byte) { return byte / kBytes * 4 + byte % kBytes; }
    };
    const uint32_t* base;
    int32_t skew;   // of the frame's first byte in a word
    int32_t whole;  // words before this one have no bytes after the frame
    uint32_t constant;

    Words(const Images& images, const uint8_t* source) : constant(0) {
      skew = static_cast<int32_t>(reinterpret_cast<uint64_t>(source) % 4);
      base = reinterpret_cast<const uint32_t*>(source - skew);
      const auto row = static_cast<int32_t>(images.from.row), column = static_cast<int32_t>(images.from.column);
      const int32_t down = row > 0 ? (images.height - 1) * row : 0;
      const int32_t across = column > 0 ? (images.width - 1) * column : 0;
      whole = (down + across + skew + kBytes) >> 2;
#pragma unroll
      for (int c = 0; c < kChannels; ++c) stage::pack(&constant, c, static_cast<Memory>(images.constant));
    }
    // Distance of a pixel's first byte from `base`.
    int32_t place(const Images& images, const Line& y, const Line& x) const {
      const auto row = static_cast<int32_t>(images.from.row), column = static_cast<int32_t>(images.from.column);
      return y.index[0] * row + x.index[0] * column + skew;
    }
    bool in_whole_words(int32_t first) const { return (first + kBytes - 1) >> 2 < whole; }
    // Return a pixel in whole words, in the low bytes. The other bytes, and other pixels, are undefined.
    uint32_t read(int32_t first) const {
      const int32_t low = first >> 2, high = (first + kBytes - 1) >> 2;  // the same word for many pixels
      const auto word = [&](int32_t i) { return whole > 0 ? base[i < whole ? i : whole - 1] : 0; };  // without a branch
      return gpu::funnel_right(word(high), word(low), static_cast<uint32_t>(first) * 8);
    }
    uint32_t read_bytes(int32_t first) const {
      uint32_t found = 0;
#pragma unroll
      for (int b = 0; b < kBytes; ++b) found |= uint32_t{reinterpret_cast<const uint8_t*>(base)[first + b]} << (8 * b);
      return found;
    }
  };

  template <int kChannels, bool whole>
  static void pixel(const Images& images, const uint8_t* source, const Line& y, const Line& x, int k, uint32_t* words) {
    const auto row = static_cast<int32_t>(images.from.row), column = static_cast<int32_t>(images.from.column);
#pragma unroll
    for (int c = 0; c < kChannels; ++c) {
      const auto v = value<whole>(source + c * kItem, y, x, row, column, images.constant);
      stage::pack(words, k * kChannels + c, static_cast<Memory>(v));
    }
  }

  // Sample a group's pixels of contiguous channels.
  template <int kChannels>
  static void sample_group(const Images& images, const uint8_t* source, const float (&down)[kGroup],
                           const float (&across)[kGroup], uint32_t* words) {
    if constexpr (in_word(kChannels)) {
      const Words<kChannels> own(images, source);
      int32_t first[kGroup];
      uint32_t pixels[kGroup];
      bool inside[kGroup], all_whole = true;
#pragma unroll
      for (int k = 0; k < kGroup; ++k) {
        const Line y(down[k], images.height), x(across[k], images.width);
        first[k] = own.place(images, y, x);
        inside[k] = y.inside[0] && x.inside[0];
        all_whole &= own.in_whole_words(first[k]);
        pixels[k] = own.read(first[k]);
      }
      if (!all_whole) {
#pragma unroll
        for (int k = 0; k < kGroup; ++k)
          if (!own.in_whole_words(first[k])) pixels[k] = own.read_bytes(first[k]);
      }
#pragma unroll
      for (int k = 0; k < kGroup; ++k) pixels[k] = inside[k] ? pixels[k] : own.constant;
      return stage::move_bytes<typename Words<kChannels>::Packed, words_of(kChannels)>(pixels, words);
    }
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
  }

  // Compute a group, whose first pixel is in column `x` of line `y`. `source` and `target` have the frame and the group.
  template <int kChannels>
  static void group(const Images& images, const Held& held, const uint8_t* source, uint8_t* target, int32_t frame,
                    int32_t y, int32_t x) {
    const ProgramGroup<Program, int32_t, kGroup> places(held, frame, y, x);
    float down[kGroup], across[kGroup];
#pragma unroll
    for (int k = 0; k < kGroup; ++k) {
      down[k] = places.value(0, k);
      across[k] = places.value(1, k);
    }
    const int64_t planes = kChannels == 1 ? images.to.channels : 1;
    STOKER_NO_UNROLL
    for (int64_t plane = 0; plane < planes; ++plane) {
      uint32_t words[words_of(kChannels)] = {};
      sample_group<kChannels>(images, source, down, across, words);
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

  // The way from a pixel to the one `count` pixels after it.
  struct Advance {
    uint32_t lines, columns, limit, back;
    Advance(uint32_t count, uint32_t width)
        : lines(count / width), columns(count - lines * width), limit(width - columns), back(columns - width) {}
    void apply(uint32_t& y, uint32_t& x) const {
      const bool ends = x >= limit;
      x += ends ? back : columns;
      y += ends ? lines + 1 : lines;
    }
  };

  // Compute the groups of `count` pixels of a frame, from pixel `begin` on, which lie in one line.
  template <int kChannels>
  static void groups(const Images& images, const Held& held, int32_t frame, int32_t begin, int32_t count) {
    constexpr int32_t kBytes = kChannels * kItem;
    const auto width = static_cast<uint32_t>(images.to.width);
    const Advance next(kStep, width);
    const auto first = static_cast<uint32_t>(begin) + kGroup * gpu::thread_index();
    const uint8_t* source = images.from.data + frame * images.from.frame;
    uint8_t* target = images.to.data + frame * images.to.frame + int64_t{first} * kBytes;
    uint32_t y = first / width, x = first - y * width;
    STOKER_NO_UNROLL
    for (int32_t left = count - kGroup * static_cast<int32_t>(gpu::thread_index()); left >= kGroup; left -= kStep) {
      if (x + kGroup <= width)
        group<kChannels>(images, held, source, target, frame, static_cast<int32_t>(y), static_cast<int32_t>(x));
      target += int64_t{kStep} * kBytes;
      next.apply(y, x);
    }
  }

  // Compute pixel `i` of a frame of any layout.
  static void single(const Images& images, const Row& row, int64_t f, int64_t i) {
    const Image &from = images.from, &to = images.to;
    const int64_t y = quotient(i, to.width), x = i - y * to.width;
    const HeldProgram<Program, int64_t> held(row, f);  // read for each pixel, so that it takes no registers in between
    const ProgramGroup<Program, int64_t, 1> place(held, f, static_cast<int32_t>(y), static_cast<int32_t>(x));
    const float down = place.value(0, 0), across = place.value(1, 0);
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
  }

  // Call f(frame, from, to) for each frame that pixels from `begin` to `end` belong to, with their numbers in the frame.
  // Int has room for a frame's pixels.
  template <class Int, class F>
  static void by_frame(const Images& images, int64_t begin, int64_t end, const F& f) {
    const auto plane = static_cast<Int>(images.to.height * images.to.width);
    auto frame = static_cast<Int>(images.to.frames == 1 ? 0 : quotient(begin, plane));
    auto from = static_cast<Int>(begin - int64_t{frame} * plane);
    auto left = static_cast<int32_t>(end - begin);  // at most kPixels
    STOKER_NO_UNROLL
    while (left > 0) {
      const auto count = from + left < plane ? left : static_cast<int32_t>(plane - from);
      f(frame, from, count);
      left -= count;
      from = 0;
      ++frame;
    }
  }

  // Compute the groups of a dense image that lie in one line. Return false for others.
  template <int kChannels>
  static bool all_groups(const Images& images, const Row& row, int64_t begin, int64_t end) {
    if (!images.dense(kChannels) || !has_narrow_strides<Program>(row)) return false;
    by_frame<int32_t>(images, begin, end, [&](int32_t frame, int32_t from, int32_t pixels) {
      groups<kChannels>(images, Held(row, frame), frame, from, pixels);
    });
    return true;
  }

  // Compute pixels one by one: all, or those of groups that several lines share or that the image's end cuts.
  static void singles(const Row& row, int64_t begin, int64_t end, bool after_groups) {
    const Images images(row);
    by_frame<int64_t>(images, begin, end, [&](int64_t frame, int64_t from, int32_t pixels) {
      const int64_t next = from + (after_groups ? pixels - pixels % kGroup : 0), width = images.to.width;
      const int64_t rest = from + pixels - next;
      const int64_t first = quotient(from, width) + 1;  // line that begins after `from`
      const int64_t lines = next > from && width % kGroup ? quotient(next - 1, width) + 1 - first : 0;
      STOKER_NO_UNROLL
      for (int64_t t = gpu::thread_index(); t < rest + kGroup * lines; t += kThreads) {
        int64_t i = next + t;
        if (t >= rest) {
          const int64_t start = (first + (t - rest) / kGroup) * width;
          if (start % kGroup == 0) continue;
          i = start - start % kGroup + (t - rest) % kGroup;
        }
        single(images, row, frame, i);
      }
    });
  }

  static void sample(const Row& row, uint32_t block) {
    const Images images(row);
    const int64_t count = images.to.frames * images.to.height * images.to.width;
    const int64_t begin = block * kPixels, end = begin + kPixels < count ? begin + kPixels : count;
    bool done = false;
    if constexpr (kSampling != mapped::Sampling::Cubic) {  // sixteen elements of four pixels take too many registers
      if (images.to.channels == 3) done = all_groups<3>(images, row, begin, end);
      else if (images.to.channels == 4) done = all_groups<4>(images, row, begin, end);
      if (!done) done = all_groups<1>(images, row, begin, end);
    }
    if (!done || images.to.width % kGroup || end % kGroup) map_singles<Map>(row, begin, end, done);
  }
};

}  // namespace stoker::own
