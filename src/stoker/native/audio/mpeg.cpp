// SPDX-License-Identifier: Apache-2.0
#include "audio/mpeg.hpp"

#include <algorithm>
#include <array>

namespace stoker::mpeg {

namespace {

constexpr int kKbits[2][16] = {{0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160, 0},
                               {0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 0}};
constexpr int kRates[4][3] = {{11025, 12000, 8000}, {0, 0, 0}, {22050, 24000, 16000}, {44100, 48000, 32000}};
constexpr int kVersion1 = 3, kReserved = 1, kLayer3 = 1, kMono = 3;
constexpr int kLargestPairs = 288;  // pairs of large values: half of the 576 lines of a granule
constexpr size_t kHeaderBytes = 4, kChecksumBytes = 2;

struct Header {
  bool is_version_1, is_mono, has_checksum;
  int rate;
  size_t size, side_bytes;  // of the frame; of the side information
};

bool parse(const uint8_t* p, Header* h) {
  if (p[0] != 0xFF || (p[1] & 0xE0) != 0xE0) return false;
  const int version = p[1] >> 3 & 3, layer = p[1] >> 1 & 3, kbits = p[2] >> 4, rate = p[2] >> 2 & 3;
  if (version == kReserved || layer != kLayer3 || kbits == 0 || kbits == 15 || rate == 3) return false;
  h->is_version_1 = version == kVersion1;
  h->is_mono = p[3] >> 6 == kMono;
  h->has_checksum = !(p[1] & 1);
  h->rate = kRates[version][rate];
  h->size = static_cast<size_t>((h->is_version_1 ? 144000 : 72000) * kKbits[h->is_version_1][kbits] / h->rate) +
            (p[2] >> 1 & 1);
  h->side_bytes = h->is_version_1 ? (h->is_mono ? 17 : 32) : (h->is_mono ? 9 : 17);
  return true;
}

class Bits {
 public:
  explicit Bits(const uint8_t* data) : data_(data) {}
  int read(int count) {
    int value = 0;
    for (; count > 0; --count, ++at_) value = value << 1 | (data_[at_ >> 3] >> (7 - (at_ & 7)) & 1);
    return value;
  }
  void skip(int count) { at_ += static_cast<size_t>(count); }

 private:
  const uint8_t* data_;
  size_t at_ = 0;
};

bool is_table(int number) { return number != 4 && number != 14; }  // of codes; these two do not exist

// Return whether one channel of a granule is possible, and add the bits of its data.
bool is_possible(Bits* bits, bool is_version_1, size_t* data_bits) {
  *data_bits += static_cast<size_t>(bits->read(12));
  const int pairs = bits->read(9);
  if (pairs > kLargestPairs) return false;
  bits->skip(8 + (is_version_1 ? 4 : 9));  // gain, sizes of scale factors
  const bool has_short_blocks = bits->read(1);
  if (has_short_blocks && bits->read(2) == 0) return false;  // a long block
  if (has_short_blocks) bits->skip(1);
  const int table = bits->read(5);  // of the first region, which every granule with large values has
  if (pairs > 0 && !is_table(table)) return false;
  bits->skip((has_short_blocks ? 14 : 17) + (is_version_1 ? 3 : 2));
  return true;
}

// `main_bytes` of the frame follow its side information; data may begin in earlier frames.
bool is_possible(const uint8_t* side, const Header& h, size_t main_bytes) {
  Bits bits(side);
  const int channels = h.is_mono ? 1 : 2;
  const size_t earlier_bytes = static_cast<size_t>(bits.read(h.is_version_1 ? 9 : 8));
  bits.skip(h.is_version_1 ? (h.is_mono ? 5 : 3) + 4 * channels : (h.is_mono ? 1 : 2));
  size_t data_bits = 0;
  for (int i = 0; i < channels * (h.is_version_1 ? 2 : 1); ++i)
    if (!is_possible(&bits, h.is_version_1, &data_bits)) return false;
  return data_bits <= 8 * (earlier_bytes + main_bytes);
}

constexpr std::array<uint16_t, 256> make_table() {
  std::array<uint16_t, 256> table{};
  for (unsigned i = 0; i < 256; ++i) {
    unsigned crc = i << 8;
    for (int bit = 0; bit < 8; ++bit) crc = crc << 1 ^ (crc & 0x8000 ? 0x8005u : 0u);
    table[i] = static_cast<uint16_t>(crc);
  }
  return table;
}
constexpr std::array<uint16_t, 256> kTable = make_table();

uint16_t add_to_checksum(uint16_t crc, const uint8_t* data, size_t size) {
  for (size_t i = 0; i < size; ++i) crc = static_cast<uint16_t>(crc << 8 ^ kTable[(crc >> 8 ^ data[i]) & 0xFF]);
  return crc;
}

bool checksum_matches(const uint8_t* frame, const Header& h) {
  const uint8_t* const checksum = frame + kHeaderBytes;
  const uint16_t crc = add_to_checksum(add_to_checksum(0xFFFF, frame + 2, 2), checksum + kChecksumBytes, h.side_bytes);
  return crc == (checksum[0] << 8 | checksum[1]);
}

constexpr size_t kNone = ~size_t{0};

std::string at_byte(size_t at) { return " of the frame at byte " + std::to_string(at); }

}  // namespace

Frames check(const uint8_t* data, size_t size, size_t start, int64_t most, std::string* error) {
  Frames frames{0, start};
  Header first{}, h{};
  size_t first_mismatch = kNone;
  bool any_match = false;
  for (; frames.count != most && frames.end + kHeaderBytes <= size; ++frames.count, frames.end += h.size) {
    const size_t at = frames.end;
    const uint8_t* const p = data + at;
    if (!parse(p, &h)) break;
    if (frames.count == 0) first = h;
    if (h.rate != first.rate || h.is_mono != first.is_mono) break;
    if (h.size > size - at) {
      *error = "expected " + std::to_string(h.size) + " bytes of a frame at byte " + std::to_string(at) + ", got " +
               std::to_string(size - at) + ": the file is cut off";
      return frames;
    }
    const size_t before = kHeaderBytes + (h.has_checksum ? kChecksumBytes : 0);
    const size_t main_at = before + h.side_bytes;
    if (h.size < main_at || !is_possible(p + before, h, h.size - main_at)) {
      *error = "expected possible side information" + at_byte(at) + ": the file is damaged";
      return frames;
    }
    if (!h.has_checksum) continue;
    const bool matches = checksum_matches(p, h);
    any_match |= matches;
    if (!matches) first_mismatch = std::min(first_mismatch, at);
  }
  // Some encoders write other checksums throughout.
  if (any_match && first_mismatch != kNone)
    *error = "expected the checksum" + at_byte(first_mismatch) + " to match: the file is damaged";
  return frames;
}

}  // namespace stoker::mpeg
