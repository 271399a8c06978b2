// SPDX-License-Identifier: Apache-2.0
// Properties of each operation: operands, cost, and whether an instruction is legal.
#pragma once
#include <string>

#include "pixel/pixel.hpp"

namespace stoker::pixel {

int arity(Op op);  // number of operands, without memory
Type operand_type(const Instr& in, int k);
Type result_type(const Instr& in);

// Cycles per lane with 16-lane vectors. Only ratios matter, and only for the choice between code and tables.
float cost_of(const Instr& in);

// Validation of a program as a whole and of each instruction. On failure the reason is written to `why`, which may be
// null.
struct Checker {
  const Program& p;
  std::string* why;

  bool header() const;                           // everything but the code
  bool fields(size_t i) const;                   // instruction i, without checking the origin of its operands
  bool fail(size_t at, const char* what) const;  // writes the reason; always returns false
};

}  // namespace stoker::pixel
