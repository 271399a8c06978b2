// SPDX-License-Identifier: Apache-2.0
// Scalar code: shapes, windows and kernel parameters of one row, computed without Python.
//
// The planner turns symbolic extents and argument expressions into straight-line code over doubles. Integers up to
// 2**53 are exact, which covers every extent. Register i holds the result of instruction i.
#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/elements.hpp"
#include "base/tensor.hpp"
#include "shared/xmath.hpp"

namespace stoker {

// The Python side relies on the order of the enumerators (contract/scalar.py).
enum class ScalarOp : uint8_t {
  Const,
  Dim,
  Elem,
  Frame,
  Add,
  Sub,
  Mul,
  Div,
  FloorDiv,
  Mod,
  Neg,
  Abs,
  Min,
  Max,
  Floor,
  Ceil,
  RoundEven,
  RoundAway,
  Trunc,
  Sqrt,
  Exp,
  Log,
  Sin,
  Cos,
  Lt,
  Le,
  Gt,
  Ge,
  Eq,
  Ne,
  And,
  Or,
  Not,
  Where,
  Float32,
  IsFinite,
  Count,
  ElemOrOnly
};

struct ScalarInstr {
  ScalarOp op;
  int32_t a = 0, b = 0,
          c = 0;  // registers; Const: an index; Dim: (value, axis); Elem: (value, index, frame step);
                  // ElemOrOnly: (value, index)
};

struct ScalarCode {
  std::vector<ScalarInstr> code;
  std::vector<double> consts;
};

inline double read_element(const View& v, int64_t flat) {
  const uint8_t* p = v.data;
  for (int i = v.rank - 1; i > 0; --i) {
    p += (flat % v.shape[i]) * v.stride[i];
    flat /= v.shape[i];
  }
  if (v.rank > 0) p += flat * v.stride[0];
  return with_type(v.dtype, [p]<class T>(T) { return number_of(load_element<T>(p)); });
}

// Round half to even without the floating-point environment, which the host program may have changed.
inline double round_even(double x) {
  const double r = std::floor(x), d = x - r;
  if (d != 0.5) return d < 0.5 ? r : r + 1;
  return std::floor(r / 2) * 2 == r ? r : r + 1;
}

inline double round_away(double x) { return x < 0 ? -std::floor(-x + 0.5) : std::floor(x + 0.5); }

// Run `code` over one row's values. Return the index of the instruction that read outside of a tensor, or -1.
inline int32_t evaluate(const ScalarCode& s, const View* values, int64_t frame, double* r) {
  const int32_t n = static_cast<int32_t>(s.code.size());
  for (int32_t i = 0; i < n; ++i) {
    const ScalarInstr& q = s.code[i];
    switch (q.op) {
      case ScalarOp::Const: r[i] = s.consts[q.a]; break;
      case ScalarOp::Dim: r[i] = static_cast<double>(values[q.a].shape[q.b]); break;
      case ScalarOp::Elem: {
        const View& v = values[q.a];
        int64_t at = 0;
        if (__builtin_mul_overflow(frame, int64_t{q.c}, &at) || __builtin_add_overflow(at, int64_t{q.b}, &at)) return i;
        if (v.rank < 0 || v.device || at >= v.elements()) return i;
        r[i] = read_element(v, at);
        break;
      }
      case ScalarOp::Frame: r[i] = static_cast<double>(frame); break;
      case ScalarOp::Add: r[i] = r[q.a] + r[q.b]; break;
      case ScalarOp::Sub: r[i] = r[q.a] - r[q.b]; break;
      case ScalarOp::Mul: r[i] = r[q.a] * r[q.b]; break;
      case ScalarOp::Div: r[i] = r[q.a] / r[q.b]; break;
      case ScalarOp::FloorDiv: r[i] = std::floor(r[q.a] / r[q.b]); break;
      case ScalarOp::Mod: r[i] = r[q.a] - std::floor(r[q.a] / r[q.b]) * r[q.b]; break;
      case ScalarOp::Neg: r[i] = -r[q.a]; break;
      case ScalarOp::Abs: r[i] = std::fabs(r[q.a]); break;
      case ScalarOp::Min: r[i] = r[q.b] < r[q.a] ? r[q.b] : r[q.a]; break;
      case ScalarOp::Max: r[i] = r[q.a] < r[q.b] ? r[q.b] : r[q.a]; break;
      case ScalarOp::Floor: r[i] = std::floor(r[q.a]); break;
      case ScalarOp::Ceil: r[i] = std::ceil(r[q.a]); break;
      case ScalarOp::RoundEven: r[i] = round_even(r[q.a]); break;
      case ScalarOp::RoundAway: r[i] = round_away(r[q.a]); break;
      case ScalarOp::Trunc: r[i] = std::trunc(r[q.a]); break;
      case ScalarOp::Sqrt: r[i] = std::sqrt(r[q.a]); break;
      case ScalarOp::Exp: r[i] = xm::exp(r[q.a]); break;
      case ScalarOp::Log: r[i] = xm::log(r[q.a]); break;
      case ScalarOp::Sin: r[i] = xm::sin(r[q.a]); break;
      case ScalarOp::Cos: r[i] = xm::cos(r[q.a]); break;
      case ScalarOp::Lt: r[i] = r[q.a] < r[q.b]; break;
      case ScalarOp::Le: r[i] = r[q.a] <= r[q.b]; break;
      case ScalarOp::Gt: r[i] = r[q.a] > r[q.b]; break;
      case ScalarOp::Ge: r[i] = r[q.a] >= r[q.b]; break;
      case ScalarOp::Eq: r[i] = r[q.a] == r[q.b]; break;
      case ScalarOp::Ne: r[i] = r[q.a] != r[q.b]; break;
      case ScalarOp::And: r[i] = r[q.a] != 0 && r[q.b] != 0; break;
      case ScalarOp::Or: r[i] = r[q.a] != 0 || r[q.b] != 0; break;
      case ScalarOp::Not: r[i] = r[q.a] == 0; break;
      case ScalarOp::Where: r[i] = r[q.a] != 0 ? r[q.b] : r[q.c]; break;
      case ScalarOp::Float32: r[i] = static_cast<double>(static_cast<float>(r[q.a])); break;
      case ScalarOp::IsFinite: r[i] = std::isfinite(r[q.a]); break;
      case ScalarOp::Count: r[i] = static_cast<double>(values[q.a].elements()); break;
      case ScalarOp::ElemOrOnly: {
        const View& v = values[q.a];
        if (v.rank < 0 || v.device) return i;
        const int64_t count = v.elements(), at = count == 1 ? 0 : q.b;
        if (at >= count) return i;
        r[i] = read_element(v, at);
        break;
      }
    }
  }
  return -1;
}

}  // namespace stoker
