// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string>

#include "base/whole.hpp"
#include "gpu/gpu.hpp"
#include "gpu_kernels/functions.hpp"
#include "gpu_kernels/inlined_program.hpp"
#include "gpu_kernels/row_blocks.hpp"
#include "kernels/registry.hpp"
#include "shared/own_slot.hpp"

// Host side of operators' own GPU kernels.
namespace stoker::gpu {

namespace {

using own::Port;
using own::Slot;

static_assert(own::kAxes == kMaxRank);
constexpr double kMaxBlocks = 1 << 28;  // per row
constexpr size_t kMaxScratch = size_t{1} << 40;

uint64_t address_of(const View& v) { return reinterpret_cast<uintptr_t>(v.data); }

bool aligned(const View& v) {
  const int64_t size = size_of(v.dtype);
  bool good = address_of(v) % static_cast<uint64_t>(size) == 0;
  for (int d = 0; d < v.rank; ++d) good &= v.shape[d] <= 1 || v.stride[d] % size == 0;
  return good || v.elements() == 0;
}

struct Pass {
  std::shared_ptr<const Function> function;
  uint32_t threads, max_shared_bytes;
  int blocks, shared = -1;  // indices of the step's numbers; -1: no dynamic shared memory
};

class Own : public Kernel {
 public:
  // `like` is the CPU kernel of the same step, whose tensors are this one's; null: of any type. `program` computes the
  // last inputs of `like`; the program's own inputs are in their place.
  Own(std::vector<Pass> passes, std::shared_ptr<const stoker::Kernel> like, int inputs, int outputs, int numbers,
      std::optional<InlinedProgram> program = {}, std::string fault = {})
      : passes_(std::move(passes)),
        like_(std::move(like)),
        program_(std::move(program)),
        fault_(std::move(fault)),
        inputs_(inputs),
        outputs_(outputs),
        ports_(inputs + outputs),
        numbers_(numbers) {
    const auto fits = [](int n) { return n >= 0 && n <= kMaxStepInputs; };
    if (!fits(inputs) || !fits(outputs) || numbers < 1)
      throw std::invalid_argument("expected at most 64 inputs and outputs, and numbers");
    int at = numbers - 1 - static_cast<int>(passes_.size());
    for (const Pass& pass : passes_) at -= pass.max_shared_bytes > 0;
    if (at < 0) throw std::invalid_argument("an operator's own kernel lacks numbers of its passes");
    for (Pass& pass : passes_) {
      pass.blocks = at++;
      if (pass.threads % 32 || pass.threads < 32 || pass.threads > 1024)
        throw std::invalid_argument("expected blocks of 32 to 1024 threads, in whole warps");
    }
    for (Pass& pass : passes_)
      if (pass.max_shared_bytes > 0) pass.shared = at++;
  }

  Ports ports() const override {
    Ports ports = like_ ? like_->ports() : Ports{.kernel = "own", .any = true};
    if (program_) program_->declare(&ports.in);
    ports.in.resize(static_cast<size_t>(inputs_));
    ports.out.resize(static_cast<size_t>(outputs_));
    ports.params = numbers_;
    ports.any = false;
    return ports;
  }
  void check(const StepFacts& step) const override {
    if (like_) like_->check(step);
    if (program_) program_->check(step, static_cast<size_t>(own_inputs()));
  }
  bool fits(const Call& c) const override {
    if (!like_ || !program_) return !like_ || like_->fits(c);
    View value = program_->value(c);
    std::vector<const View*> in(c.in, c.in + own_inputs());
    in.resize(in.size() + static_cast<size_t>(program_->outputs()), &value);
    Call call = c;
    call.in = in.data();
    return like_->fits(call);
  }

  size_t slot_bytes() const override {
    const size_t bytes = program_at() + (program_ ? program_->bytes() : 0);
    return (bytes + 15) & ~size_t{15};
  }

  Outcome run(const Call& c) const override {
    auto* slot = reinterpret_cast<Slot*>(c.slot);
    auto* ports = reinterpret_cast<Port*>(slot + 1);
    slot->ports = ports_;
    slot->fault = 0;
    slot->program = program_ ? program_at() : 0;
    for (int p = 0; p < ports_; ++p) {
      const View& v = p < inputs_ ? *c.in[p] : *c.out[p - inputs_];
      if (!aligned(v)) {
        const std::string size = std::to_string(size_of(v.dtype));
        *c.error = "expected elements aligned to their size of " + size + " bytes on a GPU";
        return Outcome::Error;
      }
      ports[p].data = address_of(v);
      ports[p].rank = v.rank;
      std::copy_n(v.shape, v.rank, ports[p].shape);
      std::copy_n(v.stride, v.rank, ports[p].stride);
    }
    std::memcpy(ports + ports_, c.params, static_cast<size_t>(numbers_) * sizeof(double));
    if (program_ && !program_->describe(c, own_inputs(), c.slot + program_at())) return Outcome::Error;
    for (const Pass& pass : passes_) {
      if (const double blocks = c.params[pass.blocks]; !(blocks >= 0 && blocks <= kMaxBlocks)) {
        *c.error = "the row is too large for a GPU";
        return Outcome::Error;
      }
      if (pass.shared < 0) continue;
      if (const double bytes = c.params[pass.shared]; !(bytes >= 0 && bytes <= pass.max_shared_bytes)) {
        *c.error = "expected a row that needs at most " + std::to_string(pass.max_shared_bytes) +
                   " bytes of a GPU's shared memory, got one that needs " + std::to_string(bytes);
        return Outcome::Error;
      }
    }
    const double scratch = c.params[numbers_ - 1];
    slot->scratch = scratch > 0 ? c.memory->allocate_device(saturated<size_t>(scratch, 0, kMaxScratch)) : 0;
    return Outcome::Ok;
  }

  void launch(Batch& batch) const override {
    if (!fault_.empty()) {
      const Address report = batch.report(static_cast<size_t>(batch.rows()) * sizeof(uint32_t));
      for (int64_t r = 0; r < batch.rows(); ++r)
        if (batch.active(r))
          reinterpret_cast<Slot*>(batch.slot(r))->fault = report + static_cast<uint64_t>(r) * sizeof(uint32_t);
    }
    for (const Pass& pass : passes_) launch_pass(batch, pass);
  }

  Verdict judge(const uint8_t* report, int64_t row, const uint8_t*, std::string* error) const override {
    uint32_t fault = 0;
    if (!fault_.empty()) std::memcpy(&fault, report + static_cast<size_t>(row) * sizeof fault, sizeof fault);
    if (fault == 0) return Verdict::Good;
    *error = fault_;
    return Verdict::Error;
  }

 private:
  int own_inputs() const { return inputs_ - (program_ ? program_->inputs() : 0); }
  // Offset of the program in a descriptor.
  size_t program_at() const {
    return sizeof(Slot) + static_cast<size_t>(ports_) * sizeof(Port) + static_cast<size_t>(numbers_) * sizeof(double);
  }
  uint64_t number(const Batch& batch, int64_t row, int which) const {
    const uint8_t* slot = batch.slots() + static_cast<size_t>(row) * slot_bytes();
    double x;
    std::memcpy(
        &x,
        slot + sizeof(Slot) + static_cast<size_t>(ports_) * sizeof(Port) + static_cast<size_t>(which) * sizeof(double),
        sizeof x);
    return static_cast<uint64_t>(x);
  }

  void launch_pass(Batch& batch, const Pass& pass) const {
    RowBlocks rows;
    uint64_t shared_bytes = 0;
    for (int64_t r = 0; r < batch.rows(); ++r) {
      const uint64_t blocks = batch.active(r) ? number(batch, r, pass.blocks) : 0;
      rows.add(static_cast<uint32_t>(r), blocks);
      if (blocks > 0 && pass.shared >= 0) shared_bytes = std::max(shared_bytes, number(batch, r, pass.shared));
    }
    Launch launch;
    launch.function = pass.function.get();
    launch.block[0] = pass.threads;
    launch.shared_bytes = static_cast<uint32_t>(shared_bytes);
    rows.launch(batch, launch.with({batch.device_slots(), slot_bytes()}));
  }

  std::vector<Pass> passes_;
  std::shared_ptr<const stoker::Kernel> like_;
  std::optional<InlinedProgram> program_;
  std::string fault_;  // error of the rows that the kernel fails; empty: it fails none
  int inputs_, outputs_, ports_, numbers_;
};

using PassTuple = std::tuple<std::shared_ptr<const Function>, uint32_t, uint32_t>;

std::vector<Pass> passes_of(std::vector<PassTuple> passes) {
  std::vector<Pass> all;
  for (auto& [function, threads, max_shared_bytes] : passes)
    all.push_back({std::move(function), threads, max_shared_bytes, 0});
  return all;
}

std::shared_ptr<Kernel> make_own_like(std::vector<PassTuple> passes, std::shared_ptr<stoker::Kernel> like, int inputs,
                                      int outputs, int numbers) {
  return std::make_shared<Own>(passes_of(std::move(passes)), std::move(like), inputs, outputs, numbers);
}
std::shared_ptr<Kernel> make_own_with_fault(std::vector<PassTuple> passes, std::shared_ptr<stoker::Kernel> like,
                                            int inputs, int outputs, int numbers, registry::Bytes fault) {
  return std::make_shared<Own>(passes_of(std::move(passes)), std::move(like), inputs, outputs, numbers, std::nullopt,
                               std::string(fault.data, fault.size));
}
std::shared_ptr<Kernel> make_own(std::vector<PassTuple> passes, int inputs, int outputs, int numbers) {
  return make_own_like(std::move(passes), nullptr, inputs, outputs, numbers);
}

std::shared_ptr<Kernel> make_own_with_program(std::vector<PassTuple> passes, std::shared_ptr<stoker::Kernel> like,
                                              int inputs, int outputs, int numbers, std::vector<int32_t> extents,
                                              std::vector<pixel::Instr> code, int channels,
                                              std::vector<DType> in_dtypes, std::vector<DType> out_dtypes,
                                              std::vector<int32_t> uniforms, std::vector<std::vector<ViewOp>> views,
                                              std::vector<std::vector<ViewOp>> out_views,
                                              std::vector<int32_t> coordinates,
                                              std::vector<std::pair<int32_t, int32_t>> reads) {
  StageSpec spec = stage_spec(Interpolator::None, {}, std::move(code), channels, in_dtypes, out_dtypes,
                              std::move(uniforms), std::move(views), std::move(out_views), std::move(coordinates));
  return std::make_shared<Own>(passes_of(std::move(passes)), std::move(like), inputs, outputs, numbers,
                               InlinedProgram(std::move(spec), std::move(extents), std::move(reads)));
}

constexpr const char *kPasses = "(function, threads of a block, the most shared bytes), launched one after the other",
                     *kCount = "how many", *kNumbers = "all of the step's, per row";
const RegisteredOnGpu kOwn{"own",
                           "An operator's own kernel. A step's last numbers are the blocks of each pass for a row, the "
                           "bytes of shared memory of passes that have some, then the bytes of device memory that a "
                           "row needs between passes.",
                           make_own,
                           {{"passes", kPasses}, {"inputs", kCount}, {"outputs", kCount}, {"numbers", kNumbers}}};
const RegisteredOnGpu kOwnLike{"own",
                               "An operator's own kernel, with the tensors of its CPU kernel.",
                               make_own_like,
                               {{"passes", kPasses},
                                {"like", "the CPU kernel, which checks the step and its rows"},
                                {"inputs", kCount},
                                {"outputs", kCount},
                                {"numbers", kNumbers}}};
const RegisteredOnGpu kOwnWithFault{"own_with_fault",
                                    "An operator's own kernel that may fail rows.",
                                    make_own_with_fault,
                                    {{"passes", kPasses},
                                     {"like", "the CPU kernel, which checks the step and its rows"},
                                     {"inputs", kCount},
                                     {"outputs", kCount},
                                     {"numbers", kNumbers},
                                     {"fault", "error of rows that fail"}}};
const RegisteredOnGpu kOwnWithProgram{"own_with_program",
                                      "An operator's own kernel, whose pixel program computes the last inputs of its "
                                      "CPU kernel.",
                                      make_own_with_program,
                                      {{"passes", kPasses},
                                       {"like", "the CPU kernel, which checks the step and its rows"},
                                       {"input_count", "of the step, the program's last"},
                                       {"output_count", "of the step"},
                                       {"numbers", "the kernel's, before those of the program"},
                                       {"extents", "parameters with the extents of the computed inputs"},
                                       STOKER_PROGRAM_PARAMETERS,
                                       {"reads", "(uniform, type) in the order of the generated code"}}};

}  // namespace

}  // namespace stoker::gpu
