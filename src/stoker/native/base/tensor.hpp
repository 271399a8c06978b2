// SPDX-License-Identifier: Apache-2.0
// Untyped, strided view of one row's tensor: the input and output type of every kernel.
#pragma once
#include <cstddef>
#include <cstdint>

#include "base/scratch.hpp"
#include "shared/bitmap.hpp"

namespace stoker {

namespace planar {
struct Image;
}

// The Python side relies on the order of the enumerators (contract/types.py).
enum class DType : uint8_t { Bool = 0, U8, U16, U32, U64, I8, I16, I32, I64, F16, F32, F64, BF16 };

constexpr int kMaxRank = 8;

constexpr int64_t size_of(DType t) {
  switch (t) {
    case DType::Bool:
    case DType::U8:
    case DType::I8: return 1;
    case DType::U16:
    case DType::I16:
    case DType::F16:
    case DType::BF16: return 2;
    case DType::U32:
    case DType::I32:
    case DType::F32: return 4;
    default: return 8;
  }
}

// Strided view without ownership. Strides are in bytes and may be zero (broadcast) or negative (flip).
struct View {
  uint8_t* data = nullptr;
  DType dtype = DType::U8;
  bool device = false;  // `data` is a device address
  // If set, the image is stored in component planes (shared/planar_image.cuh), and its own addresses have no memory.
  planar::Image* planes = nullptr;
  int32_t rank = 0;
  int64_t shape[kMaxRank] = {};
  int64_t stride[kMaxRank] = {};

  int64_t elements() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= shape[i];
    return n;
  }
  // Return whether the number of elements is so small that sizes and strides in bytes cannot overflow, also in parts of
  // the shape. Only a repeated axis (stride 0) can have more elements than memory.
  bool is_countable() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i)
      if (shape[i] < 0 || __builtin_mul_overflow(n, shape[i] > 1 ? shape[i] : 1, &n) || n > int64_t{1} << 58)
        return false;
    return true;
  }
  bool has_extents_of(const View& other) const {
    if (rank != other.rank) return false;
    for (int i = 0; i < rank; ++i)
      if (shape[i] != other.shape[i]) return false;
    return true;
  }
  void set_contiguous_strides() {
    int64_t s = size_of(dtype);
    for (int i = rank - 1; i >= 0; --i) {
      stride[i] = s;
      s *= shape[i];
    }
  }
  // Set strides for an image of bytes in which a pixel of three bytes takes four and pairs of pixels can be moved by
  // one access; other tensors become contiguous. Return the number of bytes of all rows.
  int64_t set_word_strides() {
    set_contiguous_strides();
    if (rank != 3 || shape[2] != 3 || size_of(dtype) != 1) return size_of(dtype) * elements();
    stride[1] = 4;
    stride[0] = 4 * ((shape[1] + 1) & ~int64_t{1});
    return shape[0] * stride[0];
  }
  bool in_words() const {
    return rank == 3 && shape[2] == 3 && stride[2] == 1 && stride[1] == 4 && size_of(dtype) == 1;
  }
  bool contiguous() const {
    if (elements() == 0) return true;  // for any strides
    int64_t s = size_of(dtype);
    for (int i = rank - 1; i >= 0; --i) {
      if (shape[i] != 1 && stride[i] != s) return false;
      s *= shape[i];
    }
    return true;
  }
};

// View of an 8-bit image [H,W,C].
inline Bitmap bitmap_of(const View& v) {
  return {v.data, v.shape[0], v.shape[1], v.shape[2], v.stride[0], v.stride[1], v.stride[2]};
}

}  // namespace stoker
