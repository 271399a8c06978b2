// SPDX-License-Identifier: Apache-2.0
// Kernels that take a field out of a record of fields: the sizes of all fields of varying size (4 bytes each), then the
// fields in their order.
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "container/fields.hpp"
#include "kernels/record_part.hpp"

namespace stoker {

namespace {

class OneField : public Kernel {
 public:
  OneField(std::vector<int64_t> sizes, int field) : sizes_(std::move(sizes)), field_(field) {}

 protected:
  bool find(const View& record, ByteSpan& found, std::string& error) const {
    const ByteSpan bytes{record.data, static_cast<size_t>(record.shape[0])};
    if (record.contiguous() && find_field(bytes, sizes_, static_cast<size_t>(field_), found)) return true;
    error = "expected a record of " + std::to_string(sizes_.size()) + " fields, got " +
            std::to_string(record.shape[0]) + " bytes with other sizes";
    return false;
  }

 private:
  const std::vector<int64_t> sizes_;
  const int field_;
};

class FieldBytes : public RecordPart<OneField> {
 public:
  using RecordPart::RecordPart;
  Ports ports() const override { return ports_of("field_bytes"); }
  Outcome run(const Call& c) const override {
    ByteSpan found;
    return find(*c.in[0], found, *c.error) ? show(c, found.data, found.size) : Outcome::Error;
  }
};

class FieldNumbers : public OneField {
 public:
  using OneField::OneField;
  Ports ports() const override { return {.kernel = "field_numbers", .in = {port_of(DType::U8, 1)}, .out = {{}}}; }
  Outcome run(const Call& c) const override {
    const View& out = *c.out[0];
    const auto bytes = static_cast<size_t>(out.elements() * size_of(out.dtype));
    ByteSpan found;
    if (!find(*c.in[0], found, *c.error)) return Outcome::Error;
    if (found.size != bytes) {
      *c.error = "expected " + std::to_string(bytes) + " bytes in a field, got " + std::to_string(found.size);
      return Outcome::Error;
    }
    std::memcpy(out.data, found.data, bytes);
    return Outcome::Ok;
  }
};

void require_fields(const std::vector<int64_t>& sizes, int field) {
  if (field < 0 || static_cast<size_t>(field) >= sizes.size())
    throw registry::Mismatch("one of " + std::to_string(sizes.size()) + " fields", std::to_string(field));
  for (const int64_t size : sizes)
    if (size < -1 || size > int64_t{1} << 40) throw registry::Mismatch("sizes of fields", std::to_string(size));
}

std::shared_ptr<Kernel> make_field_bytes(std::vector<int64_t> sizes, int field) {
  require_fields(sizes, field);
  return std::make_shared<FieldBytes>(std::move(sizes), field);
}
std::shared_ptr<Kernel> make_field_numbers(std::vector<int64_t> sizes, int field) {
  require_fields(sizes, field);
  return std::make_shared<FieldNumbers>(std::move(sizes), field);
}

constexpr const char *kSizes = "of the fields; -1: the record says", *kField = "its number";
const Registered kFieldBytes{"field_bytes",
                             "The bytes of a field of a record. The record is given twice.",
                             make_field_bytes,
                             {{"sizes", kSizes}, {"field", kField}}};
const Registered kFieldNumbers{"field_numbers",
                               "The elements of a field of a record, as many as the output has.",
                               make_field_numbers,
                               {{"sizes", kSizes}, {"field", kField}}};

}  // namespace

}  // namespace stoker
