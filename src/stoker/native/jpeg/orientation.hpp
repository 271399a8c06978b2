// SPDX-License-Identifier: Apache-2.0
// EXIF orientation: the mapping from stored to displayed pixels.
#pragma once
#include "jpeg/jpeg.hpp"

namespace stoker::jpeg {

// Return the orientation in IFD0 of Exif's TIFF structure; 1 if absent or invalid.
uint8_t exif_orientation(const uint8_t* p, size_t size);

// Mapping of stored pixel (y, x) to its displayed position: rows counted from the end, columns counted from the end,
// then axes exchanged.
struct Turn {
  bool flip_y = false, flip_x = false, swap = false;
  bool none() const { return !flip_y && !flip_x && !swap; }
};

inline Turn turn_of(int orientation) {
  switch (orientation) {
    case 2: return {false, true, false};
    case 3: return {true, true, false};
    case 4: return {true, false, false};
    case 5: return {false, false, true};
    case 6: return {true, false, true};
    case 7: return {true, true, true};
    case 8: return {false, true, true};
    default: return {};
  }
}

// Return the stored window of a picture of size `whole` that is displayed as h rows and w columns from (y0, x0) on.
inline Window stored_window(Extent whole, Turn turn, int32_t y0, int32_t x0, int32_t h, int32_t w) {
  int32_t sy = turn.swap ? x0 : y0, sx = turn.swap ? y0 : x0;
  const int32_t sh = turn.swap ? w : h, sw = turn.swap ? h : w;
  if (turn.flip_y) sy = whole.height - sy - sh;
  if (turn.flip_x) sx = whole.width - sx - sw;
  return {sx, sy, sx + sw, sy + sh};
}

// Return whether the window has pixels, all of them inside of the image.
inline bool is_inside(const Window& w, Extent whole) {
  return w.x0 >= 0 && w.y0 >= 0 && w.x0 < w.x1 && w.y0 < w.y1 && w.x1 <= whole.width && w.y1 <= whole.height;
}

// Offset of a window's first stored pixel from the first displayed byte, and the steps to the next row and column.
struct Placement {
  int64_t offset, step_y, step_x;
};

inline Placement placement(const Window& window, Turn turn, const View& out) {
  Placement p{0, out.stride[turn.swap ? 1 : 0], out.stride[turn.swap ? 0 : 1]};
  if (turn.flip_y) {
    p.offset += (window.y1 - window.y0 - 1) * p.step_y;
    p.step_y = -p.step_y;
  }
  if (turn.flip_x) {
    p.offset += (window.x1 - window.x0 - 1) * p.step_x;
    p.step_x = -p.step_x;
  }
  return p;
}

// Return the view of a stored window of packed pixels in displayed orientation.
inline View shown(uint8_t* picture, int64_t pitch, int64_t pixel, const Window& window, Turn turn, View out) {
  int64_t down = pitch, across = pixel;
  out.data = picture + window.y0 * pitch + window.x0 * pixel;
  if (turn.flip_y) {
    out.data += (window.y1 - window.y0 - 1) * pitch;
    down = -down;
  }
  if (turn.flip_x) {
    out.data += (window.x1 - window.x0 - 1) * pixel;
    across = -across;
  }
  out.stride[0] = turn.swap ? across : down;
  out.stride[1] = turn.swap ? down : across;
  return out;
}

}  // namespace stoker::jpeg
