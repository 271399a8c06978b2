// SPDX-License-Identifier: Apache-2.0
// Suppression of overlapping boxes.
//
// Boxes are (N, 4): x0, y0, x1, y1, of F32 or F64, with scores of the same type and with any strides. Rotated boxes are
// (N, 5): the centre's x and y, width, height, and the angle in degrees. Labels are I64; boxes of different labels never
// suppress each other. N is below 2**31. The results are those of torchvision's CPU kernels, bit for bit: boxes are
// visited by descending score, NaN first, equal scores by ascending number; overlaps are computed in the boxes' type and
// compared with the threshold in double.
#pragma once
#include <cstdint>

#include "base/tensor.hpp"

namespace stoker::detect {

constexpr int kNmsAreas = 2;  // areas of scratch memory that a call uses

// Write the numbers of the kept boxes by descending score, at most `most`; return their count. `labels` may be null.
int64_t nms(const View& boxes, const View& scores, const View* labels, double threshold, int64_t most, int64_t* keep,
            Scratch* scratch);

enum class Decay : int32_t { Linear = 0, Gaussian = 1 };

struct SoftRule {
  Decay decay = Decay::Linear;
  double threshold = 0.5;  // linear: overlaps above it decay the score by 1 - IoU
  double sigma = 0.5;      // Gaussian: exp(-IoU**2 / sigma)
  double least = 0.001;    // boxes whose score is lower (or NaN) are dropped
};

// Write the numbers of the boxes in the order in which they are selected, and their decayed scores (of the boxes' type);
// return their count. The box with the highest remaining score is selected, of equal ones that of the lowest number.
int64_t soft_nms(const View& boxes, const View& scores, const View* labels, const SoftRule& rule, int64_t most,
                 int64_t* keep, uint8_t* decayed, Scratch* scratch);

// The same as `nms` for rotated boxes. Overlaps are computed in double.
int64_t nms_rotated(const View& boxes, const View& scores, const View* labels, double threshold, int64_t most,
                    int64_t* keep, Scratch* scratch);

// Order of visit: numbers of the scores, which are F32 or F64. `spare` has room for `n` numbers too, `keys` for 2 n.
void order_by_score(const View& scores, uint32_t* order, uint32_t* spare, uint64_t* keys);

}  // namespace stoker::detect
