// SPDX-License-Identifier: Apache-2.0
#include "stage_gpu_resample.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "resample_weights.hpp"
#include "stage_batch.hpp"

namespace stoker::stage {

namespace {

// The source positions that a filter reads at all; starts and ends are monotone.
void range(const resample::Window& w, int64_t* first, int64_t* end) {
  *first = w.in;
  *end = 0;
  for (const int64_t i : {int64_t{0}, w.out - 1}) {
    const resample::Taps taps = resample::taps_of(w, i);
    *first = std::min<int64_t>(*first, taps.start);
    *end = std::max<int64_t>(*end, taps.start + std::max(taps.count, 1));
  }
}

int64_t blocks_of(int64_t count, int64_t each) { return (count + each - 1) / each; }
// Of an output's weights, wherever the first of them lies in its group.
int64_t groups_of(const resample::Window& w) { return blocks_of(w.max_taps + 3, 4); }

// Whether 16 outputs read no more than the two blocks of 32 positions whose weights a warp keeps; the first may begin
// three positions early, and the last end as late.
bool few_positions(const resample::Window& w) {
  return 15 * w.scale + static_cast<double>(w.max_taps) + 1 <= 64 - 6;
}

// The outputs of a tile along its longer side: so many that their source's positions have room, in tiles of one size. 0: none.
int64_t tile_outputs(const resample::Window& w) {
  const int64_t lines = blocks_of(w.out, 16);
  for (int64_t tiles = blocks_of(lines, kThreads / 32); tiles <= lines; ++tiles) {
    const int64_t outputs = 16 * blocks_of(lines, tiles);
    const double source = static_cast<double>(outputs) * w.scale + static_cast<double>(w.max_taps);
    if (source <= kTilePositions - kPositionsBeyond) return outputs;
  }
  return 0;
}

// The program stores what is sampled.
bool copies(const StageSpec& spec) {
  const pixel::Program& program = spec.program;
  if (spec.inputs.size() != 1 || spec.outputs.size() != 1 || program.input_dtype[0] != program.output_dtype[0])
    return false;
  std::array<int, pixel::kMaxChannels> loaded;  // the register that a channel was loaded into
  loaded.fill(-1);
  for (const pixel::Instr& in : program.code) {
    if (in.op == pixel::Op::Load) loaded[in.channel] = in.dst;
    else if (in.op != pixel::Op::Store || (in.uniform & pixel::kUniformA) || loaded[in.channel] != in.a) return false;
  }
  return true;
}

}  // namespace

GpuResampling::GpuResampling(const StageSpec& spec, const StageFunctions& functions)
    : spec_(spec), functions_(functions), copies_(copies(spec)) {}

bool GpuResampling::describe(const Call& c, Views* v) const {
  ResampleSlot s{};
  resample::Axis vertical, horizontal;
  if (!resample_axes(spec_, c.params, v->in[0], v->out[0], &vertical, &horizontal, c.error)) return false;
  resample::Passes passes;
  if (!resample::make_passes(v->in[0], vertical, horizontal, resample::Order::Pillow, passes)) {
    // The CPU looks at the operands' extents first.
    if (spread(spec_, v->out[0], 1, v->in, c.error)) *c.error = kCannotResample;
    return false;
  }
  s.source = source_of(v->in[0]);
  s.vertical = passes.vertical;
  s.horizontal = passes.horizontal;
  s.vertical_first = passes.vertical_first;
  if (s.two_passes()) {
    range(s.vertical, &s.first_row, &s.end_row);
    range(s.horizontal, &s.first_column, &s.end_column);
  }
  if (v->in[0].planes) take_planes(c, *v->in[0].planes, s);
  std::memcpy(c.slot + sizeof(Slot), &s, sizeof s);
  return true;
}

// The tiles' kernels read planes of some forms, whose windows are neither turned nor mirrored; for others there are pixels.
void GpuResampling::take_planes(const Call& c, planar::Image& image, ResampleSlot& s) const {
  const int64_t pitch = int64_t{3} * image.width;
  const bool upright = s.source.row == pitch && functions_.planar_tiles && in_tiles(s);
  if (upright && image.form != planar::Form::Other) {
    const auto at = static_cast<int64_t>(s.source.data - image.at);
    s.image = image;
    s.top = static_cast<int32_t>(at / pitch);
    s.left = static_cast<int32_t>(at % pitch / 3);
    return;
  }
  s.source.data += pixels_behind(image, *c.memory);
}

bool GpuResampling::in_tiles(const ResampleSlot& s) const {
  if (!functions_.tiles || !s.two_passes() || !packed_rgb(s.source)) return false;
  if (std::abs(s.source.row) > INT32_MAX) return false;  // kernels step from row to row by 32 bits
  if (s.source.width < kLeastWidth || !few_positions(s.vertical) || !few_positions(s.horizontal)) return false;
  return tile_outputs(s.vertical_first ? s.horizontal : s.vertical) > 0;
}

bool GpuResampling::direct(const Slot& slot) const {
  return copies_ && slot.extent[2] == 3 && in_tiles(sampler_of<ResampleSlot>(&slot));
}

gpu::Address GpuResampling::prepare(gpu::Batch& batch, size_t slot_bytes) const {
  const bool fixed = spec_.program.input_dtype[0] == DType::U8;
  const int64_t weight = fixed ? 4 : 8;
  gpu::Address rooms = 0;
  auto* room = reinterpret_cast<ResampleRoom*>(
      batch.upload(static_cast<size_t>(batch.rows()) * sizeof(ResampleRoom), &rooms));
  // The image that both passes make in words is the output itself.
  const auto in_place = [&](const Slot* slot) { return slot && slot->words && direct(*slot); };
  WorkList weights, between, tiles, down, planar_tiles, planar_down;
  Layout memory;
  for (int64_t r = 0; r < batch.rows(); ++r) {
    room[r] = ResampleRoom{};
    const Slot* slot = slot_of(batch, r, slot_bytes);
    if (!slot) continue;
    const auto& s = sampler_of<ResampleSlot>(slot);
    const bool grouped = in_tiles(s);
    if (grouped) {
      room[r].tile_rows = s.vertical_first ? kTileLines : tile_outputs(s.vertical);
      room[r].tile_columns = s.vertical_first ? tile_outputs(s.horizontal) : kTileLines;
    }
    room[r].direct = direct(*slot) && !in_place(slot);
    const int64_t bytes = grouped ? static_cast<int64_t>(sizeof(WeightGroup)) : weight;
    room[r].vertical_pitch = grouped ? groups_of(s.vertical) : s.vertical.max_taps;
    room[r].horizontal_pitch = grouped ? groups_of(s.horizontal) : s.horizontal.max_taps;
    const auto tables = [&](const resample::Window& w, int64_t pitch, uint64_t* taps, uint64_t* at) {
      *taps = memory.take(w.out * static_cast<int64_t>(sizeof(resample::Taps)));
      *at = memory.take(w.filter == resample::Filter::Nearest ? 0 : w.out * pitch * bytes);
    };
    tables(s.vertical, room[r].vertical_pitch, &room[r].vertical_taps, &room[r].vertical_weights);
    tables(s.horizontal, room[r].horizontal_pitch, &room[r].horizontal_taps, &room[r].horizontal_weights);
    weights.add_threads(r, s.vertical.out + s.horizontal.out);
    if (!s.two_passes()) continue;
    if (grouped) {
      if (in_place(slot)) room[r].between = reinterpret_cast<const Port*>(&s + 1)[1].data;
      else if (!room[r].direct) room[r].between = memory.take(s.vertical.out * s.resampled_pitch() * int64_t{4});
      WorkList& list = s.planar() ? (s.vertical_first ? planar_down : planar_tiles) : s.vertical_first ? down : tiles;
      list.add_blocks(r, blocks_of(s.vertical.out, room[r].tile_rows) * blocks_of(s.horizontal.out, room[r].tile_columns));
      continue;
    }
    const int64_t pixels = s.between_height() * s.between_width();
    room[r].between = memory.take(pixels * s.between_pixel(size_of(spec_.program.input_dtype[0])));
    between.add_tiles(r, s.between_width(), s.between_height());
  }
  if (memory.used() == 0) return rooms;
  const gpu::Address base = batch.scratch(memory.used());
  for (int64_t r = 0; r < batch.rows(); ++r) {
    for (uint64_t* at : {&room[r].vertical_taps, &room[r].vertical_weights, &room[r].horizontal_taps,
                         &room[r].horizontal_weights})
      *at += base;
    if (!in_place(slot_of(batch, r, slot_bytes))) room[r].between += base;
  }
  for (WorkList* list : {&weights, &between, &tiles, &down, &planar_tiles, &planar_down}) list->upload(batch);
  weights.launch(batch, functions_.weights.get(), {rooms}, slot_bytes);
  tiles.launch(batch, functions_.tiles.get(), {rooms}, slot_bytes);
  planar_tiles.launch(batch, functions_.planar_tiles.get(), {rooms}, slot_bytes);
  down.launch(batch, functions_.tiles_down.get(), {rooms}, slot_bytes);
  planar_down.launch(batch, functions_.planar_down.get(), {rooms}, slot_bytes);
  between.launch(batch, functions_.between.get(), {rooms}, slot_bytes);
  return rooms;
}

}  // namespace stoker::stage
