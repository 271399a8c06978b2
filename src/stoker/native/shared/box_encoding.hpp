// SPDX-License-Identifier: Apache-2.0
// Matches of boxes with anchors, in float32 without fused operations, so that the CPU and a GPU agree.
#pragma once
#include "shared/xmath.hpp"

namespace stoker::box_encoding {

struct Box {
  float left, top, right, bottom;
};

STOKER_XM float overlap(const Box& a, const Box& b) {
  const float left = a.left > b.left ? a.left : b.left, top = a.top > b.top ? a.top : b.top;
  const float right = a.right < b.right ? a.right : b.right, bottom = a.bottom < b.bottom ? a.bottom : b.bottom;
  const float width = right - left, height = bottom - top;
  if (!(width > 0 && height > 0)) return 0;
  const float common = width * height;
  const float area_a = (a.right - a.left) * (a.bottom - a.top), area_b = (b.right - b.left) * (b.bottom - b.top);
  return common / (area_a + area_b - common);
}

// Centre and extents.
struct Centred {
  float x, y, width, height;
};

STOKER_XM Centred centred(const Box& b) {
  return {(b.left + b.right) * 0.5f, (b.top + b.bottom) * 0.5f, b.right - b.left, b.bottom - b.top};
}

struct Scheme {
  float scale, mean[4], deviation[4];
};

STOKER_XM float log_of(float x) { return static_cast<float>(xm::log(static_cast<double>(x))); }

// Offsets of a box from its anchor.
STOKER_XM Centred offsets(const Centred& box, const Centred& anchor, const Scheme& s) {
  const float width = anchor.width * s.scale, height = anchor.height * s.scale;
  return {((box.x * s.scale - anchor.x * s.scale) / width - s.mean[0]) / s.deviation[0],
          ((box.y * s.scale - anchor.y * s.scale) / height - s.mean[1]) / s.deviation[1],
          (log_of(box.width * s.scale / width) - s.mean[2]) / s.deviation[2],
          (log_of(box.height * s.scale / height) - s.mean[3]) / s.deviation[3]};
}

}  // namespace stoker::box_encoding
