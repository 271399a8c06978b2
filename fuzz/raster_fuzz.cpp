// SPDX-License-Identifier: Apache-2.0
// Fuzzing of image files but JPEG (raster/picture.hpp): for libFuzzer (LLVMFuzzerTestOneInput), or with mutations of the
// given files if built with STOKER_FUZZ_STANDALONE. WebP and JPEG 2000 files are read if STOKER_FUZZ_WEBP and
// STOKER_FUZZ_JPEG2000 name their libraries, which are not instrumented: a sanitizer sees the memory that they are given
// if they call functions that it replaces, and guard bytes see the rest. In addition to the sanitizers' checks, every element of an accepted
// picture is written, a window equals that part of the whole, and every instruction set has the same checksums.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/simd.hpp"
#include "raster/checksums.hpp"
#include "raster/inflate.hpp"
#include "raster/libraries.hpp"
#include "raster/picture.hpp"

namespace {

using namespace stoker;  // NOLINT: a program of one file

struct Counts {
  unsigned long long runs = 0, accepted = 0, left = 0, damaged = 0, decoded = 0, inflated = 0;
} counts;

void report() {
  std::fprintf(stderr,
               "runs %llu, headers accepted %llu, handed over %llu, damaged %llu, decoded %llu, inflated %llu\n",
               counts.runs, counts.accepted, counts.left, counts.damaged, counts.decoded, counts.inflated);
}

void require(bool holds, const char* law) {
  if (holds) return;
  std::fprintf(stderr, "broken law: %s\n", law);
  std::abort();
}

constexpr int64_t kMaxPixels = 1 << 16;

struct Bytes {
  int64_t size;
  std::unique_ptr<uint8_t[]> data;  // exactly this size, so that the sanitizer sees a write past the end
};

// Bytes after the memory for the pixels of libraries that are not instrumented.
class Guards {
 public:
  Guards(const raster::Picture& picture, Scratch* scratch) : scratch_(scratch) {
    if (picture.kind != raster::Kind::Webp && picture.kind != raster::Kind::Jpeg2000) return;
    pixels_ = static_cast<size_t>(int64_t{picture.width} * picture.height * picture.layout.pixel);
    for (int i = 0; i < kAreas; ++i) std::fill_n(after(i), kGuard, kPattern);
  }
  void check() {
    if (pixels_ == 0) return;
    for (int i = 0; i < kAreas; ++i)
      require(std::all_of(after(i), after(i) + kGuard, [](uint8_t x) { return x == kPattern; }),
              "a library writes no more than its pixels");
  }

 private:
  static constexpr int kAreas = 2;  // a tile, and the picture
  static constexpr size_t kGuard = 4096;
  static constexpr uint8_t kPattern = 0xC3;

  uint8_t* after(int i) { return scratch_[i].get(pixels_ + kGuard) + pixels_; }

  Scratch* const scratch_;
  size_t pixels_ = 0;
};

// Decode a window into dense memory that is filled with `filler`.
bool decode(const uint8_t* data, size_t size, const raster::Picture& picture, raster::Target target, DType dtype,
            uint8_t filler, Bytes& to) {
  static Scratch scratch[4];
  const jpeg::Window& w = target.window;
  View out;
  out.dtype = dtype;
  out.rank = 3;
  out.shape[0] = target.turn.swap ? w.x1 - w.x0 : w.y1 - w.y0;
  out.shape[1] = target.turn.swap ? w.y1 - w.y0 : w.x1 - w.x0;
  out.shape[2] = raster::channels(picture.layout, target.format, target.indices);
  out.set_contiguous_strides();
  to.size = out.elements() * size_of(dtype);
  to.data.reset(new uint8_t[static_cast<size_t>(to.size)]);
  std::fill_n(to.data.get(), to.size, filler);
  out.data = to.data.get();
  target.out = out;
  std::string error;
  Guards guards(picture, scratch);
  const bool done = raster::decode(data, size, picture, target, scratch, error) == raster::Parsed::Ok;
  guards.check();
  require(done == error.empty(), "a refused picture has a reason");
  return done;
}

void check_picture(const uint8_t* data, size_t size) {
  raster::Picture picture;
  std::string error;
  const raster::Parsed parsed = raster::parse(data, size, picture, error);
  if (parsed == raster::Parsed::Ok) {
    ++counts.accepted;
  } else {
    require(!error.empty(), "a refused file has a reason");
    ++(parsed == raster::Parsed::Handover ? counts.left : counts.damaged);
    return;
  }
  require(picture.width > 0 && picture.height > 0, "a picture has pixels");
  // Options that depend on the file, so that the mutations reach all of them.
  uint32_t option = static_cast<uint32_t>(size * 2654435761u) >> 8;
  const auto below = [&](uint32_t n) { return std::exchange(option, option / n) % n; };
  constexpr jpeg::Format kFormats[] = {jpeg::Format::ANY, jpeg::Format::RGB, jpeg::Format::GRAY, jpeg::Format::BGR,
                                       jpeg::Format::YCbCr};
  const jpeg::Format format = kFormats[below(5)];
  if (raster::refusal(picture.layout, format)) return;
  const int scale = static_cast<int>(below(4));
  const DType dtype = format != jpeg::Format::ANY ? DType::U8 : std::array{DType::U8, DType::U16, DType::F32}[below(3)];
  const jpeg::Extent whole{picture.width, picture.height};
  const int32_t round_up = (1 << scale) - 1;
  const jpeg::Extent scaled{(whole.width + round_up) >> scale, (whole.height + round_up) >> scale};
  // Of large pictures a corner, whose rows may still be many: the file must have the data for them.
  const int32_t width = std::min<int32_t>(scaled.width, 256), height = std::min<int32_t>(scaled.height, 256);
  if (int64_t{picture.width} * picture.height > kMaxPixels * 64) return;
  raster::Target target{{0, 0, width, height}, whole, jpeg::turn_of(1 + static_cast<int>(below(8))), format, scale,
                        below(2) == 1,         {}};
  Bytes one, two;
  const bool first = decode(data, size, picture, target, dtype, 0x5A, one);
  const bool second = decode(data, size, picture, target, dtype, 0xA5, two);
  require(first == second, "a file is accepted always or never");
  if (!first) return;
  ++counts.decoded;
  require(std::equal(one.data.get(), one.data.get() + one.size, two.data.get()), "every element is written");
  target.turn = {};
  require(decode(data, size, picture, target, dtype, 0x5A, one), "orientations do not matter");
  const int32_t y = height / 3, x = width / 3;
  target.window = {x, y, width, height};
  require(decode(data, size, picture, target, dtype, 0x5A, two), "a part of an accepted picture is accepted");
  const int64_t pixel = one.size / (int64_t{width} * height), row = pixel * (width - x);
  for (int64_t i = y; i < height; ++i)
    require(std::memcmp(one.data.get() + (i * width + x) * pixel, two.data.get() + (i - y) * row,
                        static_cast<size_t>(row)) == 0,
            "a window is a part of the whole");
}

// The input as compressed data, with exact paddings.
void check_inflate(const uint8_t* data, size_t size) {
  const size_t wanted = size > 0 ? size_t{data[size - 1]} * 64 : 0;
  const std::unique_ptr<uint8_t[]> from(new uint8_t[size + 2 + raster::kInflateInputPadding]());
  const std::unique_ptr<uint8_t[]> to(new uint8_t[wanted + raster::kInflateOutputPadding]);
  from[0] = 0x78;
  from[1] = 0x9C;
  if (size > 0) std::memcpy(from.get() + 2, data, size);
  const raster::InflateResult result = raster::inflate_zlib(from.get(), size + 2, to.get(), wanted);
  require(result.bytes <= wanted, "no more bytes than wanted");
  require((result.status == raster::Inflated::Damaged) == (result.reason != nullptr), "damage has a reason");
  require(result.bytes <= (size + 2) * raster::kMaxInflateRatio, "the ratio has a bound");
  ++counts.inflated;
}

void check_checksums(const uint8_t* data, size_t size) {
  const Isa before = isa();
  const uint32_t crc = raster::crc32(data, size), adler = raster::adler32(data, size);
  isa_setting() = Isa::Plain;
  require(raster::crc32(data, size) == crc && raster::adler32(data, size) == adler, "instruction sets agree");
  isa_setting() = before;
}

}  // namespace

void load_libraries() {
  if (const char* const path = std::getenv("STOKER_FUZZ_WEBP")) raster::use_libwebp(path);
  if (const char* const path = std::getenv("STOKER_FUZZ_JPEG2000")) raster::use_openjpeg(path);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (counts.runs++ == 0) {
    std::atexit(report);
    load_libraries();
  }
  const std::unique_ptr<uint8_t[]> exact(new uint8_t[size]);
  if (size) std::memcpy(exact.get(), data, size);
  check_picture(exact.get(), size);
  check_inflate(exact.get(), size);
  check_checksums(exact.get(), size);
  return 0;
}

#ifdef STOKER_FUZZ_STANDALONE
// raster_fuzz SECONDS SEED FILE...: mutates the files. Most mutants of PNG files get right checksums of their chunks, so
// that they reach the decompression, and of some the rows are changed and compressed again as stored blocks.
#include <chrono>
#include <fstream>
#include <iterator>
#include <random>

namespace {

using File = std::vector<uint8_t>;

uint32_t be32(const uint8_t* p) {
  return static_cast<uint32_t>(p[0]) << 24 | static_cast<uint32_t>(p[1]) << 16 | static_cast<uint32_t>(p[2]) << 8 |
         p[3];
}

void put32(uint8_t* p, uint32_t value) {
  for (int i = 0; i < 4; ++i) p[i] = static_cast<uint8_t>(value >> (24 - 8 * i));
}

// Correct the checksums of the chunks, as far as their sizes lead through the file.
void correct(File& file) {
  if (!raster::png::is_png(file.data(), file.size())) return;
  for (size_t at = 8; at + 12 <= file.size();) {
    const size_t size = be32(&file[at]);
    if (size > file.size() - at - 12) return;
    put32(&file[at + 8 + size], raster::crc32(&file[at + 4], size + 4));
    at += 12 + size;
  }
}

File mutated(const std::vector<File>& files, std::mt19937& random) {
  const auto below = [&](size_t n) { return random() % n; };
  File file = files[below(files.size())];
  for (size_t n = 1 + below(4); n > 0 && !file.empty(); --n) {
    const size_t at = below(4) == 0 ? below(std::min<size_t>(file.size(), 64)) : below(file.size());
    switch (below(5)) {
      case 0: file[at] = static_cast<uint8_t>(random()); break;
      case 1: file[at] ^= static_cast<uint8_t>(1u << below(8)); break;
      case 2:
        file.erase(file.begin() + static_cast<ptrdiff_t>(at),
                   file.begin() + static_cast<ptrdiff_t>(at + std::min(file.size() - at, below(16))));
        break;
      case 3:
        file.insert(file.begin() + static_cast<ptrdiff_t>(at), 1 + below(8), static_cast<uint8_t>(random()));
        break;
      default:
        if (below(8) == 0) file.resize(at);
    }
  }
  if (below(8) != 0) correct(file);
  return file;
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 10;
  std::mt19937 random(argc > 2 ? static_cast<uint32_t>(std::atoi(argv[2])) : 1);
  std::vector<File> files;
  for (int i = 3; i < argc; ++i) {
    std::ifstream from(argv[i], std::ios::binary);
    files.emplace_back(std::istreambuf_iterator<char>(from), std::istreambuf_iterator<char>());
    LLVMFuzzerTestOneInput(files.back().data(), files.back().size());
  }
  if (files.empty()) return 1;
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end)
    for (int i = 0; i < 200; ++i) {
      const File file = mutated(files, random);
      std::ofstream("current.raster", std::ios::binary)
          .write(reinterpret_cast<const char*>(file.data()), static_cast<std::streamsize>(file.size()));
      LLVMFuzzerTestOneInput(file.data(), file.size());
    }
  std::remove("current.raster");
  return 0;
}
#endif
