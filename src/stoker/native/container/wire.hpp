// SPDX-License-Identifier: Apache-2.0
// Fields of encoded protocol buffer messages, read without copies.
#pragma once
#include <cstddef>
#include <cstdint>

namespace stoker {

struct ByteSpan {
  const uint8_t* data = nullptr;
  size_t size = 0;
};

// Read a number of variable length at `at`, and advance. Return false if the bytes end within it or it is too long.
inline bool read_varint(const uint8_t*& at, const uint8_t* end, uint64_t& value) {
  value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (at == end) return false;
    const uint8_t byte = *at++;
    value |= static_cast<uint64_t>(byte & 127) << shift;
    if (byte < 128) return true;
  }
  return false;
}

enum class WireType : uint32_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

// Cursor over the fields of one message. Groups, which protocol buffers have dropped, count as damage.
class WireReader {
 public:
  explicit WireReader(ByteSpan message) : at_(message.data), end_(message.data + message.size) {}

  // Move to the next field. Return false at the end of the message, and where it is damaged.
  bool next() {
    if (at_ == end_) return false;
    uint64_t tag = 0;
    if (!read_varint(at_, end_, tag) || tag > UINT32_MAX || tag >> 3 == 0) return damage();
    field = static_cast<uint32_t>(tag >> 3);
    type = static_cast<WireType>(tag & 7);
    switch (type) {
      case WireType::Varint: return read_varint(at_, end_, number) || damage();
      case WireType::Fixed64: return take(8) || damage();
      case WireType::Fixed32: return take(4) || damage();
      case WireType::Bytes: {
        uint64_t size = 0;
        return (read_varint(at_, end_, size) && take(size)) || damage();
      }
      default: return damage();
    }
  }
  bool is_damaged() const { return is_damaged_; }
  bool has_bytes(uint32_t wanted) const { return field == wanted && type == WireType::Bytes; }

  uint32_t field = 0;
  WireType type = WireType::Varint;
  uint64_t number = 0;  // of a Varint
  ByteSpan bytes;       // of all other types

 private:
  bool take(uint64_t size) {
    if (size > static_cast<uint64_t>(end_ - at_)) return false;
    bytes = {at_, static_cast<size_t>(size)};
    at_ += size;
    return true;
  }
  bool damage() {
    is_damaged_ = true;
    at_ = end_;
    return false;
  }

  const uint8_t *at_, *const end_;
  bool is_damaged_ = false;
};

}  // namespace stoker
