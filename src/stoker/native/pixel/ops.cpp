// SPDX-License-Identifier: Apache-2.0
#include "pixel/ops.hpp"

#include <algorithm>

#include "pixel/kernels.hpp"

namespace stoker::pixel {

std::string_view name_of(Op op) {
  static constexpr std::string_view names[] = {
#define STOKER_PIXEL_NAME(name) #name,
      STOKER_PIXEL_OPS(STOKER_PIXEL_NAME)
#undef STOKER_PIXEL_NAME
  };
  return op < Op::kCount ? names[at(op)] : "?";
}

namespace {

bool compares(Op op) { return op >= Op::Eq && op <= Op::UGe; }
bool converts(Op op) { return op >= Op::Cvt && op <= Op::Wrap; }
bool names_dtype(Op op) {
  return op == Op::Load || op == Op::Store || op == Op::Cast || op == Op::UCast || op == Op::Wrap ||
         op == Op::Coordinate || op == Op::Lookup;
}

bool exists(const Instr& in) {
  const Kernels& k = plain_kernels();
  switch (in.op) {
    case Op::Load:
    case Op::Store:
    case Op::Copy: return true;
    case Op::Coordinate: return in.dtype == DType::I32;
    case Op::Lookup: return k.table[at(in.dtype)];
    case Op::Cvt: return k.cvt[at(in.from)][at(in.type)];
    case Op::UCvt: return in.from == Type::I64 && k.ucvt[at(in.type)];
    case Op::Cast: return k.cast[at(in.from)][at(in.dtype)];
    case Op::UCast: return in.from == Type::I64 && k.ucast[at(in.dtype)];
    case Op::Wrap: return k.wrap[at(in.from)][at(in.dtype)];
    default: return k.op[at(in.op)][at(in.type)];
  }
}

}  // namespace

int arity(Op op) {
  switch (op) {
    case Op::Load:
    case Op::Coordinate: return 0;
    case Op::Random:
    case Op::Normal:
    case Op::Select: return 3;
    case Op::Store:
    case Op::Copy:
    case Op::Neg:
    case Op::Abs:
    case Op::Not:
    case Op::Cvt:
    case Op::UCvt:
    case Op::Cast:
    case Op::UCast:
    case Op::Wrap: return 1;
    default: return op >= Op::Floor && op <= Op::Atanh ? 1 : 2;
  }
}

Type operand_type(const Instr& in, int k) {
  if ((in.op == Op::Select && k == 2) || in.op == Op::Lookup || in.op == Op::Normal) return Type::I32;
  return converts(in.op) ? in.from : in.type;
}
Type result_type(const Instr& in) { return compares(in.op) ? Type::I32 : in.type; }

float cost_of(const Instr& in) {
  const bool wide = register_size(in.type) == 8;
  switch (in.op) {
    case Op::IDiv:
    case Op::IMod:
    case Op::UDiv:
    case Op::UMod: return wide ? 25.f : 7.f;
    case Op::FMod:
    case Op::IPow:
    case Op::UPow: return 20.f;
    case Op::Pow: return 80.f;
    case Op::Random: return 8.f;
    case Op::Normal: return 14.f;
    case Op::Lookup: return 1.5f;
    case Op::Div:
    case Op::Sqrt: return wide ? 1.5f : .7f;
    case Op::Load:
    case Op::Store:
    case Op::Coordinate: return .15f;
    default: break;
  }
  if (in.op >= Op::Rsqrt && in.op <= Op::Atan2) return in.op == Op::Rsqrt ? 10.f : 40.f;
  return wide ? .6f : .11f;
}

bool Checker::fail(size_t at, const char* what) const {
  if (why) {
    const Op op = p.code[at].op;
    *why = "instruction " + std::to_string(at) + " (" + std::string(name_of(op)) + "): " + what;
  }
  return false;
}

bool Checker::header() const {
  const auto bad = [](int n, int most) { return n < 0 || n > most; };
  const char* what = nullptr;
  if (bad(p.inputs, kMaxPorts) || bad(p.outputs, kMaxPorts)) what = "too many ports";
  else if (p.outputs == 0) what = "no output";
  else if (bad(p.channels, kMaxChannels)) what = "too many channels";
  else if (bad(p.uniforms, 65536)) what = "too many uniforms";
  else if (p.code.size() > 4096) what = "too many instructions";
  if (!what) return true;
  if (why) *why = what;
  return false;
}

bool Checker::fields(size_t i) const {
  const Instr& in = p.code[i];
  if (in.op >= Op::kCount) return fail(i, "no such operation");
  if (at(in.type) >= kTypes || at(in.from) >= kTypes) return fail(i, "no such type");
  if (at(in.dtype) >= kDTypes) return fail(i, "no such dtype");
  if (names_dtype(in.op) && in.type != type_of(in.dtype)) return fail(i, "dtype does not live in this type");
  if (in.op == Op::Load || in.op == Op::Store || in.op == Op::Coordinate || in.op == Op::Lookup) {
    const bool load = in.op != Op::Store;
    if (in.port >= (load ? p.inputs : p.outputs)) return fail(i, "no such port");
    if (in.channel >= std::max(1, p.channels)) return fail(i, "no such channel");
    if (in.dtype != (load ? p.input_dtype : p.output_dtype)[in.port]) return fail(i, "not the port's dtype");
  }
  if (!exists(in)) return fail(i, "not defined for this type");
  return true;
}

}  // namespace stoker::pixel
