// SPDX-License-Identifier: Apache-2.0
// Kernels that take an array, or a region of it, from an .npy file: one reads the file, one has its bytes.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "container/npy.hpp"
#include "gpu/direct_input.hpp"
#include "io/files.hpp"
#include "kernels/records.hpp"
#include "plan/check.hpp"
#include "run/job.hpp"

namespace stoker {

namespace {

enum class Bound : int { None = 0, Absolute = 1, Relative = 2, Shape = 3, RelativeShape = 4 };
enum class Outside : int { Error = 0, Pad = 1, Trim = 2 };

// Region of one axis: its first index, which may be negative, and its extent.
struct Span {
  int64_t begin = 0, extent = 0;
};

constexpr double kMost = 1e15;  // of an index; larger ones are no sizes of arrays

double rounded(double x) { return std::floor(x + 0.5); }

// Copy the elements of a box from memory with strides (in bytes) to memory with strides.
void copy_box(const uint8_t* from, const int64_t* from_stride, uint8_t* to, const int64_t* to_stride,
              const int64_t* extent, int rank, int64_t item) {
  if (rank == 0) {
    std::memcpy(to, from, static_cast<size_t>(item));
    return;
  }
  if (rank == 1 && from_stride[0] == item && to_stride[0] == item) {
    std::memcpy(to, from, static_cast<size_t>(extent[0] * item));
    return;
  }
  for (int64_t i = 0; i < extent[0]; ++i)
    copy_box(from + i * from_stride[0], from_stride + 1, to + i * to_stride[0], to_stride + 1, extent + 1, rank - 1,
             item);
}

template <class T>
void swap_all(uint8_t* data, int64_t count, T (*swap)(T)) {
  for (int64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, data + i * static_cast<int64_t>(sizeof value), sizeof value);
    value = swap(value);
    std::memcpy(data + i * static_cast<int64_t>(sizeof value), &value, sizeof value);
  }
}

void swap_bytes(uint8_t* data, int64_t count, int64_t item) {
  if (item == 2) swap_all<uint16_t>(data, count, [](uint16_t x) { return __builtin_bswap16(x); });
  if (item == 4) swap_all<uint32_t>(data, count, [](uint32_t x) { return __builtin_bswap32(x); });
  if (item == 8) swap_all<uint64_t>(data, count, [](uint64_t x) { return __builtin_bswap64(x); });
}

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

// Region of arrays.
struct Region {
  std::vector<int> axes;
  Bound start, end;
  Outside policy;
  std::vector<uint8_t> fill;
};

// Parameters: the starts of the region on its axes, if any, then the ends or shapes.
class NpyRegion : public Kernel {
 public:
  explicit NpyRegion(Region region)
      : axes_(std::move(region.axes)),
        start_(region.start),
        end_(region.end),
        policy_(region.policy),
        fill_(std::move(region.fill)) {}
  void check(const StepFacts& step) const override {
    for (const int axis : axes_)
      step.require(axis >= 0 && axis < step.out_rank(0), "axes", "axes of the array", std::to_string(axis));
    step.require(static_cast<int64_t>(fill_.size()) == size_of(step.out_type(0)), "fill", "an element",
                 std::to_string(fill_.size()) + " bytes");
  }
  bool allocates() const override { return true; }

 protected:
  int32_t parameters() const {
    const int32_t bounds = (start_ != Bound::None ? 1 : 0) + (end_ != Bound::None ? 1 : 0);
    return bounds * static_cast<int32_t>(axes_.size());
  }

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
    Span region[kMaxRank];
    if (!find_region(c, header, region)) return false;
    int64_t bytes = size_of(out.dtype);
    for (int i = 0; i < out.rank; ++i)
      if (__builtin_mul_overflow(bytes, std::max<int64_t>(region[i].extent, 1), &bytes) ||
          bytes > static_cast<int64_t>(kSaneBytes)) {
        *c.error = "expected a region of at most 2**40 bytes";
        return false;
      }
    for (int i = 0; i < out.rank; ++i) out.shape[i] = region[i].extent;
    out.set_contiguous_strides();
    const Part part = part_of(out, header, region);
    auto* const direct = part.is_plain && from.is_file() ? dynamic_cast<gpu::DirectInput*>(c.allocator) : nullptr;
    if (direct && direct->wants_direct(part.bytes))
      if (const gpu::Address address = direct->read_directly(from.descriptor(), part.offset, part.bytes)) {
        out.data = reinterpret_cast<uint8_t*>(address);
        out.device = true;
        return true;
      }
    out.data = c.allocator->get(static_cast<size_t>(bytes) + 1);
    const auto start = std::chrono::steady_clock::now();
    if (!fill_region(c, from, header, region, part)) return false;
    const std::chrono::nanoseconds spent = std::chrono::steady_clock::now() - start;
    if (direct) direct->record_staged(part.bytes, static_cast<uint64_t>(spent.count()));
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

  bool find_region(const Call& c, const NpyHeader& header, Span* region) const {
    for (int i = 0; i < header.rank; ++i) region[i] = {0, header.shape[i]};
    const double* const ends = c.params + (start_ != Bound::None ? axes_.size() : 0);
    for (size_t k = 0; k < axes_.size(); ++k) {
      const int axis = axes_[k];
      const double extent = static_cast<double>(header.shape[axis]);
      const double start = start_ == Bound::None ? 0 : c.params[k];
      const double begin = start_ == Bound::Relative ? rounded(start * extent) : start;
      double end = extent;
      if (end_ == Bound::Absolute) end = ends[k];
      else if (end_ == Bound::Relative) end = rounded(ends[k] * extent);
      else if (end_ == Bound::Shape) end = begin + ends[k];
      else if (end_ == Bound::RelativeShape && start_ == Bound::Relative) end = rounded((start + ends[k]) * extent);
      else if (end_ == Bound::RelativeShape) end = begin + rounded(ends[k] * extent);
      if (!(std::abs(begin) < kMost && std::abs(end) < kMost) || end < begin) {
        *c.error = "expected a region with an end at or after its start in axis " + std::to_string(axis) + ", got " +
                   text_of(begin) + " to " + text_of(end);
        return false;
      }
      if (policy_ == Outside::Error && (begin < 0 || end > extent)) {
        *c.error = "expected a region inside of the array's " + std::to_string(header.shape[axis]) +
                   " elements in axis " + std::to_string(axis) + ", got " + text_of(begin) + " to " + text_of(end) +
                   "; `out_of_bounds_policy` allows others";
        return false;
      }
      auto first = static_cast<int64_t>(begin), last = static_cast<int64_t>(end);
      if (policy_ == Outside::Trim) {
        first = std::clamp<int64_t>(first, 0, header.shape[axis]);
        last = std::clamp<int64_t>(last, 0, header.shape[axis]);
      }
      region[axis] = {first, last - first};
    }
    return true;
  }

  static std::string text_of(double x) {
    return std::abs(x) < kMost ? std::to_string(static_cast<int64_t>(x)) : std::string("an impossible number");
  }

  // Part of the region that the array has, and the rows of the slowest axis of the file that have it.
  struct Part {
    int64_t begin[kMaxRank], extent[kMaxRank];
    int slowest;
    bool is_inside = true;  // the region has no elements outside of the array
    bool is_empty = false;  // all of them are
    bool is_direct;         // the rows have the region alone, in its order
    bool is_plain;          // and their bytes are those of the output
    uint64_t offset;        // of the rows in the file
    size_t bytes;           // of the rows
  };

  static Part part_of(const View& out, const NpyHeader& header, const Span* region) {
    Part p;
    const int rank = out.rank;
    const int64_t item = size_of(out.dtype);
    bool whole_rows = !header.is_fortran;
    p.slowest = header.is_fortran ? rank - 1 : 0;
    for (int i = 0; i < rank; ++i) {
      p.begin[i] = std::clamp<int64_t>(region[i].begin, 0, header.shape[i]);
      p.extent[i] = std::clamp<int64_t>(region[i].begin + region[i].extent, p.begin[i], header.shape[i]) - p.begin[i];
      p.is_inside = p.is_inside && p.extent[i] == region[i].extent;
      p.is_empty = p.is_empty || p.extent[i] == 0;
      whole_rows = whole_rows && (i == 0 || (region[i].begin == 0 && region[i].extent == header.shape[i]));
    }
    int64_t row = item;
    for (int i = 0; i < rank; ++i) row *= i == p.slowest ? 1 : header.shape[i];
    const int64_t rows = rank > 0 ? p.extent[p.slowest] : 1, first = rank > 0 ? p.begin[p.slowest] : 0;
    p.is_direct = whole_rows || rank == 0;
    p.is_plain = p.is_direct && p.is_inside && !p.is_empty && !header.is_swapped;
    p.offset = header.data + static_cast<uint64_t>(first * row);
    p.bytes = static_cast<size_t>(rows * row);
    return p;
  }

  // Read the rows of the slowest axis that the region has, and copy the region out of them.
  bool fill_region(const Call& c, const NpyBytes& from, const NpyHeader& header, const Span* region,
                   const Part& part) const {
    const View& out = *c.out[0];
    const int64_t item = size_of(out.dtype);
    if (!part.is_inside) fill_all(out);
    if (part.is_empty) return true;
    uint8_t* const to_region = out.data + (out.rank > 0 ? (part.begin[0] - region[0].begin) * out.stride[0] : 0);
    uint8_t* const memory = part.is_direct ? to_region : c.work[0].get(part.bytes);
    if (!from.read(part.offset, memory, part.bytes, *c.error)) return false;
    if (header.is_swapped) swap_bytes(memory, static_cast<int64_t>(part.bytes) / item, item);
    if (!part.is_direct) copy_region(out, header, region, part.begin, part.extent, memory, part.slowest, item);
    return true;
  }

  static void copy_region(const View& out, const NpyHeader& header, const Span* region, const int64_t* begin,
                          const int64_t* extent, const uint8_t* memory, int slowest, int64_t item) {
    int64_t stride[kMaxRank];
    int64_t step = item;
    for (int k = 0; k < out.rank; ++k) {
      const int axis = header.is_fortran ? k : out.rank - 1 - k;
      stride[axis] = step;
      step *= axis == slowest ? extent[axis] : header.shape[axis];
    }
    const uint8_t* from = memory;
    uint8_t* to = out.data;
    for (int i = 0; i < out.rank; ++i) {
      if (i != slowest) from += begin[i] * stride[i];
      to += (begin[i] - region[i].begin) * out.stride[i];
    }
    copy_box(from, stride, to, out.stride, extent, out.rank, item);
  }

  void fill_all(const View& out) const {
    const auto item = static_cast<size_t>(size_of(out.dtype));
    for (int64_t i = 0, count = out.elements(); i < count; ++i)
      std::memcpy(out.data + static_cast<size_t>(i) * item, fill_.data(), item);
  }

  const std::vector<int> axes_;
  const Bound start_, end_;
  const Outside policy_;
  const std::vector<uint8_t> fill_;
};

class ReadNumpy : public NpyRegion {
 public:
  ReadNumpy(std::shared_ptr<const FileTable> files, int reader, Region region)
      : NpyRegion(std::move(region)), files_(std::move(files)), reader_(reader) {}
  Ports ports() const override {
    return {.kernel = "read_numpy", .out = {{.most_rank = kMaxRank - 1}}, .params = parameters()};
  }
  void check(const StepFacts& step) const override {
    step.require_reader(reader_);
    NpyRegion::check(step);
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

class RegionOfNpy : public NpyRegion {
 public:
  explicit RegionOfNpy(Region region) : NpyRegion(std::move(region)) {}
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

Region make_region(std::vector<int> axes, int start, int end, int policy, registry::Elements fill) {
  const auto within = [](int value, int most, const char* what) {
    if (value < 0 || value > most) throw registry::Mismatch(what, std::to_string(value));
  };
  within(start, 2, "no start, or an absolute or relative one");
  within(end, 4, "no end, or an absolute or relative one, or a shape");
  within(policy, 2, "a policy for regions that are outside");
  if (axes.size() >= static_cast<size_t>(kMaxRank))
    throw registry::Mismatch("at most 7 axes", std::to_string(axes.size()));
  return {std::move(axes), static_cast<Bound>(start), static_cast<Bound>(end), static_cast<Outside>(policy),
          std::move(fill.bytes)};
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
