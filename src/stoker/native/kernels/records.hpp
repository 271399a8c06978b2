// SPDX-License-Identifier: Apache-2.0
// Tables of records as constants of kernels.
#pragma once
#include <memory>

#include "io/kept_blocks.hpp"
#include "io/records.hpp"
#include "kernels/registry.hpp"
#include "plan/plan.hpp"

namespace stoker {

template <>
inline constexpr const char* registry::kPythonClass<FileTable> = "FileTable";
template <>
inline constexpr const char* registry::kPythonClass<KeptBlocks> = "KeptBlocks";

// A table of any kind.
template <>
struct registry::Argument<std::shared_ptr<const Records>> {
  static std::string type() { return "Records"; }
  static std::shared_ptr<const Records> read(const Value& v);
};

Outcome outside(const Call& call, uint64_t index, size_t size);  // reports an index that is not below `size`

}  // namespace stoker
