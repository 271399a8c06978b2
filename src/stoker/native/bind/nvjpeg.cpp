// SPDX-License-Identifier: Apache-2.0
// Bindings of a GPU's JPEG engines for the planner and the report.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>

#include "bind/gil.hpp"
#include "bind/gpu.hpp"
#include "gpu_kernels/nvjpeg_decode.hpp"

namespace nb = nanobind;

namespace stoker {

namespace {

using nvjpeg::Decode;
using nvjpeg::Engines;

std::shared_ptr<Decode> make_on_engines(std::shared_ptr<gpu::GpuWithCpuFallback> exact,
                                        std::shared_ptr<Engines> engines,
                                        const std::vector<std::shared_ptr<gpu::Function>>& kernels,
                                        const std::string& suffix, double part, bool adjust, int format) {
  nvjpeg::Functions functions;
  for (size_t i = 0; i < functions.size(); ++i) {
    for (const auto& kernel : kernels)
      if (kernel->name == nvjpeg::kFunctionNames[i] + suffix) functions[i] = kernel;
    if (!functions[i]) throw std::invalid_argument(std::string("the decoder lacks ") + nvjpeg::kFunctionNames[i]);
  }
  return std::make_shared<Decode>(std::move(exact), std::move(engines), std::move(functions), part, adjust,
                                  static_cast<jpeg::Format>(format));
}

std::shared_ptr<Engines> open_engines(std::shared_ptr<gpu::Device> device, std::shared_ptr<gpu::MemoryQuota> quota,
                                      const std::string& library, bool smooth) {
  return without_gil([&] { return std::make_shared<Engines>(std::move(device), std::move(quota), library, smooth); });
}

}  // namespace

void bind_nvjpeg(nb::module_& gpu_module) {
  nb::class_<Engines>(gpu_module, "JpegEngines")
      .def_prop_ro("count", &Engines::count)
      .def_prop_ro("version", &Engines::version)
      // nvJPEG's threads call the driver under the lock that these wait for.
      .def_prop_ro("device_bytes", [](const Engines& e) { return without_gil([&] { return e.device_bytes(); }); })
      .def_prop_ro("driver_bytes", [](const Engines& e) { return without_gil([&] { return e.driver_bytes(); }); });
  nb::class_<Decode, stoker::Kernel>(gpu_module, "OnEngines")
      .def_prop_ro("rows", &Decode::rows)
      .def_prop_ro("reasons", &Decode::reasons)
      .def_prop_ro("error", [](const Decode& d) {
        const nvjpeg::Error e = d.error();
        return nb::make_tuple(e.rows, e.values, e.sum, e.most);
      });
  gpu_module.def("open_engines", &open_engines, nb::arg(), nb::arg(), nb::arg(), nb::arg());
  gpu_module.def("on_engines", &make_on_engines);
}

}  // namespace stoker
