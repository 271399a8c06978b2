// SPDX-License-Identifier: Apache-2.0
// DLPack's C interface between libraries (`DLPackExchangeAPI`, version 1.3), as far as it is needed to read arrays: an
// array's properties, and the stream on which its owner works, without the Python calls and events of `__dlpack__`.
// https://dmlc.github.io/dlpack/latest/c_api.html
#pragma once
#include <cstdint>

namespace stoker::dlpack {

inline constexpr const char* kCapsule = "dlpack_exchange_api";          // the capsule's name,
inline constexpr const char* kAttribute = "__dlpack_c_exchange_api__";  // and the type's attribute that holds it
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
  void* not_used[3];         // functions that allocate tensors and pass them on
  // Reads a PyObject, which keeps the data alive; may be null. A non-zero result means that Python's error is set.
  int (*read)(void* object, Tensor* out);
  int (*current_stream)(int32_t device_kind, int32_t device_number, void** out);
};

}  // namespace stoker::dlpack
