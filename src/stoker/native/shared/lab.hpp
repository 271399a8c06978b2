// SPDX-License-Identifier: Apache-2.0
// OpenCV's conversion between sRGB and CIE L*a*b* in 8 bits (COLOR_RGB2Lab, COLOR_Lab2RGB), in integers. Plain C++ that
// compiles for the CPU and for a GPU.
#pragma once
#include <cstdint>

namespace stoker::lab {

// Offsets in the table of uint16 that ops/image/_lab.py computes.
constexpr int kLinear = 0;               // 256: linear light of an sRGB value, 255 * 8 is white
constexpr int kCubeRoots = 256;          // 3072: f(t) of CIE, 2^15 is 1, for t in steps of 1 / (255 * 8)
constexpr int kLuminance = 256 + 3072;   // 256: Y of an L, 2^14 is 1
constexpr int kRoot = kLuminance + 256;  // 256: f(Y) of an L, 2^14 is 1
constexpr int kEncoded = kRoot + 256;    // 4096: sRGB value of linear light in steps of 1 / 4096
constexpr int kTable = kEncoded + 4096;

// Rows of the matrices from linear RGB to X, Y and Z relative to the white of D65, and back, times 2^12.
constexpr int32_t kForward[3][3] = {{1777, 1541, 778}, {871, 2929, 296}, {73, 448, 3575}};
constexpr int32_t kBack[3][3] = {{12615, -6296, -2223}, {-3773, 7684, 185}, {217, -836, 4715}};
constexpr int32_t kOne = 1 << 14;

struct Color {
  uint8_t v[3];
};

inline uint8_t in_byte(int32_t x) { return static_cast<uint8_t>(x < 0 ? 0 : x > 255 ? 255 : x); }

// Color from f(X), f(Y) and f(Z), where 2^15 is 1.
inline Color from_roots(int32_t x, int32_t y, int32_t z) {
  constexpr int32_t kHalf = 1 << 14, kMiddle = 128 << 15;
  constexpr int32_t kScale = (116 * 255 + 50) / 100, kShift = (16 * 255 * 32768 + 50) / 100;
  return {{in_byte((kScale * y - kShift + kHalf) >> 15), in_byte((500 * (x - y) + kMiddle + kHalf) >> 15),
           in_byte((200 * (y - z) + kMiddle + kHalf) >> 15)}};
}

// The argument of f, rounded, for a sum of products.
constexpr int32_t kRounding = 1 << 11;

inline Color from_rgb(const uint16_t* table, uint8_t r, uint8_t g, uint8_t b) {
  const int32_t light[3] = {table[kLinear + r], table[kLinear + g], table[kLinear + b]};
  int32_t root[3] = {};
  for (int i = 0; i < 3; ++i) {
    int32_t sum = kRounding;
    for (int k = 0; k < 3; ++k) sum += kForward[i][k] * light[k];
    root[i] = table[kCubeRoots + (sum >> 12)];
  }
  return from_roots(root[0], root[1], root[2]);
}

// The inverse of f, where 2^14 is 1.
inline int32_t cubed(int32_t f) {
  constexpr int32_t kStraight = 3390;  // 6 / 29
  if (f <= kStraight) return f * 108 / 841 - kOne * 16 / 116 * 108 / 841;
  return f * f / kOne * f / kOne;
}

inline Color to_rgb(const uint16_t* table, const Color& lab) {
  const int32_t root = table[kRoot + lab.v[0]], y = table[kLuminance + lab.v[0]];
  const int32_t along_a = ((5 * lab.v[1] * 53687 + (1 << 7)) >> 13) - 128 * kOne / 500;
  const int32_t along_b = ((lab.v[2] * 41943 + (1 << 4)) >> 9) - 128 * kOne / 200 + 1;
  const int32_t x = cubed(root + along_a), z = cubed(root - along_b);
  Color out{};
  for (int i = 0; i < 3; ++i) {
    const int32_t sum = (kBack[i][0] * x + kBack[i][1] * y + kBack[i][2] * z + (1 << 13)) >> 14;
    out.v[i] = static_cast<uint8_t>(table[kEncoded + (sum < 0 ? 0 : sum > 4095 ? 4095 : sum)]);
  }
  return out;
}

}  // namespace stoker::lab
