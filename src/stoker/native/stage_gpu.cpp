// SPDX-License-Identifier: Apache-2.0
#include "stage_gpu.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "cuda/stage_slot.hpp"
#include "resample_weights.hpp"
#include "stage_views.hpp"
#include "warp.hpp"
#include "warp_point.hpp"

namespace stoker {

namespace {

using namespace stage;

uint64_t address_of(const View& v) { return reinterpret_cast<uintptr_t>(v.data); }

Source source_of(const View& v) {
  return {address_of(v), v.shape[0], v.shape[1], v.shape[2], v.stride[0], v.stride[1], v.stride[2]};
}

// A uniform's bits in the type that it is used in; the same as what the CPU splats.
uint64_t bits_of(double value, pixel::Type type) {
  const auto integer = [](double v) {
    return v >= 9223372036854775808.0 ? static_cast<int64_t>(static_cast<uint64_t>(v)) : static_cast<int64_t>(v);
  };
  uint64_t bits = 0;
  const auto put = [&](auto x) { std::memcpy(&bits, &x, sizeof x); };
  switch (type) {
    case pixel::Type::I32: put(static_cast<int32_t>(integer(value))); break;
    case pixel::Type::I64: put(integer(value)); break;
    case pixel::Type::F32: put(static_cast<float>(value)); break;
    case pixel::Type::F64: put(value); break;
  }
  return bits;
}

// Pieces of one block of device memory.
class Layout {
 public:
  size_t take(int64_t bytes) {
    const size_t at = used_;
    used_ += (static_cast<size_t>(bytes) + 255) & ~size_t{255};
    return at;
  }
  size_t used() const { return used_; }

 private:
  size_t used_ = 0;
};

// The blocks of one launch.
class WorkList {
 public:
  void add(int64_t row, int64_t lanes) { add_blocks(row, (lanes + kTileLanes - 1) / kTileLanes); }
  void add_tiles(int64_t row, int64_t width, int64_t height) {
    add_blocks(row, ((width + kTileWidth - 1) / kTileWidth) * ((height + kTileHeight - 1) / kTileHeight));
  }
  void add_blocks(int64_t row, int64_t tiles) {
    for (int64_t t = 0; t < tiles; ++t) work_.push_back({static_cast<uint32_t>(row), static_cast<uint32_t>(t)});
  }
  // Copies the list to where the device will find it.
  void upload(gpu::Batch& batch) {
    if (work_.empty()) return;
    std::memcpy(batch.upload(work_.size() * sizeof(Work), &at_), work_.data(), work_.size() * sizeof(Work));
  }
  void launch(gpu::Batch& batch, const gpu::Function* function, std::initializer_list<uint64_t> more,
              size_t slot_bytes) const {
    if (work_.empty()) return;
    gpu::Launch launch;
    launch.function = function;
    launch.grid[0] = static_cast<uint32_t>(work_.size());
    launch.block[0] = kThreads;
    launch.with({batch.device_slots(), slot_bytes, at_});
    for (const uint64_t argument : more) launch.argument[launch.arguments++] = argument;
    batch.launch(launch);
  }

 private:
  std::vector<Work> work_;
  gpu::Address at_ = 0;
};

class GpuStage : public gpu::Kernel {
 public:
  GpuStage(StageSpec spec, StageFunctions functions)
      : spec_(std::move(spec)), functions_(std::move(functions)), channels_(spec_.program) {
    for (const pixel::Instr& in : spec_.program.code) divides_ |= in.op >= pixel::Op::IDiv && in.op <= pixel::Op::UMod;
    copies_ = copies(spec_);
    sampler_bytes_ = spec_.sampler == Sampler::Resample ? sizeof(ResampleSlot)
                     : spec_.sampler == Sampler::Affine ? sizeof(AffineSlot) : 0;
    ports_ = static_cast<int>(spec_.inputs.size() + spec_.outputs.size());
    const auto need = [](const std::shared_ptr<const gpu::Function>& f) {
      if (!f) throw std::invalid_argument("a stage on a GPU lacks one of its kernels");
    };
    need(functions_.stage);
    if (spec_.sampler == Sampler::Resample) need(functions_.weights), need(functions_.between);
    if (spec_.sampler == Sampler::Affine) need(functions_.walk);
  }

  size_t slot_bytes() const override {
    const size_t bytes = sizeof(Slot) + sampler_bytes_ + static_cast<size_t>(ports_) * sizeof(Port) +
                         functions_.uniforms.size() * sizeof(uint64_t);
    return (bytes + 15) & ~size_t{15};
  }

  Outcome run(const Call& c) const override {
    Views views;
    if (!take_views(spec_, c, &views)) return Outcome::Error;
    auto* slot = reinterpret_cast<Slot*>(c.slot);
    slot->lanes = 0;
    if (views.out[0].elements() == 0) return Outcome::Ok;
    if (!describe(c, &views) || !check(c, views)) return Outcome::Error;
    auto* ports = reinterpret_cast<Port*>(c.slot + sizeof(Slot) + sampler_bytes_);
    if (spec_.sampler == Sampler::None) set_axes(views, slot, ports);
    else set_sampled_axes(views, slot, ports);
    auto* uniforms = reinterpret_cast<uint64_t*>(ports + ports_);
    for (const auto& [uniform, type] : functions_.uniforms)
      *uniforms++ = bits_of(c.params[spec_.uniforms[static_cast<size_t>(uniform)]], static_cast<pixel::Type>(type));
    return Outcome::Ok;
  }

  void launch(gpu::Batch& batch) const override {
    WorkList work, words;
    gpu::Address rooms = 0;
    const gpu::Address report = divides_ ? batch.report(static_cast<size_t>(batch.rows()) * sizeof(uint32_t)) : 0;
    if (spec_.sampler == Sampler::Resample) rooms = prepare_resample(batch);
    if (spec_.sampler == Sampler::Affine) rooms = prepare_affine(batch);
    for (int64_t r = 0; r < batch.rows(); ++r) {
      const Slot* slot = slot_of(batch, r);
      if (!slot) continue;
      const int64_t width = slot->extent[0], height = slot->extent[1];
      const bool resampled = spec_.sampler == Sampler::Resample && tile_rows(sampler_of<ResampleSlot>(slot)) > 0;
      if (spec_.sampler == Sampler::None) work.add(r, slot->lanes);
      else if (!resampled) work.add_tiles(r, width, height);
      else if (!direct(*slot)) words.add_tiles(r, width, height);
    }
    work.upload(batch);
    words.upload(batch);
    work.launch(batch, functions_.stage.get(), {rooms, report}, slot_bytes());
    words.launch(batch, functions_.words.get(), {rooms, report}, slot_bytes());
  }

  gpu::Verdict judge(const uint8_t* report, int64_t row, const uint8_t*, std::string* error) const override {
    uint32_t fault = 0;
    if (divides_) std::memcpy(&fault, report + static_cast<size_t>(row) * sizeof fault, sizeof fault);
    if (fault == 0) return gpu::Verdict::Good;
    *error = kDivided;
    return gpu::Verdict::Error;
  }

 private:
  // The row's description if there is something to do.
  const Slot* slot_of(const gpu::Batch& batch, int64_t row) const {
    if (!batch.active(row)) return nullptr;
    const auto* slot = reinterpret_cast<const Slot*>(batch.slots() + static_cast<size_t>(row) * slot_bytes());
    return slot->lanes > 0 ? slot : nullptr;
  }
  template <class S>
  static const S& sampler_of(const Slot* slot) { return *reinterpret_cast<const S*>(slot + 1); }

  // Takes the sampler's part and brings inputs to the output's shape. False: *c.error says why.
  bool describe(const Call& c, Views* v) const {
    if (spec_.sampler == Sampler::Resample && !describe_resample(c, v)) return false;
    if (spec_.sampler == Sampler::Affine && !describe_affine(c, v)) return false;
    return spread(spec_, v->out[0], spec_.sampler == Sampler::None ? 0 : 1, v->in, c.error);
  }

  bool describe_resample(const Call& c, Views* v) const {
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
    std::memcpy(c.slot + sizeof(Slot), &s, sizeof s);
    return true;
  }

  // The source positions that a filter reads at all; starts and ends are monotone.
  static void range(const resample::Window& w, int64_t* first, int64_t* end) {
    *first = w.in;
    *end = 0;
    for (const int64_t i : {int64_t{0}, w.out - 1}) {
      const resample::Taps taps = resample::taps_of(w, i);
      *first = std::min<int64_t>(*first, taps.start);
      *end = std::max<int64_t>(*end, taps.start + std::max(taps.count, 1));
    }
  }

  bool describe_affine(const Call& c, Views* v) const {
    double p[9];
    for (size_t i = 0; i < 9; ++i) p[i] = c.params[spec_.sampler_params[i]];
    View image = v->out[0];
    image.dtype = v->in[0].dtype;
    image.shape[2] = v->in[0].shape[2];
    if (v->in[0].elements() == 0 || !warp::can_sample(v->in[0], p, image)) {
      *c.error = kCannotWarp;
      return false;
    }
    AffineSlot s{};
    s.source = source_of(v->in[0]);
    std::copy_n(p, 6, s.matrix);
    s.height = image.shape[0];
    s.width = image.shape[1];
    const bool linear = p[6] != 0, has_fill = p[7] != 0;
    s.fill = has_fill ? in_type(p[8], v->in[0].dtype) : 0.0;
    s.clamp = !has_fill;
    s.walk = linear                       ? Walk::Linear
             : p[1] == 0 && p[3] == 0     ? Walk::Scale
             : warp::fits_fixed(p, s.width, s.height) ? Walk::Fixed : Walk::Steps;
    s.quick = linear && v->in[0].dtype == DType::U8 && s.source.row > 0 && near(s);
    std::memcpy(c.slot + sizeof(Slot), &s, sizeof s);
    return true;
  }

  // What outside is in the image's type.
  static double in_type(double fill, DType type) {
    switch (type) {
      case DType::U8: return warp::to_type<uint8_t>(fill);
      case DType::U16: return warp::to_type<uint16_t>(fill);
      case DType::I16: return warp::to_type<int16_t>(fill);
      case DType::I32: return warp::to_type<int32_t>(fill);
      default: return warp::to_type<float>(fill);
    }
  }

  // See AffineSlot::quick. Coordinates are largest at a corner.
  static bool near(const AffineSlot& s) {
    const Source& i = s.source;
    constexpr int64_t kCoordinate = 1 << 18, kOffset = int64_t{1} << 31;
    if (!packed_rgb(i) || i.width >= kCoordinate || i.height >= kCoordinate) return false;
    if (std::abs(i.row) >= kOffset / std::max<int64_t>(i.height, 1)) return false;
    const double* m = s.matrix;
    for (const double y : {0.0, static_cast<double>(s.height)})
      for (const double x : {0.0, static_cast<double>(s.width)}) {
        const double vx = m[0] * x + m[1] * y + m[2], vy = m[3] * x + m[4] * y + m[5];
        if (!(std::abs(vx) < kCoordinate && std::abs(vy) < kCoordinate)) return false;
      }
    return true;
  }
  static bool packed_rgb(const Source& i) { return i.channels == 3 && i.pixel == 3 && i.channel == 1; }

  // What the device would read or write beyond a tensor is refused here.
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

  const View& port(const Views& v, int p) const {
    const int inputs = static_cast<int>(spec_.inputs.size());
    return p < inputs ? v.in[p] : v.out[p - inputs];
  }

  // All axes but the channels', merged where they are one in all views.
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
    count = pixel::merge_axes(axes, count, ports_, static_cast<int>(spec_.inputs.size()));
    slot->axes = std::max(count, 1);
    for (int d = 0; d < slot->axes; ++d) slot->extent[d] = count ? axes[count - 1 - d].extent : 1;
    for (int p = 0; p < ports_; ++p) {
      const View& view = port(v, p);
      ports[p].data = address_of(view);
      ports[p].channel = channels ? view.stride[rank] : 0;
      for (int d = 0; d < slot->axes; ++d) ports[p].stride[d] = count ? axes[count - 1 - d].stride[p] : 0;
    }
  }

  // A sampled row is gone through by pixels; flat programs take a pixel's channels one by one.
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
  }

  static int64_t blocks_of(int64_t count, int64_t each) { return (count + each - 1) / each; }
  // Of an output's weights, wherever the first of them lies in its group.
  static int64_t groups_of(const resample::Window& w) { return blocks_of(w.max_taps + 3, 4); }

  // Whether 16 outputs read no more than the two blocks of 32 positions whose weights a warp keeps; the first may begin
  // three positions early, and the last end as late.
  static bool few_positions(const resample::Window& w) {
    return 15 * w.scale + static_cast<double>(w.max_taps) + 1 <= 64 - 6;
  }

  // Whether a tile's part of the source has room where the vertical pass is first.
  static bool fits_first(const ResampleSlot& s) {
    const auto most = [](const resample::Window& w, int outputs) {
      return static_cast<int32_t>((outputs - 1) * w.scale) + static_cast<int32_t>(w.max_taps) + 2 + 3;
    };
    return FirstLayout(most(s.vertical, kFirstRows), most(s.horizontal, kColumns)).bytes() <= kFirstBytes;
  }

  // The rows of a tile whose both passes one kernel makes: so many that their source's rows have room, in tiles of one
  // height. 0: this is no image for that kernel.
  int64_t tile_rows(const ResampleSlot& s) const {
    if (!functions_.tiles || !s.two_passes() || !packed_rgb(s.source)) return 0;
    if (s.source.width < kLeastWidth || !few_positions(s.vertical) || !few_positions(s.horizontal)) return 0;
    if (s.vertical_first) return fits_first(s) ? kFirstRows : 0;
    const int64_t lines = blocks_of(s.vertical.out, 16);
    for (int64_t tiles = blocks_of(lines, kThreads / 32); tiles <= lines; ++tiles) {
      const int64_t rows = 16 * blocks_of(lines, tiles);
      const double source = static_cast<double>(rows) * s.vertical.scale + static_cast<double>(s.vertical.max_taps);
      if (source <= kColumnRows - kRowsBeyond) return rows;
    }
    return 0;
  }

  // A resampled row is the stage's output as it is, and the kernel of both passes writes it there.
  bool direct(const Slot& slot) const {
    return copies_ && slot.extent[2] == 3 && tile_rows(sampler_of<ResampleSlot>(&slot)) > 0;
  }

  // The program stores what is sampled.
  static bool copies(const StageSpec& spec) {
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

  gpu::Address prepare_resample(gpu::Batch& batch) const {
    const bool fixed = spec_.program.input_dtype[0] == DType::U8;
    const int64_t weight = fixed ? 4 : 8;
    gpu::Address rooms = 0;
    auto* room = reinterpret_cast<ResampleRoom*>(
        batch.upload(static_cast<size_t>(batch.rows()) * sizeof(ResampleRoom), &rooms));
    WorkList weights, between, tiles, down;
    Layout memory;
    for (int64_t r = 0; r < batch.rows(); ++r) {
      room[r] = ResampleRoom{};
      const Slot* slot = slot_of(batch, r);
      if (!slot) continue;
      const auto& s = sampler_of<ResampleSlot>(slot);
      room[r].tile_rows = tile_rows(s);
      room[r].direct = direct(*slot);
      const bool grouped = room[r].tile_rows > 0;
      const int64_t bytes = grouped ? static_cast<int64_t>(sizeof(WeightGroup)) : weight;
      room[r].vertical_pitch = grouped ? groups_of(s.vertical) : s.vertical.max_taps;
      room[r].horizontal_pitch = grouped ? groups_of(s.horizontal) : s.horizontal.max_taps;
      const auto tables = [&](const resample::Window& w, int64_t pitch, uint64_t* taps, uint64_t* at) {
        *taps = memory.take(w.out * static_cast<int64_t>(sizeof(resample::Taps)));
        *at = memory.take(w.filter == resample::Filter::Nearest ? 0 : w.out * pitch * bytes);
      };
      tables(s.vertical, room[r].vertical_pitch, &room[r].vertical_taps, &room[r].vertical_weights);
      tables(s.horizontal, room[r].horizontal_pitch, &room[r].horizontal_taps, &room[r].horizontal_weights);
      weights.add(r, s.vertical.out + s.horizontal.out);
      if (!s.two_passes()) continue;
      if (grouped) {
        if (!room[r].direct) room[r].between = memory.take(s.vertical.out * s.resampled_pitch() * int64_t{4});
        (s.vertical_first ? down : tiles).add_blocks(r, blocks_of(s.vertical.out, room[r].tile_rows) * blocks_of(s.horizontal.out, kColumns));
        continue;
      }
      const int64_t pixels = s.between_height() * s.between_width();
      room[r].between = memory.take(pixels * s.between_pixel(size_of(spec_.program.input_dtype[0])));
      between.add_tiles(r, s.between_width(), s.between_height());
    }
    if (memory.used() == 0) return rooms;
    const gpu::Address base = batch.scratch(memory.used());
    for (int64_t r = 0; r < batch.rows(); ++r)
      for (uint64_t* at : {&room[r].vertical_taps, &room[r].vertical_weights, &room[r].horizontal_taps,
                           &room[r].horizontal_weights, &room[r].between})
        *at += base;
    weights.upload(batch);
    between.upload(batch);
    tiles.upload(batch);
    down.upload(batch);
    weights.launch(batch, functions_.weights.get(), {rooms}, slot_bytes());
    tiles.launch(batch, functions_.tiles.get(), {rooms}, slot_bytes());
    down.launch(batch, functions_.tiles_down.get(), {rooms}, slot_bytes());
    between.launch(batch, functions_.between.get(), {rooms}, slot_bytes());
    return rooms;
  }

  gpu::Address prepare_affine(gpu::Batch& batch) const {
    gpu::Address rooms = 0;
    auto* room = reinterpret_cast<AffineRoom*>(
        batch.upload(static_cast<size_t>(batch.rows()) * sizeof(AffineRoom), &rooms));
    WorkList walk;
    Layout memory;
    for (int64_t r = 0; r < batch.rows(); ++r) {
      room[r] = AffineRoom{};
      const Slot* slot = slot_of(batch, r);
      if (!slot) continue;
      const auto& s = sampler_of<AffineSlot>(slot);
      if (s.walk != Walk::Scale && s.walk != Walk::Steps) continue;
      const bool scale = s.walk == Walk::Scale;
      room[r].columns = memory.take((scale ? s.width : s.width * s.height) * int64_t{sizeof(int32_t)});
      room[r].rows = memory.take((scale ? s.height : s.width * s.height) * int64_t{sizeof(int32_t)});
      walk.add(r, scale ? 2 : s.height);
    }
    if (memory.used() == 0) return rooms;
    const gpu::Address base = batch.scratch(memory.used());
    for (int64_t r = 0; r < batch.rows(); ++r) room[r].columns += base, room[r].rows += base;
    walk.upload(batch);
    walk.launch(batch, functions_.walk.get(), {rooms}, slot_bytes());
    return rooms;
  }

  StageSpec spec_;
  StageFunctions functions_;
  stage::Channels channels_;
  bool divides_ = false, copies_ = false;
  size_t sampler_bytes_ = 0;
  int ports_ = 0;
};

}  // namespace

std::shared_ptr<gpu::Kernel> make_gpu_stage(StageSpec spec, StageFunctions functions) {
  return std::make_shared<GpuStage>(std::move(spec), std::move(functions));
}

}  // namespace stoker
