// SPDX-License-Identifier: Apache-2.0
#include "gpu_kernels/stage.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "base/whole.hpp"
#include "gpu_kernels/interpreted_stage.hpp"
#include "gpu_kernels/stage_affine.hpp"
#include "gpu_kernels/stage_batch.hpp"
#include "gpu_kernels/stage_project.hpp"
#include "gpu_kernels/stage_resample.hpp"
#include "gpu_kernels/functions.hpp"
#include "kernels/registry.hpp"
#include "kernels/stage_views.hpp"
#include "shared/interpreted_program.hpp"

namespace stoker {

template <>
inline constexpr const char* registry::kPythonClass<gpu::TieredFunction> = "TieredFunction";

namespace {

using namespace stage;

// Whether a program stores the elements of its only input, unchanged, as _only_moves of device/generate.py.
bool stores_what_it_loads(const std::vector<pixel::Instr>& code, size_t inputs) {
  return inputs == 1 && code.size() == 2 && code[0].op == pixel::Op::Load && code[1].op == pixel::Op::Store &&
         code[0].dtype == code[1].dtype && !(code[1].uniform & pixel::kUniformA);
}

class GpuStage : public gpu::Kernel {
 public:
  GpuStage(StageSpec spec, StageFunctions functions)
      : spec_(std::move(spec)), functions_(std::move(functions)), channels_(spec_.program) {
    for (const pixel::Instr& in : spec_.program.code) divides_ |= in.op >= pixel::Op::IDiv && in.op <= pixel::Op::UMod;
    interpolator_bytes_ = spec_.interpolator == Interpolator::Resample ? sizeof(ResampleSlot)
                          : spec_.interpolator == Interpolator::Affine ? sizeof(AffineSlot)
                          : projects(spec_.interpolator)               ? sizeof(ProjectSlot)
                                                                       : 0;
    ports_ = spec_.program.inputs + static_cast<int>(spec_.outputs.size());
    const auto need = [](const std::shared_ptr<const gpu::Function>& f) {
      if (!f) throw std::invalid_argument("a stage on a GPU lacks one of its kernels");
    };
    if (functions_.tiered) interpreted_ = stage::interpreted_program(spec_.program, functions_.uniforms);
    else need(functions_.stage);
    if (spec_.interpolator == Interpolator::Resample) need(functions_.weights), need(functions_.between);
    if (spec_.interpolator == Interpolator::Affine) need(functions_.walk);
  }

  Ports ports() const override {
    Ports ports = ports_of(spec_);
    for (PortRule& in : ports.in) in.in_planes = true;
    for (PortRule& out : ports.out) out.strided = true;
    return ports;
  }
  void check(const StepFacts& step) const override { stage::check(spec_, step); }

  size_t slot_bytes() const override {
    const size_t bytes = sizeof(Slot) + interpolator_bytes_ + static_cast<size_t>(ports_) * sizeof(Port) +
                         functions_.uniforms.size() * sizeof(uint64_t);
    return (bytes + 15) & ~size_t{15};
  }

  Outcome run(const Call& c) const override {
    Views views;
    if (!take_views(spec_, c, &views)) return Outcome::Error;
    take_pixels(c, &views);
    auto* slot = reinterpret_cast<Slot*>(c.slot);
    slot->lanes = 0;
    if (views.out[0].elements() == 0) return Outcome::Ok;
    if (!describe(c, &views) || !check(c, views)) return Outcome::Error;
    auto* ports = reinterpret_cast<Port*>(c.slot + sizeof(Slot) + interpolator_bytes_);
    if (spec_.interpolator == Interpolator::None) set_axes(views, slot, ports);
    else set_sampled_axes(views, slot, ports);
    if (functions_.shifted) affine_.find_shift(slot, ports);
    slot->words = spec_.outputs.size() == 1 && c.out[0]->in_words() && same_place(*c.out[0], views.out[0]);
    auto* uniforms = reinterpret_cast<uint64_t*>(ports + ports_);
    for (const auto& [uniform, type] : functions_.uniforms)
      *uniforms++ = bits_of(c.params[spec_.uniforms[static_cast<size_t>(uniform)]], static_cast<pixel::Type>(type));
    return Outcome::Ok;
  }

  void launch(gpu::Batch& batch) const override {
    gpu::RowBlocks plain, words, pairs, shifted;
    gpu::Address scratches = 0;
    const gpu::Address report = divides_ ? batch.report(static_cast<size_t>(batch.rows()) * sizeof(uint32_t)) : 0;
    const gpu::Function* own = functions_.tiered ? functions_.tiered->compiled() : functions_.stage.get();
    if (!own) return interpret(batch, report);
    if (spec_.interpolator == Interpolator::Resample) scratches = resampling_.prepare(batch, slot_bytes());
    if (spec_.interpolator == Interpolator::Affine) scratches = affine_.prepare(batch, slot_bytes());
    const int64_t part = spec_.interpolator == Interpolator::None ? part_of(batch) : 0;
    if (part) scratches = static_cast<gpu::Address>(part);
    for (int64_t r = 0; r < batch.rows(); ++r) {
      const Slot* slot = slot_of(batch, r, slot_bytes());
      if (!slot) continue;
      const auto row = static_cast<uint32_t>(r);
      const int64_t width = slot->extent[0], height = slot->extent[1];
      const bool resampled =
          spec_.interpolator == Interpolator::Resample && resampling_.in_tiles(interpolator_of<ResampleSlot>(slot));
      if (spec_.interpolator == Interpolator::None) plain.add(row, lane_blocks(*slot, part));
      else if (const int64_t line = functions_.shifted ? interpolator_of<AffineSlot>(slot).shift.line : 0; line)
        shifted.add(row, shift_blocks(line, height));
      else if (in_pairs(slot)) pairs.add(row, pair_blocks(width, height));
      else if (!resampled) plain.add(row, tile_blocks(width, height));
      else if (!resampling_.direct(*slot)) words.add(row, tile_blocks(width, height));
    }
    stage::launch(batch, plain, own, slot_bytes(), {scratches, report});
    stage::launch(batch, words, functions_.words.get(), slot_bytes(), {scratches, report});
    stage::launch(batch, pairs, functions_.pairs.get(), slot_bytes(), {scratches, report});
    stage::launch(batch, shifted, functions_.shifted.get(), slot_bytes(), {scratches});
  }

  gpu::Verdict judge(const uint8_t* report, int64_t row, const uint8_t*, std::string* error) const override {
    uint32_t fault = 0;
    if (divides_) std::memcpy(&fault, report + static_cast<size_t>(row) * sizeof fault, sizeof fault);
    if (fault == 0) return gpu::Verdict::Good;
    *error = kDivided;
    return gpu::Verdict::Error;
  }

 private:
  void interpret(gpu::Batch& batch, gpu::Address report) const {
    gpu::RowBlocks rows;
    int64_t elements = 0;
    for (int64_t r = 0; r < batch.rows(); ++r) {
      const Slot* slot = slot_of(batch, r, slot_bytes());
      if (!slot) continue;
      rows.add(static_cast<uint32_t>(r), gpu::blocks_for(slot->lanes, kInterpretedLanes));
      elements += slot->lanes * slot->inner;
    }
    if (elements == 0) return;
    gpu::Address program = 0;
    std::copy(interpreted_.begin(), interpreted_.end(), batch.upload(interpreted_.size(), &program));
    stage::launch(batch, rows, functions_.tiered->interpreter(), slot_bytes(), {program, report});
    if (const std::optional<int64_t> limit = functions_.tiered->count(elements)) {
      // The plan, which owns the function, is alive.
      batch.call([tiered = functions_.tiered.get(), limit = *limit](gpu::Fork& fork) {
        tiered->request(limit);
        return fork.stream();
      });
    }
  }

  // Only a resampling can read planar images.
  void take_pixels(const Call& c, Views* v) const {
    for (size_t i = spec_.interpolator == Interpolator::Resample ? 1 : 0; i < spec_.inputs.size(); ++i)
      if (v->in[i].planes) v->in[i].data += request_pixels(*v->in[i].planes, *c.memory);
  }

  // Describe the interpolator and broadcast inputs to the output's shape. Return false with the reason in *c.error.
  bool describe(const Call& c, Views* v) const {
    if (spec_.interpolator == Interpolator::Resample && !resampling_.describe(c, v)) return false;
    if (spec_.interpolator == Interpolator::Affine && !affine_.describe(c, *v)) return false;
    if (projects(spec_.interpolator) && !describe_projection(spec_, c, *v)) return false;
    return spread(spec_, c.params, v->out[0], spec_.interpolator == Interpolator::None ? 0 : 1, v->in, c.error);
  }

  // Return the elements of a block's part of a row without an interpolator.
  int64_t part_of(const gpu::Batch& batch) const {
    int64_t elements = 0, bytes = 0;
    for (int64_t r = 0; r < batch.rows(); ++r)
      if (const Slot* slot = slot_of(batch, r, slot_bytes())) elements += slot->lanes * slot->inner;
    for (int p = 0; p < ports_; ++p) bytes += size_of(dtype_of(p));
    return part_elements(elements, bytes * std::max(spec_.program.channels, 1));
  }

  bool in_pairs(const Slot* slot) const {
    if (!functions_.pairs || !slot->pairs) return false;
    const auto& affine = interpolator_of<AffineSlot>(slot);
    return affine.quick == 4 && affine.walk == Walk::Linear && (spec_.program.channels > 0 || slot->extent[2] == 3);
  }

  // Refuse what would make the device read or write beyond a tensor.
  bool check(const Call& c, const Views& v) const {
    const auto aligned = [&](const View& view) {
      const int64_t size = size_of(view.dtype);
      bool good = address_of(view) % static_cast<uint64_t>(size) == 0;
      for (int d = 0; d < view.rank; ++d) good &= view.shape[d] <= 1 || view.stride[d] % size == 0;
      if (!good) *c.error = "expected elements aligned to their size of " + std::to_string(size) + " bytes on a GPU";
      return good;
    };
    for (size_t i = 0; i < spec_.inputs.size(); ++i)
      if (!aligned(v.in[i])) return false;
    for (size_t o = 0; o < spec_.outputs.size(); ++o)
      if (!aligned(v.out[o])) return false;
    return channels_.fit(spec_, v, c.error);
  }

  static bool same_place(const View& a, const View& b) {
    return a.data == b.data && a.rank == b.rank && std::equal(a.stride, a.stride + a.rank, b.stride);
  }
  DType dtype_of(int p) const {
    const int inputs = spec_.program.inputs;
    return p < inputs ? spec_.program.input_dtype[p] : spec_.program.output_dtype[p - inputs];
  }
  const View& port(const Views& v, int p) const {
    const int inputs = spec_.program.inputs;
    return p < inputs ? v.in[p] : v.out[p - inputs];
  }

  // Describe all axes except the channels', merged where they form one axis in all views.
  void set_axes(const Views& v, Slot* slot, Port* ports) const {
    const bool channels = spec_.program.channels > 0;
    const int rank = v.out[0].rank - (channels ? 1 : 0);
    pixel::Axis axes[kMaxRank + 1];
    int count = 0;
    slot->lanes = 1;
    for (int d = 0; d < rank; ++d) {
      pixel::Axis axis;
      axis.extent = v.out[0].shape[d];
      slot->lanes *= axis.extent;
      for (int p = 0; p < ports_; ++p) axis.stride[p] = port(v, p).stride[d];
      if (axis.extent != 1) axes[count++] = axis;
    }
    count = pixel::merge_axes(axes, count, ports_, spec_.program.inputs);
    const int inner = channels ? -1 : inner_axis(axes, count);
    slot->inner = 1;
    if (inner >= 0) {
      const pixel::Axis axis = axes[inner];
      std::copy(axes + inner + 1, axes + count, axes + inner);
      axes[--count] = axis;  // for the ports' strides of channels
      slot->inner = axis.extent;
      slot->lanes /= axis.extent;
    }
    slot->axes = std::max(count, 1);
    for (int d = 0; d < slot->axes; ++d) slot->extent[d] = count ? axes[count - 1 - d].extent : 1;
    for (int p = 0; p < ports_; ++p) {
      const View& view = port(v, p);
      ports[p].data = address_of(view);
      ports[p].channel = channels ? view.stride[rank] : inner >= 0 ? axes[count].stride[p] : 0;
      for (int d = 0; d < slot->axes; ++d) ports[p].stride[d] = count ? axes[count - 1 - d].stride[p] : 0;
    }
  }

  // Return the axis of adjacent elements of an input or output that becomes part of the lanes, or -1.
  int inner_axis(const pixel::Axis* axes, int count) const {
    for (int d = count - 1; d >= 0 && count > 1; --d) {
      if (axes[d].extent != kPixel && (axes[d].extent != kPoint || spec_.coordinates.empty())) continue;
      for (int p = 0; p < ports_; ++p) {
        if (axes[d].stride[p] == size_of(dtype_of(p))) return d;
      }
    }
    return -1;
  }

  // A sampled row is processed by pixels; flat programs process a pixel's channels one by one.
  void set_sampled_axes(const Views& v, Slot* slot, Port* ports) const {
    slot->axes = 2;
    slot->extent[0] = v.out[0].shape[1];
    slot->extent[1] = v.out[0].shape[0];
    slot->extent[2] = v.out[0].shape[2];
    slot->lanes = slot->extent[0] * slot->extent[1];
    for (int p = 0; p < ports_; ++p) {
      const View& view = port(v, p);
      ports[p].data = address_of(view);
      ports[p].channel = view.stride[2];
      ports[p].stride[0] = view.stride[1];
      ports[p].stride[1] = view.stride[0];
    }
    slot->pairs = can_store_pairs(*slot, ports);
  }

  // Two neighbours can be stored by one access: the first is in an even column, and at the lower address unless all
  // outputs are mirrored.
  bool can_store_pairs(const Slot& slot, const Port* ports) const {
    const Port* outputs = ports + spec_.program.inputs;
    bool good = slot.extent[0] % 2 == 0;
    for (size_t o = 0; o < spec_.outputs.size(); ++o) {
      const Port& port = outputs[o];
      const int64_t size = size_of(spec_.program.output_dtype[o]), step = port.stride[0];
      const auto start = static_cast<int64_t>(port.data) - (step < 0 ? size : 0);
      good &= (step == size || step == -size) && (step < 0) == (outputs[0].stride[0] < 0);
      good &= (start | port.stride[1] | port.channel) % (2 * size) == 0;
    }
    return good;
  }

  StageSpec spec_;
  StageFunctions functions_;
  stage::Channels channels_;
  GpuResampling resampling_{spec_, functions_};
  GpuAffine affine_{spec_, functions_};
  std::vector<uint8_t> interpreted_;  // the program for the interpreter, if the function is tiered
  bool divides_ = false;
  size_t interpolator_bytes_ = 0;
  int ports_ = 0;
};

// The functions are the stage's own kernel, then the interpolator's. `copies`: the stage stores what it samples.
StageFunctions stage_functions(Interpolator interpolator, const gpu::Functions& functions, bool copies,
                               std::vector<std::pair<int32_t, int32_t>> uniforms) {
  const size_t wanted = interpolator == Interpolator::Resample ? 3
                        : interpolator == Interpolator::Affine ? 2 + size_t{copies}
                                                               : 1;
  const size_t more = interpolator == Interpolator::Resample ? 3
                      : interpolator == Interpolator::Affine ? 1
                                                             : 0;        // for some types
  const size_t planar = interpolator == Interpolator::Resample ? 2 : 0;  // for planar images
  const size_t count = functions.size();
  if (count != wanted && count != wanted + more && count != wanted + more + planar)
    throw std::invalid_argument("a stage takes its kernel and those of its interpolator");
  StageFunctions f;
  f.stage = functions[0];
  if (interpolator == Interpolator::Resample) {
    f.weights = functions[1], f.between = functions[2];
    if (functions.size() > 3) f.tiles = functions[3], f.tiles_down = functions[4], f.words = functions[5];
    if (functions.size() > 6) f.planar_tiles = functions[6], f.planar_down = functions[7];
  }
  if (interpolator == Interpolator::Affine) {
    f.walk = functions[1];
    if (copies) f.shifted = functions[2];
    if (functions.size() > wanted) f.pairs = functions[wanted];
  }
  f.uniforms = std::move(uniforms);
  return f;
}

std::shared_ptr<gpu::Kernel> make_gpu_stage(Interpolator interpolator, std::vector<int32_t> interpolator_params,
                                            std::vector<pixel::Instr> code, int channels, std::vector<DType> in_dtypes,
                                            std::vector<DType> out_dtypes, std::vector<int32_t> uniforms,
                                            std::vector<std::vector<ViewOp>> inputs,
                                            std::vector<std::vector<ViewOp>> outputs, std::vector<int32_t> coordinates,
                                            gpu::Functions functions, std::vector<std::pair<int32_t, int32_t>> reads) {
  const bool copies = interpolator == Interpolator::Affine && stores_what_it_loads(code, in_dtypes.size());
  StageFunctions own = stage_functions(interpolator, functions, copies, std::move(reads));
  return std::make_shared<GpuStage>(
      stage_spec(interpolator, std::move(interpolator_params), std::move(code), channels, in_dtypes, out_dtypes,
                 std::move(uniforms), std::move(inputs), std::move(outputs), std::move(coordinates)),
      std::move(own));
}

std::shared_ptr<gpu::Kernel> make_tiered_stage(std::vector<pixel::Instr> code, int channels,
                                               std::vector<DType> in_dtypes, std::vector<DType> out_dtypes,
                                               std::vector<int32_t> uniforms, std::vector<std::vector<ViewOp>> inputs,
                                               std::vector<std::vector<ViewOp>> outputs,
                                               std::vector<int32_t> coordinates,
                                               std::shared_ptr<gpu::TieredFunction> tiered,
                                               std::vector<std::pair<int32_t, int32_t>> reads) {
  StageFunctions functions;
  functions.tiered = std::move(tiered);
  functions.uniforms = std::move(reads);
  return std::make_shared<GpuStage>(
      stage_spec(Interpolator::None, {}, std::move(code), channels, in_dtypes, out_dtypes, std::move(uniforms),
                 std::move(inputs), std::move(outputs), std::move(coordinates)),
      std::move(functions));
}

const RegisteredOnGpu kTieredStage{"stage",
                                   "A stage without an interpolator that is interpreted until its kernel is compiled.",
                                   make_tiered_stage,
                                   {STOKER_PROGRAM_PARAMETERS,
                                    {"tiered", "the interpreter, and later the stage's own kernel"},
                                    {"reads", "(uniform, type) in the order of the generated code"}}};

const RegisteredOnGpu kStage{"stage",
                             "A stage by its compiled kernels.",
                             make_gpu_stage,
                             {STOKER_STAGE_PARAMETERS,
                              {"functions", "the stage's own kernel, then the interpolator's"},
                              {"reads", "(uniform, type) in the order of the generated code"}}};

}  // namespace

}  // namespace stoker
