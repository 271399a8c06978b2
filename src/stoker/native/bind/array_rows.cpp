// SPDX-License-Identifier: Apache-2.0
#include "bind/array_rows.hpp"

#include <nanobind/stl/unique_ptr.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace nb = nanobind;

namespace stoker {

int64_t ArrayRows::extent(int64_t axis) const {
  const View& one = first();
  if (axis < 0) axis += one.rank;
  if (axis < 0 || axis >= one.rank) return -1;
  for (const View& v : views_)
    if (v.shape[axis] != one.shape[axis]) return -1;
  return one.shape[axis];
}

std::unique_ptr<ArrayRows> ArrayRows::part(int64_t first, int64_t end) const {
  if (first < 0 || first >= end || end > static_cast<int64_t>(views_.size()))
    throw nb::value_error("expected a range of rows");
  nb::object owner = nb::steal(PySequence_GetSlice(owner_.ptr(), first, end));
  if (!owner.is_valid()) throw nb::python_error();
  return std::make_unique<ArrayRows>(std::vector<View>(views_.begin() + first, views_.begin() + end), std::move(owner));
}

namespace {

// NumPy's array interface for C, which `__array_struct__` returns in a capsule without a name:
// https://numpy.org/doc/stable/reference/arrays.interface.html#c-struct-access
struct ArrayInterface {
  int two;
  int nd;
  char kind;
  int item_size;
  int flags;
  Py_ssize_t* shape;
  Py_ssize_t* strides;
  void* data;
  PyObject* descr;
};

constexpr int kContiguous = 0x1, kAligned = 0x100, kNotSwapped = 0x200;

// Reads arrays of one class whose elements have native types. It reads no array that the rest of the library would
// have to convert first: those of subclasses, of other byte orders, and of numbers that are not aligned.
class Reader {
 public:
  // `dtypes` has the number of the DType of each type of elements.
  Reader(nb::handle array_type, const nb::dict& dtypes)
      : array_type_(array_type),
        dtypes_(dtypes),
        interface_(nb::steal(PyUnicode_InternFromString("__array_struct__"))),
        dtype_(nb::steal(PyUnicode_InternFromString("dtype"))) {
    if (!interface_.is_valid() || !dtype_.is_valid()) throw nb::python_error();
  }

  // Set the view of an array; return false if it is not one of those above.
  bool read(nb::handle array, View* v) {
    if (!array.type().is(array_type_)) return false;
    if (!find_type(nb::getattr(array, dtype_))) return false;
    const nb::object capsule = nb::getattr(array, interface_);
    const auto* a = static_cast<const ArrayInterface*>(PyCapsule_GetPointer(capsule.ptr(), nullptr));
    if (!a) throw nb::python_error();
    constexpr int needed = kAligned | kNotSwapped;
    if (a->two != 2 || a->nd < 0 || a->nd > kMaxRank || (a->flags & needed) != needed) return false;
    const int64_t size = size_of(type_);
    if (a->item_size != size || reinterpret_cast<uintptr_t>(a->data) % static_cast<uintptr_t>(size)) return false;
    v->data = static_cast<uint8_t*>(a->data);
    v->dtype = type_;
    v->rank = a->nd;
    for (int i = 0; i < a->nd; ++i) v->shape[i] = a->shape[i];
    if (a->flags & kContiguous) v->set_contiguous_strides();
    else
      for (int i = 0; i < a->nd; ++i)
        v->stride[i] = a->strides[i] / size * size;  // only an axis of one may have a rest
    return true;
  }

 private:
  // Most arrays of a batch share the object of their type.
  bool find_type(nb::object dtype) {
    if (last_.is(dtype)) return true;
    PyObject* const found = PyDict_GetItemWithError(dtypes_.ptr(), dtype.ptr());
    if (!found && PyErr_Occurred()) throw nb::python_error();
    if (!found) return false;
    const int number = nb::cast<int>(nb::handle(found));
    if (number < 0 || number > static_cast<int>(DType::BF16)) throw nb::value_error("expected numbers of a DType");
    type_ = static_cast<DType>(number);
    last_ = std::move(dtype);
    return true;
  }

  nb::handle array_type_;
  const nb::dict& dtypes_;
  nb::object interface_, dtype_, last_;
  DType type_ = DType::U8;
};

std::unique_ptr<ArrayRows> rows_of_list(Reader& reader, nb::handle list) {
  nb::object arrays = nb::steal(PyList_AsTuple(list.ptr()));  // another thread may change the list
  if (!arrays.is_valid()) throw nb::python_error();
  const Py_ssize_t n = PyTuple_Size(arrays.ptr());
  std::vector<View> views(static_cast<size_t>(n));
  for (Py_ssize_t i = 0; i < n; ++i) {
    View& v = views[static_cast<size_t>(i)];
    if (!reader.read(PyTuple_GetItem(arrays.ptr(), i), &v)) return nullptr;
    if (v.dtype != views[0].dtype || v.rank != views[0].rank) return nullptr;
  }
  return views.empty() ? nullptr : std::make_unique<ArrayRows>(std::move(views), std::move(arrays));
}

std::unique_ptr<ArrayRows> rows_of_array(Reader& reader, nb::handle array) {
  View all;
  if (!reader.read(array, &all) || all.rank < 1 || all.shape[0] < 1 || !all.is_countable()) return nullptr;
  View row = all;
  --row.rank;
  std::copy(all.shape + 1, all.shape + all.rank, row.shape);
  std::copy(all.stride + 1, all.stride + all.rank, row.stride);
  std::vector<View> views(static_cast<size_t>(all.shape[0]), row);
  for (size_t r = 0; r < views.size(); ++r) views[r].data += static_cast<int64_t>(r) * all.stride[0];
  return std::make_unique<ArrayRows>(std::move(views), nb::borrow(array));
}

// Return the rows of a list of arrays that agree in type and rank, or of one array; None for anything else.
std::unique_ptr<ArrayRows> array_rows(nb::handle data, nb::handle array_type, const nb::dict& dtypes) {
  Reader reader(array_type, dtypes);
  return PyList_CheckExact(data.ptr()) ? rows_of_list(reader, data) : rows_of_array(reader, data);
}

}  // namespace

void bind_array_rows(nb::module_& m) {
  nb::class_<ArrayRows>(m, "ArrayRows")
      .def("__len__", [](const ArrayRows& r) { return r.views().size(); })
      .def("part", &ArrayRows::part)
      .def("arrays", [](const ArrayRows& r) { return nb::list(r.owner()); })
      .def("facts", [](const ArrayRows& r, int64_t axis) {
        return nb::make_tuple(static_cast<int>(r.first().dtype), r.first().rank, r.extent(axis));
      });
  m.def("array_rows", &array_rows, nb::arg("data").none(), nb::arg("array_type"), nb::arg("dtypes"));
}

}  // namespace stoker
