// SPDX-License-Identifier: Apache-2.0
#include "audio/wav.hpp"

#include <cstring>

#include "audio/samples.hpp"

namespace stoker::wav {

namespace {

bool is(const uint8_t* p, const char (&name)[5]) { return std::memcmp(p, name, 4) == 0; }

constexpr uint16_t kPcm = 1, kFloat = 3, kExtensible = 0xFFFE;
constexpr uint32_t kUnknown = 0xFFFFFFFF;  // a size that a writer of streams did not know

Parsed damaged(std::string* error, std::string text) {
  *error = "expected a WAV file, " + std::move(text);
  return Parsed::Damaged;
}

// Read the format chunk.
Parsed parse_format(const uint8_t* p, size_t size, Wave* wave, std::string* error) {
  if (size < 16) return damaged(error, "with a format of 16 bytes or more, got " + std::to_string(size));
  uint16_t tag = load<uint16_t>(p);
  wave->channels = load<uint16_t>(p + 2);
  wave->rate = load<uint32_t>(p + 4);
  const int64_t block = load<uint16_t>(p + 12), bits = load<uint16_t>(p + 14);
  if (tag == kExtensible) {
    if (size < 40) return damaged(error, "with an extensible format of 40 bytes, got " + std::to_string(size));
    tag = load<uint16_t>(p + 24);
  }
  if (tag != kPcm && tag != kFloat) return Parsed::Other;
  if (wave->channels < 1 || wave->channels > kMostChannels)
    return damaged(error,
                   "with 1 to " + std::to_string(kMostChannels) + " channels, got " + std::to_string(wave->channels));
  if (wave->rate < 1) return damaged(error, "with a positive sampling rate, got 0");
  const int64_t bytes = (bits + 7) / 8;
  if (tag == kFloat ? bytes != 4 && bytes != 8 : bytes < 1 || bytes > 4)
    return damaged(error, "with 8 to 32 bits per sample (floats: 32 or 64), got " + std::to_string(bits));
  if (block != 0 && block != bytes * wave->channels)
    return damaged(error, "with " + std::to_string(bytes * wave->channels) + " bytes for " +
                              std::to_string(wave->channels) + " samples of " + std::to_string(bits) + " bits, got " +
                              std::to_string(block));
  constexpr Sample kIntegers[] = {Sample::U8, Sample::I16, Sample::I24, Sample::I32};
  wave->sample = tag == kPcm ? kIntegers[bytes - 1] : bytes == 4 ? Sample::F32 : Sample::F64;
  return Parsed::Ok;
}

}  // namespace

Parsed parse(const uint8_t* data, size_t size, Wave* wave, std::string* error) {
  return parse_start(data, size, size, wave, error);
}

Parsed parse_start(const uint8_t* data, size_t have, size_t size, Wave* wave, std::string* error) {
  *wave = {};
  if (have < 12 || !(is(data, "RIFF") || is(data, "RF64")) || !is(data + 8, "WAVE")) return Parsed::Other;
  const uint32_t riff = load<uint32_t>(data + 4);
  uint64_t large = 0;  // size of the samples according to an RF64 file
  bool has_format = false;
  size_t at = 12;
  while (size - at >= 8) {
    if (at > have || have - at < 8) return Parsed::Other;
    const uint8_t* const chunk = data + at;
    const uint32_t declared = load<uint32_t>(chunk + 4);
    const size_t begin = at + 8, rest = size - begin;
    if (is(chunk, "ds64") && declared >= 16 && have - begin >= 16) large = load<uint64_t>(data + begin + 8);
    if (is(chunk, "fmt ")) {
      if (declared > rest) return damaged(error, "got one that ends in its header");
      if (declared > have - begin) return Parsed::Other;
      const Parsed parsed = parse_format(data + begin, declared, wave, error);
      if (parsed != Parsed::Ok) return parsed;
      has_format = true;
    }
    if (is(chunk, "data")) {
      if (!has_format) return damaged(error, "with the format before the samples, got samples first");
      uint64_t bytes = declared;
      if (declared == kUnknown) bytes = large > 0 ? large : rest;
      // A writer that could not return to the header leaves 0, in the size of the file too.
      if (declared == 0 && (riff == 0 || riff == kUnknown || riff <= begin - 8)) bytes = rest;
      if (bytes > rest)
        return damaged(error, "with " + std::to_string(bytes) + " bytes of samples, got " + std::to_string(rest) +
                                  ": the file is cut off");
      wave->offset = static_cast<int64_t>(begin);
      wave->frames = static_cast<int64_t>(bytes) / (size_of(wave->sample) * wave->channels);
      return Parsed::Ok;
    }
    const uint64_t padded = uint64_t{declared} + (declared & 1);
    if (padded > rest) break;
    at = begin + static_cast<size_t>(padded);
  }
  return damaged(error, "got one without samples (no `data` chunk)");
}

void convert(const uint8_t* data, const Wave& wave, int64_t first, int64_t count, bool downmix, DType dtype,
             uint8_t* out) {
  samples().convert(data + wave.offset + first * wave.channels * size_of(wave.sample), wave, count, downmix, dtype,
                    out);
}

}  // namespace stoker::wav
