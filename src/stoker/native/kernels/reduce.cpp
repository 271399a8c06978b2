// SPDX-License-Identifier: Apache-2.0
// Reductions over some axes of a tensor.
#include <algorithm>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "base/elements.hpp"
#include "kernels/registry.hpp"
#include "kernels/store_scalar.hpp"
#include "plan/check.hpp"
#include "reduce/columns.hpp"
#include "reduce/floats.hpp"
#include "run/job.hpp"
#include "shared/reduce_fold.hpp"

namespace stoker {

namespace {

using fold::kChunk;
using fold::kLanes;
using fold::Reduction;

// The reduced or the kept axes of a tensor.
struct Axes {
  int64_t shape[kMaxRank], stride[kMaxRank];
  int rank = 0;

  // Append an axis; merge it with the last one if their elements form one regular sequence.
  void add(int64_t extent, int64_t step) {
    if (extent == 1) return;
    if (rank > 0 && stride[rank - 1] == extent * step) {
      shape[rank - 1] *= extent;
      stride[rank - 1] = step;
      return;
    }
    shape[rank] = extent;
    stride[rank++] = step;
  }
};

// Call visit(first, count, stride) for runs of elements, in the order of the axes.
template <class Visit>
void walk(const uint8_t* data, const Axes& axes, Visit&& visit) {
  const int last = axes.rank - 1;
  for (int i = 0; i < axes.rank; ++i)
    if (axes.shape[i] == 0) return;
  if (axes.rank == 0) return visit(data, int64_t{1}, int64_t{0});
  int64_t at[kMaxRank] = {};
  for (;;) {
    visit(data, axes.shape[last], axes.stride[last]);
    int d = last - 1;
    for (; d >= 0; --d) {
      data += axes.stride[d];
      if (++at[d] < axes.shape[d]) break;
      data -= axes.stride[d] * axes.shape[d];
      at[d] = 0;
    }
    if (d < 0) return;
  }
}

// Reduction over elements of type T.
template <Reduction kOp, class T>
using FoldOf = fold::Fold<kOp, Computed<T>>;

template <Reduction kOp, class T>
typename FoldOf<kOp, T>::Result term_of(const uint8_t* p, double about) {
  return FoldOf<kOp, T>::term(computed_from(load_element<T>(p)), about);
}

template <Reduction kOp, class T>
class Reducer {
 public:
  using Fold = FoldOf<kOp, T>;
  using Result = typename Fold::Result;

  explicit Reducer(double about) : about_(about) {
    std::fill_n(lanes_, kLanes, Fold::neutral());
    std::fill_n(chunks_, kLanes, Fold::neutral());
  }

  void take(const uint8_t* p, int64_t count, int64_t stride) {
    while (count > 0) {
      const int64_t steps = std::min(count, kChunk - at_) / kLanes;
      if (at_ % kLanes == 0 && steps > 0) {
        if (stride == static_cast<int64_t>(sizeof(T))) whole<true>(p, steps, stride);
        else whole<false>(p, steps, stride);
        p += steps * kLanes * stride;
        count -= steps * kLanes;
        at_ += steps * kLanes;
      } else {
        add(&lanes_[at_ % kLanes], p);
        p += stride;
        --count;
        ++at_;
      }
      if (at_ == kChunk) end_chunk();
    }
  }

  Result result() {
    if (at_ > 0) end_chunk();
    return joined(chunks_, std::min<int64_t>(ended_, kLanes));
  }

 private:
  void add(Result* lane, const uint8_t* p) { *lane = Fold::join(*lane, term_of<kOp, T>(p, about_)); }

  template <bool kDense>
  void whole(const uint8_t* p, int64_t steps, int64_t stride) {
    const int64_t step = kDense ? static_cast<int64_t>(sizeof(T)) : stride;
    // As many lanes as fit into registers; the chunk stays in the cache.
    for (int first = 0; first < kLanes; first += kAtOnce) {
      Result lanes[kAtOnce];
      std::copy_n(lanes_ + first, kAtOnce, lanes);
      const uint8_t* q = p + first * step;
      for (int64_t s = 0; s < steps; ++s, q += kLanes * step)
        for (int i = 0; i < kAtOnce; ++i) add(&lanes[i], q + i * step);
      std::copy_n(lanes, kAtOnce, lanes_ + first);
    }
  }

  static constexpr int kAtOnce = 8;
  // Join lanes of which only the first `used` have a number.
  static Result joined(Result* lanes, int64_t used) {
    int64_t half = 1;
    while (half < used) half *= 2;
    for (half /= 2; half > 0; half /= 2)
      for (int64_t i = 0; i < half; ++i) lanes[i] = Fold::join(lanes[i], lanes[i + half]);
    return lanes[0];
  }

  void end_chunk() {
    const int64_t used = std::min<int64_t>(at_, kLanes);
    Result* lane = &chunks_[ended_++ % kLanes];
    *lane = Fold::join(*lane, joined(lanes_, used));
    std::fill_n(lanes_, used, Fold::neutral());
    at_ = 0;
  }

  double about_;
  int64_t at_ = 0, ended_ = 0;  // numbers in the current chunk; finished chunks
  Result lanes_[kLanes], chunks_[kLanes];
};

template <Reduction kOp, class T>
typename FoldOf<kOp, T>::Result reduce_many(const uint8_t* data, const Axes& axes, double about) {
  Reducer<kOp, T> one(about);
  walk(data, axes, [&](const uint8_t* p, int64_t n, int64_t stride) { one.take(p, n, stride); });
  return one.result();
}

// 64 bits do not fit into a double.
template <class N>
void put_whole(uint8_t* to, DType dtype, N value) {
  if (sizeof(N) == 8 && std::is_integral_v<N> && size_of(dtype) == 8 && dtype != DType::F64)
    __builtin_memcpy(to, &value, sizeof value);
  else store_scalar(to, dtype, static_cast<double>(value));
}

// Reduce few numbers, each of which is the only one of its lane.
template <Reduction kOp, class T>
typename FoldOf<kOp, T>::Result reduce_few(const uint8_t* data, const Axes& axes, int64_t count, double about) {
  using Fold = FoldOf<kOp, T>;
  const auto lane = [&](const uint8_t* p) { return Fold::join(Fold::neutral(), term_of<kOp, T>(p, about)); };
  if (count <= 4 && axes.rank <= 1) {  // a pixel's channels: lanes without a number would not change the result
    typename Fold::Result four[4];
    const int64_t stride = axes.rank ? axes.stride[0] : 0;
    for (int64_t i = 0; i < 4; ++i) four[i] = i < count ? lane(data + i * stride) : Fold::neutral();
    return Fold::join(Fold::join(four[0], four[2]), Fold::join(four[1], four[3]));
  }
  typename Fold::Result lanes[kLanes];
  int64_t at = 0, half = 1;
  walk(data, axes, [&](const uint8_t* p, int64_t n, int64_t stride) {
    for (int64_t i = 0; i < n; ++i, p += stride) lanes[at++] = lane(p);
  });
  while (half < count) half *= 2;
  std::fill(lanes + at, lanes + half, Fold::neutral());
  for (half /= 2; half > 0; half /= 2)
    for (int64_t i = 0; i < half; ++i) lanes[i] = Fold::join(lanes[i], lanes[i + half]);
  return lanes[0];
}

// Statistic whose exact totals give a reduction of integers. Totals of doubles are exact too while they are below 2^53.
constexpr columns::Statistic statistic_of(Reduction op) {
  switch (op) {
    case Reduction::Min: return columns::Statistic::Min;
    case Reduction::Max: return columns::Statistic::Max;
    case Reduction::Sum:
    case Reduction::Mean: return columns::Statistic::Sum;
    default: return columns::Statistic::Squares;
  }
}
constexpr int64_t kExactCount = int64_t{1} << 36;  // of terms below 2^16
constexpr int64_t kFewElements = 64;               // below, vectors do not pay off

// Reduction of integers by columns: the innermost reduced axis is contiguous, but for at most columns::kMost elements of a
// kept axis.
template <Reduction kOp, class T>
class ByColumns {
 public:
  ByColumns(const View& in, const Axes& stay, const Axes& gone, int64_t each) : outer_(stay), gone_(gone), each_(each) {
    if constexpr (kOp == Reduction::Variance || kOp == Reduction::StdDev) return;
    if (gone.rank == 0 || each > kExactCount) return;
    const int64_t size = size_of(in.dtype), inner = gone.stride[gone.rank - 1];
    if (inner != size) {
      const int last = stay.rank - 1;
      if (last < 0 || stay.stride[last] != size || stay.shape[last] > columns::kMost) return;
      if (inner != stay.shape[last] * size) return;
      columns_ = static_cast<int>(stay.shape[last]);
      --outer_.rank;
    }
    if (gone.shape[gone.rank - 1] * columns_ < kFewElements) return;
    add_ = columns::find(statistic_of(kOp), in.dtype);
  }

  bool applies() const { return add_ != nullptr; }

  void run(const uint8_t* data, double ddof, const View& out) const {
    uint8_t* to = out.data;
    walk(data, outer_, [&](const uint8_t* p, int64_t count, int64_t stride) {
      for (int64_t i = 0; i < count; ++i, p += stride) {
        int64_t totals[columns::kMost];
        std::fill_n(totals, columns_, columns::neutral(statistic_of(kOp)));
        walk(p, gone_, [&](const uint8_t* q, int64_t n, int64_t) { add_(q, n * columns_, columns_, totals); });
        for (int c = 0; c < columns_; ++c, to += size_of(out.dtype)) put(to, out.dtype, totals[c], ddof);
      }
    });
  }

 private:
  void put(uint8_t* to, DType dtype, int64_t total, double ddof) const {
    using Result = typename FoldOf<kOp, T>::Result;
    if constexpr (FoldOf<kOp, T>::kExtreme || kOp == Reduction::Sum) put_whole(to, dtype, static_cast<Result>(total));
    else store_scalar(to, dtype, fold::averaged<kOp>(static_cast<double>(total), each_, ddof));
  }

  Axes outer_;
  const Axes& gone_;
  int64_t each_;
  int columns_ = 1;
  columns::Add add_ = nullptr;
};

constexpr floats::Term term_of_floats(Reduction op) {
  switch (op) {
    case Reduction::Sum:
    case Reduction::Mean: return floats::Term::Value;
    case Reduction::MeanSquare:
    case Reduction::Rms: return floats::Term::Square;
    default: return floats::Term::Deviation;
  }
}

// Reduce one axis of floats with vectors: the reduced axis is contiguous, or the innermost kept one is. Return false if
// neither is.
template <Reduction kOp>
bool reduce_floats(const View& in, const Axes& stay, const Axes& gone, const View* mean, double ddof, const View& out) {
  constexpr int64_t kSize = sizeof(float), kAtOnce = 64;
  if (gone.rank != 1 || gone.stride[0] % kSize != 0) return false;
  const bool by_row = gone.stride[0] == kSize;
  Axes outer = stay;
  int64_t columns = 1;
  if (!by_row) {
    if (stay.rank == 0 || stay.stride[stay.rank - 1] != kSize) return false;
    columns = stay.shape[--outer.rank];
  }
  const int64_t count = gone.shape[0], apart = gone.stride[0] / kSize;
  const floats::Sum sum = floats::find(term_of_floats(kOp));
  uint8_t* to = out.data;
  int64_t at = 0;
  walk(in.data, outer, [&](const uint8_t* p, int64_t n, int64_t stride) {
    for (int64_t i = 0; i < n; ++i, p += stride)
      for (int64_t first = 0; first < columns; first += kAtOnce) {
        double about[kAtOnce], sums[kAtOnce];
        const int64_t some = std::min(columns - first, kAtOnce);
        if (mean)
          for (int64_t k = 0; k < some; ++k) about[k] = read_element(*mean, mean->elements() == 1 ? 0 : at + k);
        sum(reinterpret_cast<const float*>(p) + first, count, apart, some, mean ? about : nullptr, sums);
        for (int64_t k = 0; k < some; ++k, ++at, to += size_of(out.dtype)) {
          if constexpr (kOp == Reduction::Sum) put_whole(to, out.dtype, sums[k]);
          else store_scalar(to, out.dtype, fold::averaged<kOp>(sums[k], count, ddof));
        }
      }
  });
  return true;
}

template <Reduction kOp, class T>
void reduce(const View& in, uint32_t axes, const View* mean, double ddof, const View& out) {
  Axes stay, gone;
  for (int i = 0; i < in.rank; ++i) (axes >> i & 1 ? gone : stay).add(in.shape[i], in.stride[i]);
  int64_t at = 0, each = 1;
  for (int i = 0; i < gone.rank; ++i) each *= gone.shape[i];
  if constexpr (std::is_integral_v<Computed<T>>) {
    const ByColumns<kOp, T> fast(in, stay, gone, each);
    if (fast.applies()) return fast.run(in.data, ddof, out);
  }
  if constexpr (std::is_same_v<T, float> && !FoldOf<kOp, T>::kExtreme) {
    if (reduce_floats<kOp>(in, stay, gone, mean, ddof, out)) return;
  }
  uint8_t* to = out.data;
  walk(in.data, stay, [&](const uint8_t* p, int64_t count, int64_t stride) {
    for (int64_t i = 0; i < count; ++i, p += stride, to += size_of(out.dtype), ++at) {
      const double about = mean ? read_element(*mean, mean->elements() == 1 ? 0 : at) : 0.0;
      const auto result =
          each <= kLanes ? reduce_few<kOp, T>(p, gone, each, about) : reduce_many<kOp, T>(p, gone, about);
      if constexpr (FoldOf<kOp, T>::kExtreme || kOp == Reduction::Sum) put_whole(to, out.dtype, result);
      else store_scalar(to, out.dtype, fold::averaged<kOp>(result, each, ddof));
    }
  });
}

// Reduction. Inputs: the data, and for variance and deviation their mean. Parameter: ddof.
class Reduce : public Kernel {
 public:
  Reduce(Reduction op, uint32_t axes) : op_(op), axes_(axes) {}
  Ports ports() const override {
    Ports ports{.kernel = "reduce", .in = {{}}, .out = {{}}, .params = 1};
    if (has_mean()) ports.in.push_back({});
    return ports;
  }
  void check(const StepFacts& step) const override {
    const int32_t rank = step.in_rank(0);
    step.require(axes_ >> rank == 0, "axes", "bits of " + std::to_string(rank) + " axes", std::to_string(axes_));
  }
  bool fits(const Call& c) const override {
    const View& in = *c.in[0];
    int64_t outputs = 1;
    for (int i = 0; i < in.rank; ++i) outputs *= axes_ >> i & 1 ? 1 : in.shape[i];
    if (c.out[0]->elements() != outputs) {
      *c.error =
          "expected memory for " + std::to_string(outputs) + " results, got " + std::to_string(c.out[0]->elements());
      return false;
    }
    const int64_t means = has_mean() ? c.in[1]->elements() : outputs;
    if (means == 1 || means == outputs) return true;
    *c.error = "expected 1 or " + std::to_string(outputs) + " means, got " + std::to_string(means);
    return false;
  }
  Outcome run(const Call& c) const override {
    switch (op_) {
      case Reduction::Min: return of_type<Reduction::Min>(c);
      case Reduction::Max: return of_type<Reduction::Max>(c);
      case Reduction::Sum: return of_type<Reduction::Sum>(c);
      case Reduction::Mean: return of_type<Reduction::Mean>(c);
      case Reduction::MeanSquare: return of_type<Reduction::MeanSquare>(c);
      case Reduction::Rms: return of_type<Reduction::Rms>(c);
      case Reduction::Variance: return of_type<Reduction::Variance>(c);
      case Reduction::StdDev: return of_type<Reduction::StdDev>(c);
    }
    return Outcome::Ok;
  }

 private:
  bool has_mean() const { return op_ == Reduction::Variance || op_ == Reduction::StdDev; }
  template <Reduction kOp>
  Outcome of_type(const Call& c) const {
    const View& in = *c.in[0];
    const bool about = kOp == Reduction::Variance || kOp == Reduction::StdDev;
    const View* mean = about ? c.in[1] : nullptr;
    return with_type(in.dtype, [&]<class T>(T) {
      reduce<kOp, T>(in, axes_, mean, c.params[0], *c.out[0]);
      return Outcome::Ok;
    });
  }
  Reduction op_;
  uint32_t axes_;
};

std::shared_ptr<Kernel> make_reduce(int op, uint32_t axes) {
  if (op < 0 || op > static_cast<int>(Reduction::StdDev))
    throw std::invalid_argument("expected a reduction, got " + std::to_string(op));
  return std::make_shared<Reduce>(static_cast<Reduction>(op), axes);
}

const Registered kReduce{"reduce",
                         "Reduction over some axes. Sums have the order of shared/reduce_fold.hpp, floats are double.",
                         make_reduce,
                         {{"op", "a fold::Reduction"}, {"axes", "a bit for each axis that goes"}}};

}  // namespace

}  // namespace stoker
