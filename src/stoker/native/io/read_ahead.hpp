// SPDX-License-Identifier: Apache-2.0
// Reading ahead of rows: native threads make the system read the records of later rows into the page cache.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "base/thread.hpp"
#include "io/records.hpp"

namespace stoker {

// Queue of records that rows will read, and the threads that read them ahead. The buffers are the system's page cache:
// nothing else owns bytes, so a record that is dropped costs nothing, and rows read as they always do. Threads do not
// wait for the bytes, but opening a file may wait for its disk, and so may a request if the device's queue is full.
//
// Records that follow each other in a file are left to the system's own reading ahead. That one asks for aligned
// windows, which get large pages. Requests get pages of 4 KiB, and copying these takes longer than it takes to wait for
// a fast disk.
//
// Rows are numbered in the order in which they are delivered. Bytes count as ahead from their request until their row is
// released. Errors are left to the row that reads the record.
//
// The threads never free records: freeing them may wait for a lock of the caller, such as Python's, whose holder may
// wait for this queue. The queue owns all records until it is destroyed.
class ReadAhead {
 public:
  struct Counts {
    uint64_t records = 0, bytes = 0;  // requested; without records that follow the one before them
    uint64_t from_disk = 0;           // records that were not in the page cache
  };

  // Start the threads; throw ThreadStartFailed if one cannot start. At most `max_bytes` bytes, or one record, are ahead.
  ReadAhead(int threads, uint64_t max_bytes);
  ~ReadAhead() { close(); }
  // Queue `samples` of `records`, the rows from `first_row` on. Samples that do not exist are left out.
  void request(std::shared_ptr<const Records> records, std::vector<int64_t> samples, uint64_t first_row);
  // Forget the rows before `row`: they have been delivered.
  void release(uint64_t row);
  // Forget all rows.
  void drop();
  // Stop after the requests in flight. Several threads may call it repeatedly; when it returns, no file is in use.
  void close();
  Counts counts() const;
  // Return the number of records that wait for a thread.
  size_t pending() const;

 private:
  struct Request {
    const Records* records;  // owned by `owned_`
    std::vector<int64_t> samples;
    int64_t before;  // the sample before the first one; -1: none
    uint64_t first_row;
    size_t next = 0;
    uint64_t bytes = 0;
    bool is_released = false;
    uint64_t end_row() const { return first_row + samples.size(); }
  };
  void work();
  bool has_work() const { return current_ < requests_.size() && bytes_ahead_ < max_bytes_; }
  void forget_first();

  struct Owned {
    std::shared_ptr<const Records> records;
    int64_t last_sample = -1;
  };

  std::vector<Owned> owned_;  // each once
  const uint64_t max_bytes_;
  mutable std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<std::shared_ptr<Request>> requests_;  // oldest first
  size_t current_ = 0;                             // number of the first one with records that wait
  uint64_t bytes_ahead_ = 0;
  Counts counts_;
  bool is_closed_ = false;
  ThreadGroup threads_;
};

}  // namespace stoker
