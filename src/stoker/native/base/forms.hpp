// SPDX-License-Identifier: Apache-2.0
// Tables of kernels that are compiled once per instruction set, and the choice of one at run time.
#pragma once
#include <array>
#include <cstddef>

#include "base/simd.hpp"

namespace stoker {

// Return the table for this processor. `kFill` fill the tables of Isa::Plain, Isa::AVX2 and Isa::AVX512, or of
// Isa::Plain alone, which serves all instruction sets without a table. Tables are filled once, at the first call.
template <class Table, void (*... kFill)(Table&)>
const Table& form_of_isa() {
  static const auto forms = [] {
    std::array<Table, sizeof...(kFill)> filled;
    size_t i = 0;
    (kFill(filled[i++]), ...);
    return filled;
  }();
  const auto wanted = static_cast<size_t>(isa());
  return forms[wanted < forms.size() ? wanted : 0];
}

// The functions that fill the tables of a folder, for form_of_isa.
#if defined(__x86_64__)
#define STOKER_FILL_FORMS fill_plain, fill_avx2, fill_avx512
#else
#define STOKER_FILL_FORMS fill_plain
#endif

}  // namespace stoker
