// SPDX-License-Identifier: Apache-2.0
// Members of zip archives that are stored without compression.
#include <string>
#include <utility>

#include "container/frames.hpp"
#include "container/scan.hpp"

namespace stoker {

namespace {

constexpr uint32_t kEnd = 0x06054b50, kEnd64 = 0x06064b50, kLocator64 = 0x07064b50, kEntry = 0x02014b50,
                   kLocal = 0x04034b50;
constexpr size_t kEndBytes = 22, kEnd64Bytes = 56, kLocatorBytes = 20, kEntryBytes = 46, kLocalBytes = 30;
constexpr uint64_t kMostComment = 65535;
constexpr uint32_t kIn64 = 0xFFFFFFFF;  // the number is in the entry's extra field

struct Directory {
  uint64_t offset = 0, bytes = 0, entries = 0;
};

struct Entry {
  uint64_t bytes = 0, stored = 0, local = 0;
};

// Find the end of the archive, which a comment may follow.
bool find_directory(ByteSource& file, Directory& directory) {
  const uint64_t size = file.size();
  if (size < kEndBytes) return false;
  const uint64_t tail = size < kEndBytes + kMostComment ? size : kEndBytes + kMostComment;
  const uint8_t* const bytes = file.at(size - tail, tail);
  if (bytes == nullptr) return false;
  for (uint64_t at = tail - kEndBytes + 1; at-- > 0;) {
    const uint8_t* const end = bytes + at;
    if (load_little<uint32_t>(end) != kEnd || load_little<uint16_t>(end + 20) != tail - at - kEndBytes) continue;
    directory.entries = load_little<uint16_t>(end + 10);
    directory.bytes = load_little<uint32_t>(end + 12);
    directory.offset = load_little<uint32_t>(end + 16);
    const uint64_t begin = size - tail + at;
    const uint8_t* const locator = begin >= kLocatorBytes ? file.at(begin - kLocatorBytes, kLocatorBytes) : nullptr;
    if (locator == nullptr || load_little<uint32_t>(locator) != kLocator64) return true;
    const uint8_t* const end64 = file.at(load_little<uint64_t>(locator + 8), kEnd64Bytes);
    if (end64 == nullptr || load_little<uint32_t>(end64) != kEnd64) return false;
    directory.entries = load_little<uint64_t>(end64 + 32);
    directory.bytes = load_little<uint64_t>(end64 + 40);
    directory.offset = load_little<uint64_t>(end64 + 48);
    return true;
  }
  return false;
}

// Replace numbers of an entry by those of its extra field with 64 bits. Return false if they are missing.
bool read_extra(const uint8_t* extra, size_t size, Entry& entry) {
  uint64_t* wanted[] = {&entry.bytes, &entry.stored, &entry.local};
  const bool any = entry.bytes == kIn64 || entry.stored == kIn64 || entry.local == kIn64;
  for (size_t at = 0; any && at + 4 <= size;) {
    const uint16_t id = load_little<uint16_t>(extra + at), length = load_little<uint16_t>(extra + at + 2);
    at += 4;
    if (length > size - at) return false;
    if (id == 1) {
      size_t used = 0;
      for (uint64_t* number : wanted) {
        if (*number != kIn64) continue;
        if (used + 8 > length) return false;
        *number = load_little<uint64_t>(extra + at + used);
        used += 8;
      }
      return true;
    }
    at += length;
  }
  return !any;
}

}  // namespace

Damage scan_zip(ByteSource& file, Members& members) {
  Directory directory;
  if (!find_directory(file, directory)) return {0, "the file has no end of a zip archive"};
  const uint64_t size = file.size();
  if (directory.offset > size || directory.bytes > size - directory.offset)
    return {0, "the archive's directory is not in the file"};
  std::vector<uint64_t> local;
  uint64_t at = directory.offset;
  for (uint64_t i = 0; i < directory.entries; ++i) {
    const uint8_t* head = file.at(at, kEntryBytes);
    if (head == nullptr || load_little<uint32_t>(head) != kEntry) return {at, "an entry of the directory is damaged"};
    const uint16_t flags = load_little<uint16_t>(head + 8), method = load_little<uint16_t>(head + 10);
    Entry entry{load_little<uint32_t>(head + 24), load_little<uint32_t>(head + 20), load_little<uint32_t>(head + 42)};
    const size_t name = load_little<uint16_t>(head + 28), extra = load_little<uint16_t>(head + 30),
                 comment = load_little<uint16_t>(head + 32);
    const uint8_t* const rest = file.at(at + kEntryBytes, name + extra);
    if (rest == nullptr || !read_extra(rest + name, extra, entry)) return {at, "an entry of the directory is damaged"};
    const std::string text(reinterpret_cast<const char*>(rest), name);
    if (text.find('\0') != std::string::npos) return {at, "the name of a member contains a zero byte"};
    at += kEntryBytes + name + extra + comment;
    if (!text.empty() && text.back() == '/') continue;  // a folder
    if (flags & 1) return {at, "the member '" + text + "' is encrypted"};
    if (method != 0)
      return {at, "the member '" + text + "' is compressed, so that parts of the archive cannot be read"};
    if (entry.stored != entry.bytes || entry.bytes > kMaxBytes) return {at, "a member has an impossible size"};
    local.push_back(entry.local);
    members.data.add(0, entry.bytes);
    members.names.append(text).push_back('\0');
  }
  // The directory does not say how long the headers in front of the data are.
  for (size_t i = 0; i < local.size(); ++i) {
    const uint8_t* const head = file.at(local[i], kLocalBytes);
    const uint64_t header = head == nullptr || load_little<uint32_t>(head) != kLocal
                                ? 0
                                : kLocalBytes + load_little<uint16_t>(head + 26) + load_little<uint16_t>(head + 28);
    const uint64_t begin = local[i] + header;
    if (header == 0 || begin > size || members.data.length[i] > size - begin) {
      members.data.offset.resize(i);
      members.data.length.resize(i);
      return {local[i], "the header of a member is damaged"};
    }
    members.data.offset[i] = begin;
  }
  return {};
}

}  // namespace stoker
