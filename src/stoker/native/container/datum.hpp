// SPDX-License-Identifier: Apache-2.0
// Images and labels in records of Caffe: the message Datum.
#pragma once
#include <cstdint>

#include "container/wire.hpp"

namespace stoker {

struct Datum {
  uint64_t channels = 0, height = 0, width = 0;
  ByteSpan data;
  int32_t label = 0;
  bool has_label = false, is_encoded = true;  // the latter also if the record does not say so
};

// Return false if the message is damaged. A field that comes twice has its last value.
bool read_datum(ByteSpan message, Datum& found);

}  // namespace stoker
