// SPDX-License-Identifier: Apache-2.0
// The marker walk, shared by `parse` and by the decoder of files with several scans.
#pragma once
#include "jpeg/jpeg.hpp"

namespace stoker::jpeg {

enum class Stop : uint8_t { AtScan, AtEnd, OutOfData, Refused };  // Refused: info.support and info.reason say why

// Read marker segments from `pos` until a scan header was read (info.scan is set) or nothing more can be read.
// `frame_seen` persists across calls: a second frame header is an error.
Stop walk_markers(const uint8_t* data, size_t size, size_t& pos, bool& frame_seen, Info& info);

// Return the position after the next marker at or after `pos`, with its code in `marker`; 0 if the data end first. Fill
// bytes (FF FF) and stuffed zeros (FF 00) are not markers.
size_t next_marker(const uint8_t* data, size_t size, size_t pos, int& marker);

// Return whether a file has a marker before its end that no standard defines. libjpeg refuses such a file once it has
// decoded the pixels.
bool has_unknown_marker(const uint8_t* data, size_t size);

}  // namespace stoker::jpeg
