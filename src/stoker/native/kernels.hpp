// SPDX-License-Identifier: Apache-2.0
// The kernels a plan is made of. Each is a meaning of its own; what chains of them have in common is in the engine.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "jpeg.hpp"
#include "pixel.hpp"
#include "plan.hpp"

namespace stoker {

// ---- views: geometry without moving data ----

enum class ViewKind : uint8_t { Slice, Permute, Insert, Drop, Reshape };

// One change of a view. Parameters are indices into the call's parameters.
struct ViewOp {
  ViewKind kind;
  int32_t axis = 0;                       // Slice, Insert, Drop
  int32_t start = 0, step = 0, extent = 0;  // Slice: parameter indices
  std::vector<int32_t> list;              // Permute: axes; Reshape: parameter indices of the new extents
};

// False: the slice leaves the tensor, or the reshape needs a copy.
bool apply(const std::vector<ViewOp>& ops, const double* params, View* view);

std::shared_ptr<Kernel> make_view(std::vector<ViewOp> ops, bool may_copy);

// ---- stages: views -> at most one interpolating sample -> pixel program -> store through a view ----

enum class Sampler : uint8_t { None, Resample, Affine, ProjectNearest, ProjectLinear, ProjectCubic };
constexpr bool projects(Sampler s) { return s >= Sampler::ProjectNearest; }

struct StageSpec {
  Sampler sampler = Sampler::None;
  // Resample: y0 y1 x0 x1 filter_y filter_x antialias. Affine: m0..m5 linear has_fill fill.
  // Project...: m0..m7, a fill for each of four channels. Parameter indices.
  std::vector<int32_t> sampler_params;
  pixel::Program program;
  bool identity = false;                        // the program only copies: the sampler may store by itself
  std::vector<int32_t> uniforms;                // parameter indices
  std::vector<std::vector<ViewOp>> inputs;      // per input
  std::vector<std::vector<ViewOp>> outputs;     // per output: applied to its memory
};
std::shared_ptr<Kernel> make_stage(StageSpec spec);

// ---- sources, decoding ----

struct FileTable {
  std::string root;               // what all paths begin with
  std::string names;              // the rest of every path, each with a zero after it
  std::vector<uint64_t> offsets;  // count + 1
  size_t size() const { return offsets.size() - 1; }
  std::string path(size_t i) const { return root + (names.data() + offsets[i]); }
};
Outcome outside(const Call& call, uint64_t index, size_t size);  // the error of an index that is not below `size`
std::shared_ptr<Kernel> make_read(std::shared_ptr<const FileTable> table, int reader);
std::shared_ptr<Kernel> make_told_file();  // told_file.cpp
std::shared_ptr<Kernel> make_lookup(std::vector<int32_t> table, int reader);
std::shared_ptr<Kernel> make_index(int reader);
// Of pictures 1 / 2^scale_log2 as wide and high. What the native decoder leaves to another one goes to the twin.
std::shared_ptr<Kernel> make_peek(bool adjust_orientation, jpeg::Format format, int scale_log2);
std::shared_ptr<Kernel> make_decode(bool adjust_orientation, jpeg::Format format, int scale_log2);  // params: y0 x0

// ---- draws ----

enum class Distribution : uint8_t { Uniform, Normal, Coin, Values };

struct DrawSpec {
  Distribution distribution;
  uint32_t draw;
  bool own_seed = false;
  uint64_t seed = 0;
};
std::shared_ptr<Kernel> make_draw(DrawSpec spec);
std::shared_ptr<Kernel> make_choice(DrawSpec spec, bool has_weights);
// params: height width area0 area1 ratio0 ratio1; outputs: anchor and shape, int64 (y, x)
std::shared_ptr<Kernel> make_crop_window(DrawSpec spec, int attempts);

// ---- images: histograms, filters; reductions ----

// Which axes of a tensor are an image's; -1: there is none.
struct ImageAxes {
  int32_t frame, height, width, channel;
};
std::shared_ptr<Kernel> make_equalize(ImageAxes axes);
// inputs: image, weights, with a constant border; params: top left fill; border as in correlate.hpp
std::shared_ptr<Kernel> make_filter(ImageAxes axes, int border);
// params: sigma and odd size of the window, down and across
std::shared_ptr<Kernel> make_blur(ImageAxes axes);

// Over the axes whose bits are set; `op` and the order of sums as in reduce_fold.hpp, floats in double; params: ddof.
std::shared_ptr<Kernel> make_reduce(int op, uint32_t axes);

// ---- rows, small values ----

std::shared_ptr<Kernel> make_scalars();                      // output elements = parameters
std::shared_ptr<Kernel> make_constant(std::string bytes, std::vector<int64_t> shape);
std::shared_ptr<Kernel> make_select();                       // inputs: condition, then, else
std::shared_ptr<Kernel> make_other_row(int32_t value);       // inputs: row number; gives that row's `value`
std::shared_ptr<Kernel> make_python();                       // every row asks for its Python twin

// Writes x as dtype: half to even, saturating, NaN to 0.
void store_scalar(uint8_t* p, DType dtype, double x);

}  // namespace stoker
