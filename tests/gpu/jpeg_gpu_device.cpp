// SPDX-License-Identifier: Apache-2.0
// The GPU JPEG decoder on a GPU: jpeg_gpu_device CUBIN CASES [REPEATS]. Compares each batch with the CPU decoder; with
// REPEATS, runs all batches this many times, in sequence, and prints the time per row of each kernel.
#include <list>
#include <map>
#include <thread>

#include "cuda_driver.hpp"
#include "jpeg_gpu_cases.hpp"

namespace stoker::jpeg::gpu {
namespace {

using stoker::gpu::Address;
using stoker::gpu::driver::Driver;
using stoker::gpu::driver::Handle;

class Device {
 public:
  explicit Device(const char* cubin) {
    int device = 0;
    Handle context = nullptr, module = nullptr;
    cu.init(0);
    cu.device(&device, 0);
    cu.retain(&context, device);
    cu.set_current(context);
    std::ifstream in(cubin, std::ios::binary);
    const std::string image((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    cu.load(&module, image.data());
    for (size_t i = 0; i < functions.size(); ++i) {
      const auto f = std::make_shared<stoker::gpu::Function>(stoker::gpu::Function{kFunctionNames[i]});
      cu.function(&f->handle, module, kFunctionNames[i]);
      functions[i] = f;
    }
    cu.stream(&stream, 0);
  }

  Handle event() {
    Handle e = nullptr;
    cu.event(&e, 0);
    return e;
  }

  Driver cu;
  Handle stream = nullptr;
  Functions functions;
};

// Growing memory, as in a pool.
class DeviceMemory {
 public:
  Address get(Device& d, size_t bytes) {
    if (bytes > size_) {
      if (size_) d.cu.release(at_);
      size_ = bytes;
      d.cu.allocate(&at_, bytes);
    }
    return at_;
  }
  Address at() const { return at_; }

 private:
  Address at_ = 0;
  size_t size_ = 0;
};

struct Timed {
  const char* name;
  Handle before, after;
};

class DeviceBatch : public TestBatch {
 public:
  DeviceBatch(Device& device, int64_t rows, size_t slot_bytes) : TestBatch(rows, slot_bytes), d_(device) {}
  Address device_slots() const override { return slots_; }
  Address scratch(size_t bytes) override {
    const Address at = memory_.get(d_, bytes);
    if (poison) d_.cu.fill(at, 0xA5, bytes, d_.stream);
    return at;
  }
  uint8_t* allocate_host(size_t bytes) override {
    Piece& p = described_.emplace_back();
    p.host.assign(bytes, 0x5A);
    p.bytes = bytes;
    p.device.get(d_, bytes);
    return p.host.data();
  }
  Address allocate_device(size_t bytes) override { return described_.emplace_back().device.get(d_, bytes); }
  Address device_address(const uint8_t* host) const override {
    for (const Piece& p : described_)
      if (p.host.data() == host) return p.device.at();
    return 0;
  }
  uint8_t* upload(size_t bytes, Address* device) override {
    if (next_ == pieces_.size()) pieces_.emplace_back();
    Piece& p = pieces_[next_++];
    p.bytes = bytes;
    p.host.resize(bytes);
    *device = p.device.get(d_, bytes);
    return p.host.data();
  }
  Address report(size_t bytes) override {
    if (!reported_) d_.cu.fill(report_.get(d_, reported_ = bytes), 0, bytes, d_.stream);
    return report_.get(d_, bytes);
  }
  void launch(const stoker::gpu::Launch& l) override {
    if (!slots_sent_) d_.cu.to_device(slots_, slots(), all_slot_bytes(), d_.stream);
    slots_sent_ = true;
    for (; sent_ < next_; ++sent_) {
      Piece& p = pieces_[sent_];
      d_.cu.to_device(p.device.get(d_, p.bytes), p.host.data(), p.bytes, d_.stream);
    }
    void* arguments[stoker::gpu::Launch::kMaxArguments];
    for (int i = 0; i < l.arguments; ++i) arguments[i] = const_cast<uint64_t*>(&l.argument[i]);
    if (timing) {
      timed.push_back({l.function->name.c_str(), d_.event(), d_.event()});
      d_.cu.record(timed.back().before, d_.stream);
    }
    d_.cu.launch(l.function->handle, l.grid[0], l.grid[1], l.grid[2], l.block[0], l.block[1], l.block[2],
                 l.shared_bytes, d_.stream, arguments, nullptr);
    if (timing) d_.cu.record(timed.back().after, d_.stream);
  }
  void forget_rows() { described_.clear(); }
  void start() {
    next_ = sent_ = 0;
    reported_ = 0;
    for (Piece& p : described_)
      if (p.bytes) d_.cu.to_device(p.device.at(), p.host.data(), p.bytes, d_.stream);
    slots_ = slot_memory_.get(d_, all_slot_bytes());
    slots_sent_ = false;  // with the first launch: planning completes them
  }
  std::vector<uint8_t> finish() {
    d_.cu.synchronize(d_.stream);
    std::vector<uint8_t> report(reported_);
    if (reported_) d_.cu.to_host(report.data(), report_.get(d_, reported_), reported_);
    return report;
  }

  double elapsed_ms(const Timed& t) const {
    float ms = 0;
    d_.cu.elapsed_ms(&ms, t.before, t.after);
    return ms;
  }

  bool poison = true, timing = false;
  std::vector<Timed> timed;

 private:
  struct Piece {
    std::vector<uint8_t> host;
    DeviceMemory device;
    size_t bytes = 0;
  };
  Device& d_;
  DeviceMemory memory_, report_, slot_memory_;
  std::vector<Piece> pieces_;
  std::list<Piece> described_;
  size_t next_ = 0, sent_ = 0, reported_ = 0;
  Address slots_ = 0;
  bool slots_sent_ = false;
};

// A batch whose files are on the device.
struct Loaded {
  TestCase& c;
  std::shared_ptr<Index> index;
  std::shared_ptr<const stoker::gpu::Kernel> kernel;
  std::vector<Homes> homes;
  std::unique_ptr<DeviceBatch> batch;

  Loaded(Device& d, TestCase& from) : c(from) {
    if (c.head.index_bytes)
      index = std::make_shared<Index>(
          c.head.index_bytes,
          [&d](size_t bytes) {
            Address at = 0;
            d.cu.allocate(&at, bytes);
            return at;
          },
          [&d](Address at) { d.cu.release(at); }, c.head.piece_bytes);
    kernel = make_decode(c.head.adjust != 0, c.format(), d.functions, c.settings(), static_cast<int>(c.head.scale_log2),
                         index, c.head.parts != 0);
    batch = std::make_unique<DeviceBatch>(d, static_cast<int64_t>(c.rows.size()), kernel->slot_bytes());
    for (const TestRow& row : c.rows) {
      Homes h{0, 0, row.width * row.channels};
      d.cu.allocate(&h.file, row.file.size());
      d.cu.to_device(h.file, row.file.data(), row.file.size(), d.stream);
      d.cu.allocate(&h.out, std::max<size_t>(static_cast<size_t>(h.pitch * row.height), 1));
      d.cu.fill(h.out, 0x5A, static_cast<size_t>(h.pitch * row.height), d.stream);
      homes.push_back(h);
    }
  }

  // With an index, a pass uses the entries of the previous one.
  void describe() {
    batch->forget_rows();
    for (TestRow& row : c.rows) read_in_part(row, c, index.get());
    describe_rows(*kernel, c, homes, *batch);
  }

  void run() {
    batch->start();
    kernel->launch(*batch);
  }

  // Returns the number of wrong rows, and counts the others by outcome.
  int check(Device& d, std::map<std::string, int>& outcomes, bool quiet) {
    const std::vector<uint8_t> report = batch->finish();
    int wrong = 0;
    for (size_t i = 0; i < c.rows.size(); ++i) {
      const TestRow& row = c.rows[i];
      uint32_t status = 0;
      if (!report.empty()) std::memcpy(&status, report.data() + 4 * i, 4);
      std::vector<uint8_t> pixels(static_cast<size_t>(homes[i].pitch * row.height));
      if (!pixels.empty()) d.cu.to_host(pixels.data(), homes[i].out, pixels.size());
      const bool active = batch->active(static_cast<int64_t>(i));
      if (active) kernel->judge(report.data(), static_cast<int64_t>(i), batch->slot(i), nullptr);
      const bool known = active && reinterpret_cast<const Row*>(batch->slot(i))->known;
      ++outcomes[!active              ? "refused: " + row.error
                 : status & kFailures ? "left: " + std::to_string(status)
                 : !row.part.empty()  ? "decoded in part"
                 : known              ? "decoded as known"
                                      : "decoded"];
      wrong += !report_row(c, i, active, status, known, pixels.data(), homes[i].pitch, quiet);
    }
    return wrong;
  }
};

void time_batches(std::vector<std::unique_ptr<Loaded>>& batches, int repeats) {
  std::map<std::string, double> sum;
  double whole = 0;
  size_t rows = 0;
  for (int r = -1; r < repeats; ++r) {
    for (auto& b : batches) {
      b->batch->poison = false;
      b->batch->timing = r >= 0;
      b->run();
      b->batch->finish();
      if (r >= 0) rows += b->c.rows.size();
    }
  }
  for (auto& b : batches) {
    for (const Timed& t : b->batch->timed) {
      const double ms = b->batch->elapsed_ms(t);
      sum[t.name] += ms;
      whole += ms;
    }
  }
  for (const auto& [name, ms] : sum) std::printf("%-24s %8.3f us per row\n", name.c_str(), 1e3 * ms / double(rows));
  std::printf("%-24s %8.3f us per row (%zu rows)\n", "all kernels", 1e3 * whole / double(rows), rows);
}

}  // namespace
}  // namespace stoker::jpeg::gpu

int main(int argc, char** argv) {
  using namespace stoker::jpeg::gpu;
  if (argc < 3) return std::fprintf(stderr, "jpeg_gpu_device CUBIN CASES [REPEATS]\n"), 2;
  Device device(argv[1]);
  std::vector<TestCase> cases = read_cases(argv[2]);
  std::vector<std::unique_ptr<Loaded>> batches;
  std::map<std::string, int> outcomes;
  int wrong = 0;
  for (TestCase& c : cases) {
    batches.push_back(std::make_unique<Loaded>(device, c));
    for (uint32_t pass = 1; pass < c.head.passes; ++pass) {
      std::map<std::string, int> before;
      batches.back()->describe();
      batches.back()->run();
      wrong += batches.back()->check(device, before, true);
    }
    batches.back()->describe();
    batches.back()->run();
    wrong += batches.back()->check(device, outcomes, argc > 3);
  }
  for (const auto& [what, n] : outcomes) std::printf("%6d rows %s\n", n, what.c_str());
  std::printf("%6d rows wrong\n", wrong);
  if (argc > 3) time_batches(batches, std::atoi(argv[3]));
  return wrong ? 1 : 0;
}
