// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <string_view>

#include "container/scan.hpp"

namespace stoker {

namespace {

constexpr uint64_t kBlock = 512;
constexpr uint64_t kMaxExtension = uint64_t{1} << 20;  // bytes of a long name or a pax header
constexpr uint64_t kTailChecked = uint64_t{1} << 20;   // bytes after the end marker that must be zeros

constexpr uint64_t in_blocks(uint64_t bytes) { return (bytes + kBlock - 1) / kBlock * kBlock; }

// Field of a header: up to its end, or a zero byte.
std::string_view text_of(const uint8_t* from, size_t size) {
  const auto* const text = reinterpret_cast<const char*>(from);
  return {text, static_cast<size_t>(std::find(text, text + size, '\0') - text)};
}

// Number in octal digits between optional spaces, or in base 256 if the first bit is set.
bool read_number(const uint8_t* from, size_t size, uint64_t& number) {
  number = 0;
  if ((from[0] & 0x80) != 0) {
    if (from[0] != 0x80) return false;  // negative, or more than 2**88
    for (size_t i = 1; i < size; ++i) {
      if (number >> 56 != 0) return false;
      number = number << 8 | from[i];
    }
    return true;
  }
  size_t i = 0;
  while (i < size && from[i] == ' ') ++i;
  for (; i < size && from[i] >= '0' && from[i] <= '7'; ++i) number = number << 3 | static_cast<uint64_t>(from[i] - '0');
  return i == size || from[i] == '\0' || from[i] == ' ';
}

// Some old programs summed signed bytes.
bool has_checksum(const uint8_t* header) {
  uint64_t wanted = 0;
  if (!read_number(header + 148, 8, wanted)) return false;
  uint64_t sum = 0;
  int64_t signed_sum = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    const uint8_t byte = i >= 148 && i < 156 ? ' ' : header[i];
    sum += byte;
    signed_sum += static_cast<int8_t>(byte);
  }
  return wanted == sum || static_cast<int64_t>(wanted) == signed_sum;
}

bool is_zero(const uint8_t* block) {
  return std::all_of(block, block + kBlock, [](uint8_t byte) { return byte == 0; });
}

// What extension headers say about the next member.
struct Extension {
  std::string name;
  bool has_name = false, has_size = false, is_sparse = false;
  uint64_t size = 0;
};

// Read the records of a pax header, "length key=value\n" each.
bool read_pax(std::string_view text, Extension& next) {
  while (!text.empty()) {
    size_t length = 0, digits = 0;
    for (; digits < text.size() && text[digits] >= '0' && text[digits] <= '9'; ++digits) {
      length = 10 * length + static_cast<size_t>(text[digits] - '0');
      if (length > text.size()) return false;
    }
    if (digits == 0 || digits >= length || text[digits] != ' ' || text[length - 1] != '\n') return false;
    const std::string_view record = text.substr(digits + 1, length - digits - 2);
    text.remove_prefix(length);
    const size_t equals = record.find('=');
    if (equals == std::string_view::npos) return false;
    const std::string_view key = record.substr(0, equals), value = record.substr(equals + 1);
    if (key == "path") {
      if (value.find('\0') != std::string_view::npos) return false;
      next.name = value;
      next.has_name = true;
    } else if (key == "size") {
      next.size = 0;
      if (value.empty() || value.size() > 17) return false;
      for (const char c : value) {
        if (c < '0' || c > '9') return false;
        next.size = 10 * next.size + static_cast<uint64_t>(c - '0');
      }
      next.has_size = true;
    } else if (key.substr(0, 11) == "GNU.sparse.") {
      next.is_sparse = true;
    }
  }
  return true;
}

std::string name_in(const uint8_t* header) {
  const std::string_view name = text_of(header, 100), prefix = text_of(header + 345, 155);
  const bool is_posix = std::memcmp(header + 257, "ustar\0", 6) == 0;  // GNU's headers have other fields there
  if (!is_posix || prefix.empty()) return std::string(name);
  return std::string(prefix) + "/" + std::string(name);
}

// The end marker is one block of zeros or more. Concatenated tar files have members after it, which no program reads.
Damage check_tail(ByteSource& file, uint64_t at) {
  const uint64_t end = std::min(file.size(), at + kTailChecked);
  for (; at + kBlock <= end; at += kBlock) {
    const uint8_t* const block = file.at(at, kBlock);
    if (block == nullptr) break;
    if (!is_zero(block)) return {at, "there are further data after the end marker"};
  }
  return {};
}

}  // namespace

Damage scan_tar(ByteSource& file, Members& members) {
  Extension next;
  for (uint64_t at = 0; at < file.size();) {
    const uint64_t begin = at;
    const uint8_t* const header = file.at(at, kBlock);
    if (header == nullptr) return {begin, "the file ends within the header of a member"};
    if (is_zero(header)) return check_tail(file, at);
    if (!has_checksum(header)) return {begin, "the header of a member has a wrong checksum"};
    uint64_t size = 0;
    if (!read_number(header + 124, 12, size) || size > kMaxBytes)
      return {begin, "the header of a member has an impossible size"};
    const char type = static_cast<char>(header[156]);
    const uint64_t data = at + kBlock;
    if (type == 'L' || type == 'K' || type == 'x' || type == 'g') {
      if (size > kMaxExtension) return {begin, "a long name or a pax header has more than 2**20 bytes"};
      const uint8_t* const bytes = size > 0 ? file.at(data, size) : header;
      if (bytes == nullptr) return {begin, "the file ends within the header of a member"};
      if (type == 'L') {
        next.name = text_of(bytes, size);
        next.has_name = true;
      } else if (type == 'x' && !read_pax({reinterpret_cast<const char*>(bytes), size}, next)) {
        return {begin, "a pax header is malformed"};
      }
      at = data + in_blocks(size);
      continue;
    }
    const std::string name = next.has_name ? next.name : name_in(header);
    if (next.has_size) size = next.size;
    const bool is_sparse = next.is_sparse || type == 'S';
    next = {};
    if (is_sparse) return {begin, "a member is stored as a sparse file, which is not supported"};
    if (size > kMaxBytes) return {begin, "the header of a member has an impossible size"};
    // Links, devices and folders have no data, whatever their size says.
    const bool is_regular = type == '0' || type == '\0' || type == '7';
    const bool has_data = is_regular || type < '1' || type > '6';
    const bool is_folder = type == '\0' && !name.empty() && name.back() == '/';
    if (is_regular && !is_folder) {
      members.data.add(data, size);
      members.names += name;
      members.names += '\0';
    }
    if (!has_data || is_folder) size = 0;
    if (size > file.size() || data > file.size() - size) return {begin, "the file ends within the data of a member"};
    at = data + in_blocks(size);
  }
  return {};
}

}  // namespace stoker
