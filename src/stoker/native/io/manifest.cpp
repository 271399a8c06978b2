// SPDX-License-Identifier: Apache-2.0
#include "io/manifest.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <stdexcept>

#include "container/crc32c.hpp"
#include "container/frames.hpp"

namespace stoker {

namespace {

constexpr uint32_t kManifestFile = 0, kEntriesFile = 1;
constexpr uint32_t kMaxText = 1 << 16;

uint32_t checksum(uint64_t number, const uint8_t* range) {
  uint8_t all[24];
  std::memcpy(all, &number, 8);
  std::memcpy(all + 8, range, 16);
  return crc32c(all, sizeof all);
}

[[noreturn]] void unfit(size_t shard, const char* what) {
  throw std::invalid_argument("expected " + std::string(what) + " of shard " + std::to_string(shard) +
                              " that fit the manifest");
}

void check(const std::vector<ManifestShard>& shards, uint64_t samples, uint64_t entries) {
  if (shards.size() > UINT32_MAX) throw std::invalid_argument("expected less than 2**32 shards");
  for (size_t i = 0; i < shards.size(); ++i) {
    const ManifestShard& s = shards[i];
    const uint64_t next = i + 1 < shards.size() ? shards[i + 1].start : samples;
    if (s.start != 0 && i == 0) unfit(i, "samples from 0 on");
    if (next < s.start || next > PackedRanges::kMaxBytes) unfit(i, "samples");
    if (s.columns == 0 || s.columns > Manifest::kMaxColumns) unfit(i, "columns");
    if (s.size > PackedRanges::kMaxBytes) unfit(i, "a size");
    if (s.text_bytes > kMaxText || s.text_at > PackedRanges::kMaxBytes) unfit(i, "a name");
    if (s.first > entries || (next - s.start) > (entries - s.first) / s.columns) unfit(i, "entries");
  }
  if (shards.empty() && samples > 0) throw std::invalid_argument("expected no samples without shards");
}

}  // namespace

void ManifestEntry::store(uint64_t number, uint8_t* to) const {
  std::memcpy(to, &offset, 8);
  std::memcpy(to + 8, &length, 8);
  const uint32_t sum = checksum(number, to);
  std::memcpy(to + 16, &sum, 4);
}

bool ManifestEntry::load(uint64_t number, const uint8_t* from) {
  offset = load_little<uint64_t>(from);
  length = load_little<uint64_t>(from + 8);
  return load_little<uint32_t>(from + 16) == checksum(number, from);
}

Manifest::Manifest(Files files, std::vector<ManifestShard> shards, uint64_t samples, uint64_t entries)
    : files_(std::move(files)), shards_(std::move(shards)), samples_(samples) {
  check(shards_, samples, entries);
}

size_t Manifest::shard_of(size_t sample) const {
  const auto after = std::upper_bound(shards_.begin(), shards_.end(), sample,
                                      [](uint64_t number, const ManifestShard& s) { return number < s.start; });
  return static_cast<size_t>(after - shards_.begin()) - 1;  // of several shards that begin there, the last has samples
}

bool Manifest::read_own(uint32_t file, uint64_t offset, uint8_t* to, size_t bytes, std::string& error) const {
  const std::string& path = file == kManifestFile ? files_.manifest : files_.entries;
  Descriptors::Shared opened = own_.find_open(file);
  if (!opened) opened = own_.open(file, path, error);
  if (!opened) return false;
  const int64_t have = read_file(opened->file.descriptor(), offset, to, bytes);
  if (have < 0) return cannot_read(path, errno, error);
  if (static_cast<size_t>(have) == bytes) return true;
  error = "expected " + std::to_string(bytes) + " bytes at byte " + std::to_string(offset) + " of '" + path +
          "', got a file of " + std::to_string(offset + static_cast<uint64_t>(have)) + " bytes";
  return false;
}

bool Manifest::text(size_t shard, std::string& found, std::string& error) const {
  found.resize(shards_[shard].text_bytes);
  return read_own(kManifestFile, files_.texts_begin + shards_[shard].text_at, reinterpret_cast<uint8_t*>(found.data()),
                  found.size(), error);
}

std::string Manifest::path(size_t shard) const {
  std::string found, error;
  if (!text(shard, found, error)) return "shard " + std::to_string(shard) + " of " + files_.manifest;
  return files_.root + found.c_str();
}

bool Manifest::find(size_t sample, const std::vector<uint32_t>& columns, Codec codec, Range& range,
                    std::string& error) const {
  const size_t shard = shard_of(sample);
  const ManifestShard& s = shards_[shard];
  const uint64_t first = s.first + (sample - s.start) * s.columns;
  std::array<uint8_t, kMaxColumns * ManifestEntry::kBytes> entries;
  if (!read_own(kEntriesFile, ManifestEntry::kFileHeader + first * ManifestEntry::kBytes, entries.data(),
                s.columns * ManifestEntry::kBytes, error))
    return false;
  range = {static_cast<uint32_t>(shard), 0, 0, Codec::Absent};
  for (const uint32_t column : columns) {
    if (column >= s.columns) continue;
    ManifestEntry entry;
    const bool is_intact = entry.load(first + column, entries.data() + column * ManifestEntry::kBytes);
    if (entry.length == ManifestEntry::kAbsent && is_intact) continue;
    if (!is_intact || entry.length > PackedRanges::kMaxBytes || entry.offset > PackedRanges::kMaxBytes) {
      error = "expected the range of sample " + std::to_string(sample) + " in '" + files_.entries +
              "', got bytes with a wrong checksum: the file is damaged, or belongs to another manifest";
      return false;
    }
    if (range.codec == Codec::Absent || entry.offset < range.offset)
      range = {static_cast<uint32_t>(shard), entry.offset, entry.length, codec};
  }
  return true;
}

Descriptors::Shared Manifest::open(size_t shard, std::string& error) const {
  const auto number = static_cast<uint32_t>(shard);
  Descriptors::Shared opened = open_.find_open(number);
  if (opened) return opened;
  std::string text;
  if (!this->text(shard, text, error)) return nullptr;
  const size_t end = std::min(text.find('\0'), text.size());
  const std::string_view tag = std::string_view(text).substr(std::min(end + 1, text.size()));
  return open_.open(number, files_.root + text.substr(0, end), error,
                    [&](const OpenFile& file, const std::string& path, std::string& reason) {
                      return is_unchanged(number, tag, file, path, reason);
                    });
}

bool Manifest::is_unchanged(uint32_t shard, std::string_view tag, const OpenFile& file, const std::string& path,
                            std::string& error) const {
  FileState now;
  if (!find_state(file, now)) return cannot_read(path, errno, error);
  const uint64_t size = shards_[shard].size;
  if (static_cast<uint64_t>(now.size) != size) {
    error = "expected '" + path + "' with " + std::to_string(size) + " bytes, as its manifest says, got " +
            std::to_string(now.size) + ": the shard has changed. Make the manifest again";
    return false;
  }
  if (tag.empty()) return true;
  FileVersion wanted;
  if (!FileVersion::parse(tag, wanted)) {
    error = "expected the version of a file for '" + path + "' in '" + files_.manifest + "', got another text";
    return false;
  }
  if (now.mtime_ns == wanted.mtime_ns) return true;
  {
    const std::lock_guard<std::mutex> hold(mutex_);
    const auto at = compared_.find(shard);
    if (at != compared_.end() && at->second == now.mtime_ns) return true;
  }
  uint32_t checksum = 0;
  if (!sampled_checksum(file, size, path, checksum, error)) return false;
  if (checksum != wanted.checksum) {
    error = "expected '" + path + "' as it was when its manifest was made, got a file of the same size with other " +
            "bytes: the shard has changed. Make the manifest again";
    return false;
  }
  const std::lock_guard<std::mutex> hold(mutex_);
  compared_[shard] = now.mtime_ns;
  return true;
}

void Manifest::close() const {
  own_.close();
  open_.close();
}

bool ManifestTable::read(size_t i, BufferAllocator& allocator, View& out, std::string& error) const {
  Range range;
  if (!find(i, range, error)) return false;
  if (range.codec == Codec::Absent) return no_bytes(allocator, out);
  const Descriptors::Shared opened = manifest_->open(range.file, error);
  return opened && read_range(*opened, range, *manifest_, allocator, out, error);
}

ReadAheadOutcome ManifestTable::read_ahead(size_t i) const {
  Range range;
  std::string error;
  if (!find(i, range, error) || range.codec == Codec::Absent) return {};
  const Descriptors::Shared opened = manifest_->open(range.file, error);
  return opened ? read_range_ahead(*opened, range) : ReadAheadOutcome{};
}

bool ManifestTable::follows(size_t before, size_t i) const {
  Range first, second;
  std::string error;
  return find(before, first, error) && find(i, second, error) && stoker::follows(first, second);
}

JoinedRecords::JoinedRecords(std::vector<std::shared_ptr<const Records>> parts) : parts_(std::move(parts)) {
  for (const auto& part : parts_) ends_.push_back(size() + part->size());
}

std::pair<const Records*, size_t> JoinedRecords::find_part(size_t i) const {
  const size_t part = static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), i) - ends_.begin());
  return {parts_[part].get(), i - (part > 0 ? ends_[part - 1] : 0)};
}

bool JoinedRecords::read(size_t i, BufferAllocator& allocator, View& out, std::string& error) const {
  const auto [part, own] = find_part(i);
  return part->read(own, allocator, out, error);
}

ReadAheadOutcome JoinedRecords::read_ahead(size_t i) const {
  const auto [part, own] = find_part(i);
  return part->read_ahead(own);
}

bool JoinedRecords::follows(size_t before, size_t i) const {
  const auto [part, own] = find_part(i);
  const auto [part_before, own_before] = find_part(before);
  return part == part_before && part->follows(own_before, own);
}

}  // namespace stoker
