// SPDX-License-Identifier: Apache-2.0
// Bindings of the libraries of image formats: the submodule `raster`.
#include "raster/libraries.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

namespace nb = nanobind;

void bind_raster(nb::module_& m) {
  nb::module_ raster = m.def_submodule("raster", "Image files of all formats but JPEG.");
  raster.def("use_libwebp", &stoker::raster::use_libwebp, nb::arg("path"),
             "Load libwebp, by which all decoders of the process then decode WebP files.");
  raster.def("use_openjpeg", &stoker::raster::use_openjpeg, nb::arg("path"),
             "Load OpenJPEG, by which all decoders of the process then decode JPEG 2000 files.");
  raster.def(
      "libraries",
      [] {
        nb::list names;
        if (stoker::raster::libwebp()) names.append("libwebp");
        if (stoker::raster::openjpeg()) names.append("openjpeg");
        return names;
      },
      "Return the names of the libraries that are loaded.");
}
