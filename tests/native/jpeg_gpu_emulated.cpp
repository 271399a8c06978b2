// SPDX-License-Identifier: Apache-2.0
// The GPU JPEG decoder on the emulation: jpeg_gpu_emulated CASES. Every allocation has exactly the requested size and is
// filled with noise, so that a sanitizer detects every access out of bounds.
#define STOKER_EMULATION "cuda_emulation.hpp"
#include "device/jpeg.cuh"
#include "jpeg_gpu_cases.hpp"

namespace stoker::jpeg::gpu {
namespace {

using stoker::gpu::Address;
using stoker::gpu::emulation;

template <typename... T, size_t... I>
void call(void (*kernel)(T...), const uint64_t* arguments, std::index_sequence<I...>) {
  kernel(static_cast<T>(arguments[I])...);
}

template <auto kKernel, typename... T>
void invoke(void (*)(T...), const uint64_t* arguments) {
  call<T...>(kKernel, arguments, std::make_index_sequence<sizeof...(T)>());
}

using Invoke = void (*)(const uint64_t*);
template <auto kKernel>
constexpr Invoke kInvoke = [](const uint64_t* arguments) { invoke<kKernel>(kKernel, arguments); };

const Invoke kKernels[] = {kInvoke<stoker_jpeg_unstuff>, kInvoke<stoker_jpeg_clear>,
                           kInvoke<stoker_jpeg_entropy>, kInvoke<stoker_jpeg_prepare>,
                           kInvoke<stoker_jpeg_guess>,   kInvoke<stoker_jpeg_synchronise>,
                           kInvoke<stoker_jpeg_write>,   kInvoke<stoker_jpeg_transform>};
const Invoke kPixelKernels[] = {kInvoke<stoker_jpeg_pixels>, kInvoke<stoker_jpeg_pixels_u16>,
                                kInvoke<stoker_jpeg_pixels_f32>};

Functions functions(size_t element) {
  Functions all;
  const auto make = [](const std::string& name, Invoke kernel) {
    return std::make_shared<stoker::gpu::Function>(stoker::gpu::Function{name, reinterpret_cast<void*>(kernel)});
  };
  for (size_t i = 0; i + 1 < all.size(); ++i) all[i] = make(kFunctionNames[i], kKernels[i]);
  all.back() = make(std::string(kFunctionNames.back()) + kElementTypes[element].suffix, kPixelKernels[element]);
  return all;
}

class EmulatedBatch : public TestBatch {
 public:
  EmulatedBatch(int64_t rows, size_t slot_bytes, size_t most_scratch)
      : TestBatch(rows, slot_bytes), most_scratch_(most_scratch) {}
  Address device_slots() const override { return reinterpret_cast<Address>(slots()); }
  Address scratch(size_t bytes) override {
    if (most_scratch_ && bytes > most_scratch_) {
      std::fprintf(stderr, "%zu bytes of scratch memory, more than %zu\n", bytes, most_scratch_);
      std::exit(3);
    }
    uint8_t* const p = piece(bytes);
    for (size_t i = 0; i < bytes; ++i) p[i] = static_cast<uint8_t>(emulation().random());
    return reinterpret_cast<Address>(p);
  }
  uint8_t* allocate_host(size_t bytes) override { return reinterpret_cast<uint8_t*>(scratch(bytes)); }
  Address allocate_device(size_t bytes) override { return scratch(bytes); }
  Address device_address(const uint8_t* host) const override { return reinterpret_cast<Address>(host); }
  uint8_t* upload(size_t bytes, Address* device) override {
    uint8_t* const p = piece(bytes);
    *device = reinterpret_cast<Address>(p);
    return p;
  }
  Address report(size_t bytes) override {
    if (report_.empty()) report_.resize(bytes / 4);
    if (report_.size() != bytes / 4) std::abort();
    return reinterpret_cast<Address>(report_.data());
  }
  void launch(const stoker::gpu::Launch& l) override {
    const Invoke kernel = reinterpret_cast<Invoke>(l.function->handle);
    emulation().run([&] { kernel(l.argument); }, l.grid[0], l.block[0]);
  }
  const uint8_t* reported() const { return reinterpret_cast<const uint8_t*>(report_.data()); }

 private:
  struct Free {
    void operator()(uint8_t* p) const { std::free(p); }
  };
  uint8_t* piece(size_t bytes) {
    void* p = nullptr;
    if (posix_memalign(&p, 256, std::max<size_t>(bytes, 1))) std::abort();
    return pieces_.emplace_back(static_cast<uint8_t*>(p)).get();
  }
  std::vector<std::unique_ptr<uint8_t, Free>> pieces_;
  std::vector<uint32_t> report_;
  const size_t most_scratch_;
};

constexpr uint8_t kUntouched = 0xC3;

// Changes to the entries of an index before the last pass; `Batch.spoil` in Python. Packed: bytes of the format on
// disk. Forged: states and sums of DC, with a matching seal. Forged entries may change pixels, and nothing else.
enum Spoil : uint32_t { kNothing, kChecksums, kStates, kSums, kBit, kBytes, kExchanged, kPacked, kForged };

// Index whose memory tests may damage.
struct Entries {
  const BatchCase& head;

  std::shared_ptr<Index> index() const {
    if (head.index_bytes == 0) return nullptr;
    const auto allocate = [](size_t bytes) { return reinterpret_cast<Address>(new uint8_t[bytes]); };
    const auto release = [](Address a) { delete[] reinterpret_cast<uint8_t*>(a); };
    return std::make_shared<Index>(head.index_bytes, allocate, release, head.piece_bytes);
  }
  // The index, or its replacement.
  std::shared_ptr<Index> spoil(std::shared_ptr<Index> index) const {
    if (head.spoil == kPacked) return by_disk(*index);
    const KnownFile* before = nullptr;
    for (size_t i = 0; i < index->slots(); ++i) {
      const KnownFile& file = index->file(i);
      IndexEntry& entry = *reinterpret_cast<IndexEntry*>(file.entry);
      spoil(static_cast<Spoil>(head.spoil), entry, file.pieces);
      if (head.spoil == kForged) entry.seal = part_of_seal(entry, file.pieces, 0, 1, file.seed);
      if (head.spoil == kExchanged && before && before->pieces == file.pieces) {
        uint8_t* const bytes = reinterpret_cast<uint8_t*>(&entry);
        std::swap_ranges(bytes, bytes + IndexEntry::bytes_of(file.pieces), reinterpret_cast<uint8_t*>(before->entry));
      }
      before = &file;
    }
    return index;
  }

 private:
  // An entry from a folder that was forged, with the right digests.
  std::shared_ptr<Index> by_disk(const Index& from) const {
    std::string bytes = from.packed(0, from.slots(), [](uint8_t* to, Address at, size_t size) {
      std::memcpy(to, reinterpret_cast<const uint8_t*>(at), size);
    });
    for (size_t k = bytes.empty() ? 0 : random() % 8; k > 0; --k) {
      const size_t record = random() % 2 ? bytes.size() : std::min<size_t>(bytes.size(), 1024);  // has no more bytes
      bytes[random() % record] ^= static_cast<char>(1 << random() % 8);
    }
    std::shared_ptr<Index> to = index();
    try {
      to->unpack(bytes, [](Address at, const uint8_t* data, size_t size) {
        std::memcpy(reinterpret_cast<uint8_t*>(at), data, size);
      });
    } catch (const std::invalid_argument&) {  // it is not used, as it must not
    }
    return to;
  }

  static uint32_t random() { return static_cast<uint32_t>(emulation().random()); }

  static void spoil(Spoil how, IndexEntry& entry, uint32_t pieces) {
    uint8_t* const bytes = reinterpret_cast<uint8_t*>(&entry);
    const uint64_t size = IndexEntry::bytes_of(pieces);
    PieceStart* const end = entry.at + kIndexSubsequences * pieces;
    if (how == kChecksums) {
      ++entry.checksum.high;
      for (Checksum& sum : entry.chunk) ++sum.low;
    } else if (how == kStates || how == kForged) {
      for (PieceStart* at = entry.at; at < end; ++at) {
        at->state = static_cast<uint16_t>(random());
        at->blocks ^= random() >> random() % 32;
      }
      if (how == kForged) spoil(kSums, entry, pieces);
    } else if (how == kSums) {
      for (PieceStart* at = entry.at; at < end; ++at)
        at->dc[random() % kMaxPlanes] ^= static_cast<int16_t>(1 + random() % 0x7FFF);
    } else if (how == kBit) {
      bytes[random() % size] ^= static_cast<uint8_t>(1 << random() % 8);
    } else if (how == kBytes) {
      for (uint32_t k = 1 + random() % 32; k > 0; --k)
        bytes[random() % size] ^= static_cast<uint8_t>(1 + random() % 255);
    }
  }
};

// Runs one pass over a batch. `loud`: print the outcome of each row.
bool run_pass(TestCase& c, const stoker::gpu::Kernel& kernel, Index* index, bool loud) {
  std::vector<std::vector<uint8_t>> files(c.rows.size()), out(c.rows.size());
  std::vector<Homes> homes;
  for (size_t i = 0; i < c.rows.size(); ++i) {
    TestRow& row = c.rows[i];
    read_in_part(row, c, index);
    const int64_t size = size_of(c.dtype());
    const size_t offset = emulation().random() % 16, gap = emulation().random() % 8 * static_cast<size_t>(size);
    files[i].resize(offset + row.file.size());
    std::copy(row.file.begin(), row.file.end(), files[i].begin() + static_cast<std::ptrdiff_t>(offset));
    const int64_t pitch = row.width * row.channels * size + static_cast<int64_t>(gap);
    out[i].assign(static_cast<size_t>(pitch * row.height) + gap, kUntouched);
    homes.push_back(
        {reinterpret_cast<Address>(files[i].data() + offset), reinterpret_cast<Address>(out[i].data() + gap), pitch});
  }
  EmulatedBatch batch(static_cast<int64_t>(c.rows.size()), kernel.slot_bytes(), size_t{c.head.scratch_kb} << 10);
  describe_rows(kernel, c, homes, batch);
  kernel.launch(batch);
  bool good = true;
  for (size_t i = 0; i < c.rows.size(); ++i) {
    uint32_t status = 0;
    if (batch.reported()) std::memcpy(&status, batch.reported() + 4 * i, 4);
    const bool active = batch.active(static_cast<int64_t>(i));
    if (batch.reported() && active) {
      const auto verdict = kernel.judge(batch.reported(), static_cast<int64_t>(i), batch.slot(i), nullptr);
      good &= (verdict == stoker::gpu::Verdict::Good) == ((status & kFailures) == 0);
    }
    const uint8_t* const pixels = reinterpret_cast<const uint8_t*>(homes[i].out);
    const bool known = active && reinterpret_cast<const Row*>(batch.slot(i))->known;
    good &= report_row(c, i, active, status, known, pixels, homes[i].pitch, !loud, loud && c.head.spoil == kForged);
    const int64_t line = c.rows[i].width * c.rows[i].channels * size_of(c.dtype());
    for (size_t k = 0; k < out[i].size(); ++k) {
      const int64_t at = static_cast<int64_t>(k) - (pixels - out[i].data());
      if ((at < 0 || at % homes[i].pitch >= line) && out[i][k] != kUntouched) {
        std::printf("row %zu: written outside of the window\n", i);
        good = false;
      }
    }
  }
  return good;
}

bool run_case(TestCase& c) {
  emulation().random.seed(c.head.seed);
  const Entries entries{c.head};
  std::shared_ptr<Index> index = entries.index();
  bool good = true;
  for (uint32_t pass = 1; pass <= c.head.passes; ++pass) {
    if (pass == c.head.passes && index) index = entries.spoil(index);
    const auto kernel = make_decode(c.head.adjust != 0, c.format(), functions(c.head.element), c.settings(),
                                    static_cast<int>(c.head.scale_log2), index, c.head.parts != 0);
    good &= run_pass(c, *kernel, index.get(), pass == c.head.passes);
  }
  return good;
}

}  // namespace
}  // namespace stoker::jpeg::gpu

int main(int, char** argv) {
  bool good = true;
  for (auto& c : stoker::jpeg::gpu::read_cases(argv[1])) good &= stoker::jpeg::gpu::run_case(c);
  return good ? 0 : 1;
}
