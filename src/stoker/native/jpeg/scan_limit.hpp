// SPDX-License-Identifier: Apache-2.0
// Limit on the work that the scans of a file cause. Each scan passes over the whole image, and costs the file no more
// than some twenty bytes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

namespace stoker::jpeg {

// Files with at most this many scans are never refused: their work is limited by their pixels. Encoders write up to 18
// scans (libjpeg's script for four components).
constexpr uint64_t kUnlimitedScans = 24;

// Return the number of scans, from the markers alone; of files that no decoder here supports as well.
uint64_t count_scans(const uint8_t* data, size_t size);

// Return why a file of this size has too many scans: more than kUnlimitedScans, and together more than
// `max_scan_pixels` pixels (0: no limit). "" if it does not.
std::string too_many_scans(const uint8_t* data, size_t size, int64_t width, int64_t height, uint64_t max_scan_pixels);

}  // namespace stoker::jpeg
