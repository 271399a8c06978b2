// SPDX-License-Identifier: Apache-2.0
#include "raster/pixels.hpp"

#include <algorithm>
#include <cstring>

#include "base/simd.hpp"
#include "base/widen.hpp"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace stoker::raster {
namespace {

// Exchange the first and the third byte of pixels that are `step` bytes apart, and write them packed. The plain form takes
// a word at a time. A word has a byte after its pixel, which the next pixel's word replaces, so the last pixel is taken
// by bytes.
void reverse_plain(const uint8_t* from, int64_t count, int64_t step, uint8_t* to) {
  for (; count > 1; --count, from += step, to += 3) {
    uint32_t word;
    std::memcpy(&word, from, sizeof word);
    word = __builtin_bswap32(word) >> 8;
    std::memcpy(to, &word, sizeof word);
  }
  if (count > 0) std::reverse_copy(from, from + 3, to);
}

#if defined(__x86_64__)
// Sixteen bytes at a time: five pixels of three bytes, or four of four.
__attribute__((target("ssse3"))) void reverse_shuffled(const uint8_t* from, int64_t count, int64_t step, uint8_t* to) {
  const __m128i order = step == 3 ? _mm_setr_epi8(2, 1, 0, 5, 4, 3, 8, 7, 6, 11, 10, 9, 14, 13, 12, -1)
                                  : _mm_setr_epi8(2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, -1, -1, -1, -1);
  const int64_t together = step == 3 ? 5 : 4;
  for (; count >= 6; count -= together, from += step * together, to += 3 * together) {
    const __m128i pixels = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm_shuffle_epi8(pixels, order));
  }
  reverse_plain(from, count, step, to);
}
#endif

void reverse_pixels(const uint8_t* from, int64_t count, int64_t step, uint8_t* to) {
#if defined(__x86_64__)
  static const bool has_shuffle = __builtin_cpu_supports("ssse3");
  if (has_shuffle && isa() != Isa::Plain && step <= 4) return reverse_shuffled(from, count, step, to);
#endif
  reverse_plain(from, count, step, to);
}

using jpeg::Format;

// Return whether the bytes of a table of colours are the result themselves.
bool takes_indices(const Layout& layout, Format format, bool indices) {
  return indices && layout.family == Family::Table && !layout.gray && (format == Format::GRAY || format == Format::ANY);
}

// Conversion of rows to bytes of one format.
struct Conversion {
  const Layout& layout;
  Format format;
  bool raw;  // one byte of a pixel as it is
  int channels;
  uint8_t table[256][4] = {};

  Conversion(const Layout& from, Format to, bool indices)
      : layout(from), format(to), raw(takes_indices(from, to, indices)), channels(raster::channels(from, to, indices)) {
    for (int i = 0; i < 256; ++i) {
      const uint8_t* const rgb = from.table[i];
      uint8_t* const to_pixel = table[i];
      const uint8_t luma = gray_of(rgb[0], rgb[1], rgb[2]);
      switch (format) {
        case Format::GRAY: to_pixel[0] = luma; break;
        case Format::BGR: std::reverse_copy(rgb, rgb + 3, to_pixel); break;
        case Format::YCbCr: to_pixel[0] = luma, to_pixel[1] = to_pixel[2] = 128; break;
        default: std::copy_n(rgb, 4, to_pixel);
      }
    }
  }

  static uint8_t gray_of(int red, int green, int blue) {
    return static_cast<uint8_t>((19595 * red + 38470 * green + 7471 * blue + 0x8000) >> 16);
  }

  // The weights sum up to 2^16, so that no sum of 16-bit values overflows.
  static uint16_t wide_gray_of(uint32_t red, uint32_t green, uint32_t blue) {
    return static_cast<uint16_t>((19595 * red + 38470 * green + 7471 * blue + 0x8000) >> 16);
  }

  // Whether a gray value is the sum of a pixel's three colours.
  bool mixes() const { return format == Format::GRAY && layout.family == Family::Colour; }

  // Number of the value of a pixel that channel `k` of a result of 16 bits takes.
  int source_of(int k) const {
    if (format == Format::ANY) return k;
    if (layout.family != Family::Colour) return 0;
    return format == Format::BGR ? 2 - k : k;
  }

  void bytes(const uint8_t* from, int64_t count, uint8_t* to) const {
    switch (layout.family) {
      case Family::Table:
      case Family::Wide: return from_table(from, count, to);
      case Family::GrayAlpha:
        if (format == Format::ANY) return pick<2>(from, count, to, layout.at);
        return from_table(from, count, to);
      default: return from_colours(from, count, to);
    }
  }

 private:
  // Whether a pixel's bytes are the result.
  bool same(int count) const {
    if (layout.pixel != count) return false;
    for (int i = 0; i < count; ++i)
      if (layout.at[i] != i) return false;
    return true;
  }

  template <int kCount>
  void pick(const uint8_t* from, int64_t count, uint8_t* to, const uint8_t* at) const {
    if (at == layout.at && same(kCount)) {
      std::memcpy(to, from, static_cast<size_t>(kCount * count));
      return;
    }
    uint8_t order[kCount];
    std::copy_n(at, kCount, order);
    const int64_t step = layout.pixel;
    if constexpr (kCount == 3) {
      if (step >= 3 && order[0] == 2 && order[1] == 1 && order[2] == 0) return reverse_pixels(from, count, step, to);
    }
    for (int64_t x = 0; x < count; ++x, from += step, to += kCount)
      for (int k = 0; k < kCount; ++k) to[k] = from[order[k]];
  }

  template <int kCount>
  void look_up(const uint8_t* from, int64_t count, uint8_t* to) const {
    const int64_t step = layout.pixel;
    from += layout.at[0];
    if constexpr (kCount == 3) {
      // A word at a time: the byte after a pixel is replaced by the next one, so the last pixel is written by bytes.
      for (; count > 1; --count, from += step, to += 3) std::memcpy(to, table[*from], 4);
    }
    for (int64_t x = 0; x < count; ++x, from += step, to += kCount)
      for (int k = 0; k < kCount; ++k) to[k] = table[*from][k];
  }

  void from_table(const uint8_t* from, int64_t count, uint8_t* to) const {
    if (raw) return pick<1>(from, count, to, layout.at);
    switch (channels) {
      case 1: return look_up<1>(from, count, to);
      case 3: return look_up<3>(from, count, to);
      default: return look_up<4>(from, count, to);
    }
  }

  void from_colours(const uint8_t* from, int64_t count, uint8_t* to) const {
    const uint8_t* const at = layout.at;
    if (format == Format::BGR) {
      const uint8_t back[3] = {at[2], at[1], at[0]};
      return pick<3>(from, count, to, back);
    }
    if (format == Format::GRAY) {
      const int red = at[0], green = at[1], blue = at[2], step = layout.pixel;
      for (int64_t x = 0; x < count; ++x, from += step) to[x] = gray_of(from[red], from[green], from[blue]);
      return;
    }
    return channels == 4 ? pick<4>(from, count, to, at) : pick<3>(from, count, to, at);
  }
};

// Converts rows to the element type of a result.
struct Writer {
  const Conversion& conversion;
  DType dtype;
  uint8_t* bytes;  // memory for a row

  void row(const uint8_t* from, int64_t count, uint8_t* to) const {
    if (dtype == DType::U8) return conversion.bytes(from, count, to);
    if (conversion.layout.low != 0) {
      if (dtype == DType::U16) return words<uint16_t>(from, count, to, [](uint16_t x) { return x; });
      return words<float>(from, count, to, [](uint16_t x) { return static_cast<float>(x) * (1.0F / 65535); });
    }
    conversion.bytes(from, count, bytes);
    count *= conversion.channels;
    if (dtype == DType::U16) return widen<uint16_t>(bytes, count, to);
    widen<float>(bytes, count, to);
  }

 private:
  // Convert values of 16 bits.
  template <class T, class Convert>
  void words(const uint8_t* from, int64_t count, uint8_t* to, const Convert& convert) const {
    const Layout& layout = conversion.layout;
    const auto value_at = [&](const uint8_t* pixel, int source) {
      const uint8_t* const high = pixel + layout.at[source];
      return static_cast<uint16_t>(high[0] << 8 | high[layout.low]);
    };
    if (conversion.mixes())
      return each<T>(count, to, [&](int64_t i) {
        const uint8_t* const pixel = from + layout.pixel * i;
        return convert(Conversion::wide_gray_of(value_at(pixel, 0), value_at(pixel, 1), value_at(pixel, 2)));
      });
    const int channels = conversion.channels;
    int source[4];
    for (int k = 0; k < channels; ++k) source[k] = conversion.source_of(k);
    const int first = std::min<int>(layout.at[source[0]], layout.at[source[0]] + layout.low);
    bool packed = layout.pixel == 2 * channels;
    for (int k = 1; k < channels; ++k) packed = packed && layout.at[source[k]] == layout.at[source[0]] + 2 * k;
    const auto word = [&](const uint8_t* p) {
      uint16_t value;
      std::memcpy(&value, p, sizeof value);
      return value;
    };
    if (packed && layout.low < 0)
      return each<T>(count * channels, to, [&](int64_t i) { return convert(word(from + first + 2 * i)); });
    if (packed)
      return each<T>(count * channels, to,
                     [&](int64_t i) { return convert(__builtin_bswap16(word(from + first + 2 * i))); });
    for (int64_t x = 0; x < count; ++x, from += layout.pixel, to += channels * static_cast<int64_t>(sizeof(T)))
      each<T>(channels, to, [&](int64_t k) { return convert(value_at(from, source[k])); });
  }

  template <class T, class Value>
  static void each(int64_t count, uint8_t* to, const Value& value) {
    for (int64_t i = 0; i < count; ++i) {
      const T x = value(i);
      std::memcpy(to + static_cast<int64_t>(sizeof x) * i, &x, sizeof x);
    }
  }
};

// Add the elements of a row to the sums of the pixels of a smaller picture.
template <class T, class Sum>
void add_row(const uint8_t* row, int64_t columns, int channels, int scale_log2, Sum* sums) {
  for (int64_t x = 0; x < columns; ++x) {
    Sum* const to = sums + (x >> scale_log2) * channels;
    for (int k = 0; k < channels; ++k) {
      T value;
      std::memcpy(&value, row + static_cast<int64_t>(sizeof value) * (x * channels + k), sizeof value);
      to[k] += value;
    }
  }
}

// Means of integers, whose halves round up, and of floats.
uint32_t mean(uint32_t sum, uint32_t count) { return (2 * sum + count) / (2 * count); }
double mean(double sum, uint32_t count) { return sum / count; }

// Write rows of means to `to`. `band`: memory for a row in full size, and after it for the sums.
template <class T, class Sum>
bool write_means(Rows& rows, const Writer& writer, const Target& target, uint8_t* band, uint8_t* to) {
  const int channels = writer.conversion.channels, log2 = target.scale_log2;
  const jpeg::Window& w = target.window;
  const int64_t x0 = int64_t{w.x0} << log2, x1 = std::min<int64_t>(int64_t{w.x1} << log2, target.whole.width);
  const int64_t columns = w.x1 - w.x0, elements = columns * channels;
  auto* const sums = reinterpret_cast<Sum*>(band);
  uint8_t* const full = band + elements * static_cast<int64_t>(sizeof(Sum));
  for (int64_t y = w.y0; y < w.y1; ++y) {
    std::fill_n(sums, elements, Sum{});
    const int64_t first = y << log2, last = std::min<int64_t>((y + 1) << log2, target.whole.height);
    for (int64_t stored = first; stored < last; ++stored) {
      const uint8_t* const row = rows.row(static_cast<int32_t>(stored));
      if (!row) return false;
      writer.row(row + writer.conversion.layout.pixel * x0, x1 - x0, full);
      add_row<T>(full, x1 - x0, channels, log2, sums);
    }
    for (int64_t x = 0; x < columns; ++x) {
      const int64_t across = std::min<int64_t>((x + 1) << log2, x1 - x0) - (x << log2);
      for (int k = 0; k < channels; ++k, to += sizeof(T)) {
        const T value = static_cast<T>(mean(sums[x * channels + k], static_cast<uint32_t>(across * (last - first))));
        std::memcpy(to, &value, sizeof value);
      }
    }
  }
  return true;
}

void place(const uint8_t* from, const Target& target, int64_t pixel_bytes) {
  const jpeg::Window& w = target.window;
  const jpeg::Placement p = jpeg::placement(w, target.turn, target.out);
  uint8_t* const to = target.out.data + p.offset;
  const int64_t size = size_of(target.out.dtype), channels = pixel_bytes / size, step = target.out.stride[2];
  for (int64_t y = 0; y < w.y1 - w.y0; ++y)
    for (int64_t x = 0; x < w.x1 - w.x0; ++x)
      for (int64_t k = 0; k < channels; ++k, from += size)
        std::memcpy(to + y * p.step_y + x * p.step_x + k * step, from, static_cast<size_t>(size));
}

}  // namespace

void Layout::set_gray(int bits) {
  const int most = (1 << bits) - 1;
  for (int i = 0; i < 256; ++i) {
    const auto value = static_cast<uint8_t>(i <= most ? i * 255 / most : 0);
    table[i][0] = table[i][1] = table[i][2] = value;
    table[i][3] = 255;
  }
}

int channels(const Layout& layout, Format format, bool indices) {
  if (format == Format::GRAY) return 1;
  if (format != Format::ANY) return 3;
  return takes_indices(layout, format, indices) ? 1 : layout.own_channels;
}

const char* refusal(const Layout& layout, Format format) {
  if (format != Format::YCbCr) return nullptr;
  const bool gray = layout.family == Family::Wide || (layout.family == Family::Table && layout.gray);
  return gray ? nullptr : "YCbCr pixels of a file of colours";
}

int32_t rows_needed(const Target& target) {
  return static_cast<int32_t>(std::min<int64_t>(int64_t{target.window.y1} << target.scale_log2, target.whole.height));
}

bool write(Rows& rows, const Layout& layout, const Target& target, Scratch& scratch) {
  const Conversion conversion(layout, target.format, target.indices);
  const jpeg::Window& w = target.window;
  const View& out = target.out;
  const int64_t size = size_of(out.dtype), pixel = size * conversion.channels;
  const int64_t width = w.x1 - w.x0, height = w.y1 - w.y0;
  const bool dense = target.turn.none() && out.stride[2] == size && out.stride[1] == pixel;
  // Scratch: the picture unless it is written where it belongs, a row of bytes, and the sums and a row for means.
  const bool scaled = target.scale_log2 > 0;
  const bool whole = !dense || (scaled && out.stride[0] != width * pixel);
  const int64_t picture = whole ? (width * height * pixel + 63) / 64 * 64 : 0;
  const int64_t row_bytes = ((width << target.scale_log2) * conversion.channels + 63) / 64 * 64;
  const int64_t band = scaled ? width * conversion.channels * int64_t{sizeof(double)} + row_bytes * size : 0;
  uint8_t* const memory = scratch.get(static_cast<size_t>(picture + row_bytes + band));
  const Writer writer{conversion, out.dtype, memory + picture};
  uint8_t* const to = whole ? memory : out.data;
  if (scaled) {
    uint8_t* const sums = memory + picture + row_bytes;
    const bool done = out.dtype == DType::U8    ? write_means<uint8_t, uint32_t>(rows, writer, target, sums, to)
                      : out.dtype == DType::U16 ? write_means<uint16_t, uint32_t>(rows, writer, target, sums, to)
                                                : write_means<float, double>(rows, writer, target, sums, to);
    if (!done) return false;
  } else {
    const int64_t pitch = whole ? width * pixel : out.stride[0];
    for (int64_t y = 0; y < height; ++y) {
      const uint8_t* const row = rows.row(static_cast<int32_t>(w.y0 + y));
      if (!row) return false;
      writer.row(row + int64_t{layout.pixel} * w.x0, width, to + y * pitch);
    }
  }
  if (whole) place(memory, target, pixel);
  return true;
}

}  // namespace stoker::raster
