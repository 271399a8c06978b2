// SPDX-License-Identifier: Apache-2.0
#include "bind/arrays.hpp"

#include <cstdint>

namespace nb = nanobind;

namespace stoker {

nb::dlpack::dtype dlpack_of(DType t) {
  using C = nb::dlpack::dtype_code;
  const auto make = [](C code, int bits) {
    return nb::dlpack::dtype{static_cast<uint8_t>(code), static_cast<uint8_t>(bits), 1};
  };
  switch (t) {
    case DType::Bool: return make(C::Bool, 8);
    case DType::U8: return make(C::UInt, 8);
    case DType::U16: return make(C::UInt, 16);
    case DType::U32: return make(C::UInt, 32);
    case DType::U64: return make(C::UInt, 64);
    case DType::I8: return make(C::Int, 8);
    case DType::I16: return make(C::Int, 16);
    case DType::I32: return make(C::Int, 32);
    case DType::I64: return make(C::Int, 64);
    case DType::F16: return make(C::Float, 16);
    case DType::BF16: return make(C::Bfloat, 16);
    case DType::F32: return make(C::Float, 32);
    default: return make(C::Float, 64);
  }
}

DType dtype_of(nb::dlpack::dtype d) {
  for (int t = 0; t <= static_cast<int>(DType::BF16); ++t) {
    const auto have = dlpack_of(static_cast<DType>(t));
    if (have.code == d.code && have.bits == d.bits && d.lanes == 1) return static_cast<DType>(t);
  }
  throw nb::type_error("this element type is not supported");
}

View view_of(const AnyArray& a) {
  if (a.ndim() > kMaxRank) throw nb::value_error("expected at most 8 axes");
  View v;
  v.data = static_cast<uint8_t*>(const_cast<void*>(a.data()));
  v.dtype = dtype_of(a.dtype());
  if (reinterpret_cast<uintptr_t>(v.data) % size_of(v.dtype)) throw nb::value_error("expected aligned numbers");
  v.rank = static_cast<int32_t>(a.ndim());
  for (int i = 0; i < v.rank; ++i) {
    v.shape[i] = static_cast<int64_t>(a.shape(i));
    v.stride[i] = a.stride(i) * size_of(v.dtype);
  }
  return v;
}

namespace {

// NumPy has no bfloat16; its arrays hold the bits as uint16.
nb::dlpack::dtype in_numpy(DType t) { return dlpack_of(t == DType::BF16 ? DType::U16 : t); }

}  // namespace

nb::object array_over(const View& v, nb::handle owner, bool writable) {
  size_t shape[kMaxRank];
  int64_t stride[kMaxRank];
  for (int i = 0; i < v.rank; ++i) {
    shape[i] = static_cast<size_t>(v.shape[i]);
    stride[i] = v.stride[i] / size_of(v.dtype);
  }
  if (writable) return nb::cast(nb::ndarray<nb::numpy>(v.data, v.rank, shape, owner, stride, in_numpy(v.dtype)));
  return nb::cast(nb::ndarray<nb::numpy, nb::ro>(v.data, v.rank, shape, owner, stride, in_numpy(v.dtype)));
}

PartsOfBlock::PartsOfBlock(uint8_t* data, size_t bytes, nb::handle owner) : data_(data), bytes_(bytes), owner_(owner) {}

nb::object PartsOfBlock::part(const View& v) {
  if (!block_.is_valid()) {
    View all;
    all.data = data_;
    all.dtype = DType::U8;
    all.rank = 1;
    all.shape[0] = static_cast<int64_t>(bytes_);
    all.set_contiguous_strides();
    block_ = array_over(all, owner_, true);
  }
  const auto begin = static_cast<Py_ssize_t>(v.data - data_);
  if (v.dtype == DType::U8 && v.rank == 1 && v.shape[0] > 0) {  // an empty slice would lose its address
    nb::object part = nb::steal(PySequence_GetSlice(block_.ptr(), begin, begin + static_cast<Py_ssize_t>(v.shape[0])));
    if (!part.is_valid()) throw nb::python_error();
    return part;
  }
  if (!dtype_.is_valid()) {
    nb::object first = array_over(v, owner_, true);
    dtype_ = first.attr("dtype");
    return first;
  }
  nb::list shape;
  for (int i = 0; i < v.rank; ++i) shape.append(v.shape[i]);
  return block_.type()(nb::tuple(shape), dtype_, block_, begin);
}

}  // namespace stoker
