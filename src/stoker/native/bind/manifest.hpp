// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nanobind/nanobind.h>

namespace stoker {

void bind_manifest(nanobind::module_& m);

}  // namespace stoker
