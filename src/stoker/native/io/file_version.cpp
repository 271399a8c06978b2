// SPDX-License-Identifier: Apache-2.0
#include "io/file_version.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include "container/crc32c.hpp"

namespace stoker {

namespace {

constexpr uint64_t kPieces = 16, kPiece = 4096;

// Parse all of `text` as a number in decimal digits.
template <class T>
bool parse_number(std::string_view text, T& found) {
  const char* const end = text.data() + text.size();
  const auto [at, failure] = std::from_chars(text.data(), end, found);
  return failure == std::errc() && at == end;
}

}  // namespace

bool find_state(const OpenFile& file, FileState& found) {
  struct stat now;
  if (::fstat(file.descriptor(), &now) != 0) return false;
  // The time of a file may be any number, and its nanoseconds more than 64 bits have.
  const uint64_t ns =
      static_cast<uint64_t>(now.st_mtim.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.st_mtim.tv_nsec);
  found = {now.st_size, static_cast<int64_t>(ns)};
  return true;
}

bool is_in_state(const OpenFile& file, const FileState& expected, const std::string& path, std::string& error) {
  FileState now;
  if (!expected.is_known()) return true;
  if (find_state(file, now) && now.size == expected.size && now.mtime_ns == expected.mtime_ns) return true;
  error = "expected '" + path + "' as it was when the pipeline was built, it has changed";
  return false;
}

std::string FileVersion::text() const { return std::to_string(mtime_ns) + ":" + std::to_string(checksum); }

bool FileVersion::parse(std::string_view text, FileVersion& found) {
  const size_t colon = text.find(':');
  return colon != std::string_view::npos && parse_number(text.substr(0, colon), found.mtime_ns) &&
         parse_number(text.substr(colon + 1), found.checksum);
}

bool sampled_checksum(const OpenFile& file, uint64_t size, const std::string& path, uint32_t& found,
                      std::string& error) {
  const bool is_small = size <= kPieces * kPiece;
  const uint64_t pieces = is_small ? (size + kPiece - 1) / kPiece : kPieces;
  std::array<uint8_t, kPiece> piece;
  found = 0;
  for (uint64_t k = 0; k < pieces; ++k) {
    const uint64_t offset = is_small ? k * kPiece : (size - kPiece) / (kPieces - 1) * k;
    const uint64_t at = !is_small && k == kPieces - 1 ? size - kPiece : offset, bytes = std::min(kPiece, size - at);
    const int64_t have = read_file(file.descriptor(), at, piece.data(), bytes);
    if (have < 0) return cannot_read(path, errno, error);
    if (static_cast<uint64_t>(have) != bytes) {
      error = "expected " + std::to_string(bytes) + " bytes at byte " + std::to_string(at) + " of '" + path +
              "', got " + std::to_string(have) + ": the file has become shorter";
      return false;
    }
    found = crc32c(piece.data(), bytes, found);
  }
  return true;
}

}  // namespace stoker
