// SPDX-License-Identifier: Apache-2.0
// Opus in Ogg files (RFC 7845), decoded by libopus, which the process loads at run time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "audio/ogg.hpp"
#include "audio/wav.hpp"

namespace stoker::opus {

// Facts about a file. Rates and lengths are those of libsndfile: the rate of the recording that the header states, if
// Opus has it, else 48 kHz.
struct Stream {
  int64_t frames, skipped;  // at `rate`; decoded samples before the first one
  int32_t channels, rate, gain, streams, coupled;
  uint8_t family;
  uint8_t mapping[255];  // decoded channel of each channel
};

// Read a file's header and the durations of its packets. Other: no Ogg file, or one of another codec, whose pages are
// all right. `decodes`: whether decoding follows; checksums are compared then, or for another codec in the other case,
// so that each file is summed up once.
wav::Parsed parse(const uint8_t* data, size_t size, bool decodes, Stream* stream, std::string* error);

struct Library;  // entry points of libopus

// Load a library, once per path.
const Library* open_library(const std::string& path);

// Floats of the decoder for one packet.
size_t scratch_bytes(const Stream& stream);

// Frames of a stream to decode.
struct Part {
  int64_t first, count;
  int64_t before;  // frames to decode before `first`, for the decoder's state; negative: all
};

// Write the frames of a part, like wav::convert. They must lie within the stream.
bool decode(const Library& library, const uint8_t* data, size_t size, const Stream& stream, const Part& part,
            bool downmix, DType dtype, float* scratch, uint8_t* out, std::string* error);

}  // namespace stoker::opus
