// SPDX-License-Identifier: Apache-2.0
// The reactions to damage are libjpeg's, so that a damaged file gives the pixels that users know.
#include "jpeg_segments.hpp"

#include <algorithm>
#include <cstring>

#include "jpeg_parse.hpp"

namespace stoker::jpeg {
namespace {

constexpr int kFirstFrameMarker = 0xC0, kFirstRestart = 0xD0;

enum class Reaction : uint8_t { Resume, Skip, Wait };

// What to do about `marker` where restart `wanted` was due: resume decoding behind it, look for another one, or leave
// it and count the segment as lost.
Reaction react(int marker, int wanted) {
  if (marker < kFirstFrameMarker) return Reaction::Skip;
  if (marker < kFirstRestart || marker > kFirstRestart + 7) return Reaction::Wait;
  const int ahead = (marker - kFirstRestart - wanted) & 7;
  if (ahead == 1 || ahead == 2) return Reaction::Wait;
  if (ahead == 6 || ahead == 7) return Reaction::Skip;
  return Reaction::Resume;
}

}  // namespace

void Segments::start_scan(size_t pos, int restart_interval) {
  interval_ = left_ = restart_interval;
  number_ = 0;
  next_segment(pos);
}

void Segments::next_segment(size_t pos) {
  pos_ = pos;
  const size_t n = unstuff(data_, size_, pos_, buffer_);
  bits_.start(buffer_, n);
  starved_ = false;
}

void Segments::empty_segment() {
  std::memset(buffer_, 0, kBitPadding);
  bits_.start(buffer_, 0);
}

void Segments::restart() {
  const int wanted = number_;
  number_ = (number_ + 1) & 7;
  left_ = interval_;
  for (size_t pos = pos_;;) {
    int marker = 0;
    pos = next_marker(data_, size_, pos, marker);
    if (pos == 0) {
      pos_ = size_;
      break;
    }
    const bool expected = marker == kFirstRestart + wanted;
    damaged_ |= !expected;
    const Reaction reaction = expected ? Reaction::Resume : react(marker, wanted);
    if (reaction == Reaction::Resume) return next_segment(pos);
    pos_ = pos - 2;
    if (reaction == Reaction::Wait) break;
  }
  damaged_ = true;
  empty_segment();  // still starved when the segment before was
}

void Segments::decode(Mcu& mcu, int first, int last) {
  while (first < last) {
    if (interval_ && left_ == 0) {
      restart();
      std::fill(std::begin(mcu.prediction), std::end(mcu.prediction), 0u);
    }
    int reached = interval_ ? std::min(last, first + left_) : last;
    if (!starved_) {
      bool overrun = false;
      reached = decode_(bits_, mcu, first, reached, overrun);
      starved_ = overrun;
      damaged_ |= overrun;
    }
    left_ -= reached - first;
    first = reached;
  }
}

}  // namespace stoker::jpeg
