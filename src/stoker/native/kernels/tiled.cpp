// SPDX-License-Identifier: Apache-2.0
// Chain of kernels that runs part by part (kernels/tiled.hpp).
#include "kernels/tiled.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "plan/check.hpp"
#include "run/job.hpp"
#include "signal/signal.hpp"

namespace stoker {

// A kernel of a chain: its name and constants, and the number of its inputs (without the one that the kernel before
// computes) and of its parameters.
struct LinkOf {
  std::string name;
  registry::List constants;
  int32_t inputs, params;
};
template <>
struct registry::Argument<LinkOf> {
  static std::string type() { return "tuple[bytes, Sequence[Any], int, int]"; }
  static LinkOf read(const Value& v) {
    const List* list = std::get_if<List>(&v.is);
    if (!list || list->size() != 4) refuse<LinkOf>(v);
    const Bytes name = Argument<Bytes>::read((*list)[0]);
    const List* constants = std::get_if<List>(&(*list)[1].is);
    if (!constants) refuse<LinkOf>((*list)[1]);
    LinkOf link{
        {name.data, name.size}, *constants, Argument<int32_t>::read((*list)[2]), Argument<int32_t>::read((*list)[3])};
    registry::check(Target::Cpu, link.name, link.constants);
    return link;
  }
};

namespace {

constexpr size_t kMostLinks = 8;

class TiledChain : public Kernel {
 public:
  TiledChain(int32_t axis, const std::vector<LinkOf>& links) : axis_(axis) {
    if (axis != 0 && axis != 1) throw std::invalid_argument("expected axis 0 or 1, got " + std::to_string(axis));
    if (links.size() < 2 || links.size() > kMostLinks)
      throw std::invalid_argument("expected 2 to 8 kernels, got " + std::to_string(links.size()));
    ports_ = {.kernel = "tiled", .out = {port_of(DType::F32, 2)}};
    for (const LinkOf& link : links) add(link);
    if (last().gives() == tiled::Part::Samples)
      throw std::invalid_argument("expected a last kernel that gives columns or the whole");
  }
  Ports ports() const override { return ports_; }
  bool fits(const Call& c) const override {
    Row row;
    if (!open(c, &row)) return false;
    const View& out = *c.out[0];
    const tiled::Link& end = row.links[links_.size() - 1];
    if (out.shape[axis_] == end.positions && out.shape[1 - axis_] == end.bins) return true;
    *c.error = "expected an output of " + std::to_string(end.positions) + " positions with " +
               std::to_string(end.bins) + " bins, got " + std::to_string(out.shape[axis_]) + " and " +
               std::to_string(out.shape[1 - axis_]);
    return false;
  }
  Outcome run(const Call& c) const override {
    Row row;
    if (!open(c, &row)) return Outcome::Error;
    const tiled::Link& end = row.links[links_.size() - (finishes() ? 2 : 1)];  // the last one that gives columns
    const signal::Kernels& kernels = signal::kernels();
    int64_t sizes[kMostLinks], bytes = end.bins * kWidest;
    for (size_t i = 0; i < links_.size(); ++i) bytes += sizes[i] = rounded(links_[i].kernel->bytes(row.links[i]));
    uint8_t* memory = c.work[0].get(static_cast<size_t>(bytes));
    auto* tile = reinterpret_cast<float*>(memory);
    memory += end.bins * kWidest;
    for (size_t i = 0; i < links_.size(); ++i) {
      row.links[i].memory = memory;
      memory += sizes[i];
      links_[i].kernel->begin(row.links[i]);
    }
    auto* to = reinterpret_cast<float*>(c.out[0]->data);
    const signal::Bins out = axis_ == 0 ? signal::Bins{to, end.bins, 1} : signal::Bins{to, 1, end.positions};
    for (int64_t first = 0; first < end.positions; first += kernels.group) {
      end.columns(first, tile);
      kernels.store_group(tile, end.bins, first, std::min(kernels.group, end.positions - first), out);
    }
    if (finishes()) {
      const int64_t shape[] = {c.out[0]->shape[0], c.out[0]->shape[1]};
      last().finish(row.links[links_.size() - 1], shape, to);
    }
    return Outcome::Ok;
  }

 private:
  static constexpr int64_t kWidest = 64;  // bytes of a vector
  struct Member {
    std::shared_ptr<const tiled::Kernel> kernel;
    int32_t first, inputs, params;  // `first`: number of its first input among those of the chain
  };
  struct Row {
    std::array<std::optional<Call>, kMostLinks> calls;
    std::array<tiled::Link, kMostLinks> links;
    const View* inputs[kMaxStepInputs + kMostLinks];
  };

  static int64_t rounded(int64_t bytes) { return (bytes + 63) / 64 * 64; }
  const tiled::Kernel& last() const { return *links_.back().kernel; }
  bool finishes() const { return last().gives() == tiled::Part::Whole; }

  void add(const LinkOf& link) {
    const auto made = std::dynamic_pointer_cast<const tiled::Kernel>(
        registry::make(registry::Target::Cpu, link.name, link.constants));
    if (!made) throw std::invalid_argument("kernel `" + link.name + "` cannot run in a chain");
    const bool is_first = links_.empty();
    if (!is_first && (made->takes() == tiled::Part::Whole || made->takes() != last().gives()))  // nothing takes a whole
      throw std::invalid_argument("kernel `" + link.name + "` does not take the parts of the one before");
    const Ports own = made->ports();
    const size_t given = is_first ? 0 : 1;
    if (link.inputs < 0 || own.in.size() - given != static_cast<size_t>(link.inputs) || own.out.size() != 1)
      throw std::invalid_argument("expected " + std::to_string(own.in.size() - given) + " inputs of kernel `" +
                                  link.name + "`, got " + std::to_string(link.inputs));
    if (link.params < own.params)
      throw std::invalid_argument("expected " + std::to_string(own.params) + " numbers of kernel `" + link.name +
                                  "`, got " + std::to_string(link.params));
    links_.push_back({made, static_cast<int32_t>(ports_.in.size()), link.inputs, link.params});
    for (size_t i = given; i < own.in.size(); ++i)
      ports_.in.push_back(
          {.types = own.in[i].types, .least_rank = own.in[i].least_rank, .most_rank = own.in[i].most_rank});
    if (ports_.in.size() > static_cast<size_t>(kMaxStepInputs)) throw std::invalid_argument("expected fewer inputs");
    ports_.params += link.params;
  }

  bool open(const Call& c, Row* row) const {
    const double* params = c.params;
    const View** in = row->inputs;
    for (size_t i = 0; i < links_.size(); ++i) {
      const Member& member = links_[i];
      const View* const* const begin = in;
      if (i > 0) *in++ = nullptr;
      for (int32_t k = 0; k < member.inputs; ++k) *in++ = c.in[member.first + k];
      Call own = c;
      own.params = params;
      own.in = begin;
      params += member.params;
      row->calls[i].emplace(own);
      row->links[i] = {member.kernel.get(), &*row->calls[i], i > 0 ? &row->links[i - 1] : nullptr, 0, 0, nullptr};
      if (!member.kernel->measure(&row->links[i])) return false;
    }
    return true;
  }

  int32_t axis_;
  Ports ports_;
  std::vector<Member> links_;
};

std::shared_ptr<Kernel> make_tiled(int32_t axis, const std::vector<LinkOf>& links) {
  return std::make_shared<TiledChain>(axis, links);
}

const Registered kTiled{"tiled",
                        "Kernels that run one after the other on a few columns of a matrix at a time.",
                        make_tiled,
                        {{"axis", "the axis of the columns' positions in the output"},
                         {"links", "name, constants, number of further inputs, number of parameters of each kernel"}}};

}  // namespace

}  // namespace stoker
