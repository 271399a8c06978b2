// SPDX-License-Identifier: Apache-2.0
#include "io/records.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "container/frames.hpp"

namespace stoker {

namespace {

constexpr uint64_t kLine = 64;  // bytes of a cache line

void show(const uint8_t* data, uint64_t bytes, View& out) {
  out.data = const_cast<uint8_t*>(data);
  out.shape[0] = static_cast<int64_t>(bytes);
  out.stride[0] = 1;
}

bool is_short(const std::string& path, const Range& r, uint64_t size, std::string& error) {
  error = "expected " + std::to_string(r.length) + " bytes at byte " + std::to_string(r.offset) + " of '" + path +
          "', got a file of " + std::to_string(size) + " bytes";
  return false;
}

// The numbers are not validated; the comparison must not overflow.
bool holds(const Range& r, uint64_t size) { return r.offset <= size && r.length <= size - r.offset; }

std::string place_of(const std::string& path, const Range& r) {
  return "at byte " + std::to_string(r.offset) + " of '" + path + "'";
}

// Up to three adjacent pieces of memory that one call fills.
class Pieces {
 public:
  void add(uint8_t* to, size_t bytes) { pieces_[count_++] = {to, bytes}; }
  // Read from `offset` on. Return the number of bytes before the end of the file, or -1 (`errno` has the reason).
  int64_t read(int fd, uint64_t offset) const { return read_pieces(fd, offset, pieces_, count_); }

 private:
  struct iovec pieces_[3];
  int count_ = 0;
};

// A record that is being read: its range, and the path for messages.
struct Reading {
  int fd;
  const Range& range;
  const Paths& files;
  std::string& error;

  std::string path() const { return files.path(range.file); }
  bool fail(const std::string& text) const {
    error = text;
    return false;
  }
  // Read all of the range into the pieces.
  bool fill(const Pieces& pieces) const {
    const int64_t have = pieces.read(fd, range.offset);
    if (have < 0) {
      const int code = errno;
      return cannot_read(path(), code, error);
    }
    return static_cast<uint64_t>(have) == range.length ||  // else the file has become shorter
           is_short(path(), range, range.offset + static_cast<uint64_t>(have), error);
  }
};

// Return memory for a record's data, which begin at byte `offset` of the file. It lies relative to cache lines as the
// data do in the page cache: processors copy to addresses a few bytes past those of the source, modulo the size of a
// page, at a fraction of their rate.
uint8_t* memory_like_file(BufferAllocator& allocator, uint64_t bytes, uint64_t offset) {
  return allocator.get(bytes + kLine) + offset % kLine;
}

bool read_stored(const Reading& reading, BufferAllocator& allocator, View& out) {
  const uint64_t bytes = reading.range.length;
  if (const uint64_t address = allocator.read_to_device(reading.fd, reading.range.offset, bytes)) {
    show(reinterpret_cast<const uint8_t*>(address), bytes, out);
    return out.device = true;
  }
  uint8_t* const to = allocator.get(std::max<uint64_t>(bytes, 1));
  Pieces pieces;
  pieces.add(to, bytes);
  if (!reading.fill(pieces)) return false;
  show(to, bytes, out);
  return true;
}

bool read_tfrecord(const Reading& reading, BufferAllocator& allocator, View& out) {
  const Range& r = reading.range;
  const auto damaged = [&](const std::string& expected, const std::string& got) {
    return reading.fail("expected " + expected + " " + place_of(reading.path(), r) + ", got " + got +
                        ": the file is damaged, or the index belongs to another file");
  };
  if (r.length < tfrecord::kFrame) return damaged("a TFRecord of at least 16 bytes", std::to_string(r.length));
  const uint64_t bytes = r.length - tfrecord::kFrame;
  uint8_t header[tfrecord::kHeader], footer[tfrecord::kFooter];
  uint8_t* const to = memory_like_file(allocator, bytes, r.offset + sizeof header);
  Pieces pieces;
  pieces.add(header, sizeof header);
  pieces.add(to, bytes);
  pieces.add(footer, sizeof footer);
  if (!reading.fill(pieces)) return false;
  uint64_t length = 0;
  if (!tfrecord::read_header(header, length)) return damaged("a TFRecord", "a length with a wrong checksum");
  if (length != bytes)
    return damaged("a TFRecord of " + std::to_string(bytes) + " bytes", "one of " + std::to_string(length));
  if (r.codec == Codec::TfRecord && load_little<uint32_t>(footer) != masked_crc(crc32c(to, bytes)))
    return damaged("the TFRecord", "data with a wrong checksum");
  show(to, bytes, out);
  return true;
}

bool read_recordio(const Reading& reading, BufferAllocator& allocator, View& out) {
  const Range& r = reading.range;
  const auto damaged = [&](const std::string& got) {
    return reading.fail("expected a RecordIO record of " + std::to_string(r.length) + " bytes " +
                        place_of(reading.path(), r) + ", got " + got +
                        ": the file is damaged, or the index belongs to another file");
  };
  if (r.length < recordio::kHeader) return damaged("less than a header");
  const uint64_t bytes = r.length - recordio::kHeader;
  uint8_t header[recordio::kHeader];
  uint8_t* const to = memory_like_file(allocator, bytes, r.offset + sizeof header);
  Pieces pieces;
  pieces.add(header, sizeof header);
  pieces.add(to, bytes);
  if (!reading.fill(pieces)) return false;
  uint32_t part = 0, length = 0;
  if (!recordio::read_header(header, part, length)) return damaged("bytes without the magic number");
  uint64_t joined = length;
  if (part == recordio::kWhole ? length > bytes
                               : part != recordio::kFirst || !recordio::join_parts(to, bytes, length, joined))
    return damaged("an incomplete one");
  show(to, joined, out);
  return true;
}

}  // namespace

bool FileTable::read(size_t i, BufferAllocator& allocator, View& out, std::string& error) const {
  const std::string name = path(i);
  return read_whole_to_any_memory(OpenFile(name), name, allocator, out, error);
}

ReadAheadOutcome FileTable::read_ahead(size_t i) const {
  const std::string name = path(i);
  const OpenFile file(name);
  uint64_t size = 0;
  std::string error;
  return is_regular(file, name, size, error) ? request_read_ahead(file.descriptor(), 0, size) : ReadAheadOutcome{};
}

FileTable FileTable::joined(const std::vector<std::shared_ptr<const FileTable>>& tables) {
  bool one_root = true;
  for (const auto& table : tables) one_root = one_root && table->root_ == tables.front()->root_;
  std::string names;
  std::vector<uint64_t> offsets{0};
  for (const auto& table : tables) {
    for (size_t i = 0; i < table->size(); ++i) {
      if (!one_root) names += table->root_;
      names.append(table->names_, table->offsets_[i], table->offsets_[i + 1] - table->offsets_[i]);
      offsets.push_back(names.size());
    }
  }
  return {one_root && !tables.empty() ? tables.front()->root_ : "", std::move(names), std::move(offsets)};
}

bool no_bytes(BufferAllocator& allocator, View& out) { return show(allocator.get(1), 0, out), true; }

bool read_range(const Descriptors::Opened& opened, const Range& r, const Paths& paths, BufferAllocator& allocator,
                View& out, std::string& error) {
  uint64_t size = opened.size;
  if (!holds(r, size)) {  // the file may have grown
    if (!is_regular(opened.file, paths.path(r.file), size, error)) return false;
    if (!holds(r, size)) return is_short(paths.path(r.file), r, size, error);
  }
  if (r.length > kSaneBytes && !has_sane_size(r.length, paths.path(r.file), error)) return false;
  const Reading reading{opened.file.descriptor(), r, paths, error};
  switch (r.codec) {
    case Codec::TfRecord:
    case Codec::TfRecordUnchecked: return read_tfrecord(reading, allocator, out);
    case Codec::RecordIo: return read_recordio(reading, allocator, out);
    default: return read_stored(reading, allocator, out);
  }
}

ReadAheadOutcome read_range_ahead(const Descriptors::Opened& opened, const Range& r) {
  // A range beyond the end is an error of its row, or the file has grown.
  return holds(r, opened.size) ? request_read_ahead(opened.file.descriptor(), r.offset, r.length) : ReadAheadOutcome{};
}

bool follows(const Range& before, const Range& range) {
  constexpr uint64_t kGap = uint64_t{1} << 16;
  const uint64_t end = before.offset + before.length;
  return range.file == before.file && range.offset >= end && range.offset - end <= kGap &&
         before.codec != Codec::Absent && range.codec != Codec::Absent;
}

Descriptors::Shared RangeTable::opened(uint32_t file, std::string& error) const {
  Descriptors::Shared found = open_.find_open(file);
  if (found) return found;
  return open_.open(file, files_->path(file), error,
                    [&](const OpenFile& now, const std::string& path, std::string& reason) {
                      return is_in_state(now, state(file), path, reason);
                    });
}

bool RangeTable::read(size_t i, BufferAllocator& allocator, View& out, std::string& error) const {
  const Range r = ranges_[i];
  if (r.codec == Codec::Absent) return no_bytes(allocator, out);
  const Descriptors::Shared file = opened(r.file, error);
  return file && read_range(*file, r, *files_, allocator, out, error);
}

ReadAheadOutcome RangeTable::read_ahead(size_t i) const {
  const Range r = ranges_[i];
  if (r.codec == Codec::Absent) return {};
  std::string error;
  const Descriptors::Shared file = opened(r.file, error);
  return file ? read_range_ahead(*file, r) : ReadAheadOutcome{};
}

bool MemoryTable::read(size_t i, BufferAllocator& allocator, View& out, std::string&) const {
  const Range r = ranges_[i];
  const uint64_t bytes = r.codec == Codec::Absent ? 0 : r.length;
  uint8_t* const to = allocator.get(std::max<uint64_t>(bytes, 1));
  if (bytes > 0) std::memcpy(to, buffers_[r.file].data + r.offset, bytes);
  show(to, bytes, out);
  return true;
}

}  // namespace stoker
