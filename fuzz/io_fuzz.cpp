// SPDX-License-Identifier: Apache-2.0
// Fuzzing of manifests (io/manifest.hpp) and of cached blocks of remote objects (io/kept_blocks.hpp): for libFuzzer
// (LLVMFuzzerTestOneInput), or with random inputs if built with STOKER_FUZZ_STANDALONE. The input decides about sizes,
// ranges, contents and damage. In addition to the sanitizers' checks, these laws hold: bytes that are read are those that
// were stored; undamaged files are read; a hostile table of shards is refused, or each of its samples has a shard and a
// range that is possible, or an error with a reason.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/scratch.hpp"
#include "container/crc32c.hpp"
#include "container/frames.hpp"
#include "io/file_version.hpp"
#include "io/kept_blocks.hpp"
#include "io/kept_shards.hpp"
#include "io/manifest.hpp"

namespace {

using namespace stoker;  // NOLINT: a program of one file
using Bytes = std::vector<uint8_t>;

struct Counts {
  uint64_t runs = 0, kept = 0, missing = 0, tables = 0, refused = 0, records = 0, faults = 0;
} counts;

void report() {
  const auto n = [](uint64_t x) { return static_cast<unsigned long long>(x); };
  std::fprintf(stderr, "runs %llu, kept %llu, missing %llu, tables %llu, refused %llu, records %llu, faults %llu\n",
               n(counts.runs), n(counts.kept), n(counts.missing), n(counts.tables), n(counts.refused),
               n(counts.records), n(counts.faults));
}

void require(bool holds, const char* law) {
  if (holds) return;
  std::fprintf(stderr, "broken law: %s\n", law);
  std::abort();
}

// Numbers from the input, zeros after its end.
class Numbers {
 public:
  Numbers(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  uint8_t byte() { return at_ < size_ ? data_[at_++] : 0; }
  uint64_t below(uint64_t n) { return n <= 256 ? byte() % n : (byte() | byte() << 8 | byte() << 16) % n; }
  uint64_t word() {
    uint64_t all = 0;
    for (int i = 0; i < 8; ++i) all = all << 8 | byte();
    return all;
  }
  Bytes bytes(size_t count) {
    Bytes found(count);
    for (uint8_t& b : found) b = byte();
    return found;
  }

 private:
  const uint8_t* data_;
  size_t size_, at_ = 0;
};

// A folder of this process in memory, if the system has such a file system.
class Folder {
 public:
  Folder() {
    char name[] = "/dev/shm/stoker-fuzz-XXXXXX", other[] = "/tmp/stoker-fuzz-XXXXXX";
    const char* found = ::mkdtemp(name);
    if (found == nullptr) found = ::mkdtemp(other);
    require(found != nullptr, "a folder can be made");
    path_ = std::string(found) + "/";
  }
  // A process that aborts leaves its files, which are those of the finding.
  ~Folder() {
    for (const std::string& name : names_) ::unlink((path_ + name).c_str());
    ::rmdir(path_.c_str());
  }
  const std::string& path() const { return path_; }
  void write(const std::string& name, const Bytes& content) {
    if (std::find(names_.begin(), names_.end(), name) == names_.end()) names_.push_back(name);
    std::FILE* const file = std::fopen((path_ + name).c_str(), "wb");
    require(file != nullptr, "a file can be written");
    if (!content.empty()) std::fwrite(content.data(), 1, content.size(), file);
    std::fclose(file);
  }
  void remove(const std::string& name) { ::unlink((path_ + name).c_str()); }

 private:
  std::string path_;
  std::vector<std::string> names_;
};

Folder& folder() {
  static Folder one;
  return one;
}

void put_word(Bytes& to, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) to.push_back(static_cast<uint8_t>(value >> (8 * i)));
}

// Memory of exactly the size that is requested.
class Exact final : public BufferAllocator {
 public:
  uint8_t* get(size_t bytes) override {
    require(bytes <= 1 << 20, "a record has no more bytes than its file");
    memory_.reset(new uint8_t[bytes]);
    return memory_.get();
  }

 private:
  std::unique_ptr<uint8_t[]> memory_;
};

// Write a TFRecord with its frame at `at`. One in eight has another length, one in eight another checksum.
void put_frame(Numbers& numbers, Bytes& object, size_t at, size_t bytes) {
  Bytes frame;
  put_word(frame, bytes + (numbers.below(8) == 0 ? 1 : 0), 8);
  put_word(frame, masked_crc(crc32c(frame.data(), 8)), 4);
  std::copy(frame.begin(), frame.end(), object.begin() + static_cast<ptrdiff_t>(at));
  const size_t data = at + tfrecord::kHeader;
  frame.clear();
  put_word(frame, masked_crc(crc32c(object.data() + data, bytes)) ^ (numbers.below(8) == 0 ? 1u : 0u), 4);
  std::copy(frame.begin(), frame.end(), object.begin() + static_cast<ptrdiff_t>(data + bytes));
}

// Write the header of a record of RecordIO at the begin of a range, and in half of the cases that of a last part.
void put_parts(Numbers& numbers, Bytes& object, const Range& range) {
  if (range.length < recordio::kHeader) return;
  const uint64_t rest = range.length - recordio::kHeader;
  const uint64_t first = numbers.below(rest + 1), next = recordio::kHeader + recordio::padded(first);
  const bool is_joined = numbers.below(2) == 0;
  const auto put = [&](uint64_t at, uint32_t part, uint64_t length) {
    Bytes header;
    put_word(header, recordio::kMagic, 4);
    put_word(header, part << 29 | length, 4);
    std::copy(header.begin(), header.end(), object.begin() + static_cast<ptrdiff_t>(range.offset + at));
  };
  put(0, is_joined ? recordio::kFirst : recordio::kWhole, first);
  if (is_joined && next <= range.length && range.length - next >= recordio::kHeader)
    put(next, recordio::kLast, numbers.below(range.length - next - recordio::kHeader + 2));
}

// Damage a block's file. Return false if it is left as it is.
bool damage(Numbers& numbers, const std::string& name, Bytes content) {
  switch (numbers.below(40)) {
    case 0: folder().remove(name); return true;
    case 1: content.resize(numbers.below(content.size() + 1)); break;
    case 2: content.push_back(numbers.byte()); break;
    case 3: content[numbers.below(content.size())] ^= static_cast<uint8_t>(1 + numbers.below(255)); break;
    default: return false;
  }
  folder().write(name, content);
  return true;
}

void run_kept(Numbers& numbers) {
  const uint64_t piece = 1 + (numbers.below(4) == 0 ? numbers.below(KeptBlocks::kMaxPiece) : numbers.below(200));
  const uint64_t block_bytes = 1 + numbers.below(600);
  Bytes object = numbers.bytes(numbers.below(2000));
  const bool is_recordio = numbers.below(3) == 0;
  const bool is_framed = !is_recordio && object.size() >= tfrecord::kFrame && numbers.below(2) == 0;
  Range range{0, 0, 0, Codec::Stored};
  range.offset = numbers.below(object.size() + 1);
  range.length = numbers.below(object.size() - range.offset + 1);
  if (is_framed) {
    range.codec = numbers.below(2) == 0 ? Codec::TfRecord : Codec::TfRecordUnchecked;
    if (range.length >= tfrecord::kFrame) put_frame(numbers, object, range.offset, range.length - tfrecord::kFrame);
  } else if (is_recordio) {
    range.codec = Codec::RecordIo;
    put_parts(numbers, object, range);
  } else if (numbers.below(16) == 0) {
    range.codec = Codec::Absent;
  }
  bool is_damaged = false;
  for (uint64_t begin = 0, block = 0; begin < object.size(); begin += block_bytes, ++block) {
    const uint64_t count = std::min<uint64_t>(block_bytes, object.size() - begin);
    Bytes content(object.begin() + static_cast<ptrdiff_t>(begin),
                  object.begin() + static_cast<ptrdiff_t>(begin + count));
    for (uint64_t at = 0; at < count; at += piece)
      put_word(content, crc32c(object.data() + begin + at, std::min(piece, count - at)), 4);
    const std::string name = "block-" + std::to_string(block);
    folder().write(name, content);
    is_damaged = damage(numbers, name, std::move(content)) || is_damaged;
  }
  PackedRanges ranges;
  ranges.add(range);
  const KeptBlocks blocks({{folder().path() + "block-", object.size()}}, std::move(ranges), block_bytes, piece);
  uint64_t bytes = 0, count = 0;
  std::string error;
  require(blocks.find_bytes(0, bytes, error), "ranges in memory are found");
  require(bytes <= std::max<uint64_t>(object.size(), KeptBlocks::kCount), "a record is not larger than its object");
  const std::unique_ptr<uint8_t[]> to(new uint8_t[bytes]);
  require(!blocks.read(0, to.get(), bytes + 1), "memory of another size is refused");
  if (!blocks.read(0, to.get(), bytes)) {
    ++counts.missing;
    require(is_damaged || is_framed || is_recordio, "a range of blocks without damage is read");
    return;
  }
  ++counts.kept;
  if (range.codec == Codec::Absent || range.length == 0) return;
  if (is_recordio) {
    std::memcpy(&count, to.get(), sizeof count);
    require(count <= bytes - KeptBlocks::kCount, "a record has no more bytes than its parts");
    return;
  }
  const uint64_t data = range.offset + (is_framed ? tfrecord::kHeader : 0);
  require(std::equal(to.get(), to.get() + bytes, object.begin() + static_cast<ptrdiff_t>(data)),
          "the bytes are those of the object");
}

// Return a tag for the file of the shard: one that it fits, or another one.
std::string tag_of(Numbers& numbers, const Bytes& shard, bool is_other) {
  const std::string path = folder().path() + "shard";
  const OpenFile file(path);
  FileState now;
  FileVersion version, parsed;
  std::string error;
  require(find_state(file, now) && static_cast<size_t>(now.size) == shard.size() &&
              sampled_checksum(file, shard.size(), path, version.checksum, error),
          "a file has a version");
  require(version.checksum == crc32c(shard.data(), shard.size()), "small files are compared as a whole");
  version.mtime_ns = now.mtime_ns;
  require(FileVersion::parse(version.text(), parsed) && parsed.mtime_ns == version.mtime_ns &&
              parsed.checksum == version.checksum,
          "a version has a text");
  const uint64_t form = numbers.below(3);
  if (is_other && form == 0) return "x" + version.text();
  if (is_other && form == 1) return version.text() + " ";
  if (is_other || form == 0) version.mtime_ns ^= static_cast<int64_t>(numbers.word() | 1);
  if (is_other) version.checksum ^= static_cast<uint32_t>(numbers.word()) | 1;
  return !is_other && form == 1 ? "" : version.text();
}

// Write a manifest of a shard or two whose samples are ranges of `shard`, some of them damaged, and read all samples.
void run_manifest(Numbers& numbers) {
  const Bytes shard = numbers.bytes(1 + numbers.below(400));
  folder().write("shard", shard);
  const auto columns = static_cast<uint32_t>(1 + numbers.below(3));
  const uint64_t samples = numbers.below(9), split = numbers.below(samples + 1);
  Bytes entries(ManifestEntry::kFileHeader);
  std::vector<ManifestEntry> wanted;
  for (uint64_t i = 0; i < samples * columns; ++i) {
    ManifestEntry entry{};
    entry.offset = numbers.below(shard.size() + 1);
    entry.length = numbers.below(8) == 0 ? ManifestEntry::kAbsent : numbers.below(shard.size() - entry.offset + 1);
    if (numbers.below(16) == 0) entry.offset = numbers.word(), entry.length = numbers.word();
    uint8_t stored[ManifestEntry::kBytes];
    entry.store(i, stored);
    entries.insert(entries.end(), stored, stored + sizeof stored);
    wanted.push_back(entry);
  }
  std::vector<bool> is_changed(wanted.size());
  if (numbers.below(4) == 0 && !wanted.empty()) {
    const size_t at = numbers.below(wanted.size());
    entries[ManifestEntry::kFileHeader + at * ManifestEntry::kBytes + numbers.below(ManifestEntry::kBytes)] ^=
        static_cast<uint8_t>(1 + numbers.below(255));
    is_changed[at] = true;
  }
  const bool is_cut = numbers.below(16) == 0;
  if (is_cut) entries.resize(numbers.below(entries.size() + 1));
  folder().write("entries", entries);
  const bool is_other = numbers.below(8) == 0;
  Bytes texts{'s', 'h', 'a', 'r', 'd', 0};
  const std::string tag = tag_of(numbers, shard, is_other);
  texts.insert(texts.end(), tag.begin(), tag.end());
  folder().write("manifest", texts);
  std::vector<ManifestShard> shards;
  const auto size = static_cast<uint32_t>(texts.size());
  shards.push_back({0, 0, shard.size() + (numbers.below(16) == 0 ? 1 : 0), 0, size, columns});
  shards.push_back({split, split * columns, shard.size(), 0, size, columns});
  const Manifest::Files files{folder().path() + "manifest", folder().path() + "entries", folder().path(), 0};
  const auto manifest = std::make_shared<const Manifest>(files, shards, samples, samples * columns);
  require(manifest->size() == samples && manifest->shards() == 2, "the numbers are those of the table");
  const auto column = static_cast<uint32_t>(numbers.below(4));
  const auto shared = std::make_shared<const ManifestTable>(manifest, std::vector<uint32_t>{column}, Codec::Stored);
  const ManifestTable& table = *shared;
  const KeptBlocks kept(std::make_shared<const KeptShards>(shared, folder().path()), 512, 64);
  for (size_t i = 0; i < samples; ++i) {
    uint64_t bytes = 0;
    std::string reason;
    if (kept.find_bytes(i, bytes, reason)) {
      require(bytes <= shard.size() + 1, "a record is not larger than its shard");
      std::vector<uint8_t> to(bytes);
      require(kept.read(i, to.data(), bytes) == (bytes == 0), "a shard without blocks is not read");
    } else {
      require(!reason.empty(), "a fault has a reason");
    }
    Exact allocator;
    View out;
    std::string error;
    table.read_ahead(i);
    if (i > 0) table.follows(i - 1, i);
    const bool is_read = table.read(i, allocator, out, error);
    is_read ? ++counts.records : ++counts.faults;
    require(is_read || !error.empty(), "a fault has a reason");
    const size_t at = i * columns + column;
    const bool has_column = column < columns;
    if (is_read && has_column && wanted[at].length != ManifestEntry::kAbsent) {
      require(!is_changed[at], "a changed entry is noticed");
      require(static_cast<uint64_t>(out.shape[0]) == wanted[at].length, "a record has the length of its entry");
      require(wanted[at].length == 0 || std::equal(out.data, out.data + wanted[at].length,
                                                   shard.begin() + static_cast<ptrdiff_t>(wanted[at].offset)),
              "the bytes are those of the shard");
    }
    const bool is_possible =
        !has_column || wanted[at].length == ManifestEntry::kAbsent ||
        (wanted[at].offset <= shard.size() && wanted[at].length <= shard.size() - wanted[at].offset);
    const bool is_whole = shards[manifest->shard_of(i)].size == shard.size();
    require(is_read || is_cut || !is_whole || !is_possible || is_other || (has_column && is_changed[at]),
            "a sample without damage is read");
    require(!is_read || !is_other || out.shape[0] == 0, "a shard of another version is not read");
  }
  manifest->close();
  require(manifest->open_files() == 0, "closed files are closed");
}

// A table of shards with any numbers.
void run_hostile(Numbers& numbers) {
  const auto some = [&](uint64_t usual) { return numbers.below(8) == 0 ? numbers.word() : numbers.below(usual); };
  std::vector<ManifestShard> shards(numbers.below(5));
  for (size_t i = 0; i < shards.size(); ++i) {
    ManifestShard& s = shards[i];
    s = {i * numbers.below(4),          i * numbers.below(4), some(100), some(20), static_cast<uint32_t>(some(20)),
         static_cast<uint32_t>(some(4))};
    if (numbers.below(16) == 0) s.start = numbers.word();
    if (numbers.below(16) == 0) s.first = numbers.word();
  }
  if (!shards.empty() && numbers.below(4) > 0) shards[0].start = 0;
  const uint64_t samples = some(20), entries = some(100);
  folder().write("entries", numbers.bytes(numbers.below(300)));
  Bytes texts = numbers.bytes(numbers.below(40));
  for (uint8_t& letter : texts)
    if (letter == '/') letter = '_';  // names stay in the folder
  folder().write("manifest", texts);
  const Manifest::Files files{folder().path() + "manifest", folder().path() + "entries", folder().path(), 0};
  std::shared_ptr<const Manifest> manifest;
  try {
    manifest = std::make_shared<const Manifest>(files, shards, samples, entries);
  } catch (const std::invalid_argument& error) {
    require(error.what()[0] != 0, "a refusal has a reason");
    ++counts.refused;
    return;
  }
  ++counts.tables;
  std::vector<std::shared_ptr<const Records>> parts;
  for (const uint32_t column : {0u, 1u, 300u})
    parts.push_back(std::make_shared<ManifestTable>(manifest, std::vector<uint32_t>{column, 0}, Codec::TfRecord));
  const JoinedRecords joined(parts);
  require(joined.size() == 3 * manifest->size(), "joined records are all records");
  for (int i = 0; i < 6 && manifest->size() > 0; ++i) {
    const uint64_t sample = i == 0 ? manifest->size() - 1 : numbers.word() % manifest->size();
    const size_t shard = manifest->shard_of(sample);
    require(shard < shards.size() && shards[shard].start <= sample &&
                sample < (shard + 1 < shards.size() ? shards[shard + 1].start : samples),
            "a sample belongs to its shard");
    Exact allocator;
    View out;
    Range range;
    std::string error, name;
    if (manifest->find(sample, {0}, Codec::TfRecord, range, error))
      require(range.length <= PackedRanges::kMaxBytes && range.offset <= PackedRanges::kMaxBytes && range.file == shard,
              "a range is possible");
    else require(!error.empty(), "a fault has a reason");
    error.clear();
    require(manifest->text(shard, name, error) || !error.empty(), "a fault has a reason");
    require(!manifest->path(shard).empty(), "a shard has a name");
    error.clear();
    const uint64_t own = sample + manifest->size() * static_cast<uint64_t>(i % 3);
    require(joined.read(own, allocator, out, error) || !error.empty(), "a fault has a reason");
    joined.read_ahead(own);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (counts.runs++ == 0) {
    folder();  // before the report, so that it is removed after it
    std::atexit(report);
  }
  Numbers numbers(data, size);
  switch (numbers.below(3)) {
    case 0: run_kept(numbers); break;
    case 1: run_manifest(numbers); break;
    default: run_hostile(numbers);
  }
  return 0;
}

#ifdef STOKER_FUZZ_STANDALONE
// io_fuzz SECONDS SEED: inputs of random bytes; at least 1,000 of them.
#include <chrono>
#include <fstream>
#include <random>

#include "kept_input.hpp"

using stoker::fuzz::current;
using stoker::fuzz::save_on_failure;

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: io_fuzz SECONDS SEED\n");
    return 2;
  }
  save_on_failure("crash.io", report);
  std::mt19937 random(static_cast<unsigned>(std::atoi(argv[2])));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::atoi(argv[1]));
  do {
    for (int i = 0; i < 1000; ++i) {
      current.resize(random() % 3000);
      for (uint8_t& byte : current) byte = static_cast<uint8_t>(random());
      const std::unique_ptr<uint8_t[]> exact(new uint8_t[current.size()]);
      std::copy(current.begin(), current.end(), exact.get());
      LLVMFuzzerTestOneInput(exact.get(), current.size());
    }
  } while (std::chrono::steady_clock::now() < end);
  return 0;
}
#endif
