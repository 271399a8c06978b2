// SPDX-License-Identifier: Apache-2.0
// The images of one recipe while it is made, and its steps by what they do.
#pragma once
#include <memory>
#include <vector>

#include "recipe.hpp"
#include "recipe_numbers.hpp"
#include "resample.hpp"

namespace stoker::recipe {

// Step i's image is image i. Their memory is the thread's.
class Images {
 public:
  Images(const Order& order, Bench& bench) : order_(order), bench_(bench) {}

  size_t count() const { return images_.size(); }
  View at(int64_t index) const;  // a copy: the list grows
  void push(const View& v) { images_.push_back(v); }
  void replace_last(const View& v) { images_.back() = v; }
  void skip_to(size_t count) { images_.resize(count); }  // nobody asks for those between

  // A new image, its pixels side by side; the next one of the list.
  View fresh(int64_t height, int64_t width, int64_t channels);
  View alike(const View& v) { return fresh(v.shape[0], v.shape[1], v.shape[2]); }
  // The same of floats.
  View fresh_floats(int64_t height, int64_t width, int64_t channels);
  View alike_floats(const View& v) { return fresh_floats(v.shape[0], v.shape[1], v.shape[2]); }
  // An image with its pixels side by side in a row; a copy in work(1) if they are not.
  View packed(const View& v);

  const Table& table(double index) const;
  // Where `count` elements of `item` bytes go: p says to which output, and which byte of it is the first.
  uint8_t* place(const double* p, int64_t count, int64_t item) const;
  Scratch& work(int which) { return bench_.work[which]; }

 private:
  const Order& order_;
  Bench& bench_;
  std::vector<View> images_;
};

// A gray image in three channels: the same bytes three times.
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

// What a step of resizing asks for.
struct Resizing {
  resample::Axis vertical, horizontal;
  resample::Order order;
  Resizing(const View& v, const double* p) {
    const int64_t height = side(p[0]), width = side(p[1]), filter = whole(p[6]);
    if (filter < 0 || filter > static_cast<int64_t>(resample::Filter::Hamming)) throw Bad{"an unknown filter"};
    const auto f = static_cast<resample::Filter>(filter);
    vertical = {v.shape[0], height, p[2], p[3], f, true};
    horizontal = {v.shape[1], width, p[4], p[5], f, true};
    order = p[7] != 0 ? resample::Order::HorizontalFirst : resample::Order::Pillow;
  }
};

// Each makes the image of a step that takes image `v`, with the numbers that follow; false if the step is another kind's.
bool make_shape(Images& images, Op op, const View& v, const double* p);   // recipe_shapes.cpp
bool make_values(Images& images, Op op, const View& v, const double* p);  // recipe_values.cpp
bool make_floats(Images& images, Op op, const View& v, const double* p);  // recipe_floats.cpp: of an image of floats

// Parts of steps that bytes and floats share.
View cropped(View v, const double* p);
View transposed(View v, const double* p);
void torch_resize_floats(Images& images, const View& v, const double* p, const View& out);
void torch_pick(Images& images, const View& v, const double* p, const View& out);
void torch_warp(const View& v, const double* p, const View& out);
void torch_grid(Images& images, const View& v, const double* p, const View& out);
void correlate(Images& images, const View& v, const double* p, bool products, const View& out);
// Bytes through a table of floats.
void to_floats(Images& images, const View& v, const double* p);

inline bool is_floats(const View& v) { return v.dtype == DType::F32; }

}  // namespace stoker::recipe
