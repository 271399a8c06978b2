// SPDX-License-Identifier: Apache-2.0
// Image in component planes of bytes, some of which may have fewer samples than there are pixels. The producer of such
// an image describes here how pixels follow from the samples, and the consumer converts them; neither depends on the
// other.
#pragma once
#include "shared/device.cuh"

namespace stoker::planar {

constexpr int kComponents = 3;

enum class Spread : uint8_t { None, Width, Height, Both, Repeat };  // how a component is upsampled to full size

// Shape of a component of the whole image.
struct Shape {
  uint16_t width, height;  // samples, without padding
  uint8_t fx, fy;          // pixels per sample
  Spread spread;
  uint8_t size;  // samples per side of a block: 8, or fewer at a smaller scale
};

// Conversions that consumers implement. A consumer may refuse any of them and ask the producer for pixels.
enum class Form : uint8_t {
  Gray,  // one component, equal to red, green and blue
  None,
  Width,
  Height,
  Both,   // YCbCr; luma at full size, chroma upsampled in the named way
  Other,  // only the producer can convert it
};

// The part of a component that is in memory. Samples are counted from the corner of the whole image.
struct Component : Shape {
  uint64_t corner;      // address of the corner sample, a multiple of 4; the corner need not be in memory
  uint32_t pitch;       // a multiple of 4
  int32_t first, last;  // columns that are in memory and within the image; rows cover what the pixels need
  uint32_t unused;
};

struct Image {
  Component component[kComponents];
  int32_t x0, y0, width, height;  // the pixels whose samples are in memory
  Form form;
  bool blue_first;  // channel order of the pixels
  uint8_t unused[6];
  // For the host. Views of a planar image have the addresses that its pixels would have at `at`: three bytes each, rows
  // without gaps. A consumer that cannot read planes sets `pixels`, where the producer then writes them. `at` 0: this
  // is no planar image.
  uint64_t at, pixels;
};
static_assert(sizeof(Shape) == 8 && sizeof(Component) == 32 && sizeof(Image) == 136);

}  // namespace stoker::planar
