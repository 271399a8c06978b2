// SPDX-License-Identifier: Apache-2.0
#include "bind/manifest.hpp"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "bind/arrays.hpp"
#include "bind/gil.hpp"
#include "io/manifest.hpp"

namespace nb = nanobind;

namespace stoker {

namespace {

using Bytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

std::string text_of(const nb::bytes& value) { return {value.c_str(), value.size()}; }

[[noreturn]] void raise_os_error(const std::string& error) {
  PyErr_SetString(PyExc_OSError, error.c_str());
  throw nb::python_error();
}

// Call `read(error)` without the GIL; a failure becomes an OSError.
template <class F>
void read_or_raise(F read) {
  std::string error;
  const bool is_good = without_gil([&] {
    try {
      return read(error);
    } catch (const std::runtime_error& failure) {  // SystemFailure or ReadFailure
      error = failure.what();
      return false;
    }
  });
  if (!is_good) raise_os_error(error);
}

void make_manifest(Manifest* self, const nb::bytes& path, uint64_t texts_begin, const nb::bytes& entries_path,
                   const nb::bytes& root, const Bytes& table, uint64_t samples, uint64_t entries) {
  if (table.shape(0) % sizeof(ManifestShard) != 0) throw nb::value_error("expected rows of 40 bytes");
  std::vector<ManifestShard> shards(table.shape(0) / sizeof(ManifestShard));
  if (!shards.empty()) std::memcpy(shards.data(), table.data(), table.shape(0));
  new (self)
      Manifest({text_of(path), text_of(entries_path), text_of(root), texts_begin}, std::move(shards), samples, entries);
}

// Name and tag of a shard.
std::tuple<nb::bytes, nb::bytes> text(const Manifest& manifest, size_t shard) {
  if (shard >= manifest.shards()) throw nb::index_error();
  std::string found;
  read_or_raise([&](std::string& error) { return manifest.text(shard, found, error); });
  const size_t end = std::min(found.find('\0'), found.size()), next = std::min(end + 1, found.size());
  return {nb::bytes(found.data(), end), nb::bytes(found.data() + next, found.size() - next)};
}

// (first sample, first entry, bytes of the file, columns) of a shard.
std::tuple<uint64_t, uint64_t, uint64_t, uint32_t> shard(const Manifest& manifest, size_t number) {
  if (number >= manifest.shards()) throw nb::index_error();
  const ManifestShard& s = manifest[number];
  return {s.start, s.first, s.size, s.columns};
}

auto shards_of(const Manifest& manifest, const Keys& samples) {
  for (size_t i = 0; i < samples.shape(0); ++i)
    if (samples.data()[i] >= manifest.size()) throw nb::index_error();
  return column<uint64_t>(samples.shape(0), [&](size_t i) { return manifest.shard_of(samples.data()[i]); });
}

std::tuple<uint32_t, uint64_t, uint64_t, int> find(const ManifestTable& table, size_t i) {
  if (i >= table.size()) throw nb::index_error();
  Range r;
  read_or_raise([&](std::string& error) { return table.find(i, r, error); });
  return {r.file, r.offset, r.length, static_cast<int>(r.codec)};
}

ManifestTable* make_table(std::shared_ptr<Manifest> manifest, std::vector<uint32_t> columns, int codec) {
  if (codec < 0 || codec > 255 || !is_known(static_cast<Codec>(codec)))
    throw nb::value_error("expected a codec that there is");
  return new ManifestTable(std::move(manifest), std::move(columns), static_cast<Codec>(codec));
}

JoinedRecords* joined(const std::vector<std::shared_ptr<Records>>& parts) {
  return new JoinedRecords({parts.begin(), parts.end()});
}

// Entries for a manifest's file: number of the first one; offsets and lengths.
auto pack_entries(uint64_t first, const Keys& offset, const Keys& length) {
  const size_t count = offset.shape(0);
  if (length.shape(0) != count) throw nb::value_error("expected as many offsets as lengths");
  std::vector<uint8_t> packed(count * ManifestEntry::kBytes);
  for (size_t i = 0; i < count; ++i)
    ManifestEntry{offset.data()[i], length.data()[i]}.store(first + i, packed.data() + i * ManifestEntry::kBytes);
  return nb::bytes(packed.data(), packed.size());
}

// Offsets and lengths of entries. ValueError if a checksum is wrong.
nb::tuple unpack_entries(uint64_t first, const nb::bytes& packed) {
  const size_t count = packed.size() / ManifestEntry::kBytes;
  std::vector<ManifestEntry> found(count);
  const auto* from = reinterpret_cast<const uint8_t*>(packed.c_str());
  for (size_t i = 0; i < count; ++i)
    if (!found[i].load(first + i, from + i * ManifestEntry::kBytes))
      throw nb::value_error(("entry " + std::to_string(first + i) + " has a wrong checksum").c_str());
  return nb::make_tuple(column<uint64_t>(count, [&](size_t i) { return found[i].offset; }),
                        column<uint64_t>(count, [&](size_t i) { return found[i].length; }));
}

// Size of a file and its version, as a manifest stores it.
std::tuple<uint64_t, std::string> file_version(const nb::bytes& path) {
  const std::string name = text_of(path);
  FileState state;
  FileVersion version;
  read_or_raise([&](std::string& error) {
    const OpenFile file(name);
    uint64_t size = 0;
    if (!is_regular(file, name, size, error)) return false;
    if (!find_state(file, state)) return cannot_read(name, errno, error);
    version.mtime_ns = state.mtime_ns;
    return sampled_checksum(file, static_cast<uint64_t>(state.size), name, version.checksum, error);
  });
  return {static_cast<uint64_t>(state.size), version.text()};
}

}  // namespace

void bind_manifest(nb::module_& m) {
  nb::class_<Manifest>(m, "Manifest")
      .def("__init__", &make_manifest)
      .def("__len__", &Manifest::size)
      .def_prop_ro("shards", &Manifest::shards)
      .def_prop_ro("open_files", &Manifest::open_files)
      .def("shard", &shard)
      .def("shards_of", &shards_of)
      .def("text", &text)
      .def("close", &Manifest::close);
  nb::class_<ManifestTable, Records>(m, "ManifestTable").def(nb::new_(&make_table)).def("find", &find);
  nb::class_<JoinedRecords, Records>(m, "JoinedRecords").def(nb::new_(&joined));
  m.def("pack_entries", &pack_entries);
  m.def("unpack_entries", &unpack_entries);
  m.def("file_version", &file_version);
}

}  // namespace stoker
