// SPDX-License-Identifier: Apache-2.0
// Fuzzing of recipes (recipe/recipe.hpp): for libFuzzer (LLVMFuzzerTestOneInput), or with generated inputs if built with
// STOKER_FUZZ_STANDALONE. An input's bytes choose steps that fit the images before them, and then some numbers are
// replaced by hostile ones. In addition to the sanitizers' checks, three laws hold: verified recipes, and no others, can be run;
// every instruction set stores the same bytes; steps store the same bytes whether they are fused or run one by one.
//
// STOKER_FUZZ_FILES names JPEG files, separated by colons, that recipes may decode; without it they begin with pixels.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/simd.hpp"
#include "jpeg/jpeg.hpp"
#include "recipe/numbers.hpp"
#include "recipe/recipe.hpp"
#include "recipe/verify.hpp"
#include "resample/resample.hpp"
#include "shared/border.hpp"

namespace {

using namespace stoker::recipe;  // NOLINT: a program of one file
using stoker::Isa;

constexpr int64_t kFewValues = 1 << 13;  // of a computed image; larger ones are only verified
constexpr int kMaxSteps = 10, kOutputs = 2, kTables = 8;
constexpr size_t kOutputBytes = 1 << 14;
constexpr int kHostileShare = 60;  // one number in 60 is replaced
constexpr int kCheckedShare = 2;   // laws are checked on every second recipe

struct Counts {
  uint64_t runs = 0, verified = 0, completed = 0, skipped = 0, checked = 0, steps[static_cast<size_t>(Op::kCount)] = {};
} counts;

constexpr const char* kNames[] = {
#define STOKER_NAME(name, count, ...) #name,
    STOKER_RECIPE_OPS(STOKER_NAME)
#undef STOKER_NAME
};

void report() {
  const auto n = [](uint64_t x) { return static_cast<unsigned long long>(x); };
  std::fprintf(stderr,
               "runs %llu, verified %llu, completed %llu, skipped %llu, laws checked %llu; steps:", n(counts.runs),
               n(counts.verified), n(counts.completed), n(counts.skipped), n(counts.checked));
  for (size_t op = 0; op < std::size(kNames); ++op) std::fprintf(stderr, " %s %llu", kNames[op], n(counts.steps[op]));
  std::fputc('\n', stderr);
}

[[noreturn]] void broken_law(const char* law) {
  std::fprintf(stderr, "broken law: %s\n", law);
  std::abort();
}

// ---- choices ----

// Numbers from the input's bytes; zeros after its end.
class Choices {
 public:
  Choices(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  bool ended() const { return at_ >= size_; }
  uint32_t bits(int bytes) {
    uint32_t value = 0;
    for (int i = 0; i < bytes; ++i) value = value << 8 | (at_ < size_ ? data_[at_++] : 0u);
    return value;
  }
  int64_t below(int64_t n) { return n <= 1 ? 0 : static_cast<int64_t>(bits(n > 256 ? 3 : 1)) % n; }
  int64_t between(int64_t least, int64_t most) { return least + below(most - least + 1); }
  double real(double least, double most) { return least + (most - least) * (static_cast<double>(bits(2)) / 65535.0); }
  bool one_in(int64_t n) { return below(n) == n - 1; }

 private:
  const uint8_t* data_;
  size_t size_, at_ = 0;
};

double hostile(Choices& choose) {
  // clang-format off
  static const double kNumbers[] = {
      std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
      -std::numeric_limits<double>::infinity(), 0x1p31, -0x1p31, 0x1p31 - 1, 0x1p32, 0x1p32 - 1, 0x1p39, 0x1p40, 0x1p53,
      0x1p63, -0x1p63, 0x1p64, 0x1p24, 0x1p24 + 1, 1e300, -1e300, 5e-324, -0.0, 0.5, -0.5, 1e-9, 0x1p127, 3e38,
      -1, -2, 0, 1, 2, 3, 7, 255, 256, 65535, 65536};
  // clang-format on
  const auto at = choose.below(static_cast<int64_t>(std::size(kNumbers)) + 4);
  return at < static_cast<int64_t>(std::size(kNumbers)) ? kNumbers[at] : static_cast<double>(choose.between(-70, 70));
}

// ---- recipes ----

struct File {
  std::vector<uint8_t> bytes;
  stoker::jpeg::Info info;
};

std::vector<File> read_files() {
  std::vector<File> files;
  const char* names = std::getenv("STOKER_FUZZ_FILES");
  std::istringstream list(names ? names : "");
  for (std::string name; std::getline(list, name, ':');) {
    std::ifstream in(name, std::ios::binary);
    File file{{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()}, {}};
    const bool known = stoker::jpeg::parse(file.bytes.data(), file.bytes.size(), file.info);
    if (known && int64_t{file.info.width} * file.info.height * 3 <= kFewValues) files.push_back(std::move(file));
  }
  return files;
}

// Inputs of a recipe, in allocations of exactly their size, so that the sanitizer guards both ends.
struct Recipe {
  std::vector<double> numbers;
  std::vector<std::unique_ptr<uint8_t[]>> memory;
  Source source{nullptr, 0};
  std::vector<Table> tables;
  std::vector<Form> forms;
};

class Writer {
 public:
  Writer(Choices& choose, const std::vector<File>& files) : choose_(choose), files_(files) {}

  Recipe write() {
    make_tables();
    begin();
    for (int64_t left = choose_.between(1, kMaxSteps); left > 0; --left) add();
    for (double& number : recipe_.numbers)
      if (choose_.one_in(kHostileShare)) number = hostile(choose_);
    return std::move(recipe_);
  }

 private:
  using Numbers = std::vector<double>;

  uint8_t* room(size_t bytes) {
    recipe_.memory.emplace_back(new uint8_t[bytes]);
    for (size_t i = 0; i < bytes; ++i)
      recipe_.memory.back()[i] = static_cast<uint8_t>(choose_.ended() ? 37 * i : choose_.bits(1));
    return recipe_.memory.back().get();
  }

  // Of bytes, floats and others, for all channels or for each.
  void make_tables() {
    constexpr int kItems[kTables] = {1, 1, 4, 4, 2, 8, 4, 1};
    for (int i = 0; i < kTables; ++i) {
      const int32_t channels = i % 2 ? 3 : 1;
      const size_t values = 256 * static_cast<size_t>(channels), bytes = values * static_cast<size_t>(kItems[i]);
      recipe_.memory.emplace_back(new uint8_t[bytes]);
      uint8_t* const to = recipe_.memory.back().get();
      const uint32_t by = choose_.bits(1) | 1;
      for (size_t k = 0; k < bytes; ++k) to[k] = static_cast<uint8_t>(k * by >> (i & 3));
      if (kItems[i] == 4 && i != 6)  // as a rule floats of some use
        for (size_t k = 0; k < values; ++k) {
          const float value = static_cast<float>(k % 256) / 255.0f * static_cast<float>(by % 4);
          std::memcpy(to + 4 * k, &value, 4);
        }
      recipe_.tables.push_back(table_of(to, kItems[i], channels));
    }
  }

  void begin() {
    const int64_t from = choose_.below(static_cast<int64_t>(files_.size()) * 2 + 1);
    if (from < static_cast<int64_t>(files_.size())) {
      const File& file = files_[static_cast<size_t>(from)];
      recipe_.memory.emplace_back(new uint8_t[file.bytes.size()]);
      std::copy(file.bytes.begin(), file.bytes.end(), recipe_.memory.back().get());
      recipe_.source = {recipe_.memory.back().get(), file.bytes.size()};
      const int64_t channels = file.info.model == stoker::jpeg::Model::Gray || choose_.one_in(4) ? 1 : 3;
      Numbers numbers{static_cast<double>(channels)};
      add_window(numbers, file.info.height, file.info.width);
      numbers.push_back(static_cast<double>(choose_.below(2)));  // leniency
      return put(Op::Decode, -1, numbers);
    }
    const int64_t height = choose_.between(1, 40), width = choose_.between(1, 40), channels = choose_.one_in(3) ? 1 : 3;
    const auto bytes = static_cast<size_t>(height * width * channels);
    recipe_.source = {room(bytes), bytes};
    Numbers numbers{double(height), double(width), double(channels), double(choose_.below(2))};
    add_window(numbers, height, width);
    put(Op::Pixels, -1, numbers);
  }

  void add_window(Numbers& to, int64_t height, int64_t width) {
    const int64_t x0 = choose_.one_in(2) ? choose_.below(width) : 0, y0 = choose_.one_in(2) ? choose_.below(height) : 0;
    const int64_t x1 = choose_.one_in(2) ? choose_.between(x0 + 1, width) : width;
    const int64_t y1 = choose_.one_in(2) ? choose_.between(y0 + 1, height) : height;
    for (const int64_t n : {x0, y0, x1, y1}) to.push_back(static_cast<double>(n));
  }

  // A step that the verifier takes, as a rule; else it is left out.
  void add() {
    const auto images = static_cast<int64_t>(recipe_.forms.size());
    if (images == 0) return;
    for (int attempt = 0; attempt < 4; ++attempt) {
      const int64_t from = choose_.one_in(3) ? choose_.below(images) : images - 1;
      const auto op = static_cast<Op>(choose_.one_in(4) ? static_cast<int64_t>(Op::Store) - 1 + choose_.below(3)
                                                        : 2 + choose_.below(static_cast<int64_t>(Op::kCount) - 2));
      const size_t before = recipe_.numbers.size();
      const std::vector<Form> forms = recipe_.forms;
      put(op, from, numbers_of(op, forms[static_cast<size_t>(from)], images));
      if (!recipe_.forms.empty()) return;
      recipe_.numbers.resize(before);
      recipe_.forms = forms;
    }
  }

  // Adds it; no forms: the recipe is refused.
  void put(Op op, int64_t from, const Numbers& numbers) {
    recipe_.numbers.push_back(static_cast<double>(op));
    recipe_.numbers.push_back(static_cast<double>(from));
    recipe_.numbers.insert(recipe_.numbers.end(), numbers.begin(), numbers.end());
    try {
      const double* const at = recipe_.numbers.data();
      recipe_.forms = verify(read_steps(at, at + recipe_.numbers.size()), recipe_.tables, outputs());
    } catch (const InvalidRecipe&) { recipe_.forms.clear(); }
  }

  static std::vector<Output> outputs() { return std::vector<Output>(kOutputs, {nullptr, kOutputBytes}); }

  void add_side(Numbers& to) { to.push_back(static_cast<double>(choose_.between(1, choose_.one_in(8) ? 200 : 48))); }
  void add_sides(Numbers& to) { add_side(to), add_side(to); }
  void add_reals(Numbers& to, int count, double least, double most) {
    for (int i = 0; i < count; ++i) to.push_back(choose_.real(least, most));
  }
  void add_below(Numbers& to, int64_t n) { to.push_back(static_cast<double>(choose_.below(n))); }
  void add_bytes(Numbers& to, int count) {
    for (int i = 0; i < count; ++i) add_below(to, 256);
  }

  Numbers numbers_of(Op op, const Form& form, int64_t images) {
    Numbers p;
    const auto height = static_cast<double>(form.height), width = static_cast<double>(form.width);
    switch (op) {
      case Op::Crop: add_window(p, form.height, form.width); break;
      case Op::Resize:
        add_sides(p);
        if (choose_.one_in(3)) add_reals(p, 2, -2, height + 2), add_reals(p, 2, -2, width + 2);
        else p.insert(p.end(), {0, height, 0, width});
        add_below(p, 8), add_below(p, 2);
        break;
      case Op::Transpose: add_below(p, 7); break;
      case Op::Affine: add_sides(p), add_matrix(p, form, 6), add_below(p, 2), add_bytes(p, 3); break;
      case Op::Project:
        add_sides(p), add_matrix(p, form, 6), add_reals(p, 2, -0.02, 0.02), add_below(p, 2);
        p.push_back(static_cast<double>(choose_.between(1, 2))), add_bytes(p, 3);
        break;
      case Op::Pad:
      case Op::FloatPad:
      case Op::PadEdges: add_frame(p, op, form); break;
      case Op::Map: add_below(p, kTables); break;
      case Op::Floats:
        p.push_back(static_cast<double>(choose_.one_in(8) ? choose_.below(kTables) : choose_.between(2, 3)));
        break;
      case Op::Contrast:
      case Op::Saturate:
      case Op::Sharpen: add_reals(p, 1, -1, 3); break;
      case Op::Hue: add_bytes(p, 1); break;
      case Op::Correlate:
      case Op::TorchProducts: add_filter(p); break;
      case Op::TorchResize: add_sides(p), add_below(p, 3), add_below(p, 2); break;
      case Op::TorchPick: add_sides(p), add_below(p, 2); break;
      case Op::TorchResizeFloats: add_sides(p), add_below(p, 2), add_below(p, 4); break;
      case Op::TorchLuma:
      case Op::TorchAutocontrast: add_below(p, 3); break;
      case Op::TorchContrast: add_below(p, 3), add_reals(p, 1, 0, 3), add_sum(p); break;
      case Op::FloatContrast:
        add_below(p, 3), add_reals(p, 1, 0, 3), add_sum(p);
        p.push_back(static_cast<double>(choose_.between(1, 64))), add_below(p, 2);
        break;
      case Op::TorchSaturate:
      case Op::TorchSharpen:
      case Op::TorchSharpenProducts: add_below(p, 3), add_reals(p, 1, -1, 3); break;
      case Op::TorchHue: add_below(p, 3), add_reals(p, 1, -0.5, 0.5); break;
      case Op::TorchWarp:
        add_sides(p), add_reals(p, 8, -1.2, 1.2), add_below(p, 2), add_below(p, 2), add_below(p, 3),
            add_reals(p, 3, 0, 255);
        break;
      case Op::TorchGrid:
        p.push_back(double(choose_.between(1, 8))), p.push_back(double(choose_.between(1, 16)));
        add_below(p, 2), add_below(p, 3), add_reals(p, 3, 0, 255), add_below(p, kTables);
        break;
      case Op::Channels: add_below(p, 3), add_below(p, 3), add_below(p, 3); break;
      case Op::Blur: add_reals(p, 2, 0, 6), p.push_back(double(choose_.between(1, 4))), add_below(p, 2); break;
      case Op::Mix: {
        const int64_t others = choose_.below(3);
        p.push_back(static_cast<double>(1 + 2 * others));
        for (int64_t i = 0; i <= others; ++i) {
          if (i > 0) add_below(p, images);
          p.push_back(static_cast<double>(choose_.between(2, 3)));
        }
        break;
      }
      case Op::Blend: add_below(p, images), add_reals(p, 1, -1, 3); break;
      case Op::Pointwise: {
        const int64_t count = choose_.between(0, 3);
        p.push_back(static_cast<double>(4 * count));
        for (int64_t i = 0; i < count; ++i) add_below(p, 9), add_reals(p, 3, -2, 2);
        break;
      }
      case Op::Arrange: add_arrangement(p, form); break;
      case Op::StorePixels: add_below(p, kOutputs), p.push_back(static_cast<double>(8 * choose_.below(40))); break;
      case Op::Store:
        add_below(p, kOutputs), p.push_back(static_cast<double>(8 * choose_.below(40)));
        p.push_back(form.floats || choose_.one_in(3) ? -1.0 : static_cast<double>(choose_.below(kTables)));
        break;
      case Op::Patch: add_patch(p, form); break;
      default: break;
    }
    return p;
  }

  // Patches in a random order of their axes, with copies; sometimes of another size, which is refused.
  void add_arrangement(Numbers& p, const Form& form) {
    const int64_t down = choose_.between(1, 3), across = choose_.between(1, 3);
    const int64_t sides[2] = {form.height / down, form.width / across};
    std::vector<std::array<int64_t, 3>> axes{{0, form.channels, 1}, {1, down, sides[0]}, {1, sides[0], 1},
                                             {2, across, sides[1]}, {2, sides[1], 1},    {3, choose_.between(1, 3), 0}};
    for (size_t i = axes.size() - 1; i > 0; --i)
      std::swap(axes[i], axes[static_cast<size_t>(choose_.below(static_cast<int64_t>(i) + 1))]);
    p.push_back(static_cast<double>(3 * axes.size()));
    for (const auto& axis : axes)
      for (const int64_t number : axis) p.push_back(static_cast<double>(number));
  }

  void add_matrix(Numbers& p, const Form& form, int count) {
    const auto width = static_cast<double>(form.width);
    for (int i = 0; i < count; ++i) p.push_back(i % 3 == 2 ? choose_.real(-width, width) : choose_.real(-1.5, 1.5));
    if (choose_.one_in(4)) p[p.size() - 5] = p[p.size() - 3] = 0;  // a scale
  }

  void add_frame(Numbers& p, Op op, const Form& form) {
    const int64_t least = op == Op::PadEdges ? -20 : 0;
    const int64_t left = choose_.between(least, 12), top = choose_.between(least, 12);
    p = {double(left), double(top), double(std::max<int64_t>(1, form.height + top + choose_.below(12))),
         double(std::max<int64_t>(1, form.width + left + choose_.below(12)))};
    if (op == Op::PadEdges) add_below(p, static_cast<int64_t>(stoker::Border::Constant));
    else add_bytes(p, 3);
  }

  void add_filter(Numbers& p) {
    const int64_t height = choose_.between(1, 5), width = choose_.between(1, 5);
    p = {double(height * width + 2), double(height), double(width)};
    add_reals(p, static_cast<int>(height * width), -1, 1);
  }

  void add_sum(Numbers& p) {
    p.push_back(static_cast<double>(4 << choose_.below(3)));
    p.push_back(static_cast<double>(choose_.between(1, 20)));
  }

  void add_patch(Numbers& p, const Form& form) {
    add_below(p, kOutputs), p.push_back(static_cast<double>(8 * choose_.below(40)));
    p.push_back(static_cast<double>(1 << choose_.below(4)));
    p.push_back(static_cast<double>(form.height)), p.push_back(static_cast<double>(form.width));
    for (const int64_t size : {form.channels, form.height, form.width}) {
      const int64_t first = choose_.below(size);
      p.push_back(static_cast<double>(first));
      p.push_back(static_cast<double>(choose_.between(first, std::min(size, first + 12))));
    }
    add_below(p, 2), add_below(p, kTables);
  }

  Choices& choose_;
  const std::vector<File>& files_;
  Recipe recipe_;
};

// ---- running ----

struct Results {
  Status status;
  std::string why;
  std::unique_ptr<uint8_t[]> outputs[kOutputs];
};

Results run_recipe(const Recipe& recipe, const std::vector<double>& numbers, Isa isa) {
  stoker::isa_setting() = isa;
  RecipeBatch batch;
  Results results{Status::Pending, {}, {}};
  batch.numbers = numbers;
  batch.starts = {0, static_cast<int64_t>(numbers.size())};
  batch.sources = {recipe.source};
  batch.tables = recipe.tables;
  for (auto& output : results.outputs) {
    output.reset(new uint8_t[kOutputBytes]);
    std::memset(output.get(), 0x55, kOutputBytes);
    batch.outputs.push_back({output.get(), kOutputBytes});
  }
  batch.status = {Status::Pending};
  batch.why.resize(1);
  batch.remaining = 1;
  ThreadScratch scratch;  // of this recipe alone, so that the sanitizer sees reads past the end of an image
  materialize(batch, 0, scratch);
  results.status = batch.status[0];
  results.why = batch.why[0];
  return results;
}

// NaNs may have any sign and payload.
bool equal(const Results& a, const Results& b) {
  if (a.status != b.status) return false;
  for (int o = 0; o < kOutputs; ++o)
    for (size_t at = 0; at < kOutputBytes; at += 4) {
      float x, y;
      std::memcpy(&x, a.outputs[o].get() + at, 4);
      std::memcpy(&y, b.outputs[o].get() + at, 4);
      if (std::memcmp(&x, &y, 4) != 0 && !(std::isnan(x) && std::isnan(y))) return false;
    }
  return true;
}

// Use the image of each step once more, so that no step is fused with another.
std::vector<double> apart(const Recipe& recipe, size_t steps) {
  std::vector<double> numbers = recipe.numbers;
  for (size_t i = 0; i < steps; ++i)
    numbers.insert(numbers.end(), {static_cast<double>(Op::Transpose), static_cast<double>(i), 0.0});
  return numbers;
}

struct Checked {
  std::vector<RecordedStep> steps;
  std::vector<Form> forms;
};

std::optional<Checked> check(const Recipe& recipe) {
  try {
    Checked checked;
    const double* const at = recipe.numbers.data();
    checked.steps = read_steps(at, at + recipe.numbers.size());
    checked.forms = verify(checked.steps, recipe.tables, std::vector<Output>(kOutputs, {nullptr, kOutputBytes}));
    return checked;
  } catch (const InvalidRecipe&) { return {}; }
}

void run(const uint8_t* data, size_t size) {
  static const std::vector<File> files = read_files();
  ++counts.runs;
  Choices choose(data, size);
  const bool law = choose.one_in(kCheckedShare);
  const Isa best = stoker::detect_isa();
  const Isa isa = best == Isa::AVX512 && choose.one_in(2) ? Isa::AVX2 : best;
  const Recipe recipe = Writer(choose, files).write();
  const std::optional<Checked> checked = check(recipe);
  if (checked) {
    ++counts.verified;
    for (const Form& form : checked->forms)
      if (form.values() > kFewValues) return;
  }
  const Results results = run_recipe(recipe, recipe.numbers, isa);
  counts.completed += results.status == Status::Done;
  counts.skipped += results.status == Status::Skipped;
  if (!checked && results.status != Status::Invalid) broken_law("a recipe that fails verification is not run");
  if (checked && results.status == Status::Invalid && results.why != "bytes that are not the image's") {
    std::fprintf(stderr, "%s\n", results.why.c_str());
    broken_law("a verified recipe can be run");
  }
  if (results.status != Status::Done) return;
  for (const RecordedStep& step : checked->steps) ++counts.steps[static_cast<size_t>(step.op)];
  if (!law) return;
  ++counts.checked;
  if (!equal(results, run_recipe(recipe, recipe.numbers, Isa::Plain)))
    broken_law("every instruction set stores the same bytes");
  if (!equal(results, run_recipe(recipe, apart(recipe, checked->forms.size()), isa)))
    broken_law("fused steps store the same bytes as single steps");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const bool registered = std::atexit(report) == 0;
  (void)registered;
  run(data, size);
  return 0;
}

#ifdef STOKER_FUZZ_STANDALONE
// recipe_fuzz SECONDS SEED, or recipe_fuzz 0 0 FILE...: runs kept inputs.
#include <chrono>
#include <random>

#include "kept_input.hpp"

using stoker::fuzz::current;
using stoker::fuzz::save_on_failure;

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: recipe_fuzz SECONDS SEED [FILE...]\n");
    return 2;
  }
  save_on_failure("crash.recipe", report);
  for (int i = 3; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    current.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    LLVMFuzzerTestOneInput(current.data(), current.size());
  }
  std::mt19937 random(static_cast<unsigned>(std::atoi(argv[2])));
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::atoi(argv[1]));
  while (std::chrono::steady_clock::now() < end) {
    current.resize(64 + random() % 700);
    for (uint8_t& byte : current) byte = static_cast<uint8_t>(random());
    LLVMFuzzerTestOneInput(current.data(), current.size());
  }
  return 0;
}
#endif
