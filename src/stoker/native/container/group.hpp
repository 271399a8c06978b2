// SPDX-License-Identifier: Apache-2.0
// Samples of a WebDataset: adjacent members of a tar file whose names differ only in the extension.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stoker {

struct Samples {
  std::vector<int64_t> first;   // per sample: number of its first member
  std::vector<int64_t> chosen;  // per sample and output: number of the member, or -1
};

// The extension begins after the first dot of the last part of a name. Hidden files, whose last part begins with a dot,
// belong to no sample. `names` has a zero byte after each name. Of several members with an output's extensions the first
// is chosen. With `fold_case`, ASCII letters match in upper and lower case; `extensions` must be in lower case then.
Samples group_members(std::string_view names, const std::vector<std::vector<std::string>>& extensions, bool fold_case);

}  // namespace stoker
