// SPDX-License-Identifier: Apache-2.0
// Scans of a file with several of them, which jpeg/multiple.cpp decodes in parallel: their headers, their decoders, and
// the precision of the coefficients that they add up to.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "jpeg/huffman.hpp"
#include "jpeg/parse.hpp"
#include "jpeg/picture.hpp"
#include "jpeg/progressive.hpp"
#include "jpeg/scan.hpp"
#include "jpeg/segments.hpp"
#include "jpeg/smoothing.hpp"

namespace stoker::jpeg {

enum class Coding : uint8_t { Sequential, DcFirst, DcRefine, AcFirst, AcRefine };

inline Coding coding_of(bool progressive, const Scan& scan) {
  if (!progressive) return Coding::Sequential;
  if (scan.first == 0) return scan.shift_before ? Coding::DcRefine : Coding::DcFirst;
  return scan.shift_before ? Coding::AcRefine : Coding::AcFirst;
}

// Scan that is being decoded. Trivially destructible, because it is stored in scratch memory.
struct Pass {
  ScanHead head;
  Coding coding;
  bool wanted = false;  // it contributes to a needed plane
  bool again = false;   // a sequential scan of a component that an earlier scan had
  size_t length = 0;    // bytes of entropy-coded data with their markers
  Segments segments{nullptr, 0, nullptr};
  Mcu mcu;
  Band band;
  DcTable* dc = nullptr;
  AcTable* ac = nullptr;
  BandTable* bands = nullptr;
  uint8_t* entropy = nullptr;
};

struct DcCoder {
  decltype(ProgressiveCoders::dc_first) decode;
  Mcu& mcu;
  int shift;

  void restart() { std::fill(std::begin(mcu.prediction), std::end(mcu.prediction), 0u); }
  int operator()(Bits& bits, int first, int last, bool& overrun) {
    return decode(bits, mcu, shift, first, last, overrun);
  }
};

struct BandCoder {
  decltype(ProgressiveCoders::ac_first) decode;
  Band& band;
  BandRow row;

  void restart() { band.ended = 0; }
  int operator()(Bits& bits, int first, int last, bool& overrun) {
    return decode(bits, band, row, first, last, overrun);
  }
};

// Number of low bits that each coefficient still lacks, counted as in libjpeg; -1: all.
class Precision {
 public:
  Precision() {
    std::memset(missing_, -1, sizeof missing_);
    std::memset(before_, -1, sizeof before_);
  }

  void note(const Scan& scan) {
    for (int i = 0; i < scan.count; ++i) {
      const int c = scan.component[i];
      const int begin = std::min<int>(scan.first, 1), end = std::max<int>(scan.last, kEstimated) + 1;
      if (is_first_) std::fill(before_[c] + begin, before_[c] + end, int8_t{0});
      else std::copy(missing_[c] + begin, missing_[c] + end, before_[c] + begin);
      std::fill(missing_[c] + scan.first, missing_[c] + scan.last + 1, static_cast<int8_t>(scan.shift));
    }
    is_single_ = is_first_;
    is_first_ = false;
  }

  // Return the numbers of a component, by zig-zag position.
  const int8_t* missing(int component) const { return missing_[component]; }
  // Return the numbers before the component's last scan, as libjpeg keeps them for rows without data of the last scan
  // of the file: of the first positions alone, and zero before the file's first scan unless there is only one.
  const int8_t* missing_before(int component) const { return is_single_ ? kAll : before_[component]; }

  // Return whether libjpeg would smooth: if every component has a DC, it estimates low frequencies that are not known
  // exactly from neighbouring blocks.
  bool smoothed(const Plane* planes, int count) const {
    bool useful = false;
    for (int i = 0; i < count; ++i) {
      for (int k = 0; k <= kEstimated; ++k) {
        if (planes[i].quantiser[natural_position(k)] == 0) return false;
        useful |= k > 0 && missing_[i][k] != 0;
      }
      if (missing_[i][0] < 0) return false;
    }
    return useful;
  }

 private:
  static constexpr int8_t kAll[kEstimated + 1] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1};

  int8_t missing_[kMaxComponents][64], before_[kMaxComponents][64];
  bool is_first_ = true, is_single_ = false;
};

}  // namespace stoker::jpeg
