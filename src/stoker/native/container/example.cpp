// SPDX-License-Identifier: Apache-2.0
#include "container/example.hpp"

#include <cstring>

namespace stoker {

namespace {

// Call `use(kind, list)` for every list in a map entry, in order. Return false if the entry is damaged.
template <class F>
bool each_list(ByteSpan entry, F use) {
  WireReader fields(entry);
  while (fields.next()) {
    if (!fields.has_bytes(2)) continue;
    WireReader feature(fields.bytes);
    while (feature.next())
      if (feature.type == WireType::Bytes && feature.field >= 1 && feature.field <= 3)
        use(static_cast<FeatureKind>(feature.field), feature.bytes);
    if (feature.is_damaged()) return false;
  }
  return !fields.is_damaged();
}

// Return the number of packed varints; false in `good` if the last one is incomplete or one is too long.
uint64_t count_varints(ByteSpan packed, bool& good) {
  const uint8_t *at = packed.data, *const end = at + packed.size;
  uint64_t count = 0, value = 0;
  for (; at != end; ++count)
    if (!read_varint(at, end, value)) return good = false, count;
  return count;
}

// Count the values of a list, and add them to the feature. Return false if the list is damaged.
bool add_list(FeatureKind kind, ByteSpan list, Feature& feature) {
  WireReader values(list);
  bool good = true;
  while (values.next()) {
    if (values.field != 1) continue;
    if (kind == FeatureKind::Bytes && values.type == WireType::Bytes) {
      if (feature.count++ == 0) feature.first = values.bytes;
    } else if (kind == FeatureKind::Floats && values.type == WireType::Bytes) {
      good = good && values.bytes.size % 4 == 0;
      feature.count += values.bytes.size / 4;
    } else if (kind == FeatureKind::Ints && values.type == WireType::Bytes) {
      feature.count += count_varints(values.bytes, good);
    } else if (values.type == (kind == FeatureKind::Floats ? WireType::Fixed32 : WireType::Varint)) {
      feature.count += kind != FeatureKind::Bytes ? 1 : 0;
    }
  }
  return good && !values.is_damaged();
}

// Return whether a map entry has this name. Return false in `good` if the entry is damaged.
bool has_name(ByteSpan entry, std::string_view name, bool& good) {
  WireReader fields(entry);
  std::string_view key;
  while (fields.next())
    if (fields.has_bytes(1)) key = {reinterpret_cast<const char*>(fields.bytes.data), fields.bytes.size};
  good = good && !fields.is_damaged();
  return key == name;
}

class FloatsTo {
 public:
  static constexpr FeatureKind kKind = FeatureKind::Floats;
  FloatsTo(float* to, uint64_t count) : to_(to), left_(count) {}
  void packed(ByteSpan values) {
    const uint64_t count = values.size / 4 < left_ ? values.size / 4 : left_;
    if (count > 0) std::memcpy(to_, values.data, 4 * count);  // little-endian, as every processor that Stoker runs on
    to_ += count;
    left_ -= count;
  }
  void single(const WireReader& value) {
    if (value.type == WireType::Fixed32) packed(value.bytes);
  }

 private:
  float* to_;
  uint64_t left_;
};

class IntsTo {
 public:
  static constexpr FeatureKind kKind = FeatureKind::Ints;
  IntsTo(int64_t* to, uint64_t count) : to_(to), left_(count) {}
  void packed(ByteSpan values) {
    const uint8_t *at = values.data, *const end = at + values.size;
    for (uint64_t value = 0; at != end && left_ > 0 && read_varint(at, end, value);) put(value);
  }
  void single(const WireReader& value) {
    if (value.type == WireType::Varint && left_ > 0) put(value.number);
  }

 private:
  void put(uint64_t value) {
    *to_++ = static_cast<int64_t>(value);
    --left_;
  }
  int64_t* to_;
  uint64_t left_;
};

template <class To>
void copy_lists(const Feature& feature, To to) {
  uint64_t number = 0;
  each_list(feature.entry, [&](FeatureKind kind, ByteSpan list) {
    if (number++ < feature.first_list || kind != To::kKind) return;
    WireReader values(list);
    while (values.next()) {
      if (values.field != 1) continue;
      if (values.type == WireType::Bytes) to.packed(values.bytes);
      else to.single(values);
    }
  });
}

}  // namespace

bool find_feature(ByteSpan example, std::string_view name, Feature& found) {
  found = {};
  bool good = true, exists = false;
  WireReader fields(example);
  while (fields.next()) {
    if (!fields.has_bytes(1)) continue;
    WireReader features(fields.bytes);
    while (features.next())
      if (features.has_bytes(1) && has_name(features.bytes, name, good)) {
        found.entry = features.bytes;
        exists = true;
      }
    good = good && !features.is_damaged();
  }
  if (!good || fields.is_damaged()) return false;
  if (!exists) return true;
  uint64_t number = 0;
  good = each_list(found.entry,
                   [&](FeatureKind kind, ByteSpan list) {
                     if (kind != found.kind) {  // a value of another kind replaces the lists so far
                       found.kind = kind;
                       found.count = 0;
                       found.first = {};
                       found.first_list = number;
                     }
                     good = add_list(kind, list, found) && good;
                     ++number;
                   }) &&
         good;
  return good;
}

void copy_values(const Feature& feature, float* to, uint64_t count) { copy_lists(feature, FloatsTo(to, count)); }
void copy_values(const Feature& feature, int64_t* to, uint64_t count) { copy_lists(feature, IntsTo(to, count)); }

}  // namespace stoker
