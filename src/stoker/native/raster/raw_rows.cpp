// SPDX-License-Identifier: Apache-2.0
#include "raster/raw_rows.hpp"

namespace stoker::raster {
namespace {

class StoredRows final : public Rows {
 public:
  StoredRows(const uint8_t* data, const RawRows& rows) : first_(data + rows.offset), rows_(rows) {}
  const uint8_t* row(int32_t y) override {
    if (!rows_.bottom_up) return first_ + y * rows_.pitch;
    const uint8_t* const stored = first_ + (rows_.height - 1 - y) * rows_.pitch;
    // Processors prefetch forward within a page, and these rows are read from the last to the first.
    if (y + kAhead < rows_.height)
      for (int64_t byte = 0; byte < rows_.pitch; byte += 64) __builtin_prefetch(stored - kAhead * rows_.pitch + byte);
    return stored;
  }

 private:
  static constexpr int32_t kAhead = 4;
  const uint8_t* first_;
  const RawRows& rows_;
};

}  // namespace

bool has_all_rows(const RawRows& rows, size_t size) {
  // The padding of the last row may be missing. No product overflows: extents are at most kMaxExtent.
  const uint64_t last = static_cast<uint64_t>(rows.width) * rows.layout.pixel;
  const uint64_t bytes = static_cast<uint64_t>(rows.height - 1) * static_cast<uint64_t>(rows.pitch) + last;
  return rows.offset <= size && bytes <= size - rows.offset;
}

void write_raw(const uint8_t* data, const RawRows& rows, const Target& target, Scratch& scratch) {
  StoredRows stored(data, rows);
  write(stored, rows.layout, target, scratch);  // no row is damaged
}

}  // namespace stoker::raster
