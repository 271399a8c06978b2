// SPDX-License-Identifier: Apache-2.0
#include "io/kept_shards.hpp"

#include "container/blake2b.hpp"

namespace stoker {

namespace {

template <class Bytes>
std::string in_hexadecimal(const Bytes& bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const uint8_t byte : bytes) (text += kDigits[byte >> 4]) += kDigits[byte & 15];
  return text;
}

// Return the name of an object's folder in the cache (remote/block_cache.py: identity_of).
std::string folder_of(const std::string& address, uint64_t size, const std::string& tag) {
  std::string text = address;
  text += '\0';
  text += std::to_string(size);
  text += '\0';
  text += tag.empty() ? "None" : tag;  // as Python shows a missing tag
  return in_hexadecimal(blake2b_128(reinterpret_cast<const uint8_t*>(text.data()), text.size()));
}

}  // namespace

bool KeptShards::find(size_t i, Range& range, KeptBlocks::Object& object, std::string& error) const {
  if (!table_->find(i, range, error)) return false;
  if (range.codec == Codec::Absent) return true;
  std::string text;
  if (!table_->manifest().text(range.file, text, error)) return false;
  const size_t end = text.find('\0');
  const std::string address = text.substr(0, end), tag = end == std::string::npos ? "" : text.substr(end + 1);
  const uint64_t size = table_->manifest()[range.file].size;
  if (range.offset > size || range.length > size - range.offset) {
    error = "expected " + std::to_string(range.length) + " bytes at byte " + std::to_string(range.offset) + " of '" +
            address + "', got an object of " + std::to_string(size) + " bytes";
    return false;
  }
  object = {folder_ + folder_of(address, size, tag) + "/", size};
  return true;
}

}  // namespace stoker
