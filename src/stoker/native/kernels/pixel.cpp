// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <stdexcept>
#include <string>

#include "base/whole.hpp"
#include "kernels/registry.hpp"
#include "kernels/stage.hpp"
#include "kernels/stage_views.hpp"
#include "pixel/copy.hpp"
#include "resample/resample.hpp"
#include "run/job.hpp"
#include "warp/project.hpp"
#include "warp/warp.hpp"

namespace stoker {

namespace {

bool slice(const ViewOp& op, const double* p, View* v) {
  const int64_t start = offset_of(p[op.start]), step = offset_of(p[op.step]), n = v->shape[op.axis];
  const int64_t extent = offset_of(p[op.extent]);
  int64_t last = 0;
  if (__builtin_mul_overflow(step, extent - 1, &last) || __builtin_add_overflow(start, last, &last)) return false;
  if (extent < 0 || (extent > 0 && (start < 0 || start >= n || last < 0 || last >= n))) return false;
  if (extent > 0) v->data += start * v->stride[op.axis];
  // The stride of a single element does not matter.
  if (__builtin_mul_overflow(v->stride[op.axis], step, &v->stride[op.axis])) v->stride[op.axis] = 0;
  v->shape[op.axis] = extent;
  return extent <= n || v->is_countable();
}

void permute(const ViewOp& op, View* v) {
  const View old = *v;
  for (int i = 0; i < v->rank; ++i) {
    v->shape[i] = old.shape[op.list[i]];
    v->stride[i] = old.stride[op.list[i]];
  }
}

void insert(const ViewOp& op, View* v) {
  for (int i = v->rank; i > op.axis; --i) {
    v->shape[i] = v->shape[i - 1];
    v->stride[i] = v->stride[i - 1];
  }
  v->shape[op.axis] = 1;
  v->stride[op.axis] = 0;
  ++v->rank;
}

bool drop(const ViewOp& op, View* v) {
  if (v->shape[op.axis] != 1) return false;
  --v->rank;
  for (int i = op.axis; i < v->rank; ++i) {
    v->shape[i] = v->shape[i + 1];
    v->stride[i] = v->stride[i + 1];
  }
  return true;
}

bool reshape(const ViewOp& op, const double* p, View* v) {
  if (!v->contiguous()) return false;
  const int64_t before = v->elements();
  int64_t after = 1;
  for (int i = 0; i < static_cast<int>(op.list.size()); ++i) {
    v->shape[i] = offset_of(p[op.list[i]]);
    if (v->shape[i] < 0 || __builtin_mul_overflow(after, v->shape[i], &after)) return false;
  }
  v->rank = static_cast<int32_t>(op.list.size());
  if (!v->is_countable()) return false;
  v->set_contiguous_strides();
  return after == before;
}

// Copy any view into contiguous memory of the same type.
void copy_out(const View& from, uint8_t* to) {
  const int64_t item = size_of(from.dtype), n = from.elements();
  int64_t at[kMaxRank] = {};
  const uint8_t* p = from.data;
  for (int64_t i = 0; i < n; ++i) {
    __builtin_memcpy(to + i * item, p, static_cast<size_t>(item));
    for (int d = from.rank - 1; d >= 0; --d) {
      p += from.stride[d];
      if (++at[d] < from.shape[d]) break;
      p -= from.stride[d] * from.shape[d];
      at[d] = 0;
    }
  }
}

class ViewKernel : public Kernel {
 public:
  ViewKernel(std::vector<ViewOp> ops, bool may_copy) : ops_(std::move(ops)), may_copy_(may_copy) {}
  Ports ports() const override { return {.kernel = "view", .in = {{}}, .out = {{.same_type = 0}}, .shows = 0b1}; }
  void check(const StepFacts& step) const override {
    const int32_t rank = check_views(ops_, step.in_rank(0), step, "ops");
    step.require(rank == step.out_rank(0), "output", std::to_string(rank) + " axes", std::to_string(step.out_rank(0)));
  }
  bool aliases() const override { return !may_copy_; }
  bool allocates() const override { return may_copy_; }
  Outcome run(const Call& c) const override {
    View v = *c.in[0];
    if (may_copy_ && !v.contiguous()) {
      if (v.device) {
        *c.error = "expected a tensor in host memory to copy, got one in a device's";
        return Outcome::Error;
      }
      uint8_t* memory = c.allocator->get(static_cast<size_t>(v.elements() * size_of(v.dtype)));
      copy_out(v, memory);
      v.data = memory;
      v.set_contiguous_strides();
    }
    if (!apply(ops_, c.params, &v)) {
      *c.error = "the window leaves the tensor";
      return Outcome::Error;
    }
    *c.out[0] = v;
    return Outcome::Ok;
  }

 private:
  std::vector<ViewOp> ops_;
  bool may_copy_;
};

class Stage : public Kernel {
 public:
  explicit Stage(StageSpec spec) : spec_(std::move(spec)), channels_(spec_.program) {}
  Ports ports() const override { return stage::ports_of(spec_); }
  void check(const StepFacts& step) const override { stage::check(spec_, step); }
  Outcome run(const Call& c) const override {
    stage::Views views;
    if (!stage::take_views(spec_, c, &views)) return Outcome::Error;
    if (views.out[0].elements() == 0) return Outcome::Ok;
    double uniforms[kMaxUniforms];
    for (size_t u = 0; u < spec_.uniforms.size(); ++u) uniforms[u] = c.params[spec_.uniforms[u]];
    switch (spec_.interpolator) {
      case Interpolator::None: return plain(c, views, uniforms);
      case Interpolator::Resample: return resampled(c, views, uniforms);
      case Interpolator::Affine: return warped(c, views, uniforms);
      case Interpolator::ProjectNearest: return projected(c, views, uniforms, warp::Sampling::Nearest);
      case Interpolator::ProjectLinear: return projected(c, views, uniforms, warp::Sampling::Linear);
      case Interpolator::ProjectCubic: return projected(c, views, uniforms, warp::Sampling::Cubic);
    }
    return Outcome::Ok;
  }

 private:
  static Outcome divided(const Call& c) {
    *c.error = stage::kDivided;
    return Outcome::Error;
  }
  Outcome plain(const Call& c, stage::Views& v, const double* uniforms) const {
    View *const in = v.in, *const out = v.out;
    if (!stage::spread(spec_, c.params, out[0], 0, in, c.error) || !channels_.fit(spec_, v, c.error))
      return Outcome::Error;
    return pixel::run(spec_.program, uniforms, in, out, c.work[0]) ? Outcome::Ok : divided(c);
  }

  struct Band {
    pixel::Bound bound;
    bool ok = true;
  };
  Outcome resampled(const Call& c, stage::Views& v, const double* uniforms) const {
    View *const in = v.in, *const out = v.out;
    resample::Axis vertical, horizontal;
    if (!stage::resample_axes(spec_, c.params, in[0], out[0], &vertical, &horizontal, c.error) ||
        !stage::spread(spec_, c.params, out[0], 1, in, c.error) || !channels_.fit(spec_, v, c.error))
      return Outcome::Error;
    if (in[0].shape[2] == out[0].shape[2] && resample::has_packed_rows(out[0]) &&
        pixel::keeps_first_input(spec_.program, out[0].shape[2])) {
      if (resample::resample_into(in[0], vertical, horizontal, out[0], c.work[0])) return Outcome::Ok;
      *c.error = stage::kCannotResample;
      return Outcome::Error;
    }
    View band_view = out[0];
    band_view.dtype = in[0].dtype;
    band_view.shape[2] = in[0].shape[2];
    band_view.set_contiguous_strides();
    Band band;
    View ports[pixel::kMaxPorts];
    std::copy(in, in + spec_.program.inputs, ports);
    ports[0] = band_view;
    band.bound.prepare_rows(spec_.program, uniforms, ports, out, c.work[1]);
    const resample::Sink sink{[](void* to, int64_t y0, int64_t y1, const uint8_t* pixels, int64_t pitch) {
                                Band* b = static_cast<Band*>(to);
                                b->ok &= b->bound.run_rows(y0, y1, pixels, pitch);
                              },
                              &band};
    if (!resample::resample(in[0], vertical, horizontal, sink, c.work[0])) {
      *c.error = stage::kCannotResample;
      return Outcome::Error;
    }
    return band.ok ? Outcome::Ok : divided(c);
  }

  // View of memory for the whole sampled image.
  static View image_of(const Call& c, const stage::Views& v) {
    View image = v.out[0];
    image.dtype = v.in[0].dtype;
    image.shape[2] = v.in[0].shape[2];
    image.set_contiguous_strides();
    image.data = c.work[2].get(static_cast<size_t>(image.elements() * size_of(image.dtype)));
    return image;
  }

  Outcome warped(const Call& c, stage::Views& v, const double* uniforms) const {
    View* const in = v.in;
    double p[9];
    for (int i = 0; i < 9; ++i) p[i] = c.params[spec_.interpolator_params[i]];
    const View image = image_of(c, v);
    if (!warp::affine(in[0], p, p[6] != 0, p[7] != 0 ? p + 8 : nullptr, 0, image, c.work[1])) {
      *c.error = stage::kCannotWarp;
      return Outcome::Error;
    }
    in[0] = image;
    return plain(c, v, uniforms);
  }

  Outcome projected(const Call& c, stage::Views& v, const double* uniforms, warp::Sampling sampling) const {
    double m[8];
    uint8_t fill[4];
    for (int i = 0; i < 8; ++i) m[i] = c.params[spec_.interpolator_params[i]];
    for (int i = 0; i < 4; ++i) fill[i] = saturated<uint8_t>(c.params[spec_.interpolator_params[8 + i]]);
    const View image = image_of(c, v);
    if (v.in[0].elements() == 0 || !warp::project(v.in[0], m, true, sampling, fill, image)) {
      *c.error = stage::kCannotProject;
      return Outcome::Error;
    }
    v.in[0] = image;
    return plain(c, v, uniforms);
  }
  StageSpec spec_;
  stage::Channels channels_;
};

std::shared_ptr<Kernel> make_view(std::vector<ViewOp> ops, bool may_copy) {
  return std::make_shared<ViewKernel>(std::move(ops), may_copy);
}
std::shared_ptr<Kernel> make_stage(Interpolator interpolator, std::vector<int32_t> interpolator_params,
                                   std::vector<pixel::Instr> code, int channels, std::vector<DType> in_dtypes,
                                   std::vector<DType> out_dtypes, std::vector<int32_t> uniforms,
                                   std::vector<std::vector<ViewOp>> inputs, std::vector<std::vector<ViewOp>> outputs,
                                   std::vector<int32_t> coordinates) {
  return std::make_shared<Stage>(stage_spec(interpolator, std::move(interpolator_params), std::move(code), channels,
                                            in_dtypes, out_dtypes, std::move(uniforms), std::move(inputs),
                                            std::move(outputs), std::move(coordinates)));
}

const Registered kView{"view",
                       "Other extents and strides over the same memory.",
                       make_view,
                       {{"ops", "(kind, axis, start, step, extent, list), applied in this order"},
                        {"may_copy", "a reshape of data that are not contiguous copies them"}}};
const Registered kStage{
    "stage", "Views, at most one interpolating sample, a pixel program.", make_stage, {STOKER_STAGE_PARAMETERS}};

pixel::Program program_of(std::vector<pixel::Instr> code, int channels, const std::vector<DType>& inputs,
                          const std::vector<DType>& outputs, size_t uniforms) {
  if (inputs.size() > pixel::kMaxPorts || outputs.size() > pixel::kMaxPorts || uniforms > kMaxUniforms)
    throw std::invalid_argument("a stage takes at most 8 inputs, 8 outputs and 256 uniforms");
  pixel::Program p;
  p.code = std::move(code);
  p.channels = channels;
  p.inputs = static_cast<int>(inputs.size());
  p.outputs = static_cast<int>(outputs.size());
  p.uniforms = static_cast<int>(uniforms);
  std::copy(inputs.begin(), inputs.end(), p.input_dtype.begin());
  std::copy(outputs.begin(), outputs.end(), p.output_dtype.begin());
  std::string why;
  if (!pixel::validate(p, &why)) throw std::invalid_argument(why);
  return p;
}

}  // namespace

StageSpec stage_spec(Interpolator interpolator, std::vector<int32_t> interpolator_params,
                     std::vector<pixel::Instr> code, int channels, const std::vector<DType>& in_dtypes,
                     const std::vector<DType>& out_dtypes, std::vector<int32_t> uniforms,
                     std::vector<std::vector<ViewOp>> inputs, std::vector<std::vector<ViewOp>> outputs,
                     std::vector<int32_t> coordinates) {
  if (interpolator > Interpolator::ProjectCubic) throw std::invalid_argument("expected an interpolator");
  if (inputs.size() != in_dtypes.size() || outputs.size() != out_dtypes.size())
    throw std::invalid_argument("expected views for " + std::to_string(in_dtypes.size()) + " inputs and " +
                                std::to_string(out_dtypes.size()) + " outputs, got " + std::to_string(inputs.size()) +
                                " and " + std::to_string(outputs.size()));
  for (const pixel::Instr& q : code)  // the address of a coordinate's port is a number, and no memory
    if (((q.op == pixel::Op::Load || q.op == pixel::Op::Lookup) && q.port >= in_dtypes.size()) ||
        (q.op == pixel::Op::Coordinate && q.port < in_dtypes.size()))
      throw std::invalid_argument("expected loads from inputs and coordinates from their own ports, got port " +
                                  std::to_string(q.port));
  for (const int32_t axis : coordinates)
    if (axis < 0 || axis >= kMaxRank) throw std::invalid_argument("a coordinate's axis is none");
  StageSpec s;
  s.interpolator = interpolator;
  s.interpolator_params = std::move(interpolator_params);
  std::vector<DType> ports = in_dtypes;
  ports.resize(in_dtypes.size() + coordinates.size(), DType::I32);
  s.program = program_of(std::move(code), channels, ports, out_dtypes, uniforms.size());
  for (const pixel::Table& t : s.program.tables)
    if (t.port == 0 && interpolator != Interpolator::None) throw std::invalid_argument("a table cannot be sampled");
  s.coordinates = std::move(coordinates);
  s.uniforms = std::move(uniforms);
  s.inputs = std::move(inputs);
  s.outputs = std::move(outputs);
  return s;
}

int32_t check_views(const std::vector<ViewOp>& ops, int32_t rank, const StepFacts& step, const std::string& what) {
  const auto text = [](int64_t n) { return std::to_string(n); };
  for (size_t i = 0; i < ops.size(); ++i) {
    const ViewOp& op = ops[i];
    const std::string here = what + ", view " + text(static_cast<int64_t>(i));
    const auto require_axis = [&](int32_t axis, int32_t axes) {
      step.require(axis >= 0 && axis < axes, here, "one of " + text(axes) + " axes", text(axis));
    };
    const auto require_rank = [&](int64_t n) {
      step.require(n <= kMaxRank, here, "at most " + text(kMaxRank) + " axes", text(n));
    };
    switch (op.kind) {
      case ViewKind::Slice:
        require_axis(op.axis, rank);
        for (const int32_t p : {op.start, op.step, op.extent}) step.require_param(p, here);
        break;
      case ViewKind::Permute: {
        uint32_t named = 0;
        for (const int32_t axis : op.list) {
          require_axis(axis, rank);
          step.require(!(named >> axis & 1), here, "each axis once", text(axis) + " twice");
          named |= uint32_t{1} << axis;
        }
        step.require(op.list.size() == static_cast<size_t>(rank), here, "an order of " + text(rank) + " axes",
                     text(static_cast<int64_t>(op.list.size())));
        break;
      }
      case ViewKind::Insert:
        require_axis(op.axis, rank + 1);
        require_rank(++rank);
        break;
      case ViewKind::Drop:
        require_axis(op.axis, rank);
        --rank;
        break;
      case ViewKind::Reshape:
        require_rank(static_cast<int64_t>(op.list.size()));
        for (const int32_t p : op.list) step.require_param(p, here);
        rank = static_cast<int32_t>(op.list.size());
        break;
      default: step.refuse(here, "a view operation", text(static_cast<int>(op.kind)));
    }
  }
  return rank;
}

bool apply(const std::vector<ViewOp>& ops, const double* params, View* view) {
  for (const ViewOp& op : ops) {
    switch (op.kind) {
      case ViewKind::Slice:
        if (!slice(op, params, view)) return false;
        break;
      case ViewKind::Permute: permute(op, view); break;
      case ViewKind::Insert: insert(op, view); break;
      case ViewKind::Drop:
        if (!drop(op, view)) return false;
        break;
      case ViewKind::Reshape:
        if (!reshape(op, params, view)) return false;
        break;
    }
  }
  return true;
}

}  // namespace stoker
