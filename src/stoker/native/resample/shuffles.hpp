// SPDX-License-Identifier: Apache-2.0
// Byte shuffles of 8-bit resampling for all vector forms: 16 bytes of one row are up to four taps of up to four
// channels, and the sums of an output pixel are four 32-bit lanes, one per channel.
#pragma once
#include <cstdint>

namespace stoker::resample {

constexpr uint8_t kNone = 0x80;  // gives a zero byte

// Shuffles by number of channels. `digits` moves the four taps of a channel into one dword. `first` and `second` move
// taps 0,1 and 2,3 of a channel into words. `tap` moves one tap of each channel. `finish` moves four pixels of four
// bytes each to their final positions.
struct Shuffles {
  alignas(16) uint8_t digits[16], first[16], second[16], tap[4][16], finish[16];
};

constexpr Shuffles make_shuffles(int channels) {
  Shuffles s{};
  for (int i = 0; i < 16; ++i) {
    const int c = i / 4;
    const auto tap = [&](int t) { return c < channels ? static_cast<uint8_t>(t * channels + c) : kNone; };
    s.digits[i] = tap(i % 4);
    s.first[i] = i % 2 ? kNone : tap(i % 4 / 2);
    s.second[i] = i % 2 ? kNone : tap(i % 4 / 2 + 2);
    for (int t = 0; t < 4; ++t) s.tap[t][i] = i % 4 ? kNone : tap(t);
    s.finish[i] = i < 4 * channels ? static_cast<uint8_t>(i / channels * 4 + i % channels) : kNone;
  }
  return s;
}

inline constexpr Shuffles kShuffles[5] = {make_shuffles(1), make_shuffles(1), make_shuffles(2), make_shuffles(3),
                                          make_shuffles(4)};

}  // namespace stoker::resample
