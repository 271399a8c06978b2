// SPDX-License-Identifier: Apache-2.0
#include "gpu_kernels/jpeg_parts.hpp"

#include <cstring>
#include <string>

#include "base/whole.hpp"
#include "io/files.hpp"
#include "jpeg/orientation.hpp"
#include "plan/check.hpp"
#include "run/job.hpp"

namespace stoker::jpeg::gpu {
namespace {

// Files of a table, selected by a reader's index column.
class TableFileSource final : public FileSource {
 public:
  TableFileSource(std::shared_ptr<const FileTable> table, int reader) : table_(std::move(table)), reader_(reader) {}
  size_t files() const { return table_->size(); }
  int reader() const { return reader_; }
  uint64_t index(const Job& job, int64_t row) const {
    return static_cast<uint64_t>(job.indices[static_cast<size_t>(reader_)][static_cast<size_t>(row)]);
  }
  // Return false with the reason in `call.error`.
  bool path(const Call& c, std::string& path) const {
    const uint64_t at = index(c.job, c.row);
    if (at >= table_->size()) return outside(c, at, table_->size()), false;
    path = table_->path(at);
    return true;
  }
  uint64_t name(const Call& c, uint64_t state) const override {
    return name_key(table_->path(index(c.job, c.row)), state);
  }
  bool whole(const Call& c, std::string_view header, BufferAllocator& allocator, View& out) const override {
    const std::string path = table_->path(index(c.job, c.row));
    View read = out;
    if (!read_whole(OpenFile(path), path, allocator, read, *c.error)) return false;
    if (static_cast<size_t>(read.shape[0]) < header.size() ||
        std::memcmp(read.data, header.data(), header.size()) != 0) {
      *c.error = "the file '" + path + "' has changed while it was read";
      return false;
    }
    out = read;
    return true;
  }

 private:
  const std::shared_ptr<const FileTable> table_;
  const int reader_;
};

// Prefetch: the data of a known file were last used an epoch ago, and arrive while the system reads the file.
void fetch_ahead(const KnownFile& known) {
  const char* const outline = reinterpret_cast<const char*>(&known.outline);
  for (size_t at = 0; at < sizeof known.outline; at += 64) __builtin_prefetch(outline + at);
  for (size_t at = 0; at < known.header.size(); at += 64) __builtin_prefetch(known.header.data() + at);
}

constexpr int64_t kHeaderNumbers = sizeof(HeaderRead) / 8, kPartNumbers = sizeof(PartRead) / 8;

bool has_numbers(const View& v, int64_t wanted, std::string* error) {
  if (v.shape[0] == wanted && v.contiguous()) return true;
  *error = "expected " + std::to_string(wanted) + " numbers of a file's part, got " + std::to_string(v.shape[0]);
  return false;
}

class ReadHeader : public stoker::Kernel {
 public:
  Ports ports() const override {
    return {.kernel = "read_header", .out = {port_of(DType::U8, 1), port_of(DType::I64, 1)}};
  }
  void check(const StepFacts& step) const override { step.require_reader(files_.reader()); }
  bool fits(const Call& c) const override { return has_numbers(*c.out[1], kHeaderNumbers, c.error); }

  ReadHeader(TableFileSource files, std::shared_ptr<Index> index)
      : files_(std::move(files)), index_(std::move(index)), sizes_(files_.files()) {}
  bool allocates() const override { return true; }
  bool has_cost() const override { return true; }
  double cost(const Job& job, int64_t row) const override { return sizes_.of(files_.index(job, row)); }

  Outcome run(const Call& c) const override {
    std::string path;
    if (!files_.path(c, path)) return Outcome::Error;
    OpenFile file(path);
    HeaderRead read;
    if (file) read.state = file.state();  // taken before the bytes, so that later writes belong to another state
    const uint64_t name = name_key(path, read.state);
    if (file && read.state) read.of = give_header(c, name, file);
    if (read.of) {
      *c.held = {name, std::move(file)};
    } else if (read_whole(file, path, *c.allocator, *c.out[0], *c.error)) {
      sizes_.record(files_.index(c.job, c.row), c.out[0]->shape[0]);
    } else {
      return Outcome::Error;
    }
    std::memcpy(c.out[1]->data, &read, sizeof read);
    return Outcome::Ok;
  }

  bool is_of(const Index& index) const { return index_.get() == &index; }

 private:
  // Return the file if it is known and still begins with the same header.
  const KnownFile* give_header(const Call& c, uint64_t name, const OpenFile& file) const {
    const KnownFile* const known = index_->named(name);
    if (!known) return nullptr;
    const size_t size = known->header.size();
    fetch_ahead(*known);
    uint8_t* const now = c.work[0].get(size);
    if (!file.read_at(0, now, size) || std::memcmp(now, known->header.data(), size) != 0) return nullptr;
    View& out = *c.out[0];
    out.data = reinterpret_cast<uint8_t*>(const_cast<char*>(known->header.data()));  // no code writes there
    out.shape[0] = static_cast<int64_t>(size);
    out.stride[0] = 1;
    return known;
  }
  const TableFileSource files_;
  const std::shared_ptr<Index> index_;
  const KnownFileSizes sizes_;
};

class ReadWindow : public PartReader {
 public:
  Ports ports() const override {
    return {.kernel = "read_window",
            .in = {port_of(DType::U8, 1), port_of(DType::I64, 1)},
            .out = {port_of(DType::U8, 1), port_of(DType::I64, 1)},
            .params = 4,
            .shows = 0b1};
  }
  // The numbers have the address of what the index knows, so that they must come from the kernel that writes it.
  void check(const StepFacts& step) const override {
    step.require_reader(files_.reader());
    const auto* const header = dynamic_cast<const ReadHeader*>(step.maker(1));
    step.require(header && step.maker(0) == header && header->is_of(*index_), "inputs",
                 "the outputs of `read_header` with the same index", "others");
  }
  bool fits(const Call& c) const override {
    return has_numbers(*c.in[1], kHeaderNumbers, c.error) && has_numbers(*c.out[1], kPartNumbers, c.error);
  }

  ReadWindow(TableFileSource files, bool adjust, Format format, int scale_log2, std::shared_ptr<const Index> index)
      : files_(std::move(files)), adjust_(adjust), format_(format), scale_(scale_log2), index_(std::move(index)) {}
  bool allocates() const override { return true; }

  Outcome run(const Call& c) const override {
    PartRead read;
    HeaderRead first;
    std::memcpy(&first, c.in[1]->data, sizeof first);
    const KnownFile* const known = first.of;
    *c.out[0] = *c.in[0];
    if (!known) read.state = first.state;
    else if (!give_part(c, *known, opened(c, first.state), read) &&
             !files_.whole(c, known->header, *c.allocator, *c.out[0]))
      return Outcome::Error;
    std::memcpy(c.out[1]->data, &read, sizeof read);
    return Outcome::Ok;
  }

 private:
  // Return the file of the header, or none if it is gone or was written to.
  OpenFile opened(const Call& c, uint64_t state) const {
    std::string path;
    if (!files_.path(c, path)) return {};
    if (c.held->file && c.held->name == name_key(path, state)) return std::move(c.held->file);
    OpenFile again(path);
    return again && again.state() == state ? std::move(again) : OpenFile();
  }

  bool give_part(const Call& c, const KnownFile& known, const OpenFile& file, PartRead& read) const {
    const View& header = *c.in[0];
    const size_t header_bytes = known.header.size();
    Info info;
    if (!file || !parse(header.data, header_bytes, info)) return false;
    const Extent whole = scaled_extent(info, scale_);
    const auto number = [&](int i) { return position_of(c.params[i]); };
    const Window window =
        stored_window(whole, turn_of(adjust_ ? info.orientation : 1), number(0), number(1), number(2), number(3));
    if (!is_inside(window, whole)) return false;  // the decoder reports what is wrong
    const Part part = part_of(known, info, window, format_, scale_);
    View& out = *c.out[0];
    uint8_t* const to = c.allocator->get(header_bytes + part.bytes);
    std::memcpy(to, known.header.data(), header_bytes);
    if (!file.read_at(part.offset, to + header_bytes, part.bytes)) return false;
    out.data = to;
    out.shape[0] = static_cast<int64_t>(header_bytes + part.bytes);
    read = {&known, part.begin, part.end, 0};
    return true;
  }
  const TableFileSource files_;
  const bool adjust_;
  const Format format_;
  const int scale_;
  const std::shared_ptr<const Index> index_;  // keeps the known files alive
};

}  // namespace

std::shared_ptr<const FileSource> make_source(std::shared_ptr<const FileTable> table, int reader) {
  return std::make_shared<TableFileSource>(std::move(table), reader);
}

std::shared_ptr<stoker::Kernel> make_read_header(std::shared_ptr<const FileTable> table, int reader,
                                                 std::shared_ptr<Index> index) {
  return std::make_shared<ReadHeader>(TableFileSource(std::move(table), reader), std::move(index));
}

std::shared_ptr<stoker::Kernel> make_read_window(std::shared_ptr<const FileTable> table, int reader,
                                                 bool adjust_orientation, Format format, int scale_log2,
                                                 std::shared_ptr<Index> index) {
  return std::make_shared<ReadWindow>(TableFileSource(std::move(table), reader), adjust_orientation, format, scale_log2,
                                      std::move(index));
}

}  // namespace stoker::jpeg::gpu
