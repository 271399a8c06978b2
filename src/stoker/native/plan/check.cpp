// SPDX-License-Identifier: Apache-2.0
#include "plan/check.hpp"

#include <algorithm>
#include <utility>

namespace stoker {

namespace {

constexpr int32_t kNotMade = -2, kBeforeAll = -1;  // in place of the segment that makes a value

std::string text(int64_t n) { return std::to_string(n); }

[[noreturn]] void refuse(const std::string& where, const std::string& expected, const std::string& got) {
  throw InvalidPlan("invalid plan: " + where + ": expected " + expected + ", got " + got);
}

std::string types_text(Types set) {
  std::string all;
  for (int t = 0; t < kTypeCount; ++t)
    if (set >> t & 1) all += (all.empty() ? "" : " or ") + std::string(name_of(static_cast<DType>(t)));
  return all;
}

int operands_of(ScalarOp op) {
  switch (op) {
    case ScalarOp::Const:
    case ScalarOp::Dim:
    case ScalarOp::Elem:
    case ScalarOp::Frame:
    case ScalarOp::Count:
    case ScalarOp::ElemOrOnly: return 0;
    case ScalarOp::Neg:
    case ScalarOp::Abs:
    case ScalarOp::Floor:
    case ScalarOp::Ceil:
    case ScalarOp::RoundEven:
    case ScalarOp::RoundAway:
    case ScalarOp::Trunc:
    case ScalarOp::Sqrt:
    case ScalarOp::Exp:
    case ScalarOp::Log:
    case ScalarOp::Sin:
    case ScalarOp::Cos:
    case ScalarOp::Not:
    case ScalarOp::Float32:
    case ScalarOp::IsFinite: return 1;
    case ScalarOp::Where: return 3;
    default: return 2;
  }
}

bool is_in_device_memory(Storage s) { return s >= Storage::Device; }

// Walks through the steps in the order in which a row runs them.
class Checker {
 public:
  explicit Checker(Plan& plan)
      : plan_(plan),
        made_(plan.values.size(), kNotMade),
        maker_(plan.values.size(), nullptr),
        shown_(plan.values.size()),
        owner_(),
        ran_(plan.steps.size(), 0),
        opened_(plan.outputs.size(), 0) {}

  void run() {
    check_sizes();
    for (size_t v = 0; v < plan_.values.size(); ++v) check_value(static_cast<int32_t>(v));
    for (size_t o = 0; o < plan_.outputs.size(); ++o) check_output(static_cast<int32_t>(o));
    for (size_t k = 0; k < plan_.segments.size(); ++k) run_segment(static_cast<int32_t>(k));
    for (size_t s = 0; s < plan_.steps.size(); ++s)
      if (!ran_[s]) refuse("step " + text(static_cast<int64_t>(s)), "a segment with it", "none");
    for (size_t o = 0; o < plan_.outputs.size(); ++o) {
      const std::string where = "output " + text(static_cast<int64_t>(o));
      if (!opened_[o]) refuse(where, "a segment that opens it", "none");
      if (plan_.outputs[o].root >= 0 && (made_[at(plan_.outputs[o].root)] < 0 || !maker_[at(plan_.outputs[o].root)]))
        refuse(where + ", root", "a value that a kernel makes", "value " + text(plan_.outputs[o].root));
      if (made_[at(plan_.outputs[o].value)] < 0) refuse(where, "a step that writes it", "none");
    }
  }

 private:
  enum class Reads { Extents, OnHost, OnDevice };

  static size_t at(int32_t i) { return static_cast<size_t>(i); }
  const Value& value(int32_t v) const { return plan_.values[at(v)]; }
  static int64_t count(size_t n) { return static_cast<int64_t>(n); }

  static void require_index(int32_t i, size_t n, const std::string& where, const char* what) {
    if (i < 0 || at(i) >= n) refuse(where, "one of " + text(count(n)) + " " + what, text(i));
  }

  // ---- values and outputs ----

  void check_sizes() {
    const auto bad = [](int32_t n, size_t most) { return n < 0 || at(n) > most; };
    if (bad(plan_.buffers, plan_.values.size()))
      refuse("scratch buffers", "0 to one for each of " + text(count(plan_.values.size())) + " values",
             text(plan_.buffers));
    if (plan_.readers < 0) refuse("index columns", "0 or more", text(plan_.readers));
    owner_.resize(at(plan_.buffers));
  }

  void check_value(int32_t v) {
    const Value& info = value(v);
    const std::string where = "value " + text(v);
    if (static_cast<int>(info.dtype) >= kTypeCount)
      refuse(where, "one of " + text(kTypeCount) + " element types", text(static_cast<int>(info.dtype)));
    if (info.rank < 0 || info.rank > kMaxRank) refuse(where, "0 to " + text(kMaxRank) + " axes", text(info.rank));
    if (info.storage > Storage::Count) refuse(where, "a kind of memory", text(static_cast<int>(info.storage)));
    if (info.storage == Storage::Scratch) require_index(info.slot, at(plan_.buffers), where, "scratch buffers");
    if (info.storage == Storage::Output) {
      require_index(info.slot, plan_.outputs.size(), where, "outputs");
      if (plan_.outputs[at(info.slot)].value != v)
        refuse(where, "output " + text(info.slot) + " to be this value",
               "value " + text(plan_.outputs[at(info.slot)].value));
    }
    if (info.storage == Storage::Count && (info.dtype != DType::I32 || info.rank != 0))
      refuse(where, "a count of type int32 without axes", describe(info));
    if (info.storage == Storage::Input) made_[at(v)] = kBeforeAll;
  }

  static std::string describe(const Value& info) {
    return std::string(name_of(info.dtype)) + " with " + text(info.rank) + " axes";
  }

  void check_output(int32_t o) {
    const Output& output = plan_.outputs[at(o)];
    const std::string where = "output " + text(o);
    require_index(output.value, plan_.values.size(), where, "values");
    const Value& info = value(output.value);
    if (output.root >= 0) return check_placed(output, where);
    if (info.storage != Storage::Output || info.slot != o)
      refuse(where, "a value in its memory", "value " + text(output.value) + " elsewhere");
    const size_t extents = output.fixed ? output.shape.size() : output.extents.size();
    if (extents != at(info.rank)) refuse(where, text(info.rank) + " extents", text(count(extents)));
    for (const int64_t n : output.shape)  // the run loop refuses extents that are too large
      if (n < 0) refuse(where, "extents of 0 or more", text(n));
    if (output.count < 0) return;
    require_index(output.count, plan_.values.size(), where + ", count", "values");
    if (info.rank == 0) refuse(where, "an axis whose extent is counted", "none");
  }

  void check_placed(const Output& output, const std::string& where) const {
    require_index(output.root, plan_.values.size(), where + ", root", "values");
    if (output.fixed || output.device || output.count >= 0 || !output.extents.empty() || !output.scalars.code.empty() ||
        !output.shape.empty())
      refuse(where, "extents that are known when a row has run, on the host", "others");
    for (const int32_t v : {output.value, output.root}) {
      const Storage s = value(v).storage;
      const bool in_host_memory =
          s == Storage::Scratch || s == Storage::Batch || (s == Storage::Alias && v != output.root);
      if (!in_host_memory) refuse(where, "rows in host memory of their own", "value " + text(v) + " elsewhere");
    }
    for (const Segment& segment : plan_.segments)
      if (segment.kind == SegmentKind::Device) refuse(where, "a plan for the host", "a segment of a device");
  }

  // The run loop takes the rows of placed outputs at the end of their segment.
  void check_placed_rows(const Segment& segment) {
    for (const int32_t o : segment.opens) {
      const Output& output = plan_.outputs[at(o)];
      if (output.root < 0) continue;
      const std::string where = "output " + text(o);
      if (made_[at(output.value)] != segment_ || segment.kind != SegmentKind::Native)
        refuse(where, "a segment of kernels that makes its value and opens it", "another one");
      read(output.value, Reads::OnHost, where);
      const Kernel* const kernel = maker_[at(output.root)];
      if (!kernel || !kernel->allocates() || !is_first_output(output.root))
        refuse(where + ", root", "a value that a kernel allocates", "value " + text(output.root));
    }
  }

  bool is_first_output(int32_t v) const {
    return std::any_of(plan_.steps.begin(), plan_.steps.end(),
                       [v](const Step& step) { return !step.out.empty() && step.out[0] == v; });
  }

  // ---- reads and writes ----

  // Visit the values in whose memory the elements of `v` may be.
  template <class Visit>
  void visit_memory(int32_t v, Visit&& visit) const {
    if (value(v).storage != Storage::Alias) visit(v);
    for (const int32_t w : shown_[at(v)]) visit(w);
  }

  void read(int32_t v, Reads how, const std::string& where) {
    require_index(v, plan_.values.size(), where, "values");
    if (made_[at(v)] == kNotMade) refuse(where, "a value that an earlier step makes", "value " + text(v));
    if (how != Reads::Extents) visit_memory(v, [&](int32_t w) { read_memory(v, w, how, where); });
  }

  void read_memory(int32_t v, int32_t memory, Reads how, const std::string& where) {
    Value& info = plan_.values[at(memory)];
    const auto wrong = [&](const char* expected) {
      const std::string through = v == memory ? "" : " through value " + text(v);
      refuse(where, expected, "value " + text(memory) + through);
    };
    if (info.storage == Storage::Scratch) {
      if (made_[at(memory)] != segment_) wrong("a scratch buffer of its own segment");
      if (owner_[at(info.slot)] != memory) wrong("a scratch buffer that no later value has");
    }
    if (how != Reads::OnHost) return;
    const bool away =
        is_in_device_memory(info.storage) || (info.storage == Storage::Output && at(info.slot) < plan_.outputs.size() &&
                                              plan_.outputs[at(info.slot)].device);
    if (away) wrong("elements in host memory");
    if (info.storage == Storage::Input || info.storage == Storage::Upload) info.is_read_on_host = true;
  }

  void make(int32_t v, const std::string& where) {
    require_index(v, plan_.values.size(), where, "values");
    if (made_[at(v)] != kNotMade) refuse(where, "a value that nothing else makes", "value " + text(v));
    made_[at(v)] = segment_;
    const Value& info = value(v);
    if (info.storage == Storage::Scratch) owner_[at(info.slot)] = v;
    if (info.storage == Storage::Output && !opened_[at(info.slot)])
      refuse(where, "output " + text(info.slot) + " to be open", "a step before the segment that opens it");
  }

  // ---- scalar code ----

  void check_code(const ScalarCode& s, const std::string& where) {
    for (size_t i = 0; i < s.code.size(); ++i) {
      const ScalarInstr& q = s.code[i];
      const auto here = [&] { return where + ", instruction " + text(count(i)); };
      if (q.op > ScalarOp::ElemOrOnly) refuse(here(), "an operation", text(static_cast<int>(q.op)));
      const int32_t operands[] = {q.a, q.b, q.c};
      for (int k = 0; k < operands_of(q.op); ++k)
        if (operands[k] < 0 || at(operands[k]) >= i) refuse(here(), "an earlier register", text(operands[k]));
      if (q.op == ScalarOp::Const) require_index(q.a, s.consts.size(), here(), "constants");
      const bool reads_element = q.op == ScalarOp::Elem || q.op == ScalarOp::ElemOrOnly;
      if (!reads_element && q.op != ScalarOp::Dim && q.op != ScalarOp::Count) continue;
      read(q.a, reads_element ? Reads::OnHost : Reads::Extents, here());
      if (q.op == ScalarOp::Dim && (q.b < 0 || q.b >= value(q.a).rank))
        refuse(here(), "one of " + text(value(q.a).rank) + " axes of value " + text(q.a), text(q.b));
      if (reads_element && (q.b < 0 || q.c < 0))
        refuse(here(), "an element from the first on", text(q.b) + " and " + text(q.c) + " for each frame");
    }
  }

  static void require_registers(const std::vector<int32_t>& registers, const ScalarCode& s, const std::string& where) {
    for (const int32_t r : registers) require_index(r, s.code.size(), where, "registers");
  }

  // ---- segments ----

  void run_segment(int32_t k) {
    const Segment& segment = plan_.segments[at(k)];
    const std::string where = "segment " + text(k);
    if (segment.kind > SegmentKind::Device) refuse(where, "a kind of segment", text(static_cast<int>(segment.kind)));
    const bool after_device = k > 0 && plan_.segments[at(k) - 1].kind == SegmentKind::Device;
    if (after_device && segment.kind != SegmentKind::Device)
      refuse(where, "segments of a device to be the last ones", "one for the host after them");
    if (segment.kind == SegmentKind::Device && segment.steps.empty()) refuse(where, "steps", "none");
    segment_ = k;
    std::fill(owner_.begin(), owner_.end(), kNotMade);
    for (const int32_t o : segment.opens) open(o, where);
    for (const int32_t s : segment.steps) {
      require_index(s, plan_.steps.size(), where, "steps");
      if (std::exchange(ran_[at(s)], 1)) refuse(where, "a step that runs once", "step " + text(s) + " again");
      run_step(s, segment.kind);
    }
    check_placed_rows(segment);
  }

  // The extents of an output are computed before its segment, from values of earlier ones.
  void open(int32_t o, const std::string& where) {
    require_index(o, plan_.outputs.size(), where + ", opens", "outputs");
    if (std::exchange(opened_[at(o)], 1))
      refuse(where, "an output that is opened once", "output " + text(o) + " again");
    const Output& output = plan_.outputs[at(o)];
    const std::string of_output = "output " + text(o);
    if (output.fixed || output.root >= 0) return;
    check_code(output.scalars, of_output);
    require_registers(output.extents, output.scalars, of_output + ", extents");
  }

  // ---- steps ----

  void run_step(int32_t number, SegmentKind kind) {
    Step& step = plan_.steps[at(number)];
    const Kernel* const kernel = step.kernel.get();
    const Ports ports = kernel ? kernel->ports() : Ports{.kernel = "", .any = true};
    const std::string where = "step " + text(number) + (kernel ? ", kernel `" + std::string(ports.kernel) + "`" : "");
    if (!kernel != (kind == SegmentKind::Python))
      refuse(where, kernel ? "a segment of kernels" : "a kernel, except in a segment of Python", "the other kind");
    step.on_device = kernel ? kernel->on_device() : nullptr;
    if (step.on_device && kind != SegmentKind::Device) refuse(where, "a segment of a device", "one of the host");
    if (step.in.size() > kMaxStepInputs || step.out.size() > kMaxStepOutputs)
      refuse(where, "at most " + text(kMaxStepInputs) + " inputs and " + text(kMaxStepOutputs) + " outputs",
             text(count(step.in.size())) + " and " + text(count(step.out.size())));
    check_scalars(step, where);
    for (const Guard& guard : step.guards) read(guard.value, Reads::OnHost, where + ", guard");
    for (const int32_t v : step.out) make(v, where);
    for (size_t i = 0; i < step.in.size(); ++i)
      read(step.in[i], reads_of(step, ports, i), port_name(where, "input", i));
    for (const int32_t v : step.out)
      if (value(v).storage == Storage::Scratch && owner_[at(value(v).slot)] != v)
        refuse(where, "a scratch buffer for each output", "one for several");
    check_count(step, kernel, where);
    check_frames(step, kernel, where);
    check_outputs(step, kernel, where);
    if (!kernel) return;
    check_ports(step, ports, StepFacts(plan_, number, maker_), where);
    kernel->check(StepFacts(plan_, number, maker_));
    if (kernel->combines() && ports.other_rows_of < 0)
      refuse(where, "an input of which the kernel reads other rows", "none");
    if (ports.other_rows_of >= 0) {
      step.other_rows_of = ports.other_rows_of;
      plan_.reads_other_rows = true;
      if (made_[at(step.in[at(ports.other_rows_of)])] == segment_)
        refuse(port_name(where, "input", at(ports.other_rows_of)), "a value that is there for all rows",
               "one of the same segment");
    }
    for (const int32_t v : step.out) maker_[at(v)] = kernel;
    if (!step.out.empty()) show_inputs(step, ports);
  }

  static std::string port_name(const std::string& where, const char* kind, size_t number) {
    return where + ", " + kind + " " + text(count(number));
  }

  static Reads reads_of(const Step& step, const Ports& ports, size_t i) {
    if (!step.kernel) return Reads::OnHost;
    if (step.on_device) return i < ports.in.size() && ports.in[i].on_host ? Reads::OnHost : Reads::OnDevice;
    return step.kernel->aliases() && i < kMaxStepInputs && (ports.shows >> i & 1) ? Reads::Extents : Reads::OnHost;
  }

  void check_scalars(const Step& step, const std::string& where) {
    check_code(step.scalars, where);
    require_registers(step.params, step.scalars, where + ", parameters");
    for (const Check& c : step.checks) {
      require_registers({c.condition}, step.scalars, where + ", check");
      require_registers(c.values, step.scalars, where + ", check");
      if (c.message < 0) refuse(where + ", check", "a message", text(c.message));
    }
    if (step.frames >= 0) require_registers({step.frames}, step.scalars, where + ", frames");
  }

  // Memory and extents of outputs, as the run loop allocates them.
  void check_outputs(const Step& step, const Kernel* kernel, const std::string& where) {
    const bool aliases = kernel && kernel->aliases(), allocates = kernel && kernel->allocates();
    if (aliases && allocates) refuse(where, "an output that is a view, or one that the kernel allocates", "both");
    if ((aliases || allocates) && step.out.empty()) refuse(where, "an output", "none");
    for (size_t o = 0; o < step.out.size(); ++o) {
      const Value& info = value(step.out[o]);
      const std::string port = port_name(where, "output", o);
      const bool own = kernel && !aliases && !(allocates && o == 0);
      check_memory(step, info, !kernel || (allocates && o == 0), aliases, port);
      if (!own) continue;
      if (o >= step.extents.size() || step.extents[o].size() != at(info.rank))
        refuse(port, text(info.rank) + " extents",
               o < step.extents.size() ? text(count(step.extents[o].size())) : "none");
      require_registers(step.extents[o], step.scalars, port + ", extents");
    }
  }

  void check_memory(const Step& step, const Value& info, bool by_size, bool aliases, const std::string& port) {
    const Storage s = info.storage;
    if (aliases != (s == Storage::Alias) || s == Storage::Input)
      refuse(port, aliases ? "a view" : "memory that the step writes", "another kind of memory");
    const bool host_only = s == Storage::Scratch || s == Storage::Batch || s == Storage::Upload;
    if (by_size && (!host_only || (!step.kernel && s == Storage::Scratch)))
      refuse(port, "host memory of a size that only the step knows", "another kind of memory");
    if (is_in_device_memory(s) && !step.on_device) refuse(port, "a kernel on a device", "one on the host");
    if (s == Storage::Count &&
        (step.count < 0 || at(step.count) >= step.out.size() || &value(step.out[at(step.count)]) != &info))
      refuse(port, "the step's count", "another output");
    if (s == Storage::Output && plan_.outputs[at(info.slot)].device != (step.on_device != nullptr))
      refuse(port, "an output where the kernel runs", "one on the other side");
    if (step.on_device && (s == Storage::Scratch || s == Storage::Batch || s == Storage::Upload))
      refuse(port, "device memory", "host memory");
  }

  static void check_frames(const Step& step, const Kernel* kernel, const std::string& where) {
    if (step.frames < 0) return;
    if (!kernel || kernel->aliases() || kernel->allocates())
      refuse(where + ", frames", "a kernel that writes memory reserved for it", "another one");
    if (step.framed_in.size() != step.in.size())
      refuse(where + ", frames", text(count(step.in.size())) + " marks of framed inputs",
             text(count(step.framed_in.size())));
  }

  // The run loop reads the count and changes views of the counted outputs.
  void check_count(const Step& step, const Kernel* kernel, const std::string& where) {
    const int32_t outputs = static_cast<int32_t>(step.out.size());
    const auto value_of = [&](int32_t output) { return value(step.out[at(output)]); };
    if (step.count < 0) {
      if (!step.counted.empty()) refuse(where, "a count for outputs with an upper bound", "none");
      return;
    }
    if (step.count >= outputs || value_of(step.count).dtype != DType::I32 || value_of(step.count).rank != 0)
      refuse(where, "a count of type int32 without axes among the step's outputs",
             step.count < outputs ? describe(value_of(step.count)) : text(step.count));
    for (const int32_t o : step.counted)
      if (o < 0 || o >= outputs || o == step.count || value_of(o).rank < 1)
        refuse(where, "counted outputs with at least one axis", text(o));
    if (!kernel || kernel->aliases() || kernel->allocates())
      refuse(where, "a kernel with a count to write memory that is reserved for it", "another one");
    if (step.frames >= 0) refuse(where, "a kernel with a count that runs once for a row", "one for each frame");
    if (step.on_device && value_of(step.count).storage != Storage::Count)
      refuse(where, "a count that the host can read", "one elsewhere");
  }

  void check_ports(Step& step, const Ports& ports, const StepFacts& facts, const std::string& where) {
    const auto wrong = [&](size_t have, size_t want) { return ports.any ? have < want : have != want; };
    if (wrong(step.in.size(), ports.in.size()))
      refuse(where, text(count(ports.in.size())) + " inputs", text(count(step.in.size())));
    if (wrong(step.out.size(), ports.out.size()))
      refuse(where, text(count(ports.out.size())) + " outputs", text(count(step.out.size())));
    if (facts.params() < ports.params)
      refuse(where, "at least " + text(ports.params) + " parameters", text(facts.params()));
    for (size_t i = 0; i < step.in.size(); ++i) {
      const PortRule port = i < ports.in.size() ? ports.in[i] : PortRule{};
      const std::string name = port_name(where, "input", i);
      if (step.frames >= 0 && facts.in_rank(i) < 0) refuse(name, "an axis of frames", "none");
      check_port(port, facts.in_type(i), facts.in_rank(i), facts, name);
      if (port.same_extents >= 0) step.alike.push_back({static_cast<int32_t>(i), port.same_extents, true});
      if (value(step.in[i]).storage == Storage::Planes && !port.in_planes)
        refuse(name, "pixels in memory", "an image in component planes");
    }
    for (size_t o = 0; o < step.out.size(); ++o) {
      const PortRule port = o < ports.out.size() ? ports.out[o] : PortRule{};
      const std::string name = port_name(where, "output", o);
      if (step.frames >= 0 && facts.out_rank(o) < 0) refuse(name, "an axis of frames", "none");
      check_port(port, facts.out_type(o), facts.out_rank(o), facts, name);
      const Storage s = value(step.out[o]).storage;
      if ((s == Storage::Words && !port.strided) || (s == Storage::Planes && !port.in_planes))
        refuse(name, "contiguous memory", "another arrangement, which the kernel does not write");
      if (port.same_extents >= 0) step.alike.push_back({static_cast<int32_t>(o), port.same_extents, false});
    }
  }

  static void check_port(const PortRule& port, DType type, int32_t rank, const StepFacts& facts,
                         const std::string& name) {
    if (!has(port.types, type)) refuse(name, types_text(port.types), name_of(type));
    if (rank < port.least_rank || rank > port.most_rank) {
      const bool one = port.least_rank == port.most_rank;
      refuse(name, text(port.least_rank) + (one ? "" : " to " + text(port.most_rank)) + " axes", text(rank));
    }
    const auto input = [](int32_t i) { return " of input " + text(i); };
    if (port.same_type >= 0 && facts.in_type(at(port.same_type)) != type)
      refuse(name, std::string(name_of(facts.in_type(at(port.same_type)))) + input(port.same_type), name_of(type));
    const int32_t like = port.same_extents >= 0 ? port.same_extents : port.same_rank;
    if (like >= 0 && facts.in_rank(at(like)) != rank)
      refuse(name, text(facts.in_rank(at(like))) + " axes, those" + input(like), text(rank));
  }

  // Record in whose memory output 0 may be.
  void show_inputs(const Step& step, const Ports& ports) {
    std::vector<int32_t>& shown = shown_[at(step.out[0])];
    for (size_t i = 0; i < step.in.size() && i < 64; ++i)
      if (ports.shows >> i & 1)
        visit_memory(step.in[i], [&](int32_t v) {
          if (std::find(shown.begin(), shown.end(), v) == shown.end()) shown.push_back(v);
        });
  }

  Plan& plan_;
  std::vector<int32_t> made_;                // per value: the segment that makes it
  std::vector<const Kernel*> maker_;         // per value
  std::vector<std::vector<int32_t>> shown_;  // per value: other values in whose memory its elements may be
  std::vector<int32_t> owner_;               // per scratch buffer: the value that it holds now
  std::vector<uint8_t> ran_, opened_;        // per step, per output
  int32_t segment_ = kBeforeAll;
};

}  // namespace

const char* name_of(DType t) {
  static constexpr const char* kNames[kTypeCount] = {"bool",    "uint8",   "uint16",  "uint32", "uint64",
                                                     "int8",    "int16",   "int32",   "int64",  "float16",
                                                     "float32", "float64", "bfloat16"};
  return static_cast<int>(t) < kTypeCount ? kNames[static_cast<int>(t)] : "?";
}

void StepFacts::refuse(const std::string& what, const std::string& expected, const std::string& got) const {
  stoker::refuse("step " + std::to_string(number_) + ", kernel `" + step_.kernel->ports().kernel + "`, " + what,
                 expected, got);
}

void check(Plan& plan) { Checker(plan).run(); }

}  // namespace stoker
