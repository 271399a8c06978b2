// SPDX-License-Identifier: Apache-2.0
#include "kernels/stage_views.hpp"

#include "shared/coordinate.hpp"

#include <algorithm>

#include "base/whole.hpp"

namespace stoker::stage {

const char* const kCannotResample = "expected a finite region and a type that can be interpolated";
const char* const kCannotWarp = "expected a non-empty image, a finite matrix and a type that can be interpolated";
const char* const kCannotProject = "expected a non-empty image of bytes with up to four channels, and a finite matrix";
const char* const kDivided = "expected a non-zero divisor in an integer division, got 0";

namespace {

// Broadcast `v` to the shape of `shape` by stride 0; a channel axis keeps its own extent (programs may use another
// number of channels).
void broadcast(const View& shape, bool channels, View* v) {
  const int lead = shape.rank - v->rank;
  const View old = *v;
  v->rank = shape.rank;
  for (int i = 0; i < shape.rank; ++i) {
    if (channels && i == shape.rank - 1 && i >= lead && old.shape[i - lead] != 1) {
      v->shape[i] = old.shape[i - lead];
      v->stride[i] = old.stride[i - lead];
      continue;
    }
    const bool spread = i < lead || old.shape[i - lead] == 1;
    v->shape[i] = shape.shape[i];
    v->stride[i] = spread ? 0 : old.stride[i - lead];
  }
}

// The program runs over the first output's extents in all outputs; a channel axis has as many as it has.
bool are_alike(const StageSpec& spec, const Views& views, std::string* error) {
  const View& first = views.out[0];
  const int32_t axes = first.rank - (spec.program.channels > 0 ? 1 : 0);
  for (size_t o = 1; o < spec.outputs.size(); ++o)
    if (!std::equal(first.shape, first.shape + axes, views.out[o].shape)) {
      *error = "expected outputs of one shape";
      return false;
    }
  return true;
}

bool is_table(const StageSpec& spec, size_t input) {
  const auto& tables = spec.program.tables;
  return std::any_of(tables.begin(), tables.end(), [&](const pixel::Table& t) { return t.port == input; });
}

// The sampled image has the output's size and the input's channels, which a repeated axis can make any number.
bool can_sample(const StageSpec& spec, const Views& views, std::string* error) {
  if (spec.interpolator == Interpolator::None) return true;
  View image = views.out[0];
  image.shape[2] = views.in[0].shape[2];
  if (image.is_countable() && views.in[0].is_countable() && image.elements() <= kFarApart) return true;
  *error = "expected an image of at most 2**40 elements";
  return false;
}

constexpr Types kInterpolated = types(DType::U8, DType::U16, DType::I16, DType::I32, DType::F32);

int32_t numbers_of(Interpolator interpolator) {
  switch (interpolator) {
    case Interpolator::None: return 0;
    case Interpolator::Resample: return 7;
    case Interpolator::Affine: return 9;
    default: return 12;
  }
}

void check_interpolator(const StageSpec& spec, const StepFacts& step, int32_t in_rank, int32_t out_rank) {
  const auto wanted = static_cast<size_t>(numbers_of(spec.interpolator));
  step.require(spec.interpolator_params.size() == wanted, "interpolator", std::to_string(wanted) + " numbers",
               std::to_string(spec.interpolator_params.size()));
  for (const int32_t p : spec.interpolator_params) step.require_param(p, "interpolator");
  if (spec.interpolator == Interpolator::None) return;
  step.require(in_rank == 3 && out_rank == 3, "interpolator", "an input and outputs of 3 axes",
               std::to_string(in_rank) + " and " + std::to_string(out_rank));
  const Types sampled = projects(spec.interpolator) ? types(DType::U8) : kInterpolated;
  step.require(has(sampled, step.in_type(0)), "interpolator", "a type that can be interpolated",
               name_of(step.in_type(0)));
}

}  // namespace

Ports ports_of(const StageSpec& spec) {
  Ports ports{.kernel = "stage"};
  for (size_t i = 0; i < spec.inputs.size(); ++i) ports.in.push_back({.types = types(spec.program.input_dtype[i])});
  for (size_t o = 0; o < spec.outputs.size(); ++o) ports.out.push_back({.types = types(spec.program.output_dtype[o])});
  return ports;
}

void check(const StageSpec& spec, const StepFacts& step) {
  const auto axes = [](int32_t n) { return std::to_string(n) + " axes"; };
  const int32_t channels = spec.program.channels > 0 ? 1 : 0;
  int32_t rank = 0;
  for (size_t o = 0; o < spec.outputs.size(); ++o) {
    const std::string name = "output " + std::to_string(o);
    const int32_t made = check_views(spec.outputs[o], step.out_rank(o), step, name);
    if (o == 0) rank = made;
    step.require(made == rank, name, axes(rank) + ", as output 0", std::to_string(made));
  }
  step.require(rank >= channels, "output 0", "an axis of channels", "none");
  int32_t sampled = -1;
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    const std::string name = "input " + std::to_string(i);
    const int32_t have = check_views(spec.inputs[i], step.in_rank(i), step, name);
    if (is_table(spec, i)) step.require(have == 1, name, "a table of 1 axis", std::to_string(have));
    else step.require(have <= rank, name, "at most " + axes(rank), std::to_string(have));
    if (i == 0) sampled = have;
  }
  check_interpolator(spec, step, sampled, rank);
  for (const int32_t p : spec.uniforms) step.require_param(p, "uniforms");
  for (const int32_t axis : spec.coordinates)
    step.require(axis < rank - channels, "coordinates", "one of " + axes(rank - channels), std::to_string(axis));
}

bool take_views(const StageSpec& spec, const Call& call, Views* views) {
  const auto take = [&](const View& from, const std::vector<ViewOp>& ops, View* to) {
    *to = from;
    if (apply(ops, call.params, to)) return true;
    *call.error = "the window leaves the tensor";
    return false;
  };
  for (size_t o = 0; o < spec.outputs.size(); ++o)
    if (!take(*call.out[o], spec.outputs[o], &views->out[o])) return false;
  for (size_t i = 0; i < spec.inputs.size(); ++i)
    if (!take(*call.in[i], spec.inputs[i], &views->in[i])) return false;
  return are_alike(spec, *views, call.error) && can_sample(spec, *views, call.error);
}

bool spread(const StageSpec& spec, const double* params, const View& shape, size_t first, View* in,
            std::string* error) {
  const bool channels = spec.program.channels > 0;
  for (size_t i = first; i < spec.inputs.size(); ++i) {
    if (is_table(spec, i)) continue;
    for (int d = channels ? 1 : 0; d < in[i].rank; ++d) {
      const int64_t have = in[i].shape[in[i].rank - 1 - d], want = d < shape.rank ? shape.shape[shape.rank - 1 - d] : 1;
      if (have == 1 || have == want) continue;
      *error = "expected operands of one shape or extents of 1, got " + std::to_string(have) + " against " +
               std::to_string(want) + " elements in an axis";
      return false;
    }
    broadcast(shape, channels, &in[i]);
  }
  if (!spec.program.tables.empty()) {
    double uniforms[kMaxUniforms];
    for (size_t u = 0; u < spec.uniforms.size(); ++u) uniforms[u] = params[spec.uniforms[u]];
    if (!pixel::spread_tables(spec.program, uniforms, shape, in)) {
      *error = "expected a contiguous table with as many elements as the program reads";
      return false;
    }
  }
  for (size_t k = 0; k < spec.coordinates.size(); ++k) {
    const int axis = spec.coordinates[k];
    if (axis >= shape.rank) {
      *error =
          "expected a coordinate of one of " + std::to_string(shape.rank) + " axes, got axis " + std::to_string(axis);
      return false;
    }
    View& v = in[spec.inputs.size() + k];
    v = shape;
    v.dtype = DType::I32;
    v.data = reinterpret_cast<uint8_t*>(kCoordinateOrigin);
    for (int d = 0; d < v.rank; ++d) v.stride[d] = d == axis;
  }
  return true;
}

Channels::Channels(const pixel::Program& program) {
  for (const pixel::Instr& in : program.code) {
    if (in.op == pixel::Op::Load) loaded[in.port] = std::max(loaded[in.port], in.channel + 1);
    if (in.op == pixel::Op::Store) stored[in.port] = std::max(stored[in.port], in.channel + 1);
  }
}

bool Channels::fit(const StageSpec& spec, const Views& v, std::string* error) const {
  const bool channels = spec.program.channels > 0;
  const auto has = [&](const View& view, int used) {
    const int last = view.rank - 1;
    if (!channels || used == 0 || (last >= 0 && (view.stride[last] == 0 || view.shape[last] >= used))) return true;
    *error = "expected at least " + std::to_string(used) + " channels, got " +
             std::to_string(last >= 0 ? view.shape[last] : 0);
    return false;
  };
  for (size_t i = 0; i < spec.inputs.size(); ++i) {
    const bool sampled = i == 0 && spec.interpolator != Interpolator::None;
    const bool single = i == 0 && (spec.interpolator == Interpolator::Affine || projects(spec.interpolator)) &&
                        v.in[0].shape[2] == 1;  // the channel is broadcast
    if (!single && !has(v.in[i], loaded[i])) return false;
    if (!sampled || channels || single || v.in[0].shape[2] == v.out[0].shape[2]) continue;
    *error = "expected " + std::to_string(v.out[0].shape[2]) + " channels, got " + std::to_string(v.in[0].shape[2]);
    return false;
  }
  for (size_t o = 0; o < spec.outputs.size(); ++o)
    if (!has(v.out[o], stored[o])) return false;
  return true;
}

bool resample_axes(const StageSpec& spec, const double* params, const View& in, const View& out,
                   resample::Axis* vertical, resample::Axis* horizontal, std::string* error) {
  const auto p = [&](int i) { return params[spec.interpolator_params[static_cast<size_t>(i)]]; };
  const auto filter = [&](int i) { return static_cast<resample::Filter>(saturated<uint8_t>(p(i))); };
  *vertical = {in.shape[0], out.shape[0], p(0), p(1), filter(4), p(6) != 0};
  *horizontal = {in.shape[1], out.shape[1], p(2), p(3), filter(5), p(6) != 0};
  if (in.shape[0] != 0 && in.shape[1] != 0) return true;
  *error = "expected an image with at least one pixel, got one of " + std::to_string(in.shape[0]) + "x" +
           std::to_string(in.shape[1]);
  return false;
}

}  // namespace stoker::stage
