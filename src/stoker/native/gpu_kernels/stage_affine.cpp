// SPDX-License-Identifier: Apache-2.0
#include "gpu_kernels/stage_affine.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "gpu_kernels/bump_allocator.hpp"
#include "gpu_kernels/stage_batch.hpp"
#include "shared/warp_point.hpp"
#include "warp/warp.hpp"

namespace stoker::stage {

namespace {

// Convert the fill value to the image's type.
double in_type(double fill, DType type) {
  switch (type) {
    case DType::U8: return warp::to_type<uint8_t>(fill);
    case DType::U16: return warp::to_type<uint16_t>(fill);
    case DType::I16: return warp::to_type<int16_t>(fill);
    case DType::I32: return warp::to_type<int32_t>(fill);
    default: return warp::to_type<float>(fill);
  }
}

// Pixels may be read as words: the last byte may belong to other data, but is on the same page.
bool word_rgb(const Source& i) {
  return i.channels == 3 && i.pixel == 4 && i.channel == 1 && (i.data | static_cast<uint64_t>(i.row)) % 4 == 0;
}

// See AffineSlot::quick. Coordinates are largest at a corner.
bool near(const AffineSlot& s) {
  const Source& i = s.source;
  constexpr int64_t kCoordinate = 1 << 18, kOffset = int64_t{1} << 31;
  if (i.width < 2 || i.height < 2 || i.width >= kCoordinate || i.height >= kCoordinate) return false;
  if (s.width >= kCoordinate || s.height >= kCoordinate) return false;
  if (std::abs(i.row) >= kOffset / std::max<int64_t>(i.height, 1)) return false;
  const double* m = s.matrix;
  for (const double y : {0.0, static_cast<double>(s.height)})
    for (const double x : {0.0, static_cast<double>(s.width)}) {
      const double vx = m[0] * x + m[1] * y + m[2], vy = m[3] * x + m[4] * y + m[5];
      if (!(std::abs(vx) < kCoordinate && std::abs(vy) < kCoordinate)) return false;
    }
  return true;
}

// Whether a port's lines have no gaps. Its strides are those of an image of at least one pixel.
bool has_packed_lines(int64_t pixel, int64_t channel, int64_t channels, int64_t size) {
  return pixel == channels * size && (channels == 1 || channel == size);
}

// Return four bytes of elements of a value that the type holds.
uint32_t four_bytes(double value, DType type) {
  uint32_t bits = 0;
  const auto put = [&](auto x) {
    for (size_t i = 0; i < sizeof bits; i += sizeof x) std::memcpy(reinterpret_cast<uint8_t*>(&bits) + i, &x, sizeof x);
  };
  switch (type) {
    case DType::U8: put(static_cast<uint8_t>(value)); break;
    case DType::U16: put(static_cast<uint16_t>(value)); break;
    case DType::I16: put(static_cast<int16_t>(value)); break;
    case DType::I32: put(static_cast<int32_t>(value)); break;
    default: put(static_cast<float>(value));
  }
  return bits;
}

}  // namespace

bool GpuAffine::describe(const Call& c, const Views& v) const {
  double p[9];
  for (size_t i = 0; i < 9; ++i) p[i] = c.params[spec_.interpolator_params[i]];
  View image = v.out[0];
  image.dtype = v.in[0].dtype;
  image.shape[2] = v.in[0].shape[2];
  if (!warp::can_sample(v.in[0], p, image)) {
    *c.error = kCannotWarp;
    return false;
  }
  AffineSlot s{};
  s.source = source_of(v.in[0]);
  std::copy_n(p, 6, s.matrix);
  s.height = image.shape[0];
  s.width = image.shape[1];
  const bool linear = p[6] != 0, has_fill = p[7] != 0;
  s.fill = has_fill ? in_type(p[8], v.in[0].dtype) : 0.0;
  const bool empty = v.in[0].elements() == 0;  // every point is outside
  s.clamp = !has_fill && !empty;
  s.walk = linear                                   ? Walk::Linear
           : p[1] == 0 && p[3] == 0                 ? Walk::Scale
           : warp::fits_fixed(p, s.width, s.height) ? Walk::Fixed
                                                    : Walk::Steps;
  const bool rgb = v.in[0].dtype == DType::U8 && (packed_rgb(s.source) || word_rgb(s.source));
  s.quick = s.walk != Walk::Steps && rgb && !empty && s.source.row > 0 && near(s) ? s.source.pixel : 0;
  std::memcpy(c.slot + sizeof(Slot), &s, sizeof s);
  return true;
}

void GpuAffine::find_shift(Slot* slot, const Port* ports) const {
  auto& s = *reinterpret_cast<AffineSlot*>(slot + 1);
  const Source& i = s.source;
  const double* m = s.matrix;
  constexpr int64_t kMost = 1 << 30;  // bytes of a line; chunks of a row
  const auto is_whole = [](double v) { return std::abs(v) < kMost && v == std::floor(v); };
  if (s.walk != Walk::Scale || s.clamp || m[0] != 1 || m[4] != 1 || !is_whole(m[2]) || !is_whole(m[5])) return;
  const Port& out = ports[1];
  const int64_t size = size_of(spec_.program.input_dtype[0]), channels = slot->extent[2], pixel = channels * size;
  if (i.width < 1 || i.height < 1 || channels != i.channels) return;
  if (!has_packed_lines(i.pixel, i.channel, channels, size)) return;
  if (!has_packed_lines(out.stride[0], out.channel, channels, size)) return;
  if (std::max(i.width, s.width) > kMost / pixel || i.height > kMost) return;
  if (shift_chunks(s.width * pixel) > static_cast<uint32_t>(kMost / s.height)) return;
  const auto left = static_cast<int64_t>(m[2]), limit = 2 * kMost / pixel;
  if (std::abs(left) > limit) return;
  s.shift = {s.width * pixel, i.width * pixel, left * pixel, static_cast<int64_t>(m[5]),
             four_bytes(s.fill, spec_.program.input_dtype[0])};
}

gpu::Address GpuAffine::prepare(gpu::Batch& batch, size_t slot_bytes) const {
  gpu::Address scratches = 0;
  auto* scratch = reinterpret_cast<AffineScratch*>(
      batch.upload(static_cast<size_t>(batch.rows()) * sizeof(AffineScratch), &scratches));
  gpu::RowBlocks walk;
  gpu::BumpAllocator memory;
  for (int64_t r = 0; r < batch.rows(); ++r) {
    scratch[r] = AffineScratch{};
    const Slot* slot = slot_of(batch, r, slot_bytes);
    if (!slot) continue;
    const auto& s = interpolator_of<AffineSlot>(slot);
    if ((s.walk != Walk::Scale && s.walk != Walk::Steps) || s.shift.line) continue;
    const bool scale = s.walk == Walk::Scale;
    scratch[r].columns = memory.allocate(static_cast<size_t>(scale ? s.width : s.width * s.height) * sizeof(int32_t));
    scratch[r].rows = memory.allocate(static_cast<size_t>(scale ? s.height : s.width * s.height) * sizeof(int32_t));
    walk.add(static_cast<uint32_t>(r), thread_blocks(scale ? 2 : s.height));
  }
  if (memory.used() == 0) return scratches;
  const gpu::Address base = batch.scratch(memory.used());
  for (int64_t r = 0; r < batch.rows(); ++r) scratch[r].columns += base, scratch[r].rows += base;
  launch(batch, walk, functions_.walk.get(), slot_bytes, {scratches});
  return scratches;
}

}  // namespace stoker::stage
