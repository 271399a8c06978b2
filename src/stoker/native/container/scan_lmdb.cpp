// SPDX-License-Identifier: Apache-2.0
// Values in the data file of an LMDB environment, in the order of their keys.
//
// A file consists of pages. Pages 0 and 1 are the roots of the last two transactions. The values are in the leaves of
// a B+ tree; values that do not fit into a leaf have pages of their own, one after the other.
#include "container/frames.hpp"
#include "container/scan.hpp"

namespace stoker {

namespace {

constexpr uint32_t kMagic = 0xBEEFC0DE, kVersion = 1;
constexpr size_t kHeader = 16, kMeta = 136, kNode = 8;
constexpr uint64_t kNoPage = ~uint64_t{0};
constexpr int kMaxDepth = 32;
enum Flags : uint16_t { kBranch = 0x01, kLeaf = 0x02, kLeaf2 = 0x20 };
enum NodeFlags : uint16_t { kBigData = 0x01, kSubData = 0x02, kDuplicates = 0x04 };
enum TreeFlags : uint16_t { kSortedDuplicates = 0x04 };

struct Meta {
  uint64_t root = kNoPage, entries = 0, transaction = 0;
  uint32_t page_bytes = 0;
  uint16_t flags = 0;
};

bool read_meta(ByteSource& file, uint64_t at, Meta& meta) {
  const uint8_t* const page = file.at(at, kHeader + kMeta);
  if (page == nullptr) return false;
  const uint8_t* const body = page + kHeader;
  if (load_little<uint32_t>(body) != kMagic || load_little<uint32_t>(body + 4) != kVersion) return false;
  meta.page_bytes = load_little<uint32_t>(body + 24);
  meta.flags = load_little<uint16_t>(body + 76);
  meta.entries = load_little<uint64_t>(body + 104);
  meta.root = load_little<uint64_t>(body + 112);
  meta.transaction = load_little<uint64_t>(body + 128);
  const bool is_power = (meta.page_bytes & (meta.page_bytes - 1)) == 0;
  return is_power && meta.page_bytes >= 256 && meta.page_bytes <= 65536;
}

class Walk {
 public:
  Walk(ByteSource& file, const Meta& meta, Spans& values) : file_(file), meta_(meta), values_(values) {}

  Damage run() { return meta_.root == kNoPage || visit(meta_.root, 0) ? Damage{} : Damage{at_, what_}; }

 private:
  bool damaged(uint64_t page, const char* what) {
    at_ = page < file_.size() / meta_.page_bytes ? page * meta_.page_bytes : 0;
    what_ = what;
    return false;
  }

  bool visit(uint64_t number, int depth) {
    const uint64_t bytes = meta_.page_bytes, pages = file_.size() / bytes;
    // A page that is reached twice would make the walk endless.
    if (number >= pages || depth == kMaxDepth || ++visited_ > pages) return damaged(number, "a page is out of range");
    const uint8_t* const page = file_.at(number * bytes, bytes);
    if (page == nullptr) return damaged(number, "a page is out of range");
    const uint16_t flags = load_little<uint16_t>(page + 10), lower = load_little<uint16_t>(page + 12);
    if (lower < kHeader || lower > bytes || lower % 2 != 0) return damaged(number, "a page is damaged");
    const size_t nodes = (lower - kHeader) / 2;
    if (flags & kLeaf2 || !(flags & (kBranch | kLeaf))) return damaged(number, "a page is of another kind");
    if (flags & kBranch) {
      std::vector<uint64_t> children(nodes);  // reading them replaces this page
      for (size_t i = 0; i < nodes; ++i) {
        const uint16_t offset = load_little<uint16_t>(page + kHeader + 2 * i);
        if (offset + kNode > bytes) return damaged(number, "a page is damaged");
        children[i] = load_little<uint16_t>(page + offset) | uint64_t{load_little<uint16_t>(page + offset + 2)} << 16 |
                      uint64_t{load_little<uint16_t>(page + offset + 4)} << 32;
      }
      for (const uint64_t child : children)
        if (!visit(child, depth + 1)) return false;
      return true;
    }
    for (size_t i = 0; i < nodes; ++i)
      if (!add_value(number, page, load_little<uint16_t>(page + kHeader + 2 * i))) return false;
    return true;
  }

  bool add_value(uint64_t number, const uint8_t* page, uint64_t offset) {
    const uint64_t bytes = meta_.page_bytes;
    if (offset + kNode > bytes) return damaged(number, "a page is damaged");
    const uint64_t size = load_little<uint16_t>(page + offset) | uint64_t{load_little<uint16_t>(page + offset + 2)}
                                                                     << 16;
    const uint16_t flags = load_little<uint16_t>(page + offset + 4);
    const uint64_t data = offset + kNode + load_little<uint16_t>(page + offset + 6);
    if (flags & (kSubData | kDuplicates)) return damaged(number, "the database has several values for a key");
    if (!(flags & kBigData)) {
      if (data > bytes || size > bytes - data) return damaged(number, "a page is damaged");
      values_.add(number * bytes + data, size);
      return true;
    }
    if (data + 8 > bytes) return damaged(number, "a page is damaged");
    const uint64_t first = load_little<uint64_t>(page + data);
    if (first >= file_.size() / bytes || size > file_.size() - first * bytes - kHeader)
      return damaged(number, "the file ends within a value");
    values_.add(first * bytes + kHeader, size);
    return true;
  }

  ByteSource& file_;
  const Meta& meta_;
  Spans& values_;
  uint64_t visited_ = 0, at_ = 0;
  const char* what_ = "";
};

}  // namespace

Damage scan_lmdb(ByteSource& file, Spans& values) {
  Meta first, second;
  if (!read_meta(file, 0, first)) return {0, "the file has no header of LMDB"};
  const Meta& meta =
      read_meta(file, first.page_bytes, second) && second.transaction > first.transaction ? second : first;
  if (meta.page_bytes != first.page_bytes) return {0, "the two headers of the file disagree"};
  if (meta.flags & kSortedDuplicates) return {0, "the database has several values for a key"};
  Damage damage = Walk(file, meta, values).run();
  if (damage.what.empty() && values.size() != meta.entries)
    return {0, "the file has another number of values than its header says"};
  return damage;
}

}  // namespace stoker
