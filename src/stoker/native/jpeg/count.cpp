// SPDX-License-Identifier: Apache-2.0
// Count of Huffman symbols, for benchmarks: only the canonical search runs, and no coefficient is stored.
#include <algorithm>
#include <memory>

#include "jpeg/bits.hpp"
#include "jpeg/jpeg.hpp"
#include "jpeg/scan.hpp"
#include "jpeg/segments.hpp"

namespace stoker::jpeg {
namespace {

struct CountingCoder {
  const Mcu& mcu;
  uint64_t symbols = 0;

  void restart() {}
  int operator()(Bits& bits, int first, int last, bool& overrun) {
    Cursor c{bits.buffer, bits.count, bits.next};
    for (; first < last && !overrun; ++first) {
      for (int b = 0; b < mcu.count; ++b) count_block(c, mcu.block[b], bits.end);
      overrun = c.next > bits.end && (c.next - bits.end) * 8 > c.count;
    }
    bits.buffer = c.buffer;
    bits.count = c.count;
    bits.next = overrun ? bits.end : c.next;
    return first;
  }
  void count_block(Cursor& c, const McuBlock& block, const uint8_t* end) {
    for (int position = 0; position < 64 && c.next <= end + 8;) {
      refill(c.buffer, c.count, c.next);
      const Symbol s = search(position ? block.ac->code : block.dc->code, c.buffer, 1, c.byte());
      const int size = position ? s.value & 15 : s.value, run = position ? s.value >> 4 : 0;
      c.take(s.length + size);
      ++symbols;
      position += position && size == 0 && run != 15 ? 64 : run + 1;
    }
  }
};

}  // namespace

uint64_t count_symbols(const uint8_t* data, size_t size, const Info& info) {
  if (info.support != Support::Native || info.progressive || info.scan.count < info.components) return 0;
  const ScanHead head(info);
  Plane planes[kMaxComponents];
  for (int i = 0; i < info.components; ++i) planes[i].h = info.component[i].h, planes[i].v = info.component[i].v;
  const auto dc = std::make_unique<DcTable[]>(head.scan.count);
  const auto ac = std::make_unique<AcTable[]>(head.scan.count);
  if (!build_tables(data, size, head, dc.get(), ac.get())) return 0;
  const Mcu mcu = make_mcu(head, planes, dc.get(), ac.get());
  const auto entropy = std::make_unique<uint8_t[]>(size - head.scan.data + kBitPadding);
  Segments segments(data, size, entropy.get());
  segments.start_scan(head.scan.data, head.restart_interval);
  const int columns = ceil_div(info.width, 8 * info.h_max), rows = ceil_div(info.height, 8 * info.v_max);
  CountingCoder coder{mcu};
  for (int row = 0; row < rows; ++row) segments.decode(coder, 0, columns);
  return coder.symbols;
}

}  // namespace stoker::jpeg
