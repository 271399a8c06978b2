// SPDX-License-Identifier: Apache-2.0
#include "io/descriptors.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>

namespace stoker {

namespace {

// A quarter of the process's limit: other tables, sockets and the caller's own files need descriptors, too.
size_t max_descriptors() {
  struct rlimit limit;
  const rlim_t may = ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 1024;
  return static_cast<size_t>(std::clamp<rlim_t>(may / 4, 8, 4096));
}

}  // namespace

Descriptors::Descriptors() : max_open_(max_descriptors()) {}

Descriptors::Shared Descriptors::find_open(uint32_t file) const {
  const std::lock_guard<std::mutex> hold(mutex_);
  const auto at = open_.find(file);
  return at == open_.end() ? nullptr : at->second;
}

Descriptors::Shared Descriptors::open(uint32_t file, const std::string& path, std::string& error,
                                      const Accepts& accepts) {
  OpenFile opened(path);
  if (!opened && (errno == EMFILE || errno == ENFILE) && evict_all()) opened = OpenFile(path);
  uint64_t size = 0;
  if (!is_regular(opened, path, size, error)) return nullptr;
  if (accepts && !accepts(opened, path, error)) return nullptr;
  return keep(file, std::make_shared<const Opened>(Opened{std::move(opened), size}));
}

Descriptors::Shared Descriptors::keep(uint32_t file, Shared opened) {
  Shared oldest;  // closed after the lock is released
  const std::lock_guard<std::mutex> hold(mutex_);
  if (closed_) return opened;
  const auto [at, is_new] = open_.try_emplace(file, opened);
  if (!is_new) return at->second;  // another thread opened it first
  order_.push_back(file);
  if (order_.size() > max_open_) {
    const auto first = open_.find(order_.front());
    oldest = std::move(first->second);
    open_.erase(first);
    order_.pop_front();
  }
  return opened;
}

bool Descriptors::evict_all() {
  std::unordered_map<uint32_t, Shared> closing;
  const std::lock_guard<std::mutex> hold(mutex_);
  closing.swap(open_);
  order_.clear();
  return !closing.empty();
}

void Descriptors::close() {
  std::unordered_map<uint32_t, Shared> closing;
  const std::lock_guard<std::mutex> hold(mutex_);
  closed_ = true;
  closing.swap(open_);
  order_.clear();
}

size_t Descriptors::size() const {
  const std::lock_guard<std::mutex> hold(mutex_);
  return open_.size();
}

}  // namespace stoker
