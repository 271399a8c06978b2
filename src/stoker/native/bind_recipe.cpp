// SPDX-License-Identifier: Apache-2.0
// Recipes for Python: orders, and the threads that make them.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <unistd.h>

#include <stdexcept>
#include <utility>

#include "block_pool.hpp"
#include "recipe.hpp"
#include "recipe_gpu.hpp"
#include "told_file.hpp"

namespace nb = nanobind;

namespace {

using stoker::BlockPool;
using stoker::recipe::Crew;
using stoker::recipe::Order;
using stoker::recipe::Status;
using Numbers = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Integers = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Bytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Room = nb::ndarray<uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// The arrays' memory is kept by the Python object that holds the order.
std::shared_ptr<Order> make_order(const Numbers& numbers, const Integers& starts, const nb::list& sources,
                                  const std::vector<std::pair<Bytes, int>>& tables, const std::vector<Room>& outputs) {
  auto order = std::make_shared<Order>();
  order->numbers.assign(numbers.data(), numbers.data() + numbers.shape(0));
  order->starts.assign(starts.data(), starts.data() + starts.shape(0));
  const int64_t size = static_cast<int64_t>(order->numbers.size());
  if (order->starts.size() != sources.size() + 1) throw std::invalid_argument("expected one more start than sources");
  int64_t last = 0;
  for (const int64_t start : order->starts) {
    if (start < last || start > size) throw std::invalid_argument("expected starts in order, inside of the numbers");
    last = start;
  }
  for (const nb::handle source : sources) {
    if (nb::isinstance<nb::bytes>(source)) {
      const auto told = nb::borrow<nb::bytes>(source);
      order->sources.push_back({reinterpret_cast<const uint8_t*>(told.c_str()), told.size(), true});
      continue;
    }
    const auto bytes = nb::cast<Bytes>(source);
    order->sources.push_back({bytes.data(), bytes.shape(0)});
  }
  for (const auto& [t, item] : tables) {
    if (item != 1 && item != 2 && item != 4 && item != 8) throw std::invalid_argument("expected 1, 2, 4 or 8 bytes");
    const size_t channels = t.shape(0) / static_cast<size_t>(256 * item);
    if (channels == 0 || t.shape(0) % static_cast<size_t>(256 * item))
      throw std::invalid_argument("expected a table of 256 values per channel");
    if (reinterpret_cast<uintptr_t>(t.data()) % static_cast<size_t>(item))
      throw std::invalid_argument("expected an aligned table");
    order->tables.push_back({t.data(), item, static_cast<int32_t>(channels)});
  }
  for (const Room& o : outputs) {
    if (reinterpret_cast<uintptr_t>(o.data()) % 8) throw std::invalid_argument("expected an aligned output");
    order->outputs.push_back({o.data(), o.shape(0)});
  }
  order->status.assign(sources.size(), Status::Pending);
  order->why.resize(sources.size());
  order->remaining = order->count();
  return order;
}

// (recipe, what is wrong with it) of all that were not made; an empty text: the file is left to another decoder.
std::vector<std::pair<int64_t, std::string>> unmade(const Order& order) {
  std::vector<std::pair<int64_t, std::string>> out;
  for (int64_t i = 0; i < order.count(); ++i) {
    if (order.status[i] == Status::Done) continue;
    const bool pending = order.status[i] == Status::Pending;
    out.emplace_back(i, pending ? "it was not begun" : order.why[i]);
  }
  return out;
}

// Memory on large pages, kept for the next batch when Python lets go of it; then `released` is called.
struct Lent {
  BlockPool::Block block;
  nb::object released;
};

void give_back(void* p) noexcept {
  auto* lent = static_cast<Lent*>(p);
  const bool alive = nb::is_alive();  // else there is nobody to tell, nor an interpreter to drop a reference with
  nb::handle released = lent->released.release();
  delete lent;
  if (!alive || !released.is_valid()) return;
  const nb::object call = nb::steal(released);
  if (call.is_none()) return;
  PyObject *type, *value, *trace;  // an exception that is on its way here is not the call's
  PyErr_Fetch(&type, &value, &trace);
  try {
    call();
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("memory of a batch is given back");
  }
  PyErr_Restore(type, value, trace);
}

nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>> take(const std::shared_ptr<BlockPool>& pool, size_t bytes,
                                                  nb::object released) {
  auto* lent = new Lent{pool->take(bytes ? bytes : 1), std::move(released)};
  nb::capsule owner(lent, &give_back);
  return {lent->block.data, {bytes}, owner};
}

// The first `size` bytes of an open file; None if it has fewer. Small files take the pool's memory, large ones give theirs
// back to the system: what is kept is bounded, and they are decoded long enough for a few cleared pages not to matter.
nb::object read_file(const std::shared_ptr<BlockPool>& pool, int fd, size_t size) {
  constexpr size_t kPooled = size_t{256} << 10;
  uint8_t* data = nullptr;
  nb::capsule owner;
  if (size <= kPooled) {
    auto* block = new BlockPool::Block(pool->take(size ? size : 1));
    data = block->data;
    owner = nb::capsule(block, [](void* p) noexcept { delete static_cast<BlockPool::Block*>(p); });
  } else {
    data = new uint8_t[size];
    owner = nb::capsule(data, [](void* p) noexcept { delete[] static_cast<uint8_t*>(p); });
  }
  size_t done = 0;
  ssize_t count = 1;
  {
    const nb::gil_scoped_release release;
    while (done < size && (count = ::pread(fd, data + done, size - done, static_cast<off_t>(done))) > 0)
      done += static_cast<size_t>(count);
  }
  if (count < 0) {
    PyErr_SetFromErrno(PyExc_OSError);
    throw nb::python_error();
  }
  if (done < size) return nb::none();
  return nb::cast(nb::ndarray<nb::numpy, const uint8_t, nb::ndim<1>>(data, {size}, owner));
}

// What tells of an open file (told_file.hpp); None if there is nothing to tell.
nb::object tell(int fd, const nb::bytes& path, double settled_s) {
  std::string told;
  const std::string name(path.c_str(), path.size());
  {
    const nb::gil_scoped_release release;
    told = stoker::tell_file(fd, name, settled_s);
  }
  if (told.empty()) return nb::none();
  return nb::bytes(told.data(), told.size());
}

const uint8_t* bytes_of(const nb::bytes& told) { return reinterpret_cast<const uint8_t*>(told.c_str()); }

bool is_told_there(const nb::bytes& told) {
  const nb::gil_scoped_release release;
  return stoker::is_told_there(bytes_of(told), told.size());
}

bool is_told_open(const nb::bytes& told, int fd) {
  const nb::gil_scoped_release release;
  return stoker::is_told_open(bytes_of(told), told.size(), fd);
}

// The bytes of a file that is told of.
nb::bytes read_told(const nb::bytes& told) {
  stoker::Scratch room;
  stoker::View out;
  std::string error;
  bool done = false;
  {
    const nb::gil_scoped_release release;
    done = stoker::read_told(bytes_of(told), told.size(), room, out, error);
  }
  if (!done) {
    PyErr_SetString(PyExc_OSError, error.c_str());
    throw nb::python_error();
  }
  return nb::bytes(out.data, static_cast<size_t>(out.shape[0]));
}

// Takes an object, and the members of a list, out of what Python's collector of cycles looks at.
void untrack(nb::handle object) {
  const auto forget = [](PyObject* o) {
    if (PyObject_IS_GC(o) && PyObject_GC_IsTracked(o)) PyObject_GC_UnTrack(o);
  };
  forget(object.ptr());
  if (!PyList_CheckExact(object.ptr())) return;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(object.ptr()); ++i) forget(PyList_GET_ITEM(object.ptr(), i));
}

}  // namespace

void bind_recipe(nb::module_& m) {
  nb::module_ recipe = m.def_submodule("recipe", "Recipes: one row's steps, interpreted.");
  nb::list names;
#define STOKER_RECIPE_LIST(name, count) names.append(nb::make_tuple(#name, count));
  STOKER_RECIPE_OPS(STOKER_RECIPE_LIST)
#undef STOKER_RECIPE_LIST
  recipe.attr("OPS") = nb::tuple(names);
  nb::class_<Order>(recipe, "Order")
      .def_prop_ro("done", [](const Order& o) { return o.remaining.load() == 0; })
      .def_prop_ro("unmade", &unmade);
  recipe.def("order", &make_order, nb::arg("numbers"), nb::arg("starts"), nb::arg("sources"), nb::arg("tables"),
             nb::arg("outputs"));
  recipe.def("make", [](const std::shared_ptr<Order>& order) { stoker::recipe::make_all(*order); },
             nb::call_guard<nb::gil_scoped_release>());
  nb::class_<Crew>(recipe, "Crew")
      .def(nb::init<int>())
      .def("submit", &Crew::submit)
      .def("hasten", &Crew::hasten)
      .def("wait", &Crew::wait, nb::call_guard<nb::gil_scoped_release>())
      .def("close", &Crew::close, nb::call_guard<nb::gil_scoped_release>());
  nb::module_(nb::borrow<nb::module_>(m.attr("kernels"))).def("recipe", &stoker::recipe::make_kernel, nb::arg("outputs"));
  nb::module_(nb::borrow<nb::module_>(m.attr("gpu")))
      .def("recipe", [](const std::vector<std::shared_ptr<stoker::gpu::Function>>& functions,
                        int outputs) -> std::shared_ptr<stoker::Kernel> {
        if (functions.size() != 1) throw std::invalid_argument("expected one function");
        return stoker::recipe::make_gpu_kernel(functions[0], outputs);
      }, nb::arg("functions"), nb::arg("outputs"));
  nb::class_<BlockPool>(recipe, "Blocks")
      .def("__init__", [](BlockPool*) { throw std::invalid_argument("use blocks()"); })
      .def("take", &take, nb::arg("bytes"), nb::arg("released") = nb::none())
      .def("read", &read_file);
  recipe.def("tell", &tell);
  recipe.def("read_told", &read_told);
  recipe.def("is_told_there", &is_told_there);
  recipe.def("is_told_open", &is_told_open);
  recipe.def("untrack", &untrack);
  recipe.def("blocks", [](size_t kept) { return std::make_shared<BlockPool>(kept); });
}
