// SPDX-License-Identifier: Apache-2.0
// Compares the vector forms of image operations with the plain ones: resampling with every filter and element type,
// warps, blurs, filters, torch's resizing and colors, on random and extreme images of unusual sizes. tests/native/neon.sh
// runs it on an emulated 64-bit Arm, and compares its digest with this machine's.
#include "base/elements.hpp"
#include "filter/box_blur.hpp"
#include "filter/correlate.hpp"
#include "kernel_values.hpp"
#include "reduce/columns.hpp"
#include "resample/resample.hpp"
#include "torch/color.hpp"
#include "torch/float_color.hpp"
#include "torch/resize.hpp"
#include "torch/resize_float.hpp"
#include "torch/warp.hpp"
#include "warp/project.hpp"
#include "warp/warp.hpp"

namespace {

using namespace kernel_check;  // NOLINT: a program of one file
using namespace stoker;        // NOLINT

int64_t compared = 0;

// A row-padded image that owns its memory. Braces guarantee that random arguments are drawn in order on every machine.
class Picture {
 public:
  Picture(DType dtype, int64_t height, int64_t width, int64_t channels, int64_t padding = 0) {
    view_.dtype = dtype;
    view_.rank = 3;
    view_.shape[0] = height;
    view_.shape[1] = width;
    view_.shape[2] = channels;
    view_.stride[2] = size_of(dtype);
    view_.stride[1] = channels * size_of(dtype);
    view_.stride[0] = width * view_.stride[1] + padding * size_of(dtype);
    bytes_.assign(static_cast<size_t>(height * view_.stride[0]) + 8, 77);
    view_.data = bytes_.data();
  }
  Picture(const Picture&) = delete;
  const View& view() const { return view_; }
  // The processor chooses which of two NaNs a sum keeps, and the sign of a new one.
  std::vector<uint8_t> without_nan_bits() const {
    std::vector<uint8_t> bytes = bytes_;
    with_type(view_.dtype, [&]<class T>(T) {
      if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, float>)
        for (size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T)) {
          const double number = number_of(load_element<T>(&bytes[i]));
          if (number != number) std::memset(&bytes[i], 0xFF, sizeof(T));
        }
    });
    return bytes;
  }

  void randomize() {
    const bool extreme = below(3) == 0;
    with_type(view_.dtype, [&]<class T>(T) {
      for (size_t i = 0; i + sizeof(T) <= bytes_.size(); i += sizeof(T)) {
        T value{};
        if constexpr (std::is_same_v<T, float>) value = static_cast<float>(below(60001)) / 100.0f - 200.0f;
        if constexpr (std::is_same_v<T, Half>) value.bits = random_value<uint16_t>();
        if constexpr (std::is_integral_v<T>)
          value = below(2) ? std::numeric_limits<T>::max() : std::numeric_limits<T>::min();
        if constexpr (std::is_arithmetic_v<T>)
          if (std::is_floating_point_v<T> ? extreme : !extreme || below(2)) value = random_value<T>();
        store_element<T>(&bytes_[i], value);
      }
    });
  }

 private:
  View view_;
  std::vector<uint8_t> bytes_;
};

std::string name_of(DType dtype) { return std::to_string(static_cast<int>(dtype)); }

int64_t some_size(int most) { return 1 + below(below(4) ? most : 9); }

// Runs `operation` into two images of the same layout, plainly and with `isa`. Bytes between rows must not change.
template <class Operation>
void compare(Isa isa, const std::string& name, DType dtype, int64_t height, int64_t width, int64_t channels,
             Operation&& operation) {
  const int64_t padding = below(3);
  Picture plain(dtype, height, width, channels, padding), fast(dtype, height, width, channels, padding);
  isa_setting() = Isa::Plain;
  const bool known = operation(plain.view());
  isa_setting() = isa;
  if (operation(fast.view()) != known) {
    ++failures;
    std::printf("refused by one form: %s\n", name.c_str());
  }
  const std::vector<uint8_t> wanted = plain.without_nan_bits(), found = fast.without_nan_bits();
  expect_same(wanted.data(), found.data(), static_cast<int>(wanted.size()), name);
  ++compared;
}

constexpr DType kSampled[] = {DType::U8, DType::U8, DType::U16, DType::I16, DType::I32, DType::F32};

void check_resample(Isa isa) {
  const DType dtype = kSampled[below(6)];
  const int64_t channels = 1 + below(below(3) ? 4 : 9);
  Picture src{dtype, some_size(40), some_size(60), channels, below(5)};
  src.randomize();
  const auto axis = [&](int64_t size, int64_t out, resample::Filter filter, bool antialias) {
    double lo = 0, hi = static_cast<double>(size);
    if (below(2)) {
      lo = static_cast<double>(below(1000)) / 2000.0 * hi;
      hi -= static_cast<double>(below(1000)) / 2500.0 * (hi - lo);
    }
    if (below(4) == 0) std::swap(lo, hi);
    return resample::Axis{size, out, lo, hi, filter, antialias};
  };
  const auto filter = static_cast<resample::Filter>(below(8));
  const bool antialias = below(4) != 0;
  const int64_t height = some_size(40), width = some_size(60);
  const auto v = axis(src.view().shape[0], height, filter, antialias);
  const auto h = axis(src.view().shape[1], width, filter, antialias);
  const auto order = below(2) ? resample::Order::Pillow : resample::Order::HorizontalFirst;
  const std::string name = "resample " + name_of(dtype) + " filter " + std::to_string(static_cast<int>(filter));
  compare(isa, name, dtype, height, width, channels, [&](const View& dst) {
    Scratch scratch;
    return resample::resample_into(src.view(), v, h, dst, scratch, order);
  });
}

double coefficient() { return static_cast<double>(below(4001) - 2000) / 900.0; }

void check_warp(Isa isa) {
  const DType dtype = kSampled[below(6)];
  const int64_t channels = 1 + below(4);
  Picture src{dtype, some_size(40), some_size(40), channels, below(3)};
  src.randomize();
  const int64_t height = some_size(30), width = some_size(80);
  double m[8] = {coefficient(), coefficient(),      coefficient() * 20, coefficient(),
                 coefficient(), coefficient() * 20, coefficient() / 50, coefficient() / 50};
  if (below(3) == 0) m[1] = m[3] = 0;
  const bool linear = below(2), has_fill = below(2);
  const double fill[4] = {coefficient() * 100, 7, 255, 1e9};
  const std::string name = std::string("affine ") + (linear ? "linear " : "nearest ") + name_of(dtype);
  compare(isa, name, dtype, height, width, channels, [&](const View& dst) {
    Scratch scratch;
    return warp::affine(src.view(), m, linear, has_fill ? fill : nullptr, 1, dst, scratch);
  });
  const uint8_t fill_bytes[4] = {1, 2, 3, 4};
  const auto sampling = static_cast<warp::Sampling>(below(3));
  const bool projective = below(2);
  compare(isa, "project", dtype, height, width, channels,
          [&](const View& dst) { return warp::project(src.view(), m, projective, sampling, fill_bytes, dst); });
}

void check_filters(Isa isa) {
  const int64_t height = some_size(30), width = some_size(150), channels = 1 + below(4);
  Picture bytes{DType::U8, height, width, channels, below(3)};
  bytes.randomize();
  const float across = static_cast<float>(below(900)) / 100.0f, down = static_cast<float>(below(900)) / 100.0f;
  const int passes = 1 + below(3);
  compare(isa, "box blur", DType::U8, height, width, channels, [&](const View& dst) {
    Scratch scratch;
    return box_blur::blur(bytes.view(), across, down, passes, dst, scratch);
  });
  constexpr DType kFiltered[] = {DType::U8, DType::I8, DType::U16, DType::I16, DType::F16, DType::F32};
  const DType from = kFiltered[below(6)], to = kFiltered[below(6)];
  Picture src{from, height, width, channels};
  src.randomize();
  float weights[49];
  for (float& w : weights) w = static_cast<float>(below(2001) - 1000) / 700.0f;
  const correlate::Window window{weights, 1 + below(7), 1 + below(7), below(7), below(7), static_cast<Border>(below(5)),
                                 3.5f,    below(2) == 0};
  compare(isa, "correlate", to, height, width, channels, [&](const View& dst) {
    Scratch scratch;
    return correlate::correlate(src.view(), window, dst, scratch);
  });
}

void check_torch(Isa isa) {
  const bool floats = below(2);
  const DType dtype = floats ? DType::F32 : DType::U8;
  const int64_t channels = below(3) ? 3 : 1;
  Picture src{dtype, some_size(40), some_size(60), channels};
  src.randomize();
  const int64_t height = some_size(40), width = some_size(60);
  const auto filter = static_cast<torch_resize::Filter>(below(3));
  const bool smooth = below(2);
  compare(isa, "torch resize", dtype, height, width, channels, [&](const View& dst) {
    Scratch scratch;
    torch_resize::ResizeCache cache;
    return torch_resize::resize(src.view(), filter, smooth, dst, cache, scratch);
  });
  const int64_t x0 = below(static_cast<uint32_t>(width)), y0 = below(static_cast<uint32_t>(height));
  const torch_resize::Resize part(
      {src.view().shape[0], src.view().shape[1], channels, filter, smooth, height, width, {x0, y0, width, height}});
  compare(isa, "torch resize of a window", dtype, height - y0, width - x0, channels, [&](const View& dst) {
    Scratch scratch;
    const torch_resize::Region& needed = part.needed();
    View from = src.view();
    from.data += needed.y0 * from.stride[0] + needed.x0 * from.stride[1];
    from.shape[0] = needed.y1 - needed.y0;
    from.shape[1] = needed.x1 - needed.x0;
    View to = dst;
    const auto take = [](void* view, int64_t first, int64_t last, const uint8_t* pixels, int64_t pitch) {
      const View& out = *static_cast<View*>(view);
      for (int64_t y = first; y < last; ++y, pixels += pitch)
        std::memcpy(out.data + y * out.stride[0], pixels, static_cast<size_t>(out.shape[1] * out.shape[2]));
    };
    return part.run(from, {take, &to}, scratch);
  });
  const auto way = static_cast<torch_resize::Way>(below(4));
  const std::string name = "torch resize in floats " + std::to_string(static_cast<int>(way)) + " " + name_of(dtype);
  compare(isa, name, dtype, height, width, channels, [&](const View& dst) {
    Scratch scratch;
    return torch_resize::resize_in_floats(src.view(), filter, way, dst, scratch);
  });
  torch_warp::Grid grid{};
  for (float& v : grid.m) v = static_cast<float>(coefficient());
  grid.m[6] = grid.m[7] = 0.01f * static_cast<float>(below(20));
  grid.projective = below(2);
  if (!grid.projective)  // from pixels to -1..1
    for (const int i : {0, 1, 3, 4}) grid.m[i] /= static_cast<float>(width);
  torch_warp::Fill fill{below(2) == 0, {3.0f, 250.0f, -1.0f}, below(2) == 0};
  const bool linear = below(3) != 0;
  compare(isa, linear ? "torch warp linear" : "torch warp", dtype, height, width, channels,
          [&](const View& dst) { return torch_warp::sample(src.view(), grid, linear, fill, dst); });
}

void check_colors(Isa isa) {
  const bool floats = below(2), products = below(2);
  const DType dtype = floats ? DType::F32 : DType::U8;
  const auto generation = below(2) ? torch_color::Generation::First : torch_color::Generation::Second;
  const int64_t height = 3 + below(20), width = 3 + below(90), channels = products ? 1 : 3;
  Picture src{dtype, height, width, channels};
  src.randomize();
  const double factor = static_cast<double>(below(300)) / 100.0;
  compare(isa, floats ? "torch sharpness of floats" : "torch sharpness", dtype, height, width, channels,
          [&](const View& dst) {
            Scratch smooth, work;
            const auto sharpen = floats ? torch_float_color::sharpen : torch_color::sharpen;
            return sharpen(generation, src.view(), factor, products, dst, smooth, work);
          });
  if (products) return;
  compare(isa, floats ? "torch saturation of floats" : "torch saturation", dtype, height, width, 3,
          [&](const View& dst) {
            (floats ? torch_float_color::saturate : torch_color::saturate)(generation, src.view(), factor, dst);
            return true;
          });
  compare(isa, floats ? "torch gray of floats" : "torch gray", dtype, height, width, 1, [&](const View& dst) {
    (floats ? torch_float_color::gray : torch_color::gray)(generation, src.view(), dst);
    return true;
  });
}

void check_columns(Isa isa) {
  constexpr DType kIntegers[] = {DType::Bool, DType::U8, DType::I8, DType::U16, DType::I16, DType::U32, DType::I32};
  const DType dtype = kIntegers[below(7)];
  const auto statistic = static_cast<columns::Statistic>(below(columns::kStatistics));
  const int count = 1 + below(columns::kMost);
  Picture src{dtype, 1, 1 + below(3000), count};
  src.randomize();
  compare(isa, "columns", DType::I64, 1, 1, count, [&](const View& dst) {
    auto* totals = reinterpret_cast<int64_t*>(dst.data);
    std::fill_n(totals, count, columns::neutral(statistic));
    if (const columns::Add add = columns::find(statistic, dtype))
      add(src.view().data, src.view().elements(), count, totals);
    return true;
  });
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 3000;
  return compare_all("image kernels", [rounds](Isa isa) {
    compared = 0;
    for (int round = 0; round < rounds; ++round) {
      check_resample(isa);
      check_resample(isa);
      check_warp(isa);
      check_filters(isa);
      check_torch(isa);
      check_colors(isa);
      check_columns(isa);
    }
    return compared;
  });
}
