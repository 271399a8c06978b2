// SPDX-License-Identifier: Apache-2.0
// Fuzzing of WAV files (audio/wav.hpp), of Opus in Ogg files (audio/opus.hpp) up to libopus, and of the check of MP3 files (audio/mpeg.hpp): for libFuzzer (LLVMFuzzerTestOneInput), or with generated and mutated files if
// built with STOKER_FUZZ_STANDALONE, of one of the formats if it is named. In addition to the sanitizers' checks, a file that is accepted must have its samples
// within the file, and a part of the frames must be that part of all frames.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "audio/mpeg.hpp"
#include "audio/ogg.hpp"
#include "audio/opus.hpp"
#include "audio/wav.hpp"

namespace {

using namespace stoker;  // NOLINT: a program of one file

struct Counts {
  unsigned long long runs = 0, waves = 0, accepted = 0, other = 0, damaged = 0, mpeg_frames = 0;
} counts;

void require(bool holds, const char* law) {
  if (holds) return;
  std::fprintf(stderr, "broken law: %s\n", law);
  std::abort();
}

// A file whose pages are accepted gives each byte of its packets once, in the order of the file.
void check_ogg(const uint8_t* data, size_t size) {
  std::string error;
  opus::Stream stream;
  const wav::Parsed parsed = opus::parse(data, size, false, &stream, &error);
  if (parsed == wav::Parsed::Damaged) {
    ++counts.damaged;
    require(!error.empty(), "damage has a reason");
  }
  if (parsed == wav::Parsed::Other) ++counts.other;
  if (parsed == wav::Parsed::Ok) {
    ++counts.accepted;
    require(stream.frames >= 0 && stream.channels >= 1 && stream.channels <= 255 && stream.skipped >= 0 &&
                48000 % stream.rate == 0,
            "facts of a stream are in their ranges");
  }
  opus::Stream strict;
  if (opus::parse(data, size, true, &strict, &error) == wav::Parsed::Ok)
    require(parsed == wav::Parsed::Ok && strict.frames == stream.frames, "checksums change no facts");
  if (ogg::check(data, size, false, &error) != wav::Parsed::Ok) return;
  size_t at = 0;
  uint64_t bytes = 0, found = 0;
  const auto mix = [](uint64_t before, const uint8_t* p, size_t n) {
    for (size_t i = 0; i < n; ++i) before = (before ^ p[i]) * 0x100000001B3;
    return before;
  };
  ogg::Page page{};
  while (!page.ends && ogg::read_page(data, size, &at, &page, &error))
    for (const uint8_t* p = page.body; p < data + at; ++p) bytes = mix(bytes, p, 1);
  ogg::Packets packets(data, size);
  for (ogg::Packet packet; packets.next(&packet);) found = mix(found, packet.data, packet.size);
  require(found == bytes, "packets have the bytes of the pages");
}

// A part of the frames is found as in the whole, and frames are within the file.
void check_mpeg(const uint8_t* data, size_t size) {
  std::string error, of_part;
  const mpeg::Frames all = mpeg::check(data, size, 0, -1, &error);
  counts.mpeg_frames += static_cast<unsigned long long>(all.count);
  ++(!error.empty() ? counts.damaged : all.count ? counts.accepted : counts.other);
  require(all.count >= 0 && all.end <= size, "frames are in the file");
  const mpeg::Frames half = mpeg::check(data, size, 0, all.count / 2, &of_part);
  require(half.count == all.count / 2 && half.end <= all.end, "a part is a part of the whole");
}

void decode(const uint8_t* data, size_t size) {
  ++counts.runs;
  if (size > 1 && data[0] == 0xFF) return check_mpeg(data, size);
  if (ogg::is_ogg(data, size)) return check_ogg(data, size);
  ++counts.waves;
  wav::Wave wave;
  std::string error;
  const wav::Parsed parsed = wav::parse(data, size, &wave, &error);
  if (parsed == wav::Parsed::Other) ++counts.other;
  if (parsed == wav::Parsed::Damaged) {
    ++counts.damaged;
    require(!error.empty(), "damage has a reason");
  }
  for (const size_t have : {size_t{11}, size_t{40}, size_t{44}, size_t{60}, size / 2}) {
    if (have > size) continue;
    const std::unique_ptr<uint8_t[]> start(new uint8_t[have]);
    if (have) std::memcpy(start.get(), data, have);
    wav::Wave found;
    const wav::Parsed early = wav::parse_start(start.get(), have, size, &found, &error);
    require(early == wav::Parsed::Other || early == parsed, "the start of a file says what the file says");
    if (early == wav::Parsed::Ok)
      require(found.frames == wave.frames && found.offset == wave.offset && found.sample == wave.sample,
              "the start of a file has its header");
  }
  if (parsed != wav::Parsed::Ok) return;
  ++counts.accepted;
  const int64_t bytes = wave.frames * wave.channels * wav::size_of(wave.sample);
  require(wave.frames >= 0 && wave.offset >= 0 && static_cast<uint64_t>(wave.offset + bytes) <= size,
          "samples are in the file");
  for (const bool downmix : {false, true})
    for (const DType dtype : {DType::F32, DType::I16, DType::I32}) {
      const int64_t width = (downmix ? 1 : wave.channels) * size_of(dtype), half = wave.frames / 2;
      // Exact allocations, so that the sanitizer sees a write past the end.
      const std::unique_ptr<uint8_t[]> all(new uint8_t[static_cast<size_t>(wave.frames * width)]);
      const std::unique_ptr<uint8_t[]> part(new uint8_t[static_cast<size_t>((wave.frames - half) * width)]);
      wav::convert(data, wave, 0, wave.frames, downmix, dtype, all.get());
      wav::convert(data, wave, half, wave.frames - half, downmix, dtype, part.get());
      require(std::memcmp(all.get() + half * width, part.get(), static_cast<size_t>((wave.frames - half) * width)) == 0,
              "a part is a part of the whole");
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::unique_ptr<uint8_t[]> exact(new uint8_t[size]);
  if (size) std::memcpy(exact.get(), data, size);
  decode(exact.get(), size);
  return 0;
}

#ifdef STOKER_FUZZ_STANDALONE
// audio_fuzz SECONDS SEED [wav|ogg|mp3]
#include <chrono>
#include <random>

namespace {

void put(std::vector<uint8_t>* to, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) to->push_back(i < 8 ? static_cast<uint8_t>(value >> (8 * i)) : uint8_t{0});
}

void put(std::vector<uint8_t>* to, const char* name) { to->insert(to->end(), name, name + 4); }

// Damage a file here and there.
void change(std::mt19937& random, std::vector<uint8_t>* file) {
  const auto below = [&](size_t n) { return random() % n; };
  if (below(4) == 0) file->resize(below(file->size() + 1));
  for (size_t n = below(4); n > 0 && !file->empty(); --n)
    (*file)[below(file->size())] ^= static_cast<uint8_t>(1u << below(8));
}

std::vector<uint8_t> made_ogg(std::mt19937& random) {
  const auto below = [&](uint32_t n) { return random() % n; };
  std::vector<std::vector<uint8_t>> packets(2);
  for (const char letter : below(16) ? "OpusHead" : "\x01vorbis ")
    if (letter) packets[0].push_back(static_cast<uint8_t>(letter));
  const uint32_t family = below(3), channels = below(16) ? 1 + below(family ? 8 : 2) : below(256);
  put(&packets[0], below(16) ? 1 : below(256), 1);
  put(&packets[0], channels, 1);
  put(&packets[0], below(4000), 2);
  put(&packets[0], below(4) ? 16000 : random(), 4);
  put(&packets[0], below(8) ? 0 : random(), 2);
  put(&packets[0], family == 2 ? 255 : family, 1);
  if (family) {
    put(&packets[0], channels, 1);
    put(&packets[0], below(8) ? 0 : below(256), 1);
    for (uint32_t i = 0; i < channels; ++i) put(&packets[0], below(32) ? i : below(256), 1);
  }
  for (const char letter : "OpusTags")
    if (letter) packets[1].push_back(static_cast<uint8_t>(letter));
  put(&packets[1], 0, 8);
  for (uint32_t i = below(12); i > 0; --i) {
    std::vector<uint8_t> packet(1 + (below(8) ? below(60) : below(1200)));
    for (uint8_t& byte : packet) byte = static_cast<uint8_t>(random());
    packet[0] = static_cast<uint8_t>(below(8) ? below(32) << 3 | below(3) : random());
    packets.push_back(std::move(packet));
  }
  std::vector<uint8_t> lacing, body, file;
  uint32_t number = 0;
  bool continues = false;
  const auto close = [&](bool ends) {
    const size_t start = file.size();
    put(&file, "OggS");
    put(&file, 0, 1);
    put(&file, (continues ? 1 : 0) | (number == 0 ? 2 : 0) | (ends ? 4 : 0), 1);
    put(&file, below(16) ? (number < 2 ? 0 : number * uint64_t{400}) : uint64_t{random()} << below(33), 8);
    put(&file, below(64) ? 7 : random(), 4);
    put(&file, below(64) ? number : random(), 4);
    put(&file, 0, 4);
    put(&file, lacing.size(), 1);
    file.insert(file.end(), lacing.begin(), lacing.end());
    file.insert(file.end(), body.begin(), body.end());
    const uint32_t checksum = ogg::page_checksum(file.data() + start, file.size() - start);
    for (size_t i = 0; i < 4; ++i) file[start + 22 + i] = static_cast<uint8_t>(checksum >> (8 * i));
    ++number;
    continues = !lacing.empty() && lacing.back() == 255;
    lacing.clear();
    body.clear();
  };
  for (size_t p = 0; p < packets.size(); ++p) {
    size_t left = packets[p].size();
    const uint8_t* from = packets[p].data();
    for (bool open = true; open;) {
      const size_t bytes = left < 255 ? left : 255;
      lacing.push_back(static_cast<uint8_t>(bytes));
      body.insert(body.end(), from, from + bytes);
      from += bytes;
      left -= bytes;
      open = bytes == 255;
      if (open && below(3) == 0) close(false);
    }
    if (p + 1 == packets.size()) close(below(32) > 0);
    else if (p < 2 || below(3) == 0) close(false);
  }
  if (below(2)) change(random, &file);
  return file;
}

std::vector<uint8_t> made_mpeg(std::mt19937& random) {
  const auto below = [&](uint32_t n) { return random() % n; };
  constexpr uint8_t kVersions[] = {0xE3, 0xF3, 0xFB};  // with layer III and no checksum
  const uint8_t second = static_cast<uint8_t>(kVersions[below(3)] & ~below(2)), fourth = below(2) ? 0xC0 : 0;
  const uint8_t rate = static_cast<uint8_t>(below(3) << 2);
  std::vector<uint8_t> file;
  for (uint32_t frames = 1 + below(6); frames > 0; --frames) {
    const uint8_t third = static_cast<uint8_t>((1 + below(below(4) ? 4 : 14)) << 4 | rate | below(2) << 1);
    const size_t start = file.size();
    for (const uint8_t byte : {uint8_t{0xFF}, second, third, fourth}) file.push_back(byte);
    file.resize(start + 4 + below(40));
    for (size_t i = start + 4; i < file.size(); ++i) file[i] = static_cast<uint8_t>(below(2) ? random() : 0);
    std::string error;
    std::vector<uint8_t> room(file.begin() + static_cast<std::ptrdiff_t>(start), file.end());
    room.resize(4096);
    file.resize(start + mpeg::check(room.data(), room.size(), 0, 1, &error).end);
    if (below(4) && !error.empty()) file.resize(start);
  }
  if (below(2)) change(random, &file);
  return file;
}

std::vector<uint8_t> made(std::mt19937& random) {
  const auto below = [&](uint32_t n) { return random() % n; };
  constexpr uint32_t kSizes[] = {0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF};
  const auto size_or = [&](uint32_t right) { return below(8) ? right : kSizes[below(6)]; };
  std::vector<uint8_t> file;
  const uint32_t samples = below(200);
  put(&file, below(8) ? "RIFF" : "RF64");
  put(&file, size_or(36 + samples), 4);
  put(&file, "WAVE");
  if (below(4) == 0) {
    put(&file, "ds64");
    put(&file, size_or(28), 4);
    put(&file, below(1000), 8);
    put(&file, below(4) ? samples : uint64_t{random()} << 32, 8);
    put(&file, 0, 12);
  }
  if (below(4) == 0) {
    const uint32_t n = below(9);
    put(&file, "LIST");
    put(&file, size_or(n), 4);
    file.insert(file.end(), n + (n & 1), 7);
  }
  constexpr uint16_t kTags[] = {1, 1, 1, 3, 3, 0xFFFE, 0xFFFE, 6, 2};
  const uint16_t tag = kTags[below(9)], channels = static_cast<uint16_t>(below(8) ? 1 + below(6) : random());
  const uint32_t bits = below(8) ? 8 * (1 + below(8)) : random() & 0xFFFF;
  put(&file, "fmt ");
  put(&file, size_or(tag == 0xFFFE ? 40 : 16), 4);
  put(&file, tag, 2);
  put(&file, channels, 2);
  put(&file, below(8) ? 16000 : random(), 4);
  put(&file, random(), 4);
  put(&file, below(8) ? channels * ((bits + 7) / 8) : random(), 2);
  put(&file, bits, 2);
  if (tag == 0xFFFE) {
    put(&file, 22, 2);
    put(&file, bits, 2);
    put(&file, random(), 4);
    put(&file, below(2) ? 1 : 3, 2);
    file.insert(file.end(), 14, 0);
  }
  put(&file, "data");
  put(&file, size_or(samples), 4);
  for (uint32_t i = 0; i < samples; ++i) file.push_back(static_cast<uint8_t>(random()));
  change(random, &file);
  return file;
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 10;
  std::mt19937 random(argc > 2 ? static_cast<uint32_t>(std::atoi(argv[2])) : 1);
  const std::string format = argc > 3 ? argv[3] : "";
  constexpr const char* kFormats[] = {"wav", "ogg", "mp3"};
  int chosen = -1;
  for (int i = 0; i < 3; ++i)
    if (format == kFormats[i]) chosen = i;
  if (!format.empty() && chosen < 0) {
    std::fprintf(stderr, "expected the format wav, ogg or mp3, got %s\n", format.c_str());
    return 2;
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  do {
    for (int i = 0; i < 1000; ++i) {
      const int kind = chosen < 0 ? i % 3 : chosen;
      const std::vector<uint8_t> file = kind == 0 ? made(random) : kind == 1 ? made_ogg(random) : made_mpeg(random);
      LLVMFuzzerTestOneInput(file.data(), file.size());
    }
  } while (std::chrono::steady_clock::now() < end);
  std::fprintf(stderr,
               "runs %llu, parsed as WAV %llu, accepted %llu, other formats %llu, damaged %llu, frames of MP3 %llu\n",
               counts.runs, counts.waves, counts.accepted, counts.other, counts.damaged, counts.mpeg_frames);
  return 0;
}
#endif
