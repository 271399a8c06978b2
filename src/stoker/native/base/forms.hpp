// SPDX-License-Identifier: Apache-2.0
// Tables of kernels that are compiled once per instruction set, and the choice of one at run time.
#pragma once
#include <array>
#include <cstddef>

#include "base/simd.hpp"

namespace stoker {

// Return the table that a function fills, at the first call. Functions for an instruction set are compiled for it
// themselves, so that they run on processors that have it and on no others.
template <class Table, void (*kFill)(Table&)>
const Table& filled_form() {
  static const Table form = [] {
    Table filled;
    kFill(filled);
    return filled;
  }();
  return form;
}

// Return the table for this processor. `kFill` fill the tables of Isa::Plain, Isa::AVX2 and Isa::AVX512, or of
// Isa::Plain alone, which serves all instruction sets without a table.
template <class Table, void (*... kFill)(Table&)>
const Table& form_of_isa() {
  static constexpr std::array<const Table& (*)(), sizeof...(kFill)> kForms = {filled_form<Table, kFill>...};
  const auto wanted = static_cast<size_t>(isa());
  return kForms[wanted < kForms.size() ? wanted : 0]();
}

// The functions that fill the tables of a folder, for form_of_isa.
#if defined(__x86_64__)
#define STOKER_FILL_FORMS fill_plain, fill_avx2, fill_avx512
#else
#define STOKER_FILL_FORMS fill_plain
#endif

}  // namespace stoker
