// SPDX-License-Identifier: Apache-2.0
// Serialization of an index's entries. The caller must ensure that the bytes are those that were packed; `unpack`
// checks as far as the host relies on them, and the device checks every entry in any case.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <stdexcept>

#include "gpu_kernels/jpeg_index.hpp"

namespace stoker::jpeg::gpu {

namespace {

struct Record {
  uint64_t key, name;
  uint32_t size, seed, header_bytes;
  uint32_t more_bytes;  // additional bytes of the entry compared with one with the fewest pieces
  Outline outline;
};
static_assert(sizeof(Record) % 8 == 0);

size_t padded(size_t bytes) { return (bytes + 7) / 8 * 8; }

constexpr uint64_t kEntryBytes = IndexEntry::bytes_of(1), kPieceBytes = IndexEntry::bytes_of(2) - kEntryBytes;

struct Packed {
  Record record;
  std::string_view entry, header;
  uint32_t pieces() const { return static_cast<uint32_t>(record.more_bytes / kPieceBytes + 1); }
};

// The part of the entry that the seal covers.
bool possible(const Packed& packed) {
  const Record& r = packed.record;
  const Outline& outline = r.outline;
  uint32_t bits = 0, pieces = 0;
  std::memcpy(&bits, packed.entry.data() + offsetof(IndexEntry, bits), sizeof bits);
  std::memcpy(&pieces, packed.entry.data() + offsetof(IndexEntry, pieces), sizeof pieces);
  if (pieces != packed.pieces() || (outline.chunks == 0 && pieces != 1)) return false;
  if (r.header_bytes == 0 || r.header_bytes >= r.size || outline.chunks > kIndexChunks) return false;
  if (outline.bits < 32 || outline.bits % 32 || outline.bits != uint64_t{bits} * pieces) return false;
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

std::string_view taken(std::string_view& bytes, size_t count) {
  if (bytes.size() < padded(count)) throw std::invalid_argument("an entry is cut short");
  const std::string_view front = bytes.substr(0, count);
  bytes.remove_prefix(padded(count));
  return front;
}

std::vector<Packed> taken_apart(std::string_view bytes) {
  std::vector<Packed> all;
  while (!bytes.empty()) {
    Packed& p = all.emplace_back();
    std::memcpy(&p.record, taken(bytes, sizeof p.record).data(), sizeof p.record);
    const uint32_t more = p.record.more_bytes;
    if (more % kPieceBytes || more > (kIndexPieces - 1) * kPieceBytes)
      throw std::invalid_argument("an entry is impossible");
    p.entry = taken(bytes, kEntryBytes + more);
    p.header = taken(bytes, p.record.header_bytes);
    if (!possible(p)) throw std::invalid_argument("an entry is impossible");
  }
  return all;
}

}  // namespace

size_t Index::record_bytes() { return sizeof(Record) + kEntryBytes; }

std::string Index::packed(size_t begin, size_t end, const FromDevice& from_device) const {
  std::string out, held;  // `held` is for entries of slots that are contiguous in memory
  const std::vector<Entry*> all = entries(begin, end);
  std::vector<uint8_t> complete(all.size());  // copied before reading the entries
  for (size_t i = 0; i < all.size(); ++i) complete[i] = usable(*all[i]).use == Use::Read;
  const auto bytes_of = [&](size_t i) { return IndexEntry::bytes_of(all[i]->file.pieces); };
  for (size_t i = 0, contiguous_end = 0, from = 0; i < all.size(); from += bytes_of(i++)) {
    if (i >= contiguous_end) {
      const stoker::gpu::Address at = all[i]->file.entry;
      size_t bytes = 0;
      for (contiguous_end = i; contiguous_end < all.size() && all[contiguous_end]->file.entry == at + bytes;
           ++contiguous_end)
        bytes += bytes_of(contiguous_end);
      held.resize(bytes);
      from = 0;
      from_device(reinterpret_cast<uint8_t*>(held.data()), at, bytes);
    }
    if (!complete[i]) continue;
    const KnownFile& file = all[i]->file;
    const Record record = {file.key,
                           file.name,
                           file.size,
                           file.seed,
                           static_cast<uint32_t>(file.header.size()),
                           static_cast<uint32_t>(bytes_of(i) - kEntryBytes),
                           file.outline};
    append(out, &record, sizeof record);
    append(out, held.data() + from, bytes_of(i));
    append(out, file.header.data(), file.header.size());
  }
  return out;
}

size_t Index::unpack(std::string_view bytes, const ToDevice& to_device) {
  const std::vector<Packed> all = taken_apart(bytes);  // the whole format is checked before any entry is used
  std::string held;                                    // bytes of entries that are contiguous in memory, to be copied
  std::vector<Entry*> sent;                            // their entries
  size_t added = 0;
  const auto send = [&] {
    if (held.empty()) return;
    to_device(sent.front()->file.entry, reinterpret_cast<const uint8_t*>(held.data()), held.size());
    for (Entry* entry : sent) entry->state.store(State::Complete, std::memory_order_release);
    complete_ += sent.size();
    added += sent.size();
    held.clear();
    sent.clear();
  };
  for (const Packed& p : all) {
    if (full_) break;
    const Record& r = p.record;
    const auto [known, is_new] = insert(described({r.key, r.name, p.header, r.size, false}, r.seed, p.pieces()));
    if (!is_new) continue;
    known->file.outline = r.outline;
    if (!sent.empty() && known->file.entry != sent.front()->file.entry + held.size()) send();
    held += p.entry;
    sent.push_back(known);
  }
  send();
  return added;
}

}  // namespace stoker::jpeg::gpu
