// SPDX-License-Identifier: Apache-2.0
// Elements of tensors of boxes, scores and labels with any strides.
#pragma once
#include "device/own.cuh"

namespace stoker::own {

template <class T>
inline T number_at(const Port& port, int64_t i) {
  return *reinterpret_cast<const T*>(reinterpret_cast<const uint8_t*>(port.data) + i * port.stride[0]);
}
template <class T>
inline T number_at(const Port& port, int64_t i, int k) {
  return *reinterpret_cast<const T*>(reinterpret_cast<const uint8_t*>(port.data) + i * port.stride[0] +
                                     k * port.stride[1]);
}

}  // namespace stoker::own
