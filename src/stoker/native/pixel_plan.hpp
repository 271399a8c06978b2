// SPDX-License-Identifier: Apache-2.0
// A program as it is executed: loads, then computations, then stores, over few reused register blocks.
#pragma once
#include <cstdint>
#include <vector>

#include "pixel.hpp"
#include "pixel_kernels.hpp"

namespace stoker::pixel {

// Where a value lives. Blocks of 4-byte and of 8-byte lanes are numbered apart.
struct Slot {
  int16_t index = 0;
  Type type = Type::I32;
};

struct Operand {
  bool uniform = false;
  int16_t index = 0;  // a splat (Plan::splats), or a slot's index
  Type type = Type::I32;
};

struct Compute {
  Op op;
  Type type, from;
  DType dtype;
  Slot dst;
  int args = 0;
  Operand arg[3];
  Op then = Op::kCount;  // kCount: none; else `op` and `then` run as a pair
};

// One load or store of `count` channels (first, first + 1, ...) of a port. More than one only where the channels
// 0 .. count - 1 are all used in the same way, so that interleaved pixels can be taken apart at once.
struct Access {
  uint8_t port = 0;
  uint8_t first = 0;
  uint8_t count = 1;
  DType dtype = DType::U8;
  Type type = Type::I32;       // of the registers; differs from type_of(dtype) where a conversion was fused
  Operand reg[kMaxGroup];      // loads: never uniform
  // Stores: the only loaded element this one depends on (index into Plan::sources), or -1.
  int16_t source[kMaxGroup] = {-1, -1, -1, -1};
  // Stores: the computation (index into Plan::computes) whose result is stored and not used otherwise, or -1.
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

struct Plan {
  std::vector<Access> loads, stores;
  std::vector<Compute> computes;
  std::vector<Splat> splats;
  std::vector<Source> sources;
  int slots4 = 0, slots8 = 0;
  int store_lanes = 0;       // stores, a group counting as many
  bool tabular = false;      // every store depends on exactly one byte
  float cost = 0;            // estimated cycles per lane with the widest vectors
};

}  // namespace stoker::pixel
