// SPDX-License-Identifier: Apache-2.0
// Pooling of regions of interest, with the bits of torchvision's CPU kernels.
//
// Features are (N, C, H, W), F32 or F64 with any strides; regions (K, 5) of the same type: the number of the feature
// map, x0, y0, x1, y1. Results are (K, C, height, width) with any strides. The kernels work on features whose channels
// are neighbours: other ones are transposed. Sums have a fixed order, also those of gradients.
#pragma once
#include <cstdint>
#include <string>

#include "base/tensor.hpp"
#include "shared/roi_region.hpp"

namespace stoker::detect {

constexpr int kRoiAreas = 4;  // areas of scratch memory that a call uses

enum class Pool : int32_t { Average = 0, Maximum = 1 };

struct RoiAlign : roi::Rule {
  Pool pool = Pool::Average;
};

// Return whether all regions can be pooled; else set `error`: numbers of feature maps that do not exist, coordinates that
// are not finite, regions with too many samples. Reads the elements of `regions`.
bool can_align(const View& features, const View& regions, const RoiAlign& rule, std::string& error);
bool can_pool(const View& features, const View& regions, double scale, std::string& error);

// `chosen` (I32, with the extents of the output and any strides; null, or Pool::Maximum): the number of the sample in its
// bin that is the maximum, -1 without samples.
void roi_align(const View& features, const View& regions, const RoiAlign& rule, const View& out, const View* chosen,
               Scratch* scratch);
// Write the gradient of the features (contiguous). `gradient` is that of the output, with any strides.
void roi_align_backward(const View& gradient, const View& regions, const View* chosen, const RoiAlign& rule,
                        const View& features_gradient, Scratch* scratch);

// Maximum of the pixels of each bin. `chosen` (I32, contiguous): the number of that pixel in its map, or -1; may be null.
void roi_pool(const View& features, const View& regions, double scale, const View& out, const View* chosen,
              Scratch* scratch);
void roi_pool_backward(const View& gradient, const View& regions, const View& chosen, const View& features_gradient);

}  // namespace stoker::detect
