// SPDX-License-Identifier: Apache-2.0
#include "kernels/registry.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace stoker::registry {

namespace {

using Table = std::map<std::string, Overloads>;

// Filled by static initializers, in any order of source files.
Table& table(Target target) {
  static Table tables[2];
  return tables[static_cast<size_t>(target)];
}

struct Describer {
  std::string operator()(std::monostate) const { return "None"; }
  std::string operator()(bool x) const { return x ? "True" : "False"; }
  std::string operator()(int64_t x) const { return std::to_string(x); }
  std::string operator()(uint64_t x) const { return std::to_string(x); }
  std::string operator()(double x) const { return std::to_string(x); }
  std::string operator()(const Bytes& x) const { return std::to_string(x.size) + " bytes"; }
  std::string operator()(const Array& x) const {
    return "an array of " + std::to_string(x.count) + " elements of another type";
  }
  std::string operator()(const List& x) const {
    constexpr size_t kShown = 8;
    std::string all;
    for (size_t i = 0; i < x.size() && i < kShown; ++i) all += (i ? ", " : "") + describe(x[i]);
    return "(" + all + (x.size() > kShown ? ", ...)" : ")");
  }
  std::string operator()(const Object&) const { return "an object of another class"; }
};

}  // namespace

std::string describe(const Value& value) { return std::visit(Describer{}, value.is); }

Elements Argument<Elements>::read(const Value& v) {
  const Array* array = std::get_if<Array>(&v.is);
  if (!array) refuse<Elements>(v);
  Elements out;
  const int64_t size = size_of(array->dtype);
  out.bytes.resize(static_cast<size_t>(array->count * size));
  uint8_t* to = out.bytes.data();
  for (int64_t i = 0; i < array->count; ++i, to += size)
    std::memcpy(to, array->data + i * array->stride, static_cast<size_t>(size));
  return out;
}

std::string Constructor::signature() const {
  std::string all;
  for (const Parameter& p : parameters) all += (all.empty() ? "" : ", ") + p.name + ": " + p.type;
  return name + "(" + all + ")";
}

const Table& constructors(Target target) { return table(target); }

void add(Target target, Constructor constructor) {
  Overloads& same = table(target)[constructor.name];
  for (const Constructor& other : same)
    if (other.parameters.size() == constructor.parameters.size()) {
      std::fprintf(stderr, "stoker: two kernels are registered as %s\n", constructor.signature().c_str());
      std::abort();
    }
  same.push_back(std::move(constructor));
}

const Constructor& find(Target target, const std::string& name, size_t arguments) {
  const auto found = table(target).find(name);
  if (found == table(target).end())
    throw Mismatch(std::string("the name of a kernel") + (target == Target::Gpu ? " for GPUs" : ""), "`" + name + "`");
  std::string wanted;
  for (const Constructor& c : found->second) {
    if (c.parameters.size() == arguments) return c;
    wanted += (wanted.empty() ? "" : " or ") + std::to_string(c.parameters.size());
  }
  throw Mismatch(wanted + " constants for kernel `" + found->second.front().signature() + "`",
                 std::to_string(arguments));
}

void check(Target target, const std::string& name, const List& arguments) {
  const Constructor& constructor = find(target, name, arguments.size());
  constructor.check(constructor, arguments);
}

std::shared_ptr<Kernel> make(Target target, const std::string& name, const List& arguments) {
  const Constructor& constructor = find(target, name, arguments.size());
  return constructor.make(constructor, arguments);
}

}  // namespace stoker::registry
