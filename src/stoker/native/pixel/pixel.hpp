// SPDX-License-Identifier: Apache-2.0
// The register program machine: every pointwise chain of the library runs here.
//
// A chain is written once in Python as an expression; the planner compiles it into a Program; this machine runs
// the Program over strided views, a block of a few hundred lanes at a time, so that all intermediate values stay
// in the L1 cache and memory is read once and written once however long the chain is. No chain has a routine of
// its own: what is fast here is fast for every chain that the planner can express.
//
// Registers are virtual: the code may use each one as often as it likes (also once only); validate() renames
// them, drops dead code, fuses loads and stores with conversions and packs values into few L1 blocks.
//
// Order of effects: within a block of lanes all loads happen before all stores, wherever they stand in the code.
// So an output may be exactly an input (same data, strides and element size); any other overlap is an error.
#pragma once
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/tensor.hpp"
#include "shared/pixel_ops.hpp"

namespace stoker::pixel {

// The types of registers. I32 holds Bool, U8, I8, U16, I16, I32; I64 holds U32, I64 and U64 (as its bits);
// F32 holds F16, BF16 and F32; F64 holds F64.
enum class Type : uint8_t { I32 = 0, I64, F32, F64 };

constexpr Type type_of(DType t) {
  switch (t) {
    case DType::U32:
    case DType::U64:
    case DType::I64: return Type::I64;
    case DType::F16:
    case DType::BF16:
    case DType::F32: return Type::F32;
    case DType::F64: return Type::F64;
    default: return Type::I32;
  }
}

constexpr int kOps = static_cast<int>(Op::kCount);
std::string_view name_of(Op op);

// Bits of Instr::uniform: operands that index the uniforms instead of the registers.
constexpr uint8_t kUniformA = 1, kUniformB = 2, kUniformC = 4;

struct Instr {
  Op op = Op::Copy;
  Type type = Type::I32;    // the type of the operation; for Cvt, Cast, Wrap, Load, Store see above
  Type from = Type::I32;    // Cvt, UCvt, Cast, UCast, Wrap: the operand's type
  DType dtype = DType::U8;  // Load, Store, Cast, UCast, Wrap
  uint16_t dst = 0, a = 0, b = 0, c = 0;
  uint8_t uniform = 0;  // kUniformA | kUniformB | kUniformC
  uint8_t port = 0;     // Load, Store, Coordinate, Lookup
  uint8_t channel = 0;  // Load, Store
  uint8_t unused = 0;
};
static_assert(sizeof(Instr) == 16, "the Python compiler packs instructions by this layout");

constexpr int kMaxPorts = 8;  // of inputs, and of outputs
constexpr int kMaxChannels = 16;

struct Plan;  // result of validate(); see pixel/plan.hpp

// An input that is a table: it has one axis, and no part in the iteration.
struct Table {
  uint8_t port;
  uint16_t length;  // the uniform that has the number of elements
};

struct Program {
  std::vector<Instr> code;
  // 0: a flat program, whose lanes are all elements. C > 0: the last axis of every view is the channel axis, loads and
  // stores name a channel < C, and lanes run over the other axes.
  int channels = 0;
  int inputs = 0, outputs = 0, uniforms = 0;
  std::array<DType, kMaxPorts> input_dtype{}, output_dtype{};
  // Set by validate(); copies share the plan.
  std::vector<Table> tables;
  std::shared_ptr<const Plan> plan;
};

// Check the program (operands are defined before use with the right type; ports, channels and every operation's types
// are legal) and plan it. Must succeed once before the program runs, because running checks nothing. On failure *why
// has the reason.
bool validate(Program& program, std::string* why);

// Check that each of the program's tables is contiguous and has the elements that its uniform promises, and turn its view
// into one of `shape` whose strides are 0. Must succeed before the program runs.
bool spread_tables(const Program& program, const double* uniforms, const View& shape, View* inputs);

// Run the program over the views inputs[program.inputs] and outputs[program.outputs]. Flat: all views have one shape
// (broadcast by stride 0). Channelled: all have one rank and one shape except for the last axis, of which a load or
// store uses element `channel` (an input of one channel has last stride 0). Uniforms are converted once to the type in
// which they are used; integers are exact in double. Return false if an integer was divided by zero; the output is
// complete nevertheless.
bool run(const Program& program, const double* uniforms, const View* inputs, const View* outputs, Scratch& scratch);

struct Access;
struct Micro;
struct Mover;
struct PortStrides;

// One axis of the iteration space after coalescing, with every port's stride (inputs first, then outputs).
struct Axis {
  int64_t extent = 1;
  int64_t stride[2 * kMaxPorts] = {};
};

// Return whether two axes can be merged in all views.
bool mergeable(const Axis& outer, const Axis& inner, int ports);

// Sort the axes by the strides of port `lead`, outermost first, and merge neighbours that form one axis in all views.
// Return the new number of axes.
int merge_axes(Axis* axes, int count, int ports, int lead);

// Program bound to its uniforms and views, for repeated calls. It keeps references to `program` and `scratch`; both
// must outlive it, and the scratch must not be used for anything else until then. It allocates only through the
// scratch.
class Bound {
 public:
  Bound() = default;
  Bound(const Bound&) = delete;  // bound instructions point into this object
  Bound& operator=(const Bound&) = delete;

  // For run(): all axes may be merged and reordered.
  void prepare(const Program& program, const double* uniforms, const View* inputs, const View* outputs,
               Scratch& scratch);
  bool run();

  // For run_rows(): like prepare(), but axis 0 of every view (rank >= 2; the rows) stays separate. inputs[0].data is
  // not used, and of inputs[0].stride only the axes >= 1 are used.
  void prepare_rows(const Program& program, const double* uniforms, const View* inputs, const View* outputs,
                    Scratch& scratch);
  // Run rows [y0, y1): row y of input 0 is at band + (y - y0) * pitch; the other views are sliced along axis 0.
  bool run_rows(int64_t y0, int64_t y1, const uint8_t* band, int64_t pitch);

  bool uses_table() const { return table_; }
  bool uses_mix() const { return mixed_; }

 private:
  struct Cursor;
  struct ScratchLayout;
  void bind(const Program&, const double*, const View*, const View*, Scratch&, bool rows);
  void turn(Axis& axis);
  void bind_axes(const View* inputs, const View* outputs, bool rows);
  int64_t lanes() const;
  float table_cost() const;
  bool tables_are_safe() const;
  PortStrides place(int port) const;
  void resolve_computes(const ScratchLayout& layout);
  void resolve_access(const ScratchLayout& layout, const Access& a, bool load, Mover* out, int& count) const;
  void resolve_direct(const ScratchLayout& layout);
  void resolve_ramp(const ScratchLayout& layout);
  void resolve_tables(const ScratchLayout& layout);
  bool resolve_copy();
  bool resolve_mixes(const ScratchLayout& layout, const double* uniforms);
  bool fill_tables(const ScratchLayout& layout);
  void walk(uint8_t* const* base, const Axis* axes, int count);
  void step(const Cursor& cursor);
  void pad(int lanes) const;
  int lanes_before_line(uint8_t* const* row) const;
  bool store_directly(const Mover& mover, const Cursor& cursor) const;

  const Plan* plan_ = nullptr;
  int inputs_ = 0, ports_ = 0;  // ports are the inputs, then the outputs
  bool channelled_ = false;
  bool table_ = false, mixed_ = false;
  int block_ = 0;       // lanes of a register block
  int axes_count_ = 0;  // without the row axis
  // The row axis, then the others from outer to inner; the last one has the lanes. One array, so that a call on a band
  // does not copy them.
  Axis all_axes_[kMaxRank + 1];
  Axis& row_axis_ = all_axes_[0];
  Axis* const axes_ = all_axes_ + 1;
  uint8_t* base_[2 * kMaxPorts] = {};
  int64_t input0_offset_ = 0;  // from a band's first byte to input 0's first lane, if axes are reversed
  int64_t channel_stride_[2 * kMaxPorts] = {};
  Micro* computes_ = nullptr;
  Mover* loads_ = nullptr;
  Mover* stores_ = nullptr;
  int load_count_ = 0, compute_count_ = 0, store_count_ = 0;
  int fault_ = 0;
};

// Switch lookup tables and mixes of bytes on or off. Tests switch them off to compare with direct execution; the default
// is on.
void set_tables(bool on);

}  // namespace stoker::pixel
