// SPDX-License-Identifier: Apache-2.0
// Partial reads of known files: two steps replace the one that reads whole files. The first returns the header of a
// file that the index knows, after checking that the file still begins with it. The second, which knows the window,
// returns the header and the chunks of data that contain the window.
#pragma once
#include <memory>
#include <optional>

#include "gpu_kernels/jpeg.hpp"
#include "kernels/records.hpp"

namespace stoker::jpeg::gpu {

// Chunks of a known file that a window needs, and their location in the file.
struct Part {
  uint32_t begin, end;
  uint64_t offset;
  size_t bytes;
};
Part part_of(const KnownFile& file, const Info& info, const Window& window, Format format, int scale_log2);

// Description of the first step's bytes: the file whose header they are, or null if they are the whole file, with its
// state (OpenFile::state) when it was read.
struct HeaderRead {
  const KnownFile* of = nullptr;
  uint64_t state = 0;
};
static_assert(sizeof(HeaderRead) == 16);

// Description of the second step's bytes: the file whose chunks they are, or null if they are the whole file. Such
// descriptions are passed between steps as 64-bit numbers.
struct PartRead {
  const KnownFile* of = nullptr;
  int64_t begin = 0, end = 0;
  uint64_t state = 0;
};
static_assert(sizeof(PartRead) == 32);

std::shared_ptr<const FileSource> make_source(std::shared_ptr<const FileTable> table, int reader);
// Outputs: a file's bytes, or only its header if the index knows the file and it still begins with this header; and the
// HeaderRead.
std::shared_ptr<stoker::Kernel> make_read_header(std::shared_ptr<const FileTable> table, int reader,
                                                 std::shared_ptr<Index> index);
// Inputs: the outputs of the first step. Params: y0 x0 height width of the window. Outputs: the file's bytes, or its
// header and the chunks that the window needs; and the PartRead.
std::shared_ptr<stoker::Kernel> make_read_window(std::shared_ptr<const FileTable> table, int reader,
                                                 bool adjust_orientation, Format format, int scale_log2,
                                                 std::shared_ptr<Index> index);

}  // namespace stoker::jpeg::gpu
