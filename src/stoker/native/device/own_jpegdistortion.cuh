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
constexpr int64_t kMcus = 32, kGroups = 2048;  // of a thread block; also in ops/image/jpeg_compression_distortion.py
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

// Where an MCU's pixels and samples are.
struct Mcu {
  const uint8_t* frame;    // the image's
  uint8_t *luma, *chroma;  // the first sample's; chroma of the first component
  int32_t x, y;            // in MCUs
};

struct Shared {
  // Of an MCU: luma in rows of 16, then chroma in rows of 8. The padding avoids bank conflicts.
  alignas(16) uint8_t samples[kMcus][kSamples + 16];
  alignas(16) int32_t tile[kThreads / 8 * jpeg::gpu::kTileWords];
  // Column by column, of luma and of chroma. `offset` corrects a product of quantised_bits for its upper bits.
  alignas(16) uint32_t quantiser[2][64], offset[2][64];
  alignas(16) float inverse[2][64];
  Mcu mcus[kMcus];
};

// Eight words of a column.
template <class T>
struct alignas(16) Eight {
  T v[8];
};

inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// Two factors of 16 bits.
constexpr uint32_t factors(int32_t first, int32_t second) {
  return (static_cast<uint32_t>(first) & 0xFFFF) | static_cast<uint32_t>(second) << 16;
}
constexpr uint32_t signed_bytes(int32_t a, int32_t b, int32_t c, int32_t d) {
  return (static_cast<uint32_t>(a) & 0xFF) | (static_cast<uint32_t>(b) & 0xFF) << 8 |
         (static_cast<uint32_t>(c) & 0xFF) << 16 | static_cast<uint32_t>(d) << 24;
}

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
    const auto count =
        static_cast<uint32_t>(distortion::least(distortion::kMcus, image.frames * planes.mcus() - begin));
    if (gpu::thread_index() < count) find_mcu(image, planes, begin + gpu::thread_index(), shared);
    scale_quantisers(row, shared);
    gpu::block_barrier();
    load_samples(image, count, shared);
    gpu::block_barrier();
    transform_blocks(planes, count, shared);
  }

  // Four pixels of a line per thread and step. The first group of a line may begin before it, so that the others are
  // written to multiples of 4 if pixels are contiguous.
  static void pixels(const Row& row, uint32_t block) {
    const Image image(row, 1, distortion::kAxes);
    const Planes planes(row, image);
    const auto width = static_cast<int32_t>(image.width);
    const auto height = static_cast<uint32_t>(image.height), per_line = static_cast<uint32_t>(width / 4 + 2);
    const bool packed = image.channel == 1 && image.column == 3;
    // Later steps of a thread need no division: they advance by these lines and groups.
    const uint32_t lines = kThreads / per_line, groups = kThreads % per_line;
    const int64_t first = block * distortion::kGroups + gpu::thread_index(), line = quotient(first, per_line);
    int64_t frame = quotient(line, height);
    auto group = static_cast<uint32_t>(first - line * per_line), y = static_cast<uint32_t>(line - frame * height);
    for (int64_t step = 0; step < distortion::kGroups / kThreads && frame < image.frames; ++step) {
      uint8_t* const out = image.data + frame * image.frame + y * image.row;
      const auto head = static_cast<int32_t>(packed ? reinterpret_cast<uint64_t>(out) & 3 : 0);
      const int32_t x = static_cast<int32_t>(4 * group) - 4 + head;
      if (x > -4 && x < width) {
        const planar::Channels color = color_of_four(planes, frame, x, static_cast<int32_t>(y), image);
        if (packed && x >= 0 && x + 4 <= width) store_four(color, out + 3 * x);
        else store_each(image, color, out, x);
      }
      group += groups;
      y += lines;
      if (group >= per_line) {
        group -= per_line;
        ++y;
      }
      if (y >= height) {
        const uint32_t more = y / height;
        frame += more;
        y -= more * height;
      }
    }
  }

 private:
  static void find_mcu(const Image& image, const Planes& planes, int64_t number, Shared& shared) {
    const int64_t frame = quotient(number, planes.mcus()), rest = number - frame * planes.mcus();
    const int64_t y = quotient(rest, planes.columns), x = rest - y * planes.columns;
    Mcu& mcu = shared.mcus[gpu::thread_index()];
    mcu.frame = image.data + frame * image.frame;
    mcu.luma = planes.plane(frame, 0) + y * kSide * planes.pitch(0) + x * kSide;
    mcu.chroma = planes.plane(frame, 1) + y * kHalf * planes.pitch(1) + x * kHalf;
    mcu.x = static_cast<int32_t>(x);
    mcu.y = static_cast<int32_t>(y);
  }

  static void scale_quantisers(const Row& row, Shared& shared) {
    const auto given = static_cast<int32_t>(row.number(0));
    const int32_t quality = given < 1 ? 1 : given > 100 ? 100 : given;
    for (uint32_t i = gpu::thread_index(); i < 128; i += kThreads) {
      const uint32_t table = i / 64, x = i / 8 % 8, y = i % 8;
      const int32_t q = jpeg::scaled_quantiser(distortion::kQuantisers.base[table][8 * y + x], quality);
      shared.quantiser[table][i % 64] = static_cast<uint32_t>(q);
      shared.offset[table][i % 64] = 0u - static_cast<uint32_t>(q) * gpu::bits_of(jpeg::kWholeNumbers);
      shared.inverse[table][i % 64] = jpeg::inverse_above_divisor(q);
    }
  }

  // ---- samples of pixels ----

  // Components of four pixels: luma as bytes; chroma of the first and third pixel, and of the others, in 16 bits.
  struct Components {
    uint32_t luma, blue[2], red[2];
  };

  // A thread converts four pixels of two lines. Columns beyond the image repeat its last one; lines beyond it repeat the
  // last one of each component.
  static void load_samples(const Image& image, uint32_t count, Shared& shared) {
    constexpr uint32_t kQuads = kSide / 4, kAcross = static_cast<uint32_t>(distortion::kMcus) * kQuads;
    const uint32_t across = gpu::thread_index() % kAcross, number = across / kQuads, quad = across % kQuads;
    if (number >= count) return;
    const Mcu& mcu = shared.mcus[number];
    const auto width = static_cast<int32_t>(image.width), height = static_cast<int32_t>(image.height);
    const int32_t x = mcu.x * kSide + static_cast<int32_t>(4 * quad), last_pair = (height + 1) / 2 - 1;
    const bool words = image.channel == 1 && image.column == 3 && x + 4 <= width;
    uint8_t* const luma = shared.samples[number] + 4 * quad;
    uint8_t* const chroma = shared.samples[number] + kSide * kSide + 2 * quad;
    for (uint32_t pair = gpu::thread_index() / kAcross; pair < kHalf; pair += kThreads / kAcross) {
      const int32_t wanted = mcu.y * kHalf + static_cast<int32_t>(pair);
      const bool beyond = wanted > last_pair;
      const int32_t y = 2 * (beyond ? last_pair : wanted), next = y + 1 < height ? y + 1 : y;
      const uint8_t* const lines[2] = {mcu.frame + y * image.row, mcu.frame + next * image.row};
      Components c[2];
      STOKER_UNROLL for (int j = 0; j < 2; ++j) {
        uint32_t pixels[4];
        if (words) load_words(lines[j] + 3 * x, pixels);
        else load_each(image, lines[j], x, pixels);
        c[j] = components_of(pixels);
      }
      auto* const rows = reinterpret_cast<uint32_t*>(luma + 2 * pair * kSide);
      rows[0] = beyond ? c[1].luma : c[0].luma;
      rows[kSide / 4] = c[1].luma;
      auto* const halved = reinterpret_cast<uint16_t*>(chroma + pair * kHalf);
      halved[0] = halved_pair(c[0].blue, c[1].blue);
      halved[kHalf * kHalf / 2] = halved_pair(c[0].red, c[1].red);
    }
  }

  // Load four contiguous pixels. No word is read that has none of their bytes.
  static void load_words(const uint8_t* p, uint32_t (&pixels)[4]) {
    const auto at = reinterpret_cast<uint64_t>(p);
    const auto* const from = reinterpret_cast<const uint32_t*>(at & ~uint64_t{3});
    const auto shift = 8 * static_cast<uint32_t>(at & 3);
    const uint32_t a = from[0], b = from[1], c = from[2], d = shift ? from[3] : 0;
    const uint32_t words[3] = {gpu::funnel_right(b, a, shift), gpu::funnel_right(c, b, shift),
                               gpu::funnel_right(d, c, shift)};
    pixels[0] = words[0];
    pixels[1] = gpu::funnel_right(words[1], words[0], 24);
    pixels[2] = gpu::funnel_right(words[2], words[1], 16);
    pixels[3] = words[2] >> 8;
  }
  static void load_each(const Image& image, const uint8_t* line, int32_t x, uint32_t (&pixels)[4]) {
    STOKER_UNROLL for (int i = 0; i < 4; ++i) {
      const uint8_t* const p = line + distortion::least(x + i, image.width - 1) * image.column;
      pixels[i] = p[0] | uint32_t{p[image.channel]} << 8 | uint32_t{p[2 * image.channel]} << 16;
    }
  }

  // Convert pixels like rgb_to_ycc; the fourth byte of a pixel is arbitrary. A sum's third byte is the component.
  // 32768 is not a signed number of 16 bits, so that chroma's factors are negative and the bytes are inverted.
  static Components components_of(const uint32_t (&pixels)[4]) {
    using distortion::factors;
    constexpr uint32_t kRounding = 1u << 15, kInverted = 0u - (128u << 16) - kRounding;
    uint32_t luma[4], blue[4], red[4];
    STOKER_UNROLL for (int i = 0; i < 4; ++i) {
      const uint32_t p = pixels[i];
      luma[i] = gpu::dot_upper<false>(factors(7471, 0), p, gpu::dot_lower<false>(factors(19595, 38470), p, kRounding));
      blue[i] = gpu::dot_upper<true>(factors(-32768, 0), p, gpu::dot_lower<true>(factors(11059, 21709), p, kInverted));
      red[i] = gpu::dot_upper<true>(factors(5329, 0), p, gpu::dot_lower<true>(factors(-32768, 27439), p, kInverted));
    }
    const auto third_bytes = [](uint32_t a, uint32_t b) { return ~gpu::choose_bytes(a, b, 0x0602) & 0x00FF00FF; };
    const uint32_t left = gpu::choose_bytes(luma[0], luma[1], 0x0062);
    const uint32_t right = gpu::choose_bytes(luma[2], luma[3], 0x0062);
    return {gpu::choose_bytes(left, right, 0x5410),
            {third_bytes(blue[0], blue[2]), third_bytes(blue[1], blue[3])},
            {third_bytes(red[0], red[2]), third_bytes(red[1], red[3])}};
  }

  // Two samples of halved chroma, as `halved` computes them.
  static uint16_t halved_pair(const uint32_t (&above)[2], const uint32_t (&below)[2]) {
    const uint32_t sums = above[0] + above[1] + below[0] + below[1] + 0x00020001;
    return static_cast<uint16_t>(gpu::choose_bytes(sums >> 2, 0, 0x4420));
  }

  // ---- transforms ----

  // Eight lanes transform a block: each a row and then a column forward, a column and then a row back. Four adjacent
  // blocks of a plane are a warp's.
  static void transform_blocks(const Planes& planes, uint32_t count, Shared& shared) {
    constexpr uint32_t kLanes = kThreads / 8, kMcus = static_cast<uint32_t>(distortion::kMcus);
    const uint32_t group = gpu::thread_index() / 8, lane = gpu::thread_index() % 8;
    int32_t* const tile = shared.tile + group * jpeg::gpu::kTileWords;
    const int64_t pitch = planes.pitch(0), half_pitch = planes.pitch(1);
    const int64_t chroma_bytes = planes.mcus() * kHalf * kHalf;
    for (uint32_t n = group; n < 4 * kMcus; n += kLanes) {  // the upper blocks of luma, then the lower ones
      const uint32_t number = n / 2 % kMcus, line = n / (2 * kMcus) * 8 + lane, column = n % 2 * 8;
      uint8_t* const out = shared.mcus[number].luma + line * pitch + column;
      transform_block(shared, 0, shared.samples[number] + line * kSide + column, tile, number < count, out);
    }
    for (uint32_t n = group; n < 2 * kMcus; n += kLanes) {  // one component, then the other one
      const uint32_t number = n % kMcus, component = n / kMcus;
      const uint8_t* const samples = shared.samples[number] + kSide * kSide + component * kHalf * kHalf + lane * kHalf;
      uint8_t* const out = shared.mcus[number].chroma + component * chroma_bytes + lane * half_pitch;
      transform_block(shared, 1, samples, tile, number < count, out);
    }
  }

  // `samples`: the lane's row. All lanes of the warp must take part.
  static void transform_block(const Shared& shared, int table, const uint8_t* samples, int32_t* tile, bool there,
                              uint8_t* out) {
    constexpr uint32_t kPitch = jpeg::gpu::kTilePitch;
    const uint32_t lane = gpu::thread_index() % 8;
    int32_t v[8];
    forward_row(reinterpret_cast<const uint32_t*>(samples)[0], reinterpret_cast<const uint32_t*>(samples)[1], v);
    STOKER_UNROLL for (uint32_t i = 0; i < 8; ++i) tile[lane * kPitch + i] = v[i];
    gpu::warp_barrier();
    STOKER_UNROLL for (uint32_t i = 0; i < 8; ++i) v[i] = tile[i * kPitch + lane];
    gpu::warp_barrier();
    jpeg::forward8<false>(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]);
    const auto inverse = reinterpret_cast<const distortion::Eight<float>*>(shared.inverse[table])[lane];
    const auto quantiser = reinterpret_cast<const distortion::Eight<uint32_t>*>(shared.quantiser[table])[lane];
    const auto offset = reinterpret_cast<const distortion::Eight<uint32_t>*>(shared.offset[table])[lane];
    STOKER_UNROLL for (int i = 0; i < 8; ++i) {
      const uint32_t whole = gpu::bits_of(jpeg::quantised_bits(v[i], inverse.v[i]));
      v[i] = static_cast<int32_t>(whole * quantiser.v[i] + offset.v[i]);
    }
    // Results of columns as upper halves; two rows in a word.
    constexpr uint32_t kScale = 1u << (16 - jpeg::kColumnShift);
    uint32_t sums[8];
    jpeg::inverse8<kScale>(v, 1u << 15, sums);
    STOKER_UNROLL for (uint32_t i = 0; i < 4; ++i) tile[8 * i + lane] =
        static_cast<int32_t>(gpu::choose_bytes(sums[2 * i], sums[2 * i + 1], 0x7632));
    gpu::warp_barrier();
    const auto rows = reinterpret_cast<const distortion::Eight<uint32_t>*>(tile)[lane / 2];
    gpu::warp_barrier();
    if (!there) return;
    STOKER_UNROLL for (int i = 0; i < 8; ++i) v[i] = gpu::signed_half(rows.v[i], lane % 2);
    constexpr int kShift = jpeg::kRowShift;
    jpeg::inverse8<1>(v, (1u << (kShift - 1)) + (128u << kShift), sums);
    STOKER_UNROLL for (int i = 0; i < 8; ++i) v[i] = static_cast<int32_t>(sums[i]) >> kShift;
    struct alignas(8) Two {
      uint32_t v[2];
    };
    *reinterpret_cast<Two*>(out) = {gpu::saturated_four(v[0], v[1], v[2], v[3]),
                                    gpu::saturated_four(v[4], v[5], v[6], v[7])};
  }

  // jpeg::forward8<true> of eight samples less 128: a result is a rounded sum of products of the samples.
  static void forward_row(uint32_t left, uint32_t right, int32_t (&out)[8]) {
    using distortion::factors;
    using distortion::signed_bytes;
    constexpr int kShift = jpeg::kForwardBits - jpeg::kForwardFirst;
    constexpr uint32_t kRounding = 1u << (kShift - 1);
    const auto dot = [&](uint32_t a, uint32_t b, uint32_t sum) {
      return static_cast<int32_t>(gpu::dot_bytes(b, right, gpu::dot_bytes(a, left, sum)));
    };
    out[0] = dot(signed_bytes(4, 4, 4, 4), signed_bytes(4, 4, 4, 4), 0u - 4 * 8 * 128);
    out[4] = dot(signed_bytes(4, -4, -4, 4), signed_bytes(4, -4, -4, 4), 0);
    const int32_t outer = dot(signed_bytes(1, 0, 0, -1), signed_bytes(-1, 0, 0, 1), 0);
    const int32_t inner = dot(signed_bytes(0, 1, -1, 0), signed_bytes(0, -1, 1, 0), 0);
    out[2] = (outer * 10703 + inner * 4433 + static_cast<int32_t>(kRounding)) >> kShift;
    out[6] = (outer * 4433 - inner * 10704 + static_cast<int32_t>(kRounding)) >> kShift;
    // Factors of the differences between the first and the last sample, the second and the last but one, ...
    const auto odd = [&](int32_t a, int32_t b, int32_t c, int32_t d) {
      const uint32_t first =
          gpu::dot_upper<true>(factors(c, d), left, gpu::dot_lower<true>(factors(a, b), left, kRounding));
      const uint32_t sum =
          gpu::dot_upper<true>(factors(-b, -a), right, gpu::dot_lower<true>(factors(-d, -c), right, first));
      return static_cast<int32_t>(sum) >> kShift;
    };
    out[1] = odd(11363, 9633, 6437, 2260);
    out[3] = odd(9633, -2259, -11362, -6436);
    out[5] = odd(6437, -11362, 2261, 9633);
    out[7] = odd(2260, -6436, 9633, -11363);
  }

  // ---- pixels of samples ----

  static planar::Channels color_of_four(const Planes& planes, int64_t frame, int32_t x, int32_t y, const Image& image) {
    using planar::Spread;
    const auto width = static_cast<int32_t>(image.width), height = static_cast<int32_t>(image.height);
    const auto chroma_width = static_cast<uint16_t>((width + 1) / 2);
    const auto chroma_height = static_cast<uint16_t>((height + 1) / 2);
    const bool smooth = chroma_width > 2;
    const planar::Shape shape{chroma_width, chroma_height, 2, 2, smooth ? Spread::Both : Spread::Repeat, 8};
    const uint8_t* const line = planes.plane(frame, 0) + y * planes.pitch(0);
    const auto pitch = static_cast<uint32_t>(planes.pitch(1));
    const planar::Samples blue{planes.plane(frame, 1), pitch, shape, 0, chroma_width - 1};
    const planar::Samples red{planes.plane(frame, 2), pitch, shape, 0, chroma_width - 1};
    if (chroma_width < 4) {
      uint32_t luma = 0;
      for (int32_t i = 0; i < 4; ++i) luma |= uint32_t{line[jpeg::clamp_to(x + i, 0, width - 1)]} << (8 * i);
      return planar::convert_four(luma, few(blue, x, y), few(red, x, y));
    }
    const Nearest luma(x, width - 1), chroma((x >> 1) - 1, chroma_width - 1);
    const auto load = [&](const uint8_t* samples, int32_t) { return chroma.load(samples); };
    return planar::convert_four(luma.load(line), planar::four_samples<Spread::Both>(blue, x, y, load),
                                planar::four_samples<Spread::Both>(red, x, y, load));
  }

  // Four samples of a line of at least four from `x` on, which may be up to three columns beyond it on either side;
  // samples beyond it repeat the edge.
  struct Nearest {
    int32_t from;
    uint32_t selector;

    Nearest(int32_t x, int32_t last) : from(jpeg::clamp_to(x, 0, last - 3)) {
      selector = gpu::funnel_right(0x33333333, 0x33210000, static_cast<uint32_t>(4 * (x - from + 3)));
    }
    uint32_t load(const uint8_t* line) const {
      return gpu::choose_bytes(planar::load_four(line, from), 0, selector & 0xFFFF);
    }
  };

  // Chroma at full size for four pixels of a narrow image.
  static planar::Quad few(const planar::Samples& samples, int32_t x, int32_t y) {
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
