// SPDX-License-Identifier: Apache-2.0
// An image as component planes: bytes, of which some components may have fewer than there are pixels. Whoever makes one
// says here how its pixels follow from them, and whoever reads it makes them; neither knows the other.
#pragma once
#include "device.cuh"

namespace stoker::planar {

constexpr int kComponents = 3;

enum class Spread : uint8_t { None, Width, Height, Both, Repeat };  // how a component gets to full size

// A component of the whole image.
struct Shape {
  uint16_t width, height;  // samples, without padding
  uint8_t fx, fy;          // pixels to a sample
  Spread spread;
  uint8_t size;            // samples per side of a block: 8, or fewer at a smaller scale
};

// What readers make pixels of, by a form for each; they may leave any of them.
enum class Form : uint8_t {
  Gray,                        // one component: red, green and blue
  None, Width, Height, Both,   // YCbCr; luma at full size, and chroma spread so
  Other,                       // by the maker alone
};

// The part of a component that is there. Samples are counted from the whole image's corner.
struct Component : Shape {
  uint64_t corner;      // where the first would be, a multiple of 4; it need not be in memory
  uint32_t pitch;       // a multiple of 4
  int32_t first, last;  // columns that are there and within the image; rows are as pixels need them
  uint32_t unused;
};

struct Image {
  Component component[kComponents];
  int32_t x0, y0, width, height;  // the pixels that are there
  Form form;
  bool blue_first;                // of a pixel's bytes
  uint8_t unused[6];
  // For the host. Views of an image in planes have the addresses that its pixels would have at `at`, of three bytes each,
  // lines one behind the other. Who cannot read planes sets `pixels`, and finds them there. `at` 0: this is no image.
  uint64_t at, pixels;
};
static_assert(sizeof(Shape) == 8 && sizeof(Component) == 32 && sizeof(Image) == 136);

}  // namespace stoker::planar
