// SPDX-License-Identifier: Apache-2.0
#include "audio/wav.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace stoker::wav {

namespace {

template <class T>
T load(const uint8_t* p) {
  T x;
  std::memcpy(&x, p, sizeof x);
  return x;
}

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

namespace {

// Number of a file as float32 (F64: the rounded number).
template <Sample kSample>
float float_of(const uint8_t* p) {
  if constexpr (kSample == Sample::U8) return static_cast<float>(*p - 128) * 0x1p-7f;
  else if constexpr (kSample == Sample::I16) return static_cast<float>(load<int16_t>(p)) * 0x1p-15f;
  else if constexpr (kSample == Sample::I24)
    return static_cast<float>(static_cast<int32_t>(uint32_t{p[0]} << 8 | uint32_t{p[1]} << 16 | uint32_t{p[2]} << 24)) *
           0x1p-31f;
  else if constexpr (kSample == Sample::I32) return static_cast<float>(load<int32_t>(p)) * 0x1p-31f;
  else if constexpr (kSample == Sample::F32) return load<float>(p);
  else return static_cast<float>(load<double>(p));
}

// Number of a file as an integer of 32 bits; not for floats.
template <Sample kSample>
int32_t whole_of(const uint8_t* p) {
  if constexpr (kSample == Sample::U8) return static_cast<int32_t>(static_cast<uint32_t>(*p ^ 0x80) << 24);
  else if constexpr (kSample == Sample::I16)
    return static_cast<int32_t>(static_cast<uint32_t>(load<uint16_t>(p)) << 16);
  else if constexpr (kSample == Sample::I24)
    return static_cast<int32_t>(uint32_t{p[0]} << 8 | uint32_t{p[1]} << 16 | uint32_t{p[2]} << 24);
  else return load<int32_t>(p);
}

template <class Out>
Out quantized(float x) {
  if constexpr (std::is_same_v<Out, float>) {
    return x;
  } else {
    constexpr double kMost = sizeof(Out) == 2 ? 32767.0 : 2147483647.0;
    const double scaled = static_cast<double>(x) * kMost;
    if (!(scaled > -kMost - 1)) return x != x ? Out{0} : static_cast<Out>(-kMost - 1);
    return scaled < kMost ? static_cast<Out>(std::nearbyint(scaled)) : static_cast<Out>(kMost);
  }
}

template <Sample kSample, class Out>
void convert_all(const uint8_t* p, int64_t count, Out* out) {
  constexpr bool kFloats = kSample == Sample::F32 || kSample == Sample::F64;
  for (int64_t i = 0; i < count; ++i, p += size_of(kSample)) {
    if constexpr (std::is_same_v<Out, float>) out[i] = float_of<kSample>(p);
    else if constexpr (kFloats) out[i] = quantized<Out>(float_of<kSample>(p));
    else out[i] = static_cast<Out>(whole_of<kSample>(p) >> (32 - 8 * static_cast<int>(sizeof(Out))));
  }
}

template <Sample kSample, class Out>
void convert_mean(const uint8_t* p, int64_t count, int64_t channels, Out* out) {
  const float part = 1.0f / static_cast<float>(channels);
  for (int64_t i = 0; i < count; ++i) {
    float sum = float_of<kSample>(p) * part;
    p += size_of(kSample);
    for (int64_t c = 1; c < channels; ++c, p += size_of(kSample)) sum += float_of<kSample>(p) * part;
    out[i] = quantized<Out>(sum);
  }
}

template <Sample kSample, class Out>
void convert_as(const uint8_t* p, const Wave& wave, int64_t count, bool downmix, Out* out) {
  if (downmix && wave.channels > 1) convert_mean<kSample>(p, count, wave.channels, out);
  else convert_all<kSample>(p, count * wave.channels, out);
}

template <Sample kSample>
void convert_from(const uint8_t* p, const Wave& wave, int64_t count, bool downmix, DType dtype, uint8_t* out) {
  if (dtype == DType::F32) convert_as<kSample>(p, wave, count, downmix, reinterpret_cast<float*>(out));
  else if (dtype == DType::I16) convert_as<kSample>(p, wave, count, downmix, reinterpret_cast<int16_t*>(out));
  else convert_as<kSample>(p, wave, count, downmix, reinterpret_cast<int32_t*>(out));
}

}  // namespace

void convert(const uint8_t* data, const Wave& wave, int64_t first, int64_t count, bool downmix, DType dtype,
             uint8_t* out) {
  const uint8_t* p = data + wave.offset + first * wave.channels * size_of(wave.sample);
  switch (wave.sample) {
    case Sample::U8: return convert_from<Sample::U8>(p, wave, count, downmix, dtype, out);
    case Sample::I16: return convert_from<Sample::I16>(p, wave, count, downmix, dtype, out);
    case Sample::I24: return convert_from<Sample::I24>(p, wave, count, downmix, dtype, out);
    case Sample::I32: return convert_from<Sample::I32>(p, wave, count, downmix, dtype, out);
    case Sample::F32: return convert_from<Sample::F32>(p, wave, count, downmix, dtype, out);
    case Sample::F64: return convert_from<Sample::F64>(p, wave, count, downmix, dtype, out);
  }
}

}  // namespace stoker::wav
