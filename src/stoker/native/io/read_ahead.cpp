// SPDX-License-Identifier: Apache-2.0
#include "io/read_ahead.hpp"

#include <algorithm>
#include <utility>

namespace stoker {

ReadAhead::ReadAhead(int threads, uint64_t max_bytes) : max_bytes_(max_bytes) {
  threads_.start(threads, [this](int) { work(); });
}

void ReadAhead::request(std::shared_ptr<const Records> records, std::vector<int64_t> samples, uint64_t first_row) {
  if (samples.empty()) return;
  const int64_t last = samples.back();
  auto request = std::make_shared<Request>(Request{records.get(), std::move(samples), -1, first_row});
  const std::lock_guard<std::mutex> hold(mutex_);
  auto owned = std::find_if(owned_.begin(), owned_.end(), [&](const Owned& o) { return o.records == records; });
  if (owned == owned_.end()) owned = owned_.insert(owned, Owned{std::move(records)});
  request->before = std::exchange(owned->last_sample, last);
  if (is_closed_) return;
  requests_.push_back(std::move(request));
  ready_.notify_one();
}

// Requires the lock.
void ReadAhead::forget_first() {
  Request& first = *requests_.front();
  bytes_ahead_ -= first.bytes;
  first.is_released = true;
  requests_.pop_front();
  if (current_ > 0) --current_;
}

void ReadAhead::release(uint64_t row) {
  const std::lock_guard<std::mutex> hold(mutex_);
  while (!requests_.empty() && requests_.front()->end_row() <= row) forget_first();
  ready_.notify_one();
}

void ReadAhead::drop() {
  const std::lock_guard<std::mutex> hold(mutex_);
  while (!requests_.empty()) forget_first();
}

void ReadAhead::close() {
  {
    const std::lock_guard<std::mutex> hold(mutex_);
    is_closed_ = true;
    while (!requests_.empty()) forget_first();
    ready_.notify_all();
  }
  threads_.join();
}

ReadAhead::Counts ReadAhead::counts() const {
  const std::lock_guard<std::mutex> hold(mutex_);
  return counts_;
}

size_t ReadAhead::pending() const {
  const std::lock_guard<std::mutex> hold(mutex_);
  size_t waiting = 0;
  for (size_t i = current_; i < requests_.size(); ++i) waiting += requests_[i]->samples.size() - requests_[i]->next;
  return waiting;
}

void ReadAhead::work() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    ready_.wait(lock, [this] { return is_closed_ || has_work(); });
    if (is_closed_) return;
    ready_.notify_one();  // each thread wakes the next one, so that no more wake up than there is work for
    while (!is_closed_ && has_work()) {
      const std::shared_ptr<Request> request = requests_[current_];
      const size_t at = request->next++;
      const int64_t before = at > 0 ? request->samples[at - 1] : request->before, sample = request->samples[at];
      if (request->next == request->samples.size()) ++current_;
      lock.unlock();
      ReadAheadOutcome outcome;
      bool follows = false;
      const Records& records = *request->records;
      const auto exists = [&](int64_t s) { return s >= 0 && static_cast<uint64_t>(s) < records.size(); };
      if (exists(sample)) {
        try {
          follows = exists(before) && records.follows(static_cast<size_t>(before), static_cast<size_t>(sample));
          if (!follows) outcome = records.read_ahead(static_cast<size_t>(sample));
        } catch (const std::exception&) {  // the row meets the failure again and reports it
          outcome = {};
        }
      }
      lock.lock();
      if (follows) continue;
      ++counts_.records;
      counts_.bytes += outcome.bytes;
      counts_.from_disk += !outcome.is_cached;
      if (request->is_released) continue;
      request->bytes += outcome.bytes;
      bytes_ahead_ += outcome.bytes;
    }
  }
}

}  // namespace stoker
