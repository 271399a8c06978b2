// SPDX-License-Identifier: Apache-2.0
// Bindings of tables of records.
#pragma once
#include <nanobind/nanobind.h>

namespace stoker {

void bind_records(nanobind::module_& m);

}  // namespace stoker
