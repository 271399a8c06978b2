// SPDX-License-Identifier: Apache-2.0
// Records of a data set by number: whole files, byte ranges of files, or byte ranges of memory.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/tensor.hpp"
#include "io/descriptors.hpp"
#include "io/file_version.hpp"

namespace stoker {

// Form in which a record's bytes are stored. The Python side relies on the numbers (contract/storage.py).
// TfRecord, TfRecordUnchecked: a record with its frame (container/frames.hpp), with or without a check of the data's CRC.
// RecordIo: all parts of a record with their headers.
enum class Codec : uint8_t { Stored = 0, TfRecord = 1, TfRecordUnchecked = 2, RecordIo = 3, Absent = 255 };
constexpr bool is_known(Codec codec) { return codec <= Codec::RecordIo || codec == Codec::Absent; }

struct Range {
  uint32_t file = 0;
  uint64_t offset = 0, length = 0;
  Codec codec = Codec::Stored;
};

class Records {
 public:
  virtual ~Records() = default;
  virtual size_t size() const = 0;
  // Read all bytes of record `i` into memory from `allocator`, as a view of bytes. An absent record has no bytes.
  // Return false if the record is bad, with the reason in `error`. Thread-safe.
  virtual bool read(size_t i, BufferAllocator& allocator, View& out, std::string& error) const = 0;
  // Return the number of bytes that reading record `i` takes from a disk; -1: known only after it has been read.
  virtual int64_t cost(size_t i) const = 0;
  // Return whether `cost` knows every record.
  virtual bool has_known_costs() const { return true; }
  // Make the system read the bytes of record `i` into the page cache, without waiting for them. What fails here fails
  // again when the record is read, whose row reports it; SystemFailure and ReadFailure are thrown. Thread-safe.
  virtual ReadAheadOutcome read_ahead(size_t) const { return {}; }
  // Return whether record `i` follows record `before` in the same file, so that the system's own reading ahead meets
  // it. Both exist. Thread-safe.
  virtual bool follows(size_t /* before */, size_t /* i */) const { return false; }
};

// Paths of files by number.
class Paths {
 public:
  virtual ~Paths() = default;
  virtual std::string path(size_t i) const = 0;
};

// Read a range of an open file, which it must not leave, so that a damaged index cannot request more memory than the
// file has bytes. `paths` has the name of file `range.file`, for messages.
bool read_range(const Descriptors::Opened& opened, const Range& range, const Paths& paths, BufferAllocator& allocator,
                View& out, std::string& error);
// Make the system read a range of an open file into the page cache, without waiting for it.
ReadAheadOutcome read_range_ahead(const Descriptors::Opened& opened, const Range& range);
// Return whether a range begins where another one ends in its file, or a little later: headers may lie between them.
bool follows(const Range& before, const Range& range);
// Give an absent record: no bytes.
bool no_bytes(BufferAllocator& allocator, View& out);

// Records that are whole files.
class FileTable final : public Records, public Paths {
 public:
  // `root` is the common prefix of all paths. `names` has the rest of every path, each followed by a zero byte.
  // `offsets` has the begin of each name, and the end.
  FileTable(std::string root, std::string names, std::vector<uint64_t> offsets)
      : root_(std::move(root)), names_(std::move(names)), offsets_(std::move(offsets)) {}
  size_t size() const override { return offsets_.size() - 1; }
  std::string path(size_t i) const override { return root_ + (names_.data() + offsets_[i]); }
  bool read(size_t i, BufferAllocator& allocator, View& out, std::string& error) const override;
  int64_t cost(size_t) const override { return -1; }
  bool has_known_costs() const override { return false; }
  ReadAheadOutcome read_ahead(size_t i) const override;
  // Return a table with the files of all tables, one table after the other.
  static FileTable joined(const std::vector<std::shared_ptr<const FileTable>>& tables);

 private:
  const std::string root_, names_;
  const std::vector<uint64_t> offsets_;
};

// Ranges, packed into 20 bytes each.
class PackedRanges {
 public:
  static constexpr uint64_t kMaxBytes = (uint64_t{1} << 56) - 1;
  void reserve(size_t count) { packed_.reserve(count); }
  // Append all ranges of `others`, whose file 0 has the number `first_file` here.
  void add_all(const PackedRanges& others, uint32_t first_file) {
    for (size_t i = 0; i < others.size(); ++i) {
      Range r = others[i];
      r.file += first_file;
      add(r);
    }
  }
  void add(const Range& r) { packed_.push_back({r.offset, r.length | uint64_t(r.codec) << 56, r.file}); }
  size_t size() const { return packed_.size(); }
  size_t bytes() const { return packed_.capacity() * sizeof(Packed); }
  Range operator[](size_t i) const {
    const Packed& p = packed_[i];
    return {p.file, p.offset, p.length_codec & kMaxBytes, static_cast<Codec>(p.length_codec >> 56)};
  }

 private:
  struct __attribute__((packed)) Packed {
    uint64_t offset, length_codec;
    uint32_t file;
  };
  static_assert(sizeof(Packed) == 20);
  std::vector<Packed> packed_;
};

// Records that are byte ranges of files.
class RangeTable final : public Records {
 public:
  // Every range must name a file of `files`. `states` has one state per file: a file in another one is refused when it
  // is opened. Empty: none is compared.
  RangeTable(std::shared_ptr<const FileTable> files, PackedRanges ranges, std::vector<FileState> states = {})
      : files_(std::move(files)), ranges_(std::move(ranges)), states_(std::move(states)) {}
  size_t size() const override { return ranges_.size(); }
  const PackedRanges& ranges() const { return ranges_; }
  const FileTable& files() const { return *files_; }
  FileState state(size_t file) const { return states_.empty() ? FileState{} : states_[file]; }
  bool read(size_t i, BufferAllocator& allocator, View& out, std::string& error) const override;
  int64_t cost(size_t i) const override { return static_cast<int64_t>(ranges_[i].length); }
  ReadAheadOutcome read_ahead(size_t i) const override;
  bool follows(size_t before, size_t i) const override { return stoker::follows(ranges_[before], ranges_[i]); }
  // Close the cached files. Later reads open their files and close them again.
  void close() const { open_.close(); }
  size_t open_files() const { return open_.size(); }

 private:
  Descriptors::Shared opened(uint32_t file, std::string& error) const;

  const std::shared_ptr<const FileTable> files_;
  const PackedRanges ranges_;
  const std::vector<FileState> states_;
  mutable Descriptors open_;
};

// Records that are byte ranges of memory, which the table's owner keeps unchanged. `Range::file` is the number of the
// buffer.
class MemoryTable final : public Records {
 public:
  struct Buffer {
    const uint8_t* data;
    uint64_t size;
  };
  // Every range must lie inside of its buffer.
  MemoryTable(std::vector<Buffer> buffers, PackedRanges ranges)
      : buffers_(std::move(buffers)), ranges_(std::move(ranges)) {}
  size_t size() const override { return ranges_.size(); }
  const PackedRanges& ranges() const { return ranges_; }
  const std::vector<Buffer>& buffers() const { return buffers_; }
  bool read(size_t i, BufferAllocator& allocator, View& out, std::string& error) const override;
  int64_t cost(size_t) const override { return 0; }

 private:
  const std::vector<Buffer> buffers_;
  const PackedRanges ranges_;
};

}  // namespace stoker
