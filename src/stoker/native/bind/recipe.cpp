// SPDX-License-Identifier: Apache-2.0
// Bindings of recipes: batches, the worker pool, and file references.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "bind/gil.hpp"
#include "gpu/block_pool.hpp"
#include "io/files.hpp"
#include "io/file_ref.hpp"
#include "recipe/recipe.hpp"
#include "torch/resize.hpp"

namespace nb = nanobind;

namespace {

using stoker::BlockPool;
using stoker::recipe::RecipeBatch;
using stoker::recipe::Status;
using stoker::recipe::WorkerPool;
using Numbers = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Integers = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Bytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using OutputArray = nb::ndarray<uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

bool has_chain(const nb::ndarray<const float, nb::shape<256>, nb::c_contig, nb::device::cpu>& table) {
  stoker::recipe::Chain chain;
  return stoker::recipe::find_chain(table.data(), chain);
}

// The arrays' memory is kept by the Python object that holds the batch.
std::shared_ptr<RecipeBatch> make_batch(const Numbers& numbers, const Integers& starts, const nb::list& sources,
                                        const std::vector<std::pair<Bytes, int>>& tables,
                                        const std::vector<OutputArray>& outputs) {
  auto batch = std::make_shared<RecipeBatch>();
  batch->numbers.assign(numbers.data(), numbers.data() + numbers.shape(0));
  batch->starts.assign(starts.data(), starts.data() + starts.shape(0));
  const int64_t size = static_cast<int64_t>(batch->numbers.size());
  if (batch->starts.size() != sources.size() + 1) throw std::invalid_argument("expected one more start than sources");
  int64_t last = 0;
  for (const int64_t start : batch->starts) {
    if (start < last || start > size) throw std::invalid_argument("expected starts in order, inside of the numbers");
    last = start;
  }
  for (const nb::handle source : sources) {
    if (nb::isinstance<nb::bytes>(source)) {
      const auto ref = nb::borrow<nb::bytes>(source);
      batch->sources.push_back({reinterpret_cast<const uint8_t*>(ref.c_str()), ref.size(), true});
      continue;
    }
    const auto bytes = nb::cast<Bytes>(source);
    batch->sources.push_back({bytes.data(), bytes.shape(0)});
  }
  for (const auto& [t, item] : tables) {
    if (item != 1 && item != 2 && item != 4 && item != 8) throw std::invalid_argument("expected 1, 2, 4 or 8 bytes");
    const size_t channels = t.shape(0) / static_cast<size_t>(256 * item);
    if (channels == 0 || t.shape(0) % static_cast<size_t>(256 * item))
      throw std::invalid_argument("expected a table of 256 values per channel");
    if (reinterpret_cast<uintptr_t>(t.data()) % static_cast<size_t>(item))
      throw std::invalid_argument("expected an aligned table");
    batch->tables.push_back(stoker::recipe::table_of(t.data(), item, static_cast<int32_t>(channels)));
  }
  for (const OutputArray& o : outputs) {
    if (reinterpret_cast<uintptr_t>(o.data()) % 8) throw std::invalid_argument("expected an aligned output");
    batch->outputs.push_back({o.data(), o.shape(0)});
  }
  batch->status.assign(sources.size(), Status::Pending);
  batch->why.resize(sources.size());
  batch->remaining = batch->count();
  return batch;
}

// Return (recipe, reason) for all recipes that were not materialized; an empty reason: the file is left to another
// decoder.
std::vector<std::pair<int64_t, std::string>> failures(const RecipeBatch& batch) {
  std::vector<std::pair<int64_t, std::string>> out;
  for (int64_t i = 0; i < batch.count(); ++i) {
    if (batch.status[i] == Status::Done) continue;
    const bool pending = batch.status[i] == Status::Pending;
    out.emplace_back(i, pending ? "it was not begun" : batch.why[i]);
  }
  return out;
}

// Block of a pool that is lent to Python. It returns to the pool when Python releases it; then `released` is called.
struct BorrowedBlock {
  BlockPool::Block block;
  nb::object released;
};

void release_block(void* p) noexcept {
  auto* borrowed = static_cast<BorrowedBlock*>(p);
  const bool alive = nb::is_alive();  // else there is no interpreter to call anything or to drop a reference
  nb::handle released = borrowed->released.release();
  delete borrowed;
  if (!alive || !released.is_valid()) return;
  const nb::object call = nb::steal(released);
  if (call.is_none()) return;
  PyObject *type, *value, *trace;  // an exception that is being raised must survive the call
  PyErr_Fetch(&type, &value, &trace);
  try {
    call();
  } catch (nb::python_error& error) { error.discard_as_unraisable("a batch releases its memory"); }
  PyErr_Restore(type, value, trace);
}

nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>> take(const std::shared_ptr<BlockPool>& pool, size_t bytes,
                                                  nb::object released) {
  auto* borrowed = new BorrowedBlock{pool->take(bytes ? bytes : 1), std::move(released)};
  nb::capsule owner(borrowed, &release_block);
  return {borrowed->block.data, {bytes}, owner};
}

// Read the first `size` bytes of an open file; return None if it has fewer. Small files use the pool's memory, which
// bounds the idle memory. Large files use memory of their own: their decoding takes so long that clearing a few pages
// does not matter.
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
  int error = 0;
  const int64_t count = stoker::without_gil([&] {
    const int64_t done = stoker::read_file(fd, 0, data, size);
    error = errno;  // read it before the GIL is taken, which may change it
    return done;
  });
  if (count < 0) {
    errno = error;
    PyErr_SetFromErrno(PyExc_OSError);
    throw nb::python_error();
  }
  if (count < static_cast<int64_t>(size)) return nb::none();
  return nb::cast(nb::ndarray<nb::numpy, const uint8_t, nb::ndim<1>>(data, {size}, owner));
}

// Return a file reference to an open file (io/file_ref.hpp), or None if it cannot be referenced.
nb::object make_file_ref(int fd, const nb::bytes& path, double settled_s) {
  const std::string name(path.c_str(), path.size());
  const std::string ref = stoker::without_gil([&] { return stoker::make_file_ref(fd, name, settled_s); });
  if (ref.empty()) return nb::none();
  return nb::bytes(ref.data(), ref.size());
}

const uint8_t* bytes_of(const nb::bytes& ref) { return reinterpret_cast<const uint8_t*>(ref.c_str()); }

bool is_file_ref_unchanged(const nb::bytes& ref) {
  const uint8_t* const bytes = bytes_of(ref);
  const size_t size = ref.size();
  return stoker::without_gil([&] { return stoker::is_file_ref_unchanged(bytes, size); });
}

bool is_file_ref_of(const nb::bytes& ref, int fd) {
  const uint8_t* const bytes = bytes_of(ref);
  const size_t size = ref.size();
  return stoker::without_gil([&] { return stoker::is_file_ref_of(bytes, size, fd); });
}

// Read the referenced file.
nb::bytes read_file_ref(const nb::bytes& ref) {
  stoker::Scratch scratch;
  stoker::View out;
  std::string error;
  const uint8_t* const bytes = bytes_of(ref);
  const size_t size = ref.size();
  const bool done = stoker::without_gil([&] { return stoker::read_file_ref(bytes, size, scratch, out, error); });
  if (!done) {
    PyErr_SetString(PyExc_OSError, error.c_str());
    throw nb::python_error();
  }
  return nb::bytes(out.data, static_cast<size_t>(out.shape[0]));
}

// Structures of the Arrow C data interface (arrow.apache.org/docs/format/CDataInterface.html), up to the members that
// are read here.
struct ArrowSchema {
  const char *format, *name, *metadata;
  int64_t flags, n_children;
  ArrowSchema** children;
};
struct ArrowArray {
  int64_t length, null_count, offset, n_buffers, n_children;
  const void** buffers;
  ArrowArray** children;
};

// Return the bytes of an array of bytes, or of lists of four bytes, as Pillow exports its memory; None for other arrays.
// The result refers to the memory of `array`, and keeps it alive.
nb::object bytes_of_arrow(nb::handle schema, nb::handle array) {
  const auto* type = static_cast<const ArrowSchema*>(PyCapsule_GetPointer(schema.ptr(), "arrow_schema"));
  if (!type) throw nb::python_error();
  const auto* data = static_cast<const ArrowArray*>(PyCapsule_GetPointer(array.ptr(), "arrow_array"));
  if (!data) throw nb::python_error();
  const std::string_view format = type->format;
  int64_t count = data->length;
  if (data->null_count != 0 || data->offset != 0 || count < 0) return nb::none();
  if (format == "+w:4") {
    if (type->n_children != 1 || std::string_view(type->children[0]->format) != "C" || data->n_children != 1)
      return nb::none();
    data = data->children[0];
    count *= 4;
    if (data->null_count != 0 || data->offset != 0 || data->length < count) return nb::none();
  } else if (format != "C") {
    return nb::none();
  }
  if (data->n_buffers != 2 || data->buffers[1] == nullptr) return nb::none();
  const auto* bytes = static_cast<const uint8_t*>(data->buffers[1]);
  return nb::cast(
      nb::ndarray<nb::numpy, const uint8_t, nb::ndim<1>>(bytes, {static_cast<size_t>(count)}, nb::borrow(array)));
}

// Ask the system for large pages in new memory that will be written as a whole. Clearing pages of 4 KiB one by one takes
// longer than computing an image.
void advise_large_pages(const OutputArray& memory) {
#if defined(__linux__)
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<uintptr_t>(memory.data());
  const uintptr_t begin = (first + page - 1) / page * page, end = (first + memory.shape(0)) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);  // an error changes nothing
#else
  (void)memory;
#endif
}

using Masks = nb::ndarray<const uint8_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using NewMasks = nb::ndarray<uint8_t, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

// Resize masks [N,H,W] with torch's mode "nearest" or "nearest-exact".
void pick_nearest(const Masks& from, const NewMasks& to, bool exact) {
  if (from.shape(0) != to.shape(0)) throw std::invalid_argument("expected as many results as masks");
  const auto view = [](const auto& masks) {
    stoker::View v;
    v.rank = 3;
    v.shape[0] = static_cast<int64_t>(masks.shape(1));
    v.shape[1] = static_cast<int64_t>(masks.shape(2));
    v.shape[2] = 1;
    v.set_contiguous_strides();
    v.data = const_cast<uint8_t*>(masks.data());  // the masks are only read
    return v;
  };
  stoker::View src = view(from), dst = view(to);
  const int64_t in = src.shape[0] * src.shape[1], out = dst.shape[0] * dst.shape[1];
  const bool fits = stoker::without_gil([&] {
    stoker::Scratch scratch;
    for (size_t i = 0; i < from.shape(0); ++i, src.data += in, dst.data += out)
      if (!stoker::torch_resize::pick(src, exact, dst, scratch)) return false;
    return true;
  });
  if (!fits) throw std::invalid_argument("expected masks with pixels");
}

// Remove an object, and the members of a list, from Python's cyclic garbage collector.
void untrack(nb::handle object) {
  const auto forget = [](PyObject* o) {
    if (PyObject_GC_IsTracked(o)) PyObject_GC_UnTrack(o);
  };
  forget(object.ptr());
  if (!PyList_CheckExact(object.ptr())) return;
  for (Py_ssize_t i = 0; i < PyList_Size(object.ptr()); ++i) forget(PyList_GetItem(object.ptr(), i));
}

}  // namespace

void bind_recipe(nb::module_& m) {
  nb::module_ recipe = m.def_submodule("recipe", "Recipes: one row's steps, interpreted.");
  nb::list names;
#define STOKER_RECIPE_LIST(name, count, on_gpu, fields) names.append(nb::make_tuple(#name, count, on_gpu, fields));
  STOKER_RECIPE_OPS(STOKER_RECIPE_LIST)
#undef STOKER_RECIPE_LIST
  recipe.attr("OPS") = nb::tuple(names);
  nb::class_<RecipeBatch>(recipe, "RecipeBatch")
      .def_prop_ro("done", [](const RecipeBatch& o) { return o.remaining.load() == 0; })
      .def_prop_ro("thread_s", [](const RecipeBatch& o) { return static_cast<double>(o.thread_ns.load()) * 1e-9; })
      .def_prop_ro("failures", &failures);
  recipe.def("has_chain", &has_chain, nb::arg("table"),
             "Return whether this processor computes a table of 256 floats by sums and a division instead of lookups.");
  recipe.def("make_batch", &make_batch, nb::arg("numbers"), nb::arg("starts"), nb::arg("sources"), nb::arg("tables"),
             nb::arg("outputs"));
  recipe.def("materialize", [](const std::shared_ptr<RecipeBatch>& batch) {
    stoker::without_gil([&] { stoker::recipe::materialize_all(*batch); });
  });
  nb::class_<WorkerPool>(recipe, "WorkerPool")
      .def(nb::new_([](int threads) { return stoker::own_with_threads(new WorkerPool(threads)); }))
      .def("submit", &WorkerPool::submit)
      .def("prioritize", &WorkerPool::prioritize)
      .def("wait", [](WorkerPool& pool, const std::shared_ptr<RecipeBatch>& batch,
                      double timeout_s) { return stoker::without_gil([&] { return pool.wait(batch, timeout_s); }); })
      .def("set_active", &WorkerPool::set_active)
      .def("close", [](WorkerPool& pool) { stoker::without_gil([&] { pool.close(); }); });
  nb::class_<BlockPool>(recipe, "BlockPool")
      .def("__init__", [](BlockPool*) { throw std::invalid_argument("use block_pool()"); })
      .def("take", &take, nb::arg("bytes"), nb::arg("released") = nb::none())
      .def("read", &read_file);
  recipe.def("make_file_ref", &make_file_ref);
  recipe.def("read_file_ref", &read_file_ref);
  recipe.def("is_file_ref_unchanged", &is_file_ref_unchanged);
  recipe.def("is_file_ref_of", &is_file_ref_of);
  recipe.def("untrack", &untrack);
  recipe.def("bytes_of_arrow", &bytes_of_arrow);
  recipe.def("advise_large_pages", &advise_large_pages);
  recipe.def("pick_nearest", &pick_nearest, nb::arg("masks"), nb::arg("results"), nb::arg("exact"));
  recipe.def("block_pool", [](size_t kept) { return std::make_shared<BlockPool>(kept); });
}
