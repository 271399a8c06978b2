// SPDX-License-Identifier: Apache-2.0
// What samplers need before a stage can run: the taps and weights of every row's axes, the image between two passes,
// and the source pixels that an affine sampler without interpolation walks over.
#pragma once
#include "device.cuh"
#include "stage_sample.cuh"
#include "stage_slot.hpp"

namespace stoker::stage {

// Kernels take a batch as stages do.
struct Place {
  const uint8_t* slot;
  int64_t row;
  uint64_t begin;  // first lane
};

inline Place place_of(uint64_t slots, uint64_t slot_bytes, uint64_t work) {
  const Work item = reinterpret_cast<const Work*>(work)[gpu::block_index()];
  return {reinterpret_cast<const uint8_t*>(slots) + item.row * slot_bytes, item.row,
          uint64_t{item.tile} * kTileLanes};
}

template <class Visit>
inline void each_lane(const Place& place, int64_t lanes, Visit&& visit) {
  for (int64_t i = gpu::thread_index(); i < kTileLanes; i += kThreads) {
    const int64_t lane = static_cast<int64_t>(place.begin) + i;
    if (lane < lanes) visit(lane);
  }
}

inline int32_t weight_as(double w, int32_t*) { return resample::to_fixed(w); }
inline double weight_as(double w, double*) { return w; }

// weigh() without room for doubles: every weight is computed twice.
template <class Kernel, class Weight>
inline void store_weights(const resample::Window& w, int64_t i, resample::Taps taps, Weight* out) {
  const resample::Weigher<Kernel> weigher(w, i);
  double sum = 0.0;
  for (int32_t t = 0; t < taps.count; ++t) sum += weigher.at(t + taps.start);
  for (int32_t t = 0; t < taps.count; ++t) {
    const double weight = weigher.at(t + taps.start);
    out[t] = weight_as(sum != 0.0 ? weight / sum : weight, out);
  }
}

template <class Weight>
inline void find_output(const resample::Window& w, int64_t i, uint64_t taps_at, uint64_t weights_at, int64_t pitch) {
  using resample::Filter;
  auto* taps = reinterpret_cast<resample::Taps*>(taps_at);
  const auto place = [&](int64_t k) { return w.mirrored ? w.out - 1 - k : k; };
  if (w.filter == Filter::Nearest) {
    if (w.integral) {
      taps[place(i)] = resample::pick_at(w, w.lo + 0.5 + static_cast<double>(i));  // exact, hence as if added up
    } else if (i == 0) {
      double at = w.lo + w.scale * 0.5;
      for (int64_t k = 0; k < w.out; ++k, at += w.scale) taps[place(k)] = resample::pick_at(w, at);
    }
    return;
  }
  const resample::Taps found = resample::taps_of(w, i);
  taps[place(i)] = found;
  Weight* out = reinterpret_cast<Weight*>(weights_at) + place(i) * pitch;
  switch (w.filter) {
    case Filter::Linear: case Filter::Triangular: return store_weights<resample::filters::Linear>(w, i, found, out);
    case Filter::Cubic: return store_weights<resample::filters::Cubic>(w, i, found, out);
    case Filter::Lanczos3: return store_weights<resample::filters::Lanczos3>(w, i, found, out);
    case Filter::Gaussian: return store_weights<resample::filters::Gaussian>(w, i, found, out);
    case Filter::Box: return store_weights<resample::filters::Box>(w, i, found, out);
    default: return store_weights<resample::filters::Hamming>(w, i, found, out);
  }
}

// Lanes: the outputs of the vertical, then those of the horizontal axis.
template <class Weight>
inline void find_weights(uint64_t slots, uint64_t slot_bytes, uint64_t work, uint64_t rooms) {
  const Place place = place_of(slots, slot_bytes, work);
  const auto& s = *reinterpret_cast<const ResampleSlot*>(place.slot + sizeof(Slot));
  const auto& room = reinterpret_cast<const ResampleRoom*>(rooms)[place.row];
  each_lane(place, s.vertical.out + s.horizontal.out, [&](int64_t i) {
    const bool down = i < s.vertical.out;  // one call for both axes: all filters are compiled into it
    find_output<Weight>(down ? s.vertical : s.horizontal, down ? i : i - s.vertical.out,
                        down ? room.vertical_taps : room.horizontal_taps,
                        down ? room.vertical_weights : room.horizontal_weights,
                        down ? room.vertical_pitch : room.horizontal_pitch);
  });
}

// Tiles of the image between two passes.
template <class T>
inline void make_between(uint64_t slots, uint64_t slot_bytes, uint64_t work, uint64_t rooms) {
  const Work item = reinterpret_cast<const Work*>(work)[gpu::block_index()];
  const auto* slot = reinterpret_cast<const uint8_t*>(slots) + item.row * slot_bytes;
  const auto& s = *reinterpret_cast<const ResampleSlot*>(slot + sizeof(Slot));
  const auto& room = reinterpret_cast<const ResampleRoom*>(rooms)[item.row];
  const TilePlace place(item.tile, s.between_width(), s.between_height());
  if (place.y0 >= place.y1) return;
  switch (s.source.channels) {
    case 1: return between_column<T, 1>(s, room, place.x, place.y0, place.y1, 0);
    case 3: return between_column<T, 3>(s, room, place.x, place.y0, place.y1, 0);
    case 4: return between_column<T, 4>(s, room, place.x, place.y0, place.y1, 0);
    default:
      for (int64_t c = 0; c < s.source.channels; ++c)
        between_column<T, 1>(s, room, place.x, place.y0, place.y1, c);
  }
}

// Lanes: the two axes (Scale), or the rows (Steps). Walked by adding steps, as Pillow does, hence one thread each.
inline void find_walk(uint64_t slots, uint64_t slot_bytes, uint64_t work, uint64_t rooms) {
  const Place place = place_of(slots, slot_bytes, work);
  const auto& s = *reinterpret_cast<const AffineSlot*>(place.slot + sizeof(Slot));
  const auto& room = reinterpret_cast<const AffineRoom*>(rooms)[place.row];
  auto* columns = reinterpret_cast<int32_t*>(room.columns);
  auto* rows = reinterpret_cast<int32_t*>(room.rows);
  const double* m = s.matrix;
  const bool clamp = s.clamp != 0;
  const auto walk = [&](double at, double step, int64_t size, int64_t count, int32_t* out) {
    for (int64_t k = 0; k < count; ++k, at += step) out[k] = warp::index_of(at, size, clamp);
  };
  each_lane(place, s.walk == Walk::Scale ? 2 : s.height, [&](int64_t i) {
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
  });
}

}  // namespace stoker::stage

#define STOKER_SAMPLER_KERNEL(name, function)                                                                     \
  STOKER_KERNEL STOKER_LAUNCH_BOUNDS(stoker::stage::kThreads, 3)                                                  \
      name(uint64_t slots, uint64_t slot_bytes, uint64_t work, uint64_t rooms) {                                  \
    stoker::stage::function(slots, slot_bytes, work, rooms);                                                      \
  }
// The kernels of one type of weights, of one element type, and of all. `Weight` is Sum<T>::Weight of the element type.
#define STOKER_WEIGHTS(Weight) STOKER_SAMPLER_KERNEL(stoker_weights, find_weights<Weight>)
#define STOKER_BETWEEN(T) STOKER_SAMPLER_KERNEL(stoker_between, make_between<T>)
#define STOKER_WALK STOKER_SAMPLER_KERNEL(stoker_walk, find_walk)
