// SPDX-License-Identifier: Apache-2.0
// Executable form of a program: loads, then computations, then stores, over a few reused register blocks.
#pragma once
#include <cstdint>
#include <vector>

#include "pixel/kernels.hpp"
#include "pixel/pixel.hpp"

namespace stoker::pixel {

// Location of a value. Blocks of 4-byte lanes and of 8-byte lanes are numbered separately.
struct Slot {
  int16_t index = 0;
  Type type = Type::I32;
};

struct Operand {
  bool uniform = false;
  int16_t index = 0;  // of a splat (Plan::splats) or of a slot
  Type type = Type::I32;
};

struct Compute {
  Op op;
  Type type, from;
  DType dtype;
  Slot dst;
  int args = 0;
  Operand arg[4];
  Op then = Op::kCount;  // kCount: none; else `op` and `then` run as a pair
  // kCount: none; else `op` or the pair is a rounding, and the pair after[0], after[1] follows it.
  Op after[2] = {Op::kCount, Op::kCount};
  uint8_t port = 0;  // of a Lookup
};

// One load or store of `count` channels (first, first + 1, ...) of a port. More than one channel only if the channels 0
// .. count - 1 are all used in the same way, so that interleaved pixels can be split together.
struct Access {
  bool coordinate = false;  // the value is the port's address
  uint8_t port = 0;
  uint8_t first = 0;
  uint8_t count = 1;
  DType dtype = DType::U8;
  Type type = Type::I32;   // register type; differs from type_of(dtype) if a conversion was fused
  Operand reg[kMaxGroup];  // never uniform for loads
  // For stores: index into Plan::sources of the only loaded element that the stored value depends on, or -1.
  int16_t source[kMaxGroup] = {-1, -1, -1, -1};
  // For stores: index into Plan::computes of the computation whose result has no other use, or -1.
  int16_t producer[kMaxGroup] = {-1, -1, -1, -1};
};

struct Source {
  uint8_t port, channel;
  DType dtype;
};

struct Splat {
  uint16_t uniform;
  Type type;
};

// Byte that is a weighted sum of three loaded bytes; see Mix. The numbers index the uniforms; kNoUniform: there is none.
constexpr int kNoUniform = -1;
struct MixRecipe {
  int weight[kMixed], before = kNoUniform, after = kNoUniform;
  bool floors = false;
};

struct Plan {
  std::vector<Access> loads, stores;
  std::vector<Compute> computes;  // those of uniforms only come first
  int constants = 0;              // their number; they run once per binding, and no other value shares their blocks
  std::vector<Splat> splats;
  std::vector<Source> sources;
  int slots4 = 0, slots8 = 0;
  int load_lanes = 0;    // lanes of loads and coordinates; each channel of a group counts
  int store_lanes = 0;   // the same for stores
  bool tabular = false;  // every store depends on exactly one byte
  bool moves = false;    // every store takes a loaded element of its own type
  bool casts = false;    // every store takes a loaded element; loads and stores convert it
  // If the program has one store, and all its channels are sums of the same three bytes, in the same order: the recipes,
  // and the channels of the bytes in `mixed_port`. Else no recipes.
  std::vector<MixRecipe> mixes;
  uint8_t mixed_port = 0, mixed_channel[kMixed] = {};
  float cost = 0;  // estimated cycles per lane with the widest vectors
};

}  // namespace stoker::pixel
