// SPDX-License-Identifier: Apache-2.0
// Kernels that read a row's columns: the bytes of its record, elements of tables in memory, and its number.
#include <cstring>
#include <stdexcept>
#include <string>

#include "io/kept_blocks.hpp"
#include "io/manifest.hpp"
#include "kernels/record_part.hpp"
#include "kernels/records.hpp"
#include "plan/check.hpp"
#include "run/job.hpp"

namespace stoker {

namespace {

constexpr int64_t kMaxItem = int64_t{1} << 40;

class ReadRange : public Kernel {
 public:
  ReadRange(std::shared_ptr<const Records> records, int reader, std::vector<int64_t> item)
      : records_(std::move(records)),
        reader_(reader),
        item_(std::move(item)),
        sizes_(records_->has_known_costs() ? 0 : records_->size()) {}
  Ports ports() const override {
    const auto rank = static_cast<int32_t>(1 + item_.size());
    return {.kernel = "read_range", .out = {{.least_rank = rank, .most_rank = rank}}};
  }
  void check(const StepFacts& step) const override { step.require_reader(reader_); }
  bool allocates() const override { return true; }
  // Sizes of whole files are known only after they have been read: asking the file system would cost more than a better
  // order of the rows saves.
  bool has_cost() const override { return true; }
  double cost(const Job& job, int64_t row) const override {
    const uint64_t index = static_cast<uint64_t>(job.indices[reader_][row]);
    const int64_t known = index < records_->size() ? records_->cost(index) : 0;
    return known < 0 ? sizes_.of(index) : static_cast<double>(known);
  }
  Outcome run(const Call& c) const override {
    const uint64_t index = static_cast<uint64_t>(c.job.indices[reader_][c.row]);
    if (index >= records_->size()) return outside(c, index, records_->size());
    View& out = *c.out[0];
    if (!records_->read(index, *c.allocator, out, *c.error)) return Outcome::Error;
    const int64_t bytes = out.shape[0];
    if (records_->cost(index) < 0) sizes_.record(index, bytes);
    return item_.empty() && out.dtype == DType::U8 ? Outcome::Ok : shape_items(c, bytes);
  }

 private:
  // Shape the bytes as items of `item_` elements of the output's type.
  Outcome shape_items(const Call& c, int64_t bytes) const {
    View& out = *c.out[0];
    int64_t item_bytes = size_of(out.dtype);
    for (const int64_t extent : item_) item_bytes *= extent;
    if (bytes % item_bytes != 0) {
      *c.error = "expected a multiple of " + std::to_string(item_bytes) + " bytes, got " + std::to_string(bytes);
      return Outcome::Error;
    }
    out.shape[0] = bytes / item_bytes;
    for (size_t i = 0; i < item_.size(); ++i) out.shape[i + 1] = item_[i];
    out.set_contiguous_strides();
    return Outcome::Ok;
  }

  const std::shared_ptr<const Records> records_;
  const int reader_;
  const std::vector<int64_t> item_;
  const KnownFileSizes sizes_;
};

// The step's input is the record's number, for its Python twin, which reads what the cache does not have.
class ReadKept : public Kernel {
 public:
  ReadKept(std::shared_ptr<KeptBlocks> kept, int reader) : kept_(std::move(kept)), reader_(reader) {}
  Ports ports() const override {
    return {.kernel = "read_kept", .in = {port_of(DType::I64, 0)}, .out = {{.least_rank = 1}}};
  }
  void check(const StepFacts& step) const override { step.require_reader(reader_); }
  // A better order of the rows would not pay for another read of a manifest's entry.
  bool has_cost() const override { return kept_->is_in_memory(); }
  double cost(const Job& job, int64_t row) const override {
    const uint64_t index = static_cast<uint64_t>(job.indices[reader_][row]);
    uint64_t bytes = 0;
    std::string error;
    return index < kept_->size() && kept_->find_bytes(index, bytes, error) ? static_cast<double>(bytes) : 0;
  }
  Outcome run(const Call& c) const override {
    const uint64_t index = static_cast<uint64_t>(c.job.indices[reader_][c.row]);
    if (index >= kept_->size()) return outside(c, index, kept_->size());
    const View& out = *c.out[0];
    const auto bytes = static_cast<uint64_t>(out.elements() * size_of(out.dtype));
    if (kept_->read(index, out.data, bytes)) return Outcome::Ok;
    uint64_t expected = 0;
    if (!kept_->find_bytes(index, expected, *c.error)) return Outcome::Error;
    if (bytes == expected) return Outcome::Python;
    *c.error =
        "expected memory for the " + std::to_string(expected) + " bytes of a record, got " + std::to_string(bytes);
    return Outcome::Error;
  }

 private:
  const std::shared_ptr<const KeptBlocks> kept_;
  const int reader_;
};

// The number of bytes that `read_kept` fills, for records whose ranges are in a manifest.
class KeptBytes : public Kernel {
 public:
  KeptBytes(std::shared_ptr<KeptBlocks> kept, int reader) : kept_(std::move(kept)), reader_(reader) {}
  Ports ports() const override { return {.kernel = "kept_bytes", .out = {port_of(DType::I64, 0)}}; }
  void check(const StepFacts& step) const override { step.require_reader(reader_); }
  Outcome run(const Call& c) const override {
    const uint64_t index = static_cast<uint64_t>(c.job.indices[reader_][c.row]);
    if (index >= kept_->size()) return outside(c, index, kept_->size());
    uint64_t bytes = 0;
    if (!kept_->find_bytes(index, bytes, *c.error)) return Outcome::Error;
    std::memcpy(c.out[0]->data, &bytes, sizeof bytes);
    return Outcome::Ok;
  }

 private:
  const std::shared_ptr<const KeptBlocks> kept_;
  const int reader_;
};

// The data of a record of RecordIO, as `read_kept` writes it: after their number of bytes.
class CountedBytes : public RecordPart<> {
 public:
  Ports ports() const override { return ports_of("counted_bytes"); }
  Outcome run(const Call& c) const override {
    const View& record = *c.in[0];
    uint64_t bytes = 0;
    const bool is_whole = record.shape[0] >= static_cast<int64_t>(KeptBlocks::kCount) && record.stride[0] == 1;
    if (is_whole) std::memcpy(&bytes, record.data, sizeof bytes);
    if (!is_whole || bytes > static_cast<uint64_t>(record.shape[0]) - KeptBlocks::kCount) {
      *c.error = "expected bytes after their number";
      return Outcome::Error;
    }
    return show(c, record.data + KeptBlocks::kCount, bytes);
  }
};

class Lookup : public Kernel {
 public:
  Lookup(std::vector<uint8_t> table, size_t rows, int reader)
      : table_(std::move(table)), rows_(rows), row_bytes_(rows > 0 ? table_.size() / rows : 0), reader_(reader) {}
  Ports ports() const override { return {.kernel = "lookup", .out = {{}}}; }
  void check(const StepFacts& step) const override { step.require_reader(reader_); }
  bool fits(const Call& c) const override {
    if (c.out[0]->elements() * size_of(c.out[0]->dtype) == static_cast<int64_t>(row_bytes_)) return true;
    *c.error = "expected memory for a row of " + std::to_string(row_bytes_) + " bytes";
    return false;
  }
  Outcome run(const Call& c) const override {
    const size_t index = static_cast<size_t>(c.job.indices[reader_][c.row]);
    if (index >= rows_) return outside(c, index, rows_);
    if (row_bytes_ > 0) std::memcpy(c.out[0]->data, table_.data() + index * row_bytes_, row_bytes_);
    return Outcome::Ok;
  }

 private:
  const std::vector<uint8_t> table_;
  const size_t rows_, row_bytes_;
  const int reader_;
};

class Index : public Kernel {
 public:
  explicit Index(int reader) : reader_(reader) {}
  Ports ports() const override { return {.kernel = "index", .out = {port_of(DType::I64, 0)}}; }
  void check(const StepFacts& step) const override { step.require_reader(reader_); }
  Outcome run(const Call& c) const override {
    std::memcpy(c.out[0]->data, &c.job.indices[reader_][c.row], 8);
    return Outcome::Ok;
  }

 private:
  int reader_;
};

// An item consists of `item` elements of the output's type.
std::shared_ptr<Kernel> make_read_items(std::shared_ptr<const Records> records, int reader, std::vector<int64_t> item) {
  int64_t elements = 1;
  for (const int64_t n : item)
    if (n < 1 || __builtin_mul_overflow(elements, n, &elements) || elements > kMaxItem)
      throw std::invalid_argument("expected extents of an item of 1 to 2**40 elements, got " + std::to_string(n));
  if (item.size() >= kMaxRank) throw std::invalid_argument("expected an item of at most 7 axes");
  return std::make_shared<ReadRange>(std::move(records), reader, std::move(item));
}
std::shared_ptr<Kernel> make_read_range(std::shared_ptr<const Records> records, int reader) {
  return make_read_items(std::move(records), reader, {});
}
std::shared_ptr<Kernel> make_read_kept(std::shared_ptr<KeptBlocks> kept, int reader) {
  return std::make_shared<ReadKept>(std::move(kept), reader);
}
std::shared_ptr<Kernel> make_kept_bytes(std::shared_ptr<KeptBlocks> kept, int reader) {
  return std::make_shared<KeptBytes>(std::move(kept), reader);
}
std::shared_ptr<Kernel> make_counted_bytes() { return std::make_shared<CountedBytes>(); }
std::shared_ptr<Kernel> make_lookup(registry::Elements table, size_t rows, int reader) {
  const size_t bytes = table.bytes.size();
  if (rows > 0 ? bytes % rows != 0 : bytes > 0)
    throw registry::Mismatch("a table of " + std::to_string(rows) + " equal rows", std::to_string(bytes) + " bytes");
  return std::make_shared<Lookup>(std::move(table.bytes), rows, reader);
}
std::shared_ptr<Kernel> make_index(int reader) { return std::make_shared<Index>(reader); }

constexpr const char *kReader = "the column of the batch's indices", *kRecords = "where the bytes are";
const Registered kReadRange{
    "read_range", "The bytes of a record.", make_read_range, {{"records", kRecords}, {"reader", kReader}}};
const Registered kReadItems{"read_range",
                            "The items of a record.",
                            make_read_items,
                            {{"records", kRecords}, {"reader", kReader}, {"item", "extents of an item"}}};
const Registered kReadKept{"read_kept",
                           "The bytes of a record of an object, from the cache of its blocks.",
                           make_read_kept,
                           {{"kept", "the records and the blocks"}, {"reader", kReader}}};
const Registered kKeptBytes{"kept_bytes",
                            "The number of bytes that read_kept fills.",
                            make_kept_bytes,
                            {{"kept", "the records and the blocks"}, {"reader", kReader}}};
const Registered kCountedBytes{"counted_bytes", "The bytes after their number. The input is given twice.",
                               make_counted_bytes};
const Registered kLookup{"lookup",
                         "The row of a table that the row's sample has.",
                         make_lookup,
                         {{"table", "the rows one after the other"}, {"rows", "how many"}, {"reader", kReader}}};
const Registered kIndex{"index", "The index of the row's sample.", make_index, {{"reader", kReader}}};

}  // namespace

std::shared_ptr<const Records> registry::Argument<std::shared_ptr<const Records>>::read(const Value& v) {
  const Object* x = std::get_if<Object>(&v.is);
  if (x && x->type == typeid(FileTable)) return std::static_pointer_cast<FileTable>(x->pointer);
  if (x && x->type == typeid(RangeTable)) return std::static_pointer_cast<RangeTable>(x->pointer);
  if (x && x->type == typeid(ManifestTable)) return std::static_pointer_cast<ManifestTable>(x->pointer);
  if (x && x->type == typeid(JoinedRecords)) return std::static_pointer_cast<JoinedRecords>(x->pointer);
  if (x && x->type == typeid(MemoryTable)) return std::static_pointer_cast<MemoryTable>(x->pointer);
  throw Mismatch(type(), describe(v));
}

// Index out of range: a user's own sampler may return any number.
Outcome outside(const Call& c, uint64_t index, size_t size) {
  *c.error = "expected a sample below " + std::to_string(size) + " from the sampler, got " +
             std::to_string(static_cast<int64_t>(index));
  return Outcome::Error;
}

}  // namespace stoker
