// SPDX-License-Identifier: Apache-2.0
#include "jpeg/scan.hpp"

#include <algorithm>

namespace stoker::jpeg {
namespace {

constexpr size_t kPairBytes = 4096;  // from this amount of data on, AC tables are built with pairs

// Return the first component of the scan that uses the table of component i.
int first_user(const uint8_t* tables, int i) {
  return static_cast<int>(std::find(tables, tables + i, tables[i]) - tables);
}

}  // namespace

const uint8_t* dc_symbols(const uint8_t* data, const ScanHead& head, int i) {
  const uint32_t offset = head.tables.dc[head.scan.dc[i]];
  return offset ? data + offset : standard_dc(head.scan.dc[i]);
}

const uint8_t* ac_symbols(const uint8_t* data, const ScanHead& head, int i) {
  const uint32_t offset = head.tables.ac[head.scan.ac[i]];
  return offset ? data + offset : standard_ac(head.scan.ac[i]);
}

bool load_quantiser(const uint8_t* data, const TableOffsets& tables, const Component& component, Plane& plane) {
  const uint8_t* p = data + tables.quantiser[component.quantiser];
  const bool wide = tables.wide[component.quantiser];
  for (int i = 0; i < 64; ++i) {
    const int value = wide ? p[2 * i] << 8 | p[2 * i + 1] : p[i];
    plane.quantiser[natural_position(i)] = static_cast<int16_t>(value);
  }
  return tables.quantiser[component.quantiser] != 0;
}

bool build_tables(const uint8_t* data, size_t size, const ScanHead& head, DcTable* dc, AcTable* ac, Damage* damage) {
  const Scan& scan = head.scan;
  const bool pairs = size - scan.data >= kPairBytes;
  for (int i = 0; i < scan.count; ++i) {
    const uint8_t* dc_code = dc_symbols(data, head, i);
    if (first_user(scan.dc, i) == i && (!dc_code || !build_dc(dc_code, dc[i], damage))) return false;
    if (!ac || first_user(scan.ac, i) != i) continue;
    const uint8_t* ac_code = ac_symbols(data, head, i);
    if (!ac_code || !build_ac(ac_code, pairs, ac[i], damage)) return false;
  }
  return true;
}

Mcu make_mcu(const ScanHead& head, const Plane* planes, const DcTable* dc, const AcTable* ac) {
  const Scan& scan = head.scan;
  Mcu mcu;
  for (int i = 0; i < scan.count; ++i) {
    const Plane& p = planes[scan.component[i]];
    const int h = head.interleaved() ? p.h : 1, v = head.interleaved() ? p.v : 1;
    for (int b = 0; b < h * v; ++b) {
      McuBlock& block = mcu.block[mcu.count++];
      block.dc = dc ? dc + first_user(scan.dc, i) : nullptr;
      block.ac = ac ? ac + first_user(scan.ac, i) : nullptr;
      block.component = scan.component[i];
      block.step = h;
      block.offset = b % h;
      block.stride = p.stride;
    }
  }
  return mcu;
}

void aim_mcu(const ScanHead& head, const Plane* planes, int row, Mcu& mcu) {
  int at = 0;
  for (int i = 0; i < head.scan.count; ++i) {
    const Plane& p = planes[head.scan.component[i]];
    const int h = head.interleaved() ? p.h : 1, v = head.interleaved() ? p.v : 1;
    for (int b = 0; b < h * v; ++b) {
      McuBlock& block = mcu.block[at++];
      const int block_row = row * v + b / h;
      block.first = p.held_columns.begin;
      block.stored = p.needed() && p.held_rows.has(block_row) ? p.held_columns.size() : 0;
      if (!block.stored) continue;
      const size_t index = p.block_index(block_row);
      block.coefficients = p.coefficients + static_cast<size_t>(p.stride) * index;
      block.ends = p.stride > 1 ? p.ends + index : nullptr;  // unused for the DC alone
    }
  }
}

}  // namespace stoker::jpeg
