// SPDX-License-Identifier: Apache-2.0
// Preparation of interpolators before a stage runs: the taps and weights of every row's axes, the image between two
// passes, and the source positions of affine interpolators that take the nearest pixel.
#pragma once
#include "device/stage_sample.cuh"
#include "device/stage_warp.cuh"
#include "shared/device.cuh"
#include "shared/stage_slot.hpp"

namespace stoker::stage {

// Lane of a thread.
struct ThreadWork {
  const uint8_t* slot;
  int64_t row, lane;  // the row of the thread, and its lane
};

// A block computes kThreads lanes: a lane takes long.
inline ThreadWork thread_work(uint64_t slots, uint64_t slot_bytes, const gpu::RowBlock& work) {
  return {reinterpret_cast<const uint8_t*>(slots) + work.row * slot_bytes, work.row,
          int64_t{work.number} * kThreads + gpu::thread_index()};
}

inline int32_t weight_as(double w, const int32_t*) { return resample::to_fixed(w); }
inline double weight_as(double w, const double*) { return w; }

// Destination of an output's weights: one after the other or, in fixed point, in groups of four.
template <class Weight>
class Weights {
 public:
  Weights(uint64_t at, bool grouped, int32_t start) : at_(at), grouped_(grouped), position_(start) {}

  // Append a weight; `last` is set for the last one.
  void put(double w, bool last) {
    const Weight weight = weight_as(w, static_cast<const Weight*>(nullptr));
    if constexpr (std::is_same_v<Weight, int32_t>) {
      if (grouped_) return group(static_cast<uint32_t>(weight), last);
    }
    *reinterpret_cast<Weight*>(at_) = weight;
    at_ += sizeof(Weight);
  }

 private:
  void group(uint32_t weight, bool last) {
    const uint32_t shift = 8 * (static_cast<uint32_t>(position_) % 4);
    group_.low |= (weight & 0xFF) << shift;
    group_.middle |= (weight >> 8 & 0xFF) << shift;
    group_.high |= (weight >> 16 & 0xFF) << shift;
    if (++position_ % 4 != 0 && !last) return;
    *reinterpret_cast<WeightGroup*>(at_) = group_;
    at_ += sizeof(WeightGroup);
    group_ = {};
  }

  uint64_t at_;
  bool grouped_;
  int32_t position_;
  WeightGroup group_{};
};

inline double filter_at(resample::Filter filter, double x) {
  using resample::Filter;
  switch (filter) {
    case Filter::Linear:
    case Filter::Triangular: return resample::filters::Linear::at(x);
    case Filter::Cubic: return resample::filters::Cubic::at(x);
    case Filter::Lanczos3: return resample::filters::Lanczos3::at(x);
    case Filter::Gaussian: return resample::filters::Gaussian::at(x);
    case Filter::Box: return resample::filters::Box::at(x);
    default: return resample::filters::Hamming::at(x);
  }
}

// Version of weigh() without memory for doubles: every weight is computed twice, by the same loop, so that the filters
// are compiled only once.
template <class Weight>
inline void store_weights(const resample::Window& w, int64_t i, resample::Taps taps, Weights<Weight> out) {
  const double inverse = 1.0 / w.stretch, center = resample::center_of(w, i);
  double sum = 0.0;
#pragma unroll 1
  for (int32_t k = 0; k < 2 * taps.count; ++k) {
    const int32_t t = k < taps.count ? k : k - taps.count;
    const double weight = filter_at(w.filter, (static_cast<double>(t + taps.start) - center + 0.5) * inverse);
    if (k < taps.count) sum += weight;
    else out.put(sum != 0.0 ? weight / sum : weight, t + 1 == taps.count);
  }
}

template <class Weight>
inline void find_output(const resample::Window& w, int64_t i, uint64_t taps_at, uint64_t weights_at, int64_t pitch,
                        bool grouped) {
  using resample::Filter;
  auto* taps = reinterpret_cast<resample::Taps*>(taps_at);
  const auto place = [&](int64_t k) { return w.mirrored ? w.out - 1 - k : k; };
  if (w.filter == Filter::Nearest) {
    if (w.integral) {
      // Exact, so the result equals an accumulated sum.
      taps[place(i)] = resample::pick_at(w, w.lo + 0.5 + static_cast<double>(i));
    } else if (i == 0) {
      double at = w.lo + w.scale * 0.5;
      for (int64_t k = 0; k < w.out; ++k, at += w.scale) taps[place(k)] = resample::pick_at(w, at);
    }
    return;
  }
  const resample::Taps found = resample::taps_of(w, i);
  taps[place(i)] = found;
  const int64_t bytes = grouped ? sizeof(WeightGroup) : sizeof(Weight);
  store_weights<Weight>(w, i, found,
                        {weights_at + static_cast<uint64_t>(place(i) * pitch * bytes), grouped, found.start});
}

// Lanes are the outputs of the vertical axis, then those of the horizontal axis.
template <class Weight>
inline void find_weights(uint64_t slots, uint64_t slot_bytes, uint64_t scratches, const gpu::RowBlock& work) {
  const ThreadWork own = thread_work(slots, slot_bytes, work);
  const auto& s = *reinterpret_cast<const ResampleSlot*>(own.slot + sizeof(Slot));
  const auto& scratch = reinterpret_cast<const ResampleScratch*>(scratches)[own.row];
  const int64_t i = own.lane;
  if (i >= s.vertical.out + s.horizontal.out) return;
  const bool down = i < s.vertical.out;  // one call for both axes, since every call is compiled with all filters
  find_output<Weight>(down ? s.vertical : s.horizontal, down ? i : i - s.vertical.out,
                      down ? scratch.vertical_taps : scratch.horizontal_taps,
                      down ? scratch.vertical_weights : scratch.horizontal_weights,
                      down ? scratch.vertical_pitch : scratch.horizontal_pitch, scratch.tile_rows != 0);
}

// Compute tiles of the image between two passes.
template <class T>
inline void make_between(uint64_t slots, uint64_t slot_bytes, uint64_t scratches, const gpu::RowBlock& work) {
  const auto* slot = reinterpret_cast<const uint8_t*>(slots) + work.row * slot_bytes;
  const auto& s = *reinterpret_cast<const ResampleSlot*>(slot + sizeof(Slot));
  const auto& scratch = reinterpret_cast<const ResampleScratch*>(scratches)[work.row];
  const TilePlace<1> place(work.number, s.between_width(), s.between_height());
  if (place.y0 >= place.y1) return;
  switch (s.source.channels) {
    case 1: return between_column<T, 1>(s, scratch, place.x, place.y0, place.y1, 0);
    case 3: return between_column<T, 3>(s, scratch, place.x, place.y0, place.y1, 0);
    case 4: return between_column<T, 4>(s, scratch, place.x, place.y0, place.y1, 0);
    default:
      for (int64_t c = 0; c < s.source.channels; ++c) between_column<T, 1>(s, scratch, place.x, place.y0, place.y1, c);
  }
}

// Lanes are the two axes (Scale) or the rows (Steps). Positions are accumulated step by step as in Pillow, so each lane
// is sequential.
inline void find_walk(uint64_t slots, uint64_t slot_bytes, uint64_t scratches, const gpu::RowBlock& work) {
  const ThreadWork own = thread_work(slots, slot_bytes, work);
  const auto& s = *reinterpret_cast<const AffineSlot*>(own.slot + sizeof(Slot));
  const auto& scratch = reinterpret_cast<const AffineScratch*>(scratches)[own.row];
  auto* columns = reinterpret_cast<int32_t*>(scratch.columns);
  auto* rows = reinterpret_cast<int32_t*>(scratch.rows);
  const double* m = s.matrix;
  const bool clamp = s.clamp != 0;
  const auto walk = [&](double at, double step, int64_t size, int64_t count, int32_t* out) {
    for (int64_t k = 0; k < count; ++k, at += step) out[k] = warp::index_of(at, size, clamp);
  };
  const int64_t i = own.lane;
  if (i >= (s.walk == Walk::Scale ? 2 : s.height)) return;
  if (s.walk == Walk::Scale) {
    if (i == 0) walk(m[2] + m[0] * 0.5, m[0], s.source.width, s.width, columns);
    else walk(m[5] + m[4] * 0.5, m[4], s.source.height, s.height, rows);
    return;
  }
  double x = m[2] + m[1] * 0.5 + m[0] * 0.5, y = m[5] + m[4] * 0.5 + m[3] * 0.5;
  for (int64_t k = 0; k < i; ++k) {
    x += m[1];
    y += m[4];
  }
  walk(x, m[0], s.source.width, s.width, columns + i * s.width);
  walk(y, m[3], s.source.height, s.width, rows + i * s.width);
}

}  // namespace stoker::stage

// Definitions of the kernels per type of weights, per element type, and for all types. `Weight` is Sum<T>::Weight of
// the element type.
#define STOKER_WEIGHTS(Weight) STOKER_INTERPOLATOR_KERNEL(stoker_weights, stoker::stage::find_weights<Weight>, 3)
#define STOKER_BETWEEN(T) STOKER_INTERPOLATOR_KERNEL(stoker_between, stoker::stage::make_between<T>, 3)
#define STOKER_WALK STOKER_INTERPOLATOR_KERNEL(stoker_walk, stoker::stage::find_walk, 3)
