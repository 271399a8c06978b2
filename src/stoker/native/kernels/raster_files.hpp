// SPDX-License-Identifier: Apache-2.0
// Parts of the kernels `peek` and `decode` for image files of all formats but JPEG.
#pragma once
#include <array>
#include <string>

#include "jpeg/jpeg.hpp"
#include "plan/plan.hpp"

namespace stoker::raster_files {

// Wanted form of an image.
struct Form {
  bool adjust;  // apply Exif's orientation
  jpeg::Format format;
  int scale_log2;
};

// Return whether a tensor holds a file of a kind that these functions decode.
bool is_file(const View& file);

// Set height, width and channels of the decoded image. `max_pixels`: limit of the stored size; 0: none.
Outcome peek(const Call& c, const Form& form, bool indices, uint64_t max_pixels, std::array<double, 3>& shape);

// Decode the window whose first row and column are the parameters 0 and 1 into output 0.
Outcome decode(const Call& c, const Form& form, bool indices);

// Error of an image with more pixels than the limit.
std::string too_many_pixels(uint64_t max_pixels, int32_t height, int32_t width);

// Error of a window that leaves the image.
std::string outside(const jpeg::Window& window, jpeg::Extent whole);

}  // namespace stoker::raster_files
