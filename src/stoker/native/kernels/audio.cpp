// SPDX-License-Identifier: Apache-2.0
// Kernels that read audio files: WAV natively, Opus by libopus, other formats in the steps' Python twins.
#include <cmath>
#include <cstring>
#include <string>

#include "audio/ogg.hpp"
#include "audio/opus.hpp"
#include "audio/wav.hpp"
#include "base/whole.hpp"
#include "kernels/registry.hpp"
#include "plan/check.hpp"
#include "run/job.hpp"

namespace stoker {

namespace {

// What a file is.
struct Found {
  wav::Wave wave;
  opus::Stream opus;
  bool is_opus;
  int64_t frames() const { return is_opus ? opus.frames : wave.frames; }
  int64_t channels() const { return is_opus ? opus.channels : wave.channels; }
  int64_t rate() const { return is_opus ? opus.rate : wave.rate; }
};

Outcome outcome_of(wav::Parsed parsed, const Call& c) {
  if (parsed == wav::Parsed::Ok) return Outcome::Ok;
  if (parsed == wav::Parsed::Damaged) return Outcome::Error;
  *c.error = "not a WAV file of plain numbers";
  return Outcome::Python;
}

// Parse the file of a row. A row of another format goes to Python.
Outcome parse_row(const Call& c, bool decodes, Found* found) {
  const View& file = *c.in[0];
  const auto size = static_cast<size_t>(file.shape[0]);
  wav::Parsed parsed = wav::parse(file.data, size, &found->wave, c.error);
  found->is_opus = parsed == wav::Parsed::Other && ogg::is_ogg(file.data, size);
  if (found->is_opus) parsed = opus::parse(file.data, size, decodes, &found->opus, c.error);
  return outcome_of(parsed, c);
}

bool is_contiguous_file(const Call& c) {
  if (c.in[0]->contiguous()) return true;
  *c.error = "expected the bytes of a file without gaps";
  return false;
}

// Frames, channels and sampling rate from the header of a file.
class AudioHeader : public Kernel {
 public:
  Ports ports() const override {
    return {.kernel = "audio_header", .in = {port_of(DType::U8, 1)}, .out = {port_of(DType::I64, 1)}};
  }
  bool fits(const Call& c) const override {
    if (c.out[0]->shape[0] == 3) return is_contiguous_file(c);
    *c.error = "expected memory for three numbers";
    return false;
  }
  Outcome run(const Call& c) const override {
    Found found;
    const Outcome parsed = parse_row(c, false, &found);
    const int64_t header[] = {found.frames(), found.channels(), found.rate()};
    if (parsed == Outcome::Ok) std::memcpy(c.out[0]->data, header, sizeof header);
    return parsed;
  }
};

// Samples of a file, [frames, channels] or their means over the channels, [frames]. Parameters: the first frame, and the
// seconds before it that a decoder with a state decodes, negative: all.
class DecodeAudio : public Kernel {
 public:
  DecodeAudio(bool downmix, const std::string& libopus)
      : downmix_(downmix), libopus_(libopus.empty() ? nullptr : opus::open_library(libopus)) {}
  Ports ports() const override {
    const int32_t rank = downmix_ ? 1 : 2;
    return {.kernel = "decode_audio",
            .in = {port_of(DType::U8, 1)},
            .out = {{.types = types(DType::F32, DType::I16, DType::I32), .least_rank = rank, .most_rank = rank}},
            .params = 2};
  }
  bool fits(const Call& c) const override { return is_contiguous_file(c); }
  Outcome run(const Call& c) const override {
    const View& out = *c.out[0];
    Found found;
    const Outcome parsed = parse_row(c, true, &found);
    if (parsed != Outcome::Ok) return parsed;
    const int64_t first = offset_of(c.params[0]), count = out.shape[0];
    if (first < 0 || count > found.frames() - first || (!downmix_ && out.shape[1] != found.channels())) {
      *c.error = "expected frames within the " + std::to_string(found.frames()) + " of the file";
      return Outcome::Error;
    }
    const View& file = *c.in[0];
    if (!found.is_opus) {
      wav::convert(file.data, found.wave, first, count, downmix_, out.dtype, out.data);
      return Outcome::Ok;
    }
    if (!libopus_) {
      *c.error = "Opus without the library libopus";
      return Outcome::Python;
    }
    auto* const scratch = reinterpret_cast<float*>(c.work[0].get(opus::scratch_bytes(found.opus)));
    const double before = std::ceil(c.params[1] * static_cast<double>(found.rate()));
    const bool is_limited = before >= 0 && before < static_cast<double>(found.frames());
    const opus::Part part{
        .first = first, .count = count, .before = is_limited ? static_cast<int64_t>(before) : int64_t{-1}};
    const bool decoded = opus::decode(*libopus_, file.data, static_cast<size_t>(file.shape[0]), found.opus, part,
                                      downmix_, out.dtype, scratch, out.data, c.error);
    return decoded ? Outcome::Ok : Outcome::Error;
  }

 private:
  bool downmix_;
  const opus::Library* libopus_;  // null: there is none
};

std::shared_ptr<Kernel> make_audio_header() { return std::make_shared<AudioHeader>(); }
std::shared_ptr<Kernel> make_decode_audio(bool downmix, registry::Bytes libopus) {
  return std::make_shared<DecodeAudio>(downmix, std::string(libopus.data, libopus.size));
}

const Registered kAudioHeader{"audio_header", "Frames, channels and sampling rate of an audio file.",
                              make_audio_header};
const Registered kDecodeAudio{
    "decode_audio",
    "Samples of an audio file.",
    make_decode_audio,
    {{"downmix", "the mean over the channels"}, {"libopus", "path of the library that decodes Opus; empty: none"}}};

}  // namespace

}  // namespace stoker
