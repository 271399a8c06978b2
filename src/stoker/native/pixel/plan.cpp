// SPDX-License-Identifier: Apache-2.0
// Compilation of a Program to a Plan: rename to single assignment, fuse, remove dead code, allocate blocks.
#include "pixel/plan.hpp"

#include <algorithm>
#include <map>

#include "pixel/ops.hpp"

namespace stoker::pixel {

namespace {

constexpr int kNone = -1;

// Whether the value is a float that was rounded to a small integer: a Cast and the Cvt after it in one.
constexpr bool is_whole(const Instr& in) {
  return in.op == Op::Cast && in.type == Type::F32 && type_of(in.dtype) == Type::I32;
}
constexpr bool fetches(Op op) { return op == Op::Load || op == Op::Coordinate; }

struct Argument {
  bool uniform = false;
  int index = kNone;  // a uniform, or the value that the instruction at `index` computes
};

// Instruction after renaming; its result is identified by its position.
struct Node {
  Instr in;
  Argument arg[4];
  int args = 0;
  bool live = false;
  int uses = 0;
  Op then = Op::kCount;                    // second operation of a pair; its operand is arg[2]
  Op after[2] = {Op::kCount, Op::kCount};  // pair after a rounding; its operands are the last two
  int compute = kNone;                     // position in Plan::computes
  bool constant = false;                   // computed from uniforms only, without a fault
};

// Whether an integer of 32 bits becomes a float.
bool converted(const Node& n) {
  const bool casts = n.in.op == Op::Cvt || (n.in.op == Op::Cast && n.in.dtype == DType::F32);
  return casts && n.in.type == Type::F32 && n.in.from == Type::I32 && !n.arg[0].uniform;
}

class Planner {
 public:
  Planner(const Program& program, std::string* why) : p_(program), check_{program, why} {}

  bool rename();
  const std::vector<Table>& tables() const { return tables_; }
  void fuse();
  std::shared_ptr<const Plan> finish();

 private:
  Argument spread(const Node& store);
  bool take_table(size_t i);
  void fuse_loads();
  void fuse_roundings();
  void fuse_stores();
  void fuse_pairs();
  void fuse_rounded_pairs();
  void count_uses();
  void mark(int value);
  void trace_sources();
  bool find_mix(const Node& store, MixRecipe& recipe, Instr (&loads)[kMixed]) const;
  void find_mixes();
  void find_constants();
  void order_accesses();
  void allocate();
  void group(const std::vector<int>& nodes, std::vector<std::vector<int>>& out) const;
  Operand operand(const Argument& a, Type type);
  Access access(const std::vector<int>& nodes);

  const Program& p_;
  Checker check_;
  std::vector<Table> tables_;
  std::vector<Node> nodes_;
  std::vector<int> loads_, computes_, stores_;
  std::vector<std::vector<int>> load_groups_, store_groups_;
  std::vector<Slot> slot_;   // by node
  std::vector<int> source_;  // by node: kNone: constant, >= 0: one source, -2: several sources
  Plan plan_;
};

// Stores only read blocks, so a uniform is copied into a block first.
Argument Planner::spread(const Node& store) {
  Node copy;
  copy.in.op = Op::Copy;
  copy.in.type = store.in.type;
  copy.arg[0] = store.arg[0];
  copy.args = 1;
  nodes_.push_back(copy);
  return {false, static_cast<int>(nodes_.size()) - 1};
}

// Note the table of a Lookup. Other operations do not use the table's port, and all lookups use one length.
bool Planner::take_table(size_t i) {
  const Instr& in = p_.code[i];
  if (!(in.uniform & kUniformB)) return check_.fail(i, "expected a uniform as length");
  for (const Instr& other : p_.code)
    if ((other.op == Op::Load || other.op == Op::Coordinate) && other.port == in.port)
      return check_.fail(i, "the port is a table and an image");
  for (const Table& t : tables_)
    if (t.port == in.port) return t.length == in.b || check_.fail(i, "a table of two lengths");
  tables_.push_back({in.port, in.b});
  return true;
}

bool Planner::rename() {
  if (!check_.header()) return false;
  std::vector<int> value(65536, kNone);       // register -> node
  std::map<std::pair<int, int>, int> loaded;  // (port, channel) -> node
  for (size_t i = 0; i < p_.code.size(); ++i) {
    if (!check_.fields(i)) return false;
    if (p_.code[i].op == Op::Lookup && !take_table(i)) return false;
    Node node;
    node.in = p_.code[i];
    node.args = arity(node.in.op);
    const uint16_t index[3] = {node.in.a, node.in.b, node.in.c};
    for (int k = 0; k < node.args; ++k) {
      Argument& a = node.arg[k];
      a.uniform = node.in.uniform >> k & 1;
      if (a.uniform) {
        if (index[k] >= p_.uniforms) return check_.fail(i, "no such uniform");
        a.index = index[k];
        continue;
      }
      a.index = value[index[k]];
      if (a.index == kNone) return check_.fail(i, "operand is not defined yet");
      if (result_type(nodes_[a.index].in) != operand_type(node.in, k)) return check_.fail(i, "operand of another type");
    }
    if (node.in.op == Op::Store && node.arg[0].uniform) node.arg[0] = spread(node);
    const int self = static_cast<int>(nodes_.size());
    nodes_.push_back(node);
    if (node.in.op == Op::Store) continue;
    int result = self;
    if (fetches(node.in.op)) result = loaded.try_emplace({node.in.port, node.in.channel}, self).first->second;
    else if (node.in.op == Op::Copy && !node.arg[0].uniform) result = node.arg[0].index;
    value[node.in.dst] = result;
  }
  return true;
}

void Planner::mark(int value) {
  Node& n = nodes_[value];
  ++n.uses;
  if (n.live) return;
  n.live = true;
  for (int k = 0; k < n.args; ++k)
    if (!n.arg[k].uniform) mark(n.arg[k].index);
}

// Load small integers as floats if they are only used as floats.
void Planner::fuse_loads() {
  std::vector<char> other(nodes_.size(), 0);
  for (const Node& n : nodes_)
    if (n.live && !converted(n))
      for (int k = 0; k < n.args; ++k)
        if (!n.arg[k].uniform) other[n.arg[k].index] = 1;
  std::vector<int> forward(nodes_.size());
  for (size_t i = 0; i < nodes_.size(); ++i) {
    Node& n = nodes_[i];
    forward[i] = static_cast<int>(i);
    for (int k = 0; k < n.args; ++k)
      if (!n.arg[k].uniform) n.arg[k].index = forward[n.arg[k].index];
    if (!n.live || !converted(n)) continue;
    Node& from = nodes_[n.arg[0].index];
    if (from.in.op != Op::Load || other[n.arg[0].index] || !plain_kernels().load[at(from.in.dtype)][at(Type::F32)])
      continue;
    from.in.type = Type::F32;
    forward[i] = n.arg[0].index;
  }
}

// Keep floats that are rounded to small integers and used as floats in float registers.
void Planner::fuse_roundings() {
  for (Node& n : nodes_) {
    if (!n.live || !converted(n)) continue;
    const Node& cast = nodes_[n.arg[0].index];
    const DType d = cast.in.dtype;
    const bool small = d == DType::U8 || d == DType::I8 || d == DType::U16 || d == DType::I16;
    if (cast.in.op != Op::Cast || cast.in.type != Type::I32 || cast.in.from != Type::F32 || !small) continue;
    n.in.op = Op::Cast;
    n.in.from = Type::F32;
    n.in.dtype = d;
    n.arg[0] = cast.arg[0];
  }
}

// Fuse casts whose only use is a store into that store.
void Planner::fuse_stores() {
  for (Node& n : nodes_) {
    if (n.in.op != Op::Store) continue;
    const Node& cast = nodes_[n.arg[0].index];
    if (cast.in.op != Op::Cast || cast.in.from != Type::F32 || cast.in.dtype != n.in.dtype) continue;
    if (cast.arg[0].uniform || !plain_kernels().store[at(n.in.dtype)][at(Type::F32)]) continue;
    n.in.type = Type::F32;
    n.arg[0] = cast.arg[0];
  }
}

// Fuse two F32 operations if the second is the only user of the first's result.
void Planner::fuse_pairs() {
  const auto fit = [](const Node& n) {
    return n.live && n.in.type == Type::F32 && paired(n.in.op) >= 0 && n.then == Op::kCount;
  };
  for (Node& second : nodes_) {
    const bool rounds = second.live && is_whole(second.in);
    if ((!rounds && !fit(second)) || second.arg[0].uniform) continue;
    Node& first = nodes_[second.arg[0].index];
    if (!fit(first) || first.uses != 1) continue;
    second.arg[2] = second.arg[1];
    second.arg[1] = first.arg[1];
    second.arg[0] = first.arg[0];
    second.args = rounds ? 2 : 3;
    second.then = second.in.op;
    second.in.op = first.in.op;
    first.live = false;
  }
}

// Fuse a rounding, or a pair that ends with one, and the pair that is the only user of its result.
void Planner::fuse_rounded_pairs() {
  for (Node& pair : nodes_) {
    if (!pair.live || paired(pair.in.op) < 0 || paired(pair.then) < 0 || pair.arg[0].uniform) continue;
    Node& rounding = nodes_[pair.arg[0].index];
    const bool alone = is_whole(rounding.in) && rounding.then == Op::kCount;
    if (!rounding.live || rounding.uses != 1 || !(alone || rounding.then == Op::Cast)) continue;
    Node chain = rounding;
    chain.after[0] = pair.in.op;
    chain.after[1] = pair.then;
    chain.arg[chain.args++] = pair.arg[1];
    chain.arg[chain.args++] = pair.arg[2];
    chain.uses = pair.uses;
    rounding.live = false;
    pair = chain;
  }
}

void Planner::count_uses() {
  for (Node& n : nodes_) {
    n.uses = 0;
    n.live = false;
  }
  for (size_t i = 0; i < nodes_.size(); ++i)
    if (nodes_[i].in.op == Op::Store) mark(static_cast<int>(i));
}

void Planner::fuse() {
  count_uses();
  fuse_loads();
  count_uses();
  fuse_stores();
  count_uses();
  fuse_roundings();
  count_uses();
  find_mixes();
  fuse_pairs();
  fuse_rounded_pairs();
}

// Split accesses into groups of interleaved channels and single channels.
void Planner::group(const std::vector<int>& nodes, std::vector<std::vector<int>>& out) const {
  std::map<int, std::vector<int>> by_port;
  for (const int i : nodes) by_port[nodes_[i].in.port].push_back(i);
  for (auto& [port, members] : by_port) {
    std::stable_sort(members.begin(), members.end(),
                     [&](int x, int y) { return nodes_[x].in.channel < nodes_[y].in.channel; });
    const int n = static_cast<int>(members.size());
    bool together = n >= 2 && n <= kMaxGroup;
    for (int k = 0; k < n && together; ++k) {
      const Node& m = nodes_[members[k]];
      together = m.in.channel == k && m.in.type == nodes_[members[0]].in.type;
    }
    if (together) out.push_back(members);
    else
      for (const int i : members) out.push_back({i});
  }
}

// Divisions are left out, because a run reports their faults.
void Planner::find_constants() {
  for (Node& n : nodes_) {
    const Op op = n.in.op;
    if (!n.live || fetches(op) || op == Op::Store || op == Op::Lookup || (op >= Op::IDiv && op <= Op::UMod)) continue;
    n.constant = true;
    for (int k = 0; k < n.args; ++k) n.constant &= n.arg[k].uniform || nodes_[n.arg[k].index].constant;
  }
}

void Planner::order_accesses() {
  std::map<std::pair<int, int>, int> last;  // the last of several stores to one location wins
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const Node& n = nodes_[i];
    if (!n.live) continue;
    if (fetches(n.in.op)) loads_.push_back(static_cast<int>(i));
    else if (n.in.op == Op::Store) last[{n.in.port, n.in.channel}] = static_cast<int>(i);
    else computes_.push_back(static_cast<int>(i));
  }
  for (const auto& [where, i] : last) stores_.push_back(i);
  std::stable_partition(computes_.begin(), computes_.end(), [&](int i) { return nodes_[i].constant; });
  group(loads_, load_groups_);
  group(stores_, store_groups_);
}

// Find which loaded bytes each value depends on: none, one, or more than one.
void Planner::trace_sources() {
  source_.assign(nodes_.size(), kNone);
  for (const int i : loads_) {
    if (nodes_[i].in.op == Op::Coordinate) {
      source_[i] = -2;  // not a byte
      continue;
    }
    source_[i] = static_cast<int>(plan_.sources.size());
    plan_.sources.push_back({nodes_[i].in.port, nodes_[i].in.channel, nodes_[i].in.dtype});
  }
  plan_.moves = plan_.casts = !stores_.empty();
  for (const int i : stores_) {
    const Node& stored = nodes_[nodes_[i].arg[0].index];
    plan_.casts &= stored.in.op == Op::Load;
    plan_.moves &= stored.in.op == Op::Load && stored.in.dtype == nodes_[i].in.dtype;
  }
  const auto merge = [&](int i) {
    const Node& n = nodes_[i];
    for (int k = 0; k < n.args; ++k) {
      if (n.arg[k].uniform) continue;
      const int s = source_[n.arg[k].index];
      if (s != kNone) source_[i] = source_[i] == kNone || source_[i] == s ? s : -2;
    }
  };
  for (const int i : computes_) merge(i);
  plan_.tabular = !stores_.empty();
  for (const int i : stores_) {
    merge(i);
    plan_.tabular &= source_[i] >= 0 && size_of(plan_.sources[source_[i]].dtype) == 1;
  }
}

// Match a store of ((x0 * w0 [+ u]) + x1 * w1) + x2 * w2 [+ u], with or without floor, from the last addition on.
bool Planner::find_mix(const Node& store, MixRecipe& recipe, Instr (&loads)[kMixed]) const {
  const auto is_float = [](const Node& n, Op op) { return n.in.op == op && n.in.type == Type::F32; };
  const auto product = [&](const Node& n, int k) {
    if (!is_float(n, Op::Mul) || n.arg[0].uniform || !n.arg[1].uniform) return false;
    loads[k] = nodes_[n.arg[0].index].in;
    recipe.weight[k] = n.arg[1].index;
    return loads[k].op == Op::Load && loads[k].dtype == DType::U8 && loads[k].type == Type::F32;
  };
  if (store.in.dtype != DType::U8 || store.in.type != Type::F32) return false;
  const Node* n = &nodes_[store.arg[0].index];
  if (is_float(*n, Op::Floor) && !n->arg[0].uniform) {
    recipe.floors = true;
    n = &nodes_[n->arg[0].index];
  }
  int terms = kMixed;  // whose products are to be found
  for (; is_float(*n, Op::Add) && !n->arg[0].uniform; n = &nodes_[n->arg[0].index]) {
    const Argument& added = n->arg[1];
    if (!added.uniform) {
      if (terms == 1 || recipe.before != kNoUniform || !product(nodes_[added.index], --terms)) return false;
      continue;
    }
    int& place = terms == 1 ? recipe.before : recipe.after;
    if ((terms != 1 && terms != kMixed) || place != kNoUniform) return false;
    place = added.index;
  }
  return terms == 1 && product(*n, 0);
}

void Planner::find_mixes() {
  Instr loads[kMixed], first[kMixed];
  std::vector<MixRecipe> mixes;
  uint8_t port = 0;
  for (const Node& n : nodes_) {
    if (n.in.op != Op::Store) continue;
    MixRecipe recipe;
    if (mixes.empty()) port = n.in.port;
    if (n.in.port != port || n.in.channel != mixes.size() || !find_mix(n, recipe, loads)) return;
    if (mixes.empty()) std::copy_n(loads, kMixed, first);
    for (int k = 0; k < kMixed; ++k)
      if (loads[k].port != first[0].port || loads[k].channel != first[k].channel) return;
    mixes.push_back(recipe);
  }
  const bool floors = std::any_of(mixes.begin(), mixes.end(), [](const MixRecipe& m) { return m.floors; });
  if (mixes.size() != 1 && (mixes.size() != kMixed || floors)) return;
  plan_.mixes = std::move(mixes);
  plan_.mixed_port = first[0].port;
  for (int k = 0; k < kMixed; ++k) plan_.mixed_channel[k] = first[k].channel;
}

Operand Planner::operand(const Argument& a, Type type) {
  if (!a.uniform) return {false, slot_[a.index].index, slot_[a.index].type};
  auto& s = plan_.splats;
  const auto found =
      std::find_if(s.begin(), s.end(), [&](const Splat& x) { return x.uniform == a.index && x.type == type; });
  const auto index = static_cast<int16_t>(found - s.begin());
  if (found == s.end()) s.push_back({static_cast<uint16_t>(a.index), type});
  return {true, index, type};
}

Access Planner::access(const std::vector<int>& members) {
  const Instr& first = nodes_[members[0]].in;
  Access a;
  a.port = first.port;
  a.first = first.channel;
  a.count = static_cast<uint8_t>(members.size());
  a.dtype = first.dtype;
  a.type = first.type;
  a.coordinate = first.op == Op::Coordinate;
  for (size_t k = 0; k < members.size(); ++k) {
    const Node& n = nodes_[members[k]];
    a.reg[k] = fetches(n.in.op) ? Operand{false, slot_[members[k]].index, n.in.type} : operand(n.arg[0], n.in.type);
    if (n.in.op != Op::Store) continue;
    a.source[k] = static_cast<int16_t>(std::max(source_[members[k]], kNone));
    const Node& made_by = nodes_[n.arg[0].index];
    if (made_by.uses == 1 && !made_by.constant) a.producer[k] = static_cast<int16_t>(made_by.compute);
  }
  return a;
}

// Linear scan: loads define their blocks first, and stores read theirs last. An instruction may reuse the block of an
// operand that it reads for the last time, since every kernel can work lane by lane in place; but only blocks of the
// same lane size.
void Planner::allocate() {
  std::vector<int> last(nodes_.size(), kNone);
  const int end = static_cast<int>(nodes_.size());
  for (const int i : computes_)
    for (int k = 0; k < nodes_[i].args; ++k)
      if (!nodes_[i].arg[k].uniform) last[nodes_[i].arg[k].index] = i;
  for (const int i : stores_) last[nodes_[i].arg[0].index] = end;
  slot_.resize(nodes_.size());
  std::vector<int> free4, free8;
  const auto take = [&](int i) {
    const Type type = result_type(nodes_[i].in);
    const bool wide = register_size(type) == 8;
    auto& pool = wide ? free8 : free4;
    int& count = wide ? plan_.slots8 : plan_.slots4;
    int index = count;
    if (pool.empty()) ++count;
    else {
      index = pool.back();
      pool.pop_back();
    }
    slot_[i] = {static_cast<int16_t>(index), type};
  };
  const auto release = [&](int value, int by) {
    if (last[value] != by) return;
    last[value] = end + 1;  // count the operand once even if it occurs twice
    (register_size(slot_[value].type) == 8 ? free8 : free4).push_back(slot_[value].index);
  };
  for (const int i : computes_)
    if (nodes_[i].constant) take(i);
  for (const int i : loads_) take(i);
  for (const int i : computes_) {
    const Node& n = nodes_[i];
    for (int k = 0; k < n.args; ++k)
      if (!n.arg[k].uniform && !nodes_[n.arg[k].index].constant) release(n.arg[k].index, i);
    if (n.constant) ++plan_.constants;
    else take(i);
    nodes_[i].compute = static_cast<int>(plan_.computes.size());
    Compute c{n.in.op,  n.in.type, n.in.from, n.in.dtype, slot_[i], n.args, {}, n.then, {n.after[0], n.after[1]},
              n.in.port};
    for (int k = 0; k < n.args; ++k) c.arg[k] = operand(n.arg[k], operand_type(n.in, k));
    plan_.computes.push_back(c);
  }
}

std::shared_ptr<const Plan> Planner::finish() {
  find_constants();
  order_accesses();
  trace_sources();
  allocate();
  for (const auto& g : load_groups_) plan_.loads.push_back(access(g));
  for (const auto& g : store_groups_) plan_.stores.push_back(access(g));
  plan_.load_lanes = static_cast<int>(loads_.size());
  plan_.store_lanes = static_cast<int>(stores_.size());
  for (const auto* list : {&loads_, &computes_, &stores_})
    for (const int i : *list) {
      const Node& n = nodes_[i];
      plan_.cost += cost_of(n.in) + (n.then != Op::kCount ? 0.05f : 0.f) + (n.after[0] != Op::kCount ? 0.1f : 0.f);
    }
  return std::make_shared<const Plan>(std::move(plan_));
}

}  // namespace

bool validate(Program& program, std::string* why) {
  Planner planner(program, why);
  if (!planner.rename()) return false;
  planner.fuse();
  program.tables = planner.tables();
  program.plan = planner.finish();
  return true;
}

}  // namespace stoker::pixel
