// SPDX-License-Identifier: Apache-2.0
// Kernels that take a feature out of a record with a tf.train.Example.
#include "container/example.hpp"

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "kernels/record_part.hpp"

namespace stoker {

namespace {

constexpr FeatureKind kind_of(DType t) { return t == DType::F32 ? FeatureKind::Floats : FeatureKind::Ints; }

class OneFeature : public Kernel {
 protected:
  explicit OneFeature(registry::Bytes name) : name_(name.data, name.size) {}
  // Find the feature in a record; it is of `kind`, or missing. Return false with the reason in `error`.
  bool find(const View& record, FeatureKind kind, Feature& found, std::string& error) const {
    if (!record.contiguous()) return error = "expected the bytes of an Example, got an array of another shape", false;
    const ByteSpan bytes{record.data, static_cast<size_t>(record.shape[0])};
    if (!find_feature(bytes, name_, found)) return error = "expected a tf.train.Example, got damaged bytes", false;
    if (found.kind == kind || found.kind == FeatureKind::None) return true;
    error = "expected " + std::string(name_of(kind)) + " in the feature '" + name_ + "', got " + name_of(found.kind);
    return false;
  }
  Outcome lacks(const Call& c, const std::string& expected, uint64_t count) const {
    *c.error = "expected " + expected + " in the feature '" + name_ + "', got " +
               (count > 0 ? std::to_string(count) : "none") + ". `default_value` replaces missing ones";
    return Outcome::Error;
  }

 private:
  const std::string name_;
};

class ExampleBytes : public RecordPart<OneFeature> {
 public:
  ExampleBytes(registry::Bytes name, std::optional<std::string> missing)
      : RecordPart(name), missing_(std::move(missing)) {}
  Ports ports() const override { return ports_of("example_bytes"); }
  Outcome run(const Call& c) const override {
    Feature found;
    if (!find(*c.in[0], FeatureKind::Bytes, found, *c.error)) return Outcome::Error;
    if (found.count > 0) return show(c, found.first.data, found.first.size);
    if (!missing_) return lacks(c, "bytes", 0);
    return show(c, reinterpret_cast<const uint8_t*>(missing_->data()), missing_->size());
  }

 private:
  const std::optional<std::string> missing_;
};

// As many numbers as the output has elements. `missing` has their values where the record has fewer, or is empty.
class ExampleNumbers : public OneFeature {
 public:
  ExampleNumbers(registry::Bytes name, std::vector<uint8_t> missing) : OneFeature(name), missing_(std::move(missing)) {}
  Ports ports() const override {
    return {
        .kernel = "example_numbers", .in = {port_of(DType::U8, 1)}, .out = {{.types = types(DType::F32, DType::I64)}}};
  }
  bool fits(const Call& c) const override {
    const View& out = *c.out[0];
    if (missing_.empty() || static_cast<int64_t>(missing_.size()) == out.elements() * size_of(out.dtype)) return true;
    *c.error = "expected a default value for each of " + std::to_string(out.elements()) + " elements";
    return false;
  }
  Outcome run(const Call& c) const override {
    const View& out = *c.out[0];
    const auto wanted = static_cast<uint64_t>(out.elements());
    Feature found;
    if (!find(*c.in[0], kind_of(out.dtype), found, *c.error)) return Outcome::Error;
    if (found.count > wanted || (found.count < wanted && missing_.empty()))
      return lacks(c, std::to_string(wanted) + (wanted == 1 ? " number" : " numbers"), found.count);
    if (out.dtype == DType::F32) copy_values(found, reinterpret_cast<float*>(out.data), found.count);
    else copy_values(found, reinterpret_cast<int64_t*>(out.data), found.count);
    const auto have = static_cast<size_t>(found.count) * static_cast<size_t>(size_of(out.dtype));
    if (found.count < wanted) std::memcpy(out.data + have, missing_.data() + have, missing_.size() - have);
    return Outcome::Ok;
  }

 private:
  const std::vector<uint8_t> missing_;
};

// All numbers of the feature, as items of some extents.
class ExampleList : public OneFeature {
 public:
  ExampleList(registry::Bytes name, std::vector<int64_t> item, uint64_t elements)
      : OneFeature(name), item_(std::move(item)), elements_(elements) {}
  Ports ports() const override {
    const auto rank = static_cast<int32_t>(1 + item_.size());
    return {.kernel = "example_list",
            .in = {port_of(DType::U8, 1)},
            .out = {{.types = types(DType::F32, DType::I64), .least_rank = rank, .most_rank = rank}}};
  }
  bool allocates() const override { return true; }
  Outcome run(const Call& c) const override {
    View& out = *c.out[0];
    Feature found;
    if (!find(*c.in[0], kind_of(out.dtype), found, *c.error)) return Outcome::Error;
    if (found.count % elements_ != 0)
      return lacks(c, "a multiple of " + std::to_string(elements_) + " numbers", found.count);
    // A record has at least one byte per number, so that the size cannot overflow.
    out.data = c.allocator->get(found.count * static_cast<uint64_t>(size_of(out.dtype)) + 1);
    if (out.dtype == DType::F32) copy_values(found, reinterpret_cast<float*>(out.data), found.count);
    else copy_values(found, reinterpret_cast<int64_t*>(out.data), found.count);
    out.shape[0] = static_cast<int64_t>(found.count / elements_);
    for (size_t i = 0; i < item_.size(); ++i) out.shape[i + 1] = item_[i];
    out.set_contiguous_strides();
    return Outcome::Ok;
  }

 private:
  const std::vector<int64_t> item_;
  const uint64_t elements_;
};

std::shared_ptr<Kernel> make_example_bytes(registry::Bytes name, std::optional<registry::Bytes> missing) {
  std::optional<std::string> text;
  if (missing) text.emplace(missing->data, missing->size);
  return std::make_shared<ExampleBytes>(name, std::move(text));
}
std::shared_ptr<Kernel> make_example_numbers(registry::Bytes name, registry::Elements missing) {
  return std::make_shared<ExampleNumbers>(name, std::move(missing.bytes));
}
std::shared_ptr<Kernel> make_example_list(registry::Bytes name, std::vector<int64_t> item) {
  int64_t elements = 1;
  for (const int64_t n : item)
    if (n < 1 || __builtin_mul_overflow(elements, n, &elements))
      throw registry::Mismatch("extents of an item of at least 1", std::to_string(n));
  if (item.size() >= kMaxRank) throw registry::Mismatch("at most 7 extents", std::to_string(item.size()));
  return std::make_shared<ExampleList>(name, std::move(item), static_cast<uint64_t>(elements));
}

constexpr const char* kName = "of the feature";
const Registered kExampleBytes{
    "example_bytes",
    "The bytes of a feature of a tf.train.Example. The record is given twice.",
    make_example_bytes,
    {{"name", kName}, {"missing", "the bytes of records that lack the feature; None: an error"}}};
const Registered kExampleNumbers{
    "example_numbers",
    "The numbers of a feature of a tf.train.Example, as many as the output has elements.",
    make_example_numbers,
    {{"name", kName}, {"missing", "elements that replace missing ones; empty: missing ones are an error"}}};
const Registered kExampleList{"example_list",
                              "All numbers of a feature of a tf.train.Example.",
                              make_example_list,
                              {{"name", kName}, {"item", "extents of an item"}}};

}  // namespace

}  // namespace stoker
