// SPDX-License-Identifier: Apache-2.0
// Check of a whole plan, once, before anything runs it. The run loop and the kernels index without further checks what
// is checked here, so that a mistake of the planner is an error and never an access out of bounds.
#pragma once
#include <stdexcept>
#include <string>

#include "plan/plan.hpp"

namespace stoker {

struct InvalidPlan : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

// A step as its kernel sees it: frame by frame if the step runs so.
class StepFacts {
 public:
  StepFacts(const Plan& plan, int32_t number, const std::vector<const Kernel*>& makers)
      : plan_(plan), step_(plan.steps[static_cast<size_t>(number)]), number_(number), makers_(makers) {}

  size_t inputs() const { return step_.in.size(); }
  size_t outputs() const { return step_.out.size(); }
  int32_t params() const { return static_cast<int32_t>(step_.params.size()); }
  int32_t readers() const { return plan_.readers; }  // index columns
  DType in_type(size_t i) const { return value(step_.in[i]).dtype; }
  DType out_type(size_t o) const { return value(step_.out[o]).dtype; }
  int32_t in_rank(size_t i) const { return value(step_.in[i]).rank - (is_framed(i) ? 1 : 0); }
  int32_t out_rank(size_t o) const { return value(step_.out[o]).rank - (step_.frames >= 0 ? 1 : 0); }
  int32_t in_value(size_t i) const { return step_.in[i]; }
  const Kernel* maker(size_t i) const { return makers_[static_cast<size_t>(step_.in[i])]; }  // null: no kernel

  // Throw InvalidPlan unless `holds`.
  void require(bool holds, const std::string& what, const std::string& expected, const std::string& got) const {
    if (!holds) refuse(what, expected, got);
  }
  void require_param(int32_t index, const std::string& what) const {
    require(index >= 0 && index < params(), what, "one of " + std::to_string(params()) + " parameters",
            std::to_string(index));
  }
  // Axes of a tensor: each in range and named once.
  void require_reader(int32_t reader) const {
    require(reader >= 0 && reader < readers(), "reader", "one of " + std::to_string(readers()) + " index columns",
            std::to_string(reader));
  }
  [[noreturn]] void refuse(const std::string& what, const std::string& expected, const std::string& got) const;

 private:
  const Value& value(int32_t v) const { return plan_.values[static_cast<size_t>(v)]; }
  bool is_framed(size_t i) const { return step_.frames >= 0 && step_.framed_in[i] != 0; }
  const Plan& plan_;
  const Step& step_;
  const int32_t number_;
  const std::vector<const Kernel*>& makers_;
};

const char* name_of(DType t);

// Throw InvalidPlan if the plan breaks a rule; complete the steps with what the run loop compares for every row.
void check(Plan& plan);

}  // namespace stoker
