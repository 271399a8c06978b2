// SPDX-License-Identifier: Apache-2.0
// Facts by which a file is known to have changed.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "io/files.hpp"

namespace stoker {

// Size and modification time. The inode is no such fact: some network file systems change it.
struct FileState {
  int64_t size = -1, mtime_ns = 0;  // size -1: not known, every file will do
  bool is_known() const { return size >= 0; }
};

// Find the state of an open file. Return false if the system does not report it (`errno` has the reason).
bool find_state(const OpenFile& file, FileState& found);

// Return whether a file that was just opened is in the state in which it was when the pipeline was built; else return
// false with the reason in `error`.
bool is_in_state(const OpenFile& file, const FileState& expected, const std::string& path, std::string& error);

// Version of a shard, as a manifest stores it: its modification time, and a checksum of sampled pieces of the file, which
// a copy of the shard has too.
struct FileVersion {
  int64_t mtime_ns = 0;
  uint32_t checksum = 0;

  // "TIME:CHECKSUM", in decimal digits.
  std::string text() const;
  static bool parse(std::string_view text, FileVersion& found);
};

// Compute the CRC-32C of up to 16 pieces of 4 KiB, the first at the begin and the last at the end of a file of `size`
// bytes, with equal distances; of all bytes if the file is smaller. Return false with the reason in `error`.
bool sampled_checksum(const OpenFile& file, uint64_t size, const std::string& path, uint32_t& found,
                      std::string& error);

}  // namespace stoker
