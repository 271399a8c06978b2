// SPDX-License-Identifier: Apache-2.0
// One scan of a file: its header with the tables in force, and its MCU.
#pragma once
#include "jpeg/huffman.hpp"
#include "jpeg/jpeg.hpp"
#include "jpeg/picture.hpp"

namespace stoker::jpeg {

struct ScanHead {
  Scan scan;
  TableOffsets tables;
  uint16_t restart_interval = 0;

  ScanHead() = default;
  explicit ScanHead(const Info& info) : scan(info.scan), tables(info.tables), restart_interval(info.restart_interval) {}
  bool interleaved() const { return scan.count > 1; }
};

// Return the tables of component i of the scan (16 counts, then symbols), the standard's if the file has none, or null.
const uint8_t* dc_symbols(const uint8_t* data, const ScanHead& head, int i);
const uint8_t* ac_symbols(const uint8_t* data, const ScanHead& head, int i);

// Load the quantiser of a component; return false if there is none.
bool load_quantiser(const uint8_t* data, const TableOffsets& tables, const Component& component, Plane& plane);

// Build the tables of a sequential scan, one per component or shared; `size` is the file's. `ac` null: only DC. Return
// false if a table is missing or impossible.
bool build_tables(const uint8_t* data, size_t size, const ScanHead& head, DcTable* dc, AcTable* ac,
                  Damage* damage = nullptr);

// Return the scan's MCU: the component and tables (if the scan has any) of each block.
Mcu make_mcu(const ScanHead& head, const Plane* planes, const DcTable* dc, const AcTable* ac);

// Point the blocks of the MCU to the held coefficients of row `row` of the scan's MCUs.
void aim_mcu(const ScanHead& head, const Plane* planes, int row, Mcu& mcu);

}  // namespace stoker::jpeg
