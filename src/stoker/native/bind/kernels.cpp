// SPDX-License-Identifier: Apache-2.0
// Bindings of the registered kernels (kernels/registry.hpp): one function for each name, for all overloads.
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>

#include <string>

#include "bind/arrays.hpp"
#include "bind/gpu.hpp"
#include "gpu/host_call.hpp"
#include "gpu/tiered_function.hpp"
#include "io/manifest.hpp"
#include "gpu_kernels/jpeg_index.hpp"
#include "kernels/records.hpp"

namespace nb = nanobind;

namespace stoker {

namespace {

using registry::List;
using registry::Target;
using registry::Value;

template <class T>
bool take_object(nb::handle h, Value* to) {
  if (!nb::isinstance<T>(h)) return false;
  to->is = registry::Object{typeid(T), nb::cast<std::shared_ptr<T>>(h)};
  return true;
}

// Convert objects of classes that this module binds.
bool is_object(nb::handle h, Value* to) {
  return take_object<FileTable>(h, to) || take_object<RangeTable>(h, to) || take_object<MemoryTable>(h, to) ||
         take_object<ManifestTable>(h, to) || take_object<JoinedRecords>(h, to) || take_object<KeptBlocks>(h, to) ||
         take_object<gpu::Function>(h, to) || take_object<gpu::HostCall>(h, to) || take_object<Kernel>(h, to) ||
         take_object<gpu::TieredFunction>(h, to) || take_object<jpeg::gpu::Index>(h, to);
}

// Convert arrays with one axis. Arrays with a single number also count as integers elsewhere.
bool is_array(nb::handle h, Value* to) {
  AnyArray array;
  if (!nb::try_cast(h, array) || array.ndim() != 1) return false;
  const View view = view_of(array);
  to->is = registry::Array{view.data, view.dtype, view.shape[0], view.stride[0]};
  return true;
}

void take_integer(nb::handle h, Value* to) {
  int overflow = 0;
  const long long small = PyLong_AsLongLongAndOverflow(h.ptr(), &overflow);
  if (overflow == 0) {
    to->is = static_cast<int64_t>(small);
    return;
  }
  const unsigned long long large = PyLong_AsUnsignedLongLong(h.ptr());
  if (PyErr_Occurred()) throw nb::python_error();
  to->is = static_cast<uint64_t>(large);
}

// Convert an argument; the result borrows memory of `h`.
Value value_of(nb::handle h) {
  Value out;
  PyObject* const o = h.ptr();
  if (h.is_none()) return out;
  if (PyBool_Check(o)) {
    out.is = o == Py_True;
  } else if (PyLong_Check(o)) {
    take_integer(h, &out);
  } else if (PyFloat_Check(o)) {
    out.is = PyFloat_AsDouble(o);
  } else if (PyBytes_Check(o)) {
    out.is = registry::Bytes{PyBytes_AsString(o), static_cast<size_t>(PyBytes_Size(o))};
  } else if (PyTuple_Check(o) || PyList_Check(o)) {
    List list;
    for (nb::handle item : h) list.push_back(value_of(item));
    out.is = std::move(list);
  } else if (!is_object(h, &out) && !is_array(h, &out)) {
    const nb::object number = nb::steal(PyIndex_Check(o) ? PyNumber_Index(o) : nullptr);
    PyErr_Clear();
    if (!number.is_valid())
      throw nb::type_error(("expected a kernel's constant, got " + std::string(nb::str(h.type()).c_str())).c_str());
    take_integer(number, &out);
  }
  return out;
}

List list_of(const nb::handle& arguments) {
  List list;
  for (nb::handle item : arguments) list.push_back(value_of(item));
  return list;
}

template <class F>
auto translated(F&& f) {
  try {
    return f();
  } catch (const registry::Mismatch& wrong) { throw nb::type_error(wrong.what()); }
}

// Return (name, doc, result, ((parameter, type, doc), ...)) of every constructor, for tools/kernel_stubs.py.
nb::list list_constructors(Target target) {
  nb::list out;
  for (const auto& [name, overloads] : registry::constructors(target))
    for (const registry::Constructor& c : overloads) {
      nb::list parameters;
      for (const registry::Parameter& p : c.parameters) parameters.append(nb::make_tuple(p.name, p.type, p.doc));
      out.append(nb::make_tuple(c.name, c.doc, c.result, nb::tuple(parameters)));
    }
  return out;
}

}  // namespace

void bind_kernels(nb::module_& m, Target target) {
  for (const auto& [name, overloads] : registry::constructors(target))
    m.def(name.c_str(), [target, name](const nb::args& arguments) {
      return translated([&] { return registry::make(target, name, list_of(arguments)); });
    });
  m.def("check_constants", [target](const std::string& name, nb::handle constants) {
    translated([&] { registry::check(target, name, list_of(constants)); });
  });
  m.def("list_constructors", [target] { return list_constructors(target); });
}

}  // namespace stoker
