// SPDX-License-Identifier: Apache-2.0
#include "container/group.hpp"

#include <algorithm>
#include <unordered_map>

namespace stoker {

Samples group_members(std::string_view names, const std::vector<std::vector<std::string>>& extensions, bool fold_case) {
  std::unordered_map<std::string, std::vector<size_t>> outputs_of;
  for (size_t output = 0; output < extensions.size(); ++output)
    for (const std::string& extension : extensions[output]) outputs_of[extension].push_back(output);
  Samples samples;
  std::string_view key;
  std::string extension;
  for (int64_t member = 0; !names.empty(); ++member) {
    const size_t end = std::min(names.find('\0'), names.size());
    const std::string_view name = names.substr(0, end);
    names.remove_prefix(std::min(end + 1, names.size()));
    const size_t slash = name.rfind('/');
    const size_t base = slash == std::string_view::npos ? 0 : slash + 1;
    const size_t dot = std::min(name.find('.', base), name.size());
    if (dot == base) continue;  // hidden, or without a name
    if (samples.first.empty() || name.substr(0, dot) != key) {
      key = name.substr(0, dot);
      samples.first.push_back(member);
      samples.chosen.insert(samples.chosen.end(), extensions.size(), -1);
    }
    extension = name.substr(std::min(dot + 1, name.size()));
    if (fold_case)
      for (char& c : extension) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    const auto found = outputs_of.find(extension);
    if (found == outputs_of.end()) continue;
    int64_t* const chosen = samples.chosen.data() + samples.chosen.size() - extensions.size();
    for (const size_t output : found->second)
      if (chosen[output] < 0) chosen[output] = member;
  }
  return samples;
}

}  // namespace stoker
