// SPDX-License-Identifier: Apache-2.0
// GPU JPEG decoder as a kernel of the run loop: rows describe themselves, and a batch becomes five or six launches. Pixels
// equal those of jpeg::decode bit for bit. The device code is in device/.
#pragma once
#include <array>
#include <memory>

#include "gpu/gpu.hpp"
#include "gpu_kernels/jpeg_index.hpp"
#include "jpeg/jpeg.hpp"

namespace stoker::jpeg {
class Picture;
}

namespace stoker::jpeg::gpu {

// Types of pixels' elements: bytes, these over the full range of uint16, or as float32 from 0 to 1.
struct ElementType {
  DType dtype;
  const char* suffix;  // of the names of kernels that write pixels
};
constexpr std::array<ElementType, 3> kElementTypes = {{{DType::U8, ""}, {DType::U16, "_u16"}, {DType::F32, "_f32"}}};

// Kernels of device/jpeg*.cuh, in the order of `Functions`. The last one has the suffix of its element type.
constexpr std::array<const char*, 9> kFunctionNames = {
    "stoker_jpeg_unstuff",     "stoker_jpeg_clear", "stoker_jpeg_entropy",   "stoker_jpeg_prepare", "stoker_jpeg_guess",
    "stoker_jpeg_synchronise", "stoker_jpeg_write", "stoker_jpeg_transform", "stoker_jpeg_pixels"};
using Functions = std::array<std::shared_ptr<const stoker::gpu::Function>, kFunctionNames.size()>;

// Tuning parameters. None of them changes a pixel.
struct Settings {
  uint32_t unstuff_threads = 512;   // at most 512; all numbers of threads are multiples of 32
  uint32_t entropy_threads = 512;   // at most 1024; the number of a row's subsequences
  uint32_t pixel_threads = 256;     // at most 256; for the transform as well
  uint32_t min_bits = 256;          // minimum size of a subsequence; a multiple of 32
  uint32_t max_rounds = 192;        // of synchronisation, after which a row is left to the CPU
  size_t memory = size_t{1} << 30;  // rows are processed in groups that need about this much memory, or have one row
  uint32_t spread_rows = 8;  // in batches of up to this many rows, each is spread over the device (jpeg_spread.cuh)
  uint32_t spread_threads = 1024;  // at most 1024; of the block that synchronises such a row
  uint32_t subsequences = 4096;    // greatest number of such a row
  uint32_t spread_bits = 1024;     // `min_bits` of such a row
  uint32_t guess_threads = 192;    // at most 256, at least kMaxMcuBlocks
  uint32_t write_threads = 512;    // at most 512
  uint32_t lead_bits = 1024;       // decoded before a subsequence, to guess its entry state; a multiple of 32
  uint64_t max_scan_pixels = 0;    // files with too many scans (jpeg/scan_limit.hpp) are left to the CPU; 0: no limit
};

// Source of the rows' files (gpu_kernels/jpeg_parts.cpp).
class FileSource {
 public:
  virtual ~FileSource() = default;
  virtual uint64_t name(const Call& call, uint64_t state) const = 0;  // name_key of the file's path
  // Read the whole file, which must still begin with `header`. Return false with the reason in `call.error`.
  virtual bool whole(const Call& call, std::string_view header, BufferAllocator& allocator, View& out) const = 0;
};

// Kernel that writes a PartRead (gpu_kernels/jpeg_parts.hpp).
class PartReader : public stoker::Kernel {};

// Return the first row of MCUs that a window needs; `Picture::needed_mcu_rows` is their end.
uint32_t first_needed_row(const Info& info, const jpeg::Picture& picture);

// Return why this decoder leaves a file to the CPU, which may be able to decode it; null: it does not.
const char* refusal(const uint8_t* data, const Info& info);

// Create the decoder. Parameters, input and output are those of `decode` in kernels/io.cpp, the latter two on the
// device; the output has elements of the type that the last function writes, and their size is its innermost stride. If the plan wants planes (Call::in_planes), the samples stay as the
// transform writes them, and pixels are only computed if a reader asks for them. `run` reads the header from the host's
// copy of the file, and returns Outcome::Python with the reason as `error` for what only the CPU can decode: other
// formats, four components, impossible headers. Of progressive files and others with several scans it decodes the
// coefficients itself, into memory that is sent to the device. With an `index`, known files are decoded without
// guessing states, and without the rows outside of the window. `in_parts`: a second input says which part of the file
// was read (PartRead, gpu_kernels/jpeg_parts.hpp); `source` provides the whole file for rows that the CPU decodes.
std::shared_ptr<const stoker::gpu::Kernel> make_decode(bool adjust_orientation, Format format, Functions functions,
                                                       Settings settings = {}, int scale_log2 = 0,
                                                       std::shared_ptr<Index> index = nullptr, bool in_parts = false,
                                                       std::shared_ptr<const FileSource> source = nullptr);

}  // namespace stoker::jpeg::gpu
