// SPDX-License-Identifier: Apache-2.0
// Libraries of image formats that Pillow's packages bring, called directly: without Python, and without its lock.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace stoker::raster {

// Source: webp/decode.h, whose interface (version 2.9) is the same since libwebp 0.5.
struct WebpFeatures {
  int width, height, has_alpha, has_animation, format;
  uint32_t padding[5];
};
struct WebpLibrary {
  int (*get_features)(const uint8_t* data, size_t size, WebpFeatures* features, int version);
  uint8_t* (*decode_rgb)(const uint8_t* data, size_t size, uint8_t* to, size_t bytes, int pitch);
  uint8_t* (*decode_rgba)(const uint8_t* data, size_t size, uint8_t* to, size_t bytes, int pitch);
};

// Source: openjpeg.h, whose structures are those of all versions with the library name libopenjp2.so.7.
struct Jpeg2000Component {
  uint32_t dx, dy, width, height, x0, y0, bits, bits_per_pixel, is_signed, resolutions, factor;
  int32_t* data;
  uint16_t alpha;
};
struct Jpeg2000Image {
  uint32_t x0, y0, x1, y1, components;
  int color_space;
  Jpeg2000Component* component;
  uint8_t* profile;
  uint32_t profile_bytes;
};
struct Jpeg2000Library {
  using Read = size_t (*)(void* to, size_t bytes, void* user);
  using Skip = int64_t (*)(int64_t bytes, void* user);
  using Seek = int (*)(int64_t position, void* user);
  using Free = void (*)(void* user);
  void* (*create_decoder)(int format);
  void (*destroy_decoder)(void* decoder);
  void (*set_default_parameters)(void* parameters);
  int (*set_up)(void* decoder, void* parameters);
  void* (*create_stream)(size_t buffer_bytes, int is_input);
  void (*destroy_stream)(void* stream);
  void (*set_read)(void* stream, Read read);
  void (*set_skip)(void* stream, Skip skip);
  void (*set_seek)(void* stream, Seek seek);
  void (*set_user_data)(void* stream, void* user, Free free);
  void (*set_user_bytes)(void* stream, uint64_t bytes);
  int (*read_header)(void* stream, void* decoder, Jpeg2000Image** image);
  int (*read_tile_header)(void* decoder, void* stream, uint32_t* tile, uint32_t* bytes, int32_t* x0, int32_t* y0,
                          int32_t* x1, int32_t* y1, uint32_t* components, int* more);
  int (*decode_tile)(void* decoder, uint32_t tile, uint8_t* to, uint32_t bytes, void* stream);
  int (*end)(void* decoder, void* stream);
  void (*destroy_image)(Jpeg2000Image* image);
};

// Load a library by its path, for the rest of the process. Throws std::invalid_argument if it is not the one named. All
// decoders use it from then on, with Pillow's pixels, so the moment does not matter.
void use_libwebp(const std::string& path);
void use_openjpeg(const std::string& path);

// Return the library, or null.
const WebpLibrary* libwebp();
const Jpeg2000Library* openjpeg();

}  // namespace stoker::raster
