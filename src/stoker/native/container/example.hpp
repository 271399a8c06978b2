// SPDX-License-Identifier: Apache-2.0
// Features of an encoded tf.train.Example. Repeated fields mean what protocol buffers say: the last entry of a name is
// valid, and lists of one kind within it are concatenated.
#pragma once
#include <cstdint>
#include <string_view>

#include "container/wire.hpp"

namespace stoker {

enum class FeatureKind : uint32_t { None = 0, Bytes = 1, Floats = 2, Ints = 3 };  // the numbers of Feature's fields

constexpr const char* name_of(FeatureKind kind) {
  switch (kind) {
    case FeatureKind::Bytes: return "bytes";
    case FeatureKind::Floats: return "floats";
    case FeatureKind::Ints: return "integers";
    default: return "no values";
  }
}

// One feature, as spans of the Example's bytes.
struct Feature {
  FeatureKind kind = FeatureKind::None;  // None: the Example lacks the feature, or it has no list
  uint64_t count = 0;                    // of all values
  ByteSpan first;                        // the first value of a list of bytes
  ByteSpan entry;                        // the map entry
  uint64_t first_list = 0;               // number of the first valid list in the entry
};

// Find a feature. Return false if the Example is damaged.
bool find_feature(ByteSpan example, std::string_view name, Feature& found);

// Copy the first `count` values of a feature of Floats or Ints; there must be as many.
void copy_values(const Feature& feature, float* to, uint64_t count);
void copy_values(const Feature& feature, int64_t* to, uint64_t count);

}  // namespace stoker
