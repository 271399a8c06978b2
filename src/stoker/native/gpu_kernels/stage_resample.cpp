// SPDX-License-Identifier: Apache-2.0
#include "gpu_kernels/stage_resample.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "gpu_kernels/bump_allocator.hpp"
#include "gpu_kernels/stage_batch.hpp"
#include "resample/weights.hpp"

namespace stoker::stage {

namespace {

// Find the source positions that a filter reads; starts and ends are monotone.
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
// Groups of an output's weights, for any position of the first weight in its group.
int64_t groups_of(const resample::Window& w) { return blocks_of(w.max_taps + 3, 4); }

// Return whether 16 outputs read at most the two blocks of 32 positions whose weights a warp holds; the first may begin
// three positions early, and the last may end three positions late.
bool few_positions(const resample::Window& w) { return 15 * w.scale + static_cast<double>(w.max_taps) + 1 <= 64 - 6; }

// Return the number of outputs of a tile along its longer side: as many as have space for their source positions, in
// tiles of equal size. 0: none.
int64_t tile_outputs(const resample::Window& w) {
  const int64_t lines = blocks_of(w.out, 16);
  for (int64_t tiles = blocks_of(lines, kThreads / 32); tiles <= lines; ++tiles) {
    const int64_t outputs = 16 * blocks_of(lines, tiles);
    const double source = static_cast<double>(outputs) * w.scale + static_cast<double>(w.max_taps);
    if (source <= kTilePositions - kPositionsBeyond) return outputs;
  }
  return 0;
}

// Return whether the program only stores what is sampled.
bool copies(const StageSpec& spec) {
  const pixel::Program& program = spec.program;
  if (program.inputs != 1 || spec.outputs.size() != 1 || program.input_dtype[0] != program.output_dtype[0])
    return false;
  std::array<int, pixel::kMaxChannels> loaded;  // the register into which a channel was loaded
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
    // The CPU checks the operands' extents first, so this kernel does the same.
    if (spread(spec_, c.params, v->out[0], 1, v->in, c.error)) *c.error = kCannotResample;
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

// Decide whether to read planes. The tiles' kernels support some forms, without rotation or mirroring; for others the
// producer must provide pixels.
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
  s.source.data += request_pixels(image, *c.memory);
}

bool GpuResampling::in_tiles(const ResampleSlot& s) const {
  if (!functions_.tiles || !s.two_passes() || !packed_rgb(s.source)) return false;
  if (std::abs(s.source.row) > INT32_MAX) return false;  // kernels use 32 bits for the distance between rows
  if (s.source.width < kLeastWidth || !few_positions(s.vertical) || !few_positions(s.horizontal)) return false;
  return tile_outputs(s.vertical_first ? s.horizontal : s.vertical) > 0;
}

bool GpuResampling::direct(const Slot& slot) const {
  return copies_ && slot.extent[2] == 3 && in_tiles(interpolator_of<ResampleSlot>(&slot));
}

gpu::Address GpuResampling::prepare(gpu::Batch& batch, size_t slot_bytes) const {
  const bool fixed = spec_.program.input_dtype[0] == DType::U8;
  const int64_t weight = fixed ? 4 : 8;
  gpu::Address scratches = 0;
  auto* scratch = reinterpret_cast<ResampleScratch*>(
      batch.upload(static_cast<size_t>(batch.rows()) * sizeof(ResampleScratch), &scratches));
  // The output itself is the image that both passes write as words.
  const auto in_place = [&](const Slot* slot) { return slot && slot->words && direct(*slot); };
  gpu::RowBlocks weights, between, tiles, down, planar_tiles, planar_down;
  gpu::BumpAllocator memory;
  for (int64_t r = 0; r < batch.rows(); ++r) {
    scratch[r] = ResampleScratch{};
    const Slot* slot = slot_of(batch, r, slot_bytes);
    if (!slot) continue;
    const auto& s = interpolator_of<ResampleSlot>(slot);
    const bool grouped = in_tiles(s);
    if (grouped) {
      scratch[r].tile_rows = s.vertical_first ? kTileLines : tile_outputs(s.vertical);
      scratch[r].tile_columns = s.vertical_first ? tile_outputs(s.horizontal) : kTileLines;
    }
    scratch[r].direct = direct(*slot) && !in_place(slot);
    const int64_t bytes = grouped ? static_cast<int64_t>(sizeof(WeightGroup)) : weight;
    scratch[r].vertical_pitch = grouped ? groups_of(s.vertical) : s.vertical.max_taps;
    scratch[r].horizontal_pitch = grouped ? groups_of(s.horizontal) : s.horizontal.max_taps;
    const auto tables = [&](const resample::Window& w, int64_t pitch, uint64_t* taps, uint64_t* at) {
      *taps = memory.allocate(static_cast<size_t>(w.out) * sizeof(resample::Taps));
      *at = memory.allocate(w.filter == resample::Filter::Nearest ? 0 : static_cast<size_t>(w.out * pitch * bytes));
    };
    tables(s.vertical, scratch[r].vertical_pitch, &scratch[r].vertical_taps, &scratch[r].vertical_weights);
    tables(s.horizontal, scratch[r].horizontal_pitch, &scratch[r].horizontal_taps, &scratch[r].horizontal_weights);
    const auto row = static_cast<uint32_t>(r);
    weights.add(row, thread_blocks(s.vertical.out + s.horizontal.out));
    if (!s.two_passes()) continue;
    if (grouped) {
      if (in_place(slot)) scratch[r].between = reinterpret_cast<const Port*>(&s + 1)[1].data;
      else if (!scratch[r].direct)
        scratch[r].between = memory.allocate(static_cast<size_t>(s.vertical.out * s.resampled_pitch()) * 4);
      gpu::RowBlocks& both = s.planar()         ? (s.vertical_first ? planar_down : planar_tiles)
                             : s.vertical_first ? down
                                                : tiles;
      both.add(row, gpu::blocks_for(s.vertical.out, scratch[r].tile_rows) *
                        gpu::blocks_for(s.horizontal.out, scratch[r].tile_columns));
      continue;
    }
    const int64_t pixels = s.between_height() * s.between_width();
    scratch[r].between =
        memory.allocate(static_cast<size_t>(pixels * s.between_pixel(size_of(spec_.program.input_dtype[0]))));
    between.add(row, tile_blocks(s.between_width(), s.between_height()));
  }
  if (memory.used() == 0) return scratches;
  const gpu::Address base = batch.scratch(memory.used());
  for (int64_t r = 0; r < batch.rows(); ++r) {
    for (uint64_t* at : {&scratch[r].vertical_taps, &scratch[r].vertical_weights, &scratch[r].horizontal_taps,
                         &scratch[r].horizontal_weights})
      *at += base;
    if (!in_place(slot_of(batch, r, slot_bytes))) scratch[r].between += base;
  }
  launch(batch, weights, functions_.weights.get(), slot_bytes, {scratches});
  launch(batch, tiles, functions_.tiles.get(), slot_bytes, {scratches});
  launch(batch, planar_tiles, functions_.planar_tiles.get(), slot_bytes, {scratches});
  launch(batch, down, functions_.tiles_down.get(), slot_bytes, {scratches});
  launch(batch, planar_down, functions_.planar_down.get(), slot_bytes, {scratches});
  launch(batch, between, functions_.between.get(), slot_bytes, {scratches});
  return scratches;
}

}  // namespace stoker::stage
