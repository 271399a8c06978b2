// SPDX-License-Identifier: Apache-2.0
// Index of JPEG files. The first decoding of a file finds the decoder state at the begin of each subsequence of its
// data, the number of blocks before it, and the DC predictions; an index entry keeps them for later decodings. Entries
// are written and read on the device only. The host knows files by a hash of their headers and of parts of their data,
// and which entries are complete.
//
// For a file that is requested by name again, the host also knows which part of the file has which part of the picture,
// so that only the part for a window is read.
//
// The decoder uses an entry only if its seal is intact, it belongs to a file with this header, and the checksum of the
// data (or of the part that was read) is that of the entry; and decoding must pass through the states in the entry.
// Otherwise the file is decoded without the entry: a damaged or mistaken entry costs time. There is no protection
// against a forged entry with a valid seal.
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

#include "gpu/gpu.hpp"
#include "shared/jpeg_index.cuh"

namespace stoker::jpeg::gpu {

// The host's data of a file with a complete entry.
struct KnownFile {
  uint64_t key = 0, name = 0;
  uint32_t slot = 0;
  uint32_t pieces = 1;  // per subsequence
  stoker::gpu::Address entry = 0;
  std::string header;  // everything before the entropy-coded data
  uint32_t size = 0;   // of the file
  uint32_t seed = 0;   // seed of the entry's checksums
  Outline outline = {};
  mutable std::atomic<bool> accepted{false};  // the decoder accepts files with this header
};

class Index {
 public:
  using Allocate = std::function<stoker::gpu::Address(size_t)>;  // throws std::bad_alloc
  using Release = std::function<void(stoker::gpu::Address)>;

  // Take up to `limit_bytes` of device memory, as files come. Files without space are decoded without an entry. Files
  // of more than `piece_bytes` have more pieces.
  Index(size_t limit_bytes, Allocate allocate, Release release, size_t piece_bytes = kIndexPieceBytes);
  ~Index();
  Index(const Index&) = delete;
  Index& operator=(const Index&) = delete;

  // Permitted use of a file's entry.
  enum class Use : uint8_t { None, Write, Read };
  struct Found {
    Use use = Use::None;
    const KnownFile* file = nullptr;  // valid as long as the index; for Write without an outline
  };
  // Key of a file: the header at the begin of its `size` bytes, and the hash of its name for find_by_name (0: it has
  // none). `segments`: its entry has a piece for each subsequence.
  struct FileQuery {
    uint64_t key, name;
    std::string_view header;
    size_t size;
    bool segments;
  };
  Found find(const FileQuery& file);
  // Return the file that had this name, and had not been written to, when it was last decoded, if it is known and can
  // be read in parts; else null. The caller must check the header and the checksums to see whether it still is that
  // file.
  const KnownFile* named(uint64_t name) const;

  // The batch that was to write an entry has finished: with the entry's outline, or null if it was not written.
  void written(uint32_t slot, const Outline* outline);
  // The batch that was to write the entry was abandoned; the next decoding of the file writes it.
  void not_written(uint32_t slot);
  // An entry was read and was valid (`right`) or not.
  void read(uint32_t slot, bool right, bool part);

  // Serialize the complete entries of the slots from `begin` to `end`, and restore entries from such bytes for files
  // that are not known, while there is space; return their number. Throw std::invalid_argument for bytes that cannot be
  // entries.
  using FromDevice = std::function<void(uint8_t*, stoker::gpu::Address, size_t)>;
  using ToDevice = std::function<void(stoker::gpu::Address, const uint8_t*, size_t)>;
  std::string packed(size_t begin, size_t end, const FromDevice& from_device) const;
  size_t unpack(std::string_view bytes, const ToDevice& to_device);
  static size_t record_bytes();  // serialized size of an entry with the fewest pieces, without its header
  size_t slots() const;          // number of slots in use
  const KnownFile& file(size_t slot) const;

  size_t files() const;                                   // number of files with complete entries
  size_t bytes() const;                                   // device memory in use
  int64_t rows_read() const { return rows_read_; }        // rows that were decoded with an entry
  int64_t rows_in_part() const { return rows_in_part_; }  // those whose files were read in part
  int64_t rows_wrong() const { return rows_wrong_; }      // rows whose entry was invalid

 private:
  enum class State : uint8_t { Writing, Unwritten, Complete, Dropped };
  struct Entry {
    KnownFile file;  // `outline` is not read before the entry is complete and does not change afterwards
    std::atomic<State> state{State::Writing};
  };
  // The table is split into parts with a lock each: worker threads that look up files concurrently rarely need the same
  // part.
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
  static std::unique_ptr<Entry> described(const FileQuery& file, uint32_t seed, uint32_t pieces);
  Entry* take_slot(std::unique_ptr<Entry> entry);  // null: there is no space
  bool make_room(size_t bytes);                    // at the end of the last chunk; requires `slots_mutex_`
  // Return the entry of a key, which is the given one if there was none; null if there is no space.
  std::pair<Entry*, bool> insert(std::unique_ptr<Entry> entry);
  void give_name(uint64_t name, Entry* entry);
  Entry& at(uint32_t slot) const;
  std::vector<Entry*> entries(size_t begin, size_t end) const;

  const size_t limit_bytes_, piece_bytes_;
  const uint32_t seed_;
  const Allocate allocate_;
  const Release release_;
  Table keys_, names_;
  mutable std::mutex slots_mutex_;  // taken after the lock of a table's part
  std::vector<std::unique_ptr<Entry>> slots_;
  struct Chunk {
    stoker::gpu::Address at;
    size_t bytes, used;
  };
  std::vector<Chunk> chunks_;
  size_t bytes_ = 0;  // of the chunks
  std::atomic<bool> full_{false};
  std::atomic<size_t> complete_{0};
  std::atomic<int64_t> rows_read_{0}, rows_in_part_{0}, rows_wrong_{0};
};

// Return a hash of a file's size, header and some of its data.
uint64_t file_key(const uint8_t* data, size_t size, size_t header_bytes);
// Return a hash of a path and its OpenFile::state, so that a file that was written to has another key. Never 0.
uint64_t name_key(std::string_view path, uint64_t state);

}  // namespace stoker::jpeg::gpu
