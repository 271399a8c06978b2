// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "base/float_mode.hpp"
#include "recipe/recipe.hpp"

namespace stoker::recipe {

void materialize_all(RecipeBatch& batch) {
  const FloatMode mode;
  static thread_local ThreadScratch scratch;
  for (int64_t i = batch.next.fetch_add(1); i < batch.count(); i = batch.next.fetch_add(1)) {
    materialize(batch, i, scratch);
    batch.remaining.fetch_sub(1);
  }
}

struct WorkerPool::State {
  int threads = 1;
  int active = 1;   // threads that may run recipes at a time
  int running = 0;  // threads that run a recipe
  int pid = 0;
  bool closed = false;
  std::mutex mutex;
  std::condition_variable work_ready, batch_done;
  std::deque<std::shared_ptr<RecipeBatch>> batches;  // with recipes that no thread has taken yet
  ThreadGroup workers;
};

WorkerPool::WorkerPool(int threads) : state_(new State) {
  state_->threads = state_->active = std::max(1, threads);
  state_->pid = ::getpid();
}

WorkerPool::~WorkerPool() {
  if (state_->pid != ::getpid()) return;
  close();
  delete state_;
}

void WorkerPool::work(State* state) {
  const FloatMode mode;
  ThreadScratch scratch;
  std::unique_lock<std::mutex> lock(state->mutex);
  for (;;) {
    state->work_ready.wait(
        lock, [&] { return state->closed || (!state->batches.empty() && state->running < state->active); });
    if (state->closed) return;
    const std::shared_ptr<RecipeBatch> batch = state->batches.front();
    const int64_t index = batch->next.fetch_add(1);
    if (index + 1 >= batch->count()) state->batches.pop_front();
    if (index >= batch->count()) continue;
    ++state->running;
    lock.unlock();
    const auto begin = std::chrono::steady_clock::now();
    materialize(*batch, index, scratch);
    const std::chrono::nanoseconds spent = std::chrono::steady_clock::now() - begin;
    batch->thread_ns.fetch_add(spent.count());
    const bool last = batch->remaining.fetch_sub(1) == 1;
    lock.lock();
    --state->running;
    if (last) state->batch_done.notify_all();
  }
}

void WorkerPool::submit(std::shared_ptr<RecipeBatch> batch) {
  if (batch->count() == 0) return;
  const std::lock_guard<std::mutex> lock(state_->mutex);
  if (state_->closed) return;
  // Start threads first: if they cannot start, the caller may free the batch's memory, so no thread may know the batch.
  if (state_->workers.empty()) state_->workers.start(state_->threads, [state = state_](int) { work(state); });
  state_->batches.push_back(std::move(batch));
  state_->work_ready.notify_all();
}

void WorkerPool::prioritize(const std::shared_ptr<RecipeBatch>& batch) {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  const auto at = std::find(state_->batches.begin(), state_->batches.end(), batch);
  if (at == state_->batches.end() || at == state_->batches.begin()) return;
  state_->batches.erase(at);
  state_->batches.push_front(batch);
}

bool WorkerPool::wait(const std::shared_ptr<RecipeBatch>& batch, double timeout_s) {
  std::unique_lock<std::mutex> lock(state_->mutex);
  const auto over = [&] { return batch->remaining.load() == 0 || state_->closed; };
  return state_->batch_done.wait_for(lock, std::chrono::duration<double>(timeout_s), over);
}

void WorkerPool::set_active(int threads) {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  state_->active = std::clamp(threads, 1, state_->threads);
  state_->work_ready.notify_all();
}

void WorkerPool::close() {
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->closed = true;
    state_->batches.clear();
    state_->work_ready.notify_all();
    state_->batch_done.notify_all();
  }
  state_->workers.join();
}

}  // namespace stoker::recipe
