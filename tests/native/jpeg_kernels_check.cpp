// SPDX-License-Identifier: Apache-2.0
// Compares the decoder's vector code with its plain code on random and extreme values: transforms of blocks, and rows
// of every length. `tests/native/neon.sh` runs it on an emulated 64-bit Arm.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "jpeg/huffman.hpp"
#include "jpeg/idct.hpp"
#include "jpeg/rows.hpp"
#include "base/simd.hpp"

namespace {

using namespace stoker;        // NOLINT: a program of one file
using namespace stoker::jpeg;  // NOLINT

std::mt19937 random_numbers(7);
int below(int n) { return static_cast<int>(random_numbers() % static_cast<unsigned>(n)); }
int failures = 0;

void expect(bool equal, const char* what, int round) {
  if (equal || ++failures > 20) return;
  std::printf("differs: %s, round %d\n", what, round);
}

int16_t coefficient(int kind) {
  if (kind == 0) return static_cast<int16_t>(below(65536));
  if (kind == 1) return static_cast<int16_t>(below(2) ? 32767 : -32768);
  return static_cast<int16_t>(below(81) - 40);
}

// Blocks that end at any position, of every magnitude, with matching quantizers.
void check_blocks(Isa fast, int round) {
  constexpr int kMost = 9;
  alignas(64) int16_t blocks[2][64 * (kMost + 1)] = {}, quantiser[64];
  uint8_t ends[kMost];
  const int count = 1 + below(kMost), kind = below(4);
  for (int16_t& q : quantiser) q = static_cast<int16_t>(below(3) ? 1 + below(100) : below(65536));
  for (int i = 0; i < count; ++i) {
    ends[i] = static_cast<uint8_t>(below(3) ? 1 + below(64) : 1 + below(12));
    const int rows = below(4) ? 8 : 1;  // one row: the rule of its own
    for (int k = 0; k < ends[i]; ++k) {
      const int at = natural_position(k);
      if (at < 8 * rows && below(3)) blocks[0][64 * i + at] = coefficient(kind);
    }
  }
  std::memcpy(blocks[1], blocks[0], sizeof blocks[0]);
  const int pitch = 8 * kMost + 32;
  std::vector<uint8_t> out[2] = {std::vector<uint8_t>(8 * pitch), std::vector<uint8_t>(8 * pitch)};
  const Isa used[2] = {Isa::Plain, fast};
  for (int i = 0; i < 2; ++i) {
    isa_setting() = used[i];
    inverse_dct()(blocks[i], ends, count, quantiser, out[i].data(), pitch);
  }
  bool equal = true, cleared = true;
  for (int y = 0; y < 8; ++y) equal &= !std::memcmp(&out[0][y * pitch], &out[1][y * pitch], 8 * count);
  for (int k = 0; k < 64 * count; ++k) cleared &= blocks[1][k] == 0;
  expect(equal, "inverse DCT", round);
  expect(cleared, "coefficients are left zero", round);
}

struct Rows {
  std::vector<uint8_t> in[3];
  std::vector<int16_t> sums;
  explicit Rows(int n) : sums(static_cast<size_t>(n) + 2 + kRowSlack) {
    const int kind = below(3);
    for (auto& row : in) {
      row.resize(static_cast<size_t>(n) + 1 + kRowSlack);
      for (uint8_t& v : row) v = static_cast<uint8_t>(kind ? below(256) : 255 * below(2));
    }
  }
  const uint8_t* at(int i) const { return in[i].data() + 1; }
};

void check_rows(Isa fast, int round) {
  const int n = 1 + below(150);
  Rows rows(n);
  const uint8_t *a = rows.at(0), *b = rows.at(1), *c = rows.at(2);
  const size_t size = 3 * static_cast<size_t>(n) + 1;  // one byte after the pixels, which must stay unchanged
  const int bias = 1 + below(2);
  const char* const names[] = {"double_width", "double_height", "double_both",
                               "ycc_to_rgb",   "ycc_to_bgr",    "interleave"};
  std::vector<uint8_t> out[2][6];
  const Isa used[2] = {Isa::Plain, fast};
  for (int i = 0; i < 2; ++i) {
    isa_setting() = used[i];
    const RowKernels& k = row_kernels();
    for (auto& row : out[i]) row.assign(size + 2 * kRowSlack, 77);
    k.double_width(a, n, out[i][0].data());
    k.double_height(a, b, bias, n, out[i][1].data());
    k.double_both(a, b, n, rows.sums.data(), out[i][2].data());
    k.ycc_to_rgb(a, b, c, out[i][3].data(), n);
    k.ycc_to_bgr(a, b, c, out[i][4].data(), n);
    k.interleave(a, b, c, out[i][5].data(), n);
  }
  const size_t compared[6] = {2u * n, 1u * n, 2u * n, size, size, size};
  for (int k = 0; k < 6; ++k) expect(!std::memcmp(out[0][k].data(), out[1][k].data(), compared[k]), names[k], round);
}

// Compares bytes of entropy-coded data, many of them 0xFF, with a loop over single bytes.
void check_unstuffing(int round) {
  std::vector<uint8_t> data(static_cast<size_t>(1 + below(200)));
  for (uint8_t& v : data) v = static_cast<uint8_t>(below(8) ? below(256) : 0xFF);
  for (size_t i = 0; i + 1 < data.size(); ++i)
    if (data[i] == 0xFF && below(20)) data[++i] = 0;
  std::vector<uint8_t> wanted, got(data.size() + kBitPadding);
  size_t pos = 0;
  while (pos < data.size()) {
    size_t next = pos + 1;
    if (data[pos] == 0xFF) {
      while (next < data.size() && data[next] == 0xFF) ++next;
      if (next == data.size() || data[next] != 0) {
        pos = next == data.size() ? next : next - 1;
        break;
      }
      ++next;
    }
    wanted.push_back(data[pos]);
    pos = next;
  }
  size_t reached = 0;
  const size_t n = unstuff(data.data(), data.size(), reached, got.data());
  expect(n == wanted.size() && !std::memcmp(got.data(), wanted.data(), n) && reached == pos, "unstuffing", round);
}

}  // namespace

int main() {
  const Isa fast = detect_isa();
  if (fast == Isa::Plain) {
    std::printf("no vector code on this machine\n");
    return 2;
  }
  constexpr int kRounds = 20000;
  for (int round = 0; round < kRounds; ++round) {
    check_blocks(fast, round);
    check_rows(fast, round);
    check_unstuffing(round);
  }
  std::printf("%d rounds of blocks, rows and unstuffing: %d differences\n", kRounds, failures);
  return failures != 0;
}
