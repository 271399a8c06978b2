// SPDX-License-Identifier: Apache-2.0
// What the first decoding of a file finds out and later ones need not: in which state each subsequence of its data
// begins, with how many blocks before it and which DC predictions. Entries are written and read on the device alone;
// the host knows files by a hash of their headers and of parts of their data, and which entries are complete.
//
// Of a file that is asked for by name again, the host also knows where in it each part of the picture is, so that no
// more than a window's part has to be read.
//
// An entry is only believed where it is sealed as it was when it was written, for a file with this header, and the data, or
// the part that was read, have the checksum that it was written for; and what is decoded with it must pass through the
// states that it names. Else the file is decoded without one: an entry that is damaged, or another file's, costs time.
// Against one that somebody makes on purpose, with the seal that belongs to it, nothing here helps.
#pragma once
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cuda/jpeg_index.cuh"
#include "gpu.hpp"

namespace stoker::jpeg::gpu {

// What the host keeps of a file with a complete entry.
struct KnownFile {
  uint64_t key = 0, name = 0;
  uint32_t slot = 0;
  uint32_t pieces = 1;  // of a subsequence, in the entry
  stoker::gpu::Address entry = 0;
  std::string header;  // all before the entropy-coded data
  uint32_t size = 0;   // of the file
  uint32_t seed = 0;   // of the entry's checksums
  Outline outline = {};
  mutable std::atomic<bool> accepted{false};  // the decoder has nothing against a file with this header
};

class Index {
 public:
  using Allocate = std::function<stoker::gpu::Address(size_t)>;  // throws std::bad_alloc
  using Release = std::function<void(stoker::gpu::Address)>;

  // Takes up to `limit_bytes` of the device's memory, as files come. What finds no room is decoded without. Entries of files
  // of more than `piece_bytes` have more pieces.
  Index(size_t limit_bytes, Allocate allocate, Release release, size_t piece_bytes = kIndexPieceBytes);
  ~Index();
  Index(const Index&) = delete;
  Index& operator=(const Index&) = delete;

  // What a file's entry is good for now.
  enum class Use : uint8_t { None, Write, Read };
  struct Found {
    Use use = Use::None;
    const KnownFile* file = nullptr;  // lives as long as the index; of Write without an outline
  };
  // What a file is known by: the header that its `size` bytes begin with, and the hash of its name, for `named`; 0: it has
  // none. In `segments`, its entry has a piece for each subsequence.
  struct Sought {
    uint64_t key, name;
    std::string_view header;
    size_t size;
    bool segments;
  };
  Found find(const Sought& file);
  // The file that had this name, and had not been written to, when it was last decoded, if it is known and can be read in
  // parts; else null. Whether it still is that file is to be seen from its header, and from checksums.
  const KnownFile* named(uint64_t name) const;

  // The batch with an entry to be written has finished: it was, or (null) it was not.
  void written(uint32_t slot, const Outline* outline);
  // An entry was read, and was of use or was not.
  void read(uint32_t slot, bool right, bool part);

  // Complete entries of the slots from `begin` to `end`, as bytes; and such bytes as entries, of files that are not known,
  // while there is room: how many. Throws std::invalid_argument for bytes that cannot be entries.
  using FromDevice = std::function<void(uint8_t*, stoker::gpu::Address, size_t)>;
  using ToDevice = std::function<void(stoker::gpu::Address, const uint8_t*, size_t)>;
  std::string packed(size_t begin, size_t end, const FromDevice& from_device) const;
  size_t unpack(std::string_view bytes, const ToDevice& to_device);
  static size_t record_bytes();  // of an entry of the fewest pieces in them, without its header
  size_t slots() const;          // that are in use
  const KnownFile& file(size_t slot) const;

  size_t files() const;         // with complete entries
  size_t bytes() const;         // of the device's memory
  int64_t rows_read() const { return rows_read_; }        // that were decoded with an entry
  int64_t rows_in_part() const { return rows_in_part_; }  // of them, rows whose files were read in part
  int64_t rows_wrong() const { return rows_wrong_; }      // that had one that was of no use

 private:
  enum class State : uint8_t { Writing, Complete, Dropped };
  struct Entry {
    KnownFile file;  // `outline` is not read before the entry is complete, nothing of it changes afterwards
    std::atomic<State> state{State::Writing};
  };
  // Worker threads that meet files at the same time seldom want the same part of a table.
  struct Table {
    struct alignas(64) Part {
      mutable std::mutex mutex;
      std::unordered_map<uint64_t, Entry*> entries;
    };
    std::array<Part, 64> parts;
    Part& of(uint64_t hash) { return parts[hash >> 58]; }
    const Part& of(uint64_t hash) const { return parts[hash >> 58]; }
  };
  static Found usable(const Entry& entry);
  uint32_t seed_of(uint64_t key) const;
  static std::unique_ptr<Entry> described(const Sought& file, uint32_t seed, uint32_t pieces);
  Entry* take_slot(std::unique_ptr<Entry> entry);  // null: there is no room
  bool make_room(size_t bytes);                    // at the end of the last chunk; with `slots_mutex_` held
  // The entry of a key, which is the given one if there was none; null if there is no room.
  std::pair<Entry*, bool> insert(std::unique_ptr<Entry> entry);
  void give_name(uint64_t name, Entry* entry);
  Entry& at(uint32_t slot) const;
  std::vector<Entry*> entries(size_t begin, size_t end) const;

  const size_t limit_bytes_, piece_bytes_;
  const uint32_t seed_;
  const Allocate allocate_;
  const Release release_;
  Table keys_, names_;
  mutable std::mutex slots_mutex_;  // taken after one of a table's
  std::vector<std::unique_ptr<Entry>> slots_;
  struct Chunk {
    stoker::gpu::Address at;
    size_t bytes, used;
  };
  std::vector<Chunk> chunks_;
  size_t bytes_ = 0;  // of them
  std::atomic<bool> full_{false};
  std::atomic<size_t> complete_{0};
  std::atomic<int64_t> rows_read_{0}, rows_in_part_{0}, rows_wrong_{0};
};

// What a file is known by: its size, header and some of its data.
uint64_t file_key(const uint8_t* data, size_t size, size_t header_bytes);
// `state`: OpenFile::state; what was known of a file is not known by its name any more when it was written to. Never 0.
uint64_t name_key(std::string_view path, uint64_t state);

}  // namespace stoker::jpeg::gpu
