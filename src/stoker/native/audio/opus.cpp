// SPDX-License-Identifier: Apache-2.0
#include "audio/opus.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>

namespace stoker::opus {

namespace {

constexpr int32_t kRate = 48000, kMostInPacket = 5760;  // 120 ms

uint32_t little(const uint8_t* p, int bytes) {
  uint32_t x = 0;
  for (int i = bytes; i-- > 0;) x = x << 8 | p[i];
  return x;
}

wav::Parsed damaged(std::string* error, const std::string& text) {
  *error = "expected an Opus file, got one with " + text;
  return wav::Parsed::Damaged;
}

// Samples per channel of a packet at 48 kHz (RFC 6716, 3.1 and 3.2.5), or 0.
int32_t duration_of(const ogg::Packet& packet) {
  if (packet.size < 1) return 0;
  constexpr int32_t kSilk[] = {480, 960, 1920, 2880}, kCelt[] = {120, 240, 480, 960};
  const int32_t config = packet.data[0] >> 3;
  const int32_t frame = config < 12 ? kSilk[config & 3] : config < 16 ? kSilk[config & 1] : kCelt[config & 3];
  int32_t frames = 1;
  if ((packet.data[0] & 3) == 3) frames = packet.size < 2 ? 0 : packet.data[1] & 63;
  else if ((packet.data[0] & 3) != 0) frames = 2;
  return frame * frames <= kMostInPacket ? frame * frames : 0;
}

// Read the packet OpusHead.
wav::Parsed parse_head(const ogg::Packet& packet, Stream* stream, int64_t* skipped, std::string* error) {
  const uint8_t* const p = packet.data;
  if (packet.size < 19 || p[8] > 15) return damaged(error, "an unknown header");
  stream->channels = p[9];
  *skipped = little(p + 10, 2);
  const uint32_t rate = little(p + 12, 4);
  stream->gain = static_cast<int16_t>(little(p + 16, 2));
  stream->family = p[18];
  if (stream->channels < 1) return damaged(error, "0 channels");
  stream->rate = kRate;
  for (const int32_t known : {24000, 16000, 12000, 8000})
    if (rate <= static_cast<uint32_t>(known)) stream->rate = known;
  if (stream->family == 0) {
    if (stream->channels > 2) return damaged(error, std::to_string(stream->channels) + " channels without a mapping");
    stream->streams = 1;
    stream->coupled = stream->channels - 1;
    stream->mapping[1] = 1;
    return wav::Parsed::Ok;
  }
  if (stream->family != 1 && stream->family != 255)
    return damaged(error, "channels of the unsupported mapping family " + std::to_string(stream->family));
  const auto channels = static_cast<size_t>(stream->channels);
  if (packet.size < 21 + channels) return damaged(error, "a header without its mapping");
  stream->streams = p[19];
  stream->coupled = p[20];
  const int32_t decoded = stream->streams + stream->coupled;
  if (stream->streams < 1 || stream->coupled > stream->streams || decoded > 255 ||
      (stream->family == 1 && channels > 8))
    return damaged(error, "a mapping of " + std::to_string(stream->streams) + " streams to " +
                              std::to_string(channels) + " channels");
  for (size_t i = 0; i < channels; ++i) {
    stream->mapping[i] = p[21 + i];
    if (stream->mapping[i] >= decoded && stream->mapping[i] != 255)
      return damaged(error, "a channel of which there is no stream");
  }
  return wav::Parsed::Ok;
}

}  // namespace

wav::Parsed parse(const uint8_t* data, size_t size, bool decodes, Stream* stream, std::string* error) {
  *stream = {};
  if (!ogg::is_ogg(data, size)) return wav::Parsed::Other;
  ogg::Page first;
  size_t at = 0;
  const bool is_opus = ogg::read_page(data, size, &at, &first, error) && at >= 8 && first.segments > 0 &&
                       first.lacing[0] >= 8 && std::memcmp(first.body, "OpusHead", 8) == 0;
  const wav::Parsed checked = ogg::check(data, size, is_opus == decodes, error);
  if (checked != wav::Parsed::Ok) return checked;
  if (!is_opus) return wav::Parsed::Other;
  ogg::Packets packets(data, size);
  ogg::Packet packet;
  int64_t skipped = 0;
  if (!packets.next(&packet)) return damaged(error, "no header");
  const wav::Parsed head = parse_head(packet, stream, &skipped, error);
  if (head != wav::Parsed::Ok) return head;
  if (!packets.next(&packet) || packet.size < 8 || std::memcmp(packet.data, "OpusTags", 8) != 0)
    return damaged(error, "no comments");
  // The position of the first page with samples says where the stream begins: one that was cut out of another begins
  // later than at 0. On the last page it says where the stream ends.
  int64_t decoded = 0, begin = 0, end = 0;
  bool positioned = false;
  while (packets.next(&packet)) {
    const int32_t samples = duration_of(packet);
    if (samples == 0) return damaged(error, "a packet of no known duration");
    decoded += samples;
    if (packet.position < 0) continue;
    if (!positioned) begin = std::max<int64_t>(packet.position - decoded, 0);
    positioned = true;
    end = packet.position;
  }
  const int64_t shown = end - begin - skipped;
  if (end - begin > decoded || (decoded > 0 && !positioned))
    return damaged(error, std::to_string(decoded) + " samples, although its pages say " + std::to_string(end - begin));
  const int32_t factor = kRate / stream->rate;
  stream->frames = std::max<int64_t>(shown, 0) / factor;
  stream->skipped = skipped / factor;
  return wav::Parsed::Ok;
}

// Source: opus_multistream.h.
struct Library {
  void* (*create)(int32_t rate, int channels, int streams, int coupled, const unsigned char* mapping, int* error);
  int (*decode)(void* decoder, const unsigned char* packet, int32_t size, float* out, int frames, int fec);
  int (*control)(void* decoder, int request, ...);
  void (*destroy)(void* decoder);
  const char* (*text_of)(int error);
};

const Library* open_library(const std::string& path) {
  static std::mutex mutex;
  static std::map<std::string, std::unique_ptr<Library>> opened;  // libraries stay loaded: threads may run their code
  const std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<Library>& library = opened[path];
  if (library) return library.get();
  void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) throw std::invalid_argument("expected the library of Opus, got " + std::string(::dlerror()));
  auto found = std::make_unique<Library>();
  const auto find = [&](auto* function, const char* name) {
    void* const symbol = ::dlsym(handle, name);
    if (!symbol) throw std::invalid_argument("expected a library with the function `" + std::string(name) + "`");
    *function = reinterpret_cast<std::remove_reference_t<decltype(*function)>>(symbol);
  };
  find(&found->create, "opus_multistream_decoder_create");
  find(&found->decode, "opus_multistream_decode_float");
  find(&found->control, "opus_multistream_decoder_ctl");
  find(&found->destroy, "opus_multistream_decoder_destroy");
  find(&found->text_of, "opus_strerror");
  library = std::move(found);
  return library.get();
}

size_t scratch_bytes(const Stream& stream) {
  return static_cast<size_t>(kMostInPacket) * static_cast<size_t>(stream.channels) * sizeof(float);
}

bool decode(const Library& library, const uint8_t* data, size_t size, const Stream& stream, const Part& part,
            bool downmix, DType dtype, float* scratch, uint8_t* out, std::string* error) {
  constexpr int kSetGain = 4034;
  int code = 0;
  const std::unique_ptr<void, void (*)(void*)> decoder(
      library.create(stream.rate, stream.channels, stream.streams, stream.coupled, stream.mapping, &code),
      library.destroy);
  if (!decoder || library.control(decoder.get(), kSetGain, stream.gain) != 0) {
    *error = "libopus has no decoder for this file: " + std::string(library.text_of(code));
    return false;
  }
  const int64_t width = (downmix ? 1 : stream.channels) * size_of(dtype);
  wav::Wave block{
      .frames = 0, .channels = stream.channels, .rate = stream.rate, .offset = 0, .sample = wav::Sample::F32};
  ogg::Packets packets(data, size);
  ogg::Packet packet;
  packets.next(&packet);  // the header and the comments
  packets.next(&packet);
  // A decoder's state depends on all packets before, so without a limit all of them are decoded.
  const int64_t begin = stream.skipped + part.first, end = begin + part.count;
  const int64_t needed = part.before < 0 || part.before > begin ? 0 : begin - part.before;
  for (int64_t at = 0; at < end;) {
    if (!packets.next(&packet)) {
      *error = "expected " + std::to_string(part.count) + " frames, got " + std::to_string(at - begin);
      return false;
    }
    const int32_t wanted = duration_of(packet) / (kRate / stream.rate);
    if (at + wanted <= needed) {
      at += wanted;
      continue;
    }
    const int got = library.decode(decoder.get(), packet.data, static_cast<int32_t>(packet.size), scratch, wanted, 0);
    if (got != wanted) {
      *error = "expected a packet of " + std::to_string(wanted) + " samples, got " +
               (got < 0 ? std::string(library.text_of(got)) : std::to_string(got));
      return false;
    }
    const int64_t from = std::max<int64_t>(begin - at, 0), to = std::min<int64_t>(end - at, wanted);
    if (from < to) {
      block.frames = wanted;
      wav::convert(reinterpret_cast<const uint8_t*>(scratch), block, from, to - from, downmix, dtype, out);
      out += (to - from) * width;
    }
    at += wanted;
  }
  return true;
}

}  // namespace stoker::opus
