// SPDX-License-Identifier: Apache-2.0
// All kernels of the JPEG decoder.
#pragma once
#include "device/jpeg_begin.cuh"
#include "device/jpeg_entropy.cuh"
#include "device/jpeg_pixels.cuh"
#include "device/jpeg_pixels_f32.cuh"
#include "device/jpeg_pixels_u16.cuh"
#include "device/jpeg_spread.cuh"
#include "device/jpeg_transform.cuh"
