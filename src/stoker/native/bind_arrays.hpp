// SPDX-License-Identifier: Apache-2.0
// Tensors of the native side as Python's arrays, and Python's arrays as they are read here.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>

#include "tensor.hpp"

namespace stoker {

using Keys = nanobind::ndarray<const uint64_t, nanobind::ndim<1>, nanobind::c_contig>;
using Longs = nanobind::ndarray<const int64_t, nanobind::ndim<1>, nanobind::c_contig>;
using AnyArray = nanobind::ndarray<nanobind::ro, nanobind::device::cpu>;

nanobind::dlpack::dtype dlpack_of(DType t);
// Throws a TypeError for a type that there is no DType for.
DType dtype_of(nanobind::dlpack::dtype d);
// Throws a ValueError for more axes than a View has.
View view_of(const AnyArray& a);
// An array over memory that somebody else keeps; `owner` lives as long as the array.
nanobind::object array_over(const View& v, nanobind::handle owner, bool writable);

// A new array whose element i is make(i).
template <class T, class F>
nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<1>> column(size_t n, F make) {
  std::unique_ptr<T[]> made(new T[n ? n : 1]);
  for (size_t i = 0; i < n; ++i) made[i] = make(i);
  T* const out = made.release();
  nanobind::capsule owner(out, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  return nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<1>>(out, {n}, owner);
}

}  // namespace stoker
