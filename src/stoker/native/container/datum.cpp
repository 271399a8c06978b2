// SPDX-License-Identifier: Apache-2.0
#include "container/datum.hpp"

namespace stoker {

bool read_datum(ByteSpan message, Datum& found) {
  found = {};
  WireReader fields(message);
  while (fields.next()) {
    if (fields.has_bytes(4)) found.data = fields.bytes;
    if (fields.type != WireType::Varint) continue;
    switch (fields.field) {
      case 1: found.channels = fields.number; break;
      case 2: found.height = fields.number; break;
      case 3: found.width = fields.number; break;
      case 5:
        found.label = static_cast<int32_t>(static_cast<uint32_t>(fields.number));
        found.has_label = true;
        break;
      case 7: found.is_encoded = fields.number != 0; break;
      default: break;
    }
  }
  return !fields.is_damaged();
}

}  // namespace stoker
