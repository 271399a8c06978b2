// SPDX-License-Identifier: Apache-2.0
#include "pixel/move.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "shared/coordinate.hpp"

namespace stoker::pixel {
namespace {

template <class T>
void gather(uint8_t* dst, const uint8_t* src, int64_t stride, int n) {
  auto* d = reinterpret_cast<T*>(dst);
  T x;
  if (stride == 0) {
    std::memcpy(&x, src, sizeof x);
    std::fill_n(d, n, x);
    return;
  }
  for (int i = 0; i < n; ++i, src += stride) {
    std::memcpy(&x, src, sizeof x);
    d[i] = x;
  }
}

template <class T>
void scatter(uint8_t* dst, int64_t stride, const uint8_t* src, int n) {
  const auto* s = reinterpret_cast<const T*>(src);
  for (int i = 0; i < n; ++i, dst += stride) std::memcpy(dst, s + i, sizeof(T));
}

void gather(const Kernels& k, int element, uint8_t* dst, const uint8_t* src, int64_t stride, int n) {
  if (stride == -element) return k.reverse[element](dst, src + (n - 1) * stride, n);
  switch (element) {
    case 1: return gather<uint8_t>(dst, src, stride, n);
    case 2: return gather<uint16_t>(dst, src, stride, n);
    case 4: return gather<uint32_t>(dst, src, stride, n);
    default: return gather<uint64_t>(dst, src, stride, n);
  }
}

void scatter(const Kernels& k, int element, uint8_t* dst, int64_t stride, const uint8_t* src, int n) {
  if (stride == -element) return k.reverse[element](dst + (n - 1) * stride, src, n);
  switch (element) {
    case 1: return scatter<uint8_t>(dst, stride, src, n);
    case 2: return scatter<uint16_t>(dst, stride, src, n);
    case 4: return scatter<uint32_t>(dst, stride, src, n);
    default: return scatter<uint64_t>(dst, stride, src, n);
  }
}

void load_contiguous(const Mover& m, uint8_t* const* at, int lane, int n) {
  m.convert(m.reg[0] + static_cast<ptrdiff_t>(lane) * m.reg_size, at[m.port] + m.offset, n);
}

void load_strided(const Mover& m, uint8_t* const* at, int lane, int n) {
  gather(*m.kernels, m.element, m.stage, at[m.port] + m.offset, m.stride, n);
  m.convert(m.reg[0] + static_cast<ptrdiff_t>(lane) * m.reg_size, m.stage, n);
}

void count_lanes(const Mover& m, uint8_t* const* at, int lane, int n) {
  auto* to = reinterpret_cast<int32_t*>(m.reg[0] + static_cast<ptrdiff_t>(lane) * m.reg_size);
  m.kernels->count(to, coordinate_at(at[m.port]), static_cast<int32_t>(m.stride), n);
}

void load_interleaved(const Mover& m, uint8_t* const* at, int lane, int n) {
  uint8_t* reg[kMaxGroup];
  for (int c = 0; c < m.count; ++c) reg[c] = m.reg[c] + static_cast<ptrdiff_t>(lane) * m.reg_size;
  m.load_group(reg, m.stride < 0 ? at[m.port] + (n - 1) * m.stride : at[m.port], n);
}

void store_contiguous(const Mover& m, uint8_t* const* at, int lane, int n) {
  m.convert(at[m.port] + m.offset, m.reg[0] + static_cast<ptrdiff_t>(lane) * m.reg_size, n);
}

// Elements whose memory format equals the register format need no staging.
void store_same_strided(const Mover& m, uint8_t* const* at, int lane, int n) {
  const uint8_t* from = m.reg[0] + static_cast<ptrdiff_t>(lane) * m.reg_size;
  scatter(*m.kernels, m.element, at[m.port] + m.offset, m.stride, from, n);
}

void store_strided(const Mover& m, uint8_t* const* at, int lane, int n) {
  m.convert(m.stage, m.reg[0] + static_cast<ptrdiff_t>(lane) * m.reg_size, n);
  scatter(*m.kernels, m.element, at[m.port] + m.offset, m.stride, m.stage, n);
}

void store_interleaved(const Mover& m, uint8_t* const* at, int lane, int n) {
  const uint8_t* reg[kMaxGroup];
  for (int c = 0; c < m.count; ++c) reg[c] = m.reg[c] + static_cast<ptrdiff_t>(lane) * m.reg_size;
  m.store_group(at[m.port], reg, n);
}

// Other interleaved elements: their planes are staged, unless memory's format equals the registers'.
void load_dealt(const Mover& m, uint8_t* const* at, int lane, int n) {
  uint8_t* reg[kMaxGroup];
  uint8_t* planes[kMaxGroup];
  for (int c = 0; c < m.count; ++c) {
    reg[c] = m.reg[c] + static_cast<ptrdiff_t>(lane) * m.reg_size;
    planes[c] = m.element == m.reg_size ? reg[c] : m.stage + c * m.plane;
  }
  m.deal(planes, at[m.port], n);
  if (m.element == m.reg_size) return;  // registers of this size need no conversion
  for (int c = 0; c < m.count; ++c) m.convert(reg[c], planes[c], n);
}

// The same for pixels in reverse order.
void load_dealt_back(const Mover& m, uint8_t* const* at, int lane, int n) {
  uint8_t* planes[kMaxGroup];
  for (int c = 0; c < m.count; ++c) planes[c] = m.stage + (c + 1) * m.plane;
  m.deal(planes, at[m.port] + (n - 1) * m.stride, n);
  for (int c = 0; c < m.count; ++c) {
    m.kernels->reverse[m.element](m.stage, planes[c], n);
    m.convert(m.reg[c] + static_cast<ptrdiff_t>(lane) * m.reg_size, m.stage, n);
  }
}

void store_woven(const Mover& m, uint8_t* const* at, int lane, int n) {
  const uint8_t* planes[kMaxGroup];
  for (int c = 0; c < m.count; ++c) {
    planes[c] = m.reg[c] + static_cast<ptrdiff_t>(lane) * m.reg_size;
    if (m.element == m.reg_size) continue;
    m.convert(m.stage + c * m.plane, planes[c], n);
    planes[c] = m.stage + c * m.plane;
  }
  m.weave(at[m.port], planes, n);
}

void look_up(const Mover& m, uint8_t* const* at, int, int n) {
  const uint8_t* src = at[m.source_port] + m.source_offset;
  uint8_t* dst = at[m.port] + m.offset;
  if (m.source_stride != 1) {
    gather(*m.kernels, 1, m.source_stage, src, m.source_stride, n);
    src = m.source_stage;
  }
  if (m.stride == m.element) return m.lookup(dst, src, m.table, n);
  m.lookup(m.stage, src, m.table, n);
  scatter(*m.kernels, m.element, dst, m.stride, m.stage, n);
}

// Lookup for interleaved pixels whose channels all share one table: the pixels are treated as plain bytes.
void look_up_pixels(const Mover& m, uint8_t* const* at, int, int n) {
  m.lookup(at[m.port], at[m.source_port], m.table, n * static_cast<int>(m.stride));
}

void copy_lanes(const Mover& m, uint8_t* const* at, int, int n) {
  std::memmove(at[m.port] + m.offset, at[m.source_port] + m.source_offset, static_cast<size_t>(n * m.stride));
}

void cast_lanes(const Mover& m, uint8_t* const* at, int, int n) {
  m.convert(at[m.port] + m.offset, at[m.source_port] + m.source_offset, n * m.count);
}

// Planes of interleaved pixels are staged; others are used where they are.
void mix_bytes(const Mover& m, uint8_t* const* at, int, int n) {
  const uint8_t* from[kMixed];
  uint8_t *to[kMixed], *dealt[kMixed];
  const uint8_t* woven[kMixed];
  uint8_t* const src = at[m.source_port];
  for (int k = 0; k < kMixed; ++k) dealt[k] = m.stage + k * m.plane;
  if (m.deal) m.deal(dealt, src, n);
  for (int k = 0; k < kMixed; ++k) {
    from[k] = m.deal ? dealt[m.source_channels[k]] : src + m.source_channels[k] * m.source_offset;
    woven[k] = to[k] = m.weave ? m.stage + (kMixed + k) * m.plane : at[m.port] + k * m.offset;
  }
  m.mix(to, from, m.mixes, m.count, n);
  if (m.weave) m.weave(at[m.port], woven, n);
}

void mix_interleaved(const Mover& m, uint8_t* const* at, int, int n) {
  m.mix_pixels(at[m.port], at[m.source_port], m.source_channels, m.mixes, m.count, n);
}

}  // namespace

bool interleaves(const Access& a, bool load, const PortStrides& place) {
  const int64_t element = size_of(a.dtype), pixel = a.count * element;
  return a.count > 1 && place.channel_stride == element &&
         (place.lane_stride == pixel || (load && place.lane_stride == -pixel));
}

Mover bind_single(const Kernels& k, const Access& a, int channel, bool load, const PortStrides& place) {
  Mover m;
  m.kernels = &k;
  m.reg_size = register_size(a.type);
  m.port = place.port;
  m.element = static_cast<int>(size_of(a.dtype));
  m.offset = (a.first + channel) * place.channel_stride;
  m.stride = place.lane_stride;
  m.convert = (load ? k.load : k.store)[at(a.dtype)][at(a.type)];
  const bool contiguous = m.stride == m.element;
  m.run = load ? (contiguous ? load_contiguous : load_strided) : (contiguous ? store_contiguous : store_strided);
  if (a.coordinate) m.run = count_lanes;
  if (!load && m.element == m.reg_size) {
    m.alignment = static_cast<unsigned>(std::max(m.element, k.store_alignment));
    if (contiguous) m.producer = a.producer[channel];
    else m.run = store_same_strided;
  }
  return m;
}

Mover bind_group(const Kernels& k, const Access& a, bool load, const PortStrides& place) {
  Mover m = bind_single(k, a, 0, load, place);
  const bool back = m.stride < 0, bytes = a.dtype == DType::U8;
  m.count = a.count;
  m.producer = -1;
  if (load) {
    if (bytes) m.load_group = (back ? k.load_group_back : k.load_group)[a.count][at(a.type)];
    m.deal = k.deal[m.element][a.count];
    m.run = m.load_group ? load_interleaved : back ? load_dealt_back : load_dealt;
  } else {
    if (bytes) m.store_group = k.store_group[a.count][at(a.type)];
    m.weave = k.weave[m.element][a.count];
    m.run = m.store_group ? store_interleaved : store_woven;
  }
  return m;
}

Mover bind_lookup(const Kernels& k, const Access& a, int channel, const Source& source, const PortStrides& place,
                  const PortStrides& source_place) {
  Mover m = bind_single(k, a, channel, false, place);
  m.run = look_up;
  m.producer = -1;
  m.source_port = source_place.port;
  m.source_offset = source.channel * source_place.channel_stride;
  m.source_stride = source_place.lane_stride;
  m.lookup = k.lookup[m.element];
  return m;
}

namespace {

// Bind a store whose channels are loaded ones in the same order, contiguous in both places.
bool bind_dense(const Plan& plan, const Access& a, const PortStrides& place, const PortStrides& source_place,
                Mover* out) {
  const Source& first = plan.sources[a.source[0]];
  const auto dense = [&](const PortStrides& p, int64_t element) {
    return p.lane_stride == a.count * element && (a.count == 1 || p.channel_stride == element);
  };
  for (int c = 0; c < a.count; ++c) {
    const Source& s = plan.sources[a.source[c]];
    if (s.port != first.port || s.channel != first.channel + c || s.dtype != first.dtype) return false;
  }
  if (!dense(place, size_of(a.dtype)) || !dense(source_place, size_of(first.dtype))) return false;
  Mover m;
  m.port = place.port;
  m.source_port = source_place.port;
  m.offset = a.first * place.channel_stride;
  m.source_offset = first.channel * source_place.channel_stride;
  m.stride = place.lane_stride;
  m.count = a.count;
  *out = m;
  return true;
}

}  // namespace

bool bind_copy(const Plan& plan, const Access& a, const PortStrides& place, const PortStrides& source_place,
               Mover* out) {
  if (!bind_dense(plan, a, place, source_place, out)) return false;
  out->run = copy_lanes;
  return true;
}

bool bind_cast(const Kernels& k, const Plan& plan, const Access& a, const PortStrides& place,
               const PortStrides& source_place, Mover* out) {
  const DType from = plan.sources[a.source[0]].dtype;
  const auto is_plain = [&](DType d) { return type_of(d) == a.type && size_of(d) == register_size(a.type); };
  if (!is_plain(a.dtype) && !is_plain(from)) return false;
  if (!bind_dense(plan, a, place, source_place, out)) return false;
  out->convert = is_plain(a.dtype) ? k.load[at(from)][at(a.type)] : k.store[at(a.dtype)][at(a.type)];
  out->run = cast_lanes;
  return out->convert != nullptr;
}

bool bind_mix(const Kernels& k, const Plan& plan, const PortStrides& place, const PortStrides& source_place,
              Mover* out) {
  Mover m;
  m.kernels = &k;
  m.run = mix_bytes;
  m.mix = k.mix;
  m.count = static_cast<int>(plan.mixes.size());
  m.port = place.port;
  m.source_port = source_place.port;
  m.offset = place.channel_stride;
  m.source_offset = source_place.channel_stride;
  for (int c = 0; c < kMixed; ++c) m.source_channels[c] = plan.mixed_channel[c];
  if (!m.mix) return false;
  if (source_place.lane_stride == kMixed && source_place.channel_stride == 1) {
    for (const uint8_t c : m.source_channels)
      if (c >= kMixed) return false;
    m.deal = k.deal[1][kMixed];
  } else if (source_place.lane_stride != 1) {
    return false;
  }
  if (m.count == kMixed && place.lane_stride == kMixed && place.channel_stride == 1) m.weave = k.weave[1][kMixed];
  else if (place.lane_stride != 1) return false;
  *out = m;
  return true;
}

bool mix_without_planes(Mover& m) {
  m.mix_pixels = m.kernels->mix_pixels;
  if (!m.mix_pixels || !m.deal || (m.count == kMixed && !m.weave)) return false;
  constexpr float kMost = 1 << 30;
  for (int c = 0; c < m.count; ++c) {
    float most = std::fabs(m.mixes[c].before) + std::fabs(m.mixes[c].after);
    for (const float weight : m.mixes[c].weight) most += 255.0f * std::fabs(weight);
    if (!(most < kMost)) return false;  // also for NaN
  }
  m.run = mix_interleaved;
  return true;
}

void widen_lookup(Mover& m) { m.run = look_up_pixels; }

}  // namespace stoker::pixel
