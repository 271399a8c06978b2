// SPDX-License-Identifier: Apache-2.0
// An index's entries as bytes that outlive the process. Whoever keeps them sees to it that they are those that were
// packed; what is unpacked is checked as far as the host relies on it. The device believes no entry in any case.
#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "jpeg_index.hpp"

namespace stoker::jpeg::gpu {

namespace {

struct Record {
  uint64_t key, name;
  uint32_t size, seed, header_bytes, unused;
  Outline outline;
};
static_assert(sizeof(Record) % 8 == 0);

size_t padded(size_t bytes) { return (bytes + 7) / 8 * 8; }

bool possible(const Record& r, const IndexEntry& entry) {
  const Outline& outline = r.outline;
  if (r.header_bytes == 0 || r.header_bytes >= r.size || outline.chunks > kIndexChunks) return false;
  if (outline.bits < 32 || outline.bits % 32 || outline.bits != entry.bits) return false;
  for (uint32_t c = 0; c < outline.chunks; ++c) {
    const uint32_t before = c ? outline.chunk[c - 1].offset : 0;
    if (outline.chunk[c].offset < before || outline.chunk[c].offset >= r.size - r.header_bytes) return false;
  }
  return true;
}

void append(std::string& to, const void* from, size_t bytes) {
  to.append(static_cast<const char*>(from), bytes);
  to.resize(padded(to.size()));
}

struct Packed {
  Record record;
  IndexEntry entry;
  std::string_view header;
};

std::vector<Packed> taken_apart(std::string_view bytes) {
  std::vector<Packed> all;
  while (!bytes.empty()) {
    Packed& p = all.emplace_back();
    if (bytes.size() < sizeof p.record + sizeof p.entry) throw std::invalid_argument("an entry is cut short");
    std::memcpy(&p.record, bytes.data(), sizeof p.record);
    std::memcpy(&p.entry, bytes.data() + sizeof p.record, sizeof p.entry);
    bytes.remove_prefix(sizeof p.record + sizeof p.entry);
    if (bytes.size() < padded(p.record.header_bytes) || !possible(p.record, p.entry))
      throw std::invalid_argument("an entry is impossible");
    p.header = bytes.substr(0, p.record.header_bytes);
    bytes.remove_prefix(padded(p.record.header_bytes));
  }
  return all;
}

}  // namespace

size_t Index::record_bytes() { return sizeof(Record) + IndexEntry::kBytes; }

std::string Index::packed(size_t begin, size_t end, const FromDevice& from_device) const {
  std::string out;
  const std::vector<Entry*> all = entries(begin, end);
  std::vector<uint8_t> complete(all.size());  // before their memory is looked at
  for (size_t i = 0; i < all.size(); ++i) complete[i] = usable(*all[i]).use == Use::Read;
  std::vector<IndexEntry> held;  // of slots that follow each other in memory
  for (size_t i = 0, first = 0; i < all.size(); ++i) {
    if (i >= first + held.size()) {
      first = i;
      const stoker::gpu::Address at = all[i]->file.entry;
      size_t count = 1;
      while (i + count < all.size() && all[i + count]->file.entry == at + count * IndexEntry::kBytes) ++count;
      held.resize(count);
      from_device(reinterpret_cast<uint8_t*>(held.data()), at, count * IndexEntry::kBytes);
    }
    if (!complete[i]) continue;
    const KnownFile& file = all[i]->file;
    const Record record = {file.key,  file.name, file.size, file.seed, static_cast<uint32_t>(file.header.size()), 0,
                           file.outline};
    append(out, &record, sizeof record);
    append(out, &held[i - first], sizeof(IndexEntry));
    append(out, file.header.data(), file.header.size());
  }
  return out;
}

size_t Index::unpack(std::string_view bytes, const ToDevice& to_device) {
  const std::vector<Packed> all = taken_apart(bytes);  // before anything of it is believed
  std::vector<IndexEntry> held;  // that follow each other in memory, on their way
  std::vector<Entry*> sent;      // whose they are
  size_t added = 0;
  const auto send = [&] {
    if (held.empty()) return;
    to_device(sent.front()->file.entry, reinterpret_cast<const uint8_t*>(held.data()),
              held.size() * IndexEntry::kBytes);
    for (Entry* entry : sent) entry->state.store(State::Complete, std::memory_order_release);
    complete_ += sent.size();
    added += sent.size();
    held.clear();
    sent.clear();
  };
  for (const auto& [record, entry, header] : all) {
    if (full_) break;
    const auto [known, is_new] = insert(described(record.key, header, record.size, record.seed, record.name));
    if (!is_new) continue;
    known->file.outline = record.outline;
    if (!sent.empty() && known->file.entry != sent.front()->file.entry + held.size() * IndexEntry::kBytes) send();
    held.push_back(entry);
    sent.push_back(known);
  }
  send();
  return added;
}

}  // namespace stoker::jpeg::gpu
