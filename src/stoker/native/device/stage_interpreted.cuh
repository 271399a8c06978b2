// SPDX-License-Identifier: Apache-2.0
// Interpreter of stages without an interpolator: one kernel for all programs, which arrive as data. It runs a stage
// whose own kernel is not compiled yet. The operations are those of generated kernels, so the bits are the same.
#pragma once
#include "device/row_blocks.cuh"
#include "device/stage_lane.cuh"
#include "device/stage_ops.cuh"
#include "shared/device.cuh"
#include "shared/interpreted_program.hpp"
#include "shared/pixel_ops.hpp"
#include "shared/stage_slot.hpp"

namespace stoker::stage {

// Contents of a register, in the type of the operation that computed it.
union Value {
  int32_t i32;
  int64_t i64;
  float f32;
  double f64;
};

template <class T>
inline T get(const Value& v) {
  if constexpr (std::is_same_v<T, int32_t>) return v.i32;
  else if constexpr (std::is_same_v<T, int64_t>) return v.i64;
  else if constexpr (std::is_same_v<T, float>) return v.f32;
  else return v.f64;
}

template <class T>
inline Value value_of(T x) {
  Value v;
  v.i64 = 0;
  if constexpr (std::is_same_v<T, int32_t>) v.i32 = x;
  else if constexpr (std::is_same_v<T, int64_t>) v.i64 = x;
  else if constexpr (std::is_same_v<T, float>) v.f32 = x;
  else v.f64 = x;
  return v;
}

// Call `f` with the element type of a DType's number.
template <class F>
inline Value with_element(int number, const F& f) {
  switch (number) {
    case 0: return f(Bool{});
    case 1: return f(U8{});
    case 2: return f(U16{});
    case 3: return f(U32{});
    case 4: return f(U64{});
    case 5: return f(I8{});
    case 6: return f(I16{});
    case 7: return f(I32{});
    case 8: return f(I64{});
    case 9: return f(F16{});
    case 10: return f(F32{});
    case 11: return f(F64{});
    default: return f(BF16{});
  }
}

// Call `f` with a number of the type that a pixel::Type says.
template <class F>
inline Value with_type(int type, const Value& v, const F& f) {
  switch (type) {
    case 0: return f(v.i32);
    case 1: return f(v.i64);
    case 2: return f(v.f32);
    default: return f(v.f64);
  }
}

using pixel::Op;

// Operations for numbers of one type.
template <class T>
STOKER_CALLED Value arithmetic(Op name, T a, T b, int32_t c, bool& fault) {
  switch (name) {
    case Op::Add: return value_of(op::add(a, b));
    case Op::Sub: return value_of(op::sub(a, b));
    case Op::Mul: return value_of(op::mul(a, b));
    case Op::Min: return value_of(op::min(a, b));
    case Op::Max: return value_of(op::max(a, b));
    case Op::Neg: return value_of(op::neg(a));
    case Op::Abs: return value_of(op::abs(a));
    case Op::Eq: return value_of(op::eq(a, b));
    case Op::Ne: return value_of(op::ne(a, b));
    case Op::Lt: return value_of(op::lt(a, b));
    case Op::Le: return value_of(op::le(a, b));
    case Op::Gt: return value_of(op::gt(a, b));
    case Op::Ge: return value_of(op::ge(a, b));
    case Op::Select: return value_of(op::select(a, b, c));
    default: break;
  }
  if constexpr (op::kFloat<T>) {
    switch (name) {
      case Op::Div: return value_of(op::div(a, b));
      case Op::Floor: return value_of(op::floor(a));
      case Op::Ceil: return value_of(op::ceil(a));
      case Op::Trunc: return value_of(op::trunc(a));
      case Op::Round: return value_of(op::round(a));
      case Op::Sqrt: return value_of(op::sqrt(a));
      default: break;
    }
  } else {
    switch (name) {
      case Op::IDiv: return value_of(op::idiv(a, b, fault));
      case Op::IMod: return value_of(op::imod(a, b, fault));
      case Op::IPow: return value_of(op::ipow(a, b));
      case Op::Not: return value_of(op::bit_not(a));
      case Op::And: return value_of(op::bit_and(a, b));
      case Op::Or: return value_of(op::bit_or(a, b));
      case Op::Xor: return value_of(op::bit_xor(a, b));
      case Op::Shl: return value_of(op::shl(a, b));
      case Op::Shr: return value_of(op::shr(a, b));
      case Op::UShr: return value_of(op::ushr(a, b));
      default: break;
    }
  }
  return value_of(a);  // Copy
}

// Operations on a 64-bit register that is read as unsigned.
STOKER_CALLED Value unsigned_arithmetic(Op name, int64_t a, int64_t b, bool& fault) {
  switch (name) {
    case Op::UDiv: return value_of(op::udiv(a, b, fault));
    case Op::UMod: return value_of(op::umod(a, b, fault));
    case Op::UPow: return value_of(op::upow(a, b));
    case Op::UMin: return value_of(op::umin(a, b));
    case Op::UMax: return value_of(op::umax(a, b));
    case Op::ULt: return value_of(op::ult(a, b));
    case Op::ULe: return value_of(op::ule(a, b));
    case Op::UGt: return value_of(op::ugt(a, b));
    default: return value_of(op::uge(a, b));
  }
}

// Functions, which are computed in double for float, too.
STOKER_CALLED double function(Op name, double a, double b) {
  switch (name) {
    case Op::FMod: return op::fmod(a, b);
    case Op::Pow: return op::pow(a, b);
    case Op::Atan2: return op::atan2(a, b);
    case Op::Rsqrt: return op::rsqrt(a);
    case Op::Cbrt: return op::cbrt(a);
    case Op::Exp: return op::exp(a);
    case Op::Log: return op::log(a);
    case Op::Log2: return op::log2(a);
    case Op::Log10: return op::log10(a);
    case Op::Sin: return op::sin(a);
    case Op::Cos: return op::cos(a);
    case Op::Tan: return op::tan(a);
    case Op::Asin: return op::asin(a);
    case Op::Acos: return op::acos(a);
    case Op::Atan: return op::atan(a);
    case Op::Sinh: return op::sinh(a);
    case Op::Cosh: return op::cosh(a);
    case Op::Tanh: return op::tanh(a);
    case Op::Asinh: return op::asinh(a);
    case Op::Acosh: return op::acosh(a);
    default: return op::atanh(a);
  }
}

STOKER_CALLED Value convert(const InterpretedStep& step, const Value& v) {
  if (static_cast<Op>(step.op) == Op::UCvt) {
    return step.type == 2 ? value_of(op::ucvt<float>(v.i64)) : value_of(op::ucvt<double>(v.i64));
  }
  return with_type(step.from, v, [&](auto x) {
    switch (step.type) {
      case 0: return value_of(op::cvt<int32_t>(x));
      case 1: return value_of(op::cvt<int64_t>(x));
      case 2: return value_of(op::cvt<float>(x));
      default: return value_of(op::cvt<double>(x));
    }
  });
}

STOKER_CALLED Value cast(const InterpretedStep& step, const Value& v) {
  if (static_cast<Op>(step.op) == Op::UCast)
    return with_element(step.element, [&](auto e) { return value_of(op::ucast<decltype(e)>(v.i64)); });
  return with_type(step.from, v, [&](auto x) {
    return with_element(step.element, [&](auto e) { return value_of(op::cast<decltype(e)>(x)); });
  });
}

// Of integers; element types of floats do not occur.
STOKER_CALLED Value wrap(const InterpretedStep& step, const Value& v) {
  return with_element(step.element, [&](auto e) {
    using E = decltype(e);
    if constexpr (op::kFloat<typename E::Register>) return v;
    else return step.from == 1 ? value_of(op::wrap<E>(v.i64)) : value_of(op::wrap<E>(v.i32));
  });
}

STOKER_CALLED Value load(int element, const uint8_t* at) {
  return with_element(element, [&](auto e) {
    using E = decltype(e);
    return value_of(from_memory<E>(*reinterpret_cast<const typename E::Memory*>(at)));
  });
}

STOKER_CALLED void store(int element, uint8_t* at, const Value& v) {
  with_element(element, [&](auto e) {
    using E = decltype(e);
    *reinterpret_cast<typename E::Memory*>(at) = in_memory<E>(get<typename E::Register>(v));
    return v;
  });
}

STOKER_CALLED Value lookup(int element, const uint8_t* table, int32_t index, int32_t length) {
  const bool inside = static_cast<uint32_t>(index) < static_cast<uint32_t>(length);
  return with_element(element, [&](auto e) {
    using E = decltype(e);
    using Register = typename E::Register;
    const auto* entries = reinterpret_cast<const typename E::Memory*>(table);
    return value_of(inside ? static_cast<Register>(from_memory<E>(entries[index])) : Register{0});
  });
}

// A block's copy of the program and of its row's ports.
struct Interpretation {
  InterpretedProgram program;
  InterpretedStep steps[kInterpretedSteps];
  Port ports[kInterpretedPorts];
};

inline bool is_unsigned(Op name) {
  return name == Op::UDiv || name == Op::UMod || name == Op::UPow || name == Op::UMin || name == Op::UMax ||
         (name >= Op::ULt && name <= Op::UGe);
}
inline bool is_function(Op name) {
  return name == Op::FMod || name == Op::Pow || (name >= Op::Rsqrt && name <= Op::Atan2);
}

// Compute one lane, whose elements are at `at`.
inline void interpret(const Interpretation& in, uint8_t* const* at, const Value* uniforms, bool& fault) {
  Value values[kInterpretedSteps];
  for (int n = 0; n < in.program.steps; ++n) {
    const InterpretedStep step = in.steps[n];
    const auto operand = [&](int16_t which) { return which >= 0 ? values[which] : uniforms[-1 - which]; };
    const auto name = static_cast<Op>(step.op);
    uint8_t* const element = at[step.port] + step.channel * in.ports[step.port].channel;
    Value& to = values[n];
    switch (name) {
      case Op::Load: to = load(step.element, element); continue;
      case Op::Store: store(step.element, element, operand(step.a)); continue;
      case Op::Coordinate: to = value_of(coordinate_at(at[step.port])); continue;
      case Op::Lookup: {
        to = lookup(step.element, at[step.port], operand(step.a).i32, operand(step.b).i32);
        continue;
      }
      case Op::Cvt:
      case Op::UCvt: to = convert(step, operand(step.a)); continue;
      case Op::Cast:
      case Op::UCast: to = cast(step, operand(step.a)); continue;
      case Op::Wrap: to = wrap(step, operand(step.a)); continue;
      default: break;
    }
    const Value a = operand(step.a), b = operand(step.b), c = operand(step.c);
    if (name == Op::Random) {
      to = value_of(op::random(a.i32, b.i32, c.i32));
    } else if (name == Op::Normal) {
      to = value_of(op::normal(a.i32, b.i32, c.i32));
    } else if (is_function(name)) {
      const bool single = step.type == 2;
      const double x = single ? static_cast<double>(a.f32) : a.f64, y = single ? static_cast<double>(b.f32) : b.f64;
      const double result = function(name, x, y);
      to = single ? value_of(static_cast<float>(result)) : value_of(result);
    } else if (is_unsigned(name)) {
      to = unsigned_arithmetic(name, a.i64, b.i64, fault);
    } else {
      switch (step.type) {
        case 0: to = arithmetic(name, a.i32, b.i32, c.i32, fault); break;
        case 1: to = arithmetic(name, a.i64, b.i64, c.i32, fault); break;
        case 2: to = arithmetic(name, a.f32, b.f32, c.i32, fault); break;
        default: to = arithmetic(name, a.f64, b.f64, c.i32, fault); break;
      }
    }
  }
}

// Find the addresses of the elements of a lane.
inline void locate(const Interpretation& in, const Slot& slot, int64_t lane, uint8_t** at) {
  for (int p = 0; p < in.program.ports; ++p) at[p] = reinterpret_cast<uint8_t*>(in.ports[p].data);
  for (int d = 0; d < slot.axes; ++d) {
    const bool last = d == slot.axes - 1;
    const int64_t above = last ? 0 : lane / slot.extent[d], index = lane - (last ? 0 : above * slot.extent[d]);
    lane = above;
    for (int p = 0; p < in.program.ports; ++p) at[p] += index * in.ports[p].stride[d];
  }
}

// Compute a part of a row's lanes, by one block.
inline void interpret_block(const uint8_t* slots, uint64_t slot_bytes, const uint8_t* program, uint32_t* report,
                            const gpu::RowBlock& work) {
  STOKER_SHARED(Interpretation, in);
  const uint8_t* const row = slots + work.row * slot_bytes;
  const Slot& slot = *reinterpret_cast<const Slot*>(row);
  const auto& head = *reinterpret_cast<const InterpretedProgram*>(program);
  const auto* steps = reinterpret_cast<const InterpretedStep*>(program + sizeof(InterpretedProgram));
  const auto* ports = reinterpret_cast<const Port*>(row + sizeof(Slot));
  const auto* uniforms = reinterpret_cast<const Value*>(ports + head.ports);
  const auto thread = static_cast<int>(gpu::thread_index());
  if (thread == 0) in.program = head;
  if (thread < head.steps) in.steps[thread] = steps[thread];
  if (thread < head.ports) in.ports[thread] = ports[thread];
  gpu::block_barrier();
  const int64_t begin = static_cast<int64_t>(work.number) * kInterpretedLanes;
  const int64_t end = begin + kInterpretedLanes < slot.lanes ? begin + kInterpretedLanes : slot.lanes;
  const int64_t inner = in.program.flat ? slot.inner : 1;
  bool fault = false;
  for (int64_t lane = begin + thread; lane < end; lane += kThreads) {
    uint8_t* at[kInterpretedPorts];
    locate(in, slot, lane, at);
    for (int64_t c = 0; c < inner; ++c) {
      interpret(in, at, uniforms, fault);
      for (int p = 0; p < in.program.ports; ++p) at[p] += in.ports[p].channel;
    }
  }
  if (fault) report[work.row] = 1;
}

}  // namespace stoker::stage

// Define the kernel.
#define STOKER_INTERPRETED                                                                                         \
  STOKER_KERNEL STOKER_LAUNCH_BOUNDS(stoker::stage::kThreads, 2)                                                   \
      stoker_interpreted(uint64_t slots, uint64_t slot_bytes, uint64_t program, uint64_t report, uint64_t starts,  \
                         uint64_t count, uint64_t first) {                                                         \
    stoker::stage::interpret_block(reinterpret_cast<const uint8_t*>(slots), slot_bytes,                            \
                                   reinterpret_cast<const uint8_t*>(program), reinterpret_cast<uint32_t*>(report), \
                                   stoker::gpu::find_work(starts, count, first));                                  \
  }
