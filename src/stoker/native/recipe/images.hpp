// SPDX-License-Identifier: Apache-2.0
// Images of one recipe during its materialization, and its steps by kind.
#pragma once
#include <memory>
#include <vector>

#include "recipe/numbers.hpp"
#include "recipe/recipe.hpp"
#include "recipe/verify.hpp"
#include "resample/resample.hpp"

namespace stoker::recipe {

// Images of one recipe; step i creates image i. Their memory belongs to the thread. The steps have been verified
// (recipe/verify.hpp): the images that they take exist with the required kind and size, and their numbers are in range.
class Images {
 public:
  Images(const RecipeBatch& batch, ThreadScratch& scratch) : batch_(batch), scratch_(scratch) {}

  size_t count() const { return images_.size(); }
  View at(int64_t index) const;  // a copy, because the list may be reallocated
  void push(const View& v) { images_.push_back(v); }
  void replace_last(const View& v) { images_.back() = v; }
  // No step takes the images in between.
  void skip_to(size_t count) { images_.resize(count); }

  // Append an image with contiguous pixels to the list and return it.
  View fresh(int64_t height, int64_t width, int64_t channels);
  View alike(const View& v) { return fresh(v.shape[0], v.shape[1], v.shape[2]); }
  // The same for floats.
  View fresh_floats(int64_t height, int64_t width, int64_t channels);
  View alike_floats(const View& v) { return fresh_floats(v.shape[0], v.shape[1], v.shape[2]); }
  // Return an image whose rows have contiguous pixels: the image itself or a copy in work(1).
  View packed(const View& v);

  const Table& table(double index) const;
  // Return the destination of an image: p has the number of the output and the offset of the first byte.
  uint8_t* place(const double* p) const;
  Scratch& work(int which) { return scratch_.work[which]; }
  torch_resize::ResizeCache& resizes() { return scratch_.resizes; }

 private:
  const RecipeBatch& batch_;
  ThreadScratch& scratch_;
  std::vector<View> images_;
};

// Return whether the image is a gray image in three channels, which all refer to the same bytes.
inline bool is_spread(const View& v) { return v.shape[2] == 3 && v.stride[2] == 0; }
inline View once(View v) {
  if (is_spread(v)) v.shape[2] = 1;
  return v;
}
inline View thrice(View v) {
  v.shape[2] = 3;
  v.stride[2] = 0;
  return v;
}

// Parameters of a resize step.
struct Resizing {
  resample::Axis vertical, horizontal;
  resample::Order order;
  Resizing(const View& v, const double* p) {
    const auto f = static_cast<resample::Filter>(p[6]);
    vertical = {v.shape[0], whole(p[0]), p[2], p[3], f, true};
    horizontal = {v.shape[1], whole(p[1]), p[4], p[5], f, true};
    order = p[7] != 0 ? resample::Order::HorizontalFirst : resample::Order::Pillow;
  }
};

// Each function creates the image of a step that takes image `v`, with the parameters `p`.
// Recipe/shapes.cpp; false: the step changes values.
bool make_shape(Images& images, Op op, const View& v, const double* p);
void make_values(Images& images, Op op, const View& v, const double* p);  // recipe/values.cpp
void make_floats(Images& images, Op op, const View& v, const double* p);  // recipe/floats.cpp: for an image of floats

// Parts of steps that bytes and floats share.
View cropped(View v, const double* p);
View transposed(View v, const double* p);
void torch_resize_floats(Images& images, const View& v, const double* p, const View& out);
void torch_pick(Images& images, const View& v, const double* p, const View& out);
void pad_into(const View& v, const double* p, const View& out);
void torch_warp(const View& v, const double* p, const View& out);
void torch_grid(Images& images, const View& v, const double* p, const View& out);
void correlate(Images& images, const View& v, const double* p, bool products, const View& out);
// Map bytes to floats by a table.
void to_floats(Images& images, const View& v, const double* p);

inline bool is_floats(const View& v) { return v.dtype == DType::F32; }

}  // namespace stoker::recipe
