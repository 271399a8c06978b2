// SPDX-License-Identifier: Apache-2.0
#include "audio/ogg.hpp"

#include <array>
#include <cstring>
#include <type_traits>

namespace stoker::ogg {

namespace {

constexpr size_t kHeader = 27;
constexpr size_t kChecksumAt = 22;

template <class T>
T load(const uint8_t* p) {  // little endian
  std::make_unsigned_t<T> x = 0;
  for (size_t i = sizeof(T); i-- > 0;) x = static_cast<std::make_unsigned_t<T>>(uint64_t{x} << 8 | p[i]);
  return static_cast<T>(x);
}

// Checksums of a byte that is followed by 0 to 7 zeros.
constexpr std::array<std::array<uint32_t, 256>, 8> kTables = [] {
  std::array<std::array<uint32_t, 256>, 8> tables{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t r = i << 24;
    for (int bit = 0; bit < 8; ++bit) r = r << 1 ^ (r >> 31 ? 0x04C11DB7u : 0u);
    tables[0][i] = r;
  }
  for (size_t t = 1; t < 8; ++t)
    for (size_t i = 0; i < 256; ++i) {
      const uint32_t r = tables[t - 1][i];
      tables[t][i] = r << 8 ^ tables[0][r >> 24];
    }
  return tables;
}();

uint32_t checksum_of(const uint8_t* p, size_t size, uint32_t r) {
  const auto big = [](const uint8_t* q) {
    return uint32_t{q[0]} << 24 | uint32_t{q[1]} << 16 | uint32_t{q[2]} << 8 | uint32_t{q[3]};
  };
  for (; size >= 8; p += 8, size -= 8) {
    const uint32_t a = r ^ big(p), b = big(p + 4);
    r = kTables[7][a >> 24] ^ kTables[6][a >> 16 & 255] ^ kTables[5][a >> 8 & 255] ^ kTables[4][a & 255] ^
        kTables[3][b >> 24] ^ kTables[2][b >> 16 & 255] ^ kTables[1][b >> 8 & 255] ^ kTables[0][b & 255];
  }
  for (; size > 0; ++p, --size) r = r << 8 ^ kTables[0][(r >> 24) ^ *p];
  return r;
}

}  // namespace

uint32_t page_checksum(const uint8_t* page, size_t size) {
  constexpr uint8_t kZeros[4] = {};
  const uint32_t r = checksum_of(kZeros, 4, checksum_of(page, kChecksumAt, 0));
  return checksum_of(page + kChecksumAt + 4, size - kChecksumAt - 4, r);
}

bool is_ogg(const uint8_t* data, size_t size) { return size >= 4 && std::memcmp(data, "OggS", 4) == 0; }

bool read_page(const uint8_t* data, size_t size, size_t* at, Page* page, std::string* error) {
  const uint8_t* const p = data + *at;
  const size_t rest = size - *at;
  const auto cut = [&] {
    *error = "expected an Ogg page at byte " + std::to_string(*at) + ", got " + std::to_string(rest) +
             " bytes of one: the file is cut off";
    return false;
  };
  if (!is_ogg(p, rest)) {
    if (rest < 4 && std::memcmp(p, "OggS", rest) == 0) return cut();
    *error = "expected an Ogg page at byte " + std::to_string(*at) + ", got other bytes: the file is damaged";
    return false;
  }
  if (rest < kHeader || rest < kHeader + p[26]) return cut();
  page->continues = p[5] & 1;
  page->begins = p[5] & 2;
  page->ends = p[5] & 4;
  page->position = load<int64_t>(p + 6);
  page->stream = load<uint32_t>(p + 14);
  page->number = load<uint32_t>(p + 18);
  page->checksum = load<uint32_t>(p + kChecksumAt);
  page->segments = p[26];
  page->lacing = p + kHeader;
  page->body = page->lacing + page->segments;
  size_t bytes = 0;
  for (int32_t i = 0; i < page->segments; ++i) bytes += page->lacing[i];
  const size_t whole = kHeader + static_cast<size_t>(page->segments) + bytes;
  if (rest < whole) return cut();
  *at += whole;
  return true;
}

wav::Parsed check(const uint8_t* data, size_t size, bool checksums, std::string* error) {
  const auto damaged = [&](size_t at, const char* text) {
    *error = "expected an Ogg file, got one with " + std::string(text) + " at byte " + std::to_string(at);
    return wav::Parsed::Damaged;
  };
  uint32_t stream = 0, number = 0;
  bool open = false;  // the last packet goes on
  for (size_t at = 0, start = 0; at < size; start = at) {
    Page page;
    if (!read_page(data, size, &at, &page, error)) return wav::Parsed::Damaged;
    if (start == 0) {
      stream = page.stream;
      number = page.number;
      if (!page.begins) return damaged(start, "a page that does not begin a stream");
    } else if (page.stream != stream) {
      return damaged(start, "a page of a second stream");
    } else if (page.begins) {
      return damaged(start, "a second beginning of its stream");
    }
    if ((checksums || page.begins || page.ends) && page_checksum(data + start, at - start) != page.checksum)
      return damaged(start, "a damaged page");
    if (page.number != number++) return damaged(start, "missing pages");
    // A page without segments may stand between the parts of a packet.
    if (page.segments > 0) {
      if (page.continues != open) return damaged(start, "a missing part of a packet");
      open = page.lacing[page.segments - 1] == 255;
    }
    if (!page.ends) continue;
    if (open) return damaged(start, "a packet that does not end");
    if (size - at >= 4 && is_ogg(data + at, size - at)) return damaged(at, "a further stream (they are not joined)");
    return wav::Parsed::Ok;
  }
  *error = "expected an Ogg file with a page that ends it, got none: the file is cut off";
  return wav::Parsed::Damaged;
}

bool Packets::next(Packet* packet) {
  bool joined = false;
  for (;;) {
    if (segment_ == page_.segments) {  // the next page
      std::string unused;
      if (page_.ends || at_ == size_ || !read_page(data_, size_, &at_, &page_, &unused)) return false;
      segment_ = 0;
      last_ = -1;
      body_ = page_.body;
      for (int32_t i = 0; i < page_.segments; ++i)
        if (page_.lacing[i] < 255) last_ = i;
      continue;
    }
    const uint8_t* const begin = body_;
    bool whole = false;
    while (segment_ < page_.segments && !whole) {
      const uint8_t bytes = page_.lacing[segment_++];
      body_ += bytes;
      whole = bytes < 255;
    }
    if (!whole || joined) {
      if (!joined) joined_.clear();
      joined_.insert(joined_.end(), begin, body_);
      joined = true;
    }
    if (!whole) continue;
    *packet = joined ? Packet{joined_.data(), joined_.size(), kNoPosition}
                     : Packet{begin, static_cast<size_t>(body_ - begin), kNoPosition};
    if (segment_ - 1 == last_) packet->position = page_.position;
    return true;
  }
}

}  // namespace stoker::ogg
