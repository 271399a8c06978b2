// SPDX-License-Identifier: Apache-2.0
// Builder of a row's descriptor from its steps; see recipe_described.hpp.
#pragma once
#include <algorithm>
#include <new>
#include <vector>

#include "gpu_kernels/recipe_buffers.hpp"
#include "gpu_kernels/recipe_described.hpp"

namespace stoker::recipe::gpu {

// Location of an image: `map.data` is an offset into the buffer.
struct Image {
  Bitmap map;
  int buffer;
};

inline uint64_t address_of(const void* p) { return reinterpret_cast<uintptr_t>(p); }

// For each step of a recipe: validate its numbers, then append the kernel's step, if it needs one, and its image.
class Description {
 public:
  Description(const std::vector<RecordedStep>& steps, const View& image, const std::vector<Table>& tables,
              const std::vector<View*>& outputs, stoker::gpu::RowMemory& memory);
  Row row() const { return row_; }

 private:
  template <class T>
  T* sent(size_t count, uint64_t* address) {
    uint8_t* host = memory_.allocate_host(std::max<size_t>(count * sizeof(T), 1));
    *address = memory_.device_address(host);
    return new (host) T[count]{};
  }

  Image image(double number) const;
  Step& step(const Image& from);
  void make(Step& s, int64_t height, int64_t width, int64_t channels);
  void alike(Step& s);
  void work_in(Step& s, int buffer, int64_t bytes);
  const Table& table(double number) const;
  void moved(Image& image, int64_t bytes);

  void begin(const View& v);
  void begin(const View& v, const double* p);
  void add(const RecordedStep& w);

  // Views, sizes and warps: recipe_described_shapes.cpp.
  void crop(Image v, const double* p);
  void transpose(Image v, const double* p);
  void spread(Image v);
  void resizing(Op op, const Image& from, const double* p);
  void resize(Step& s, int64_t height, int64_t width, const double* p);
  void torch_resize(Step& s, int64_t height, int64_t width, const double* p);
  void torch_resize_floats(Step& s, int64_t height, int64_t width, const double* p);
  void warp(Op op, const Image& from, const double* p);
  static void finite(const double* m, int count);
  static void affine(Step& s, int64_t height, int64_t width, const double* p);
  static void project(Step& s, const double* p);
  void torch_grid(Step& s, int64_t height, int64_t width, const double* p);

  // Edges, values and colours: recipe_described_values.cpp.
  void pad(const Image& from, const double* p, bool constant);
  void map(const Image& from, const double* p);
  void correlate(const Image& from, const double* p);
  void blur(const Image& from, const double* p);
  void mix(const Image& from, const double* p);
  void blend(const Image& from, const double* p);
  static void check_alike(const Image& other, const Image& from);
  void color(const RecordedStep& w, const Image& from);
  static void check_color(const RecordedStep& w, Step& s);

  uint8_t* output(const double* p, int64_t bytes, int64_t item) const;
  void store(const Image& from, const double* p);
  void patch(const Image& from, const double* p);

  const std::vector<RecordedStep>& steps_;
  const std::vector<Table>& tables_;
  const std::vector<View*>& outputs_;
  stoker::gpu::RowMemory& memory_;
  const std::vector<size_t> last_;
  Buffers buffers_;
  std::vector<Image> images_;
  Step* steps_out_ = nullptr;
  Row row_{};
  size_t now_ = 0;
};

}  // namespace stoker::recipe::gpu
