// SPDX-License-Identifier: Apache-2.0
// What every kernel reads and writes: an untyped, strided view of one row's tensor.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "bitmap.hpp"

namespace stoker {

namespace planar {
struct Image;
}

// The order is part of the Python side's contract (contract/types.py).
enum class DType : uint8_t { Bool = 0, U8, U16, U32, U64, I8, I16, I32, I64, F16, F32, F64, BF16 };

constexpr int kMaxRank = 8;

constexpr int64_t size_of(DType t) {
  switch (t) {
    case DType::Bool: case DType::U8: case DType::I8: return 1;
    case DType::U16: case DType::I16: case DType::F16: case DType::BF16: return 2;
    case DType::U32: case DType::I32: case DType::F32: return 4;
    default: return 8;
  }
}

// A strided view; it owns nothing. Strides are in bytes and may be zero (broadcast) or negative (flip).
struct View {
  uint8_t* data = nullptr;
  DType dtype = DType::U8;
  bool device = false;  // `data` is an address of a GPU's memory
  // Not null: the image is in component planes there (cuda/planar_image.cuh), and nothing lies at its addresses.
  planar::Image* planes = nullptr;
  int32_t rank = 0;
  int64_t shape[kMaxRank] = {};
  int64_t stride[kMaxRank] = {};

  int64_t elements() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= shape[i];
    return n;
  }
  void set_contiguous_strides() {
    int64_t s = size_of(dtype);
    for (int i = rank - 1; i >= 0; --i) { stride[i] = s; s *= shape[i]; }
  }
  // Of an image of bytes: a pixel of three takes four, and two pixels are where one access moves them. How many bytes
  // all rows take. Others are contiguous.
  int64_t set_word_strides() {
    set_contiguous_strides();
    if (rank != 3 || shape[2] != 3 || size_of(dtype) != 1) return size_of(dtype) * elements();
    stride[1] = 4;
    stride[0] = 4 * ((shape[1] + 1) & ~int64_t{1});
    return shape[0] * stride[0];
  }
  bool in_words() const { return rank == 3 && shape[2] == 3 && stride[2] == 1 && stride[1] == 4 && size_of(dtype) == 1; }
  bool contiguous() const {
    if (elements() == 0) return true;  // whatever the strides say
    int64_t s = size_of(dtype);
    for (int i = rank - 1; i >= 0; --i) {
      if (shape[i] != 1 && stride[i] != s) return false;
      s *= shape[i];
    }
    return true;
  }
};

// An image [H,W,C] of 8 bits.
inline Bitmap bitmap_of(const View& v) {
  return {v.data, v.shape[0], v.shape[1], v.shape[2], v.stride[0], v.stride[1], v.stride[2]};
}

// How often memory of 4 KiB or more was taken from the system, for tests of the steady state.
inline std::atomic<int64_t> large_allocations{0};

inline void count_allocation(size_t bytes) {
  if (bytes >= 4096) large_allocations.fetch_add(1, std::memory_order_relaxed);
}

// Where a kernel takes memory whose size it learns while it runs.
class Room {
 public:
  virtual uint8_t* get(size_t bytes) = 0;

 protected:
  ~Room() = default;
};

// Working memory that only grows, so that the steady state allocates nothing. Contents are lost on growth. It takes at
// least twice what is asked for: larger rows come later, and pages that nobody touches cost nothing.
class Scratch final : public Room {
 public:
  uint8_t* get(size_t bytes) override {
    if (bytes > capacity_) {
      size_t want = 4096;
      while (want / 2 < bytes) want *= 2;
      data_.reset();  // first, so that old and new are never held together
      capacity_ = 0;
      data_.reset(new (std::align_val_t{64}) uint8_t[want]);
      capacity_ = want;
      count_allocation(want);
    }
    return data_.get();
  }
  size_t capacity() const { return capacity_; }

 private:
  struct Free { void operator()(uint8_t* p) const { ::operator delete[](p, std::align_val_t{64}); } };
  std::unique_ptr<uint8_t[], Free> data_;
  size_t capacity_ = 0;
};

}  // namespace stoker
