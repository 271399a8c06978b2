// SPDX-License-Identifier: Apache-2.0
// Kernels that take an array, or a region of it, from an .npy file: one reads the file, one has its bytes.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "container/npy_region.hpp"
#include "io/files.hpp"
#include "kernels/records.hpp"
#include "plan/check.hpp"
#include "run/job.hpp"

namespace stoker {

namespace {

// Bytes of an .npy file: a file, or memory.
class NpyBytes {
 public:
  NpyBytes(const OpenFile& file, const std::string& path, uint64_t size)
      : file_(&file), path_(path), size_(size), name_("'" + path + "'") {}
  NpyBytes(const uint8_t* memory, uint64_t size) : memory_(memory), size_(size), name_("the record") {}
  uint64_t size() const { return size_; }
  bool is_file() const { return file_ != nullptr; }
  int descriptor() const { return file_->descriptor(); }
  // The name in messages.
  const std::string& name() const { return name_; }
  // Read bytes; return false with an error if there are not as many.
  bool read(uint64_t offset, uint8_t* to, size_t bytes, std::string& error) const {
    int64_t have = 0;
    if (file_ == nullptr) {
      have = static_cast<int64_t>(std::min<uint64_t>(bytes, offset < size_ ? size_ - offset : 0));
      if (have > 0) std::memcpy(to, memory_ + offset, static_cast<size_t>(have));
    } else {
      have = read_file(file_->descriptor(), offset, to, bytes);
      if (have < 0) return cannot_read(path_, errno, error);
    }
    if (static_cast<size_t>(have) == bytes) return true;
    error = "expected " + std::to_string(bytes) + " bytes of data in " + name_ + ", got " + std::to_string(have);
    return false;
  }

 private:
  const OpenFile* file_ = nullptr;
  const uint8_t* memory_ = nullptr;
  std::string path_;
  uint64_t size_;
  std::string name_;
};

// Base class of the kernels. Parameters: the bounds of the region.
class TakeNpyRegion : public Kernel {
 public:
  explicit TakeNpyRegion(NpyRegion region) : region_(std::move(region)) {}
  void check(const StepFacts& step) const override {
    for (const int axis : region_.axes)
      step.require(axis >= 0 && axis < step.out_rank(0), "axes", "axes of the array", std::to_string(axis));
    step.require(static_cast<int64_t>(region_.fill.size()) == size_of(step.out_type(0)), "fill", "an element",
                 std::to_string(region_.fill.size()) + " bytes");
  }
  bool allocates() const override { return true; }

 protected:
  int32_t parameters() const { return static_cast<int32_t>(region_.bounds()); }

  bool take(const Call& c, const NpyBytes& from) const {
    NpyHeader header;
    View& out = *c.out[0];
    if (!read_header(c, from, header)) return false;
    if (header.dtype != out.dtype || header.rank != out.rank) {
      *c.error = std::string("expected an array of type ") + name_of(out.dtype) + " with " + std::to_string(out.rank) +
                 " axes, as in the first file, got " + name_of(header.dtype) + " with " + std::to_string(header.rank);
      return false;
    }
    if (header.bytes > from.size() || header.data > from.size() - header.bytes) {
      *c.error = "expected " + std::to_string(header.bytes) + " bytes of data in " + from.name() + ", got " +
                 std::to_string(from.size() - std::min(from.size(), header.data));
      return false;
    }
    NpyPart part;
    if (!find_npy_part(region_, c.params, header, static_cast<int64_t>(kSaneBytes), part, *c.error)) return false;
    std::copy(part.region_extent, part.region_extent + out.rank, out.shape);
    out.set_contiguous_strides();
    if (part.is_plain && from.is_file())
      if (const uint64_t address = c.allocator->read_to_device(from.descriptor(), part.offset, part.bytes)) {
        out.data = reinterpret_cast<uint8_t*>(address);
        out.device = true;
        return true;
      }
    out.data = c.allocator->get(static_cast<size_t>(part.region_bytes) + 1);
    if (!part.is_inside) fill_npy_region(part, region_.fill, out.data);
    if (part.is_empty) return true;
    uint8_t* const rows = part.is_direct ? place_of_npy_rows(header, part, out.data) : c.work[0].get(part.bytes);
    if (!from.read(part.offset, rows, part.bytes, *c.error)) return false;
    put_npy_rows(header, part, rows, out.data);
    return true;
  }

 private:
  bool read_header(const Call& c, const NpyBytes& from, NpyHeader& header) const {
    uint8_t small[512];
    uint8_t* bytes = small;
    uint64_t count = std::min<uint64_t>(from.size(), sizeof small);
    if (!from.read(0, bytes, count, *c.error)) return false;
    const uint64_t needed = npy_header_size(bytes, count, *c.error);
    if (needed == 0) return named(c, from);
    if (needed > count && needed <= from.size()) {
      bytes = c.work[0].get(needed);
      count = needed;
      if (!from.read(0, bytes, count, *c.error)) return false;
    }
    return read_npy_header(bytes, count, header, *c.error) || named(c, from);
  }

  static bool named(const Call& c, const NpyBytes& from) {
    *c.error += " (" + from.name() + ")";
    return false;
  }

  const NpyRegion region_;
};

class ReadNumpy : public TakeNpyRegion {
 public:
  ReadNumpy(std::shared_ptr<const FileTable> files, int reader, NpyRegion region)
      : TakeNpyRegion(std::move(region)), files_(std::move(files)), reader_(reader) {}
  Ports ports() const override {
    return {.kernel = "read_numpy", .out = {{.most_rank = kMaxRank - 1}}, .params = parameters()};
  }
  void check(const StepFacts& step) const override {
    step.require_reader(reader_);
    TakeNpyRegion::check(step);
  }
  Outcome run(const Call& c) const override {
    const uint64_t index = static_cast<uint64_t>(c.job.indices[reader_][c.row]);
    if (index >= files_->size()) return outside(c, index, files_->size());
    const std::string path = files_->path(index);
    const OpenFile file(path);
    uint64_t size = 0;
    if (!is_regular(file, path, size, *c.error)) return Outcome::Error;
    return take(c, NpyBytes(file, path, size)) ? Outcome::Ok : Outcome::Error;
  }

 private:
  const std::shared_ptr<const FileTable> files_;
  const int reader_;
};

class RegionOfNpy : public TakeNpyRegion {
 public:
  explicit RegionOfNpy(NpyRegion region) : TakeNpyRegion(std::move(region)) {}
  Ports ports() const override {
    return {.kernel = "region_of_npy",
            .in = {port_of(DType::U8, 1)},
            .out = {{.most_rank = kMaxRank - 1}},
            .params = parameters()};
  }
  Outcome run(const Call& c) const override {
    const NpyBytes bytes(c.in[0]->data, static_cast<uint64_t>(c.in[0]->shape[0]));
    return take(c, bytes) ? Outcome::Ok : Outcome::Error;
  }
};

NpyRegion make_region(std::vector<int> axes, int start, int end, int policy, registry::Elements fill) {
  const auto within = [](int value, int most, const char* what) {
    if (value < 0 || value > most) throw registry::Mismatch(what, std::to_string(value));
  };
  within(start, 2, "no start, or an absolute or relative one");
  within(end, 4, "no end, or an absolute or relative one, or a shape");
  within(policy, 2, "a policy for regions that are outside");
  if (axes.size() >= static_cast<size_t>(kMaxRank))
    throw registry::Mismatch("at most 7 axes", std::to_string(axes.size()));
  return {std::move(axes), static_cast<NpyRegion::Bound>(start), static_cast<NpyRegion::Bound>(end),
          static_cast<NpyRegion::Outside>(policy), std::move(fill.bytes)};
}

std::shared_ptr<Kernel> make_read_numpy(std::shared_ptr<FileTable> files, int reader, std::vector<int> axes, int start,
                                        int end, int policy, registry::Elements fill) {
  return std::make_shared<ReadNumpy>(std::move(files), reader,
                                     make_region(std::move(axes), start, end, policy, std::move(fill)));
}

std::shared_ptr<Kernel> make_region_of_npy(std::vector<int> axes, int start, int end, int policy,
                                           registry::Elements fill) {
  return std::make_shared<RegionOfNpy>(make_region(std::move(axes), start, end, policy, std::move(fill)));
}

const Registered kReadNumpy{"read_numpy",
                            "An array in an .npy file, or a region of it.",
                            make_read_numpy,
                            {{"files", "where the arrays are"},
                             {"reader", "the column of the batch's indices"},
                             {"axes", "axes that the region limits"},
                             {"start", "0: none, 1: an index, 2: a share of the extent"},
                             {"end", "0: none, 1: an index, 2: a share, 3: a number of elements, 4: a share of them"},
                             {"policy", "outside of the array: 0: an error, 1: `fill`, 2: the region ends there"},
                             {"fill", "one element"}}};

const Registered kRegionOfNpy{"region_of_npy",
                              "An array, or a region of it, of the bytes of an .npy file.",
                              make_region_of_npy,
                              {{"axes", "axes that the region limits"},
                               {"start", "0: none, 1: an index, 2: a share of the extent"},
                               {"end", "0: none, 1: an index, 2: a share, 3: a number of elements, 4: a share of them"},
                               {"policy", "outside of the array: 0: an error, 1: `fill`, 2: the region ends there"},
                               {"fill", "one element"}}};

}  // namespace

}  // namespace stoker
