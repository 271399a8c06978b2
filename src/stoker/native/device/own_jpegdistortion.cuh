// SPDX-License-Identifier: Apache-2.0
// `jpeg_compression_distortion`: samples of whole MCUs are transformed, quantised and transformed back; then pixels are
// computed from the samples. These are two passes because smooth upsampling reads samples of neighbouring MCUs.
#pragma once
#include "device/jpeg_inverse.cuh"
#include "device/own.cuh"
#include "device/planar_samples.cuh"
#include "shared/jpeg_forward.cuh"

namespace stoker::own {

namespace distortion {

constexpr int kSide = jpeg::kMcuSide, kHalf = kSide / 2, kSamples = kSide * kSide + 2 * kHalf * kHalf;  // of an MCU
constexpr uint32_t kBlocks = 6;                                                                         // of an MCU
constexpr int64_t kMcus = 16, kGroups = 1024;  // of a thread block; also in ops/image/jpeg_compression_distortion.py
constexpr int kAxes = 1;                       // the first number of the image's axes

STOKER_CONSTANT jpeg::Quantisers kQuantisers;

// Samples of a frame: whole MCUs of luma, row by row, then of both chroma components.
struct Planes {
  int64_t columns, rows;  // of MCUs
  uint8_t* samples;

  Planes(const Row& row, const Image& image)
      : columns((image.width + kSide - 1) / kSide),
        rows((image.height + kSide - 1) / kSide),
        samples(row.scratch<uint8_t>()) {}
  int64_t mcus() const { return columns * rows; }
  int64_t pitch(int component) const { return columns * (component ? kHalf : kSide); }
  uint8_t* plane(int64_t frame, int component) const {
    uint8_t* const luma = samples + frame * mcus() * kSamples;
    return component ? luma + mcus() * (kSide * kSide + (component - 1) * kHalf * kHalf) : luma;
  }
};

// Place of an MCU in a row's frames.
struct Mcu {
  int64_t frame, y, x;

  Mcu(const Planes& planes, int64_t number) {
    frame = quotient(number, planes.mcus());
    const int64_t rest = number - frame * planes.mcus();
    y = quotient(rest, planes.columns);
    x = rest - y * planes.columns;
  }
};

struct Shared {
  alignas(16) uint8_t samples[kMcus * kSamples];  // of an MCU: luma in rows of 16, then chroma in rows of 8
  alignas(16) int32_t tile[kThreads / 8 * jpeg::gpu::kTileWords];
  // Column by column, of luma and of chroma.
  alignas(16) uint16_t quantiser[2][64];
  alignas(16) float inverse[2][64];
};

inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

}  // namespace distortion

// Numbers: the quality, the image's axes. A row's scratch memory holds its samples.
template <class Ports>
struct JpegDistortion {
  using Shared = distortion::Shared;
  using Planes = distortion::Planes;
  using Mcu = distortion::Mcu;
  static constexpr int kSide = distortion::kSide, kHalf = distortion::kHalf;

  static void transform(const Row& row, uint32_t block) {
    STOKER_SHARED(Shared, shared);
    const Image image(row, 0, distortion::kAxes);
    const Planes planes(row, image);
    const int64_t begin = block * distortion::kMcus;
    const int64_t count = distortion::least(distortion::kMcus, image.frames * planes.mcus() - begin);
    scale_quantisers(row, shared);
    load_samples(image, planes, begin, count, shared);
    gpu::block_barrier();
    transform_blocks(planes, begin, count, shared);
  }

  // Four pixels of a line per thread and step. The first group of a line may begin before it, so that the others are
  // written to multiples of 4 if pixels are contiguous.
  static void pixels(const Row& row, uint32_t block) {
    using planar::Spread;
    const Image image(row, 1, distortion::kAxes);
    const Planes planes(row, image);
    const auto chroma_width = static_cast<uint16_t>((image.width + 1) / 2);
    const auto chroma_height = static_cast<uint16_t>((image.height + 1) / 2);
    const planar::Shape luma{
        static_cast<uint16_t>(image.width), static_cast<uint16_t>(image.height), 1, 1, Spread::None, 8};
    const planar::Shape chroma{chroma_width, chroma_height, 2, 2, chroma_width > 2 ? Spread::Both : Spread::Repeat, 8};
    const bool packed = image.channel == 1 && image.column == 3;
    const int64_t per_line = image.width / 4 + 2, groups = image.frames * image.height * per_line;
    const int64_t end = distortion::least(groups, (int64_t{block} + 1) * distortion::kGroups);
    for (int64_t g = block * distortion::kGroups + gpu::thread_index(); g < end; g += kThreads) {
      const int64_t line = quotient(g, per_line), frame = quotient(line, image.height);
      const auto y = static_cast<int32_t>(line - frame * image.height);
      uint8_t* const out = image.data + frame * image.frame + y * image.row;
      const auto head = static_cast<int32_t>(packed ? reinterpret_cast<uint64_t>(out) & 3 : 0);
      const int32_t x = static_cast<int32_t>(4 * (g - line * per_line)) - 4 + head;
      if (x <= -4 || x >= image.width) continue;
      planar::Quad at[3];
      for (int i = 0; i < 3; ++i) {
        const planar::Shape& shape = i ? chroma : luma;
        const planar::Samples samples{planes.plane(frame, i), static_cast<uint32_t>(planes.pitch(i)), shape, 0,
                                      shape.width - 1};
        at[i] = four(samples, x, y);
      }
      const planar::Channels color = planar::convert_four(at[0].even | at[0].odd << 8, at[1], at[2]);
      if (packed && x >= 0 && x + 4 <= image.width) store_four(color, out + 3 * x);
      else store_each(image, color, out, x);
    }
  }

 private:
  static void scale_quantisers(const Row& row, Shared& shared) {
    const auto given = static_cast<int32_t>(row.number(0));
    const int32_t quality = given < 1 ? 1 : given > 100 ? 100 : given;
    for (uint32_t i = gpu::thread_index(); i < 128; i += kThreads) {
      const uint32_t table = i / 64, x = i / 8 % 8, y = i % 8;
      const int32_t q = jpeg::scaled_quantiser(distortion::kQuantisers.base[table][8 * y + x], quality);
      shared.quantiser[table][i % 64] = static_cast<uint16_t>(q);
      shared.inverse[table][i % 64] = jpeg::inverse_divisor(q);
    }
  }

  // A thread converts two pixels by two: four samples of luma, and one of each chroma. Columns beyond the image repeat
  // its last one; rows beyond it repeat the last one of each component.
  static void load_samples(const Image& image, const Planes& planes, int64_t begin, int64_t count, Shared& shared) {
    constexpr uint32_t kAcross = static_cast<uint32_t>(distortion::kMcus) * kHalf;
    const uint32_t across = gpu::thread_index() % kAcross, number = across / kHalf, column = across % kHalf;
    if (number >= count) return;
    const Mcu mcu(planes, begin + number);
    uint8_t* const luma = shared.samples + number * distortion::kSamples;
    uint8_t* const chroma = luma + kSide * kSide;
    const int64_t last_line = image.height - 1, last_quad = (image.height + 1) / 2 - 1;
    const uint8_t* at[2];
    for (int i = 0; i < 2; ++i)
      at[i] = image.data + mcu.frame * image.frame +
              distortion::least(mcu.x * kSide + 2 * column + i, image.width - 1) * image.column;
    for (uint32_t quad = gpu::thread_index() / kAcross; quad < kHalf; quad += kThreads / kAcross) {
      const int64_t y = mcu.y * kHalf + quad;
      int32_t blue = 0, red = 0;
      for (int j = 0; j < 2; ++j) {
        const int64_t line = distortion::least(2 * distortion::least(y, last_quad) + j, last_line) * image.row;
        for (int i = 0; i < 2; ++i) {
          const jpeg::Pixel ycc = color_at(image, at[i] + line);
          blue += ycc.b;
          red += ycc.c;
          luma[(2 * quad + j) * kSide + 2 * column + i] =
              y <= last_quad ? ycc.a : color_at(image, at[i] + last_line * image.row).a;
        }
      }
      chroma[quad * kHalf + column] = jpeg::halved(blue, column);
      chroma[kHalf * kHalf + quad * kHalf + column] = jpeg::halved(red, column);
    }
  }
  static jpeg::Pixel color_at(const Image& image, const uint8_t* p) {
    return jpeg::rgb_to_ycc(p[0], p[image.channel], p[2 * image.channel]);
  }

  // Eight lanes transform a block: each a row and then a column forward, a column and then a row back.
  static void transform_blocks(const Planes& planes, int64_t begin, int64_t count, Shared& shared) {
    namespace jpg = jpeg::gpu;
    constexpr uint32_t kGroups = kThreads / 8, kBlocks = static_cast<uint32_t>(distortion::kMcus) * distortion::kBlocks;
    const uint32_t group = gpu::thread_index() / 8;
    jpg::Lane lane = {gpu::thread_index() % 8, shared.tile + group * jpg::kTileWords, 0, 0, false};
    for (uint32_t n = group; n < kBlocks; n += kGroups) {
      const uint32_t number = n / distortion::kBlocks, part = n % distortion::kBlocks;
      const int component = part < 4 ? 0 : static_cast<int>(part) - 3;
      const uint32_t pitch = component ? kHalf : kSide;
      const uint32_t first =
          component ? kSide * kSide + (part - 4) * kHalf * kHalf : part / 2 * 8 * kSide + part % 2 * 8;
      const uint8_t* const samples = shared.samples + number * distortion::kSamples + first + lane.index * pitch;
      lane.there = number < count;
      const int table = component ? 1 : 0;
      const jpg::Column quantiser = {reinterpret_cast<const jpg::Words4*>(shared.quantiser[table])[lane.index]};
      const jpg::Column coefficients = forward(lane, samples, quantiser, shared.inverse[table] + 8 * lane.index);
      if (lane.there) {
        const Mcu mcu(planes, begin + number);
        lane.pitch = static_cast<uint64_t>(planes.pitch(component));
        const int64_t y = component ? mcu.y * kHalf : mcu.y * kSide + part / 2 * 8;
        const int64_t x = component ? mcu.x * kHalf : mcu.x * kSide + part % 2 * 8;
        lane.out = reinterpret_cast<uint64_t>(planes.plane(mcu.frame, component) + y * planes.pitch(component) + x);
      }
      jpg::transform_full(lane, quantiser, coefficients);
    }
  }

  // Transform a lane's row and then its column, and quantise the column. All lanes of the warp must take part.
  static jpeg::gpu::Column forward(const jpeg::gpu::Lane& lane, const uint8_t* samples,
                                   const jpeg::gpu::Column& quantiser, const float* inverse) {
    int32_t v[8];
    STOKER_UNROLL for (int i = 0; i < 8; ++i) v[i] = lane.there ? samples[i] - 128 : 0;
    jpeg::forward8<true>(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]);
    STOKER_UNROLL for (uint32_t i = 0; i < 8; ++i) lane.tile[lane.index * jpeg::gpu::kTilePitch + i] = v[i];
    gpu::warp_barrier();
    STOKER_UNROLL for (uint32_t i = 0; i < 8; ++i) v[i] = lane.tile[i * jpeg::gpu::kTilePitch + lane.index];
    gpu::warp_barrier();
    jpeg::forward8<false>(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]);
    jpeg::gpu::Column found = {};
    STOKER_UNROLL for (int i = 0; i < 8; ++i) {
      const auto q = static_cast<int32_t>(quantiser.at(i) & 0xFFFF);
      const int32_t whole = jpeg::quantised(v[i], jpeg::half_divisor(q), inverse[i]);
      found.pairs.v[i / 2] |= (static_cast<uint32_t>(whole) & 0xFFFF) << (16 * (i % 2));
    }
    return found;
  }

  // A component at full size for four pixels of a line. Values of pixels beyond the image are arbitrary.
  static planar::Quad four(const planar::Samples& samples, int32_t x, int32_t y) {
    using planar::Spread;
    const auto load = [&](const uint8_t* line, int32_t from) {
      if (from >= 0 && from + 3 <= samples.last) return planar::load_four(line, from);
      uint32_t bytes = 0;
      for (int32_t i = 0; i < 4; ++i) bytes |= uint32_t{line[samples.inside(from + i)]} << (8 * i);
      return bytes;
    };
    if (samples.shape.spread == Spread::None) return planar::four_samples<Spread::None>(samples, x, y, load);
    if (samples.shape.spread == Spread::Both) return planar::four_samples<Spread::Both>(samples, x, y, load);
    int32_t value[4];
    planar::full_size(samples, x, y, value);
    const auto word = [&](int i) {
      return static_cast<uint32_t>(value[i]) | static_cast<uint32_t>(value[i + 2]) << 16;
    };
    return {word(0), word(1)};
  }

  static void store_four(const planar::Channels& color, uint8_t* out) {
    const uint32_t first = gpu::choose_bytes(color.red, color.green, 0x5140);   // r0 g0 r1 g1
    const uint32_t second = gpu::choose_bytes(color.red, color.green, 0x7362);  // r2 g2 r3 g3
    const uint32_t between = gpu::choose_bytes(color.green, color.blue, 0x0051);
    auto* const words = reinterpret_cast<uint32_t*>(out);
    words[0] = gpu::choose_bytes(first, color.blue, 0x2410);
    words[1] = gpu::choose_bytes(between, second, 0x5410);
    words[2] = gpu::choose_bytes(second, color.blue, 0x7326);
  }
  static void store_each(const Image& image, const planar::Channels& color, uint8_t* line, int32_t x) {
    for (int32_t i = 0; i < 4; ++i) {
      if (x + i < 0 || x + i >= image.width) continue;
      uint8_t* const to = line + (x + i) * image.column;
      to[0] = static_cast<uint8_t>(color.red >> (8 * i));
      to[image.channel] = static_cast<uint8_t>(color.green >> (8 * i));
      to[2 * image.channel] = static_cast<uint8_t>(color.blue >> (8 * i));
    }
  }
};

}  // namespace stoker::own
