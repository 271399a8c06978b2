// SPDX-License-Identifier: Apache-2.0
// Records of a manifest whose shards are remote objects, in the cache of their blocks.
#pragma once
#include <memory>
#include <string>

#include "io/kept_blocks.hpp"
#include "io/manifest.hpp"

namespace stoker {

// One component of all samples of a manifest. The name of a shard's folder in the cache is computed when a row reads it,
// since a million names would take the memory that a manifest saves.
class KeptShards final : public KeptBlocks::Source {
 public:
  // `folder` is that of the cache, with a slash.
  KeptShards(std::shared_ptr<const ManifestTable> table, std::string folder)
      : table_(std::move(table)), folder_(std::move(folder)) {}
  size_t size() const override { return table_->size(); }
  bool find(size_t i, Range& range, KeptBlocks::Object& object, std::string& error) const override;
  bool is_in_memory() const override { return false; }

 private:
  const std::shared_ptr<const ManifestTable> table_;
  const std::string folder_;
};

}  // namespace stoker
