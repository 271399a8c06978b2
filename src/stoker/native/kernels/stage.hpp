// SPDX-License-Identifier: Apache-2.0
// Stages: views, at most one interpolator, a pixel program, and a store through a view.
#pragma once
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/views.hpp"
#include "pixel/pixel.hpp"

namespace stoker {

enum class Interpolator : uint8_t { None, Resample, Affine, ProjectNearest, ProjectLinear, ProjectCubic };
constexpr size_t kMaxUniforms = 256;
constexpr bool projects(Interpolator s) { return s >= Interpolator::ProjectNearest; }

struct StageSpec {
  Interpolator interpolator = Interpolator::None;
  // Parameter indices. Resample: y0 y1 x0 x1 filter_y filter_x antialias. Affine: m0..m5 linear has_fill fill.
  // Project...: m0..m7 and a fill value for each of four channels.
  std::vector<int32_t> interpolator_params;
  pixel::Program program;
  bool identity = false;                    // the program only copies, so the interpolator may store directly
  std::vector<int32_t> uniforms;            // parameter indices
  std::vector<std::vector<ViewOp>> inputs;  // view operations per input
  std::vector<int32_t> coordinates;  // axes of the iteration space, whose coordinates are the program's last inputs
  std::vector<std::vector<ViewOp>> outputs;  // view operations per output, applied to its memory
};

// Create the description from the constants of a planned stage. Throw std::invalid_argument for an invalid program.
StageSpec stage_spec(Interpolator interpolator, std::vector<int32_t> interpolator_params,
                     std::vector<pixel::Instr> code, int channels, const std::vector<DType>& in_dtypes,
                     const std::vector<DType>& out_dtypes, std::vector<int32_t> uniforms,
                     std::vector<std::vector<ViewOp>> inputs, std::vector<std::vector<ViewOp>> outputs,
                     std::vector<int32_t> coordinates);

// Names and docs of these parameters, for the constructors that accept them.
#define STOKER_STAGE_PARAMETERS \
  {"interpolator", "kind of interpolator"}, {"interpolator_params", "numbers of parameters"}, STOKER_PROGRAM_PARAMETERS
#define STOKER_PROGRAM_PARAMETERS                                                                                    \
  {"code", "the pixel program's instructions"}, {"channels", "of the program; 0: it is flat"},                       \
      {"in_dtypes", "element types of the inputs"}, {"out_dtypes", "element types of the outputs"},                  \
      {"uniforms", "numbers of parameters"}, {"inputs", "per input, the view that takes it to the iteration space"}, \
      {"outputs", "per output, the view that takes its memory there"},                                               \
      {"coordinates", "axes of the iteration space, whose coordinates are the program's last inputs"}

// (op, type, from, dtype, dst, a, b, c, uniform, port, channel)
template <>
struct registry::Argument<pixel::Instr> {
  using Fields = std::tuple<pixel::Op, pixel::Type, pixel::Type, DType, uint16_t, uint16_t, uint16_t, uint16_t, uint8_t,
                            uint8_t, uint8_t>;
  static std::string type() { return Argument<Fields>::type(); }
  static pixel::Instr read(const Value& v) {
    pixel::Instr q;
    std::tie(q.op, q.type, q.from, q.dtype, q.dst, q.a, q.b, q.c, q.uniform, q.port, q.channel) =
        Argument<Fields>::read(v);
    return q;
  }
};

}  // namespace stoker
