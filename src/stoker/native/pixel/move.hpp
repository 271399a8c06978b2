// SPDX-License-Identifier: Apache-2.0
// Movers: loads and stores of lanes between memory and register blocks, for every memory layout of a view.
#pragma once
#include <cstddef>
#include <cstdint>

#include "pixel/kernels.hpp"
#include "pixel/plan.hpp"

namespace stoker::pixel {

// Bound load, store or table lookup of lanes.
struct Mover {
  // Move n lanes. `at` has the memory address of each port; register lanes begin at `lane`.
  void (*run)(const Mover& m, uint8_t* const* at, int lane, int n) = nullptr;
  uint8_t* reg[kMaxGroup] = {};  // written by loads, read by stores
  int reg_size = 4;
  int port = 0;
  int64_t offset = 0;  // of the channel, in bytes
  int64_t stride = 0;  // bytes between lanes
  int element = 1;     // size in memory
  const Kernels* kernels = nullptr;
  ConvertFn convert = nullptr;
  LoadGroupFn load_group = nullptr;
  StoreGroupFn store_group = nullptr;
  DealFn deal = nullptr;
  WeaveFn weave = nullptr;
  int count = 1;             // number of channels
  ptrdiff_t plane = 0;       // bytes between the channels' stages
  unsigned alignment = 1;    // alignment that direct stores require
  int producer = -1;         // the computation that may store its result directly
  uint8_t* stage = nullptr;  // contiguous copy of strided elements
  // For tables: the offset of the byte that is looked up, and the table.
  LookupFn lookup = nullptr;
  const uint8_t* table = nullptr;
  uint8_t* source_stage = nullptr;
  int source_port = 0;
  int64_t source_offset = 0, source_stride = 0;
  // For mixes of bytes: the kernel, one mix per channel, and the source's channels.
  MixFn mix = nullptr;
  MixPixelsFn mix_pixels = nullptr;
  const Mix* mixes = nullptr;
  uint8_t source_channels[kMixed] = {};
};

// Strides of a port's lanes and channels, in bytes.
struct PortStrides {
  int port;
  int64_t lane_stride, channel_stride;
};

// Bind one channel of an access; the caller sets the registers and the stage.
Mover bind_single(const Kernels& k, const Access& a, int channel, bool load, const PortStrides& place);
// Bind all channels of an access together. Requires interleaves().
Mover bind_group(const Kernels& k, const Access& a, bool load, const PortStrides& place);
bool interleaves(const Access& a, bool load, const PortStrides& place);
// Bind one channel of a store that is a table lookup.
Mover bind_lookup(const Kernels& k, const Access& a, int channel, const Source& source, const PortStrides& place,
                  const PortStrides& source_place);
// Bind a store of loaded elements of its own type as a copy. Return false if the lanes are not contiguous in both places,
// or the channels in another order.
bool bind_copy(const Plan& plan, const Access& a, const PortStrides& place, const PortStrides& source_place,
               Mover* out);
// Bind a store of loaded elements whose type differs as one conversion from memory to memory. Return false if the lanes
// are not contiguous in both places, the channels in another order, or both the load and the store convert.
bool bind_cast(const Kernels& k, const Plan& plan, const Access& a, const PortStrides& place,
               const PortStrides& source_place, Mover* out);
// Bind all channels of a store that are mixes of bytes; the caller sets the mixes and the stage, which has room for
// 2 * kMixed planes. Return false if the kernel does not exist or cannot reach the bytes.
bool bind_mix(const Kernels& k, const Plan& plan, const PortStrides& place, const PortStrides& source_place,
              Mover* out);
// Let a bound mix of interleaved pixels, whose mixes are set, run without planes. Return false if it cannot: the memory
// has another layout, there is no kernel, or a sum may exceed an integer.
bool mix_without_planes(Mover& m);
// For pixels whose channels all use one table: extend the lookup of channel 0 to all channels.
void widen_lookup(Mover& m);

}  // namespace stoker::pixel
