// SPDX-License-Identifier: Apache-2.0
// Reading no more of a known file than its window needs: two steps in place of the one that reads files whole. The first
// gives the header of a file that the index knows, once it has seen that the file still begins with it; the second, when
// the window is known, the header with the chunks of data that hold it.
#pragma once
#include <memory>
#include <optional>

#include "jpeg_gpu.hpp"
#include "kernels.hpp"

namespace stoker::jpeg::gpu {

// The chunks of a known file that a window needs, and where in the file they are.
struct Part {
  uint32_t begin, end;
  uint64_t offset;
  size_t bytes;
};
Part part_of(const KnownFile& file, const Info& info, const Window& window, Format format, int scale_log2);

// What the first step says of the bytes that it gives: whose header they are; or (null) that the file is whole, and in
// which state (OpenFile::state) it was when it was read.
struct HeaderRead {
  const KnownFile* of = nullptr;
  uint64_t state = 0;
};
static_assert(sizeof(HeaderRead) == 16);

// What the second one says: which file's chunks they are; or, as the first, that the file is whole. Such values go from
// step to step as numbers of 64 bits.
struct PartRead {
  const KnownFile* of = nullptr;
  int64_t begin = 0, end = 0;
  uint64_t state = 0;
};
static_assert(sizeof(PartRead) == 32);

std::shared_ptr<const Source> make_source(std::shared_ptr<const FileTable> table, int reader);
// Outputs: a file's bytes, or its header alone, if the index knows the file and these still are its header; and the
// HeaderRead.
std::shared_ptr<stoker::Kernel> make_read_header(std::shared_ptr<const FileTable> table, int reader,
                                                 std::shared_ptr<Index> index);
// Inputs: those. Params: y0 x0 height width of the window. Output: the file's bytes, or its header and the chunks that
// the window needs; and the PartRead.
std::shared_ptr<stoker::Kernel> make_read_window(std::shared_ptr<const FileTable> table, int reader,
                                                 bool adjust_orientation, Format format, int scale_log2,
                                                 std::shared_ptr<Index> index);

}  // namespace stoker::jpeg::gpu
