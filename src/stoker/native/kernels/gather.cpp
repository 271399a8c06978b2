// SPDX-License-Identifier: Apache-2.0
// Elements of the first axis by their numbers.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "base/copy_view.hpp"
#include "base/whole.hpp"
#include "kernels/registry.hpp"
#include "plan/check.hpp"

namespace stoker {

namespace {

constexpr Types kNumbers = types(DType::I32, DType::I64);

// The numbers of elements as int64, each within [0, count). Parameter: count. A GPU cannot refuse a row, so that its form
// of `gather` reads numbers that this kernel has checked.
class ElementNumbers : public Kernel {
 public:
  ElementNumbers(std::string argument, bool from_end) : argument_(std::move(argument)), from_end_(from_end) {}
  Ports ports() const override {
    return {
        .kernel = "element_numbers", .in = {{}}, .out = {{.types = types(DType::I64), .same_extents = 0}}, .params = 1};
  }
  Outcome run(const Call& c) const override {
    const View &in = *c.in[0], &out = *c.out[0];
    const double count = c.params[0];
    const int64_t n = in.elements();
    for (int64_t i = 0; i < n; ++i) {
      const double at = read_element(in, i);
      if (!(std::floor(at) == at)) return refuse(c, "expected whole numbers as `" + argument_ + "`, got " + shown(at));
      const double least = from_end_ ? -count : 0;
      if (at < least && !from_end_)
        return refuse(c, "expected numbers from 0 in `" + argument_ + "`, got " + shown(at));
      if (!(at < count) || at < least)
        return refuse(c, "expected `" + argument_ + "` with numbers below " + shown(count) +
                             ", the number of elements, got " + shown(at));
      const int64_t place = saturated<int64_t>(at < 0 ? at + count : at);
      std::memcpy(out.data + 8 * i, &place, sizeof place);
    }
    return Outcome::Ok;
  }

 private:
  static std::string shown(double x) {
    if (std::floor(x) == x && std::abs(x) < 1e15) return std::to_string(static_cast<int64_t>(x));
    std::string text = std::to_string(x);
    while (text.find('.') != std::string::npos && (text.back() == '0')) text.pop_back();
    return text;
  }
  static Outcome refuse(const Call& c, std::string text) {
    *c.error = std::move(text);
    return Outcome::Error;
  }
  std::string argument_;
  bool from_end_;
};

// Inputs: data, numbers of elements of the first axis. Output: these elements.
class Gather : public Kernel {
 public:
  Ports ports() const override {
    return {.kernel = "gather", .in = {{.least_rank = 1}, {.types = kNumbers}}, .out = {{.same_type = 0}}};
  }
  void check(const StepFacts& facts) const override {
    const int32_t want = facts.in_rank(0) - 1 + facts.in_rank(1);
    if (facts.out_rank(0) != want)
      facts.refuse("output 0", std::to_string(want) + " axes", std::to_string(facts.out_rank(0)));
  }
  bool fits(const Call& c) const override {
    const View &x = *c.in[0], &numbers = *c.in[1], &out = *c.out[0];
    if (std::equal(numbers.shape, numbers.shape + numbers.rank, out.shape) &&
        std::equal(x.shape + 1, x.shape + x.rank, out.shape + numbers.rank))
      return true;
    *c.error = "expected memory for an element for each number";
    return false;
  }
  Outcome run(const Call& c) const override {
    const View &x = *c.in[0], &numbers = *c.in[1], &out = *c.out[0];
    View item = x;
    item.rank = x.rank - 1;
    std::copy(x.shape + 1, x.shape + x.rank, item.shape);
    std::copy(x.stride + 1, x.stride + x.rank, item.stride);
    const int64_t bytes = item.elements() * size_of(x.dtype), n = numbers.elements();
    for (int64_t i = 0; i < n; ++i) {
      const double at = read_element(numbers, i);
      if (!(at >= 0 && at < static_cast<double>(x.shape[0]))) {
        *c.error = "expected numbers of elements below " + std::to_string(x.shape[0]);
        return Outcome::Error;
      }
      item.data = x.data + static_cast<int64_t>(at) * x.stride[0];
      copy_contiguous(item, out.data + i * bytes);
    }
    return Outcome::Ok;
  }
};

std::shared_ptr<Kernel> make_element_numbers(registry::Bytes argument, bool from_end) {
  return std::make_shared<ElementNumbers>(std::string(argument.data, argument.size), from_end);
}
std::shared_ptr<Kernel> make_gather() { return std::make_shared<Gather>(); }

const Registered kElementNumbers{
    "element_numbers",
    "Numbers of elements, checked, as int64.",
    make_element_numbers,
    {{"argument", "its name in messages"}, {"from_end", "negative numbers count from the end"}}};
const Registered kGather{"gather", "Elements of the first axis by their numbers.", make_gather};

}  // namespace

}  // namespace stoker
