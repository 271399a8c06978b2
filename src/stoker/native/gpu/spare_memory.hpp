// SPDX-License-Identifier: Apache-2.0
// Spare memory of a device: pieces that no work uses, for later requests of the same size. The driver takes up to a
// millisecond to page-lock or map a few megabytes, and waits for the whole device before it unmaps them.
#pragma once
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace stoker::gpu {

// Memory at addresses of type T. Thread-safe.
template <class T>
class SpareMemory {
 public:
  static constexpr size_t kLargest = size_t{4} << 20;  // larger pieces are not kept
  static constexpr size_t kMost = size_t{32} << 20;    // all pieces together

  // Return a piece of exactly this size, if there is one.
  std::optional<T> take(size_t bytes) {
    if (bytes > kLargest) return std::nullopt;
    std::lock_guard<std::mutex> hold(mutex_);
    const auto found =
        std::find_if(pieces_.rbegin(), pieces_.rend(), [bytes](const Piece& p) { return p.bytes == bytes; });
    if (found == pieces_.rend()) return std::nullopt;
    const T memory = found->memory;
    pieces_.erase(std::next(found).base());
    bytes_ -= bytes;
    return memory;
  }

  // Keep a piece, and call `release` for pieces that are not kept: this one if it is large, else the oldest ones.
  template <class F>
  void put(T memory, size_t bytes, F release) noexcept {
    std::vector<Piece> surplus;
    try {
      if (bytes > kLargest) return release(memory);
      std::lock_guard<std::mutex> hold(mutex_);
      surplus.reserve(pieces_.size());
      pieces_.push_back({memory, bytes});
      bytes_ += bytes;
      auto kept = pieces_.begin();
      for (; bytes_ > kMost; ++kept) bytes_ -= kept->bytes;
      surplus.assign(pieces_.begin(), kept);
      pieces_.erase(pieces_.begin(), kept);
    } catch (const std::bad_alloc&) { return release(memory); }
    for (const Piece& piece : surplus) release(piece.memory);
  }

  // Call `release` for all pieces. Return false if there were none.
  template <class F>
  bool clear(F release) noexcept {
    std::vector<Piece> all;
    {
      std::lock_guard<std::mutex> hold(mutex_);
      all.swap(pieces_);
      bytes_ = 0;
    }
    for (const Piece& piece : all) release(piece.memory);
    return !all.empty();
  }

 private:
  struct Piece {
    T memory;
    size_t bytes;
  };
  std::mutex mutex_;
  std::vector<Piece> pieces_;  // the most recently used one at the end
  size_t bytes_ = 0;
};

}  // namespace stoker::gpu
