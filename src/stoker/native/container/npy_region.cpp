// SPDX-License-Identifier: Apache-2.0
#include "container/npy_region.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace stoker {

namespace {

using Bound = NpyRegion::Bound;
using Outside = NpyRegion::Outside;

constexpr double kMost = 1e15;  // of an index; larger ones are no sizes of arrays

double rounded(double x) { return std::floor(x + 0.5); }

std::string text_of(double x) {
  return std::abs(x) < kMost ? std::to_string(static_cast<int64_t>(x)) : std::string("an impossible number");
}

bool find_axis(const NpyRegion& rule, const double* bounds, size_t k, const NpyHeader& header, NpyPart& part,
               std::string& error) {
  const int axis = rule.axes[k];
  const double* const ends = bounds + (rule.start != Bound::None ? rule.axes.size() : 0);
  const double extent = static_cast<double>(header.shape[axis]);
  const double start = rule.start == Bound::None ? 0 : bounds[k];
  const double begin = rule.start == Bound::Relative ? rounded(start * extent) : start;
  double end = extent;
  if (rule.end == Bound::Absolute) end = ends[k];
  else if (rule.end == Bound::Relative) end = rounded(ends[k] * extent);
  else if (rule.end == Bound::Shape) end = begin + ends[k];
  else if (rule.end == Bound::RelativeShape && rule.start == Bound::Relative) end = rounded((start + ends[k]) * extent);
  else if (rule.end == Bound::RelativeShape) end = begin + rounded(ends[k] * extent);
  if (!(std::abs(begin) < kMost && std::abs(end) < kMost) || end < begin) {
    error = "expected a region with an end at or after its start in axis " + std::to_string(axis) + ", got " +
            text_of(begin) + " to " + text_of(end);
    return false;
  }
  if (rule.policy == Outside::Error && (begin < 0 || end > extent)) {
    error = "expected a region inside of the array's " + std::to_string(header.shape[axis]) + " elements in axis " +
            std::to_string(axis) + ", got " + text_of(begin) + " to " + text_of(end) +
            "; `out_of_bounds_policy` allows others";
    return false;
  }
  auto first = static_cast<int64_t>(begin), last = static_cast<int64_t>(end);
  if (rule.policy == Outside::Trim) {
    first = std::clamp<int64_t>(first, 0, header.shape[axis]);
    last = std::clamp<int64_t>(last, 0, header.shape[axis]);
  }
  part.region_begin[axis] = first;
  part.region_extent[axis] = last - first;
  return true;
}

// Copy the elements of a box from memory with strides (in bytes) to memory with strides.
void copy_box(const uint8_t* from, const int64_t* from_stride, uint8_t* to, const int64_t* to_stride,
              const int64_t* extent, int rank, int64_t item) {
  if (rank == 0) {
    std::memcpy(to, from, static_cast<size_t>(item));
    return;
  }
  if (rank == 1 && from_stride[0] == item && to_stride[0] == item) {
    std::memcpy(to, from, static_cast<size_t>(extent[0] * item));
    return;
  }
  for (int64_t i = 0; i < extent[0]; ++i)
    copy_box(from + i * from_stride[0], from_stride + 1, to + i * to_stride[0], to_stride + 1, extent + 1, rank - 1,
             item);
}

template <class T>
void swap_all(uint8_t* data, int64_t count, T (*swap)(T)) {
  for (int64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, data + i * static_cast<int64_t>(sizeof value), sizeof value);
    value = swap(value);
    std::memcpy(data + i * static_cast<int64_t>(sizeof value), &value, sizeof value);
  }
}

void swap_bytes(uint8_t* data, int64_t count, int64_t item) {
  if (item == 2) swap_all<uint16_t>(data, count, [](uint16_t x) { return __builtin_bswap16(x); });
  if (item == 4) swap_all<uint32_t>(data, count, [](uint32_t x) { return __builtin_bswap32(x); });
  if (item == 8) swap_all<uint64_t>(data, count, [](uint64_t x) { return __builtin_bswap64(x); });
}

// Strides of the region in bytes: rows in C order, without gaps.
void find_strides(const NpyHeader& header, const NpyPart& part, int64_t* stride) {
  int64_t step = size_of(header.dtype);
  for (int i = header.rank - 1; i >= 0; --i) {
    stride[i] = step;
    step *= std::max<int64_t>(part.region_extent[i], 1);
  }
}

}  // namespace

bool find_npy_part(const NpyRegion& rule, const double* bounds, const NpyHeader& header, int64_t most, NpyPart& part,
                   std::string& error) {
  part = {};
  const int rank = header.rank;
  const int64_t item = size_of(header.dtype);
  std::copy(header.shape, header.shape + rank, part.region_extent);
  for (size_t k = 0; k < rule.axes.size(); ++k)
    if (!find_axis(rule, bounds, k, header, part, error)) return false;
  int64_t bytes = item;
  for (int i = 0; i < rank; ++i)
    if (__builtin_mul_overflow(bytes, std::max<int64_t>(part.region_extent[i], 1), &bytes) || bytes > most) {
      error = "expected a region of at most 2**40 bytes";
      return false;
    }
  bool whole_rows = !header.is_fortran;
  part.slowest = header.is_fortran && rank > 0 ? rank - 1 : 0;
  for (int i = 0; i < rank; ++i) {
    const int64_t first = part.region_begin[i], count = part.region_extent[i];
    if (count == 0) bytes = 0;
    part.begin[i] = std::clamp<int64_t>(first, 0, header.shape[i]);
    part.extent[i] = std::clamp<int64_t>(first + count, part.begin[i], header.shape[i]) - part.begin[i];
    part.is_inside = part.is_inside && part.extent[i] == count;
    part.is_empty = part.is_empty || part.extent[i] == 0;
    whole_rows = whole_rows && (i == 0 || (first == 0 && count == header.shape[i]));
  }
  part.region_bytes = bytes;
  part.is_direct = whole_rows || rank == 0;
  part.is_plain = part.is_direct && part.is_inside && !part.is_empty && !header.is_swapped;
  part.offset = header.data;
  if (part.is_empty) return true;
  int64_t row = item;  // all axes have elements, so this is at most the array's size
  for (int i = 0; i < rank; ++i) row *= i == part.slowest ? 1 : header.shape[i];
  part.offset += static_cast<uint64_t>((rank > 0 ? part.begin[part.slowest] : 0) * row);
  part.bytes = static_cast<size_t>((rank > 0 ? part.extent[part.slowest] : 1) * row);
  return true;
}

void fill_npy_region(const NpyPart& part, const std::vector<uint8_t>& element, uint8_t* region) {
  const size_t item = element.size();
  for (size_t at = 0; at < static_cast<size_t>(part.region_bytes); at += item)
    std::memcpy(region + at, element.data(), item);
}

uint8_t* place_of_npy_rows(const NpyHeader& header, const NpyPart& part, uint8_t* region) {
  int64_t stride[kMaxRank];
  find_strides(header, part, stride);
  return header.rank > 0 ? region + (part.begin[0] - part.region_begin[0]) * stride[0] : region;
}

void put_npy_rows(const NpyHeader& header, const NpyPart& part, uint8_t* rows, uint8_t* region) {
  const int64_t item = size_of(header.dtype);
  if (header.is_swapped) swap_bytes(rows, static_cast<int64_t>(part.bytes) / item, item);
  if (part.is_direct) return;
  int64_t to_stride[kMaxRank], from_stride[kMaxRank];
  find_strides(header, part, to_stride);
  int64_t step = item;
  for (int k = 0; k < header.rank; ++k) {
    const int axis = header.is_fortran ? k : header.rank - 1 - k;
    from_stride[axis] = step;
    step *= axis == part.slowest ? part.extent[axis] : header.shape[axis];
  }
  const uint8_t* from = rows;
  uint8_t* to = region;
  for (int i = 0; i < header.rank; ++i) {
    if (i != part.slowest) from += part.begin[i] * from_stride[i];
    to += (part.begin[i] - part.region_begin[i]) * to_stride[i];
  }
  copy_box(from, from_stride, to, to_stride, part.extent, header.rank, item);
}

}  // namespace stoker
