// SPDX-License-Identifier: Apache-2.0
// Blocks of rows: the table that the host uploads, its launches, and each block's search for its row, on emulated
// threads. Prints faults, and nothing without one.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <stdexcept>
#include <vector>

#define STOKER_EMULATION "cuda_emulation.hpp"
#include "device/row_blocks.cuh"
#include "gpu_kernels/row_blocks.hpp"

using namespace stoker::gpu;

namespace {

bool good = true;

// Records launches; uploads have exactly the requested size, so that a sanitizer finds every access beyond them.
class Recorder : public Batch {
 public:
  std::vector<Launch> launches;

  int64_t rows() const override { std::abort(); }
  bool active(int64_t) const override { std::abort(); }
  const uint8_t* slots() const override { std::abort(); }
  uint8_t* slot(int64_t) override { std::abort(); }
  Address device_slots() const override { std::abort(); }
  Address scratch(size_t) override { std::abort(); }
  Address report(size_t) override { std::abort(); }
  uint8_t* upload(size_t bytes, Address* device) override {
    uploads_.push_back(std::make_unique<uint64_t[]>(bytes / sizeof(uint64_t)));
    *device = reinterpret_cast<Address>(uploads_.back().get());
    return reinterpret_cast<uint8_t*>(uploads_.back().get());
  }
  void launch(const Launch& launch) override { launches.push_back(launch); }
  void call(std::function<uintptr_t(Fork&)>) override { std::abort(); }
  void call_ahead(std::function<uintptr_t()>) override { std::abort(); }

 private:
  std::vector<std::unique_ptr<uint64_t[]>> uploads_;
};

STOKER_KERNEL look(uint64_t out, uint64_t starts, uint64_t count, uint64_t first) {
  const RowBlock& work = find_work(starts, count, first);
  reinterpret_cast<RowBlock*>(out)[thread_index()] = work;
}

// The row of a block, by counting.
RowBlock counted(const std::vector<uint64_t>& blocks, uint64_t block) {
  uint32_t row = 0;
  while (block >= blocks[row]) block -= blocks[row++];
  return {row, static_cast<uint32_t>(block)};
}

void check(const std::vector<uint64_t>& blocks, std::mt19937_64& random) {
  RowBlocks rows;
  uint64_t total = 0;
  for (uint32_t r = 0; r < blocks.size(); ++r) rows.add(r, blocks[r]), total += blocks[r];
  Recorder batch;
  Launch launch;
  rows.launch(batch, launch.with({7, 8}));
  if (rows.empty() != (total == 0) || batch.launches.empty() != (total == 0)) good = !std::puts("empty");
  uint64_t launched = 0;
  for (const Launch& l : batch.launches) {
    if (l.arguments != 5 || l.argument[0] != 7 || l.argument[1] != 8 || l.argument[4] != launched)
      good = !std::puts("arguments");
    if (l.grid[0] == 0 || l.grid[0] > 0x7FFFFFFF) good = !std::puts("a grid that no GPU takes");
    launched += l.grid[0];
  }
  if (launched != total) good = !std::puts("other blocks are launched than were added");
  if (total == 0) return;
  std::vector<uint64_t> wanted = {0, total - 1};
  for (int i = 0; i < 20; ++i) wanted.push_back(random() % total);
  for (int i = 0; i < 10; ++i) {  // the first and the last block of a row
    const uint32_t row = static_cast<uint32_t>(random() % blocks.size());
    uint64_t before = 0;
    for (uint32_t r = 0; r < row; ++r) before += blocks[r];
    if (before < total) wanted.push_back(before);
    if (before > 0) wanted.push_back(before - 1);
  }
  const uint32_t threads = 32 * (1 + static_cast<uint32_t>(random() % 3));
  std::vector<RowBlock> found(threads);
  const auto& arguments = batch.launches[0].argument;
  for (const uint64_t block : wanted) {
    emulation().run([&] { look(reinterpret_cast<uint64_t>(found.data()), arguments[2], arguments[3], block); }, 1,
                    threads);
    const RowBlock expected = counted(blocks, block);
    for (const RowBlock& f : found)
      if (f.row != expected.row || f.number != expected.number) {
        std::printf("block %llu of %zu rows: expected %u of row %u, got %u of row %u\n",
                    static_cast<unsigned long long>(block), blocks.size(), expected.number, expected.row, f.number,
                    f.row);
        good = false;
        break;
      }
  }
}

}  // namespace

int main() {
  std::mt19937_64 random(3);
  for (const size_t rows : {1, 2, 31, 32, 33, 64, 65, 1000, 1024, 1025, 5000})
    for (const uint64_t most : {uint64_t{1}, uint64_t{3}, uint64_t{200}, uint64_t{0xFFFFFFFF}}) {
      std::vector<uint64_t> blocks(rows);
      for (uint64_t& b : blocks) b = random() % 4 == 0 ? 0 : random() % most + 1;
      check(blocks, random);
      std::fill(blocks.begin(), blocks.end(), random() % most + 1);  // the same number for all
      check(blocks, random);
      blocks.back() = 0;
      check(blocks, random);
      blocks.back() = blocks[0] + 1;
      check(blocks, random);
      blocks.back() = blocks[0];
      blocks[0] = 0;
      check(blocks, random);
    }
  check({}, random);
  check({0, 0, 0}, random);
  check({0xFFFFFFFF, 0xFFFFFFFF, 1}, random);
  try {
    RowBlocks().add(0, uint64_t{1} << 32);
    good = !std::puts("a row with more blocks than a number holds is accepted");
  } catch (const std::length_error&) {}
  return good ? 0 : 1;
}
