// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "float_mode.hpp"
#include "recipe.hpp"

namespace stoker::recipe {

void make_all(Order& order) {
  const FloatMode mode;
  static thread_local Bench bench;
  for (int64_t i = order.next.fetch_add(1); i < order.count(); i = order.next.fetch_add(1)) {
    make(order, i, bench);
    order.remaining.fetch_sub(1);
  }
}

struct Crew::State {
  int threads = 1;
  int pid = 0;
  bool closed = false;
  std::mutex mutex;
  std::condition_variable work_ready, order_done;
  std::deque<std::shared_ptr<Order>> orders;  // with recipes that nobody has taken yet
  std::vector<std::thread> workers;
};

Crew::Crew(int threads) : state_(new State) {
  state_->threads = std::max(1, threads);
  state_->pid = ::getpid();
}

Crew::~Crew() {
  if (state_->pid != ::getpid()) return;
  close();
  delete state_;
}

void Crew::work(State* state) {
  const FloatMode mode;
  Bench bench;
  std::unique_lock<std::mutex> lock(state->mutex);
  for (;;) {
    state->work_ready.wait(lock, [&] { return state->closed || !state->orders.empty(); });
    if (state->closed) return;
    const std::shared_ptr<Order> order = state->orders.front();
    const int64_t index = order->next.fetch_add(1);
    if (index + 1 >= order->count()) state->orders.pop_front();
    if (index >= order->count()) continue;
    lock.unlock();
    make(*order, index, bench);
    const bool last = order->remaining.fetch_sub(1) == 1;
    lock.lock();
    if (last) state->order_done.notify_all();
  }
}

void Crew::submit(std::shared_ptr<Order> order) {
  if (order->count() == 0) return;
  const std::lock_guard<std::mutex> lock(state_->mutex);
  if (state_->closed) return;
  state_->orders.push_back(std::move(order));
  while (state_->workers.size() < static_cast<size_t>(state_->threads))
    state_->workers.emplace_back(&Crew::work, state_);
  state_->work_ready.notify_all();
}

void Crew::hasten(const std::shared_ptr<Order>& order) {
  const std::lock_guard<std::mutex> lock(state_->mutex);
  const auto at = std::find(state_->orders.begin(), state_->orders.end(), order);
  if (at == state_->orders.end() || at == state_->orders.begin()) return;
  state_->orders.erase(at);
  state_->orders.push_front(order);
}

bool Crew::wait(const std::shared_ptr<Order>& order, double timeout_s) {
  std::unique_lock<std::mutex> lock(state_->mutex);
  const auto over = [&] { return order->remaining.load() == 0 || state_->closed; };
  return state_->order_done.wait_for(lock, std::chrono::duration<double>(timeout_s), over);
}

void Crew::close() {
  {
    const std::lock_guard<std::mutex> lock(state_->mutex);
    state_->closed = true;
    state_->orders.clear();
    state_->work_ready.notify_all();
    state_->order_done.notify_all();
  }
  for (std::thread& worker : state_->workers) worker.join();
  state_->workers.clear();
}

}  // namespace stoker::recipe
