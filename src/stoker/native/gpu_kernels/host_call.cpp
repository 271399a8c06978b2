// SPDX-License-Identifier: Apache-2.0
// Kernel whose work on a GPU is issued by code outside of the engine, at its place among the batch's launches.
#include "gpu/host_call.hpp"

#include <cstring>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "gpu/gpu.hpp"
#include "kernels/registry.hpp"

namespace stoker {

template <>
inline constexpr const char* registry::kPythonClass<gpu::HostCall> = "HostCall";

namespace gpu {

namespace {

static_assert(std::is_trivially_copyable_v<View>);  // descriptors have copies

class CalledOnHost : public Kernel {
 public:
  CalledOnHost(std::shared_ptr<const HostCall> call, int inputs, int outputs)
      : call_(std::move(call)), inputs_(inputs), outputs_(outputs) {
    const auto fits = [](int n) { return n >= 0 && n <= kMaxStepInputs; };
    if (!fits(inputs) || !fits(outputs)) throw std::invalid_argument("expected at most 64 inputs and outputs");
  }

  Ports ports() const override {
    Ports ports{.kernel = "host_call"};
    ports.in.resize(static_cast<size_t>(inputs_));
    ports.out.resize(static_cast<size_t>(outputs_));
    return ports;
  }
  size_t slot_bytes() const override {
    return (static_cast<size_t>(inputs_ + outputs_) * sizeof(View) + 15) & ~size_t{15};
  }

  Outcome run(const Call& c) const override {
    uint8_t* slot = c.slot;
    const auto describe = [&](const View& v) {
      std::memcpy(slot, &v, sizeof v);
      slot += sizeof v;
    };
    for (int o = 0; o < outputs_; ++o) describe(*c.out[o]);
    for (int i = 0; i < inputs_; ++i) {
      if (!c.in[i]->contiguous()) {
        *c.error = "expected contiguous inputs on a GPU; `fn.copy` makes them so";
        return Outcome::Error;
      }
      describe(*c.in[i]);
    }
    return Outcome::Ok;
  }

  void launch(Batch& batch) const override {
    std::vector<HostCall::Row> rows;
    for (int64_t r = 0; r < batch.rows(); ++r) {
      if (!batch.active(r)) continue;
      const uint8_t* slot = batch.slots() + static_cast<size_t>(r) * slot_bytes();
      const auto described = [&](int count) {
        std::vector<View> views(static_cast<size_t>(count));
        for (View& v : views) {
          std::memcpy(&v, slot, sizeof v);
          slot += sizeof v;
        }
        return views;
      };
      HostCall::Row& row = rows.emplace_back();
      row.outputs = described(outputs_);
      row.inputs = described(inputs_);
    }
    batch.call([call = call_.get(), rows = std::move(rows)](Fork& fork) {  // the plan, which owns the call, is alive
      call->issue(fork.stream(), rows);
      return fork.stream();
    });
  }

 private:
  const std::shared_ptr<const HostCall> call_;
  const int inputs_, outputs_;
};

std::shared_ptr<Kernel> make_host_call(std::shared_ptr<HostCall> call, int inputs, int outputs) {
  return std::make_shared<CalledOnHost>(std::move(call), inputs, outputs);
}

const RegisteredOnGpu kHostCall{"host_call",
                                "A step whose work is issued by a function, for the whole batch.",
                                make_host_call,
                                {{"call", "the function"}, {"inputs", "how many"}, {"outputs", "how many"}}};

}  // namespace

}  // namespace gpu

}  // namespace stoker
