// SPDX-License-Identifier: Apache-2.0
// Fuzzing of the parsers of container files: for libFuzzer (LLVMFuzzerTestOneInput), or with its own mutations when built
// with STOKER_FUZZ_STANDALONE. All parsers read every input. In addition to the sanitizers' checks, these laws hold:
// ranges of records ascend without overlap; a damaged file's last range reaches its end; what a scan finds can be read;
// counts of values are the numbers of values that are copied; every instruction set has the same checksum; polygons that
// are painted part by part are those of the whole, in bounded memory; both forms of the decompression of LZ4 agree.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/scratch.hpp"
#include "base/simd.hpp"
#include "container/crc32c.hpp"
#include "container/datum.hpp"
#include "container/example.hpp"
#include "container/fields.hpp"
#include "container/frames.hpp"
#include "container/group.hpp"
#include "container/lz4.hpp"
#include "container/masks.hpp"
#include "container/npy_region.hpp"
#include "container/scan.hpp"

namespace {

using namespace stoker;  // NOLINT: a program of one file

struct Counts {
  uint64_t runs = 0, records = 0, members = 0, joined = 0, features = 0, masks = 0, zipped = 0, values = 0, fields = 0,
           blocks = 0, polygons = 0, regions = 0, padded = 0, labels = 0;
} counts;

void report() {
  const auto n = [](uint64_t x) { return static_cast<unsigned long long>(x); };
  std::fprintf(
      stderr,
      "runs %llu, records %llu, members %llu, joined %llu, features %llu, masks %llu, zipped %llu, values %llu, "
      "fields %llu, blocks %llu, polygons %llu, regions %llu, padded %llu, labels %llu\n",
      n(counts.runs), n(counts.records), n(counts.members), n(counts.joined), n(counts.features), n(counts.masks),
      n(counts.zipped), n(counts.values), n(counts.fields), n(counts.blocks), n(counts.polygons), n(counts.regions),
      n(counts.padded), n(counts.labels));
}

[[noreturn]] void broken_law(const char* law) {
  std::fprintf(stderr, "broken law: %s\n", law);
  std::abort();
}

void require(bool holds, const char* law) {
  if (!holds) broken_law(law);
}

void check_order(const Spans& records, uint64_t begin) {
  uint64_t end = begin;
  for (size_t i = 0; i < records.size(); ++i) {
    require(records.offset[i] >= end, "ranges ascend without overlap");
    require(records.length[i] <= kMaxBytes + 16, "ranges have possible lengths");
    end = records.offset[i] + records.length[i];
  }
}

void check_values(ByteSpan record) {
  for (const char* name : {"i", "f", "s", ""}) {
    Feature found;
    if (!find_feature(record, name, found)) continue;
    require(found.count <= record.size, "a value takes at least a byte");
    if (found.kind == FeatureKind::Bytes && found.count > 0)
      require(found.first.data >= record.data && found.first.data + found.first.size <= record.data + record.size,
              "bytes lie in the record");
    // In memory of exactly this size. A value that is not written keeps a pattern that few values have.
    constexpr int64_t kPattern = 0x5A17C0DE5A17C0DE;
    if (found.kind == FeatureKind::Ints) {
      const std::unique_ptr<int64_t[]> a(new int64_t[found.count]), b(new int64_t[found.count]);
      std::fill_n(a.get(), found.count, kPattern);
      std::fill_n(b.get(), found.count, ~kPattern);
      copy_values(found, a.get(), found.count);
      copy_values(found, b.get(), found.count);
      require(std::equal(a.get(), a.get() + found.count, b.get()), "every value is written");
    } else if (found.kind == FeatureKind::Floats) {
      const std::unique_ptr<float[]> a(new float[found.count]), b(new float[found.count]);
      std::memset(a.get(), 0x5A, 4 * found.count);
      std::memset(b.get(), 0xA5, 4 * found.count);
      copy_values(found, a.get(), found.count);
      copy_values(found, b.get(), found.count);
      require(std::memcmp(a.get(), b.get(), 4 * found.count) == 0, "every value is written");
    }
    ++counts.features;
  }
}

void run_tfrecord(const uint8_t* data, size_t size) {
  MemorySource file(data, size);
  Spans records;
  const Damage damage = scan_tfrecord(file, records);
  check_order(records, 0);
  require(damage.what.empty() || records.size() > 0, "a damaged file has a record for its rest");
  for (size_t i = 0; i < records.size(); ++i) {
    if (records.offset[i] + records.length[i] > size || records.length[i] < tfrecord::kFrame) continue;
    check_values({data + records.offset[i] + tfrecord::kHeader, records.length[i] - tfrecord::kFrame});
  }
  counts.records += records.size();
}

void run_recordio(const uint8_t* data, size_t size) {
  MemorySource file(data, size);
  Spans records;
  const Damage damage = scan_recordio(file, records);
  check_order(records, 0);
  for (size_t i = 0; i < records.size(); ++i) {
    const bool is_damaged = !damage.what.empty() && i + 1 == records.size();
    const uint64_t length = records.length[i];
    require(records.offset[i] + length <= size, "records lie in the file");
    if (length < recordio::kHeader) continue;
    const uint64_t bytes = length - recordio::kHeader;
    const std::unique_ptr<uint8_t[]> copy(new uint8_t[bytes]);
    if (bytes > 0) std::memcpy(copy.get(), data + records.offset[i] + recordio::kHeader, bytes);
    uint32_t part = 0, first = 0;
    if (!recordio::read_header(data + records.offset[i], part, first) || part != recordio::kFirst) continue;
    uint64_t joined = 0;
    const bool is_whole = recordio::join_parts(copy.get(), bytes, first, joined);
    require(is_whole || is_damaged, "a record that a scan finds can be joined");
    require(!is_whole || joined <= bytes, "a joined record is shorter than its parts");
    ++counts.joined;
  }
  counts.records += records.size();
}

void run_tar(const uint8_t* data, size_t size) {
  MemorySource file(data, size);
  Members members;
  scan_tar(file, members);
  check_order(members.data, 512);
  const auto names = static_cast<size_t>(std::count(members.names.begin(), members.names.end(), '\0'));
  require(names == members.data.size(), "every member has a name");
  const Samples samples = group_members(members.names, {{"jpg", "png"}, {"cls"}}, size % 2 == 0);
  require(samples.chosen.size() == 2 * samples.first.size(), "every sample has a member per output, or none");
  for (const int64_t member : samples.chosen)
    require(member >= -1 && member < static_cast<int64_t>(members.data.size()), "members exist");
  counts.members += members.data.size();
}

// Numbers that depend on the input alone.
class Numbers {
 public:
  Numbers(const uint8_t* data, size_t size) {
    for (size_t i = 0; i < size; ++i) state_ = (state_ ^ data[i]) * 0x100000001b3u;
  }
  uint64_t below(uint64_t n) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return (state_ >> 33) % n;
  }

 private:
  uint64_t state_ = 0xcbf29ce484222325u;
};

// A bound near an extent, as an index or a share of it; one in 16 is hostile.
double some_bound(Numbers& numbers, NpyRegion::Bound bound, int64_t extent) {
  static constexpr double kHostile[] = {NAN, INFINITY, -INFINITY, 1e15, -1e15, 9.99e14, 1e300, -0.0, 0.5, 4.5e9};
  if (numbers.below(16) == 0) return kHostile[numbers.below(std::size(kHostile))];
  const double near = static_cast<double>(numbers.below(static_cast<uint64_t>(std::min<int64_t>(extent, 1000)) + 5));
  const bool is_share = bound == NpyRegion::Bound::Relative || bound == NpyRegion::Bound::RelativeShape;
  const double index = numbers.below(4) == 0 ? near - 2 : near / (1.0 + static_cast<double>(numbers.below(3)));
  return is_share ? index / static_cast<double>(std::max<int64_t>(extent, 1)) : std::floor(index);
}

// Copy the region as the kernels do, in memory of exactly its size, and compare it with a walk over its indices.
void check_region(const uint8_t* data, const NpyHeader& header, Numbers& numbers) {
  NpyRegion rule;
  const auto item = static_cast<size_t>(size_of(header.dtype));
  rule.start = static_cast<NpyRegion::Bound>(numbers.below(3));
  rule.end = static_cast<NpyRegion::Bound>(numbers.below(5));
  rule.policy = static_cast<NpyRegion::Outside>(numbers.below(3));
  for (int axis = 0; axis < header.rank; ++axis)
    if (numbers.below(3) > 0) rule.axes.push_back(axis);
  for (size_t i = 0; i < item; ++i) rule.fill.push_back(static_cast<uint8_t>(0xA0 + i));
  std::vector<double> bounds;
  for (const NpyRegion::Bound bound : {rule.start, rule.end})
    for (const int axis : rule.axes)
      if (bound != NpyRegion::Bound::None) bounds.push_back(some_bound(numbers, bound, header.shape[axis]));
  require(bounds.size() == rule.bounds(), "every axis has its bounds");
  NpyPart part;
  std::string error;
  if (!find_npy_part(rule, bounds.data(), header, 1 << 16, part, error)) {
    require(!error.empty(), "a refused region has a reason");
    return;
  }
  require(part.is_empty || (part.offset >= header.data && part.bytes <= header.bytes &&
                            part.offset - header.data <= header.bytes - part.bytes),
          "rows lie in the array");
  const auto bytes = static_cast<size_t>(part.region_bytes);
  const std::unique_ptr<uint8_t[]> region(new uint8_t[bytes]());
  if (!part.is_inside) fill_npy_region(part, rule.fill, region.get());
  if (!part.is_empty) {
    const std::unique_ptr<uint8_t[]> own(part.is_direct ? nullptr : new uint8_t[part.bytes]);
    uint8_t* const rows = part.is_direct ? place_of_npy_rows(header, part, region.get()) : own.get();
    std::memcpy(rows, data + part.offset, part.bytes);
    put_npy_rows(header, part, rows, region.get());
  }
  int64_t index[kMaxRank] = {};
  for (size_t at = 0; at < bytes; at += item) {
    int64_t element = 0;
    bool is_inside = true;
    for (int k = 0; k < header.rank; ++k) {
      const int axis = header.is_fortran ? header.rank - 1 - k : k;  // the axis that runs fastest comes last
      const int64_t i = part.region_begin[axis] + index[axis];
      is_inside = is_inside && i >= 0 && i < header.shape[axis];
      if (is_inside) element = element * header.shape[axis] + i;
    }
    const uint8_t* const from = data + header.data + static_cast<size_t>(is_inside ? element : 0) * item;
    for (size_t b = 0; b < item; ++b) {
      const uint8_t wanted = !is_inside ? rule.fill[b] : from[header.is_swapped ? item - 1 - b : b];
      require(region[at + b] == wanted, "a region has the array's elements, and the given one outside");
    }
    counts.padded += !is_inside;
    for (int axis = header.rank - 1; axis >= 0 && ++index[axis] == part.region_extent[axis]; --axis) index[axis] = 0;
  }
  ++counts.regions;
}

void run_npy(const uint8_t* data, size_t size) {
  NpyHeader header;
  std::string error;
  if (!read_npy_header(data, size, header, error)) {
    require(!error.empty(), "a refused header has a reason");
    return;
  }
  require(header.data <= size && header.rank < kMaxRank, "a header lies in the file");
  int64_t bytes = size_of(header.dtype);
  for (int i = 0; i < header.rank; ++i) bytes *= header.shape[i];
  require(bytes >= 0 && static_cast<uint64_t>(bytes) == header.bytes, "the size is that of the elements");
  if (header.bytes > size || header.data > size - header.bytes) return;
  Numbers numbers(data, size);
  for (int i = 0; i < 4; ++i) check_region(data, header, numbers);
}

void run_zip(const uint8_t* data, size_t size) {
  MemorySource file(data, size);
  Members members;
  const Damage damage = scan_zip(file, members);
  if (!damage.what.empty()) return;
  const auto names = static_cast<size_t>(std::count(members.names.begin(), members.names.end(), '\0'));
  require(names == members.data.size(), "every member has a name");
  for (size_t i = 0; i < members.data.size(); ++i)
    require(members.data.offset[i] <= size && members.data.length[i] <= size - members.data.offset[i],
            "members lie in the archive");
  counts.zipped += members.data.size();
}

void run_lmdb(const uint8_t* data, size_t size) {
  MemorySource file(data, size);
  Spans values;
  scan_lmdb(file, values);
  require(values.size() <= size, "a value takes at least a byte of a page");
  for (size_t i = 0; i < values.size(); ++i)
    require(values.offset[i] <= size && values.length[i] <= size - values.offset[i], "values lie in the file");
  counts.values += values.size();
}

// Number of bytes that the sequences of an LZ4 block give, whatever their distances are; 0 if they do not end with
// the block.
size_t size_of_contents(ByteSpan block) {
  const uint8_t *at = block.data, *const end = at + block.size;
  const auto length = [&](size_t first) {
    for (bool more = first == 15; more && at < end; ++at) {
      first += *at;
      more = *at == 255;
    }
    return first;
  };
  size_t all = 0;
  while (at < end) {
    const uint8_t token = *at++;
    const size_t literals = length(token >> 4);
    if (literals > static_cast<size_t>(end - at)) return 0;
    at += literals;
    all += literals;
    if (at == end) return all;
    if (end - at < 2) return 0;
    at += 2;
    all += 4 + length(token & 15);
  }
  return 0;
}

// A block of LZ4, in memory of exactly its size, as are its contents: the size that it has and another one.
void run_lz4(const uint8_t* data, size_t size) {
  if (size == 0) return;
  const std::unique_ptr<uint8_t[]> block(new uint8_t[size - 1]);
  if (size > 1) std::memcpy(block.get(), data, size - 1);
  const ByteSpan given{block.get(), size - 1};
  const size_t other = data[size - 1], own = std::min<size_t>(size_of_contents(given), 1 << 20);
  for (const size_t bytes : {own, other < 128 ? other : own + other - 192}) {
    if (bytes > 1 << 21) continue;
    const std::unique_ptr<uint8_t[]> fast(new uint8_t[bytes]), plain(new uint8_t[bytes]);
    const bool is_good = decompress_lz4(given, fast.get(), bytes);
    require(is_good == decompress_lz4_plain(given, plain.get(), bytes), "both forms accept the same blocks");
    if (!is_good) continue;
    require(bytes == 0 || std::memcmp(fast.get(), plain.get(), bytes) == 0, "both forms give the same contents");
    ++counts.blocks;
  }
}

void run_parts(const uint8_t* data, size_t size) {
  const auto inside = [&](ByteSpan part) {
    return part.size == 0 || (part.data >= data && part.data + part.size <= data + size);
  };
  Datum datum;
  if (read_datum({data, size}, datum)) require(inside(datum.data), "an image lies in its record");
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{-1, 8, -1}, {4, -1}, {-1}})
    for (size_t field = 0; field < sizes.size(); ++field) {
      ByteSpan found;
      if (!find_field({data, size}, sizes, field, found)) continue;
      require(inside(found) && (sizes[field] < 0 || found.size == static_cast<uint64_t>(sizes[field])),
              "a field lies in its record");
      ++counts.fields;
    }
  uint64_t labels = 0;
  if (recordio::read_label_count(data, size, labels)) {
    require(recordio::kImageHeader + 4 * labels <= size, "labels lie in their record");
    ++counts.labels;
  }
  run_lz4(data, size);
}

// The input as the parts of a mask, in memory of exactly the image's size.
void run_masks(const uint8_t* data, size_t size) {
  const std::unique_ptr<int32_t[]> words(new int32_t[size / 4]);
  if (size >= 4) std::memcpy(words.get(), data, size / 4 * 4);
  const int64_t height = 1 + static_cast<int64_t>(size) % 19, width = 1 + static_cast<int64_t>(size) / 19 % 23;
  const std::unique_ptr<int32_t[]> pixels(new int32_t[static_cast<size_t>(height * width)]());
  static Scratch work;
  const bool is_right = paint_parts(words.get(), static_cast<int64_t>(size / 4), {pixels.get(), height, width}, work);
  counts.masks += is_right && size >= 16;
}

// The input as the corners of a polygon. An image that is painted part by part, or with another type, is the same.
void run_polygon(const uint8_t* data, size_t size) {
  const auto count = static_cast<int64_t>(size / 8);
  const std::unique_ptr<float[]> corners(new float[static_cast<size_t>(2 * count)]);
  if (count > 0) std::memcpy(corners.get(), data, static_cast<size_t>(8 * count));
  const int64_t height = 1 + static_cast<int64_t>(size) % 23, width = 1 + static_cast<int64_t>(size) % 61;
  const auto pixels = static_cast<size_t>(height * width);
  const std::unique_ptr<int32_t[]> whole(new int32_t[pixels]());
  Scratch work;
  const bool is_right = paint_polygon<int32_t>(corners.get(), count, 1, {whole.get(), height, width}, work);
  bool is_possible = true;
  for (int64_t i = 0; i < 2 * count; ++i)
    is_possible &=
        corners[static_cast<size_t>(i)] >= -kMaxCoordinate && corners[static_cast<size_t>(i)] <= kMaxCoordinate;
  require(is_right == is_possible, "coordinates are numbers within the limits");
  require(std::all_of(whole.get(), whole.get() + pixels, [](int32_t p) { return p == 0 || p == 1; }),
          "pixels are painted once");
  for (const int64_t most : {int64_t{1}, 2 * count, 7 * count}) {
    const std::unique_ptr<uint8_t[]> parts(new uint8_t[pixels]());
    Scratch little;
    paint_polygon<uint8_t>(corners.get(), count, 1, {parts.get(), height, width}, little, most);
    require(little.capacity() <= std::max<size_t>(4096, 32 * static_cast<size_t>(std::max(most, count))),
            "the memory of crossings is bounded");
    require(std::equal(parts.get(), parts.get() + pixels, whole.get()), "parts of an image are those of the whole");
  }
  counts.polygons += is_right && std::any_of(whole.get(), whole.get() + pixels, [](int32_t p) { return p == 1; });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (counts.runs++ == 0) std::atexit(report);
  run_tfrecord(data, size);
  run_recordio(data, size);
  run_tar(data, size);
  run_npy(data, size);
  run_zip(data, size);
  run_lmdb(data, size);
  run_parts(data, size);
  run_masks(data, size);
  run_polygon(data, size);
  check_values({data, size});
  if (counts.runs % 16 == 0) {
    const Isa before = isa();
    const uint32_t fast = crc32c(data, size);
    isa_setting() = Isa::Plain;
    require(crc32c(data, size) == fast, "every instruction set has the same checksum");
    isa_setting() = before;
  }
  return 0;
}

#ifdef STOKER_FUZZ_STANDALONE
// container_fuzz SECONDS SEED FILE...: mutates the files. Checksums are corrected in most inputs, so that the parsers
// reach the bytes after them.
#include <chrono>
#include <fstream>
#include <iterator>
#include <random>

#include "kept_input.hpp"

using stoker::fuzz::current;
using stoker::fuzz::save_on_failure;

namespace {

using Bytes = std::vector<uint8_t>;

void correct_tar(Bytes& data) {
  for (size_t at = 0; at + 512 <= data.size(); at += 512) {
    if (std::memcmp(data.data() + at + 257, "ustar", 5) != 0) continue;
    unsigned sum = 8 * ' ';
    for (size_t i = 0; i < 512; ++i) sum += i < 148 || i >= 156 ? data[at + i] : 0u;
    std::snprintf(reinterpret_cast<char*>(data.data()) + at + 148, 8, "%06o", sum);
  }
}

void correct_tfrecord(Bytes& data) {
  for (uint64_t at = 0; at + tfrecord::kHeader <= data.size();) {
    const uint32_t crc = masked_crc(crc32c(data.data() + at, 8));
    std::memcpy(data.data() + at + 8, &crc, sizeof crc);
    const uint64_t length = load_little<uint64_t>(data.data() + at);
    if (length > data.size()) return;
    at += length + tfrecord::kFrame;
  }
}

Bytes mutated(const std::vector<Bytes>& corpus, std::mt19937& random) {
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % std::max<size_t>(n, 1)); };
  Bytes data = corpus[below(corpus.size())];
  for (size_t n = below(9); n > 0 && !data.empty(); --n) {
    const size_t at = below(data.size());
    switch (below(8)) {
      case 0: data[at] = 0xFF; break;
      case 1: data[at] = static_cast<uint8_t>(data[at] ^ 1u << below(8)); break;
      case 2: data.insert(data.begin() + static_cast<ptrdiff_t>(at), static_cast<uint8_t>(below(256))); break;
      case 3: data.erase(data.begin() + static_cast<ptrdiff_t>(at)); break;
      case 4: {  // a piece of another file
        const Bytes& other = corpus[below(corpus.size())];
        const size_t from = below(other.size()), count = std::min(below(600), other.size() - from);
        data.insert(data.begin() + static_cast<ptrdiff_t>(at), other.begin() + static_cast<ptrdiff_t>(from),
                    other.begin() + static_cast<ptrdiff_t>(from + count));
        break;
      }
      case 5: data[at] = static_cast<uint8_t>("0123456789 LKxgS=/.\n"[below(20)]); break;
      default: data[at] = static_cast<uint8_t>(below(256));
    }
  }
  if (below(8) == 0) data.resize(below(data.size() + 1));
  if (below(8) != 0) correct_tar(data);
  if (below(8) == 0) correct_tfrecord(data);
  return data;
}

// In memory of exactly that size.
void run_exact(const Bytes& data) {
  current = data;
  const std::unique_ptr<uint8_t[]> exact(new uint8_t[data.size()]);
  std::copy(data.begin(), data.end(), exact.get());
  LLVMFuzzerTestOneInput(exact.get(), data.size());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: container_fuzz SECONDS SEED FILE...\n");
    return 2;
  }
  save_on_failure("crash.container", report);
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
