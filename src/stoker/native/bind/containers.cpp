// SPDX-License-Identifier: Apache-2.0
#include "bind/containers.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "audio/mpeg.hpp"
#include "bind/arrays.hpp"
#include "bind/gil.hpp"
#include "container/crc32c.hpp"
#include "container/group.hpp"
#include "container/lz4.hpp"
#include "container/npy.hpp"
#include "container/scan.hpp"
#include "io/file_source.hpp"

namespace nb = nanobind;

namespace stoker {

namespace {

using Longs64 = nb::ndarray<nb::numpy, uint64_t, nb::ndim<1>>;
using Bytes8 = nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>>;
using Bytes8In = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
constexpr size_t kLongChecksum = size_t{1} << 20;  // bytes; fewer take less time than the GIL may

using Signed64 = nb::ndarray<nb::numpy, int64_t, nb::ndim<1>>;

Longs64 array_of(const std::vector<uint64_t>& values) {
  return column<uint64_t>(values.size(), [&](size_t i) { return values[i]; });
}

// Call `scan(file)` without the GIL; an error of the system becomes an OSError.
template <class F>
Damage scanned(const nb::bytes& path, F scan) {
  const std::string name(path.c_str(), path.size());
  std::string error;
  Damage damage;
  without_gil([&] {
    try {
      FileSource file(name);
      damage = scan(file);
    } catch (const std::runtime_error& failure) { error = failure.what(); }
  });
  if (!error.empty()) {
    PyErr_SetString(PyExc_OSError, error.c_str());
    throw nb::python_error();
  }
  return damage;
}

template <Damage (*kScan)(ByteSource&, Spans&)>
nb::tuple scan_records(const nb::bytes& path) {
  Spans records;
  const Damage damage = scanned(path, [&](ByteSource& file) { return kScan(file, records); });
  return nb::make_tuple(array_of(records.offset), array_of(records.length), damage.offset, damage.what);
}

template <Damage (*kScan)(ByteSource&, Members&)>
nb::tuple scan_members(const nb::bytes& path) {
  Members found;
  const Damage damage = scanned(path, [&](ByteSource& file) { return kScan(file, found); });
  return nb::make_tuple(array_of(found.data.offset), array_of(found.data.length),
                        nb::bytes(found.names.data(), found.names.size()), damage.offset, damage.what);
}

nb::tuple mpeg_frames(const nb::bytes& data, size_t start, int64_t most) {
  std::string error;
  const auto* bytes = reinterpret_cast<const uint8_t*>(data.c_str());
  const mpeg::Frames frames = without_gil([&] { return mpeg::check(bytes, data.size(), start, most, &error); });
  return nb::make_tuple(frames.count, frames.end, error);
}

nb::tuple group(const nb::bytes& names, const std::vector<std::vector<std::string>>& extensions, bool fold_case) {
  Samples samples;
  const std::string_view text(names.c_str(), names.size());
  without_gil([&] { samples = group_members(text, extensions, fold_case); });
  const auto as_array = [](const std::vector<int64_t>& values) {
    return column<int64_t>(values.size(), [&](size_t i) { return values[i]; });
  };
  return nb::make_tuple(as_array(samples.first), as_array(samples.chosen));
}

// Return the contents of an LZ4 block of a known size.
Bytes8 decompress(const Bytes8In& block, size_t size) {
  bool is_good = false;
  Bytes8 made = column<uint8_t>(size, [](size_t) { return uint8_t{0}; });
  without_gil([&] { is_good = decompress_lz4({block.data(), block.size()}, made.data(), size); });
  if (!is_good) throw nb::value_error("expected an LZ4 block of this size");
  return made;
}

uint32_t checksum(const nb::bytes& data, uint32_t before) {
  return crc32c(reinterpret_cast<const uint8_t*>(data.c_str()), data.size(), before);
}

// Return the CRC32C of each piece of `piece` bytes, 4 bytes each and the least significant first. The last piece may be
// shorter.
nb::bytes checksums_of_pieces(const Bytes8In& data, size_t piece) {
  if (piece == 0) throw nb::value_error("expected pieces of at least one byte");
  std::vector<uint32_t> sums;
  const auto compute = [&] {
    for (size_t at = 0; at < data.size(); at += piece)
      sums.push_back(crc32c(data.data() + at, std::min(piece, data.size() - at)));
  };
  if (data.size() >= kLongChecksum) without_gil(compute);
  else compute();
  return nb::bytes(sums.data(), sums.size() * sizeof(uint32_t));
}

// Element type and extents of the array in a file that begins with `data`.
nb::tuple npy_header(const nb::bytes& data) {
  NpyHeader header;
  std::string error;
  if (!read_npy_header(reinterpret_cast<const uint8_t*>(data.c_str()), data.size(), header, error))
    throw nb::value_error(error.c_str());
  nb::list shape;
  for (int i = 0; i < header.rank; ++i) shape.append(header.shape[i]);
  return nb::make_tuple(static_cast<int>(header.dtype), nb::tuple(shape));
}

}  // namespace

void bind_containers(nb::module_& m) {
  m.def("scan_tfrecord", &scan_records<scan_tfrecord>);
  m.def("scan_recordio", &scan_records<scan_recordio>);
  m.def("scan_lmdb", &scan_records<scan_lmdb>);
  m.def("scan_tar", &scan_members<scan_tar>);
  m.def("scan_zip", &scan_members<scan_zip>);
  m.def("decompress_lz4", &decompress);
  m.def("group_members", &group);
  m.def("npy_header", &npy_header);
  m.def("mpeg_frames", &mpeg_frames, nb::arg("data"), nb::arg("start"), nb::arg("most"));
  m.def("crc32c", &checksum, nb::arg("data"), nb::arg("before") = 0);
  m.def("crc32c_of_pieces", &checksums_of_pieces, nb::arg("data"), nb::arg("piece"));
}

}  // namespace stoker
