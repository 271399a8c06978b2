// SPDX-License-Identifier: Apache-2.0
#include "io/records.hpp"

#include <cerrno>
#include <cstring>

namespace stoker {

namespace {

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

}  // namespace

bool FileTable::read(size_t i, BufferAllocator& allocator, View& out, std::string& error) const {
  const std::string name = path(i);
  return read_whole(OpenFile(name), name, allocator, out, error);
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

bool RangeTable::read(size_t i, BufferAllocator& allocator, View& out, std::string& error) const {
  const Range r = ranges_[i];
  if (r.codec == Codec::Absent) return show(allocator.get(1), 0, out), true;
  Descriptors::Shared opened = open_.find_open(r.file);
  if (!opened) opened = open_.open(r.file, files_->path(r.file), error);
  if (!opened) return false;
  uint64_t size = opened->size;
  if (!holds(r, size)) {  // the file may have grown
    if (!is_regular(opened->file, files_->path(r.file), size, error)) return false;
    if (!holds(r, size)) return is_short(files_->path(r.file), r, size, error);
  }
  if (r.length > kSaneBytes && !has_sane_size(r.length, files_->path(r.file), error)) return false;
  uint8_t* const to = allocator.get(r.length + 1);
  const int64_t have = read_file(opened->file.descriptor(), r.offset, to, r.length);
  if (have < 0) {
    const int code = errno;
    return cannot_read(files_->path(r.file), code, error);
  }
  if (static_cast<uint64_t>(have) < r.length)  // the file has become shorter
    return is_short(files_->path(r.file), r, r.offset + static_cast<uint64_t>(have), error);
  show(to, r.length, out);
  return true;
}

bool MemoryTable::read(size_t i, BufferAllocator& allocator, View& out, std::string&) const {
  const Range r = ranges_[i];
  const uint64_t bytes = r.codec == Codec::Absent ? 0 : r.length;
  uint8_t* const to = allocator.get(bytes + 1);
  if (bytes > 0) std::memcpy(to, buffers_[r.file].data + r.offset, bytes);
  show(to, bytes, out);
  return true;
}

}  // namespace stoker
