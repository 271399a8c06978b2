// SPDX-License-Identifier: Apache-2.0
// Files that are told of instead of sent: which file it is and where, so that another process reads it itself.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "tensor.hpp"

namespace stoker {

// What tells of the JPEG file that is open as `fd` and lies at `path`: device, number, size and time of its last change,
// 8 bytes each, then the path. Empty: it is no regular file, has no end marker near its end, or is younger than `settled_s`
// seconds: who has just written it may write it again, within the grain of a file system's clock. Where its bytes are not
// in memory, the system is asked to bring them there.
std::string tell_file(int fd, const std::string& path, double settled_s);

// Whether the file that `told` tells of lies where it did, as it was.
bool is_told_there(const uint8_t* told, size_t size);

// Whether the file that is open as `fd` is the one that `told` tells of, as it was, wherever it lies by now, if anywhere.
bool is_told_open(const uint8_t* told, size_t size, int fd);

// All of the file that `told` tells of, in `room`. False: it cannot be read, or is another one or has changed since, and
// `error` says so. What is behind a path's end (a zero byte) is passed over.
bool read_told(const uint8_t* told, size_t size, Room& room, View& out, std::string& error);

}  // namespace stoker
