// SPDX-License-Identifier: Apache-2.0
// All kernels of the JPEG decoder.
#pragma once
#include "jpeg_entropy.cuh"
#include "jpeg_pixels.cuh"
#include "jpeg_transform.cuh"
#include "jpeg_unstuff.cuh"
