// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "engine.hpp"
#include "files.hpp"
#include "jpeg_orientation.hpp"
#include "kernels.hpp"

namespace stoker {

namespace {

class Read : public Kernel {
 public:
  Read(std::shared_ptr<const FileTable> table, int reader)
      : table_(std::move(table)), reader_(reader), sizes_(table_->size()) {}
  bool allocates() const override { return true; }
  // Known once the file has been read: asking the file system for it would cost more than the order gains.
  bool tells_cost() const override { return true; }
  double cost(const Job& job, int64_t row) const override {
    return sizes_.of(static_cast<uint64_t>(job.indices[reader_][row]));
  }
  Outcome run(const Call& c) const override {
    const uint64_t index = static_cast<uint64_t>(c.job.indices[reader_][c.row]);
    if (index >= table_->size()) return outside(c, index, table_->size());
    const std::string path = table_->path(index);
    if (!read_whole(OpenFile(path), path, *c.own, *c.out[0], *c.error)) return Outcome::Error;
    sizes_.saw(index, c.out[0]->shape[0]);
    return Outcome::Ok;
  }

 private:
  std::shared_ptr<const FileTable> table_;
  int reader_;
  const SeenSizes sizes_;
};

class Lookup : public Kernel {
 public:
  Lookup(std::vector<int32_t> table, int reader) : table_(std::move(table)), reader_(reader) {}
  Outcome run(const Call& c) const override {
    const size_t index = static_cast<size_t>(c.job.indices[reader_][c.row]);
    if (index >= table_.size()) return outside(c, index, table_.size());
    std::memcpy(c.out[0]->data, &table_[index], 4);
    return Outcome::Ok;
  }

 private:
  std::vector<int32_t> table_;
  int reader_;
};

class Index : public Kernel {
 public:
  explicit Index(int reader) : reader_(reader) {}
  Outcome run(const Call& c) const override {
    std::memcpy(c.out[0]->data, &c.job.indices[reader_][c.row], 8);
    return Outcome::Ok;
  }

 private:
  int reader_;
};

bool is_jpeg(const View& v) {
  return v.rank == 1 && v.dtype == DType::U8 && v.shape[0] >= 3 && v.stride[0] == 1 && v.data[0] == 0xFF &&
         v.data[1] == 0xD8 && v.data[2] == 0xFF;
}

Outcome hand_over(const Call& c, const char* reason) {
  *c.error = reason;
  return Outcome::Python;
}

// What is not a JPEG that the native decoder does, the twin decides, so that one place knows those formats.
bool read_header(const Call& c, jpeg::Info& info) {
  const View& file = *c.in[0];
  if (is_jpeg(file)) return jpeg::parse(file.data, static_cast<size_t>(file.shape[0]), info);
  info.reason = "not a JPEG file";
  return false;
}

class Peek : public Kernel {
 public:
  Peek(bool adjust, jpeg::Format format, int scale_log2) : adjust_(adjust), format_(format), scale_(scale_log2) {}
  Outcome run(const Call& c) const override {
    jpeg::Info info;
    if (!read_header(c, info)) return hand_over(c, info.reason);
    const jpeg::Extent extent = jpeg::scaled_extent(info, scale_);
    const bool turned = adjust_ && info.orientation >= 5;
    const double shape[] = {double(turned ? extent.width : extent.height), double(turned ? extent.height : extent.width),
                            double(jpeg::channels(info, format_))};
    for (int i = 0; i < 3; ++i) store_scalar(c.out[0]->data + 8 * i, DType::I64, shape[i]);
    return Outcome::Ok;
  }

 private:
  bool adjust_;
  jpeg::Format format_;
  int scale_;
};

class Decode : public Kernel {
 public:
  Decode(bool adjust, jpeg::Format format, int scale_log2) : adjust_(adjust), format_(format), scale_(scale_log2) {}
  Outcome run(const Call& c) const override {
    const View& file = *c.in[0];
    const size_t size = static_cast<size_t>(file.shape[0]);
    jpeg::Info info;
    if (!read_header(c, info)) return hand_over(c, info.reason);
    const View& out = *c.out[0];
    const jpeg::Turn turn = jpeg::turn_of(adjust_ ? info.orientation : 1);
    const int32_t y0 = static_cast<int32_t>(c.params[0]), x0 = static_cast<int32_t>(c.params[1]);
    const int32_t h = static_cast<int32_t>(out.shape[0]), w = static_cast<int32_t>(out.shape[1]);
    if (h == 0 || w == 0) return Outcome::Ok;
    const jpeg::Window window = jpeg::stored_window(jpeg::scaled_extent(info, scale_), turn, y0, x0, h, w);
    const bool straight = turn.none();
    const int64_t channels = out.shape[2], row_bytes = (window.x1 - window.x0) * channels;
    uint8_t* to = straight ? out.data : c.work[1].get(static_cast<size_t>(row_bytes) * (window.y1 - window.y0));
    const jpeg::Status status = jpeg::decode(file.data, size, info, window, format_, to, row_bytes, c.work[0], scale_);
    if (status == jpeg::Status::Unsupported) return hand_over(c, "colours or scans that the native decoder leaves out");
    // The twin decides what is an error and what only a warning.
    if (status == jpeg::Status::Corrupt) return hand_over(c, "damaged JPEG data");
    if (status == jpeg::Status::Truncated) {
      *c.error = "the JPEG data end before the image is complete (" + std::to_string(size) + " bytes, " +
                 std::to_string(info.width) + "x" + std::to_string(info.height) + " pixels declared)";
      return Outcome::Error;
    }
    if (!straight) place_turned(to, window, turn, channels, out);
    return Outcome::Ok;
  }

 private:
  static void place_turned(const uint8_t* from, const jpeg::Window& window, jpeg::Turn turn, int64_t channels,
                           const View& out) {
    const int64_t sh = window.y1 - window.y0, sw = window.x1 - window.x0;
    const jpeg::Placement place = jpeg::placement(window, turn, out);
    uint8_t* const to = out.data + place.offset;
    for (int64_t y = 0; y < sh; ++y)
      for (int64_t x = 0; x < sw; ++x)
        std::memcpy(to + y * place.step_y + x * place.step_x, from + (y * sw + x) * channels,
                    static_cast<size_t>(channels));
  }
  bool adjust_;
  jpeg::Format format_;
  int scale_;
};

}  // namespace

// A user's own sampler may give any number.
Outcome outside(const Call& c, uint64_t index, size_t size) {
  *c.error = "expected a sample below " + std::to_string(size) + " from the sampler, got " +
             std::to_string(static_cast<int64_t>(index));
  return Outcome::Error;
}

std::shared_ptr<Kernel> make_read(std::shared_ptr<const FileTable> table, int reader) {
  return std::make_shared<Read>(std::move(table), reader);
}
std::shared_ptr<Kernel> make_lookup(std::vector<int32_t> table, int reader) {
  return std::make_shared<Lookup>(std::move(table), reader);
}
std::shared_ptr<Kernel> make_index(int reader) { return std::make_shared<Index>(reader); }
std::shared_ptr<Kernel> make_peek(bool adjust, jpeg::Format format, int scale_log2) {
  return std::make_shared<Peek>(adjust, format, scale_log2);
}
std::shared_ptr<Kernel> make_decode(bool adjust, jpeg::Format format, int scale_log2) {
  return std::make_shared<Decode>(adjust, format, scale_log2);
}

}  // namespace stoker
