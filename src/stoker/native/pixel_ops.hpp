// SPDX-License-Identifier: Apache-2.0
// What each operation of a program takes and gives, what it costs, and whether an instruction is a legal one.
#pragma once
#include <string>

#include "pixel.hpp"

namespace stoker::pixel {

int arity(Op op);  // operands besides memory
Type operand_type(const Instr& in, int k);
Type result_type(const Instr& in);

// Cycles per lane with 16-lane vectors; only ratios matter, and only for the choice between code and table.
float cost_of(const Instr& in);

// Whether a program, and each instruction for itself, is legal. On failure `why` says what is wrong (may be null).
struct Checker {
  const Program& p;
  std::string* why;

  bool header() const;                           // all but the code
  bool fields(size_t i) const;                   // instruction i, but for where its operands come from
  bool fail(size_t at, const char* what) const;  // always false
};

}  // namespace stoker::pixel
