// SPDX-License-Identifier: Apache-2.0
// Registry of kernels by name. A kernel registers its constructor where it is defined, with the names of its
// parameters. The binding (bind/kernels.cpp), the check of a step's constants and the type stubs
// (tools/kernel_stubs.py) are derived from this:
//
//   const Registered kReduce{"reduce", "Reduction over some axes.", make_reduce, {{"op", "..."}, {"axes", "..."}}};
//
// The types of the constructor's parameters define what it accepts. A kernel's own parameter type needs a
// specialization of `Argument`.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <typeindex>
#include <utility>
#include <variant>
#include <vector>

#include "base/tensor.hpp"
#include "plan/plan.hpp"

namespace stoker::registry {

// ---- arguments from the planner; they borrow memory and are valid during the call ----

struct Value;
using List = std::vector<Value>;

struct Bytes {
  const char* data;
  size_t size;
};

// An array of one axis.
struct Array {
  const uint8_t* data;
  DType dtype;
  int64_t count, stride;  // stride in bytes
};

struct Object {
  std::type_index type;
  std::shared_ptr<void> pointer;
};

struct Value {
  std::variant<std::monostate, bool, int64_t, uint64_t, double, Bytes, Array, List, Object>
      is;  // uint64_t: only for numbers above int64_t
};

// Thrown if an argument does not match its parameter.
struct Mismatch : std::invalid_argument {
  Mismatch(std::string wanted, std::string had)
      : std::invalid_argument("expected " + wanted + ", got " + had),
        expected(std::move(wanted)),
        got(std::move(had)) {}
  std::string expected, got;
};

std::string describe(const Value& value);  // for error messages

// ---- conversion of arguments by C++ type ----

// Name of the Python class whose objects hold a std::shared_ptr<T>.
template <class T>
inline constexpr const char* kPythonClass = "Kernel";

template <class T>
using Mutable = std::remove_const_t<T>;

// Conversion of an argument to T. `type` returns the annotation for type stubs; `read` throws Mismatch.
template <class T>
struct Argument;

template <class T>
[[noreturn]] void refuse(const Value& value) {
  throw Mismatch(Argument<T>::type(), describe(value));
}

template <>
struct Argument<bool> {
  static std::string type() { return "bool"; }
  static bool read(const Value& v) {
    if (const bool* x = std::get_if<bool>(&v.is)) return *x;
    refuse<bool>(v);
  }
};

template <std::integral T>
struct Argument<T> {
  static std::string type() { return "int"; }
  static T read(const Value& v) {
    if (const bool* x = std::get_if<bool>(&v.is)) return static_cast<T>(*x);
    if (const int64_t* x = std::get_if<int64_t>(&v.is)) return within(*x);
    if (const uint64_t* x = std::get_if<uint64_t>(&v.is)) return within(*x);
    refuse<T>(v);
  }

 private:
  template <class From>
  static T within(From x) {
    using Limits = std::numeric_limits<T>;
    if (std::in_range<T>(x)) return static_cast<T>(x);
    throw Mismatch("int from " + std::to_string(Limits::min()) + " to " + std::to_string(Limits::max()),
                   std::to_string(x));
  }
};

template <std::floating_point T>
struct Argument<T> {
  static std::string type() { return "float"; }
  static T read(const Value& v) {
    if (const double* x = std::get_if<double>(&v.is)) return static_cast<T>(*x);
    if (const int64_t* x = std::get_if<int64_t>(&v.is)) return static_cast<T>(*x);
    refuse<T>(v);
  }
};

template <class T>
  requires std::is_enum_v<T>
struct Argument<T> {
  static std::string type() { return "int"; }
  static T read(const Value& v) { return static_cast<T>(Argument<std::underlying_type_t<T>>::read(v)); }
};

template <>
struct Argument<Bytes> {
  static std::string type() { return "bytes"; }
  static Bytes read(const Value& v) {
    if (const Bytes* x = std::get_if<Bytes>(&v.is)) return *x;
    refuse<Bytes>(v);
  }
};

template <class T>
struct Argument<std::vector<T>> {
  static std::string type() { return "Sequence[" + Argument<T>::type() + "]"; }
  static std::vector<T> read(const Value& v) {
    const List* list = std::get_if<List>(&v.is);
    if (!list) refuse<std::vector<T>>(v);
    std::vector<T> out;
    out.reserve(list->size());
    for (const Value& item : *list) out.push_back(Argument<T>::read(item));
    return out;
  }
};

template <class... T>
struct Argument<std::tuple<T...>> {
  static std::string type() {
    std::string all;
    ((all += (all.empty() ? "" : ", ") + Argument<T>::type()), ...);
    return "tuple[" + all + "]";
  }
  static std::tuple<T...> read(const Value& v) {
    const List* list = std::get_if<List>(&v.is);
    if (!list || list->size() != sizeof...(T)) refuse<std::tuple<T...>>(v);
    return read_all(*list, std::index_sequence_for<T...>{});
  }

 private:
  template <size_t... I>
  static std::tuple<T...> read_all(const List& list, std::index_sequence<I...>) {
    return {Argument<T>::read(list[I])...};
  }
};

template <class A, class B>
struct Argument<std::pair<A, B>> {
  static std::string type() { return Argument<std::tuple<A, B>>::type(); }
  static std::pair<A, B> read(const Value& v) {
    auto [a, b] = Argument<std::tuple<A, B>>::read(v);
    return {std::move(a), std::move(b)};
  }
};

// Elements of a one-dimensional NumPy array of any type.
struct Elements {
  std::vector<uint8_t> bytes;
};
template <>
struct Argument<Elements> {
  static std::string type() { return "npt.NDArray[Any]"; }
  static Elements read(const Value& v);
};

template <class T>
struct Argument<std::shared_ptr<T>> {
  static std::string type() { return kPythonClass<Mutable<T>>; }
  static std::shared_ptr<T> read(const Value& v) {
    const Object* x = std::get_if<Object>(&v.is);
    if (!x || x->type != typeid(Mutable<T>)) refuse<std::shared_ptr<T>>(v);
    return std::static_pointer_cast<Mutable<T>>(x->pointer);
  }
};

template <class T>
struct Argument<std::optional<T>> {
  static std::string type() { return Argument<T>::type() + " | None"; }
  static std::optional<T> read(const Value& v) {
    if (std::holds_alternative<std::monostate>(v.is)) return std::nullopt;
    return Argument<T>::read(v);
  }
};

// ---- constructors ----

struct Parameter {
  std::string name, doc, type;
};

struct Constructor {
  std::string name, doc, result;  // result: the Python class
  std::vector<Parameter> parameters;
  std::function<void(const Constructor&, const List&)> check;  // throws Mismatch
  std::function<std::shared_ptr<Kernel>(const Constructor&, const List&)> make;

  std::string signature() const;  // "reduce(op: int, axes: int)"
};

// Constructors of one name have different numbers of parameters.
using Overloads = std::vector<Constructor>;
enum class Target { Cpu, Gpu };
const std::map<std::string, Overloads>& constructors(Target target);

// Return the constructor with this name and number of parameters; throw Mismatch.
const Constructor& find(Target target, const std::string& name, size_t arguments);
// Check the arguments without constructing; throw Mismatch like `make`.
void check(Target target, const std::string& name, const List& arguments);
std::shared_ptr<Kernel> make(Target target, const std::string& name, const List& arguments);

void add(Target target, Constructor constructor);

template <class T>
T read(const Constructor& constructor, const List& arguments, size_t i) {
  try {
    return Argument<T>::read(arguments[i]);
  } catch (const Mismatch& wrong) {
    throw Mismatch(
        "`" + constructor.parameters[i].name + "` of kernel `" + constructor.signature() + "` to be " + wrong.expected,
        wrong.got);
  }
}

template <Target kTarget>
class RegisteredOn {
 public:
  struct Named {
    const char *name, *doc;
  };
  template <class Result, class... Parameters, size_t N>
  RegisteredOn(const char* name, const char* doc, std::shared_ptr<Result> (*make)(Parameters...),
               const Named (&named)[N]) {
    static_assert(N == sizeof...(Parameters), "a kernel names all parameters of its constructor");
    add_named(name, doc, make, named, std::index_sequence_for<Parameters...>{});
  }
  template <class Result>
  RegisteredOn(const char* name, const char* doc, std::shared_ptr<Result> (*make)()) {
    add_named(name, doc, make, nullptr, std::index_sequence<>{});
  }

 private:
  template <class Result, class... Parameters, size_t... I>
  static void add_named(const char* name, const char* doc, std::shared_ptr<Result> (*make)(Parameters...),
                        [[maybe_unused]] const Named* named, std::index_sequence<I...>) {
    Constructor c;
    c.name = name;
    c.doc = doc;
    c.result = kPythonClass<Mutable<Result>>;
    (c.parameters.push_back({named[I].name, named[I].doc, Argument<std::remove_cvref_t<Parameters>>::type()}), ...);
    c.check = []([[maybe_unused]] const Constructor& self, [[maybe_unused]] const List& given) {
      (static_cast<void>(read<std::remove_cvref_t<Parameters>>(self, given, I)), ...);
    };
    c.make = [make]([[maybe_unused]] const Constructor& self,
                    [[maybe_unused]] const List& given) -> std::shared_ptr<Kernel> {
      std::tuple<std::remove_cvref_t<Parameters>...> arguments{
          read<std::remove_cvref_t<Parameters>>(self, given, I)...};
      return make(std::get<I>(std::move(arguments))...);
    };
    add(kTarget, std::move(c));
  }
};

}  // namespace stoker::registry

namespace stoker {

// Registration of a kernel for the CPU, and of its GPU form under the same name.
using Registered = registry::RegisteredOn<registry::Target::Cpu>;
using RegisteredOnGpu = registry::RegisteredOn<registry::Target::Gpu>;

}  // namespace stoker
