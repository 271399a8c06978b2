// SPDX-License-Identifier: Apache-2.0
// One scan of a file: its header with the tables in force, and its MCU.
#pragma once
#include "jpeg.hpp"
#include "jpeg_huffman.hpp"
#include "jpeg_picture.hpp"

namespace stoker::jpeg {

struct ScanHead {
  Scan scan;
  TableOffsets tables;
  uint16_t restart_interval = 0;

  ScanHead() = default;
  explicit ScanHead(const Info& info)
      : scan(info.scan), tables(info.tables), restart_interval(info.restart_interval) {}
  bool interleaved() const { return scan.count > 1; }
};

// The tables of component i of the scan (16 counts, then symbols), the standard's where the file has none; or null.
const uint8_t* dc_symbols(const uint8_t* data, const ScanHead& head, int i);
const uint8_t* ac_symbols(const uint8_t* data, const ScanHead& head, int i);

// The values of component `index`'s table; false: there is none.
bool load_quantiser(const uint8_t* data, const TableOffsets& tables, const Component& component, Plane& plane);

// Builds the tables of a sequential scan, one per component or shared; `size` is the file's. `ac` null: only DC.
// False: a table is missing or impossible.
bool build_tables(const uint8_t* data, size_t size, const ScanHead& head, DcTable* dc, AcTable* ac,
                  Damage* damage = nullptr);

// The scan's MCU: which component and tables (if the scan has any) each block has.
Mcu make_mcu(const ScanHead& head, const Plane* planes, const DcTable* dc, const AcTable* ac);

// Points the blocks at the held coefficients of row `row` of MCUs (of the scan).
void aim_mcu(const ScanHead& head, const Plane* planes, int row, Mcu& mcu);

}  // namespace stoker::jpeg
