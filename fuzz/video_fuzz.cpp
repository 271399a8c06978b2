// SPDX-License-Identifier: Apache-2.0
// Fuzzing of the native code for videos: for libFuzzer (LLVMFuzzerTestOneInput), or with its own random inputs when built
// with STOKER_FUZZ_STANDALONE. An input is a frame, in memory of exactly its size, whose conversion by every instruction
// set must be that of the plain formula; and a packet of H.264 or HEVC, whose units come out whole, or whose lengths are
// refused.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

#include "base/scratch.hpp"
#include "base/simd.hpp"
#include "nvdec/units.hpp"
#include "resample/resample.hpp"
#include "video/convert.hpp"

namespace {

using namespace stoker;  // NOLINT: a program of one file

struct Counts {
  uint64_t runs = 0, frames = 0, past = 0, resampled = 0, whole = 0, refused = 0;
} counts;

void report() {
  const auto n = [](uint64_t x) { return static_cast<unsigned long long>(x); };
  std::fprintf(
      stderr, "runs %llu, conversions %llu, of large frames %llu, resampled %llu, packets whole %llu, refused %llu\n",
      n(counts.runs), n(counts.frames), n(counts.past), n(counts.resampled), n(counts.whole), n(counts.refused));
}

void require(bool holds, const char* law) {
  if (holds) return;
  std::fprintf(stderr, "broken law: %s\n", law);
  std::abort();
}

// Reads numbers from the input, and zeros after its end.
struct Input {
  const uint8_t* at;
  const uint8_t* end;

  uint32_t byte() { return at < end ? *at++ : 0; }
  uint32_t below(uint32_t n) { return (byte() | byte() << 8) % n; }
};

// A pixel of the plain formula.
void plain(const video::Frame& f, const video::Weights& w, video::Order order, int64_t y, int64_t x, uint8_t* to) {
  const auto sample = [&](int plane, int64_t row, int64_t column) -> int64_t {
    const uint8_t* p = f.plane[plane] + row * f.pitch[plane] + column * (f.wide ? 2 : 1);
    return f.wide ? p[0] | p[1] << 8 : p[0];
  };
  const int64_t luma = sample(0, y, x), own_y = y >> f.shift_y, own_x = x >> f.shift_x;
  const int64_t u = f.gray ? w.chroma_zero : sample(1, own_y, own_x),
                v = f.gray ? w.chroma_zero : sample(2, own_y, own_x);
  const auto byte = [](int64_t value) { return static_cast<uint8_t>(std::clamp<int64_t>(value, 0, 255)); };
  if (order == video::Order::Stored) {
    const int64_t half = w.extra ? int64_t{1} << (w.extra - 1) : 0;
    to[0] = byte((luma + half) >> w.extra), to[1] = byte((u + half) >> w.extra), to[2] = byte((v + half) >> w.extra);
    return;
  }
  const int shift = video::kFractionBits + w.extra;
  const int64_t base = w.luma * (luma - w.luma_zero) + (int64_t{1} << (shift - 1));
  const int64_t du = u - w.chroma_zero, dv = v - w.chroma_zero;
  const int red = order == video::Order::BGR ? 2 : 0;
  to[red] = byte((base + w.red_v * dv) >> shift);
  to[1] = byte((base + w.green_u * du + w.green_v * dv) >> shift);
  to[2 - red] = byte((base + w.blue_u * du) >> shift);
}

View image_view(uint8_t* data, int64_t height, int64_t width) {
  View view;
  view.dtype = DType::U8;
  view.rank = 3;
  view.shape[0] = height;
  view.shape[1] = width;
  view.shape[2] = 3;
  view.set_contiguous_strides();
  view.data = data;
  return view;
}

// Resample a frame while it is converted. `image`: its pixels.
void resample_a_frame(Input& in, const video::Frame& f, const video::Weights& w, video::Order order, uint8_t* image) {
  const auto axis = [&](int64_t extent) {
    const auto edge = [&] { return static_cast<double>(in.below(65536)) / 65536 * static_cast<double>(extent); };
    const bool is_whole = in.below(2) != 0;
    const double lo = is_whole ? 0 : edge(), hi = is_whole ? static_cast<double>(extent) : edge();
    const int64_t out = 1 + in.below(80);
    return resample::Axis{extent, out, lo, hi, static_cast<resample::Filter>(in.below(8)), in.below(2) != 0};
  };
  const resample::Axis vertical = axis(f.height), horizontal = axis(f.width);
  const auto size = static_cast<size_t>(3 * vertical.out_size * horizontal.out_size);
  const std::unique_ptr<uint8_t[]> expected(new uint8_t[size]()), found(new uint8_t[size]());
  const View to = image_view(expected.get(), vertical.out_size, horizontal.out_size);
  const View own = image_view(found.get(), vertical.out_size, horizontal.out_size);
  Scratch rows, scratch;
  const bool done = resample::resample_into(image_view(image, f.height, f.width), vertical, horizontal, to, scratch);
  require(video::convert_resampled(f, w, order, vertical, horizontal, own, rows, scratch) == done,
          "frames are resampled if their images are");
  require(!std::memcmp(expected.get(), found.get(), size), "frames are resampled as their images are");
  ++counts.resampled;
}

void convert_a_frame(Input in) {
  constexpr double kMatrices[][2] = {{0.299, 0.114}, {0.2126, 0.0722}, {0.2627, 0.0593}, {0.212, 0.087}};
  const int extras[] = {0, 0, 0, 2, 4};
  const int extra = extras[in.below(5)];
  const double* const matrix = kMatrices[in.below(4)];
  const video::Weights w = video::weights_of(matrix[0], matrix[1], in.below(2) != 0, extra);
  video::Frame f{};
  f.wide = extra > 0;
  f.gray = in.below(8) == 0;
  f.shift_x = static_cast<int>(in.below(3)), f.shift_y = static_cast<int>(in.below(3));
  const bool is_large = in.below(64) == 0;
  f.width = 1 + in.below(is_large ? 1400 : 300);
  if (is_large && in.below(2)) f.width = video::kPairPixels * (1 + in.below(20));
  f.height = is_large ? (1 << 20) / (3 * f.width) + 1 + in.below(8) : 1 + in.below(12);
  const auto order = static_cast<video::Order>(in.below(3));
  const size_t item = f.wide ? 2 : 1;
  uint32_t state = in.below(65536) | 1;
  std::vector<std::unique_ptr<uint8_t[]>> memory;
  const auto filled = [&](size_t bytes) {
    memory.emplace_back(new uint8_t[bytes]);
    for (size_t i = 0; i < bytes; ++i) {
      state = state * 1664525u + 1013904223u;
      const bool is_upper = f.wide && i % 2;
      memory.back()[i] = static_cast<uint8_t>((state >> 24) & (is_upper ? (1u << extra) - 1 : 255u));
    }
    return memory.back().get();
  };
  for (int plane = 0; plane < (f.gray ? 1 : 3); ++plane) {
    const int sx = plane ? f.shift_x : 0, sy = plane ? f.shift_y : 0;
    const int64_t columns = (f.width + (int64_t{1} << sx) - 1) >> sx, rows = (f.height + (int64_t{1} << sy) - 1) >> sy;
    const int64_t row_bytes = columns * static_cast<int64_t>(item);
    f.pitch[plane] = row_bytes + in.below(40) * static_cast<int64_t>(item);
    f.plane[plane] = filled(static_cast<size_t>(f.pitch[plane] * (rows - 1) + row_bytes));  // the last row has no gap
  }
  const auto size = static_cast<size_t>(3 * f.width * f.height);
  std::vector<uint8_t> expected(size);
  for (int64_t y = 0; y < f.height; ++y)
    for (int64_t x = 0; x < f.width; ++x) plain(f, w, order, y, x, expected.data() + 3 * (y * f.width + x));
  const size_t shift = in.below(3) ? 0 : in.below(64);  // of the address of the result
  for (const Isa isa : kIsas) {
    if (!can_use(isa)) continue;
    isa_setting() = isa;
    Scratch scratch;
    auto* const block = static_cast<uint8_t*>(std::aligned_alloc(64, (shift + size + 63) / 64 * 64));
    // The bytes after the frame belong to the allocation, so they are compared instead.
    std::memset(block, 0xA5, (shift + size + 63) / 64 * 64);
    video::convert(f, w, order, block + shift, scratch);
    require(!std::memcmp(block + shift, expected.data(), size), "every instruction set has the plain formula's pixels");
    for (size_t i = 0; i < (shift + size + 63) / 64 * 64; ++i)
      require((i >= shift && i < shift + size) || block[i] == 0xA5, "nothing outside the frame is written");
    std::free(block);
    ++counts.frames;
    counts.past += is_large;
    Input own = in;  // the same axes for each instruction set
    resample_a_frame(own, f, w, order, expected.data());
  }
  isa_setting() = detect_isa();
}

void split_a_packet(Input in) {
  const size_t lengths[] = {1, 2, 4};
  const size_t length_bytes = lengths[in.below(3)];
  const auto bytes = static_cast<size_t>(in.end - in.at);
  const std::unique_ptr<uint8_t[]> packet(new uint8_t[bytes]);
  std::copy(in.at, in.end, packet.get());
  // Half of the inputs have lengths that are right, but for the last one.
  if (bytes && packet[bytes - 1] % 2)
    for (size_t at = 0; at + length_bytes <= bytes;) {
      const size_t unit = std::min<size_t>(packet[at], bytes - at - length_bytes);
      for (size_t i = 0; i < length_bytes; ++i) packet[at + i] = static_cast<uint8_t>(i + 1 < length_bytes ? 0 : unit);
      at += length_bytes + unit;
    }
  std::vector<uint8_t> out{9}, expected{9};
  bool is_whole = true;
  for (size_t at = 0; at < bytes && is_whole;) {
    uint64_t length = 0;
    is_whole = at + length_bytes <= bytes;
    for (size_t i = 0; is_whole && i < length_bytes; ++i) length = length * 256 + packet[at + i];
    is_whole = is_whole && at + length_bytes + length <= bytes;
    if (!is_whole) break;
    expected.insert(expected.end(), {0, 0, 0, 1});
    expected.insert(expected.end(), packet.get() + at + length_bytes, packet.get() + at + length_bytes + length);
    at += length_bytes + length;
  }
  try {
    nvdec::append_units(packet.get(), bytes, length_bytes, out);
    require(is_whole, "lengths that are wrong are refused");
  } catch (const std::runtime_error&) { require(!is_whole, "lengths that are right are not refused"); }
  require(out == expected, "units come out as they are, those before a wrong length too");
  ++(is_whole ? counts.whole : counts.refused);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  ++counts.runs;
  convert_a_frame({data, data + size});
  split_a_packet({data, data + size});
  return 0;
}

#ifdef STOKER_FUZZ_STANDALONE
// video_fuzz SECONDS SEED: at least 200 inputs.
#include <chrono>
#include <random>

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: video_fuzz SECONDS SEED\n");
    return 2;
  }
  std::mt19937 random(static_cast<unsigned>(std::atoi(argv[2])));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::atoi(argv[1]));
  std::vector<uint8_t> input;
  while (counts.runs < 200 || std::chrono::steady_clock::now() < end) {
    input.resize(random() % 200);
    for (uint8_t& byte : input) byte = static_cast<uint8_t>(random());
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  report();
  return 0;
}
#endif
