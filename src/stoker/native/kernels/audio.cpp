// SPDX-License-Identifier: Apache-2.0
// Kernels that read audio files: WAV natively, other formats in the steps' Python twins.
#include <cstring>
#include <string>

#include "audio/wav.hpp"
#include "base/whole.hpp"
#include "kernels/registry.hpp"
#include "plan/check.hpp"
#include "run/job.hpp"

namespace stoker {

namespace {

// Parse the file of a row. A row of another format goes to Python.
Outcome parse_row(const Call& c, wav::Wave* wave) {
  const View& file = *c.in[0];
  switch (wav::parse(file.data, static_cast<size_t>(file.shape[0]), wave, c.error)) {
    case wav::Parsed::Ok: return Outcome::Ok;
    case wav::Parsed::Damaged: return Outcome::Error;
    default: *c.error = "not a WAV file of plain numbers"; return Outcome::Python;
  }
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
    wav::Wave wave;
    const Outcome parsed = parse_row(c, &wave);
    const int64_t header[] = {wave.frames, wave.channels, wave.rate};
    if (parsed == Outcome::Ok) std::memcpy(c.out[0]->data, header, sizeof header);
    return parsed;
  }
};

// Samples of a file, [frames, channels] or their means over the channels, [frames]. Parameter: the first frame.
class DecodeAudio : public Kernel {
 public:
  explicit DecodeAudio(bool downmix) : downmix_(downmix) {}
  Ports ports() const override {
    const int32_t rank = downmix_ ? 1 : 2;
    return {.kernel = "decode_audio",
            .in = {port_of(DType::U8, 1)},
            .out = {{.types = types(DType::F32, DType::I16, DType::I32), .least_rank = rank, .most_rank = rank}},
            .params = 1};
  }
  bool fits(const Call& c) const override { return is_contiguous_file(c); }
  Outcome run(const Call& c) const override {
    const View& out = *c.out[0];
    wav::Wave wave;
    const Outcome parsed = parse_row(c, &wave);
    if (parsed != Outcome::Ok) return parsed;
    const int64_t first = offset_of(c.params[0]), count = out.shape[0];
    if (first < 0 || count > wave.frames - first || (!downmix_ && out.shape[1] != wave.channels)) {
      *c.error = "expected frames within the " + std::to_string(wave.frames) + " of the file";
      return Outcome::Error;
    }
    wav::convert(c.in[0]->data, wave, first, count, downmix_, out.dtype, out.data);
    return Outcome::Ok;
  }

 private:
  bool downmix_;
};

std::shared_ptr<Kernel> make_audio_header() { return std::make_shared<AudioHeader>(); }
std::shared_ptr<Kernel> make_decode_audio(bool downmix) { return std::make_shared<DecodeAudio>(downmix); }

const Registered kAudioHeader{"audio_header", "Frames, channels and sampling rate of an audio file.",
                              make_audio_header};
const Registered kDecodeAudio{
    "decode_audio", "Samples of an audio file.", make_decode_audio, {{"downmix", "the mean over the channels"}}};

}  // namespace

}  // namespace stoker
