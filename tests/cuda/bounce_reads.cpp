// SPDX-License-Identifier: Apache-2.0
// Reads through bounce buffers on a device that copies as late as it may: a buffer that is filled again before its copy
// has passed, or memory that is used before it, has the wrong bytes. Prints faults, and nothing without one.
#include "gpu/bounce_reads.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <thread>

using namespace stoker;
using namespace stoker::gpu;

namespace {

int faults = 0;
void check(bool good, const std::string& what) {
  if (!good) std::printf("%s\n", what.c_str()), ++faults;
}

// Null device whose streams copy only when an event after the copy is awaited.
class LateDevice : public Device {
 public:
  struct Copy {
    Address to;
    const uint8_t* from;
    size_t bytes;
  };
  int number() const override { return -1; }
  std::string name() const override { return "late"; }
  int architecture() const override { return 0; }
  void enter() override {}
  void* current() noexcept override { return nullptr; }
  void leave(void*) noexcept override {}
  uint8_t* pin(size_t bytes) override {
    std::lock_guard<std::mutex> hold(mutex);
    if (pins_left-- == 0) throw std::bad_alloc();
    ++pinned;
    return null_->pin(bytes);
  }
  void unpin(uint8_t* memory) noexcept override {
    std::lock_guard<std::mutex> hold(mutex);
    --pinned;
    null_->unpin(memory);
  }
  Address allocate(size_t bytes) override { return null_->allocate(bytes); }
  void free(Address memory) noexcept override { null_->free(memory); }
  void copy_in(Address to, const uint8_t* from, size_t bytes) override { null_->copy_in(to, from, bytes); }
  Event record_copies() override { return nullptr; }
  WorkStream next_work_stream() override { return 0; }
  void await_on(WorkStream, Event) override {}
  void send(WorkStream, Address to, const uint8_t* from, size_t bytes) override { copy_in(to, from, bytes); }
  void copy_out(WorkStream s, uint8_t* to, Address from, size_t bytes) override { null_->copy_out(s, to, from, bytes); }
  void move(WorkStream s, Address to, Address from, size_t bytes) override { null_->move(s, to, from, bytes); }
  void launch(WorkStream, const Launch&) override {}
  Event record(WorkStream) override { return nullptr; }
  bool passed(Event event) override {
    std::lock_guard<std::mutex> hold(mutex);
    return passed_.count(event) > 0;
  }
  void await(Event event) override {
    std::lock_guard<std::mutex> hold(mutex);
    const auto [stream, count] = events_.at(event);
    run(stream, count);
    passed_.insert(event);
    ++waits;
  }
  void forget(Event event) noexcept override {
    std::lock_guard<std::mutex> hold(mutex);
    check(events_.erase(event) == 1, "an event is released twice");
  }
  Event tick(WorkStream) override { return nullptr; }
  double elapsed_ns(Event, Event) override { return 0; }
  void forget_tick(Event) noexcept override {}
  void follow(WorkStream, uintptr_t) override {}
  void drain(WorkStream) noexcept override {}
  uintptr_t stream_of(WorkStream) override { return 0; }
  void fork(WorkStream, uintptr_t) override {}
  uintptr_t make_stream(gpu::Priority) override {
    std::lock_guard<std::mutex> hold(mutex);
    ++streams;
    return ++number_;
  }
  void finish(uintptr_t stream) override {
    std::lock_guard<std::mutex> hold(mutex);
    run(stream, issued_[stream]);
  }
  void drop_stream(uintptr_t stream) noexcept override {
    std::lock_guard<std::mutex> hold(mutex);
    check(copies_[stream].empty(), "a stream with copies in flight is dropped");
    --streams;
  }
  void launch_on(uintptr_t, const Launch&) override {}
  void copy_in_on(uintptr_t stream, Address to, const uint8_t* from, size_t bytes) override {
    std::lock_guard<std::mutex> hold(mutex);
    if (copies_left-- == 0) throw DeviceFailure("no more copies");
    copies_[stream].push_back({to, from, bytes});
    ++issued_[stream];
  }
  Event record_on(uintptr_t stream) override {
    std::lock_guard<std::mutex> hold(mutex);
    const Event event = reinterpret_cast<Event>(++number_);
    events_[event] = {stream, issued_[stream]};
    return event;
  }
  uintptr_t order_stream() override { return 0; }
  void order_after(uintptr_t) override {}
  std::shared_ptr<Module> load(const void* image, size_t bytes, const std::string& name) override {
    return null_->load(image, bytes, name);
  }
  uint64_t free_bytes() override { return null_->free_bytes(); }
  size_t events() {
    std::lock_guard<std::mutex> hold(mutex);
    return events_.size();
  }
  size_t in_flight() {
    std::lock_guard<std::mutex> hold(mutex);
    size_t all = 0;
    for (const auto& [stream, copies] : copies_) all += copies.size();
    return all;
  }

  std::mutex mutex;
  int64_t pins_left = -1, copies_left = -1;  // negative: no limit
  int pinned = 0, streams = 0, waits = 0;

 private:
  void run(uintptr_t stream, uint64_t until) {
    for (; done_[stream] < until; ++done_[stream], copies_[stream].pop_front()) {
      const Copy& copy = copies_[stream].front();
      std::memcpy(reinterpret_cast<void*>(copy.to), copy.from, copy.bytes);
    }
  }

  std::shared_ptr<Device> null_ = open_null();
  uintptr_t number_ = 0;
  std::map<uintptr_t, std::deque<Copy>> copies_;
  std::map<uintptr_t, uint64_t> issued_, done_;
  std::map<Event, std::pair<uintptr_t, uint64_t>> events_;
  std::set<Event> passed_;
};

constexpr size_t kPiece = BounceReads::kLeastPiece;

class File {
 public:
  explicit File(size_t bytes) : data(bytes) {
    for (size_t i = 0; i < bytes; ++i) data[i] = static_cast<uint8_t>((i * 2654435761u) >> 13);
    char name[] = "/tmp/bounce-XXXXXX";
    descriptor = ::mkstemp(name);
    ::unlink(name);
    check(::write(descriptor, data.data(), bytes) == static_cast<ssize_t>(bytes), "the file cannot be written");
  }
  ~File() { ::close(descriptor); }
  bool has(uint64_t offset, const std::vector<uint8_t>& bytes) const {
    return std::memcmp(data.data() + offset, bytes.data(), bytes.size()) == 0;
  }
  std::vector<uint8_t> data;
  int descriptor;
};

Address address_of(std::vector<uint8_t>& memory) { return reinterpret_cast<Address>(memory.data()); }

bool arrives(const std::shared_ptr<LateDevice>& device, BounceReads& reads, const File& file, uint64_t offset,
             size_t bytes, IdleThreads* others = nullptr) {
  std::vector<uint8_t> memory(bytes);
  const std::vector<Event> copied = reads.read(file.descriptor, offset, address_of(memory), bytes, others);
  if (copied.empty()) return false;
  for (const Event event : copied) wait_and_forget(*device, event);
  return file.has(offset, memory);
}

void every_size() {
  const File file(7 * kPiece + 13);
  for (int buffers = 1; buffers <= 3; ++buffers) {
    const auto device = std::make_shared<LateDevice>();
    {
      BounceReads reads(device, kPiece, buffers);
      for (const size_t bytes : {size_t{1}, kPiece - 1, kPiece, kPiece + 1, 2 * kPiece, 5 * kPiece + 7, 7 * kPiece})
        for (const uint64_t offset : {0, 1, 13})
          check(arrives(device, reads, file, offset, bytes), "other bytes after a read of " + std::to_string(bytes));
      check(reads.times().reads == 21 && reads.pinned_bytes() == kPiece * static_cast<size_t>(buffers),
            "one lane was expected to serve all reads");
      check(device->waits > 0, "no buffer was awaited");
    }
    check(device->events() == 0 && device->pinned == 0 && device->streams == 0, "something is not released");
  }
}

void short_files() {
  const File file(3 * kPiece);
  const auto device = std::make_shared<LateDevice>();
  BounceReads reads(device, kPiece, 2);
  std::vector<uint8_t> memory(4 * kPiece);
  check(reads.read(file.descriptor, 1, address_of(memory), 3 * kPiece).empty(), "a short file was read");
  check(reads.read(-1, 0, address_of(memory), kPiece).empty(), "no file was read");
  check(device->in_flight() == 0 && device->events() == 0, "copies of an incomplete read are in flight");
  check(reads.times().reads == 0, "an incomplete read was counted");
  check(arrives(device, reads, file, 0, 3 * kPiece), "other bytes after incomplete reads");
}

template <class F>
bool throws(F&& call) {
  try {
    call();
  } catch (const std::exception&) { return true; }
  return false;
}

void failures() {
  const File file(3 * kPiece);
  const auto device = std::make_shared<LateDevice>();
  {
    BounceReads reads(device, kPiece, 2);
    std::vector<uint8_t> memory(3 * kPiece);
    const auto read = [&] { return reads.read(file.descriptor, 0, address_of(memory), memory.size()); };
    device->pins_left = 1;
    check(throws(read), "there was memory for the second buffer");
    check(device->pinned == 0 && device->streams == 0 && reads.pinned_bytes() == 0, "half of a lane is left");
    device->pins_left = -1;
    device->copies_left = 2;
    check(throws(read), "the third copy did not fail");
    check(device->in_flight() == 0 && device->events() == 0, "copies of a failed read are in flight");
    device->copies_left = -1;
    check(arrives(device, reads, file, 0, memory.size()), "other bytes after a failure");
  }
  check(device->events() == 0 && device->pinned == 0 && device->streams == 0, "something is not released");
}

void many_threads() {
  const File file(64 * kPiece);
  const auto device = std::make_shared<LateDevice>();
  BounceReads reads(device, kPiece, 2);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < 20; ++i) {
        const uint64_t offset = (i * 37 + static_cast<uint64_t>(t) * 11) % 50 * kPiece + static_cast<uint64_t>(t);
        if (!arrives(device, reads, file, offset, 5 * kPiece + i)) {
          std::lock_guard<std::mutex> hold(device->mutex);
          check(false, "other bytes with several threads");
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  check(reads.times().reads == 80 && reads.pinned_bytes() <= 4 * 2 * kPiece, "more lanes than threads");
}

// Three more threads for each piece of work.
class Others final : public IdleThreads {
 public:
  void share(const std::function<void()>& work) override {
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) threads.emplace_back(work);
    work();
    for (std::thread& thread : threads) thread.join();
  }
};

void shared_reads() {
  const File file(40 * kPiece);
  const auto device = std::make_shared<LateDevice>();
  {
    BounceReads reads(device, kPiece, 2);
    Others others;
    for (size_t i = 0; i < 20; ++i)
      check(arrives(device, reads, file, i, (20 + i) * kPiece - 2 * i, &others), "other bytes of a shared read");
    check(reads.times().reads == 20, "a shared read was counted more than once");
    // On a busy machine the first thread may take all pieces of a read.
    for (int more = 0; more < 2000 && reads.pinned_bytes() == 2 * kPiece; ++more)
      check(arrives(device, reads, file, 0, 39 * kPiece, &others), "other bytes of a shared read");
    check(reads.pinned_bytes() > 2 * kPiece, "no thread took part");
    std::vector<uint8_t> memory(41 * kPiece);
    const auto read = [&] { return reads.read(file.descriptor, 0, address_of(memory), memory.size(), &others); };
    check(read().empty(), "a short file was read by several threads");
    check(device->in_flight() == 0, "copies of an incomplete shared read are in flight");
    device->copies_left = 9;
    check(throws(read), "the tenth copy did not fail");
    check(device->in_flight() == 0, "copies of a failed shared read are in flight");
    device->copies_left = -1;
    check(arrives(device, reads, file, 0, 40 * kPiece, &others), "other bytes after failures");
  }
  check(device->events() == 0 && device->pinned == 0 && device->streams == 0, "something of them is not released");
}

}  // namespace

int main() {
  every_size();
  short_files();
  failures();
  many_threads();
  shared_reads();
  return faults != 0;
}
