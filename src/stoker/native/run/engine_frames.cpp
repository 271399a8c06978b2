// SPDX-License-Identifier: Apache-2.0
// Steps that run frame by frame: marked inputs and all outputs are sliced along their first axis. The parameters are
// computed for each frame, since an argument may differ from frame to frame. Random draws are shared by all frames.
#include <algorithm>

#include "run/engine.hpp"

namespace stoker {

namespace {

View frame_of(const View& whole, int64_t f) {
  View v = whole;
  v.rank = whole.rank - 1;
  v.data = whole.data + f * whole.stride[0];
  std::copy(whole.shape + 1, whole.shape + whole.rank, v.shape);
  std::copy(whole.stride + 1, whole.stride + whole.rank, v.stride);
  return v;
}

}  // namespace

Outcome Engine::run_frames(const Call& video, int32_t index, int64_t frames, RowContext* context) const {
  const Step& step = plan_->steps[index];
  View frame_in[64], frame_host_in[64], frame_out[kMaxStepOutputs];
  const View* in[64];
  View *host_in[64], *out[kMaxStepOutputs];
  Call call = video;
  call.in = in;
  call.host_in = video.host_in ? host_in : nullptr;
  call.out = out;
  uint8_t* slots = nullptr;
  if (step.on_device) slots = video.job.on_device->frame_slots(index, video.row, frames);
  const auto has_frames = [frames](const View& v) { return v.shape[0] >= frames; };
  bool there = true;
  for (size_t i = 0; i < step.in.size(); ++i) there &= step.framed_in[i] == 0 || has_frames(*video.in[i]);
  for (size_t o = 0; o < step.out.size(); ++o) there &= has_frames(*video.out[o]);
  if (!there) {
    *call.error = "expected " + std::to_string(frames) + " frames in all inputs and outputs, got fewer";
    return Outcome::Error;
  }
  for (int64_t f = 0; f < frames; ++f) {
    if (evaluate(step.scalars, video.job.row(video.row), f, context->registers.data()) >= 0) {
      *call.error = "a per-frame argument has fewer elements than there are frames";
      return Outcome::Error;
    }
    for (size_t i = 0; i < step.params.size(); ++i) context->params[i] = context->registers[step.params[i]];
    const auto take = [&](auto* whole, bool framed, View* own) {
      return framed ? &(*own = frame_of(*whole, f)) : whole;
    };
    for (size_t i = 0; i < step.in.size(); ++i) {
      in[i] = take(video.in[i], step.framed_in[i] != 0, &frame_in[i]);
      if (video.host_in) host_in[i] = take(video.host_in[i], step.framed_in[i] != 0, &frame_host_in[i]);
    }
    for (size_t o = 0; o < step.out.size(); ++o) out[o] = &(frame_out[o] = frame_of(*video.out[o], f));
    if (slots) call.slot = slots + video.job.on_device->slot_bytes(index) * static_cast<size_t>(f);
    const Outcome outcome = run_kernel(step, call);
    if (outcome != Outcome::Ok) return outcome;
  }
  return Outcome::Ok;
}

}  // namespace stoker
