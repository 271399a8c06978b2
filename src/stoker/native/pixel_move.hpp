// SPDX-License-Identifier: Apache-2.0
// How lanes get from memory into register blocks and back, for every layout that views may have.
#pragma once
#include <cstddef>
#include <cstdint>

#include "pixel_kernels.hpp"
#include "pixel_plan.hpp"

namespace stoker::pixel {

// A bound load, store or table lookup: moves lanes between memory and register blocks.
struct Mover {
  // n lanes: memory is at `at` (by port), registers from `lane` on.
  void (*run)(const Mover& m, uint8_t* const* at, int lane, int n) = nullptr;
  uint8_t* reg[kMaxGroup] = {};  // loads: written; stores: read
  int reg_size = 4;
  int port = 0;
  int64_t offset = 0;            // of the channel
  int64_t stride = 0;            // between lanes
  int element = 1;               // bytes in memory
  const Kernels* kernels = nullptr;
  ConvertFn convert = nullptr;
  LoadGroupFn load_group = nullptr;
  StoreGroupFn store_group = nullptr;
  DealFn deal = nullptr;
  WeaveFn weave = nullptr;
  int count = 1;                 // of channels
  ptrdiff_t plane = 0;           // bytes between their stages
  unsigned alignment = 1;        // that direct stores ask for
  int producer = -1;             // the computation that may write to memory itself
  uint8_t* stage = nullptr;      // a contiguous copy of strided elements
  // Tables: the byte's place, and what it maps to.
  LookupFn lookup = nullptr;
  const uint8_t* table = nullptr;
  uint8_t* source_stage = nullptr;
  int source_port = 0;
  int64_t source_offset = 0, source_stride = 0;
};

// Where a mover's memory is: strides of the lanes and of the channels in bytes, by port.
struct Place {
  int port;
  int64_t lane_stride, channel_stride;
};

// One channel of an access; the caller sets the registers and the stage.
Mover bind_single(const Kernels& k, const Access& a, int channel, bool load, const Place& place);
// All channels of an access at once. Only where interleaves() holds.
Mover bind_group(const Kernels& k, const Access& a, bool load, const Place& place);
bool interleaves(const Access& a, bool load, const Place& place);
// One channel of a store that looks its source up.
Mover bind_lookup(const Kernels& k, const Access& a, int channel, const Source& source, const Place& place,
                  const Place& source_place);
// For pixels whose channels all go through one table: makes the lookup of channel 0 that of all.
void widen_lookup(Mover& m);

}  // namespace stoker::pixel
