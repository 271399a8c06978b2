// SPDX-License-Identifier: Apache-2.0
// Records of fields, as in the shards of MosaicML Streaming.
#pragma once
#include <cstdint>
#include <vector>

#include "container/wire.hpp"

namespace stoker {

// Find a field of a record: first come the sizes of all fields of varying size, 4 bytes each, then the fields. `sizes`
// has the sizes of the fields, -1 for varying ones. Return false if they are not those of the record.
bool find_field(ByteSpan record, const std::vector<int64_t>& sizes, size_t field, ByteSpan& found);

}  // namespace stoker
