// SPDX-License-Identifier: Apache-2.0
// DLPack's interface between libraries in C (`DLPackExchangeAPI`, version 1.3), as far as arrays are read through it: what
// an array is, and on which stream its owner works, without the Python calls and events that `__dlpack__` costs.
// https://dmlc.github.io/dlpack/latest/c_api.html
#pragma once
#include <cstdint>

namespace stoker::dlpack {

inline constexpr const char* kCapsule = "dlpack_exchange_api";       // the capsule's name,
inline constexpr const char* kAttribute = "__dlpack_c_exchange_api__";  // and where a type has it
constexpr uint32_t kMajor = 1;
constexpr int32_t kCuda = 2, kManaged = 13;  // kinds of devices

struct Tensor {
  void* data;
  int32_t device_kind, device_number;
  int32_t rank;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t* shape;
  int64_t* strides;  // in elements; null: contiguous
  uint64_t byte_offset;
};

struct Exchange {
  uint32_t major, minor;
  const Exchange* previous;  // of an earlier version
  void* not_used[3];         // what allocates tensors and hands them over
  int (*read)(void* object, Tensor* out);  // of a PyObject, which keeps what is shown; may be null. Not 0: Python's error is set
  int (*current_stream)(int32_t device_kind, int32_t device_number, void** out);
};

}  // namespace stoker::dlpack
