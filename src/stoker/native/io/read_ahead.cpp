// SPDX-License-Identifier: Apache-2.0
#include "io/read_ahead.hpp"

#include <algorithm>
#include <utility>

namespace stoker {

ReadAhead::ReadAhead(int threads, uint64_t max_bytes) : max_bytes_(max_bytes) {
  threads_.start(threads, [this](int) { work(); });
}

void ReadAhead::request(std::shared_ptr<const Records> records, std::vector<int64_t> samples, uint64_t first_row) {
  auto request = std::make_shared<Request>(Request{records.get(), std::move(samples), first_row});
  if (request->samples.empty()) return;
  const std::lock_guard<std::mutex> hold(mutex_);
  if (std::find(owned_.begin(), owned_.end(), records) == owned_.end()) owned_.push_back(std::move(records));
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
      const int64_t sample = request->samples[request->next++];
      if (request->next == request->samples.size()) ++current_;
      lock.unlock();
      ReadAheadOutcome outcome;
      if (sample >= 0 && static_cast<uint64_t>(sample) < request->records->size()) {
        try {
          outcome = request->records->read_ahead(static_cast<size_t>(sample));
        } catch (const std::exception&) {  // the row meets the failure again and reports it
          outcome = {};
        }
      }
      lock.lock();
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
