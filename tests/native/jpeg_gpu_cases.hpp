// SPDX-License-Identifier: Apache-2.0
// Batches of JPEG rows for the GPU decoder: read from a file of cases, decoded by some device, compared with the CPU
// decoder. Prints a line per row: outcome, status and difference.
#pragma once
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "base/widen.hpp"
#include "gpu_kernels/jpeg.hpp"
#include "jpeg/orientation.hpp"
#include "gpu_kernels/jpeg_parts.hpp"

namespace stoker::jpeg::gpu {

// Header in a file of cases, little endian. `rows` times a RowCase and the bytes of the file follow.
struct BatchCase {
  uint32_t rows, format, adjust;
  uint32_t unstuff_threads, entropy_threads, pixel_threads, min_bits, max_rounds, seed, scale_log2, passes, spoil;
  uint32_t parts, scratch_kb;                // the most memory of a launch; 0: any
  uint32_t spread_rows, lead_bits, element;  // `element`: index into kElementTypes
  uint64_t memory, index_bytes, piece_bytes;
};
struct RowCase {
  uint32_t bytes;
  int32_t y0, x0, height, width;  // as shown; height 0: all of the picture
};

// A file and its window.
struct TestRow {
  std::vector<uint8_t> file;
  int32_t y0, x0, height, width;
  int32_t channels;
  std::string error;
  std::vector<uint8_t> part = {};  // the bytes that are read of an indexed file: its header and chunks of its data
  PartRead read = {};
};

struct TestCase {
  BatchCase head;
  std::vector<TestRow> rows;

  Format format() const { return static_cast<Format>(head.format); }
  DType dtype() const { return kElementTypes[head.element].dtype; }
  Settings settings() const {
    Settings settings = {head.unstuff_threads, head.entropy_threads, head.pixel_threads,
                         head.min_bits,        head.max_rounds,      static_cast<size_t>(head.memory)};
    settings.spread_rows = head.spread_rows;
    settings.spread_threads = head.entropy_threads;
    settings.subsequences = 3 * head.entropy_threads;  // more than there are threads
    settings.spread_bits = head.min_bits;
    settings.guess_threads = 64;
    settings.write_threads = 64;
    settings.lead_bits = head.lead_bits;
    return settings;
  }
};

template <typename T>
T read_plain(std::istream& in) {
  T value;
  in.read(reinterpret_cast<char*>(&value), sizeof value);
  return value;
}

inline void complete(TestRow& row, const BatchCase& head) {
  Info info;
  parse(row.file.data(), row.file.size(), info);
  const bool swap = turn_of(head.adjust ? info.orientation : 1).swap;
  if (row.height == 0) {
    const jpeg::Extent whole = scaled_extent(info, static_cast<int>(head.scale_log2));
    row.height = swap ? whole.width : whole.height;
    row.width = swap ? whole.height : whole.width;
  }
  row.channels = channels(info, static_cast<Format>(head.format));
}

inline std::vector<TestCase> read_cases(const char* path) {
  std::ifstream in(path, std::ios::binary);
  std::vector<TestCase> cases(read_plain<uint32_t>(in));
  for (TestCase& c : cases) {
    c.head = read_plain<BatchCase>(in);
    for (uint32_t i = 0; i < c.head.rows; ++i) {
      const RowCase r = read_plain<RowCase>(in);
      TestRow row{std::vector<uint8_t>(r.bytes), r.y0, r.x0, r.height, r.width, 0, {}};
      in.read(reinterpret_cast<char*>(row.file.data()), r.bytes);
      complete(row, c.head);
      c.rows.push_back(std::move(row));
    }
  }
  if (!in) std::fprintf(stderr, "cannot read '%s'\n", path), std::exit(2);
  return cases;
}

// Decodes on the CPU, oriented upright on request.
inline std::vector<uint8_t> on_cpu(const TestRow& row, const BatchCase& head, jpeg::Status& status) {
  Info info;
  std::vector<uint8_t> out(static_cast<size_t>(row.height) * static_cast<size_t>(row.width * row.channels));
  status = jpeg::Status::Unsupported;
  if (!parse(row.file.data(), row.file.size(), info) || out.empty()) return out;
  const Turn turn = turn_of(head.adjust ? info.orientation : 1);
  const int scale_log2 = static_cast<int>(head.scale_log2);
  const Window w = stored_window(scaled_extent(info, scale_log2), turn, row.y0, row.x0, row.height, row.width);
  const int64_t line = (w.x1 - w.x0) * row.channels;
  if (line <= 0 || w.y1 <= w.y0) return out;
  std::vector<uint8_t> stored(static_cast<size_t>(line * (w.y1 - w.y0)));
  Scratch scratch;
  status = jpeg::decode(row.file.data(), row.file.size(), info, w, static_cast<Format>(head.format), stored.data(),
                        line, scratch, scale_log2);
  if (status == jpeg::Status::Unsupported) return out;
  View view;
  view.rank = 3;
  view.shape[0] = row.height, view.shape[1] = row.width, view.shape[2] = row.channels;
  view.set_contiguous_strides();
  const Placement p = placement(w, turn, view);
  for (int64_t y = 0; y < w.y1 - w.y0; ++y)
    for (int64_t x = 0; x < w.x1 - w.x0; ++x)
      std::memcpy(out.data() + p.offset + y * p.step_y + x * p.step_x, stored.data() + y * line + x * row.channels,
                  static_cast<size_t>(row.channels));
  return out;
}

// Return bytes as elements of the batch's type.
inline std::vector<uint8_t> widened_all(const std::vector<uint8_t>& bytes, DType dtype) {
  if (dtype == DType::U8) return bytes;
  std::vector<uint8_t> wide(bytes.size() * static_cast<size_t>(size_of(dtype)));
  for (size_t i = 0; i < bytes.size(); ++i)
    if (dtype == DType::U16) store_element(wide.data() + 2 * i, widened<uint16_t>(bytes[i]));
    else store_element(wide.data() + 4 * i, widened<float>(bytes[i]));
  return wide;
}

// The device-independent part of a batch in flight.
class TestBatch : public stoker::gpu::Batch, public stoker::gpu::RowMemory {
 public:
  TestBatch(int64_t rows, size_t slot_bytes)
      : slots_(static_cast<size_t>(rows) * slot_bytes), active_(static_cast<size_t>(rows)), slot_bytes_(slot_bytes) {}
  int64_t rows() const override { return static_cast<int64_t>(active_.size()); }
  bool active(int64_t row) const override { return active_[static_cast<size_t>(row)]; }
  const uint8_t* slots() const override { return slots_.data(); }

  uint8_t* slot(int64_t row) override { return slots_.data() + static_cast<size_t>(row) * slot_bytes_; }
  void call(std::function<uintptr_t(stoker::gpu::Fork&)>) override {
    std::abort();
  }  // the decoder's kernels are its own
  void call_ahead(std::function<uintptr_t()>) override { std::abort(); }
  void set_active(size_t row, bool v) { active_[row] = v; }
  size_t all_slot_bytes() const { return slots_.size(); }

 private:
  std::vector<uint8_t> slots_;
  std::vector<bool> active_;
  size_t slot_bytes_;
};

// Addresses of a row's file and pixels on the device.
struct Homes {
  uint64_t file, out;
  int64_t pitch;
};

// For an indexed file, only the part that its window needs is read.
inline void read_in_part(TestRow& row, const TestCase& c, Index* index) {
  row.part.clear();
  row.read = {};
  Info info;
  if (!c.head.parts || !index || index->files() == 0 || !parse(row.file.data(), row.file.size(), info)) return;
  const std::string_view header(reinterpret_cast<const char*>(row.file.data()), info.scan.data);
  const Index::Found found =
      index->find({file_key(row.file.data(), row.file.size(), header.size()), 0, header, row.file.size(), false});
  const int scale = static_cast<int>(c.head.scale_log2);
  const Turn turn = turn_of(c.head.adjust ? info.orientation : 1);
  const Window window = stored_window(scaled_extent(info, scale), turn, row.y0, row.x0, row.height, row.width);
  if (found.use != Index::Use::Read || found.file->outline.chunks == 0 || row.height == 0) return;
  const Part part = part_of(*found.file, info, window, c.format(), scale);
  row.part.assign(header.begin(), header.end());
  const auto from = row.file.begin() + static_cast<std::ptrdiff_t>(part.offset);
  row.part.insert(row.part.end(), from, from + static_cast<std::ptrdiff_t>(part.bytes));
  row.read = {found.file, part.begin, part.end};
  if (c.head.parts == 2) row.part[header.size() + part.bytes / 2] ^= 1;  // the file has changed since
}

inline void describe_rows(const stoker::gpu::Kernel& kernel, TestCase& c, const std::vector<Homes>& homes,
                          TestBatch& batch) {
  alignas(64) static char nothing[64];  // there is no job; no kernel looks
  Job& job = *reinterpret_cast<Job*>(nothing);
  Scratch work[kWorkAreas];
  for (size_t i = 0; i < c.rows.size(); ++i) {
    TestRow& row = c.rows[i];
    View file, out;
    file.rank = 1;
    file.shape[0] = static_cast<int64_t>(row.file.size());
    file.stride[0] = 1;
    file.data = reinterpret_cast<uint8_t*>(homes[i].file);
    out.rank = 3;
    out.dtype = c.dtype();
    out.shape[0] = row.height, out.shape[1] = row.width, out.shape[2] = row.channels;
    out.set_contiguous_strides();
    out.stride[0] = homes[i].pitch;
    out.data = reinterpret_cast<uint8_t*>(homes[i].out);
    const double params[] = {double(row.y0), double(row.x0)};
    View host = file, read;
    host.data = row.file.data();
    if (!row.part.empty()) {
      host.data = batch.allocate_host(row.part.size());
      host.shape[0] = file.shape[0] = static_cast<int64_t>(row.part.size());
      std::memcpy(host.data, row.part.data(), row.part.size());
      file.data = reinterpret_cast<uint8_t*>(batch.device_address(host.data));
    }
    read.data = reinterpret_cast<uint8_t*>(&row.read);
    const View* in[] = {&file, &read};
    View *host_in[] = {&host, &read}, *to[] = {&out};
    const Call call{params,  in,      to,         job,     static_cast<int64_t>(i),
                    work,    nullptr, &row.error, nullptr, batch.slot(static_cast<int64_t>(i)),
                    host_in, &batch};
    batch.set_active(i, kernel.run(call) == Outcome::Ok);
  }
}

// Prints a line about one row, or only about wrong rows. `pixels` has the row's lines `pitch` apart. Returns whether the
// row is right: the GPU decoded it only if the CPU finds no fault, and the pixels are equal, unless they `may_differ`.
inline bool report_row(const TestCase& c, size_t i, bool active, uint32_t status, bool known, const uint8_t* pixels,
                       int64_t pitch, bool only_wrong = false, bool may_differ = false) {
  const TestRow& row = c.rows[i];
  const auto say = [&](const std::string& text) { return only_wrong || std::printf("%s\n", text.c_str()); };
  if (!active) return say("refused: " + row.error);
  if (status & kFailures) return say("left: " + std::to_string(status));
  jpeg::Status cpu;
  const std::vector<uint8_t> expected = widened_all(on_cpu(row, c.head, cpu), c.dtype());
  const size_t line = static_cast<size_t>(row.width * row.channels * size_of(c.dtype()));
  size_t wrong = 0, first = 0;
  for (size_t y = static_cast<size_t>(row.height); y-- > 0;)
    for (size_t x = line; x-- > 0;)
      if (pixels[y * static_cast<size_t>(pitch) + x] != expected[y * line + x]) ++wrong, first = y * line + x;
  const char* const how = status & kNotRead  ? "equal, entry of another"
                          : !known           ? "equal"
                          : row.part.empty() ? "equal, known"
                                             : "equal, in part";
  if (expected.empty() || (wrong == 0 && cpu == jpeg::Status::Ok)) return say(how);
  if (may_differ) return say("other pixels");
  std::printf("row %zu differs: %zu of %zu bytes, first %zu, CPU status %d\n", i, wrong, expected.size(), first,
              static_cast<int>(cpu));
  return false;
}

}  // namespace stoker::jpeg::gpu
