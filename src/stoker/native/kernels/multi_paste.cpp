// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>

#include "base/copy_view.hpp"
#include "base/whole.hpp"
#include "kernels/registry.hpp"
#include "kernels/store_scalar.hpp"
#include "plan/check.hpp"

namespace stoker {

namespace {

// Inputs: an image for each region, [H,W,C] or [F,H,W,C]. Parameters: the value outside of all regions; for each region
// its first row and column in the image, height and width, first row and column in the canvas. Later regions win.
class MultiPaste : public Kernel {
 public:
  explicit MultiPaste(int regions) : regions_(regions) {}
  Ports ports() const override {
    Ports ports{.kernel = "multi_paste", .out = {{.same_type = 0, .same_rank = 0}}, .params = 1 + 6 * regions_};
    for (int i = 0; i < regions_; ++i)
      ports.in.push_back({.least_rank = 3, .most_rank = 4, .same_type = 0, .same_rank = 0});
    return ports;
  }
  bool fits(const Call& c) const override {
    const View& out = *c.out[0];
    const int rank = out.rank;
    for (int i = 0; i < regions_; ++i) {
      const View& in = *c.in[i];
      if (in.shape[rank - 1] != out.shape[rank - 1] || (rank == 4 && in.shape[0] != out.shape[0])) {
        *c.error = "expected images with as many frames and channels as the canvas";
        return false;
      }
      const Region r(c.params + 1 + 6 * i);
      if (!is_within(r.from_y, r.height, in.shape[rank - 3]) || !is_within(r.from_x, r.width, in.shape[rank - 2]) ||
          !is_within(r.to_y, r.height, out.shape[rank - 3]) || !is_within(r.to_x, r.width, out.shape[rank - 2])) {
        *c.error = "expected regions within the image and the canvas, got another one in region " + std::to_string(i);
        return false;
      }
    }
    return true;
  }
  Outcome run(const Call& c) const override {
    const View& out = *c.out[0];
    const int64_t item = size_of(out.dtype);
    uint8_t value[8] = {};
    store_scalar(value, out.dtype, c.params[0]);
    fill(out.data, value, item, out.elements());
    const int axis = out.rank - 3;
    for (int64_t frame = 0; frame < (axis ? out.shape[0] : 1); ++frame)
      for (int i = 0; i < regions_; ++i) {
        const Region r(c.params + 1 + 6 * i);
        const View& in = *c.in[i];
        View row = in;  // a row of the region: [W,C]
        row.rank = 2;
        row.shape[0] = r.width;
        row.shape[1] = in.shape[axis + 2];
        row.stride[0] = in.stride[axis + 1];
        row.stride[1] = in.stride[axis + 2];
        const int64_t width = out.shape[axis + 1], bytes = item * out.shape[axis + 2];
        for (int64_t y = 0; y < r.height; ++y) {
          row.data = in.data + (axis ? frame * in.stride[0] : 0) + (r.from_y + y) * in.stride[axis] +
                     r.from_x * in.stride[axis + 1];
          copy_contiguous(row, out.data + ((frame * out.shape[axis] + r.to_y + y) * width + r.to_x) * bytes);
        }
      }
    return Outcome::Ok;
  }

 private:
  struct Region {
    int64_t from_y, from_x, height, width, to_y, to_x;
    explicit Region(const double* p)
        : from_y(offset_of(p[0])),
          from_x(offset_of(p[1])),
          height(offset_of(p[2])),
          width(offset_of(p[3])),
          to_y(offset_of(p[4])),
          to_x(offset_of(p[5])) {}
  };
  static bool is_within(int64_t begin, int64_t count, int64_t extent) {
    return begin >= 0 && count >= 0 && begin <= extent && count <= extent - begin;
  }
  static void fill(uint8_t* to, const uint8_t* value, int64_t item, int64_t count) {
    if (count == 0) return;
    if (item == 1) {
      std::memset(to, value[0], static_cast<size_t>(count));
      return;
    }
    std::memcpy(to, value, static_cast<size_t>(item));
    for (int64_t done = 1; done < count; done *= 2)
      std::memcpy(to + done * item, to, static_cast<size_t>(std::min(done, count - done) * item));
  }
  int regions_;
};

std::shared_ptr<Kernel> make_multi_paste(int regions) {
  if (regions < 1 || regions > kMaxStepInputs) throw std::invalid_argument("expected 1 to 64 regions");
  return std::make_shared<MultiPaste>(regions);
}

const Registered kMultiPaste{"multi_paste",
                             "Regions of images, pasted onto a canvas in turn.",
                             make_multi_paste,
                             {{"regions", "as many as images"}}};

}  // namespace

}  // namespace stoker
