// SPDX-License-Identifier: Apache-2.0
// Bindings of the register machine, for its tests and for the Python side's operation numbers.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>

#include "pixel/copy.hpp"
#include "pixel/halves.hpp"
#include "pixel/kernels.hpp"
#include "pixel/pixel.hpp"

namespace nb = nanobind;

namespace {

using namespace stoker;

// Read NumPy's own attributes and not DLPack, which refuses unaligned and read-only arrays.
View view_of(nb::handle array, DType dtype) {
  View v;
  v.dtype = dtype;
  const nb::tuple shape = nb::cast<nb::tuple>(array.attr("shape"));
  const nb::tuple strides = nb::cast<nb::tuple>(array.attr("strides"));
  if (nb::len(shape) > kMaxRank) throw std::invalid_argument("too many axes");
  if (nb::cast<int64_t>(array.attr("itemsize")) != size_of(dtype))
    throw std::invalid_argument("array of another dtype");
  v.rank = static_cast<int32_t>(nb::len(shape));
  for (int i = 0; i < v.rank; ++i) {
    v.shape[i] = nb::cast<int64_t>(shape[i]);
    v.stride[i] = nb::cast<int64_t>(strides[i]);
  }
  v.data = reinterpret_cast<uint8_t*>(nb::cast<uintptr_t>(array.attr("ctypes").attr("data")));
  return v;
}

void set_ports(std::array<DType, pixel::kMaxPorts>& ports, int& count, const std::vector<int>& dtypes) {
  if (dtypes.size() > ports.size()) throw std::invalid_argument("too many ports");
  count = static_cast<int>(dtypes.size());
  for (int i = 0; i < count; ++i) ports[i] = static_cast<DType>(dtypes[i]);
}

class PixelProgram {
 public:
  // `code` has the packed instructions (struct Instr).
  PixelProgram(nb::bytes code, int channels, const std::vector<int>& inputs, const std::vector<int>& outputs,
               int uniforms) {
    if (code.size() % sizeof(pixel::Instr)) throw std::invalid_argument("code is not a sequence of instructions");
    program_.code.resize(code.size() / sizeof(pixel::Instr));
    if (code.size()) std::memcpy(program_.code.data(), code.c_str(), code.size());
    program_.channels = channels;
    program_.uniforms = uniforms;
    set_ports(program_.input_dtype, program_.inputs, inputs);
    set_ports(program_.output_dtype, program_.outputs, outputs);
    std::string why;
    if (!validate(program_, &why)) throw std::invalid_argument(why);
  }

  bool run(const std::vector<double>& uniforms, nb::list inputs, nb::list outputs) {
    bind(uniforms, inputs, outputs);
    used_table_ = used_mix_ = false;
    if (pixel::run_as_copies(program_, in_.data(), out_.data())) return true;
    pixel::Bound bound;
    bound.prepare(program_, uniforms.data(), in_.data(), out_.data(), scratch_);
    used_table_ = bound.uses_table();
    used_mix_ = bound.uses_mix();
    return bound.run();
  }

  // Pass input 0 through a buffer of `rows` rows, as a resampling kernel would.
  bool run_rows(const std::vector<double>& uniforms, nb::list inputs, nb::list outputs, int64_t rows, int64_t pad) {
    bind(uniforms, inputs, outputs);
    const View& first = in_.at(0);
    const int64_t height = first.shape[0];
    int64_t row_bytes = size_of(first.dtype);
    for (int i = 1; i < first.rank; ++i) row_bytes *= first.shape[i];
    const int64_t pitch = row_bytes + pad;
    std::vector<uint8_t> band(static_cast<size_t>(pitch * rows));
    pixel::Bound bound;
    bound.prepare_rows(program_, uniforms.data(), in_.data(), out_.data(), scratch_);
    used_table_ = bound.uses_table();
    used_mix_ = bound.uses_mix();
    bool ok = true;
    for (int64_t y = 0; y < height; y += rows) {
      const int64_t end = std::min(height, y + rows);
      for (int64_t r = y; r < end; ++r)
        std::memcpy(band.data() + (r - y) * pitch, first.data + r * first.stride[0], static_cast<size_t>(row_bytes));
      ok &= bound.run_rows(y, end, band.data(), pitch);
    }
    return ok;
  }

  // Return the seconds per call: of whole runs if rows is 0, else of bands of this many rows in one buffer.
  double time(const std::vector<double>& uniforms, nb::list inputs, nb::list outputs, int64_t rows, int repeat) {
    bind(uniforms, inputs, outputs);
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    for (int i = 0; i < repeat; ++i) {
      if (rows == 0) {
        pixel::run(program_, uniforms.data(), in_.data(), out_.data(), scratch_);
        continue;
      }
      pixel::Bound bound;
      bound.prepare_rows(program_, uniforms.data(), in_.data(), out_.data(), scratch_);
      const View& first = in_[0];
      for (int64_t y = 0; y < first.shape[0]; y += rows)
        bound.run_rows(y, std::min(first.shape[0], y + rows), first.data, first.stride[0]);
    }
    return std::chrono::duration<double>(Clock::now() - begin).count() / repeat;
  }

  bool used_table() const { return used_table_; }
  bool used_mix() const { return used_mix_; }

 private:
  void bind(const std::vector<double>& uniforms, nb::list inputs, nb::list outputs) {
    if (static_cast<int>(uniforms.size()) != program_.uniforms || static_cast<int>(inputs.size()) != program_.inputs ||
        static_cast<int>(outputs.size()) != program_.outputs)
      throw std::invalid_argument("wrong number of uniforms, inputs or outputs");
    in_.clear();
    out_.clear();
    for (int i = 0; i < program_.inputs; ++i) in_.push_back(view_of(inputs[i], program_.input_dtype[i]));
    for (int i = 0; i < program_.outputs; ++i) out_.push_back(view_of(outputs[i], program_.output_dtype[i]));
    if (!pixel::spread_tables(program_, uniforms.data(), out_.at(0), in_.data()))
      throw std::invalid_argument("a table lacks elements");
  }

  pixel::Program program_;
  Scratch scratch_;
  std::vector<View> in_, out_;
  bool used_table_ = false, used_mix_ = false;
};

nb::dict op_numbers() {
  nb::dict ops;
  for (int i = 0; i < pixel::kOps; ++i) {
    const auto name = pixel::name_of(static_cast<pixel::Op>(i));
    ops[nb::str(name.data(), name.size())] = i;
  }
  return ops;
}

void convert_halves(nb::handle dst, nb::handle src, bool to_half) {
  const View d = view_of(dst, to_half ? DType::F16 : DType::F32), s = view_of(src, to_half ? DType::F32 : DType::F16);
  if (!d.contiguous() || !s.contiguous() || d.elements() != s.elements()) throw std::invalid_argument("not contiguous");
  if (to_half) floats_to_halves(reinterpret_cast<uint16_t*>(d.data), reinterpret_cast<float*>(s.data), d.elements());
  else halves_to_floats(reinterpret_cast<float*>(d.data), reinterpret_cast<uint16_t*>(s.data), d.elements());
}

}  // namespace

void bind_pixel(nb::module_& m) {
  nb::class_<PixelProgram>(m, "PixelProgram")
      .def(nb::init<nb::bytes, int, const std::vector<int>&, const std::vector<int>&, int>(), nb::arg("code"),
           nb::arg("channels"), nb::arg("input_dtypes"), nb::arg("output_dtypes"), nb::arg("uniforms"))
      .def("run", &PixelProgram::run, nb::lock_self())
      .def("run_rows", &PixelProgram::run_rows, nb::arg("uniforms"), nb::arg("inputs"), nb::arg("outputs"),
           nb::arg("rows"), nb::arg("pad") = 0, nb::lock_self())
      .def("time", &PixelProgram::time, nb::lock_self())
      .def_prop_ro("used_table", &PixelProgram::used_table, nb::lock_self())
      .def_prop_ro("used_mix", &PixelProgram::used_mix, nb::lock_self());
  m.def("pixel_run",
        [](nb::bytes code, int channels, const std::vector<int>& input_dtypes, const std::vector<int>& output_dtypes,
           const std::vector<double>& uniforms, nb::list inputs, nb::list outputs) {
          return PixelProgram(code, channels, input_dtypes, output_dtypes, static_cast<int>(uniforms.size()))
              .run(uniforms, inputs, outputs);
        });
  m.def("pixel_ops", &op_numbers);
  m.attr("PIXEL_INSTR_SIZE") = sizeof(pixel::Instr);
  m.def("pixel_set_tables", &pixel::set_tables);
  m.def("floats_to_halves", [](nb::handle dst, nb::handle src) { convert_halves(dst, src, true); });
  m.def("halves_to_floats", [](nb::handle dst, nb::handle src) { convert_halves(dst, src, false); });
}
