// SPDX-License-Identifier: Apache-2.0
// The part of NVIDIA's video decoder library that is used here: its functions, found at run time, and their structures,
// as in the documentation of the Video Codec SDK (NVDECODE API 9 to 13). Sizes and offsets are those of x86-64 and Arm
// with 64 bits. "Reserved" members are zero.
#pragma once
#include <cstdint>
#include <string>

namespace stoker::nvdec {

using Result = int;
using Handle = void*;

// Numbers of the library's codecs.
enum class Codec : int { H264 = 4, HEVC = 8, VP8 = 9, VP9 = 10, AV1 = 11 };

constexpr int kChroma420 = 1;
constexpr int kNv12 = 0, kP016 = 1;                                           // formats of surfaces
constexpr unsigned long kEndOfStream = 1, kTimestamp = 2, kEndOfPicture = 8;  // flags of packets
constexpr unsigned long kPreferEngines = 4;                                   // flag of a decoder
constexpr int kStatusError = 8, kStatusConcealed = 9;                         // of a decoded picture

struct Rectangle {
  int left, top, right, bottom;
};
struct ShortRectangle {
  short left, top, right, bottom;
};

struct Capabilities {
  int codec, chroma;
  unsigned extra_bits, reserved1[3];
  unsigned char is_supported, engines;
  unsigned short output_formats;
  unsigned max_width, max_height, max_blocks;  // blocks of 16 x 16
  unsigned short min_width, min_height;
  unsigned reserved3[11];
};

// What the headers of a stream say.
struct Format {
  int codec;
  unsigned rate_numerator, rate_denominator;
  unsigned char is_progressive, extra_bits_luma, extra_bits_chroma, min_surfaces;
  unsigned coded_width, coded_height;
  Rectangle display;
  int chroma;
  unsigned bit_rate;
  int aspect_x, aspect_y;
  unsigned char signal, primaries, transfer, matrix;
  unsigned header_bytes;
};

struct Creation {
  unsigned long width, height, surfaces;
  int codec, chroma;
  unsigned long flags, extra_bits, intra_only, max_width, max_height, reserved1;
  ShortRectangle display;
  int surface_format, deinterlacing;
  unsigned long target_width, target_height, mapped_surfaces;
  Handle lock;
  ShortRectangle target;
  unsigned long reserved2[5];
};

struct Reconfiguration {
  unsigned width, height, target_width, target_height, surfaces, reserved1[12];
  ShortRectangle display, target;
  unsigned reserved2[11];
};

// A picture for the engines; its contents go from the parser to the decoder.
struct PictureParameters {
  int width_in_blocks, height_in_blocks, surface;
};

struct Shown {
  int surface, is_progressive, is_top_field_first, repeat_first_field;
  long long timestamp;
};

struct Packet {
  unsigned long flags, bytes;
  const unsigned char* data;
  long long timestamp;
};

struct ParserParameters {
  int codec;
  unsigned surfaces, clock_rate, error_threshold, display_delay, reserved1[5];
  void* user;
  int (*on_format)(void* user, Format* format);  // 0: failure; else the number of surfaces
  int (*on_decode)(void* user, PictureParameters* picture);
  int (*on_show)(void* user, Shown* shown);
  void* reserved2[7];
  void* extended_format;
};

struct Mapping {
  int is_progressive, second_field, is_top_field_first, is_unpaired_field;
  unsigned reserved_flags, reserved_zero;
  unsigned long long raw_input;
  unsigned raw_input_pitch, raw_input_format;
  unsigned long long raw_output;
  unsigned raw_output_pitch, reserved1;
  Handle stream;
  unsigned reserved2[46];
  void* reserved3[2];
};

struct Status {
  int status;
  unsigned reserved1[31];
  void* reserved2[8];
};

static_assert(sizeof(Capabilities) == 88 && sizeof(Format) == 64 && sizeof(Creation) == 176);
static_assert(sizeof(Reconfiguration) == 128 && sizeof(Packet) == 32 && sizeof(ParserParameters) == 136);
static_assert(sizeof(Mapping) == 264 && sizeof(Status) == 192 && sizeof(Shown) == 24);

struct Library {
  Result (*capabilities)(Capabilities*);
  Result (*parser_create)(Handle*, ParserParameters*);
  Result (*parse)(Handle, Packet*);
  Result (*parser_destroy)(Handle);
  Result (*create)(Handle*, Creation*);
  Result (*reconfigure)(Handle, Reconfiguration*);
  Result (*destroy)(Handle);
  Result (*decode)(Handle, PictureParameters*);
  Result (*status)(Handle, int, Status*);
  Result (*map)(Handle, int, unsigned long long*, unsigned*, Mapping*);
  Result (*unmap)(Handle, unsigned long long);

  // Throw gpu::DeviceFailure if the library cannot be opened.
  explicit Library(const std::string& path);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

 private:
  template <class F>
  void find(F& function, const char* name);
  void* opened_ = nullptr;
};

}  // namespace stoker::nvdec
