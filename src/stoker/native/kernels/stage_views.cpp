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
    if (channels && i == shape.rank - 1 && i >= lead && old.shape[i - lead] > 1) {
      v->shape[i] = old.shape[i - lead];
      v->stride[i] = old.stride[i - lead];
      continue;
    }
    const bool spread = i < lead || old.shape[i - lead] == 1;
    v->shape[i] = shape.shape[i];
    v->stride[i] = spread ? 0 : old.stride[i - lead];
  }
}

}  // namespace

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
  return true;
}

bool spread(const StageSpec& spec, const View& shape, size_t first, View* in, std::string* error) {
  const bool channels = spec.program.channels > 0;
  for (size_t i = first; i < spec.inputs.size(); ++i) {
    for (int d = channels ? 1 : 0; d < in[i].rank; ++d) {
      const int64_t have = in[i].shape[in[i].rank - 1 - d], want = d < shape.rank ? shape.shape[shape.rank - 1 - d] : 1;
      if (have == 1 || have == want) continue;
      *error = "expected operands of one shape or extents of 1, got " + std::to_string(have) + " against " +
               std::to_string(want) + " elements in an axis";
      return false;
    }
    broadcast(shape, channels, &in[i]);
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
