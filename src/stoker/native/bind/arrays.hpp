// SPDX-License-Identifier: Apache-2.0
// Conversion between native tensors and Python's arrays.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <new>

#include "base/tensor.hpp"

namespace stoker {

using Keys = nanobind::ndarray<const uint64_t, nanobind::ndim<1>, nanobind::c_contig>;
using Longs = nanobind::ndarray<const int64_t, nanobind::ndim<1>, nanobind::c_contig>;
using AnyArray = nanobind::ndarray<nanobind::ro, nanobind::device::cpu>;

nanobind::dlpack::dtype dlpack_of(DType t);
// Throw TypeError for a type without a DType.
DType dtype_of(nanobind::dlpack::dtype d);
// Throw ValueError if the array has more axes than a View.
View view_of(const AnyArray& a);
// Return an array over memory of another owner; `owner` lives as long as the array.
nanobind::object array_over(const View& v, nanobind::handle owner, bool writable);

// Arrays over parts of one block of memory, which `owner` keeps. NumPy takes a part of an array in a fifth of the time
// that an array over memory of another owner costs.
class PartsOfBlock {
 public:
  PartsOfBlock(uint8_t* data, size_t bytes, nanobind::handle owner);
  bool has(const View& v) const {
    const auto begin = reinterpret_cast<uintptr_t>(data_), at = reinterpret_cast<uintptr_t>(v.data);
    return data_ && at >= begin && at - begin <= bytes_ &&
           static_cast<uint64_t>(v.elements()) * static_cast<uint64_t>(size_of(v.dtype)) <= bytes_ - (at - begin);
  }
  // Return a writable array over a contiguous tensor that the block has.
  nanobind::object part(const View& v);

 private:
  uint8_t* data_;
  size_t bytes_;
  nanobind::object block_, dtype_;
  nanobind::handle owner_;
};

// Return a new array whose element i is make(i).
template <class T, class F>
nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<1>> column(size_t n, F make) {
  std::unique_ptr<T[]> items(new (std::nothrow) T[n ? n : 1]);  // a sanitizer's plain `new` ends the process
  if (!items) throw std::bad_alloc();
  for (size_t i = 0; i < n; ++i) items[i] = make(i);
  T* const out = items.release();
  nanobind::capsule owner(out, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  return nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<1>>(out, {n}, owner);
}

}  // namespace stoker
