// SPDX-License-Identifier: Apache-2.0
#include "jpeg_parts.hpp"

#include <cstring>

#include "engine.hpp"
#include "files.hpp"
#include "jpeg_orientation.hpp"

namespace stoker::jpeg::gpu {
namespace {

// Files of a table, by a reader's index column.
class Listed final : public Source {
 public:
  Listed(std::shared_ptr<const FileTable> table, int reader) : table_(std::move(table)), reader_(reader) {}
  size_t files() const { return table_->size(); }
  uint64_t index(const Job& job, int64_t row) const {
    return static_cast<uint64_t>(job.indices[static_cast<size_t>(reader_)][static_cast<size_t>(row)]);
  }
  // False: `call.error` says why not.
  bool path(const Call& c, std::string& path) const {
    const uint64_t at = index(c.job, c.row);
    if (at >= table_->size()) return outside(c, at, table_->size()), false;
    path = table_->path(at);
    return true;
  }
  uint64_t name(const Call& c, uint64_t state) const override {
    return name_key(table_->path(index(c.job, c.row)), state);
  }
  bool whole(const Call& c, std::string_view header, Room& room, View& out) const override {
    const std::string path = table_->path(index(c.job, c.row));
    View read = out;
    if (!read_whole(OpenFile(path), path, room, read, *c.error)) return false;
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

// What is known of a file was last looked at an epoch ago: it comes while the system reads.
void fetch_ahead(const KnownFile& known) {
  const char* const outline = reinterpret_cast<const char*>(&known.outline);
  for (size_t at = 0; at < sizeof known.outline; at += 64) __builtin_prefetch(outline + at);
  for (size_t at = 0; at < known.header.size(); at += 64) __builtin_prefetch(known.header.data() + at);
}

class ReadHeader : public stoker::Kernel {
 public:
  ReadHeader(Listed files, std::shared_ptr<Index> index)
      : files_(std::move(files)), index_(std::move(index)), sizes_(files_.files()) {}
  bool allocates() const override { return true; }
  bool tells_cost() const override { return true; }
  double cost(const Job& job, int64_t row) const override { return sizes_.of(files_.index(job, row)); }

  Outcome run(const Call& c) const override {
    std::string path;
    if (!files_.path(c, path)) return Outcome::Error;
    OpenFile file(path);
    HeaderRead read;
    if (file) read.state = file.state();  // before its bytes: what is written later is another state's
    const uint64_t name = name_key(path, read.state);
    if (file && read.state) read.of = give_header(c, name, file);
    if (read.of) {
      *c.held = {name, std::move(file)};
    } else if (read_whole(file, path, *c.own, *c.out[0], *c.error)) {
      sizes_.saw(files_.index(c.job, c.row), c.out[0]->shape[0]);
    } else {
      return Outcome::Error;
    }
    std::memcpy(c.out[1]->data, &read, sizeof read);
    return Outcome::Ok;
  }

 private:
  // The file, if it is known and still begins as it did.
  const KnownFile* give_header(const Call& c, uint64_t name, const OpenFile& file) const {
    const KnownFile* const known = index_->named(name);
    if (!known) return nullptr;
    const size_t size = known->header.size();
    fetch_ahead(*known);
    uint8_t* const now = c.work[0].get(size);
    if (!file.read_at(0, now, size) || std::memcmp(now, known->header.data(), size) != 0) return nullptr;
    View& out = *c.out[0];
    out.data = reinterpret_cast<uint8_t*>(const_cast<char*>(known->header.data()));  // nobody writes there
    out.shape[0] = static_cast<int64_t>(size);
    out.stride[0] = 1;
    return known;
  }
  const Listed files_;
  const std::shared_ptr<Index> index_;
  const SeenSizes sizes_;
};

class ReadWindow : public stoker::Kernel {
 public:
  ReadWindow(Listed files, bool adjust, Format format, int scale_log2, std::shared_ptr<const Index> index)
      : files_(std::move(files)), adjust_(adjust), format_(format), scale_(scale_log2), index_(std::move(index)) {}
  bool allocates() const override { return true; }

  Outcome run(const Call& c) const override {
    PartRead read;
    HeaderRead first;
    std::memcpy(&first, c.in[1]->data, sizeof first);
    const KnownFile* const known = first.of;
    *c.out[0] = *c.in[0];
    if (!known) read.state = first.state;
    else if (!give_part(c, *known, opened(c, first.state), read) && !files_.whole(c, known->header, *c.own, *c.out[0]))
      return Outcome::Error;
    std::memcpy(c.out[1]->data, &read, sizeof read);
    return Outcome::Ok;
  }

 private:
  // The file that the header was read of; none if it is not there any more, or was written to meanwhile.
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
    const auto number = [&](int i) { return static_cast<int32_t>(c.params[i]); };
    const Window window =
        stored_window(whole, turn_of(adjust_ ? info.orientation : 1), number(0), number(1), number(2), number(3));
    const bool inside = window.x0 >= 0 && window.y0 >= 0 && window.x1 <= whole.width && window.y1 <= whole.height;
    if (!inside || window.x1 <= window.x0 || window.y1 <= window.y0) return false;  // the decoder says what is wrong
    const Part part = part_of(known, info, window, format_, scale_);
    View& out = *c.out[0];
    uint8_t* const to = c.own->get(header_bytes + part.bytes);
    std::memcpy(to, known.header.data(), header_bytes);
    if (!file.read_at(part.offset, to + header_bytes, part.bytes)) return false;
    out.data = to;
    out.shape[0] = static_cast<int64_t>(header_bytes + part.bytes);
    read = {&known, part.begin, part.end, 0};
    return true;
  }
  const Listed files_;
  const bool adjust_;
  const Format format_;
  const int scale_;
  const std::shared_ptr<const Index> index_;  // what it knows must live
};

}  // namespace

std::shared_ptr<const Source> make_source(std::shared_ptr<const FileTable> table, int reader) {
  return std::make_shared<Listed>(std::move(table), reader);
}

std::shared_ptr<stoker::Kernel> make_read_header(std::shared_ptr<const FileTable> table, int reader,
                                                 std::shared_ptr<Index> index) {
  return std::make_shared<ReadHeader>(Listed(std::move(table), reader), std::move(index));
}

std::shared_ptr<stoker::Kernel> make_read_window(std::shared_ptr<const FileTable> table, int reader,
                                                 bool adjust_orientation, Format format, int scale_log2,
                                                 std::shared_ptr<Index> index) {
  return std::make_shared<ReadWindow>(Listed(std::move(table), reader), adjust_orientation, format, scale_log2,
                                      std::move(index));
}

}  // namespace stoker::jpeg::gpu
