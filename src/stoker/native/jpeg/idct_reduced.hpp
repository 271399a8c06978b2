// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "jpeg/idct.hpp"

namespace stoker::jpeg {

InverseDct reduced_dct(int size);  // 4, 2 or 1; see `inverse_dct`

}  // namespace stoker::jpeg
