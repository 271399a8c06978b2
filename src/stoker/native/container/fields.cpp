// SPDX-License-Identifier: Apache-2.0
#include "container/fields.hpp"

#include "container/frames.hpp"

namespace stoker {

bool find_field(ByteSpan record, const std::vector<int64_t>& sizes, size_t field, ByteSpan& found) {
  uint64_t begin = 0;
  for (const int64_t size : sizes) begin += size < 0 ? 4 : 0;
  const uint8_t* varying = record.data;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (begin > record.size) return false;
    uint64_t size = static_cast<uint64_t>(sizes[i]);
    if (sizes[i] < 0) {
      size = load_little<uint32_t>(varying);
      varying += 4;
    }
    if (size > record.size - begin) return false;
    if (i == field) found = {record.data + begin, static_cast<size_t>(size)};
    begin += size;
  }
  return begin == record.size && field < sizes.size();
}

}  // namespace stoker
