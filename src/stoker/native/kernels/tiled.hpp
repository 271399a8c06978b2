// SPDX-License-Identifier: Apache-2.0
// Kernels that can compute their output in parts, so that a chain of them keeps a part in the cache from the first kernel
// to the last one. The kernel `tiled` (tiled.cpp) runs such a chain; the planner builds it from kernels whose steps declare
// it (contract/step.py: Tiles). Alone, the same kernels compute the same bits.
//
// The last kernel may take columns and give the whole: it works on the output in place, when all columns are there.
//
// There are two kinds of parts. `samples`: any range of a signal. `columns`: a group of positions of a matrix, with all bins
// of each, [bins][group] floats aligned to 64 bytes, where `group` is signal::Kernels::group.
#pragma once
#include <cstdint>

#include "kernels/registry.hpp"

namespace stoker::tiled {

class Kernel;

// A kernel's part of a row.
struct Link {
  const Kernel* kernel;
  const Call* call;         // its inputs and numbers; in[0] is null if the link before computes it
  const Link* before;       // null: in[0] is in memory
  int64_t positions, bins;  // of the output; a signal has one bin
  uint8_t* memory;          // of the row, aligned to 64 bytes

  void samples(int64_t first, int64_t count, float* out) const;
  void columns(int64_t first, float* out) const;
};

enum class Part : uint8_t { Whole, Samples, Columns };

class Kernel : public stoker::Kernel {
 public:
  // Kinds of the parts that the kernel takes of its first input and gives of its output. Whole: none.
  virtual Part takes() const = 0;
  virtual Part gives() const = 0;
  // Set positions and bins of the output. Return false with *call.error unless inputs, numbers and the link before fit
  // each other.
  virtual bool measure(Link* link) const = 0;
  // Return the bytes of memory of a measured row.
  virtual int64_t bytes(const Link&) const { return 0; }
  // Prepare the memory of a row.
  virtual void begin(const Link&) const {}
  virtual void samples(const Link&, int64_t, int64_t, float*) const {}
  virtual void columns(const Link&, int64_t, float*) const {}
  // Compute the whole output, a contiguous matrix, from that of the link before, which is in its memory.
  virtual void finish(const Link&, const int64_t (&)[2], float*) const {}
};

inline void Link::samples(int64_t first, int64_t count, float* out) const { kernel->samples(*this, first, count, out); }
inline void Link::columns(int64_t first, float* out) const { kernel->columns(*this, first, out); }

}  // namespace stoker::tiled
