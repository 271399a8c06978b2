// SPDX-License-Identifier: Apache-2.0
// Entropy-coded data of a scan as segments between restart markers, with recovery in damaged files.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include "jpeg/damage.hpp"
#include "jpeg/huffman.hpp"

namespace stoker::jpeg {

class Segments {
 public:
  // `buffer` must hold the scan's data (at most the rest of the file) and kBitPadding. Without a buffer, scans can only
  // be skipped. `damage` receives what is wrong; null: not requested.
  Segments(const uint8_t* data, size_t size, uint8_t* buffer, Damage* damage = nullptr)
      : data_(data), size_(size), buffer_(buffer), damage_(damage) {}

  void start_scan(size_t pos, int restart_interval);

  // Decode MCUs [first, last) of a row; MCUs without data keep their coefficients. `coder.restart()` is called at
  // restart markers, and `coder(bits, first, last, overrun)` decodes like DecodeMcus.
  template <typename Coder>
  void decode(Coder&& coder, int first, int last) {
    while (first < last && !(stuck_ && starved_)) {
      fed_ |= !starved_;
      if (interval_ && left_ == 0) {
        restart();
        coder.restart();
      }
      int reached = interval_ ? std::min(last, first + left_) : last;
      if (!starved_) {
        bool overrun = false;
        reached = coder(bits_, first, reached, overrun);
        fed_ |= reached > first + 1;
        starved_ = overrun;
        damaged_ |= overrun;
        if (damage_ && (overrun || damage_->unplaced)) report_damage(overrun);
      }
      left_ -= reached - first;
      first = reached;
    }
  }

  // Skip MCUs without decoding them.
  void skip(int64_t mcus);

  // After the scan's last MCU: find data that no MCU used.
  void finish() {
    if (damage_ && !starved_) report_unused();
  }

  size_t position() const { return pos_; }  // of the next marker, or the file's size
  bool truncated() const { return pos_ >= size_; }
  bool damaged() const { return damaged_; }

  // Return whether an MCU has begun with data since the last call, as libjpeg counts: the first MCU after a restart
  // does not if the data before the restart ran out.
  bool take_fed() { return std::exchange(fed_, false); }

 private:
  void restart();
  void next_segment(size_t pos);
  void empty_segment();
  void report_damage(bool overrun);
  void report_unused();
  size_t offset_of(const uint8_t* unstuffed) const;

  const uint8_t* data_;
  size_t size_;
  uint8_t* buffer_;
  Damage* damage_;
  Bits bits_;
  size_t pos_ = 0, begin_ = 0;  // offsets of the next marker and of the segment's data
  int interval_ = 0, left_ = 0, number_ = 0;
  // Starved: out of data until the next restart. Stuck: at a marker that no restart will pass.
  bool starved_ = false, stuck_ = false, damaged_ = false, fed_ = false;
};

// Decoder of the MCUs of a sequential scan.
struct SequentialCoder {
  DecodeMcus decode;
  Mcu& mcu;

  void restart() { std::fill(std::begin(mcu.prediction), std::end(mcu.prediction), 0u); }
  int operator()(Bits& bits, int first, int last, bool& overrun) { return decode(bits, mcu, first, last, overrun); }
};

}  // namespace stoker::jpeg
