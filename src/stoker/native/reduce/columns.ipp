// SPDX-License-Identifier: Apache-2.0
// Column statistics, written once over the vectors of base/vectors.ipp, which the including file includes first.
//
// A step takes `kPhases` vectors, so that a lane of a vector stays in one column: four for 1, 2 and 4 columns, three for
// 3. Every lane has an accumulator of twice its bits or more. Before it can overflow, after kSteps steps, `widen` moves
// it into a wider one, and after kWidenings of these it is added to the totals. A statistic that costs less than its
// loads has twice the vectors in a step, and prefetches a line of the next page, so that the page's address is found before
// the first load of it. To prefetch every line would cost a third of the time.

constexpr int kMaxPhases = 4;
constexpr int64_t kPage = 4096;

// Elements of T as lanes of the next wider type: the even ones of a vector, and the odd ones.
template <class T>
using Wide = std::conditional_t<sizeof(T) == 1, std::conditional_t<std::is_signed_v<T>, int16_t, uint16_t>,
                                std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>>;

template <class T>
inline V<Wide<T>> even_lanes(V<T> x) {
  constexpr int kBits = 8 * sizeof(T);
  using Unsigned = std::make_unsigned_t<Wide<T>>;
  return (V<Wide<T>>)((V<Unsigned>)x << kBits) >> kBits;
}
template <class T>
inline V<Wide<T>> odd_lanes(V<T> x) {
  return (V<Wide<T>>)x >> static_cast<int>(8 * sizeof(T));
}

// Sums of bytes: words take 256 bytes (255 signed ones), and 32 bits take 2^15 words.
template <class T>
struct ByteSumOf {
  using Element = T;
  using Lane = int64_t;
  using Total = std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>;
  static constexpr int kSteps = std::is_signed_v<T> ? 255 : 256, kWidenings = 32768;
  static constexpr bool kCheap = false;
  V<Wide<T>> even, odd;
  V<Total> lane[4];  // each takes every fourth byte

  ByteSumOf() : even{}, odd{}, lane{} {}
  void add(V<T> x) {
    even += even_lanes<T>(x);
    odd += odd_lanes<T>(x);
  }
  void widen() {
    lane[0] += even_lanes<Wide<T>>(even);
    lane[1] += even_lanes<Wide<T>>(odd);
    lane[2] += odd_lanes<Wide<T>>(even);
    lane[3] += odd_lanes<Wide<T>>(odd);
    even = odd = V<Wide<T>>{};
  }
  // Call visit(i, value) for every element of a vector.
  template <class Visit>
  void each(Visit visit) const {
    for (int i = 0; i < kLanes<Total>; ++i)
      for (int k = 0; k < 4; ++k) visit(4 * i + k, static_cast<int64_t>(lane[k][i]));
  }
  static T padding() { return 0; }
  static Lane join(Lane a, Lane b) { return a + b; }
  static int64_t term(T x) { return x; }
};

// Sums of words.
template <class T>
struct SumOf {
  using Element = T;
  using Lane = int64_t;
  static constexpr int kSteps = 32768, kWidenings = 1;
  static constexpr bool kCheap = false;
  V<Wide<T>> even, odd;

  SumOf() : even{}, odd{} {}
  void add(V<T> x) {
    even += even_lanes<T>(x);
    odd += odd_lanes<T>(x);
  }
  void widen() {}
  template <class Visit>
  void each(Visit visit) const {
    for (int i = 0; i < kLanes<Wide<T>>; ++i) {
      visit(2 * i, static_cast<int64_t>(even[i]));
      visit(2 * i + 1, static_cast<int64_t>(odd[i]));
    }
  }
  static T padding() { return 0; }
  static Lane join(Lane a, Lane b) { return a + b; }
  static int64_t term(T x) { return x; }
};

// Accumulator of squares of bytes, which have 16 bits; four lanes of 32 bits each take every fourth of them.
template <class T>
struct SquaresOf {
  using Element = T;
  using Lane = int64_t;
  static constexpr int kSteps = 32768, kWidenings = 1;
  static constexpr bool kCheap = false;
  V<uint32_t> lane[4];

  SquaresOf() : lane{} {}
  void add(V<T> x) {
    const V<Wide<T>> even = even_lanes<T>(x), odd = odd_lanes<T>(x);
    add_words((V<uint16_t>)(even * even), 0);
    add_words((V<uint16_t>)(odd * odd), 1);
  }
  void widen() {}
  template <class Visit>
  void each(Visit visit) const {
    for (int i = 0; i < kLanes<uint32_t>; ++i)
      for (int k = 0; k < 4; ++k) visit(4 * i + k, static_cast<int64_t>(lane[k][i]));
  }
  static T padding() { return 0; }
  static Lane join(Lane a, Lane b) { return a + b; }
  static int64_t term(T x) { return static_cast<int64_t>(x) * x; }

 private:
  void add_words(V<uint16_t> words, int first) {
    lane[first] += (V<uint32_t>)words & 0xFFFF;
    lane[first + 2] += (V<uint32_t>)words >> 16;
  }
};

template <class T, bool kMax>
struct ExtremeOf {
  using Element = T;
  using Lane = T;
  static constexpr int kSteps = 1 << 30, kWidenings = 1;
  static constexpr bool kCheap = true;
  V<T> best;

  ExtremeOf() : best(V<T>{} + padding()) {}
  void add(V<T> x) {
    if constexpr (kMax) best = x > best ? x : best;
    else best = x < best ? x : best;
  }
  void widen() {}
  template <class Visit>
  void each(Visit visit) const {
    for (int i = 0; i < kLanes<T>; ++i) visit(i, best[i]);
  }
  static T padding() { return kMax ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max(); }
  template <class N>
  static N join(N a, N b) {
    return kMax ? (b > a ? b : a) : (b < a ? b : a);
  }
  static int64_t term(T x) { return x; }
};

// Join the lanes of a step with the totals of their columns. Lanes that are a multiple of `columns` apart belong to one
// column, so that halves are joined lane by lane as long as there are two of them.
template <class Accumulator, int kPhases>
void join_lanes(const Accumulator (&found)[kPhases], int columns, int64_t* totals) {
  using Lane = typename Accumulator::Lane;
  constexpr int kVector = kLanes<typename Accumulator::Element>;
  Lane lanes[kPhases * kVector];
  for (int k = 0; k < kPhases; ++k)
    found[k].each([&](int i, auto value) { lanes[k * kVector + i] = static_cast<Lane>(value); });
  int left = kPhases * kVector;
  while (left % (2 * columns) == 0) {
    left /= 2;
    for (int i = 0; i < left; ++i) lanes[i] = Accumulator::join(lanes[i], lanes[left + i]);
  }
  for (int i = 0; i < left; i += columns)
    for (int c = 0; c < columns; ++c) totals[c] = Accumulator::join(totals[c], static_cast<int64_t>(lanes[i + c]));
}

template <class Accumulator, int kPhases>
void add_blocks(const uint8_t* p, int64_t count, int columns, int64_t* totals) {
  using T = typename Accumulator::Element;
  constexpr int kStep = kPhases * kLanes<T>;
  while (count > 0) {
    Accumulator found[kPhases];
    const auto add_step = [&](const uint8_t* from) {
      for (int k = 0; k < kPhases; ++k) found[k].add(load_vector<T>(from + k * STOKER_VECTOR_BYTES));
    };
    constexpr int64_t kMostSteps = int64_t{Accumulator::kSteps} * Accumulator::kWidenings;
    const int64_t steps = std::min(count / kStep, kMostSteps - 1);
    for (int64_t s = 0; s < steps;) {
      int64_t together = Accumulator::kSteps;
      if constexpr (Accumulator::kCheap) {
        together = kPage / (kPhases * STOKER_VECTOR_BYTES);
        __builtin_prefetch(p + kPage);
      }
      for (const int64_t end = std::min(steps, s + together); s < end; ++s) {
        add_step(p);
        p += kPhases * STOKER_VECTOR_BYTES;
      }
      for (Accumulator& one : found) one.widen();
    }
    count -= steps * kStep;
    if (count > 0 && count < kStep) {  // the last elements, in a step of their own
      alignas(STOKER_VECTOR_BYTES) T rest[kStep];
      std::memcpy(rest, p, static_cast<size_t>(count) * sizeof(T));
      std::fill(rest + count, rest + kStep, Accumulator::padding());
      add_step(reinterpret_cast<const uint8_t*>(rest));
      for (Accumulator& one : found) one.widen();
      count = 0;
    }
    join_lanes(found, columns, totals);
  }
}

template <class Accumulator>
void add(const uint8_t* p, int64_t count, int columns, int64_t* totals) {
  constexpr int kTogether = Accumulator::kCheap ? 2 : 1;
  if (columns == 3) add_blocks<Accumulator, 3 * kTogether>(p, count, columns, totals);
  else add_blocks<Accumulator, kMaxPhases * kTogether>(p, count, columns, totals);
}

template <class T>
void fill_integer(Kernels& k, int type) {
  const auto set = [&](Statistic s, Add f) { k.add[static_cast<int>(s)][type] = f; };
  if constexpr (sizeof(T) == 1) set(Statistic::Sum, add<ByteSumOf<T>>);
  if constexpr (sizeof(T) == 2) set(Statistic::Sum, add<SumOf<T>>);
  if constexpr (sizeof(T) == 1) set(Statistic::Squares, add<SquaresOf<T>>);
  set(Statistic::Min, add<ExtremeOf<T, false>>);
  set(Statistic::Max, add<ExtremeOf<T, true>>);
}

void fill_kernels(Kernels& k) {
  fill_integer<uint8_t>(k, 0);
  fill_integer<int8_t>(k, 1);
  fill_integer<uint16_t>(k, 2);
  fill_integer<int16_t>(k, 3);
  fill_integer<uint32_t>(k, 4);
  fill_integer<int32_t>(k, 5);
}
