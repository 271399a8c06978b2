// SPDX-License-Identifier: Apache-2.0
// File references: identity and path of a file, sent to another process instead of the bytes, so that it reads the file
// itself.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/tensor.hpp"

namespace stoker {

// Return a reference to the JPEG file open as `fd` at `path`: device, inode, size and modification time, 8 bytes each,
// then the path. Return an empty string for files that are not regular, have no end marker near their end, or changed
// within the last `settled_s` seconds: their writer may write again within the granularity of the file system's clock.
// If the file is not in the page cache, the system is asked to read it ahead.
std::string make_file_ref(int fd, const std::string& path, double settled_s);

// Return whether the file at the reference's path is still the referenced file, unchanged.
bool is_file_ref_unchanged(const uint8_t* ref, size_t size);

// Return whether the file open as `fd` is the referenced file, unchanged. Its path does not matter.
bool is_file_ref_of(const uint8_t* ref, size_t size, int fd);

// Read the whole referenced file into memory from `allocator`. Return false with the reason in `error` if the file
// cannot be read, was replaced or has changed. Bytes after the zero byte that ends the path are ignored.
bool read_file_ref(const uint8_t* ref, size_t size, BufferAllocator& allocator, View& out, std::string& error);

}  // namespace stoker
