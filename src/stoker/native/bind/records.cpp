// SPDX-License-Identifier: Apache-2.0
#include "bind/records.hpp"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bind/arrays.hpp"
#include "bind/gil.hpp"
#include "container/blake2b.hpp"
#include "io/kept_blocks.hpp"
#include "io/kept_shards.hpp"
#include "io/read_ahead.hpp"
#include "io/records.hpp"

namespace nb = nanobind;

namespace stoker {

namespace {

template <class T>
using Numbers = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Bytes = Numbers<uint8_t>;

std::vector<uint64_t> checked_ends(const Bytes& names, const Keys& offsets) {
  const uint64_t* ends = offsets.data();
  const size_t n = offsets.shape(0), size = names.shape(0);
  bool fits = n > 0 && ends[0] == 0 && ends[n - 1] == size;
  for (size_t i = 1; fits && i < n; ++i)
    fits = ends[i - 1] < ends[i] && ends[i] <= size && names.data()[ends[i] - 1] == 0;
  if (!fits) throw nb::value_error("expected names with a zero after each, and where each begins and ends");
  return {ends, ends + n};
}

// Convert arrays to the ranges of a table over `files` files or buffers.
PackedRanges packed(size_t files, const Numbers<uint32_t>& file, const Keys& offset, const Keys& length,
                    const Bytes& codec) {
  const size_t count = file.shape(0);
  if (offset.shape(0) != count || length.shape(0) != count || codec.shape(0) != count)
    throw nb::value_error("expected a file, an offset, a length and a codec for each record");
  PackedRanges ranges;
  ranges.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const Range r{file.data()[i], offset.data()[i], length.data()[i], static_cast<Codec>(codec.data()[i])};
    const bool is_absent = r.codec == Codec::Absent;
    if (!is_known(r.codec)) throw nb::value_error("expected a codec that there is");
    if (!is_absent && (r.file >= files || r.length > PackedRanges::kMaxBytes || r.offset > INT64_MAX - r.length))
      throw nb::value_error("expected records in files that there are, of less than 2**56 bytes");
    ranges.add(is_absent ? Range{0, 0, 0, Codec::Absent} : r);
  }
  return ranges;
}

// Convert sizes and modification times to the states of `files` files.
std::vector<FileState> states_of(size_t files, const std::optional<Numbers<int64_t>>& states) {
  if (!states) return {};
  if (states->shape(0) != 2 * files) throw nb::value_error("expected a size and a modification time for each file");
  std::vector<FileState> found(files);
  for (size_t i = 0; i < files; ++i) found[i] = {states->data()[2 * i], states->data()[2 * i + 1]};
  return found;
}

using RangeTuple = std::tuple<uint32_t, uint64_t, uint64_t, int>;

template <class Table>
RangeTuple item(const Table& table, size_t i) {
  if (i >= table.size()) throw nb::index_error();
  const Range r = table.ranges()[i];
  return {r.file, r.offset, r.length, static_cast<int>(r.codec)};
}

template <class Table>
auto absent(const Table& table) {
  return column<bool>(table.size(), [&](size_t i) { return table.ranges()[i].codec == Codec::Absent; });
}

RangeTable* joined_ranges(std::shared_ptr<FileTable> files, const std::vector<std::shared_ptr<RangeTable>>& tables) {
  PackedRanges ranges;
  std::vector<FileState> states;
  size_t first_file = 0;
  for (const auto& table : tables) {
    for (size_t file = 0; file < table->files().size(); ++file) states.push_back(table->state(file));
    ranges.add_all(table->ranges(), static_cast<uint32_t>(first_file));
    first_file += table->files().size();
  }
  if (first_file != files->size()) throw nb::value_error("expected the files of all tables");
  return new RangeTable(std::move(files), std::move(ranges), std::move(states));
}

MemoryTable* joined_memory(const nb::tuple& tables) {
  PackedRanges ranges;
  std::vector<MemoryTable::Buffer> buffers;
  for (const nb::handle one : tables) {
    const auto& table = nb::cast<const MemoryTable&>(one);
    ranges.add_all(table.ranges(), static_cast<uint32_t>(buffers.size()));
    buffers.insert(buffers.end(), table.buffers().begin(), table.buffers().end());
  }
  return new MemoryTable(std::move(buffers), std::move(ranges));
}

class BytesAllocator final : public BufferAllocator {
 public:
  uint8_t* get(size_t bytes) override { return bytes_.resize(bytes), bytes_.data(); }

 private:
  std::vector<uint8_t> bytes_;
};

nb::bytes content(const Records& records, size_t i) {
  if (i >= records.size()) throw nb::index_error();
  BytesAllocator allocator;
  View out;
  std::string error;
  const bool good = without_gil([&] {
    try {
      return records.read(i, allocator, out, error);
    } catch (const std::runtime_error& failure) {  // SystemFailure or ReadFailure
      error = failure.what();
      return false;
    }
  });
  if (!good) {
    PyErr_SetString(PyExc_OSError, error.c_str());
    throw nb::python_error();
  }
  return nb::bytes(out.data, static_cast<size_t>(out.shape[0]));
}

std::vector<MemoryTable::Buffer> buffers_of(const nb::tuple& list) {
  std::vector<MemoryTable::Buffer> found;
  for (const nb::handle one : list) {
    const auto bytes = nb::cast<Bytes>(one, false);
    found.push_back({bytes.data(), bytes.shape(0)});
  }
  return found;
}

}  // namespace

namespace {

void bind_read_ahead(nb::module_& m) {
  nb::class_<ReadAhead>(m, "ReadAhead")
      .def(nb::new_([](int threads, uint64_t max_bytes) {
        if (threads < 1) throw nb::value_error("expected at least one thread");
        return own_with_threads(new ReadAhead(threads, max_bytes));
      }))
      .def("request",
           [](ReadAhead& self, std::shared_ptr<Records> records, const Numbers<int64_t>& samples, uint64_t first_row) {
             self.request(std::move(records), {samples.data(), samples.data() + samples.shape(0)}, first_row);
           })
      .def("release", &ReadAhead::release)
      .def("drop", &ReadAhead::drop)
      .def("close", [](ReadAhead& self) { without_gil([&] { self.close(); }); })
      .def_prop_ro("pending", &ReadAhead::pending)
      .def_prop_ro("counts", [](const ReadAhead& self) {
        const ReadAhead::Counts c = self.counts();
        return std::tuple{c.records, c.bytes, c.from_disk};
      });
}

void check_blocks(uint64_t block_bytes, uint64_t piece_bytes) {
  if (block_bytes == 0 || block_bytes > (uint64_t{1} << 32) || piece_bytes == 0 || piece_bytes > KeptBlocks::kMaxPiece)
    throw nb::value_error("expected blocks of 1 to 2**32 bytes with checksums of at most 32 KiB each");
}

KeptBlocks* kept_blocks(const std::vector<std::string>& folders, const Keys& sizes, const Numbers<uint32_t>& file,
                        const Keys& offset, const Keys& length, const Bytes& codec, uint64_t block_bytes,
                        uint64_t piece_bytes) {
  if (folders.size() != sizes.shape(0)) throw nb::value_error("expected a folder and a size for each object");
  check_blocks(block_bytes, piece_bytes);
  std::vector<KeptBlocks::Object> objects;
  for (size_t i = 0; i < folders.size(); ++i) objects.push_back({folders[i] + "/", sizes.data()[i]});
  PackedRanges ranges = packed(objects.size(), file, offset, length, codec);
  for (size_t i = 0; i < ranges.size(); ++i) {
    const Range r = ranges[i];
    if (r.codec == Codec::Absent) continue;
    const uint64_t size = objects[r.file].size;
    if (r.offset > size || r.length > size - r.offset)
      throw nb::value_error("expected records inside of their objects");
  }
  return new KeptBlocks(std::move(objects), std::move(ranges), block_bytes, piece_bytes);
}

// Return the sizes of records: of all, whose ranges are in memory.
auto lengths_of(const KeptBlocks& kept) {
  if (!kept.is_in_memory()) throw nb::value_error("expected records whose ranges are in memory");
  return column<int64_t>(kept.size(), [&](size_t i) {
    uint64_t bytes = 0;
    std::string error;
    kept.find_bytes(i, bytes, error);
    return static_cast<int64_t>(bytes);
  });
}

nb::object read_kept(const KeptBlocks& kept, size_t i) {
  if (i >= kept.size()) throw nb::index_error();
  std::vector<uint8_t> found;
  const bool is_good = without_gil([&] {
    uint64_t bytes = 0;
    std::string error;
    if (!kept.find_bytes(i, bytes, error)) return false;
    found.resize(bytes);
    return kept.read(i, found.data(), bytes);
  });
  return is_good ? nb::object(nb::bytes(found.data(), found.size())) : nb::none();
}

KeptBlocks* kept_shards(std::shared_ptr<ManifestTable> table, const std::string& folder, uint64_t block_bytes,
                        uint64_t piece_bytes) {
  check_blocks(block_bytes, piece_bytes);
  return new KeptBlocks(std::make_shared<KeptShards>(std::move(table), folder + "/"), block_bytes, piece_bytes);
}

void bind_kept_blocks(nb::module_& m) {
  nb::class_<KeptBlocks>(m, "KeptBlocks")
      .def(nb::new_(&kept_blocks))
      .def_static("of_manifest", &kept_shards)
      .def("__len__", &KeptBlocks::size)
      .def("lengths", &lengths_of)
      .def("read", &read_kept);
  m.def("blake2b_128", [](const nb::bytes& data) {
    const auto digest = blake2b_128(reinterpret_cast<const uint8_t*>(data.c_str()), data.size());
    return nb::bytes(digest.data(), digest.size());
  });
}

}  // namespace

void bind_records(nb::module_& m) {
  nb::class_<Records>(m, "Records").def("__len__", &Records::size).def("content", &content);
  nb::class_<FileTable, Records>(m, "FileTable")
      .def("__init__",
           [](FileTable* self, const nb::bytes& root, const Bytes& names, const Keys& offsets) {
             new (self) FileTable(std::string(root.c_str(), root.size()),
                                  std::string(reinterpret_cast<const char*>(names.data()), names.shape(0)),
                                  checked_ends(names, offsets));
           })
      .def("__getitem__",
           [](const FileTable& t, size_t i) {
             if (i >= t.size()) throw nb::index_error();
             const std::string path = t.path(i);
             return nb::bytes(path.data(), path.size());
           })
      .def_static("joined", [](const std::vector<std::shared_ptr<FileTable>>& tables) {
        return new FileTable(FileTable::joined({tables.begin(), tables.end()}));
      });
  nb::class_<RangeTable, Records>(m, "RangeTable")
      .def(
          "__init__",
          [](RangeTable* self, std::shared_ptr<FileTable> files, const Numbers<uint32_t>& file, const Keys& offset,
             const Keys& length, const Bytes& codec, const std::optional<Numbers<int64_t>>& states) {
            PackedRanges ranges = packed(files->size(), file, offset, length, codec);
            std::vector<FileState> known = states_of(files->size(), states);
            new (self) RangeTable(std::move(files), std::move(ranges), std::move(known));
          },
          nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg("states") = nb::none())
      .def("__getitem__", &item<RangeTable>)
      .def_static("joined", &joined_ranges)
      .def("absent", &absent<RangeTable>)
      .def_prop_ro("bytes", [](const RangeTable& t) { return t.ranges().bytes(); })
      .def_prop_ro("open_files", &RangeTable::open_files)
      .def("close", &RangeTable::close);
  // The table keeps the tuple and thereby the arrays, whose memory the records are read from.
  nb::class_<MemoryTable, Records>(m, "MemoryTable")
      .def(
          "__init__",
          [](MemoryTable* self, const nb::tuple& buffers, const Numbers<uint32_t>& file, const Keys& offset,
             const Keys& length, const Bytes& codec) {
            std::vector<MemoryTable::Buffer> found = buffers_of(buffers);
            PackedRanges ranges = packed(found.size(), file, offset, length, codec);
            for (size_t i = 0; i < ranges.size(); ++i) {
              const Range r = ranges[i];
              if (r.codec == Codec::Absent) continue;
              if (r.codec != Codec::Stored) throw nb::value_error("expected stored records in memory");
              const uint64_t size = found[r.file].size;
              if (r.offset > size || r.length > size - r.offset)
                throw nb::value_error("expected records inside of their buffers");
            }
            new (self) MemoryTable(std::move(found), std::move(ranges));
          },
          nb::keep_alive<1, 2>())
      .def("__getitem__", &item<MemoryTable>)
      .def_static("joined", &joined_memory, nb::keep_alive<0, 1>())
      .def("absent", &absent<MemoryTable>);
  bind_read_ahead(m);
  bind_kept_blocks(m);
}

}  // namespace stoker
