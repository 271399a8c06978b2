// SPDX-License-Identifier: Apache-2.0
// The reactions to damage are libjpeg's, so that a damaged file gives the pixels that users know.
#include "jpeg/segments.hpp"

#include <algorithm>
#include <cstring>

#include "jpeg/parse.hpp"

namespace stoker::jpeg {
namespace {

constexpr int kFirstFrameMarker = 0xC0, kFirstRestart = 0xD0;

bool is_restart(int marker) { return marker >= kFirstRestart && marker <= kFirstRestart + 7; }

enum class Reaction : uint8_t { Resume, Skip, Wait };

// Return the reaction to `marker` where restart `wanted` is due: resume decoding after it, look for another marker, or
// keep it and count the segment as lost.
Reaction react(int marker, int wanted) {
  if (marker < kFirstFrameMarker) return Reaction::Skip;
  if (!is_restart(marker)) return Reaction::Wait;
  const int ahead = (marker - kFirstRestart - wanted) & 7;
  if (ahead == 1 || ahead == 2) return Reaction::Wait;
  if (ahead == 6 || ahead == 7) return Reaction::Skip;
  return Reaction::Resume;
}

}  // namespace

void Segments::start_scan(size_t pos, int restart_interval) {
  interval_ = left_ = restart_interval;
  number_ = 0;
  stuck_ = false;
  next_segment(pos);
}

void Segments::next_segment(size_t pos) {
  starved_ = false;
  if (!buffer_) {
    int marker = 0;
    const size_t after = next_marker(data_, size_, pos, marker);
    pos_ = after ? after - 2 : size_;
    return;
  }
  pos_ = begin_ = pos;
  const size_t n = unstuff(data_, size_, pos_, buffer_);
  bits_.start(buffer_, n);
}

void Segments::empty_segment() {
  if (!buffer_) return;
  std::memset(buffer_, 0, kBitPadding);
  bits_.start(buffer_, 0);
}

void Segments::restart() {
  if (damage_ && !starved_) report_unused();
  const int wanted = number_;
  number_ = (number_ + 1) & 7;
  left_ = interval_;
  for (size_t pos = pos_;;) {
    int marker = 0;
    pos = next_marker(data_, size_, pos, marker);
    if (pos == 0) {
      if (damage_) ++damage_->wrong_restarts, damage_->note(size_);
      pos_ = size_;
      stuck_ = true;
      break;
    }
    const bool expected = marker == kFirstRestart + wanted;
    damaged_ |= !expected;
    if (!expected && damage_) ++damage_->wrong_restarts, damage_->note(pos - 2);
    const Reaction reaction = expected ? Reaction::Resume : react(marker, wanted);
    if (reaction == Reaction::Resume) return next_segment(pos);
    pos_ = pos - 2;
    if (reaction == Reaction::Wait) {
      stuck_ = !is_restart(marker);
      break;
    }
  }
  damaged_ = true;
  empty_segment();  // still starved if the previous segment was
}

// Return the offset in the file of a byte of the segment, counting stuffed bytes.
size_t Segments::offset_of(const uint8_t* unstuffed) const {
  size_t at = begin_;
  for (const uint8_t* p = buffer_; p < unstuffed && at < pos_; ++p) {
    if (data_[at++] != 0xFF) continue;
    while (at < pos_ && data_[at] == 0xFF) ++at;
    ++at;
  }
  return std::min(at, pos_);
}

void Segments::report_damage(bool overrun) {
  if (overrun) ++damage_->early_ends, damage_->note(pos_);
  if (damage_->unplaced) damage_->note(offset_of(damage_->unplaced));
  damage_->unplaced = nullptr;
}

void Segments::report_unused() {
  const int64_t bits = (bits_.end - bits_.next) * 8 + bits_.count;
  if (!bits_.next || bits < 8) return;
  damage_->extra_bytes += static_cast<uint64_t>(bits / 8);
  damage_->note(offset_of(bits_.end - bits / 8));
}

void Segments::skip(int64_t mcus) {
  while (interval_ && mcus > left_ && !stuck_) {
    mcus -= left_;
    restart();
  }
  left_ -= static_cast<int>(mcus);
}

}  // namespace stoker::jpeg
