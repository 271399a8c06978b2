// SPDX-License-Identifier: Apache-2.0
// Records of data sets with very many shards: a table of shards in memory, and a file with the ranges of all records, of
// which a read takes the entries of one sample.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "io/records.hpp"

namespace stoker {

// Row of the table, as stored. The Python side relies on the layout (readers/_manifest_file.py).
struct ManifestShard {
  uint64_t start;       // number of the shard's first sample
  uint64_t first;       // number of its first entry
  uint64_t size;        // bytes of its file
  uint64_t text_at;     // begin of its name, a zero byte and its tag, after the table
  uint32_t text_bytes;  // of both
  uint32_t columns;     // entries of each of its samples
};
static_assert(sizeof(ManifestShard) == 40);

// Range of a component of a sample in its shard, with a checksum of number, offset and length.
struct ManifestEntry {
  static constexpr size_t kBytes = 20, kFileHeader = 32;
  static constexpr uint64_t kAbsent = UINT64_MAX;  // length of a component that the sample lacks
  uint64_t offset, length;

  void store(uint64_t number, uint8_t* to) const;
  // Return false if the checksum is wrong.
  bool load(uint64_t number, const uint8_t* from);
};

// Manifest of a data set. The file of entries is read, never mapped, like all files of rows: entries of 20 bytes leave
// nothing in the process, and the page cache keeps the ones that are in use. Thread-safe.
class Manifest final : public Paths {
 public:
  static constexpr uint32_t kMaxColumns = 256;
  struct Files {
    std::string manifest, entries, root;  // `root` is the prefix of the names of shards
    uint64_t texts_begin;                 // byte of `manifest`
  };
  // Throw std::invalid_argument if the numbers do not fit together.
  Manifest(Files files, std::vector<ManifestShard> shards, uint64_t samples, uint64_t entries);

  size_t size() const { return samples_; }
  size_t shards() const { return shards_.size(); }
  const ManifestShard& operator[](size_t shard) const { return shards_[shard]; }
  size_t shard_of(size_t sample) const;
  // Return the name and the tag of a shard, with a zero byte between them. Return false with the reason in `error` if
  // they cannot be read.
  bool text(size_t shard, std::string& found, std::string& error) const;
  // Return the path of a shard. If its name cannot be read: its number.
  std::string path(size_t shard) const override;
  // Find the component of a sample that comes first of those in `columns`; its codec is `codec`, or Absent.
  bool find(size_t sample, const std::vector<uint32_t>& columns, Codec codec, Range& range, std::string& error) const;
  // Return the open file of a shard. The file has the size that the manifest says, and its version unless the manifest
  // lacks it: the same modification time, or the same checksum of sampled pieces. Return null with the reason in `error`.
  Descriptors::Shared open(size_t shard, std::string& error) const;
  void close() const;
  size_t open_files() const { return open_.size(); }

 private:
  bool read_own(uint32_t file, uint64_t offset, uint8_t* to, size_t bytes, std::string& error) const;
  bool is_unchanged(uint32_t shard, std::string_view tag, const OpenFile& file, const std::string& path,
                    std::string& error) const;

  const Files files_;
  const std::vector<ManifestShard> shards_;
  const uint64_t samples_;
  mutable Descriptors own_, open_;  // the manifest's two files; the shards
  mutable std::mutex mutex_;
  // Modification times of shards whose pieces have been compared, because the manifest has another time. Shards of a
  // large data set leave `open_` and are opened again.
  mutable std::unordered_map<uint32_t, int64_t> compared_;
};

// One component of all samples of a manifest.
class ManifestTable final : public Records {
 public:
  ManifestTable(std::shared_ptr<const Manifest> manifest, std::vector<uint32_t> columns, Codec codec)
      : manifest_(std::move(manifest)), columns_(std::move(columns)), codec_(codec) {}
  size_t size() const override { return manifest_->size(); }
  const Manifest& manifest() const { return *manifest_; }
  bool find(size_t i, Range& range, std::string& error) const {
    return manifest_->find(i, columns_, codec_, range, error);
  }
  bool read(size_t i, BufferAllocator& allocator, View& out, std::string& error) const override;
  // A better order of the rows would not pay for another read of the entry.
  int64_t cost(size_t) const override { return 0; }
  ReadAheadOutcome read_ahead(size_t i) const override;
  bool follows(size_t before, size_t i) const override;

 private:
  const std::shared_ptr<const Manifest> manifest_;
  const std::vector<uint32_t> columns_;
  const Codec codec_;
};

// Records of several tables, one table after the other.
class JoinedRecords final : public Records {
 public:
  explicit JoinedRecords(std::vector<std::shared_ptr<const Records>> parts);
  size_t size() const override { return ends_.empty() ? 0 : ends_.back(); }
  bool read(size_t i, BufferAllocator& allocator, View& out, std::string& error) const override;
  int64_t cost(size_t) const override { return 0; }
  ReadAheadOutcome read_ahead(size_t i) const override;
  bool follows(size_t before, size_t i) const override;

 private:
  // Return the part that has record `i`, and its number there.
  std::pair<const Records*, size_t> find_part(size_t i) const;
  const std::vector<std::shared_ptr<const Records>> parts_;
  std::vector<uint64_t> ends_;
};

}  // namespace stoker
