// SPDX-License-Identifier: Apache-2.0
// The JPEG decoder of a GPU as the run loop sees it: rows describe themselves, batches become five launches. Pixels are
// those of jpeg::decode, bit for bit. The device code is in cuda/.
#pragma once
#include <array>
#include <memory>

#include "gpu.hpp"
#include "jpeg.hpp"
#include "jpeg_index.hpp"

namespace stoker::jpeg {
class Picture;
}

namespace stoker::jpeg::gpu {

// Kernels of cuda/jpeg*.cuh, in the order of `Functions`.
constexpr std::array<const char*, 5> kFunctionNames = {"stoker_jpeg_unstuff", "stoker_jpeg_clear",
                                                       "stoker_jpeg_entropy", "stoker_jpeg_transform",
                                                       "stoker_jpeg_pixels"};
using Functions = std::array<std::shared_ptr<const stoker::gpu::Function>, kFunctionNames.size()>;

// How the work is cut. None of it changes a pixel.
struct Settings {
  uint32_t unstuff_threads = 512;    // at most 512; all are multiples of 32
  uint32_t entropy_threads = 512;    // at most 1024: subsequences of a row
  uint32_t pixel_threads = 256;      // at most 256; of transforms too
  uint32_t min_bits = 256;           // of a subsequence; a multiple of 32
  uint32_t max_rounds = 192;         // of synchronisation, after which a row is left to the CPU
  size_t memory = size_t{1} << 30;   // rows are taken in groups that need about as much, or are one row
};

// Where rows' files come from (kernels_parts.cpp).
class Source {
 public:
  virtual ~Source() = default;
  virtual uint64_t name(const Call& call, uint64_t state) const = 0;  // name_key of the file's path
  // The whole file, which still has to begin with `header`. False: `call.error` says why not.
  virtual bool whole(const Call& call, std::string_view header, Room& room, View& out) const = 0;
};

// The first row of MCUs that a window needs. `Picture::needed_mcu_rows` says where they end.
uint32_t first_needed_row(const Info& info, const jpeg::Picture& picture);

// Why this decoder leaves a file to the CPU, though that one may do it; null: it does not.
const char* refusal(const uint8_t* data, const Info& info);

// Parameters, input and output as of stoker::make_decode (kernels.hpp), the latter two on the device; the output's
// innermost stride is 1. Where the plan wants planes (Call::in_planes), the samples stay as the transform makes them, and
// pixels are made if a reader asks for them. `run` reads the header from the file as the host has it, and answers Outcome::Python, with the
// reason as `error`, for what only the CPU can do: other formats, four components, impossible headers. Of progressive
// files, and others with several scans, it decodes the coefficients itself, into memory that the device gets. With an
// `index`, files that come again are decoded without guessing, and without what lies outside of the window's rows.
// `in_parts`: a second input says which part of the file is there (PartRead, jpeg_parts.hpp); the `source` has all of it,
// for rows that the CPU is to make.
std::shared_ptr<const stoker::gpu::Kernel> make_decode(bool adjust_orientation, Format format, Functions functions,
                                                       Settings settings = {}, int scale_log2 = 0,
                                                       std::shared_ptr<Index> index = nullptr, bool in_parts = false,
                                                       std::shared_ptr<const Source> source = nullptr);

}  // namespace stoker::jpeg::gpu
