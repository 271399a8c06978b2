// SPDX-License-Identifier: Apache-2.0
// Operators in users' compiled libraries (shared/stoker/op.h), and functions that a compiler of the process has made.
#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "base/copy_view.hpp"
#include "shared/philox.hpp"
#include "kernels/registry.hpp"
#include "run/job.hpp"
#include "shared/stoker/op.h"

namespace stoker {

namespace {

static_assert(ST_MAX_RANK == kMaxRank);
static_assert(static_cast<int>(DType::BF16) == ST_BFLOAT16 && static_cast<int>(DType::F32) == ST_FLOAT32);

// Element types as bits, least and most rank; for outputs the number of the input whose extents they have, or -1.
using Declared = std::tuple<uint32_t, int32_t, int32_t, int32_t>;

struct Library {
  void (*run)(st_row*);
};

// The library stays loaded: threads may still run its code, and its memory is small.
Library open_library(const std::string& path) {
  void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* const why = ::dlerror();
    throw std::invalid_argument("expected a library that can be loaded, got " + std::string(why ? why : path));
  }
  const auto find = [&](const char* name) {
    void* const symbol = ::dlsym(handle, name);
    if (!symbol) throw std::invalid_argument("expected a library with the function `" + std::string(name) + "`");
    return symbol;
  };
  const auto version = reinterpret_cast<int32_t (*)()>(find("st_abi"))();
  if (version < 1 || version > ST_ABI)
    throw std::invalid_argument("expected a library for version 1 to " + std::to_string(ST_ABI) +
                                " of stoker/op.h, got version " + std::to_string(version));
  return {reinterpret_cast<void (*)(st_row*)>(find("st_run"))};
}

class UserCode : public Kernel {
 public:
  UserCode(Library library, Ports ports, bool counted, uint32_t draw, bool own_seed, uint64_t seed)
      : library_(library), ports_(std::move(ports)), counted_(counted), draw_(draw), own_seed_(own_seed), seed_(seed) {}

  Ports ports() const override { return ports_; }

  Outcome run(const Call& c) const override {
    const size_t inputs = ports_.in.size(), outputs = ports_.out.size() - (counted_ ? 1 : 0);
    std::vector<st_tensor> tensors(inputs + outputs);
    for (size_t i = 0; i < inputs; ++i) tensors[i] = tensor_of(*c.in[i]);
    for (size_t i = 0; i < outputs; ++i) tensors[inputs + i] = tensor_of(*c.out[i]);
    const uint64_t key = own_seed_ ? philox::epoch_key(seed_, c.job.epochs[c.row]) : c.job.epoch_keys[c.row];
    Running running{c, philox::Stream(key, c.job.keys[c.row], draw_)};
    st_row row{};
    row.size = sizeof row;
    row.inputs = static_cast<int32_t>(inputs);
    row.outputs = static_cast<int32_t>(outputs);
    row.arguments = ports_.params;
    row.in = tensors.data();
    row.out = tensors.data() + inputs;
    row.args = c.params;
    row.key = c.job.keys[c.row];
    row.epoch = c.job.epochs[c.row];
    row.draw = [](st_row* r) { return of(r).stream.next(); };
    row.scratch = [](st_row* r, int64_t bytes) -> void* {
      Running& self = of(r);
      if (bytes < 0 || self.areas == kWorkAreas) return nullptr;
      try {  // the caller may be C, through which no exception passes
        return self.call.work[self.areas++].get(static_cast<size_t>(bytes));
      } catch (const std::bad_alloc&) { return nullptr; }
    };
    row.fail = [](st_row* r, const char* text) {
      Running& self = of(r);
      self.failed = true;
      *self.call.error = text ? text : "the operator failed";
    };
    row.set_count = [](st_row* r, int64_t count) { of(r).count = count; };
    row.host = &running;
    library_.run(&row);
    if (running.failed) return Outcome::Error;
    if (counted_) {
      const auto count = static_cast<int32_t>(std::clamp<int64_t>(running.count, -1, INT32_MAX));
      std::memcpy(c.out[outputs]->data, &count, sizeof count);
    }
    return Outcome::Ok;
  }

 private:
  struct Running {
    const Call& call;
    philox::Stream stream;
    int areas = 0;
    bool failed = false;
    int64_t count = 0;
  };
  static Running& of(st_row* row) { return *static_cast<Running*>(row->host); }
  static st_tensor tensor_of(const View& v) {
    st_tensor t{};
    t.data = v.data;
    t.dtype = static_cast<int32_t>(v.dtype);
    t.rank = v.rank;
    std::copy(v.shape, v.shape + v.rank, t.shape);
    std::copy(v.stride, v.stride + v.rank, t.stride);
    return t;
  }

  Library library_;
  Ports ports_;
  bool counted_;
  uint32_t draw_;
  bool own_seed_;
  uint64_t seed_;
};

// Function on contiguous tensors: the addresses of inputs and outputs, and their extents one after the other.
using Function = int32_t (*)(const uint64_t* data, const int64_t* extents);

class UserFunction : public Kernel {
 public:
  UserFunction(Function function, Ports ports) : function_(function), ports_(std::move(ports)) {}

  Ports ports() const override { return ports_; }

  Outcome run(const Call& c) const override {
    const size_t inputs = ports_.in.size(), outputs = ports_.out.size();
    size_t copied = 0;
    for (size_t i = 0; i < inputs; ++i)
      if (!c.in[i]->contiguous()) copied += aligned_bytes(*c.in[i]);
    uint8_t* free = copied ? c.work[0].get(copied) : nullptr;
    std::vector<uint64_t> data(inputs + outputs);
    std::vector<int64_t> extents;
    for (size_t i = 0; i < inputs + outputs; ++i) {
      const View& v = i < inputs ? *c.in[i] : *c.out[i - inputs];
      const uint8_t* from = v.data;
      if (!v.contiguous()) {  // an input: outputs are contiguous
        copy_contiguous(v, free);
        from = free;
        free += aligned_bytes(v);
      }
      data[i] = reinterpret_cast<uintptr_t>(from);
      extents.insert(extents.end(), v.shape, v.shape + v.rank);
    }
    extents.push_back(0);  // so that there is an address
    if (function_(data.data(), extents.data()) == 1) return Outcome::Ok;
    *c.error = "the compiled function raised an exception; call it in Python to see which";
    return Outcome::Error;
  }

 private:
  static size_t aligned_bytes(const View& v) {
    return (static_cast<size_t>(v.elements()) * static_cast<size_t>(size_of(v.dtype)) + 63) & ~size_t{63};
  }

  Function function_;
  Ports ports_;
};

// Add the rules of `declared` inputs and outputs.
Ports declared_ports(const char* kernel, const std::vector<Declared>& inputs, const std::vector<Declared>& outputs) {
  Ports ports{.kernel = kernel};
  const auto rule_of = [&](const Declared& d) {
    const auto& [types, least, most, same] = d;
    if (least < 0 || most > kMaxRank || least > most || same >= static_cast<int32_t>(inputs.size()))
      throw std::invalid_argument("expected ranks from 0 to 8, and the number of an input");
    return PortRule{.types = types & kAnyType, .least_rank = least, .most_rank = most, .same_extents = same};
  };
  for (const Declared& d : inputs) ports.in.push_back(rule_of(d));
  for (const Declared& d : outputs) ports.out.push_back(rule_of(d));
  return ports;
}

std::shared_ptr<Kernel> make_user_code(registry::Bytes path, const std::vector<Declared>& inputs,
                                       const std::vector<Declared>& outputs, int32_t arguments, bool counted,
                                       uint32_t draw, bool own_seed, uint64_t seed) {
  if (arguments < 0) throw std::invalid_argument("expected a number of arguments, got a negative one");
  Ports ports = declared_ports("user_code", inputs, outputs);
  ports.params = arguments;
  if (counted) ports.out.push_back(port_of(DType::I32, 0));
  const Library library = open_library(std::string(path.data, path.size));
  return std::make_shared<UserCode>(library, std::move(ports), counted, draw, own_seed, seed);
}

std::shared_ptr<Kernel> make_user_function(uint64_t address, const std::vector<Declared>& inputs,
                                           const std::vector<Declared>& outputs) {
  if (!address) throw std::invalid_argument("expected the address of a function, got 0");
  return std::make_shared<UserFunction>(reinterpret_cast<Function>(static_cast<uintptr_t>(address)),
                                        declared_ports("user_function", inputs, outputs));
}

const Registered kUserFunction{"user_function",
                               "Function that a compiler of this process has made.",
                               make_user_function,
                               {{"address", "of the function, which stays"},
                                {"inputs", "per input: element types as bits, least rank, most rank, -1"},
                                {"outputs", "the same, with the number of the input whose extents they have, or -1"}}};

const Registered kUserCode{"user_code",
                           "Operator of a user's compiled library.",
                           make_user_code,
                           {{"path", "of the library"},
                            {"inputs", "per input: element types as bits, least rank, most rank, -1"},
                            {"outputs", "the same, with the number of the input whose extents they have, or -1"},
                            {"arguments", "numbers per row"},
                            {"counted", "the library sets the first extent of the outputs"},
                            {"draw", "draw id"},
                            {"own_seed", "whether the operator has its own seed"},
                            {"seed", "this seed"}}};

}  // namespace

}  // namespace stoker
