// SPDX-License-Identifier: Apache-2.0
// Conversion of samples in one form per instruction set. Every form gives the same bits.
#pragma once
#include <cstdint>

#include "audio/wav.hpp"

namespace stoker::wav {

struct Samples {
  // Write `count` frames from `p` on, as convert() of audio/wav.hpp does.
  void (*convert)(const uint8_t* p, const Wave& wave, int64_t count, bool downmix, DType dtype, uint8_t* out);
};

// Return the functions for this processor.
const Samples& samples();

void fill_plain(Samples& s);
#if defined(__x86_64__)
void fill_avx2(Samples& s);
#endif

}  // namespace stoker::wav
