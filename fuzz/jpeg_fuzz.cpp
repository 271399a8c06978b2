// SPDX-License-Identifier: Apache-2.0
// Fuzzing of the JPEG decoder: for libFuzzer (LLVMFuzzerTestOneInput), or with its own mutations when built with
// STOKER_FUZZ_STANDALONE. In addition to the sanitizers' checks, three laws are checked on a share of the inputs: every
// instruction set gives the same pixels, a window of a file is the same window of the whole, and all of a window is
// written. In a build with AddressSanitizer the pieces of the decoder's scratch memory are guarded one by one.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "jpeg/jpeg.hpp"
#include "jpeg/damage.hpp"
#include "jpeg/parse.hpp"
#include "base/simd.hpp"

namespace {

using namespace stoker;  // NOLINT: a program of one file

// Small pictures reach the same code sooner. Of a larger one only its upper left is decoded.
constexpr int kFewPixels = 1 << 11, kManyPixels = 1 << 14, kWidest = 256;
constexpr int kLargeShare = 16, kCheckedShare = 4;  // one in this many

struct Counts {
  uint64_t runs = 0, parsed = 0, decoded = 0, checked = 0, unknown_markers = 0, by_status[4] = {};
} counts;

void report() {
  std::fprintf(
      stderr,
      "runs %llu, headers accepted %llu, entropy decoding reached %llu, laws checked %llu, unknown markers %llu",
      static_cast<unsigned long long>(counts.runs), static_cast<unsigned long long>(counts.parsed),
      static_cast<unsigned long long>(counts.decoded), static_cast<unsigned long long>(counts.checked),
      static_cast<unsigned long long>(counts.unknown_markers));
  constexpr const char* kNames[] = {"ok", "truncated", "corrupt", "unsupported"};
  for (int i = 0; i < 4; ++i)
    std::fprintf(stderr, ", %s %llu", kNames[i], static_cast<unsigned long long>(counts.by_status[i]));
  std::fputc('\n', stderr);
}

[[noreturn]] void broken_law(const char* law) {
  std::fprintf(stderr, "broken law: %s\n", law);
  std::abort();
}

// A generator seeded with the input: the same file always gets the same treatment.
class Choices {
 public:
  Choices(const uint8_t* data, size_t size) {
    for (size_t i = 0; i < size; ++i) state_ = (state_ ^ data[i]) * 0x100000001B3u;
  }
  int below(int n) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int>((state_ >> 33) % static_cast<uint64_t>(n));
  }

 private:
  uint64_t state_ = 0xCBF29CE484222325u;
};

// The best that the machine has, or on one with AVX-512 now and then what others have.
Isa fast_isa(Choices& choose) {
  const Isa best = detect_isa();
  return best == Isa::AVX512 && choose.below(4) == 0 ? Isa::AVX2 : best;
}

// Memory of exactly the pixels' size, so that the sanitizer sees one byte too many.
struct Picture {
  jpeg::Status status = jpeg::Status::Unsupported;
  std::unique_ptr<uint8_t[]> pixels;
};

Picture decode(const uint8_t* data, size_t size, const jpeg::Info& info, jpeg::Window w, jpeg::Format format, int scale,
               Isa isa, int fill) {
  static Scratch scratch;  // what an earlier file left must not matter
  isa_setting() = isa;
  const size_t row = static_cast<size_t>(w.x1 - w.x0) * static_cast<size_t>(jpeg::channels(info, format));
  const size_t bytes = row * static_cast<size_t>(w.y1 - w.y0);
  Picture out;
  out.pixels.reset(new uint8_t[bytes]);
  if (fill >= 0) std::memset(out.pixels.get(), fill, bytes);
  const auto pitch = static_cast<ptrdiff_t>(format == jpeg::Format::Planes ? row / 3 : row);
  out.status = jpeg::decode(data, size, info, w, format, out.pixels.get(), pitch, scratch, scale);
  return out;
}

jpeg::Window part_of(jpeg::Window w, Choices& choose) {
  jpeg::Window part;
  part.x0 = w.x0 + choose.below(w.x1 - w.x0);
  part.y0 = w.y0 + choose.below(w.y1 - w.y0);
  part.x1 = part.x0 + 1 + choose.below(w.x1 - part.x0);
  part.y1 = part.y0 + 1 + choose.below(w.y1 - part.y0);
  return part;
}

// All laws together: the part is decoded by the plain code, and both were filled with something else before.
void check_laws(const Picture& whole, const Picture& part, jpeg::Window all, jpeg::Window w, size_t channels,
                int planes) {
  if (whole.status == jpeg::Status::Unsupported || part.status == jpeg::Status::Unsupported) {
    if (whole.status != part.status) broken_law("support does not depend on the window");
    return;
  }
  const size_t row = static_cast<size_t>(w.x1 - w.x0) * channels;
  const int high = w.y1 - w.y0;
  for (int i = 0; i < planes * high; ++i) {
    const int64_t y = i / high * (all.y1 - all.y0) + w.y0 + i % high;
    const size_t from = static_cast<size_t>(y * (all.x1 - all.x0) + w.x0) * channels;
    const uint8_t* got = part.pixels.get() + static_cast<size_t>(i) * row;
    if (std::memcmp(whole.pixels.get() + from, got, row) != 0) broken_law("a window equals the crop of the whole");
  }
}

// The damage check returns the status of decoding, and offsets of damage lie within the file.
void check_damage(const uint8_t* data, size_t size, const Picture* whole) {
  static Scratch scratch;
  const jpeg::Checked checked = jpeg::check(data, size, kManyPixels, 0, scratch);  // 0: any number of scans
  const jpeg::Damage& d = checked.damage;
  const bool is_damaged = d.wrong_codes || d.early_ends || d.wrong_restarts || d.extra_bytes;
  if (is_damaged && d.offset > size) broken_law("the offset of damage is in the file");
  if (whole && checked.status != whole->status) broken_law("the damage check returns the status of decoding");
}

void run(const uint8_t* data, size_t size) {
  ++counts.runs;
  jpeg::Info info;
  if (jpeg::has_unknown_marker(data, size)) ++counts.unknown_markers;
  if (!jpeg::parse(data, size, info)) return;
  ++counts.parsed;
  Choices choose(data, size);
  const int scale = choose.below(4) ? 0 : choose.below(4);
  const int limit = (choose.below(kLargeShare) ? kFewPixels : kManyPixels) << scale;
  const jpeg::Extent extent = jpeg::scaled_extent(info, scale);
  const jpeg::Window all{0, 0, std::min(extent.width, kWidest), std::clamp(limit / extent.width, 1, extent.height)};
  const auto format = static_cast<jpeg::Format>(choose.below(6));
  const bool checked = choose.below(kCheckedShare) == 0;
  const Isa isa = checked || choose.below(4) ? fast_isa(choose) : Isa::Plain;
  const Picture whole = decode(data, size, info, all, format, scale, isa, checked ? 0x55 : -1);
  ++counts.by_status[static_cast<int>(whole.status)];
  counts.decoded += whole.status != jpeg::Status::Unsupported;
  if (!checked) return;
  ++counts.checked;
  const bool small = static_cast<int64_t>(info.width) * info.height <= kManyPixels;
  // Gray leaves scans of colours alone; some models cannot be made of inks, which the look does not ask for.
  const bool all_of_it = scale == 0 && all.x1 == info.width && all.y1 == info.height && format != jpeg::Format::GRAY &&
                         whole.status != jpeg::Status::Unsupported;
  if (small) check_damage(data, size, all_of_it ? &whole : nullptr);
  const jpeg::Window w = part_of(all, choose);
  const Picture part = decode(data, size, info, w, format, scale, Isa::Plain, 0xAA);
  const bool planes = format == jpeg::Format::Planes;
  check_laws(whole, part, all, w, planes ? 1 : static_cast<size_t>(jpeg::channels(info, format)), planes ? 3 : 1);
}

}  // namespace

// libFuzzer gives a copy of exactly that size: the sanitizer guards both of its ends.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool registered = std::atexit(report) == 0;
  (void)registered;
  run(data, size);
  return 0;
}

#ifdef STOKER_FUZZ_STANDALONE
// jpeg_fuzz SECONDS SEED FILE...: mutates the files.
#include <chrono>
#include <fstream>
#include <iterator>
#include <random>

#include "kept_input.hpp"

using stoker::fuzz::current;
using stoker::fuzz::save_on_failure;

namespace {

using Bytes = std::vector<uint8_t>;

Bytes mutated(const std::vector<Bytes>& corpus, std::mt19937& random) {
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % std::max<size_t>(n, 1)); };
  Bytes data = corpus[below(corpus.size())];
  // Headers make a small part of most files and decide the most.
  const size_t span = below(4) ? data.size() : std::min<size_t>(data.size(), 700);
  for (size_t n = below(9); n > 0 && !data.empty(); --n) {
    const size_t at = below(std::min(span, data.size()));
    switch (below(8)) {
      case 0: data[at] = 0xFF; break;
      case 1: data[at] = static_cast<uint8_t>(data[at] ^ 1u << below(8)); break;
      case 2: data.insert(data.begin() + static_cast<ptrdiff_t>(at), static_cast<uint8_t>(below(256))); break;
      case 3: data.erase(data.begin() + static_cast<ptrdiff_t>(at)); break;
      case 4: {  // a piece of another file
        const Bytes& other = corpus[below(corpus.size())];
        const size_t from = below(other.size()), count = std::min(below(64), other.size() - from);
        data.insert(data.begin() + static_cast<ptrdiff_t>(at), other.begin() + static_cast<ptrdiff_t>(from),
                    other.begin() + static_cast<ptrdiff_t>(from + count));
        break;
      }
      case 5: {  // a marker
        data[at] = 0xFF;
        if (at + 1 < data.size()) data[at + 1] = static_cast<uint8_t>(0xC0 + below(0x20));
        break;
      }
      default: data[at] = static_cast<uint8_t>(below(256));
    }
  }
  if (below(8) == 0) data.resize(below(data.size() + 1));
  return data;
}

// In memory of exactly that size.
void run_exact(Bytes data) {
  current = std::move(data);
  current.shrink_to_fit();
  LLVMFuzzerTestOneInput(current.data(), current.size());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: jpeg_fuzz SECONDS SEED FILE...\n");
    return 2;
  }
  save_on_failure("crash.jpg", report);
  std::vector<Bytes> corpus;
  for (int i = 3; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  std::mt19937 random(static_cast<unsigned>(std::atoi(argv[2])));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::atoi(argv[1]));
  for (const Bytes& file : corpus) run_exact(file);
  while (std::chrono::steady_clock::now() < end)
    for (int i = 0; i < 100; ++i) run_exact(mutated(corpus, random));
  return 0;
}
#endif
