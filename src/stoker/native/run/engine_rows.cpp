// SPDX-License-Identifier: Apache-2.0
// One row on its way through a segment: conditions, shapes, parameters, checks, memory, and the kernel's call.
#include <algorithm>
#include <cstring>
#include <optional>

#include "run/engine.hpp"
#include "run/sizes.hpp"

namespace stoker {

namespace {

constexpr const char* kOtherExtents = "the step's output has other extents than the memory that was reserved for it";

std::string extents_text(const View& v) {
  std::string all;
  for (int i = 0; i < v.rank; ++i) all += (i ? ", " : "") + std::to_string(v.shape[i]);
  return "[" + all + "]";
}

// Return whether the kernel has nothing to write.
bool has_no_elements(const Step& step, const Call& call) {
  if (step.out.empty() || step.on_device || step.kernel->aliases() || step.kernel->allocates()) return false;
  return std::all_of(call.out, call.out + step.out.size(), [](const View* out) { return out->elements() == 0; });
}

// Staging memory for kernels that learn their output's size while they run. If there are several requests, the last one
// counts.
class InputAllocator final : public BufferAllocator {
 public:
  // `on_device_alone`: no step on the host reads the elements, so they may exist in device memory alone.
  InputAllocator(gpu::JobOnDevice* job, bool on_device_alone, gpu::IdleThreads* others)
      : job_(job), on_device_alone_(on_device_alone), others_(others) {}
  uint8_t* get(size_t bytes) override {
    written();
    return piece_ = job_->allocate_input(bytes);
  }
  uint64_t read_to_device(int descriptor, uint64_t offset, size_t bytes) override {
    return on_device_alone_ ? job_->read_to_device(descriptor, offset, bytes, others_) : 0;
  }
  // Declare the memory complete: nothing is written to it any more.
  void written() {
    if (piece_) job_->input_written(piece_);
    piece_ = nullptr;
  }

 private:
  gpu::JobOnDevice* job_;
  const bool on_device_alone_;
  gpu::IdleThreads* const others_;
  uint8_t* piece_ = nullptr;
};

bool may_be_on_device_alone(const Value& value) { return value.storage == Storage::Upload && !value.is_read_on_host; }

}  // namespace

bool Engine::active(Job* job, int64_t row, const Step& step) const {
  const View* values = job->row(row);
  for (const Guard& g : step.guards) {
    const View& v = values[g.value];
    if (v.elements() == 0 || v.device || (read_element(v, 0) != 0) != g.wanted) return false;
  }
  return true;
}

// Leave values empty, for later steps that would otherwise find the memory of another batch. A number is 0.
void Engine::leave_out(Job* job, int64_t row, const Step& step) const {
  alignas(8) static uint8_t zero[8] = {};
  for (const int32_t o : step.out) {
    View& v = job->row(row)[o];
    v = View{};
    v.data = zero;
    v.dtype = plan_->values[static_cast<size_t>(o)].dtype;
    v.rank = plan_->values[static_cast<size_t>(o)].rank;
  }
}

Outcome Engine::run_kernel(const Step& step, const Call& call) {
  for (const Alike& alike : step.alike) {
    const View &port = *(alike.of_input ? call.in : call.out)[alike.port], &in = *call.in[alike.in];
    if (port.has_extents_of(in)) continue;
    *call.error = "expected the extents of input " + std::to_string(alike.in) + ", " + extents_text(in) + ", got " +
                  extents_text(port);
    return Outcome::Error;
  }
  if (!step.kernel->fits(call)) return Outcome::Error;
  // Kernels loop over extents that have no elements, such as the first of (2**40, 0), and would not end.
  return has_no_elements(step, call) ? Outcome::Ok : step.kernel->run(call);
}

View* Engine::allocate_value(Job* job, int64_t row, int32_t value, RowContext* context, const int64_t* shape) {
  const Value& info = plan_->values[value];
  View& v = job->row(row)[value];
  v.dtype = info.dtype;
  v.rank = info.rank;
  int64_t bytes = size_of(info.dtype);
  for (int i = 0; i < info.rank; ++i) {
    v.shape[i] = shape[i];
    bytes *= shape[i];
  }
  v.set_contiguous_strides();
  v.device = info.storage >= Storage::Device;
  v.planes = nullptr;
  const size_t size = static_cast<size_t>(bytes);
  switch (info.storage) {
    case Storage::Scratch:
      job->memory.require_row(Side::Host, row, size);
      v.data = context->buffers[info.slot].get(bytes);
      break;
    case Storage::Batch:
      if (bytes > kSmallValue) job->memory.charge(Side::Host, row, size);
      v.data = bytes <= kSmallValue ? job->small_at(row, info) : job->batch_memory[value][row].get(bytes);
      break;
    case Storage::Output:
      v.data = job->outputs[info.slot].data + job->outputs[info.slot].offsets[row];
      v.device = job->outputs[info.slot].device;
      break;
    case Storage::Upload:
      job->memory.charge(Side::Host, row, size);
      job->memory.charge(Side::Device, row, size);
      v.data = job->on_device->allocate_host_only(size);
      break;
    case Storage::Words: bytes = v.set_word_strides(); [[fallthrough]];
    case Storage::Device:
      job->memory.charge(Side::Device, row, static_cast<uint64_t>(bytes));
      v.data = reinterpret_cast<uint8_t*>(job->on_device->allocate_device(static_cast<size_t>(bytes)));
      break;
    case Storage::Count: v.data = reinterpret_cast<uint8_t*>(job->on_device->count_address(value, row)); break;
    default: break;
  }
  return &v;
}

// Return false if the row cannot continue (it failed). Set `park` if Python must run, with the reason in `text`.
bool Engine::run_step(Job* job, int64_t row, int32_t index, RowContext* context, bool* park, std::string* text) {
  const Step& step = plan_->steps[index];
  View* values = job->row(row);
  double* registers = context->registers.data();
  if (evaluate(step.scalars, values, 0, registers) >= 0) {
    add_error(job, {row, index, -1, {}, "an argument has fewer elements than are used"});
    return false;
  }
  for (const Check& check : step.checks) {
    if (registers[check.condition] != 0) continue;
    RowError error{row, index, check.message, {}, {}};
    for (const int32_t r : check.values) error.values.push_back(registers[r]);
    add_error(job, std::move(error));
    return false;
  }

  View* out[kMaxStepOutputs];
  View* in[kMaxStepInputs];
  const bool aliases = step.kernel->aliases(), allocates = step.kernel->allocates();
  for (size_t o = 0; o < step.out.size(); ++o) {
    out[o] = &values[step.out[o]];
    const Value& info = plan_->values[step.out[o]];
    out[o]->dtype = info.dtype;
    out[o]->rank = info.rank;
    out[o]->device = false;
    out[o]->planes = nullptr;
    if (aliases || (allocates && o == 0)) continue;
    int64_t shape[kMaxRank];
    for (int i = 0; i < info.rank; ++i) shape[i] = extent_of(registers[step.extents[o][i]]);
    if (!is_plausible(info.dtype, shape, info.rank)) {
      add_error(job, {row, index, -1, {}, kTooLarge});
      return false;
    }
    if (info.storage == Storage::Output &&
        !std::equal(shape, shape + info.rank, job->outputs[info.slot].shapes.data() + row * info.rank)) {
      add_error(job, {row, index, -1, {}, kOtherExtents});
      return false;
    }
    allocate_value(job, row, step.out[o], context, shape);
  }
  for (size_t i = 0; i < step.in.size(); ++i) in[i] = &values[step.in[i]];

  const size_t nparams = step.params.size();
  double* params = context->params.data();
  for (size_t i = 0; i < nparams; ++i) params[i] = registers[step.params[i]];
  BufferAllocator* allocator = nullptr;
  InputAllocator input(job->on_device.get(), allocates && may_be_on_device_alone(plan_->values[step.out[0]]), this);
  std::optional<ChargedAllocator> charged;
  std::optional<RowAllocator> in_output;
  if (allocates) {
    const Value& info = plan_->values[step.out[0]];
    const bool uploads = info.storage == Storage::Upload;
    OutputMemory* const output = plan_->places_rows ? output_of_root(job, step.out[0]) : nullptr;
    if (output) allocator = &in_output.emplace(*output->arena, row);
    else if (uploads) allocator = &input;
    else
      allocator = info.storage == Storage::Batch ? &job->batch_memory[step.out[0]][row] : &context->buffers[info.slot];
    if (job->memory.is_limited(Side::Host)) allocator = &charged.emplace(*allocator, job->memory, row, uploads);
  }
  Call call{params, in, out, *job, row, context->work, allocator, text, &context->held};
  call.param_count = nparams;
  if (step.combined >= 0) call.combined = &job->combined[static_cast<size_t>(step.combined)];
  const View* in_there[kMaxStepInputs];
  std::optional<gpu::ChargedRowMemory> charged_memory;
  if (step.on_device) {
    for (size_t i = 0; i < step.in.size(); ++i) {
      const bool is_constant = plan_->values[static_cast<size_t>(step.in[i])].is_constant;
      context->there[i] =
          is_constant ? job->on_device->constant_on_device(step.in[i], *in[i]) : job->on_device->on_device(*in[i]);
      in_there[i] = &context->there[i];
    }
    call.in = in_there;
    call.host_in = in;
    call.slot = job->on_device->slot(index, row);
    call.memory = &charged_memory.emplace(*job->on_device, job->memory, row);
    call.on_host = job->on_device->redone(row);
    call.in_planes = !step.out.empty() && plan_->values[step.out[0]].storage == Storage::Planes;
    call.may_show = !step.out.empty() && plan_->values[step.out[0]].storage == Storage::Device;
  }
  uint8_t* const supplied = step.out.empty() ? nullptr : out[0]->data;
  if (step.count >= 0 && !step.on_device) std::memcpy(out[step.count]->data, &kNoCount, sizeof kNoCount);
  Outcome outcome = Outcome::Ok;
  if (step.frames < 0) {
    outcome = run_kernel(step, call);
  } else {
    outcome = run_frames(call, index, extent_of(registers[step.frames]), context);
  }
  if (outcome != Outcome::Python) input.written();
  if (outcome == Outcome::Error) {
    add_error(job, {row, index, -1, {}, std::move(*text)});
    return false;
  }
  if (outcome == Outcome::Ok && (aliases || allocates) && !as_planned(step, out)) {
    add_error(job, {row, index, -1, {}, "the kernel has left a tensor of another type or rank than planned"});
    return false;
  }
  if (step.count >= 0 && (outcome != Outcome::Ok || (step.on_device && !out[step.count]->device))) {
    add_error(job, {row, index, -1, {}, "a kernel with a count has left a row to other code, which writes none"});
    return false;
  }
  if (step.count >= 0 && !step.on_device) {
    int32_t count;
    std::memcpy(&count, out[step.count]->data, sizeof count);
    if (std::string wrong = apply_count(job, row, step, count); !wrong.empty()) {
      add_error(job, {row, index, -1, {}, std::move(wrong)});
      return false;
    }
  }
  if (step.on_device && outcome == Outcome::Ok) job->on_device->described(index, row);
  const bool made_here = step.on_device && !out[0]->device;  // or Python will produce it
  if (made_here && plan_->values[step.out[0]].storage == Storage::Output)
    job->on_device->deliver(*out[0], reinterpret_cast<gpu::Address>(supplied));
  *park = outcome == Outcome::Python;
  return true;
}

Engine::RowEnd Engine::run_row(Job* job, int64_t row, size_t position, std::unique_ptr<RowContext>* context,
                               Clock::time_point* clock) {
  const Segment& segment = plan_->segments[job->segment];
  if (job->segment == 0 && position == 0)
    for (const FedColumn& column : job->columns) job->take(column, row);
  if (!segment.steps.empty() && position == 0 && !is_fed(*job, row)) {
    add_error(job, {row, segment.steps[0], -1, {}, kNotFed});
    return RowEnd::Finished;
  }
  for (size_t i = position; i < segment.steps.size() && !job->failing[row]; ++i) {
    const Step& step = plan_->steps[segment.steps[i]];
    if (!step.guards.empty() && !active(job, row, step)) {
      leave_out(job, row, step);
      continue;
    }
    bool park = false;
    std::string text;
    bool going_on = false;
    try {
      going_on = run_step(job, row, segment.steps[i], context->get(), &park, &text);
    } catch (const BatchLimitReached& limit) {
      fail_by_limit_at(job, row, segment.steps[i], limit);
    } catch (const std::bad_alloc& error) {
      add_error(job, {row, segment.steps[i], code_of(error), {}, no_memory(error)});
    } catch (const SystemFailure& failure) {
      add_error(job, {row, segment.steps[i], kSystemFailed, {}, failure.what()});
    } catch (const ReadFailure& failure) {
      add_error(job, {row, segment.steps[i], kUnreadable, {}, failure.what()});
    } catch (const gpu::DeviceFailure& failure) {
      add_error(job, {row, segment.steps[i], kDeviceFailed, {}, failure.what()});
    } catch (const std::exception& error) { add_error(job, {row, segment.steps[i], -1, {}, error.what()}); }
    const Clock::time_point now = Clock::now();
    const std::chrono::nanoseconds spent = now - *clock;
    *clock = now;
    (*context)->clocks[segment.steps[i]].add(static_cast<uint64_t>(spent.count()), take_disk_wait_ns());
    if (!going_on) break;
    if (park) {
      auto parked = std::make_unique<Parked>();
      parked->job = job;
      parked->row = row;
      parked->position = i;
      parked->reason = std::move(text);
      const auto& params = (*context)->params;
      parked->params.assign(params.begin(), params.begin() + static_cast<int64_t>(step.params.size()));
      (*context)->held.file.close();
      parked->context = std::move(*context);
      job->inlined ? void(job->resumed = std::move(parked)) : [&] {
        std::lock_guard<std::mutex> hold(mutex_);
        ++parked_;
        python_.push_back(PythonWork{job, std::move(parked)});
        python_ready_.notify_one();  // every thread takes rows
        job_done_.notify_all();
      }();
      return RowEnd::Parked;
    }
  }
  (*context)->held.file.close();
  if (plan_->places_rows) place_row(job, row, segment);
  return RowEnd::Finished;
}

}  // namespace stoker
