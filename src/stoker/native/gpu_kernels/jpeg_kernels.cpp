// SPDX-License-Identifier: Apache-2.0
// Registration of the GPU JPEG decoder and of the kernels that read files in parts for it.
#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>

#include "gpu_kernels/gpu_with_cpu_fallback.hpp"
#include "gpu_kernels/functions.hpp"
#include "gpu_kernels/jpeg.hpp"
#include "gpu_kernels/jpeg_parts.hpp"
#include "kernels/registry.hpp"

namespace stoker {

template <>
inline constexpr const char* registry::kPythonClass<gpu::GpuWithCpuFallback> = "GpuWithCpuFallback";
template <>
inline constexpr const char* registry::kPythonClass<jpeg::gpu::Index> = "JpegIndex";

namespace {

using SharedIndex = std::shared_ptr<jpeg::gpu::Index>;
using SharedTable = std::shared_ptr<const FileTable>;

// Return the GPU decoder with the CPU decoder as its fallback.
std::shared_ptr<gpu::GpuWithCpuFallback> make_either(const gpu::Functions& kernels, bool adjust, jpeg::Format format,
                                                     int scale_log2, uint64_t max_scan_pixels, SharedIndex index,
                                                     std::shared_ptr<const jpeg::gpu::FileSource> source) {
  jpeg::gpu::Functions functions;
  const auto is_named = [](const gpu::Function& kernel, size_t i) {
    const std::string name = jpeg::gpu::kFunctionNames[i];
    if (i + 1 < jpeg::gpu::kFunctionNames.size()) return kernel.name == name;
    return std::ranges::any_of(jpeg::gpu::kElementTypes,
                               [&](const auto& type) { return kernel.name == name + type.suffix; });
  };
  for (size_t i = 0; i < functions.size(); ++i) {
    for (const auto& kernel : kernels)
      if (is_named(*kernel, i)) functions[i] = kernel;
    if (!functions[i]) throw std::invalid_argument(std::string("the decoder lacks ") + jpeg::gpu::kFunctionNames[i]);
  }
  jpeg::gpu::Settings settings;
  settings.max_scan_pixels = max_scan_pixels;
  auto on_gpu = jpeg::gpu::make_decode(adjust, format, std::move(functions), settings, scale_log2, std::move(index),
                                       source != nullptr, source);
  const registry::List constants = {{adjust}, {static_cast<int64_t>(format)}, {int64_t{scale_log2}}, {max_scan_pixels}};
  return std::make_shared<gpu::GpuWithCpuFallback>(std::move(on_gpu),
                                                   registry::make(registry::Target::Cpu, "decode", constants));
}

std::shared_ptr<gpu::GpuWithCpuFallback> make_decode(gpu::Functions functions, bool adjust, jpeg::Format format,
                                                     int scale_log2, uint64_t max_scan_pixels,
                                                     std::optional<SharedIndex> index) {
  return make_either(functions, adjust, format, scale_log2, max_scan_pixels, index.value_or(nullptr), nullptr);
}

std::shared_ptr<gpu::GpuWithCpuFallback> make_decode_in_parts(gpu::Functions functions, bool adjust,
                                                              jpeg::Format format, int scale_log2,
                                                              uint64_t max_scan_pixels, SharedTable table, int reader,
                                                              SharedIndex index) {
  return make_either(functions, adjust, format, scale_log2, max_scan_pixels, std::move(index),
                     jpeg::gpu::make_source(std::move(table), reader));
}

constexpr const char *kFunctions = "the kernels of device/jpeg.cuh", *kAdjust = "whether Exif's orientation is applied",
                     *kFormat = "a jpeg::Format", *kScale = "images are 1 / 2^scale_log2 as wide and high",
                     *kMaxScanPixels = "the most pixels times scans of many scans; 0: no limit", *kTable = "the files",
                     *kReader = "the column of the batch's indices", *kIndex = "index of known files";
const RegisteredOnGpu kDecode{"decode",
                              "A window of an encoded image. The CPU's kernel makes what this one leaves.",
                              make_decode,
                              {{"functions", kFunctions},
                               {"adjust", kAdjust},
                               {"format", kFormat},
                               {"scale_log2", kScale},
                               {"max_scan_pixels", kMaxScanPixels},
                               {"index", kIndex}}};
const RegisteredOnGpu kDecodeInParts{"decode",
                                     "A window of an encoded image, of which only a part may be there.",
                                     make_decode_in_parts,
                                     {{"functions", kFunctions},
                                      {"adjust", kAdjust},
                                      {"format", kFormat},
                                      {"scale_log2", kScale},
                                      {"max_scan_pixels", kMaxScanPixels},
                                      {"table", kTable},
                                      {"reader", kReader},
                                      {"index", kIndex}}};
const RegisteredOnGpu kReadHeader{"read_header",
                                  "A file, or its header if the index knows the file.",
                                  jpeg::gpu::make_read_header,
                                  {{"table", kTable}, {"reader", kReader}, {"index", kIndex}}};
const RegisteredOnGpu kReadWindow{"read_window",
                                  "A file, or its header and what a window needs.",
                                  jpeg::gpu::make_read_window,
                                  {{"table", kTable},
                                   {"reader", kReader},
                                   {"adjust", kAdjust},
                                   {"format", kFormat},
                                   {"scale_log2", kScale},
                                   {"index", kIndex}}};

}  // namespace
}  // namespace stoker
