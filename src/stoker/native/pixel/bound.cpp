// SPDX-License-Identifier: Apache-2.0
// Binding of a planned program to views: kernels for its instructions, blocks for its values, and lookup tables if they
// pay off.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>

#include "base/whole.hpp"
#include "pixel/kernels.hpp"
#include "pixel/move.hpp"
#include "pixel/plan.hpp"

namespace stoker::pixel {

namespace {

std::atomic<bool> tables_on{true};

constexpr int kMaxLanes = 1024;
constexpr int kTableLanes = 2048;    // table lookups need no register blocks, only staging
constexpr int kCopyLanes = 1 << 16;  // copies need no memory of their own
constexpr int kTableBytes = 256 * 8;
// For register blocks; the rest of a 32 KiB L1 cache is for memory that is loaded and stored.
constexpr int kRegisterBudget = 20 << 10;

constexpr size_t align64(size_t n) { return (n + 63) & ~size_t{63}; }

void range_of(DType d, double& low, double& high) {
  const auto set = [&]<class T>(T) {
    low = static_cast<double>(std::numeric_limits<T>::min());
    high = static_cast<double>(std::numeric_limits<T>::max());
  };
  switch (d) {
    case DType::U8: return set(uint8_t{});
    case DType::I8: return set(int8_t{});
    case DType::U16: return set(uint16_t{});
    case DType::I16: return set(int16_t{});
    default: return;  // these casts have a fixed range
  }
}

template <class T>
void fill_splat(uint8_t* dst, T value) {
  std::fill_n(reinterpret_cast<T*>(dst), kSplatBytes / sizeof(T), value);
}

void fill_splat(uint8_t* dst, Type type, double value) {
  // Unsigned 64-bit constants may be above the signed range; all other constants are exact.
  switch (type) {
    case Type::I32: return fill_splat(dst, static_cast<int32_t>(either_int64(value)));
    case Type::I64: return fill_splat(dst, either_int64(value));
    case Type::F32: return fill_splat(dst, static_cast<float>(value));
    default: return fill_splat(dst, value);
  }
}

ComputeFn kernel_of(const Kernels& k, const Compute& c) {
  if (c.after[0] != Op::kCount)
    return k.whole_pair[c.op == Op::Cast ? kUnpaired : paired(c.op)][paired(c.after[0])][paired(c.after[1])];
  if (c.then == Op::Cast) return k.pair_whole[paired(c.op)];
  if (c.then != Op::kCount) return k.pair[paired(c.op)][paired(c.then)];
  switch (c.op) {
    case Op::Cvt: return k.cvt[at(c.from)][at(c.type)];
    case Op::UCvt: return k.ucvt[at(c.type)];
    case Op::Cast: return c.type == type_of(c.dtype) ? k.cast[at(c.from)][at(c.dtype)] : k.whole;
    case Op::UCast: return k.ucast[at(c.dtype)];
    case Op::Wrap: return k.wrap[at(c.from)][at(c.dtype)];
    case Op::Lookup: return k.table[at(c.dtype)];
    default: return k.op[at(c.op)][at(c.type)];
  }
}

}  // namespace

bool spread_tables(const Program& program, const double* uniforms, const View& shape, View* inputs) {
  for (const Table& t : program.tables) {
    View& v = inputs[t.port];
    const auto length = static_cast<int32_t>(either_int64(uniforms[t.length]));
    if (v.rank != 1 || !v.contiguous() || length < 0 || length > v.shape[0]) return false;
    v.rank = shape.rank;
    std::copy_n(shape.shape, shape.rank, v.shape);
    std::fill_n(v.stride, shape.rank, 0);
  }
  return true;
}

void set_tables(bool on) { tables_on.store(on, std::memory_order_relaxed); }

// Offsets of the binding's parts in the scratch memory.
struct Bound::ScratchLayout {
  size_t micros, loads, stores, splats, slots4, slots8, stage, source_stage, tables, ramp, mixes, bytes;
  uint8_t* base = nullptr;
  int lanes = 0;

  ScratchLayout(const Plan& plan, bool table) {
    lanes = kMaxLanes;
    while (lanes > 128 && lanes * (4 * plan.slots4 + 8 * plan.slots8) > kRegisterBudget) lanes /= 2;
    const int moved = table ? kTableLanes : lanes;
    size_t end = 0;
    const auto place = [&](size_t size) {
      const size_t begin = end;
      end += align64(size);
      return begin;
    };
    // Groups may be split later, so every channel gets a mover.
    micros = place(plan.computes.size() * sizeof(Micro));
    loads = place(static_cast<size_t>(plan.load_lanes) * sizeof(Mover));
    stores = place(static_cast<size_t>(plan.store_lanes) * sizeof(Mover));
    splats = place(plan.splats.size() * kSplatBytes);
    slots4 = place(static_cast<size_t>(plan.slots4) * 4 * lanes);
    slots8 = place(static_cast<size_t>(plan.slots8) * 8 * lanes);
    // One plane for each channel of a group and one to reverse it. The space is reserved even if tables are used, since
    // tables may be given up later.
    const int mixed = plan.mixes.empty() ? 0 : 2 * kMixed * kTableLanes;
    stage = place(static_cast<size_t>(std::max({8 * moved, 8 * lanes * (kMaxGroup + 1), mixed})));
    source_stage = place(table ? moved : 0);
    tables = place(table ? static_cast<size_t>(plan.store_lanes) * kTableBytes : 0);
    ramp = place(table ? 256 : 0);
    mixes = place(plan.mixes.size() * sizeof(Mix));
    bytes = end;
  }
  uint8_t* slot(const Operand& o) const {
    if (o.uniform) return base + splats + static_cast<size_t>(o.index) * kSplatBytes;
    return register_size(o.type) == 4 ? base + slots4 + static_cast<size_t>(o.index) * 4 * lanes
                                      : base + slots8 + static_cast<size_t>(o.index) * 8 * lanes;
  }
};

void Bound::resolve_computes(const ScratchLayout& layout) {
  const Kernels& k = kernels();
  compute_count_ = 0;
  for (const Compute& c : plan_->computes) {
    Micro& m = computes_[compute_count_++];
    m = Micro{};
    m.run = kernel_of(k, c);
    m.dst = layout.slot({false, c.dst.index, c.dst.type});
    m.fault = &fault_;
    for (int i = 0; i < c.args; ++i) {
      m.arg[i] = layout.slot(c.arg[i]);
      m.step[i] = !c.arg[i].uniform;
    }
    if (c.op == Op::Cast || c.then == Op::Cast) range_of(c.dtype, m.low, m.high);
    if (c.op == Op::Lookup) m.table = base_[c.port];
  }
  for (int i = 0; i < plan_->constants; ++i) computes_[i].run(computes_[i], layout.lanes);
}

PortStrides Bound::place(int port) const { return {port, axes_[axes_count_ - 1].stride[port], channel_stride_[port]}; }

void Bound::resolve_access(const ScratchLayout& layout, const Access& a, bool load, Mover* out, int& count) const {
  const Kernels& k = kernels();
  const PortStrides where = place(a.port + (load ? 0 : inputs_));
  const bool together = interleaves(a, load, where);
  for (int c = 0; c < (together ? 1 : a.count); ++c) {
    Mover& m = out[count++];
    m = together ? bind_group(k, a, load, where) : bind_single(k, a, c, load, where);
    for (int r = 0; r < m.count; ++r) m.reg[r] = layout.slot(a.reg[c + r]);
    m.stage = layout.base + layout.stage;
    m.plane = static_cast<ptrdiff_t>(8) * layout.lanes;
  }
}

void Bound::resolve_direct(const ScratchLayout& layout) {
  resolve_computes(layout);
  load_count_ = store_count_ = 0;
  for (const Access& a : plan_->loads) resolve_access(layout, a, true, loads_, load_count_);
  for (const Access& a : plan_->stores) resolve_access(layout, a, false, stores_, store_count_);
}

// Bind the program with the 256 values of a byte as every input and the tables as its outputs.
void Bound::resolve_ramp(const ScratchLayout& layout) {
  const Kernels& k = kernels();
  resolve_computes(layout);
  load_count_ = store_count_ = 0;
  const auto bind = [&](const Access& a, bool load, Mover* out, int& count) {
    for (int c = 0; c < a.count; ++c) {
      Mover& m = out[count];
      m = bind_single(k, a, c, load, {a.port + (load ? 0 : inputs_), size_of(a.dtype), 0});
      m.reg[0] = layout.slot(a.reg[c]);
      if (!load) m.offset = static_cast<int64_t>(count) * kTableBytes;
      ++count;
    }
  };
  for (const Access& a : plan_->loads) bind(a, true, loads_, load_count_);
  for (const Access& a : plan_->stores) bind(a, false, stores_, store_count_);
}

// Fill the tables by running the program's own code over all 256 bytes. Return false if this divides by zero: the image
// may not contain the byte that does, so the program must then run directly.
bool Bound::fill_tables(const ScratchLayout& layout) {
  resolve_ramp(layout);
  uint8_t* ramp = layout.base + layout.ramp;
  for (int i = 0; i < 256; ++i) ramp[i] = static_cast<uint8_t>(i);
  Axis axis;
  axis.extent = 256;
  uint8_t* base[2 * kMaxPorts];
  for (int p = 0; p < ports_; ++p) {
    base[p] = p < inputs_ ? ramp : layout.base + layout.tables;
    axis.stride[p] = 1;
  }
  for (const Access& a : plan_->stores) axis.stride[inputs_ + a.port] = size_of(a.dtype);
  block_ = layout.lanes;
  fault_ = 0;
  walk(base, &axis, 1);
  return fault_ == 0;
}

void Bound::resolve_tables(const ScratchLayout& layout) {
  const Kernels& k = kernels();
  load_count_ = compute_count_ = store_count_ = 0;
  int index = 0;
  for (const Access& a : plan_->stores) {
    const PortStrides where = place(inputs_ + a.port);
    const int first = store_count_;
    bool same = a.count > 1 && size_of(a.dtype) == 1 && interleaves(a, false, where);
    for (int c = 0; c < a.count; ++c, ++index) {
      const Source& s = plan_->sources[a.source[c]];
      const PortStrides from = place(s.port);
      Mover& m = stores_[store_count_++];
      m = bind_lookup(k, a, c, s, where, from);
      m.stage = layout.base + layout.stage;
      m.source_stage = layout.base + layout.source_stage;
      m.table = layout.base + layout.tables + static_cast<size_t>(index) * kTableBytes;
      same = same && s.channel == c && m.source_port == stores_[first].source_port && from.channel_stride == 1 &&
             from.lane_stride == a.count && !std::memcmp(m.table, stores_[first].table, 256);
    }
    if (!same) continue;
    store_count_ = first + 1;
    widen_lookup(stores_[first]);
  }
}

// Bind the program as a copy or as a conversion. Return false if it is none, or its memory has another layout.
bool Bound::resolve_copy() {
  if (!plan_->casts || plan_->stores.size() != 1) return false;
  const Access& store = plan_->stores[0];
  const PortStrides to = place(inputs_ + store.port), from = place(plan_->sources[store.source[0]].port);
  if (!(plan_->moves ? bind_copy(*plan_, store, to, from, &stores_[0])
                     : bind_cast(kernels(), *plan_, store, to, from, &stores_[0])))
    return false;
  load_count_ = compute_count_ = 0;
  store_count_ = 1;
  return true;
}

// Bind the program as mixes of bytes. Return false if it is no such program, or its memory has another layout.
bool Bound::resolve_mixes(const ScratchLayout& layout, const double* uniforms) {
  if (plan_->mixes.empty() || !tables_on.load(std::memory_order_relaxed)) return false;
  const Access& store = plan_->stores[0];
  const auto number = [&](int uniform) { return uniform == kNoUniform ? 0.0f : static_cast<float>(uniforms[uniform]); };
  if (!bind_mix(kernels(), *plan_, place(inputs_ + store.port), place(plan_->mixed_port), &stores_[0])) return false;
  auto* mixes = reinterpret_cast<Mix*>(layout.base + layout.mixes);
  for (size_t c = 0; c < plan_->mixes.size(); ++c) {
    const MixRecipe& recipe = plan_->mixes[c];
    for (int k = 0; k < kMixed; ++k) mixes[c].weight[k] = number(recipe.weight[k]);
    mixes[c].before = number(recipe.before);
    mixes[c].after = number(recipe.after);
    mixes[c].floors = recipe.floors;
  }
  stores_[0].mixes = mixes;
  stores_[0].stage = layout.base + layout.stage;
  stores_[0].plane = kTableLanes;
  block_ = mix_without_planes(stores_[0]) ? kCopyLanes : kTableLanes;
  load_count_ = compute_count_ = 0;
  store_count_ = 1;
  return true;
}

// Lookups run one after the other, while direct code loads everything before it stores anything. In place, the results
// are equal only if no lookup reads what another one has written.
bool Bound::tables_are_safe() const {
  if (plan_->store_lanes == 1) return true;
  bool in_place = false;
  for (int i = 0; i < inputs_; ++i)
    for (int o = inputs_; o < ports_; ++o) in_place |= base_[i] == base_[o];
  if (!in_place) return true;
  if (inputs_ != 1 || ports_ != 2) return false;
  for (const Access& a : plan_->stores)
    for (int c = 0; c < a.count; ++c)
      if (plan_->sources[a.source[c]].channel != a.first + c) return false;
  return true;
}

// Estimate the cycles per lane of all lookups from their strides; compare Plan::cost.
float Bound::table_cost() const {
  const Axis& axis = axes_[axes_count_ - 1];
  float cost = 0;
  for (const Access& a : plan_->stores)
    for (int c = 0; c < a.count; ++c) {
      const int64_t element = size_of(a.dtype);
      cost += element == 1 ? 0.3f : 1.1f;
      if (axis.stride[plan_->sources[a.source[c]].port] != 1) cost += 1.0f;
      if (axis.stride[inputs_ + a.port] != element) cost += 1.0f;
    }
  return cost;
}

void Bound::bind(const Program& program, const double* uniforms, const View* inputs, const View* outputs,
                 Scratch& scratch, bool rows) {
  plan_ = program.plan.get();
  inputs_ = program.inputs;
  ports_ = program.inputs + program.outputs;
  channelled_ = program.channels > 0;
  mixed_ = false;
  fault_ = 0;
  bind_axes(inputs, outputs, rows);
  // A table pays off if it saves more than the cost of running the program 256 times.
  const float count = static_cast<float>(lanes());
  table_ = plan_->tabular && tables_on.load(std::memory_order_relaxed) &&
           count * (plan_->cost - table_cost()) > 256.0f * plan_->cost + 500.0f && tables_are_safe();
  ScratchLayout layout(*plan_, table_);
  layout.base = scratch.get(layout.bytes);
  computes_ = reinterpret_cast<Micro*>(layout.base + layout.micros);
  loads_ = reinterpret_cast<Mover*>(layout.base + layout.loads);
  stores_ = reinterpret_cast<Mover*>(layout.base + layout.stores);
  uint8_t* splat = layout.base + layout.splats;
  for (const Splat& s : plan_->splats) {
    fill_splat(splat, s.type, uniforms[s.uniform]);
    splat += kSplatBytes;
  }
  table_ = table_ && fill_tables(layout);
  fault_ = 0;
  if (table_) {
    resolve_tables(layout);
    block_ = kTableLanes;
  } else if (resolve_copy()) {
    block_ = kCopyLanes;
  } else if (mixed_ = resolve_mixes(layout, uniforms); !mixed_) {
    resolve_direct(layout);
    block_ = layout.lanes;
  }
}

void Bound::prepare(const Program& program, const double* uniforms, const View* inputs, const View* outputs,
                    Scratch& scratch) {
  bind(program, uniforms, inputs, outputs, scratch, false);
}

void Bound::prepare_rows(const Program& program, const double* uniforms, const View* inputs, const View* outputs,
                         Scratch& scratch) {
  bind(program, uniforms, inputs, outputs, scratch, true);
}

}  // namespace stoker::pixel
