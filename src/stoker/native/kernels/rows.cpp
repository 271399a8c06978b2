// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

#include "base/elements.hpp"
#include "base/whole.hpp"
#include "kernels/registry.hpp"
#include "kernels/store_scalar.hpp"
#include "plan/check.hpp"
#include "run/job.hpp"

namespace stoker {

namespace {

// Round half to even and saturate; NaN gives 0.
template <class T>
T rounded(double x) {
  using L = std::numeric_limits<T>;
  if (std::isnan(x)) return 0;
  const double r = round_even(x);
  if (r <= static_cast<double>(L::min())) return L::min();
  if (r >= static_cast<double>(L::max())) return L::max();
  return static_cast<T>(r);
}

template <class T>
T element_of(double x) {
  if constexpr (std::is_same_v<T, Truth>) return {x != 0};
  else if constexpr (std::is_same_v<T, Half>) return {std::isnan(x) ? uint16_t{0x7e00} : half_from_double(x)};
  else if constexpr (std::is_same_v<T, BFloat>) return {bfloat_from_double(x)};
  else if constexpr (std::is_floating_point_v<T>) return static_cast<T>(x);
  else return rounded<T>(x);
}

class Scalars : public Kernel {
 public:
  Ports ports() const override { return {.kernel = "scalars", .out = {{}}}; }
  bool fits(const Call& c) const override {
    if (c.out[0]->elements() <= static_cast<int64_t>(c.param_count)) return true;
    *c.error = "expected a parameter for each element, got " + std::to_string(c.param_count);
    return false;
  }
  Outcome run(const Call& c) const override {
    const View& out = *c.out[0];
    const int64_t n = out.elements();
    for (int64_t i = 0; i < n; ++i) store_scalar(out.data + i * size_of(out.dtype), out.dtype, c.params[i]);
    return Outcome::Ok;
  }
};

class Constant : public Kernel {
 public:
  Constant(std::string bytes, std::vector<int64_t> shape) : bytes_(std::move(bytes)), shape_(std::move(shape)) {}
  Ports ports() const override {
    const auto rank = static_cast<int32_t>(shape_.size());
    return {.kernel = "constant", .out = {{.least_rank = rank, .most_rank = rank}}};
  }
  void check(const StepFacts& step) const override {
    int64_t bytes = size_of(step.out_type(0));
    for (const int64_t n : shape_)
      if (n < 0 || __builtin_mul_overflow(bytes, n, &bytes)) step.refuse("shape", "extents", std::to_string(n));
    step.require(bytes == static_cast<int64_t>(bytes_.size()), "data", std::to_string(bytes) + " bytes",
                 std::to_string(bytes_.size()));
  }
  bool aliases() const override { return true; }
  Outcome run(const Call& c) const override {
    View& out = *c.out[0];
    out.data = reinterpret_cast<uint8_t*>(const_cast<char*>(bytes_.data()));
    std::copy(shape_.begin(), shape_.end(), out.shape);
    out.set_contiguous_strides();
    return Outcome::Ok;
  }

 private:
  std::string bytes_;
  std::vector<int64_t> shape_;
};

class Select : public Kernel {
 public:
  Ports ports() const override {
    return {.kernel = "select",
            .in = {{}, {}, {.same_type = 1, .same_rank = 1}},
            .out = {{.same_type = 1, .same_rank = 1}},
            .shows = 0b110};
  }
  bool aliases() const override { return true; }
  Outcome run(const Call& c) const override {
    const View& condition = *c.in[0];
    if (condition.elements() == 0 || condition.device) {
      *c.error = "expected a condition in host memory, got none";
      return Outcome::Error;
    }
    *c.out[0] = read_element(condition, 0) != 0 ? *c.in[1] : *c.in[2];
    return Outcome::Ok;
  }
};

class OtherRow : public Kernel {
 public:
  explicit OtherRow(int32_t value) : value_(value) {}
  Ports ports() const override {
    return {.kernel = "other_row",
            .in = {{}, {}},
            .out = {{.same_type = 1, .same_rank = 1}},
            .shows = 0b10,
            .other_rows_of = 1};
  }
  void check(const StepFacts& step) const override {
    step.require(value_ == step.in_value(1), "value", "input 1, value " + std::to_string(step.in_value(1)),
                 std::to_string(value_));
  }
  bool aliases() const override { return true; }
  Outcome run(const Call& c) const override {
    if (c.in[0]->elements() == 0 || c.in[0]->device) {
      *c.error = "expected the number of a row in host memory, got none";
      return Outcome::Error;
    }
    const double wanted = read_element(*c.in[0], 0);
    if (!(wanted >= 0 && wanted < static_cast<double>(c.job.rows))) {
      *c.error = "row number " + std::to_string(saturated<int64_t>(wanted)) + " is outside the batch of " +
                 std::to_string(c.job.rows) + " rows";
      return Outcome::Error;
    }
    const int64_t row = static_cast<int64_t>(wanted);
    if (c.job.failed[row]) {
      *c.error = "the row it takes its data from, " + std::to_string(row) + ", failed";
      return Outcome::Error;
    }
    *c.out[0] = c.job.row(row)[value_];
    return Outcome::Ok;
  }

 private:
  int32_t value_;
};

class RowNumber : public Kernel {
 public:
  explicit RowNumber(std::vector<int64_t> numbers) : numbers_(std::move(numbers)) {}
  Ports ports() const override { return {.kernel = "row_number", .out = {port_of(DType::I64, 0)}}; }
  Outcome run(const Call& c) const override {
    const auto count = static_cast<int64_t>(numbers_.size());
    if (c.job.rows != count) {
      *c.error = "expected one index for each of the " + std::to_string(c.job.rows) + " rows of the batch, got " +
                 std::to_string(count);
      return Outcome::Error;
    }
    std::memcpy(c.out[0]->data, &numbers_[static_cast<size_t>(c.row)], sizeof(int64_t));
    return Outcome::Ok;
  }

 private:
  std::vector<int64_t> numbers_;
};

class Python : public Kernel {
 public:
  Ports ports() const override { return {.kernel = "python", .any = true}; }
  Outcome run(const Call&) const override { return Outcome::Python; }
};

std::shared_ptr<Kernel> make_scalars() { return std::make_shared<Scalars>(); }
std::shared_ptr<Kernel> make_constant(registry::Bytes data, std::vector<int64_t> shape) {
  return std::make_shared<Constant>(std::string(data.data, data.size), std::move(shape));
}
std::shared_ptr<Kernel> make_select() { return std::make_shared<Select>(); }
std::shared_ptr<Kernel> make_other_row(int32_t value) { return std::make_shared<OtherRow>(value); }
std::shared_ptr<Kernel> make_row_number(std::vector<int64_t> numbers) {
  return std::make_shared<RowNumber>(std::move(numbers));
}
std::shared_ptr<Kernel> make_python() { return std::make_shared<Python>(); }

const Registered kScalars{"scalars", "A tensor of the row's parameters.", make_scalars};
const Registered kConstant{
    "constant", "A tensor that is the same for every row.", make_constant, {{"data", "its elements"}, {"shape", ""}}};
const Registered kSelect{"select", "The second or the third input, by the first.", make_select};
const Registered kOtherRow{"other_row",
                           "A value of another row of the batch, whose number is the input.",
                           make_other_row,
                           {{"value", "the value's number in the plan"}}};
const Registered kRowNumber{"row_number",
                            "The element of a list at the row's position in its batch.",
                            make_row_number,
                            {{"numbers", "one for each row of the batch"}}};
const Registered kPython{"python", "A step whose Python twin makes every row.", make_python};

}  // namespace

void store_scalar(uint8_t* p, DType dtype, double x) {
  with_type(dtype, [p, x]<class T>(T) { store_element(p, element_of<T>(x)); });
}

}  // namespace stoker
