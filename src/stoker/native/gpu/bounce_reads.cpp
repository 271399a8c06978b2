// SPDX-License-Identifier: Apache-2.0
#include "gpu/bounce_reads.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/scratch.hpp"
#include "io/files.hpp"

namespace stoker::gpu {

namespace {

using Clock = std::chrono::steady_clock;

uint64_t since(Clock::time_point start) {
  return static_cast<uint64_t>(std::chrono::nanoseconds(Clock::now() - start).count());
}

}  // namespace

BounceReads::BounceReads(std::shared_ptr<Device> device, size_t piece, int buffers)
    : device_(std::move(device)), piece_(piece), buffers_(static_cast<size_t>(buffers)) {
  if (piece < kLeastPiece || piece > kMostPiece)
    throw std::invalid_argument("expected buffers of 64 KiB to 64 MiB, got " + std::to_string(piece) + " bytes");
  if (buffers < 1 || buffers > kMostBuffers)
    throw std::invalid_argument("expected 1 to 8 buffers, got " + std::to_string(buffers));
}

BounceReads::~BounceReads() {
  const Visit visit(device_.get(), std::nothrow);
  for (const auto& lane : free_) drop(*lane);
}

std::unique_ptr<BounceReads::Lane> BounceReads::take() {
  {
    std::lock_guard<std::mutex> hold(mutex_);
    if (!free_.empty()) {
      auto lane = std::move(free_.back());
      free_.pop_back();
      return lane;
    }
    free_.reserve(lanes_ + 1);  // so that `give` never allocates
    ++lanes_;
  }
  auto lane = std::make_unique<Lane>();
  try {
    lane->buffers.resize(buffers_);
    lane->stream = device_->make_stream(Priority::Least);
    for (Buffer& buffer : lane->buffers) {
      buffer.at = device_->pin(piece_);
      count_allocation(piece_);
    }
  } catch (...) {
    drop(*lane);
    std::lock_guard<std::mutex> hold(mutex_);
    --lanes_;
    throw;
  }
  return lane;
}

void BounceReads::give(std::unique_ptr<Lane> lane) noexcept {
  std::lock_guard<std::mutex> hold(mutex_);
  free_.push_back(std::move(lane));
}

void BounceReads::settle(Lane& lane) noexcept {
  try {
    if (lane.stream) device_->finish(*lane.stream);
  } catch (const std::exception&) {
    // The device has failed as a whole, so it copies nothing any more.
  }
  for (Buffer& buffer : lane.buffers)
    if (const auto copied = std::exchange(buffer.copied, std::nullopt)) device_->forget(*copied);
}

void BounceReads::drop(Lane& lane) noexcept {
  settle(lane);
  for (const Buffer& buffer : lane.buffers)
    if (buffer.at) device_->unpin(buffer.at);
  if (lane.stream) device_->drop_stream(*lane.stream);
}

uint8_t* BounceReads::next_buffer(Lane& lane, Times& times) {
  Buffer& buffer = lane.buffers[lane.turn];
  if (!buffer.copied) return buffer.at;
  if (!device_->passed(*buffer.copied)) {
    const auto start = Clock::now();
    device_->await(*buffer.copied);
    times.await_ns += since(start);
  }
  device_->forget(*std::exchange(buffer.copied, std::nullopt));
  return buffer.at;
}

// A read, which several threads may share.
struct BounceReads::Request {
  int descriptor;
  uint64_t offset;
  Address to;
  size_t bytes, pieces;
  std::atomic<size_t> next{0};
  std::atomic<bool> has_failed{false};
  std::mutex mutex;
  std::vector<Event> copied;  // of all threads
  std::exception_ptr error;   // the first one
  Times times;
};

bool BounceReads::read_piece(Request& request, size_t piece, Lane& lane, Times& times) {
  uint8_t* const buffer = next_buffer(lane, times);
  const size_t begin = piece * piece_, count = std::min(piece_, request.bytes - begin);
  const auto reading = Clock::now();
  const int64_t got = read_file(request.descriptor, request.offset + begin, buffer, count);
  times.file_ns += since(reading);
  if (got != static_cast<int64_t>(count)) return false;
  device_->copy_in_on(*lane.stream, request.to + begin, buffer, count);
  lane.buffers[lane.turn].copied = device_->record_on(*lane.stream);
  lane.turn = (lane.turn + 1) % buffers_;
  return true;
}

void BounceReads::read_pieces(Request& request) {
  const auto start = Clock::now();
  size_t piece = request.next.fetch_add(1);
  if (piece >= request.pieces || request.has_failed) return;
  Times times;
  std::unique_ptr<Lane> lane;
  try {
    device_->enter();
    lane = take();
    bool good = true;
    for (; good && piece < request.pieces && !request.has_failed; piece = request.next.fetch_add(1))
      good = read_piece(request, piece, *lane, times);
    if (!good) {
      request.has_failed = true;
      settle(*lane);
    }
    std::lock_guard<std::mutex> hold(request.mutex);
    if (good) {
      request.copied.reserve(request.copied.size() + 1);
      request.copied.push_back(device_->record_on(*lane->stream));
    }
    request.times.ns += since(start);
    request.times.file_ns += times.file_ns;
    request.times.await_ns += times.await_ns;
  } catch (...) {
    request.has_failed = true;
    if (lane) settle(*lane);
    std::lock_guard<std::mutex> hold(request.mutex);
    if (!request.error) request.error = std::current_exception();
  }
  if (lane) give(std::move(lane));
}

void BounceReads::await_all(const std::vector<Event>& events) noexcept {
  for (const Event event : events) {
    try {
      wait_and_forget(*device_, event);
    } catch (const std::exception&) {
      // The device has failed as a whole, so it copies nothing any more.
    }
  }
}

std::vector<Event> BounceReads::read(int descriptor, uint64_t offset, Address to, size_t bytes, IdleThreads* others) {
  Request request{descriptor, offset, to, bytes, (bytes + piece_ - 1) / piece_};
  if (others && request.pieces >= kSharedPieces) others->share([&] { read_pieces(request); });
  else read_pieces(request);
  if (request.has_failed) {
    await_all(request.copied);
    if (request.error) std::rethrow_exception(request.error);
    return {};
  }
  std::lock_guard<std::mutex> hold(mutex_);
  ++times_.reads;
  times_.bytes += bytes;
  times_.ns += request.times.ns;
  times_.file_ns += request.times.file_ns;
  times_.await_ns += request.times.await_ns;
  return std::move(request.copied);
}

BounceReads::Times BounceReads::times() const {
  std::lock_guard<std::mutex> hold(mutex_);
  return times_;
}

size_t BounceReads::pinned_bytes() const {
  std::lock_guard<std::mutex> hold(mutex_);
  return lanes_ * buffers_ * piece_;
}

}  // namespace stoker::gpu
