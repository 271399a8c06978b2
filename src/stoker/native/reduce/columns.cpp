// SPDX-License-Identifier: Apache-2.0
// Column statistics for the baseline's vectors (SSE2 or NEON), and the choice of an instruction set.
#include "reduce/columns.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/forms.hpp"
#include "shared/half.hpp"

namespace stoker::columns {

namespace {

#define STOKER_VECTOR_BYTES 16
#include "base/vectors.ipp"

#include "reduce/columns.ipp"

const Kernels& kernels() { return form_of_isa<Kernels, STOKER_FILL_FORMS>(); }

int index_of(DType dtype) {
  switch (dtype) {
    case DType::Bool:
    case DType::U8: return 0;
    case DType::I8: return 1;
    case DType::U16: return 2;
    case DType::I16: return 3;
    case DType::U32: return 4;
    case DType::I32: return 5;
    default: return -1;
  }
}

}  // namespace

void fill_plain(Kernels& k) { fill_kernels(k); }

Add find(Statistic statistic, DType dtype) {
  const int type = index_of(dtype);
  return type < 0 ? nullptr : kernels().add[static_cast<int>(statistic)][type];
}

int64_t neutral(Statistic statistic) {
  using L = std::numeric_limits<int64_t>;
  if (statistic == Statistic::Min) return L::max();
  return statistic == Statistic::Max ? L::min() : 0;
}

}  // namespace stoker::columns
