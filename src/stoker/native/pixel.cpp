// SPDX-License-Identifier: Apache-2.0
// Binding a planned program to views, and the walk over blocks of lanes.
#include "pixel.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "pixel_kernels.hpp"
#include "pixel_move.hpp"
#include "pixel_plan.hpp"

namespace stoker::pixel {

namespace {

std::atomic<bool> tables_on{true};

constexpr int kMaxRuns = 32;          // stretches of memory that make up one block
constexpr int kMaxLanes = 1024;
constexpr int kTableLanes = 2048;     // table lookups hold no registers, only staging
constexpr int kTableBytes = 256 * 8;
constexpr int kRegisterBudget = 20 << 10;  // bytes of blocks; the rest of a 32 KiB L1 is for memory being moved

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
    default: return;  // these casts know their range
  }
}

template <class T>
void fill_splat(uint8_t* dst, T value) {
  std::fill_n(reinterpret_cast<T*>(dst), kSplatBytes / sizeof(T), value);
}

void fill_splat(uint8_t* dst, Type type, double value) {
  // Unsigned 64-bit constants lie above the signed range; the rest is exact by contract.
  const auto integer = [](double v) {
    return v >= 9223372036854775808.0 ? static_cast<int64_t>(static_cast<uint64_t>(v)) : static_cast<int64_t>(v);
  };
  switch (type) {
    case Type::I32: return fill_splat(dst, static_cast<int32_t>(integer(value)));
    case Type::I64: return fill_splat(dst, integer(value));
    case Type::F32: return fill_splat(dst, static_cast<float>(value));
    default: return fill_splat(dst, value);
  }
}

ComputeFn kernel_of(const Kernels& k, const Compute& c) {
  if (c.then != Op::kCount) return k.pair[paired(c.op)][paired(c.then)];
  switch (c.op) {
    case Op::Cvt: return k.cvt[at(c.from)][at(c.type)];
    case Op::UCvt: return k.ucvt[at(c.type)];
    case Op::Cast: return k.cast[at(c.from)][at(c.dtype)];
    case Op::UCast: return k.ucast[at(c.dtype)];
    case Op::Wrap: return k.wrap[at(c.from)][at(c.dtype)];
    default: return k.op[at(c.op)][at(c.type)];
  }
}

// A preference among axes for the lanes: estimated cycles per lane.
double lane_cost(const Axis& axis, const int64_t* element, int ports) {
  double cost = 30.0 / static_cast<double>(axis.extent);
  for (int p = 0; p < ports; ++p) {
    const int64_t s = axis.stride[p] < 0 ? -axis.stride[p] : axis.stride[p];
    cost += s == element[p] ? 0.15 : s == 0 ? 0.1 : s <= 4 * element[p] ? 0.6 : 1.5;
  }
  return cost;
}

bool mergeable(const Axis& outer, const Axis& inner, int ports) {
  for (int p = 0; p < ports; ++p)
    if (outer.stride[p] != inner.stride[p] * inner.extent) return false;
  return true;
}

}  // namespace

int merge_axes(Axis* axes, int count, int ports, int lead) {
  const auto magnitude = [&](const Axis& a) { return std::abs(a.stride[lead]); };
  std::stable_sort(axes, axes + count, [&](const Axis& x, const Axis& y) { return magnitude(x) > magnitude(y); });
  int kept = 0;
  for (int i = 0; i < count; ++i) {
    if (kept > 0 && mergeable(axes[kept - 1], axes[i], ports)) {
      const int64_t extent = axes[kept - 1].extent * axes[i].extent;
      axes[kept - 1] = axes[i];
      axes[kept - 1].extent = extent;
    } else {
      axes[kept++] = axes[i];
    }
  }
  return kept;
}

void set_tables(bool on) { tables_on.store(on, std::memory_order_relaxed); }

// The pieces of memory that one block of lanes consists of.
struct Bound::Cursor {
  int lanes = 0, runs = 0;
  int lane[kMaxRuns], n[kMaxRuns];
  uint8_t* at[kMaxRuns][2 * kMaxPorts];
};

// Where things lie in the scratch.
struct Bound::Layout {
  size_t micros, loads, stores, splats, slots4, slots8, stage, source_stage, tables, ramp, bytes;
  uint8_t* base = nullptr;
  int lanes = 0;

  Layout(const Plan& plan, bool table) {
    lanes = kMaxLanes;
    while (lanes > 128 && lanes * (4 * plan.slots4 + 8 * plan.slots8) > kRegisterBudget) lanes /= 2;
    const int moved = table ? kTableLanes : lanes;
    size_t end = 0;
    const auto place = [&](size_t size) {
      const size_t begin = end;
      end += align64(size);
      return begin;
    };
    // Groups may be taken apart, so that every channel needs a mover.
    micros = place(plan.computes.size() * sizeof(Micro));
    loads = place(plan.sources.size() * sizeof(Mover));
    stores = place(static_cast<size_t>(plan.store_lanes) * sizeof(Mover));
    splats = place(plan.splats.size() * kSplatBytes);
    slots4 = place(static_cast<size_t>(plan.slots4) * 4 * lanes);
    slots8 = place(static_cast<size_t>(plan.slots8) * 8 * lanes);
    // One plane for each channel of a group and one to turn it around; also for tables, which may be given up.
    stage = place(static_cast<size_t>(std::max(8 * moved, 8 * lanes * (kMaxGroup + 1))));
    source_stage = place(table ? moved : 0);
    tables = place(table ? static_cast<size_t>(plan.store_lanes) * kTableBytes : 0);
    ramp = place(table ? 256 : 0);
    bytes = end;
  }
  uint8_t* slot(const Operand& o) const {
    if (o.uniform) return base + splats + static_cast<size_t>(o.index) * kSplatBytes;
    return register_size(o.type) == 4 ? base + slots4 + static_cast<size_t>(o.index) * 4 * lanes
                                      : base + slots8 + static_cast<size_t>(o.index) * 8 * lanes;
  }
};

// Every axis runs so that the first output that moves along it moves forward (without one, the first input): what is
// read is mostly narrower than what is written, hence cheaper to turn around.
void Bound::turn(Axis& axis) {
  int lead = inputs_;
  while (lead < ports_ && axis.stride[lead] == 0) ++lead;
  if (lead == ports_)
    for (lead = 0; lead < inputs_ && axis.stride[lead] == 0;) ++lead;
  if (lead == ports_ || axis.stride[lead] >= 0 || axis.extent == 0) return;
  for (int p = 0; p < ports_; ++p) {
    const int64_t way = (axis.extent - 1) * axis.stride[p];
    base_[p] += way;
    if (p == 0) input0_offset_ += way;
    axis.stride[p] = -axis.stride[p];
  }
}

void Bound::bind_axes(const View* inputs, const View* outputs, bool rows) {
  const auto view = [&](int p) -> const View& { return p < inputs_ ? inputs[p] : outputs[p - inputs_]; };
  const int rank = outputs[0].rank;
  int64_t element[2 * kMaxPorts];
  for (int p = 0; p < ports_; ++p) {
    element[p] = size_of(view(p).dtype);
    base_[p] = view(p).data;
    channel_stride_[p] = channelled_ ? view(p).stride[rank - 1] : 0;
  }
  row_axis_ = Axis{};
  input0_offset_ = 0;
  axes_count_ = 0;
  for (int i = 0; i < rank - (channelled_ ? 1 : 0); ++i) {
    Axis axis;
    axis.extent = outputs[0].shape[i];
    for (int p = 0; p < ports_; ++p) axis.stride[p] = view(p).stride[i];
    if (rows && i == 0) {
      row_axis_ = axis;
    } else if (axis.extent != 1) {
      turn(axis);
      axes_[axes_count_++] = axis;
    }
  }
  axes_count_ = merge_axes(axes_, axes_count_, ports_, inputs_);
  if (axes_count_ == 0) {
    axes_[axes_count_++] = Axis{};
    for (int p = 0; p < ports_; ++p) axes_[0].stride[p] = element[p];  // one lane is contiguous
  }
  int best = axes_count_ - 1;
  for (int i = 0; i < axes_count_; ++i)
    if (lane_cost(axes_[i], element, ports_) < lane_cost(axes_[best], element, ports_)) best = i;
  std::rotate(axes_ + best, axes_ + best + 1, axes_ + axes_count_);
}

int64_t Bound::lanes() const {
  int64_t n = row_axis_.extent;
  for (int i = 0; i < axes_count_; ++i) n *= axes_[i].extent;
  return n;
}

void Bound::resolve_computes(const Layout& layout) {
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
    if (c.op == Op::Cast) range_of(c.dtype, m.low, m.high);
  }
}

Place Bound::place(int port) const { return {port, axes_[axes_count_ - 1].stride[port], channel_stride_[port]}; }

void Bound::resolve_access(const Layout& layout, const Access& a, bool load, Mover* out, int& count) const {
  const Kernels& k = kernels();
  const Place where = place(a.port + (load ? 0 : inputs_));
  const bool together = interleaves(a, load, where);
  for (int c = 0; c < (together ? 1 : a.count); ++c) {
    Mover& m = out[count++];
    m = together ? bind_group(k, a, load, where) : bind_single(k, a, c, load, where);
    for (int r = 0; r < m.count; ++r) m.reg[r] = layout.slot(a.reg[c + r]);
    m.stage = layout.base + layout.stage;
    m.plane = static_cast<ptrdiff_t>(8) * layout.lanes;
  }
}

void Bound::resolve_direct(const Layout& layout) {
  resolve_computes(layout);
  load_count_ = store_count_ = 0;
  for (const Access& a : plan_->loads) resolve_access(layout, a, true, loads_, load_count_);
  for (const Access& a : plan_->stores) resolve_access(layout, a, false, stores_, store_count_);
}

// Binds the program to the 256 values of a byte as every input, and to the tables as its outputs.
void Bound::resolve_ramp(const Layout& layout) {
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

// Runs the program's own code over all 256 bytes. False if that divides by zero: an image need not contain the byte
// that does, so the program must then run directly.
bool Bound::fill_tables(const Layout& layout) {
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

void Bound::resolve_tables(const Layout& layout) {
  const Kernels& k = kernels();
  load_count_ = compute_count_ = store_count_ = 0;
  int index = 0;
  for (const Access& a : plan_->stores) {
    const Place where = place(inputs_ + a.port);
    const int first = store_count_;
    bool same = a.count > 1 && size_of(a.dtype) == 1 && interleaves(a, false, where);
    for (int c = 0; c < a.count; ++c, ++index) {
      const Source& s = plan_->sources[a.source[c]];
      const Place from = place(s.port);
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

// Lookups run one after the other, where direct code loads everything before it stores anything. In place that is
// the same only if no lookup reads what another one has written.
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

// Cycles per lane of all lookups, from their strides; the counterpart of Plan::cost.
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
  fault_ = 0;
  bind_axes(inputs, outputs, rows);
  // A table pays if what it saves per lane makes up for running the program 256 times.
  const float count = static_cast<float>(lanes());
  table_ = plan_->tabular && tables_on.load(std::memory_order_relaxed) &&
           count * (plan_->cost - table_cost()) > 256.0f * plan_->cost + 500.0f && tables_are_safe();
  Layout layout(*plan_, table_);
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
  if (table_) resolve_tables(layout);
  else resolve_direct(layout);
  block_ = table_ ? kTableLanes : layout.lanes;
}

void Bound::prepare(const Program& program, const double* uniforms, const View* inputs, const View* outputs,
                    Scratch& scratch) {
  bind(program, uniforms, inputs, outputs, scratch, false);
}

void Bound::prepare_rows(const Program& program, const double* uniforms, const View* inputs, const View* outputs,
                         Scratch& scratch) {
  bind(program, uniforms, inputs, outputs, scratch, true);
}

// Lets the last computation before a store write to memory itself, where that is one stretch of whole vectors.
bool Bound::store_directly(const Mover& m, const Cursor& cursor) const {
  uint8_t* to = cursor.at[0][m.port] + m.offset;
  const bool direct = cursor.runs == 1 && cursor.lanes % kLaneUnit == 0 &&
                      reinterpret_cast<uintptr_t>(to) % m.alignment == 0;
  computes_[m.producer].dst = direct ? to : m.reg[0];
  return direct;
}

// Lanes up to the next whole unit: no leftovers that vector kernels might stumble over (subnormals are slow).
void Bound::pad(int lanes) const {
  const int rest = -lanes & (kLaneUnit - 1);
  if (rest == 0) return;
  for (int i = 0; i < load_count_; ++i)
    for (int c = 0; c < loads_[i].count; ++c)
      std::memset(loads_[i].reg[c] + static_cast<ptrdiff_t>(lanes) * loads_[i].reg_size, 0,
                  static_cast<size_t>(rest) * static_cast<size_t>(loads_[i].reg_size));
}

void Bound::step(const Cursor& cursor) {
  const auto move = [&](const Mover& m) {
    for (int r = 0; r < cursor.runs; ++r) m.run(m, cursor.at[r], cursor.lane[r], cursor.n[r]);
  };
  for (int i = 0; i < load_count_; ++i) move(loads_[i]);
  pad(cursor.lanes);
  uint32_t stored = 0;  // bits of stores that computations do; later ones are done the usual way
  for (int i = 0; i < std::min(store_count_, 32); ++i)
    if (stores_[i].producer >= 0 && store_directly(stores_[i], cursor)) stored |= uint32_t{1} << i;
  for (int i = 0; i < compute_count_; ++i) computes_[i].run(computes_[i], cursor.lanes);
  for (int i = 0; i < store_count_; ++i)
    if (i >= 32 || !(stored >> i & 1)) move(stores_[i]);
}

void Bound::walk(uint8_t* const* base, const Axis* axes, int count) {
  const Axis& lane_axis = axes[count - 1];
  for (int i = 0; i < count; ++i)
    if (axes[i].extent == 0) return;
  Cursor cursor;
  uint8_t* row[2 * kMaxPorts];  // where the current stretch of lanes starts
  std::copy_n(base, ports_, row);
  int64_t index[kMaxRank] = {};
  // Long stretches are cut into equal pieces, short ones are put together, so that blocks are evenly full.
  int64_t piece = lane_axis.extent;
  if (piece > block_) {
    const int64_t pieces = (piece + block_ - 1) / block_;
    piece = (piece / pieces + 63) & ~int64_t{63};
    piece = std::min<int64_t>(piece, block_);
  }
  for (;;) {
    for (int64_t x = 0; x < lane_axis.extent; x += piece) {
      const int n = static_cast<int>(std::min(piece, lane_axis.extent - x));
      if (cursor.lanes + n > block_ || cursor.runs == kMaxRuns) {
        step(cursor);
        cursor.lanes = cursor.runs = 0;
      }
      uint8_t** at = cursor.at[cursor.runs];
      for (int p = 0; p < ports_; ++p) at[p] = row[p] + x * lane_axis.stride[p];
      cursor.lane[cursor.runs] = cursor.lanes;
      cursor.n[cursor.runs++] = n;
      cursor.lanes += n;
    }
    int i = count - 2;
    for (; i >= 0; --i) {
      for (int p = 0; p < ports_; ++p) row[p] += axes[i].stride[p];
      if (++index[i] < axes[i].extent) break;
      for (int p = 0; p < ports_; ++p) row[p] -= axes[i].extent * axes[i].stride[p];
      index[i] = 0;
    }
    if (i < 0) break;
  }
  if (cursor.lanes) step(cursor);
}

bool Bound::run() {
  fault_ = 0;
  walk(base_, axes_, axes_count_);
  return fault_ == 0;
}

bool Bound::run_rows(int64_t y0, int64_t y1, const uint8_t* band, int64_t pitch) {
  fault_ = 0;
  uint8_t* base[2 * kMaxPorts];
  for (int p = 1; p < ports_; ++p) base[p] = base_[p] + y0 * row_axis_.stride[p];
  base[0] = const_cast<uint8_t*>(band) + input0_offset_;  // only ever read
  row_axis_.extent = y1 - y0;
  row_axis_.stride[0] = pitch;
  if (axes_count_ == 1 && mergeable(row_axis_, axes_[0], ports_)) {
    const int64_t width = axes_[0].extent;
    axes_[0].extent *= row_axis_.extent;
    walk(base, axes_, 1);
    axes_[0].extent = width;
  } else {
    walk(base, all_axes_, axes_count_ + 1);
  }
  return fault_ == 0;
}

bool run(const Program& program, const double* uniforms, const View* inputs, const View* outputs, Scratch& scratch) {
  Bound bound;
  bound.prepare(program, uniforms, inputs, outputs, scratch);
  return bound.run();
}

}  // namespace stoker::pixel
