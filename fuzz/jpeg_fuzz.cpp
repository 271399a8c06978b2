// SPDX-License-Identifier: Apache-2.0
// Fuzzing of the JPEG decoder: for libFuzzer (LLVMFuzzerTestOneInput), or with its own mutations when built with
// STOKER_FUZZ_STANDALONE. Besides what the sanitizers see, two laws are checked: every instruction set gives the same
// pixels, and a window of an undamaged file is the same window of the whole.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "jpeg.hpp"
#include "simd.hpp"

namespace {

using namespace stoker;  // NOLINT: a program of one file

constexpr int64_t kMaxPixels = 1 << 13;  // small pictures reach the same code sooner

struct Counts {
  uint64_t runs = 0, parsed = 0, decoded = 0, by_status[4] = {};
} counts;

void report() {
  std::fprintf(stderr, "runs %llu, headers accepted %llu, entropy decoding reached %llu",
               static_cast<unsigned long long>(counts.runs), static_cast<unsigned long long>(counts.parsed),
               static_cast<unsigned long long>(counts.decoded));
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

struct Picture {
  jpeg::Status status;
  std::vector<uint8_t> pixels;
};

// Exact allocations, so that the sanitizer sees one byte too many.
Picture decode(const uint8_t* data, size_t size, const jpeg::Info& info, jpeg::Window w, jpeg::Format format, int scale,
               Isa isa) {
  static Scratch reused;
  Scratch fresh;
  isa_setting() = isa;
  const size_t row = static_cast<size_t>(w.x1 - w.x0) * static_cast<size_t>(jpeg::channels(info, format));
  Picture out{jpeg::Status::Ok, std::vector<uint8_t>(row * static_cast<size_t>(w.y1 - w.y0))};
  Scratch& scratch = isa == Isa::Plain ? fresh : reused;  // what an earlier file left must not matter
  const auto pitch = static_cast<ptrdiff_t>(row);
  out.status = jpeg::decode(data, size, info, w, format, out.pixels.data(), pitch, scratch, scale);
  return out;
}

void check_window(const Picture& whole, const Picture& part, jpeg::Extent extent, jpeg::Window w, size_t channels) {
  const size_t row = static_cast<size_t>(w.x1 - w.x0) * channels;
  for (int y = w.y0; y < w.y1; ++y) {
    const size_t from = static_cast<size_t>(int64_t{y} * extent.width + w.x0) * channels;
    const uint8_t* got = part.pixels.data() + static_cast<size_t>(y - w.y0) * row;
    if (std::memcmp(whole.pixels.data() + from, got, row) != 0) broken_law("a window equals the crop of the whole");
  }
}

void run(const uint8_t* data, size_t size) {
  ++counts.runs;
  jpeg::Info info;
  if (!jpeg::parse(data, size, info)) return;
  ++counts.parsed;
  Choices choose(data, size);
  const int scale = choose.below(3) ? 0 : choose.below(4);
  const jpeg::Extent extent = jpeg::scaled_extent(info, scale);
  if (int64_t{info.width} * info.height > kMaxPixels) return;
  const auto format = static_cast<jpeg::Format>(choose.below(5));
  const jpeg::Window all{0, 0, extent.width, extent.height};
  const Isa best = detect_isa();
  const Picture whole = decode(data, size, info, all, format, scale, best);
  ++counts.by_status[static_cast<int>(whole.status)];
  counts.decoded += whole.status != jpeg::Status::Unsupported;
  jpeg::Window w;
  w.x0 = choose.below(extent.width);
  w.y0 = choose.below(extent.height);
  w.x1 = w.x0 + 1 + choose.below(extent.width - w.x0);
  w.y1 = w.y0 + 1 + choose.below(extent.height - w.y0);
  const Picture part = decode(data, size, info, w, format, scale, Isa::Plain);
  if (whole.status == jpeg::Status::Unsupported || part.status == jpeg::Status::Unsupported) {
    if (whole.status != part.status) broken_law("support does not depend on the window");
    return;
  }
  // Both laws at once, as the part was decoded by the plain code.
  check_window(whole, part, extent, w, static_cast<size_t>(jpeg::channels(info, format)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool registered = std::atexit(report) == 0;
  (void)registered;
  // A copy of exactly that size: the sanitizer guards both of its ends.
  std::unique_ptr<uint8_t[]> copy(new uint8_t[size]);
  if (size) std::memcpy(copy.get(), data, size);
  run(copy.get(), size);
  return 0;
}

#ifdef STOKER_FUZZ_STANDALONE
// jpeg_fuzz SECONDS SEED FILE...: mutates the files.
#include <csignal>
#include <chrono>
#include <fstream>
#include <iterator>
#include <random>

extern "C" void __sanitizer_set_death_callback(void (*)());

namespace {

using Bytes = std::vector<uint8_t>;

Bytes current;

// Keeps the input that ended the run.
void save_current() {
  std::ofstream("crash.jpg", std::ios::binary)
      .write(reinterpret_cast<const char*>(current.data()), static_cast<std::streamsize>(current.size()));
  std::fprintf(stderr, "the input is in crash.jpg\n");
  report();
}

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

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: jpeg_fuzz SECONDS SEED FILE...\n");
    return 2;
  }
  __sanitizer_set_death_callback(save_current);
  std::signal(SIGABRT, [](int) { save_current(), std::_Exit(1); });
  std::vector<Bytes> corpus;
  for (int i = 3; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  std::mt19937 random(static_cast<unsigned>(std::atoi(argv[2])));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::atoi(argv[1]));
  for (const Bytes& file : corpus) LLVMFuzzerTestOneInput(file.data(), file.size());
  while (std::chrono::steady_clock::now() < end) {
    for (int i = 0; i < 100; ++i) {
      current = mutated(corpus, random);
      LLVMFuzzerTestOneInput(current.data(), current.size());
    }
  }
  return 0;
}
#endif
