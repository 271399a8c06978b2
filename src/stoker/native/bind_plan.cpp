// SPDX-License-Identifier: Apache-2.0
// Plans and the kernels that they are made of, as the planner makes them.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bind_arrays.hpp"
#include "bind_engine.hpp"
#include "kernels.hpp"
#include "plan.hpp"
#include "stage_gpu.hpp"

namespace nb = nanobind;

namespace stoker {

namespace {

using Ints = std::vector<int32_t>;
using KernelRef = std::shared_ptr<Kernel>;

ScalarCode scalar_code(const std::vector<std::tuple<int, int, int, int>>& code, std::vector<double> consts) {
  ScalarCode s;
  for (const auto& [op, a, b, c] : code) s.code.push_back({static_cast<ScalarOp>(op), a, b, c});
  s.consts = std::move(consts);
  return s;
}

std::vector<ViewOp> view_ops(const std::vector<std::tuple<int, int, int, int, int, Ints>>& list) {
  std::vector<ViewOp> ops;
  for (const auto& [kind, axis, start, step, extent, values] : list)
    ops.push_back({static_cast<ViewKind>(kind), axis, start, step, extent, values});
  return ops;
}
using ViewOpTuples = std::vector<std::tuple<int, int, int, int, int, Ints>>;

pixel::Program program_of(const nb::list& code, int channels, const Ints& inputs, const Ints& outputs, int uniforms) {
  pixel::Program p;
  for (nb::handle item : code) {
    const nb::tuple t = nb::cast<nb::tuple>(item);
    const auto at = [&t](int i) { return nb::cast<int>(t[i]); };
    pixel::Instr q;
    q.op = static_cast<pixel::Op>(at(0));
    q.type = static_cast<pixel::Type>(at(1));
    q.from = static_cast<pixel::Type>(at(2));
    q.dtype = static_cast<DType>(at(3));
    q.dst = static_cast<uint16_t>(at(4));
    q.a = static_cast<uint16_t>(at(5));
    q.b = static_cast<uint16_t>(at(6));
    q.c = static_cast<uint16_t>(at(7));
    q.uniform = static_cast<uint8_t>(at(8));
    q.port = static_cast<uint8_t>(at(9));
    q.channel = static_cast<uint8_t>(at(10));
    p.code.push_back(q);
  }
  p.channels = channels;
  p.inputs = static_cast<int>(inputs.size());
  p.outputs = static_cast<int>(outputs.size());
  p.uniforms = uniforms;
  if (p.inputs > pixel::kMaxPorts || p.outputs > pixel::kMaxPorts || uniforms > 256)
    throw nb::value_error("a stage takes at most 8 inputs, 8 outputs and 256 uniforms");
  for (int i = 0; i < p.inputs; ++i) p.input_dtype[i] = static_cast<DType>(inputs[i]);
  for (int i = 0; i < p.outputs; ++i) p.output_dtype[i] = static_cast<DType>(outputs[i]);
  std::string why;
  if (!pixel::validate(p, &why)) throw nb::value_error(why.c_str());
  return p;
}

StageSpec stage_spec(int sampler, Ints sampler_params, const nb::list& code, int channels, const Ints& in_dtypes,
                     const Ints& out_dtypes, Ints uniforms, const std::vector<ViewOpTuples>& inputs,
                     const std::vector<ViewOpTuples>& outputs) {
  StageSpec s;
  s.sampler = static_cast<Sampler>(sampler);
  s.sampler_params = std::move(sampler_params);
  s.program = program_of(code, channels, in_dtypes, out_dtypes, static_cast<int>(uniforms.size()));
  s.uniforms = std::move(uniforms);
  for (const auto& ops : inputs) s.inputs.push_back(view_ops(ops));
  for (const auto& ops : outputs) s.outputs.push_back(view_ops(ops));
  return s;
}

// The stage's own kernel comes first, then the sampler's.
StageFunctions stage_functions(Sampler sampler, const std::vector<std::shared_ptr<gpu::Function>>& functions,
                               std::vector<std::pair<int32_t, int32_t>> uniforms) {
  const size_t wanted = sampler == Sampler::Resample ? 3 : sampler == Sampler::Affine ? 2 : 1;
  const size_t more = sampler == Sampler::Resample ? 3 : sampler == Sampler::Affine ? 1 : 0;  // of some types
  const size_t planar = sampler == Sampler::Resample ? 2 : 0;                                 // and of planes
  const size_t given = functions.size();
  if (given != wanted && given != wanted + more && given != wanted + more + planar)
    throw nb::value_error("a stage takes its kernel and those of its sampler");
  StageFunctions f;
  f.stage = functions[0];
  if (sampler == Sampler::Resample) {
    f.weights = functions[1], f.between = functions[2];
    if (functions.size() > 3) f.tiles = functions[3], f.tiles_down = functions[4], f.words = functions[5];
    if (functions.size() > 6) f.planar_tiles = functions[6], f.planar_down = functions[7];
  }
  if (sampler == Sampler::Affine) {
    f.walk = functions[1];
    if (functions.size() > 2) f.pairs = functions[2];
  }
  f.uniforms = std::move(uniforms);
  return f;
}

}  // namespace

void bind_plan(nb::module_& m) {
  nb::class_<Kernel>(m, "Kernel");
  nb::class_<FileTable>(m, "FileTable")
      .def("__init__",
           [](FileTable* self, const nb::bytes& root, const nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig>& names,
              const Keys& offsets) {
             const uint64_t* ends = offsets.data();
             const size_t n = offsets.shape(0), size = names.shape(0);
             bool fits = n > 0 && ends[0] == 0 && ends[n - 1] == size;
             for (size_t i = 1; fits && i < n; ++i)
               fits = ends[i - 1] < ends[i] && ends[i] <= size && names.data()[ends[i] - 1] == 0;
             if (!fits) throw nb::value_error("expected names with a zero after each, and where each begins and ends");
             new (self) FileTable{std::string(root.c_str(), root.size()),
                                  std::string(reinterpret_cast<const char*>(names.data()), size), {ends, ends + n}};
           })
      .def("__len__", &FileTable::size)
      .def("__getitem__", [](const FileTable& t, size_t i) {
        if (i >= t.size()) throw nb::index_error();
        const std::string path = t.path(i);
        return nb::bytes(path.data(), path.size());
      });
  nb::class_<Plan>(m, "Plan")
      .def(nb::init<>())
      .def("add_value",
           [](Plan& p, int dtype, int rank, int where, int slot) {
             p.values.push_back({static_cast<DType>(dtype), rank, static_cast<Where>(where), slot});
           })
      .def("add_step",
           [](Plan& p, KernelRef kernel, Ints in, Ints out, std::vector<std::tuple<int, int, int, int>> code,
              std::vector<double> consts, Ints params, std::vector<Ints> extents,
              std::vector<std::tuple<int, int, Ints>> checks, std::vector<std::pair<int, bool>> guards, int frames,
              std::vector<uint8_t> framed_in, bool ordered) {
             if (in.size() > 64 || out.size() > kMaxStepOutputs) throw nb::value_error("a step takes at most 64 inputs, 64 outputs");
             Step s;
             s.kernel = std::move(kernel);
             s.in = std::move(in);
             s.out = std::move(out);
             s.scalars = scalar_code(code, std::move(consts));
             s.params = std::move(params);
             s.extents = std::move(extents);
             for (auto& [condition, message, values] : checks) s.checks.push_back({condition, message, values});
             for (auto& [value, wanted] : guards) s.guards.push_back({value, wanted});
             s.frames = frames;
             s.framed_in = std::move(framed_in);
             s.ordered = ordered;
             p.steps.push_back(std::move(s));
           },
           nb::arg("kernel").none(), nb::arg("inputs"), nb::arg("outputs"), nb::arg("code"), nb::arg("consts"),
           nb::arg("params"), nb::arg("extents"), nb::arg("checks"), nb::arg("guards"), nb::arg("frames"),
           nb::arg("framed"), nb::arg("ordered"))
      .def("add_segment",
           [](Plan& p, int runs, Ints steps, Ints opens) {
             p.segments.push_back({static_cast<Runs>(runs), std::move(steps), std::move(opens)});
           })
      .def("add_output",
           [](Plan& p, int value, bool fixed, bool device, std::vector<int64_t> shape,
              std::vector<std::tuple<int, int, int, int>> code, std::vector<double> consts, Ints extents) {
             p.outputs.push_back(
                 {value, fixed, device, std::move(shape), scalar_code(code, std::move(consts)), std::move(extents)});
           })
      .def("finish", [](Plan& p, int buffers, int readers) {
        p.buffers = buffers;
        p.readers = readers;
        p.finish();
      });
}

void bind_kernels(nb::module_& m) {
  m.def("view", [](const ViewOpTuples& ops, bool may_copy) { return make_view(view_ops(ops), may_copy); });
  m.def("stage",
        [](int sampler, Ints sampler_params, nb::list code, int channels, Ints in_dtypes, Ints out_dtypes,
           Ints uniforms, const std::vector<ViewOpTuples>& inputs, const std::vector<ViewOpTuples>& outputs) {
          return make_stage(stage_spec(sampler, std::move(sampler_params), code, channels, in_dtypes, out_dtypes,
                                       std::move(uniforms), inputs, outputs));
        });
  m.def("gpu_stage",
        [](int sampler, Ints sampler_params, nb::list code, int channels, Ints in_dtypes, Ints out_dtypes,
           Ints uniforms, const std::vector<ViewOpTuples>& inputs, const std::vector<ViewOpTuples>& outputs,
           const std::vector<std::shared_ptr<gpu::Function>>& functions,
           std::vector<std::pair<int32_t, int32_t>> reads) -> KernelRef {
          return make_gpu_stage(stage_spec(sampler, std::move(sampler_params), code, channels, in_dtypes, out_dtypes,
                                           std::move(uniforms), inputs, outputs),
                                stage_functions(static_cast<Sampler>(sampler), functions, std::move(reads)));
        });
  m.def("read", [](std::shared_ptr<FileTable> table, int reader) { return make_read(std::move(table), reader); });
  m.def("told_file", &make_told_file);
  m.def("lookup", [](const nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig>& table, int reader) {
    return make_lookup({table.data(), table.data() + table.shape(0)}, reader);
  });
  m.def("index", &make_index);
  m.def("peek", [](bool adjust, int format, int scale_log2) {
    return make_peek(adjust, static_cast<jpeg::Format>(format), scale_log2);
  });
  m.def("decode", [](bool adjust, int format, int scale_log2) {
    return make_decode(adjust, static_cast<jpeg::Format>(format), scale_log2);
  });
  const auto spec = [](int distribution, uint32_t draw, bool own_seed, uint64_t seed) {
    return DrawSpec{static_cast<Distribution>(distribution), draw, own_seed, seed};
  };
  m.def("draw", [spec](int d, uint32_t draw, bool own, uint64_t seed) { return make_draw(spec(d, draw, own, seed)); });
  m.def("choice", [spec](uint32_t draw, bool own, uint64_t seed, bool weights) {
    return make_choice(spec(0, draw, own, seed), weights);
  });
  m.def("crop_window", [spec](uint32_t draw, bool own, uint64_t seed, int attempts) {
    return make_crop_window(spec(0, draw, own, seed), attempts);
  });
  m.def("equalize", [](int f, int h, int w, int c) { return make_equalize({f, h, w, c}); });
  m.def("filter", [](int f, int h, int w, int c, int border) { return make_filter({f, h, w, c}, border); });
  m.def("blur", [](int f, int h, int w, int c) { return make_blur({f, h, w, c}); });
  m.def("reduce", &make_reduce);
  m.def("scalars", &make_scalars);
  m.def("constant", [](nb::bytes data, std::vector<int64_t> shape) {
    return make_constant(std::string(data.c_str(), data.size()), std::move(shape));
  });
  m.def("select", &make_select);
  m.def("other_row", &make_other_row);
  m.def("python", &make_python);
}

}  // namespace stoker
