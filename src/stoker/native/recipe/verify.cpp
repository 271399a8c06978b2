// SPDX-License-Identifier: Apache-2.0
#include "recipe/verify.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "filter/box_blur.hpp"
#include "recipe/arrange.hpp"
#include "shared/border.hpp"
#include "shared/resample_taps.hpp"
#include "torch/color.hpp"
#include "torch/products.hpp"

namespace stoker::recipe {

namespace {

constexpr int64_t kTransposes = 7;

void require(bool good, const char* why) {
  if (!good) throw InvalidRecipe{why};
}

// Check that x is an integer below `count`.
int64_t kind_of(double x, int64_t count, const char* why) {
  const int64_t kind = whole(x);
  require(kind >= 0 && kind < count, why);
  return kind;
}

void require_finite(const double* p, int count, const char* why) {
  require(std::all_of(p, p + count, [](double x) { return std::isfinite(x); }), why);
}

// ---- required inputs of steps ----

enum class Takes { File, Bytes, Floats, Either };

Takes takes(Op op) {
  switch (op) {
    case Op::Decode:
    case Op::Pixels: return Takes::File;
    case Op::Pointwise:
    case Op::FloatPad:
    case Op::Arrange:
    case Op::FloatContrast: return Takes::Floats;
    case Op::Crop:
    case Op::Transpose:
    case Op::PadEdges:
    case Op::Spread:
    case Op::Correlate:
    case Op::TorchProducts:
    case Op::Channels:
    case Op::Store:
    case Op::Patch:
    case Op::TorchResizeFloats:
    case Op::TorchPick:
    case Op::TorchLuma:
    case Op::TorchSaturate:
    case Op::TorchHue:
    case Op::TorchSharpen:
    case Op::TorchSharpenProducts:
    case Op::TorchAutocontrast:
    case Op::TorchWarp:
    case Op::TorchGrid: return Takes::Either;
    default: return Takes::Bytes;
  }
}

// Number of channels that a step requires; 0: one or three.
int64_t channels_taken(Op op) {
  switch (op) {
    case Op::Luma:
    case Op::Saturate:
    case Op::Hue:
    case Op::Channels:
    case Op::TorchLuma:
    case Op::TorchSaturate:
    case Op::TorchHue: return 3;
    case Op::Spread:
    case Op::TorchProducts:
    case Op::TorchSharpenProducts: return 1;
    default: return 0;
  }
}

class Verifier {
 public:
  Verifier(const std::vector<Table>& tables, const std::vector<Output>& outputs) : tables_(tables), outputs_(outputs) {}

  std::vector<Form> run(const std::vector<RecordedStep>& steps) {
    forms_.reserve(steps.size());
    for (const RecordedStep& step : steps) {
      const Form form = takes(step.op) == Takes::File ? begin(step) : after(step, taken(step));
      require(form.values() <= kMaxBytes / (form.floats ? 4 : 1), "an image larger than can be addressed");
      forms_.push_back(form);
    }
    return std::move(forms_);
  }

 private:
  const Form& image(int64_t i) const {
    require(i >= 0 && i < static_cast<int64_t>(forms_.size()), "a step from an image that is not there");
    return forms_[static_cast<size_t>(i)];
  }

  const Form& taken(const RecordedStep& step) const {
    const Form& form = image(step.from);
    const Takes wanted = takes(step.op);
    require(wanted != Takes::Bytes || !form.floats, "a step that does not take floats");
    require(wanted != Takes::Floats || form.floats, "a step that takes floats only");
    const int64_t channels = channels_taken(step.op);
    require(channels == 0 || form.channels == channels,
            channels == 1 ? "other than one channel, for a step that takes one" : "a step that takes three channels");
    return form;
  }

  const Table& table(double number) const {
    const int64_t i = whole(number);
    require(i >= 0 && i < static_cast<int64_t>(tables_.size()), "a table that is not there");
    return tables_[static_cast<size_t>(i)];
  }

  // Check a table of 256 elements for all channels or for each.
  void check_table(double number, const Form& form, int64_t item) const {
    const Table& t = table(number);
    require((item == 0 || t.item_bytes == item) && (t.channels == 1 || t.channels == form.channels),
            "a table of another kind");
  }

  static int64_t bytes_in(const Table& t) { return int64_t{t.channels} * t.item_bytes * 256; }

  // Check a destination of `bytes` bytes in an output, from the offset in `p` on.
  void check_place(const double* p, int64_t bytes, int64_t item) const {
    const int64_t output = whole(p[0]), first = whole(p[1]);
    require(output >= 0 && output < static_cast<int64_t>(outputs_.size()), "an output that is not there");
    const auto size = static_cast<int64_t>(outputs_[static_cast<size_t>(output)].size);
    require(first >= 0 && first % item == 0 && bytes <= size - first, "an image that does not fit into its output");
  }

  // ---- steps ----

  static Form window(const double* p, const Form& form, const char* why) {
    const int64_t x0 = whole(p[0]), y0 = whole(p[1]), x1 = whole(p[2]), y1 = whole(p[3]);
    require(x0 >= 0 && y0 >= 0 && x0 < x1 && y0 < y1 && x1 <= form.width && y1 <= form.height, why);
    return {y1 - y0, x1 - x0, form.channels, form.floats};
  }

  static Form begin(const RecordedStep& step) {
    require(step.from == -1, "a file that is taken from an image");
    const bool decoded = step.op == Op::Decode;
    const int64_t channels = whole(step.p[decoded ? 0 : 2]);
    require(channels == 1 || channels == 3, "neither one nor three channels");
    require(!decoded || step.p[5] == 0 || step.p[5] == 1, "leniency that is neither 0 nor 1");
    if (decoded) return window(step.p + 1, {kMaxSide, kMaxSide, channels}, "a window without pixels");
    require(step.p[3] == 0 || step.p[3] == 1 || (step.p[3] == 2 && channels == 3), "an unknown layout of pixels");
    return window(step.p + 4, {side(step.p[0]), side(step.p[1]), channels}, "a window that leaves the image");
  }

  static Form sized(Form form, const double* p) {
    form.height = side(p[0]);
    form.width = side(p[1]);
    return form;
  }

  Form after(const RecordedStep& step, Form form) const {
    const double* const p = step.p;
    switch (step.op) {
      case Op::Crop: return window(p, form, "a crop that leaves the image");
      case Op::Transpose: return transposed(form, p);
      case Op::Spread: form.channels = 3; return form;
      case Op::Luma: form.channels = 1; return form;
      case Op::TorchLuma: form.channels = 1; return form;
      case Op::Floats:
        check_table(p[0], form, 4);
        form.floats = true;
        return form;
      case Op::Resize:
      case Op::TorchResize:
      case Op::TorchResizeFloats:
      case Op::TorchPick: return resized(step, form);
      case Op::Affine:
      case Op::Project:
      case Op::TorchWarp:
      case Op::TorchGrid: return warped(step, form);
      case Op::Pad:
      case Op::FloatPad:
      case Op::PadEdges: return padded(step, form);
      case Op::StorePixels:
      case Op::Store:
      case Op::Patch: check_stored(step, form); return form;
      case Op::Map:
      case Op::Mix:
      case Op::Blend: check_tables(step, form); return form;
      case Op::Correlate:
      case Op::TorchProducts:
      case Op::Blur: check_filter(step); return form;
      case Op::Arrange: return arranged(step, form);
      default: check_color(step, form); return form;
    }
  }

  static Form transposed(Form form, const double* p) {
    const int64_t kind = kind_of(p[0], kTransposes, "an unknown transposition");
    if (kind == 2 || kind > 3) std::swap(form.height, form.width);
    return form;
  }

  static Form resized(const RecordedStep& step, const Form& form) {
    const double* const p = step.p;
    if (step.op == Op::Resize) {
      kind_of(p[6], static_cast<int64_t>(resample::Filter::Hamming) + 1, "an unknown filter");
      require_finite(p + 2, 4, "a region that is not finite");
    } else if (step.op == Op::TorchResize) {
      filter_of(p[2], p[3] != 0);
    } else if (step.op == Op::TorchResizeFloats) {
      way_of(p[2], p[3]);
    }
    return sized(form, p);
  }

  Form warped(const RecordedStep& step, const Form& form) const {
    const double* const p = step.p;
    const Form out = sized(form, p);
    if (step.op == Op::Affine) {
      require_finite(p + 2, 6, "a matrix that is not finite");
      for (int c = 0; c < 3; ++c) byte(p[9 + c]);
    } else if (step.op == Op::Project) {
      const bool projective = p[10] != 0;
      const int64_t sampling = kind_of(p[11], 3, "an unknown interpolation");
      require(projective || sampling != 0, "an unknown interpolation");
      require_finite(p + 2, projective ? 8 : 6, "a matrix that is not finite");
      for (int c = 0; c < 3; ++c) byte(p[12 + c]);
    } else if (step.op == Op::TorchGrid) {
      const Table& points = table(p[7]);
      require(bytes_in(points) >= out.height * out.width * 8 &&
                  reinterpret_cast<uintptr_t>(points.data) % sizeof(float) == 0,
              "a grid of another size");
    }
    return out;
  }

  static Form padded(const RecordedStep& step, const Form& form) {
    const double* const p = step.p;
    const Form out = sized(form, p + 2);
    const int64_t left = whole(p[0]), top = whole(p[1]);
    if (step.op == Op::PadEdges) {
      kind_of(p[4], static_cast<int64_t>(Border::Constant), "an unknown border");
      return out;
    }
    require(left >= 0 && top >= 0 && left + form.width <= out.width && top + form.height <= out.height,
            "an image that does not fit into its frame");
    for (int c = 0; c < 3 && step.op == Op::Pad; ++c) byte(p[4 + c]);
    return out;
  }

  static Form arranged(const RecordedStep& step, const Form& form) {
    const int64_t copies = count_copies(step.p, form.height, form.width, form.channels);
    require(copies <= kMaxBytes / form.bytes(), "an image larger than can be addressed");
    return {form.height, form.width * form.channels * copies, 1, true};
  }

  void check_stored(const RecordedStep& step, const Form& form) const {
    const double* const p = step.p;
    if (step.op == Op::StorePixels) return check_place(p, form.bytes(), 1);
    if (step.op == Op::Patch) {
      const Patch patch = patch_of(p);
      check_place(p, patch.bytes(), 1);
      return require(bytes_in(table(p[12])) >= patch.values() * patch.item, "a patch of another size");
    }
    if (whole(p[2]) < 0) return check_place(p, form.bytes(), form.floats ? 4 : 1);
    require(!form.floats, "a table of another kind");
    check_table(p[2], form, 0);
    const int64_t item = table(p[2]).item_bytes;
    check_place(p, form.values() * item, item);
  }

  void check_other(double number, const Form& form) const {
    const Form& other = image(whole(number));
    require(!other.floats, "a mixture of bytes and floats");
    require(other.height == form.height && other.width == form.width && other.channels == form.channels,
            "a mixture of images of different sizes");
  }

  void check_tables(const RecordedStep& step, const Form& form) const {
    const double* const p = step.p;
    if (step.op == Op::Map) return check_table(p[0], form, 1);
    if (step.op == Op::Mix) {
      require(whole(p[0]) >= 1 && whole(p[0]) % 2 == 1, "a mixture that ends early");
      check_table(p[1], form, 4);
      for (int64_t i = 3; i < step.count; i += 2) check_table(p[i], form, 4);
    }
    each_other_image(step, [&](double number) { check_other(number, form); });
  }

  static void check_filter(const RecordedStep& step) {
    const double* const p = step.p;
    if (step.op == Op::Blur) {
      const int64_t passes = whole(p[2]);
      require(passes >= 1 && passes <= kMaxPasses, "a blur without passes, or with too many");
      for (int i = 0; i < 2; ++i) require_radius(radius_of(p, i));
      return;
    }
    const int64_t count = step.count - 1;
    require(count >= 3, "a filter of another size");
    const int64_t height = side(p[1]), width = side(p[2]);
    require(height <= count && width <= count && height * width == count - 2, "a filter of another size");
    require(step.op == Op::Correlate || count - 2 <= torch_products::kMaxWeights, "a filter of another size");
  }

  static void require_radius(float radius) {
    require(radius >= 0 && radius <= box_blur::kMaxRadius, "a blur of that radius");
  }

  static void check_color(const RecordedStep& step, const Form& form) {
    const double* const p = step.p;
    switch (step.op) {
      case Op::Hue: byte(p[0]); return;
      case Op::TorchHue: return require(std::fabs(p[1]) <= 0.5, "a hue that turns by more than half a circle");
      case Op::Channels:
        for (int c = 0; c < 3; ++c) kind_of(p[c], 3, "a channel that is not there");
        return;
      case Op::TorchSharpen:
      case Op::TorchSharpenProducts: return require(form.height >= 3 && form.width >= 3, "an image without an inside");
      case Op::TorchContrast:
        return require(torch_color::can_sum(form.height * form.width, order_of(p + 2)), "a mean that is not exact");
      case Op::FloatContrast:
        require(order_of(p + 2).valid(), "a sum in an unknown order");
        return require(whole(p[4]) >= 1, "blocks without values");
      case Op::Pointwise:
        require(whole(p[0]) % 4 == 0, "operations that end early");
        for (int64_t at = 1; at < step.count; at += 4)
          kind_of(p[at], static_cast<int64_t>(Pointwise::kCount), "an unknown operation");
        return;
      case Op::Contrast:
      case Op::Saturate:
      case Op::Autocontrast:
      case Op::Equalize:
      case Op::Sharpen:
      case Op::TorchSaturate:
      case Op::TorchAutocontrast:
      case Op::TorchEqualize: return;
      default: throw InvalidRecipe{"an unknown step"};
    }
  }

  const std::vector<Table>& tables_;
  const std::vector<Output>& outputs_;
  std::vector<Form> forms_;
};

}  // namespace

std::vector<Form> verify(const std::vector<RecordedStep>& steps, const std::vector<Table>& tables,
                         const std::vector<Output>& outputs) {
  return Verifier(tables, outputs).run(steps);
}

}  // namespace stoker::recipe
