// SPDX-License-Identifier: Apache-2.0
// Channels as pixels, by shuffles within parts of 16 bytes, for instruction sets without shuffles of whole vectors.
// Included after base/vectors.ipp and
//
//   join_parts(x)  the parts of three vectors, in turn: part 0 of each, part 1 of each, and so on

// Interleaving of three channels of 16 bytes. Pixel i of channel c goes to byte 3 i + c: the bytes of a channel go to
// different places within the three vectors of the result, so that one shuffle per channel serves all of them.
struct Weave {
  alignas(64) uint8_t order[3][STOKER_VECTOR_BYTES];
  alignas(64) int8_t is_channel[3][2][STOKER_VECTOR_BYTES];  // by vector of the result; whether it is channel 0, or 1
};
constexpr Weave weave_of() {
  Weave weave{};
  for (int i = 0; i < STOKER_VECTOR_BYTES; ++i)
    for (int c = 0; c < 3; ++c) {
      weave.order[c][i - i % 16 + (3 * (i % 16) + c) % 16] = place_of_pixel(i % 16);
      for (int which = 0; which < 2; ++which) weave.is_channel[c][which][i] = (16 * c + i % 16) % 3 == which ? -1 : 0;
    }
  return weave;
}
constexpr Weave kWeave = weave_of();

inline void weave(V<uint8_t> (&channels)[3]) {
  V<uint8_t> shuffled[3];
  for (int c = 0; c < 3; ++c) shuffled[c] = shuffle_parts(channels[c], load_vector<uint8_t>(kWeave.order[c]));
  for (int k = 0; k < 3; ++k) {
    const auto is_of = [&](int c) { return load_vector<int8_t>(kWeave.is_channel[k][c]) < 0; };
    channels[k] = is_of(0) ? shuffled[0] : is_of(1) ? shuffled[1] : shuffled[2];
  }
  join_parts(channels);
}
