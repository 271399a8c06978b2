// SPDX-License-Identifier: Apache-2.0
// A scan's entropy-coded data as the decoder sees it: segments between restart markers, and what is left of them
// when the file is damaged.
#pragma once
#include <cstddef>
#include <cstdint>

#include "jpeg_huffman.hpp"

namespace stoker::jpeg {

class Segments {
 public:
  // `buffer` has room for the rest of the file and kBitPadding.
  Segments(const uint8_t* data, size_t size, uint8_t* buffer)
      : data_(data), size_(size), buffer_(buffer), decode_(mcu_decoder()) {}

  void start_scan(size_t pos, int restart_interval);

  // Decodes MCUs [first, last) of a row; MCUs without data keep their (zero) coefficients.
  void decode(Mcu& mcu, int first, int last);

  size_t position() const { return pos_; }  // of the next marker, or the file's size
  bool truncated() const { return pos_ >= size_; }
  bool damaged() const { return damaged_; }

 private:
  void restart();
  void next_segment(size_t pos);
  void empty_segment();

  const uint8_t* data_;
  size_t size_;
  uint8_t* buffer_;
  DecodeMcus decode_;
  Bits bits_;
  size_t pos_ = 0;
  int interval_ = 0, left_ = 0, number_ = 0;
  bool starved_ = false, damaged_ = false;
};

}  // namespace stoker::jpeg
