// SPDX-License-Identifier: Apache-2.0
// Sum of unsigned bytes by x86's sums of absolute differences. Included after reduce/columns.ipp; the including file
// defines byte_sums(x): the sum of each eight bytes, as 64 bits.

void add_bytes(const uint8_t* p, int64_t count, int columns, int64_t* totals) {
  if (columns != 1) return add<ByteSumOf<uint8_t>>(p, count, columns, totals);
  constexpr int kStreams = 4;
  V<uint64_t> sums[kStreams] = {};
  for (; count >= kStreams * STOKER_VECTOR_BYTES; count -= kStreams * STOKER_VECTOR_BYTES)
    for (V<uint64_t>& sum : sums) {
      sum += byte_sums(load_vector<uint8_t>(p));
      p += STOKER_VECTOR_BYTES;
    }
  const V<uint64_t> sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  for (int i = 0; i < kLanes<uint64_t>; ++i) totals[0] += static_cast<int64_t>(sum[i]);
  for (int64_t i = 0; i < count; ++i) totals[0] += p[i];
}
