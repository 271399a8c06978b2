// SPDX-License-Identifier: Apache-2.0
// Spectra of groups of frames. The including file provides base/vectors.ipp and signal/frames.ipp.

struct Complex {
  V<float> re, im;
};
constexpr Complex kNone = {};

// Arrays of complex numbers, one per point and lane.
struct Points {
  V<float>*re, *im;

  [[gnu::always_inline]] Complex at(int64_t i) const { return {re[i], im[i]}; }
  [[gnu::always_inline]] void set(int64_t i, Complex x) const {
    re[i] = x.re;
    im[i] = x.im;
  }
};

// One pass in place, over the blocks of n points that earlier passes have separated.
template <int R>
void fft_pass(const Points& x, int64_t length, int64_t n, const float* twiddles) {
  const int64_t m = n / R;
  for (int64_t block = 0; block < length; block += n) {
    Complex a[R];
    for (int k = 0; k < R; ++k) a[k] = x.at(block + m * k);
    fft::butterfly(a);
    for (int k = 0; k < R; ++k) x.set(block + m * k, a[fft::place<R>(k)]);
  }
  for (int64_t p = 1; p < m; ++p) {
    const float* w = twiddles + 2 * (p - 1) * (R - 1);
    for (int64_t at = p; at < length; at += n) {
      Complex a[R];
      for (int k = 0; k < R; ++k) a[k] = x.at(at + m * k);
      fft::butterfly(a);
      x.set(at, a[fft::place<R>(0)]);
      for (int k = 1; k < R; ++k)
        x.set(at + m * k, fft::times(a[fft::place<R>(k)], w[2 * (k - 1)], w[2 * (k - 1) + 1]));
    }
  }
}

// Transform plan.length points in place: all passes, or those of a part of them. Point k of the result is at
// fft::positions.
void fft_points(const fft::Plan& plan, const float* table, const Points& x, int first, int last) {
  int64_t n = plan.length;
  for (int i = 0; i < first; ++i) n /= plan.radix[i];
  for (int i = first; i < last; ++i) {
    const float* w = table + plan.twiddles[i];
    switch (plan.radix[i]) {
      case 2: fft_pass<2>(x, plan.length, n, w); break;
      case 3: fft_pass<3>(x, plan.length, n, w); break;
      case 4: fft_pass<4>(x, plan.length, n, w); break;
      case 5: fft_pass<5>(x, plan.length, n, w); break;
      case 8: fft_pass<8>(x, plan.length, n, w); break;
      default: fft_pass<16>(x, plan.length, n, w); break;
    }
    n /= plan.radix[i];
  }
}
void fft_points(const fft::Plan& plan, const float* table, const Points& x) {
  fft_points(plan, table, x, 0, plan.passes);
}

// Samples of the next group of frames, which are prefetched: the processor does not follow the streams of all frames.
struct Following {
  const char* data;
  int64_t bytes;
};
constexpr int64_t kLine = 64;  // bytes

inline void prefetch(const Following& following) {
  for (int64_t i = 0; i < following.bytes; i += kLine) __builtin_prefetch(following.data + i);
}

// The first pass, of which only the points [kFirst m, kLast m) of n = R m are in memory: the others are zeros, as the
// window is shorter than the transform. The compiler leaves out what it may with zeros.
template <int R, int kFirst, int kLast>
void first_pass(const Points& x, int64_t n, const float* twiddles, const Following& following) {
  const int64_t m = n / R, each = (following.bytes + kLine * m - 1) / (kLine * m) * kLine;
  const auto butterfly = [&](int64_t p, const float* w) __attribute__((always_inline)) {
    for (int64_t i = p * each; i < (p + 1) * each && i < following.bytes; i += kLine)
      __builtin_prefetch(following.data + i);
    Complex a[R];
    for (int k = 0; k < R; ++k) a[k] = k >= kFirst && k < kLast ? x.at(p + m * k) : kNone;
    fft::butterfly(a);
    x.set(p, a[fft::place<R>(0)]);
    for (int k = 1; k < R; ++k)
      x.set(p + m * k, w ? fft::times(a[fft::place<R>(k)], w[2 * (k - 1)], w[2 * (k - 1) + 1]) : a[fft::place<R>(k)]);
  };
  butterfly(0, nullptr);
  for (int64_t p = 1; p < m; ++p) butterfly(p, twiddles + 2 * (p - 1) * (R - 1));
}

// First pass of some transforms, and the first and the last of the R parts of the points that it reads.
struct FirstPass {
  int radix, first, last;
  void (*run)(const Points& x, int64_t n, const float* twiddles, const Following& following);
};
template <int R, int kFirst = 0, int kLast = R>
constexpr FirstPass first_pass_of() {
  return {R, kFirst, kLast, first_pass<R, kFirst, kLast>};
}

// Return the pass that reads the fewest parts, with those of samples from `begin` to `end`. Of 16 parts there are passes
// for windows in the middle and for those that zeros follow.
inline const FirstPass& find_first_pass(const fft::Plan& plan, int64_t begin, int64_t end) {
  static constexpr FirstPass kPasses[] = {
      first_pass_of<16, 3, 13>(), first_pass_of<16, 2, 14>(), first_pass_of<16, 0, 13>(), first_pass_of<16, 1, 15>(),
      first_pass_of<16>(),        first_pass_of<8>(),         first_pass_of<4>(),         first_pass_of<2>(),
      first_pass_of<5>(),         first_pass_of<3>()};
  const FirstPass* pass = kPasses;
  const int64_t part = 2 * (plan.length / plan.radix[0]);  // samples
  while (pass->radix != plan.radix[0] || pass->first * part > begin || pass->last * part < end) ++pass;
  return *pass;
}

// Bluestein's algorithm: a transform of any size as a convolution with a chirp, of a size that has only small factors.
// Point k of the result is y[positions[k]].
void chirp_points(const fft::Plan& plan, const float* table, const int32_t* positions, const Points& x,
                  const Points& y) {
  const float *chirp = table + plan.chirp, *filter = table + plan.filter;
  for (int64_t i = 0; i < plan.points; ++i) x.set(i, fft::times(x.at(i), chirp[2 * i], chirp[2 * i + 1]));
  for (int64_t i = plan.points; i < plan.length; ++i) x.set(i, kNone);
  fft_points(plan, table, x);
  // The inverse transform is the forward one with real and imaginary parts exchanged.
  for (int64_t i = 0; i < plan.length; ++i) {
    const Complex c = fft::times(x.at(positions[i]), filter[2 * i], filter[2 * i + 1]);
    y.set(i, {c.im, c.re});
  }
  fft_points(plan, table, y);
  for (int64_t i = 0; i < plan.points; ++i) {
    const Complex c = y.at(positions[i]);
    y.set(positions[i], fft::times(Complex{c.im, c.re}, chirp[2 * i], chirp[2 * i + 1]));
  }
}

[[gnu::always_inline]] inline V<float> root(V<float> x) {
  for (int l = 0; l < kFrames; ++l) x[l] = __builtin_sqrtf(x[l]);
  return x;
}

[[gnu::always_inline]] inline V<float> power_of(Complex x, float factor) {
  return (x.re * x.re + x.im * x.im) * factor;
}

// Write the powers of bins k and n - k of a real transform, from the points k and n - k, 0 < k <= n / 2.
[[gnu::always_inline]] inline void put_pair(Complex z, Complex y, const float* pair, int64_t k, int64_t n,
                                            V<float>* out) {
  Complex low, high;
  fft::real_pair(z, y, pair[2 * k], pair[2 * k + 1], low, high);
  out[k] = power_of(low, 0.25f);
  out[n - k] = power_of(high, 0.25f);
}

void powers(const fft::Plan& plan, const float* table, const int32_t* positions, const Points& z, V<float>* out) {
  if (plan.is_odd()) {
    for (int64_t k = 0; k < plan.bins; ++k) out[k] = power_of(z.at(positions[k]), 1.0f);
    return;
  }
  const float* w = table + plan.pair;
  const int64_t n = plan.points;
  const V<float> none = {};
  out[0] = power_of(Complex{z.re[0] + z.im[0], none}, 1.0f);
  out[n] = power_of(Complex{z.re[0] - z.im[0], none}, 1.0f);
  for (int64_t k = 1; 2 * k <= n; ++k) put_pair(z.at(positions[k]), z.at(positions[n - k]), w, k, n, out);
}

// The last pass of a real transform, and the powers of the bins. The points j * parts + part for all j are a butterfly;
// their partners are those of butterfly `parts - part`. So two butterflies give the powers of 2 R bins, and the points are
// not written.
template <int R>
void last_pass(const fft::Plan& plan, const float* table, const int32_t* positions, const Points& x, V<float>* out) {
  const float* const w = table + plan.pair;
  const int64_t n = plan.points, parts = n / R;
  const auto load = [&](int64_t part, Complex(&a)[R]) __attribute__((always_inline)) {
    for (int k = 0; k < R; ++k) a[k] = x.at(positions[part] + k);
    if constexpr (R == 16) fft::begin_sixteen(a);
    else fft::butterfly(a);
  };
  for (int64_t part = 1; 2 * part < parts; ++part) {
    Complex a[R], b[R];
    load(part, a);
    load(parts - part, b);
    if constexpr (R == 16) {
#pragma GCC unroll 1  // the 16 vectors of two butterflies of four points are in registers
      for (int j = 0; j < 4; ++j) {
        Complex *c = a + 4 * j, *d = b + 4 * (3 - j);
        Complex y[4] = {c[0], c[1], c[2], c[3]}, z[4] = {d[0], d[1], d[2], d[3]};
        fft::butterfly(y);
        fft::butterfly(z);
        const int64_t k = part + parts * j, apart = 4 * parts;
        put_pair(y[0], z[3], w, k, n, out);
        put_pair(y[1], z[2], w, k + apart, n, out);
        put_pair(z[1], y[2], w, n - k - 2 * apart, n, out);
        put_pair(z[0], y[3], w, n - k - 3 * apart, n, out);
      }
    } else {
      for (int j = 0; j < R; ++j) {
        const Complex &y = a[fft::place<R>(j)], &z = b[fft::place<R>(R - 1 - j)];
        if (2 * j < R) put_pair(y, z, w, part + parts * j, n, out);
        else put_pair(z, y, w, n - part - parts * j, n, out);
      }
    }
  }
  // The butterflies that are their own partners.
  const auto alone = [&](int64_t part) {
    const int64_t at = positions[part];
    Complex a[R];
    for (int k = 0; k < R; ++k) a[k] = x.at(at + k);
    fft::butterfly(a);
    for (int k = 0; k < R; ++k) x.set(at + k, a[fft::place<R>(k)]);
    for (int64_t k = part == 0 ? parts : part; 2 * k <= n; k += parts)
      put_pair(x.at(positions[k]), x.at(positions[n - k]), w, k, n, out);
  };
  alone(0);
  const V<float> none = {};
  out[0] = power_of(Complex{x.re[0] + x.im[0], none}, 1.0f);
  out[n] = power_of(Complex{x.re[0] - x.im[0], none}, 1.0f);
  if (parts % 2 == 0) alone(parts / 2);
}

void last_pass(const fft::Plan& plan, const float* table, const int32_t* positions, const Points& x, V<float>* out) {
  switch (plan.radix[plan.passes - 1]) {
    case 2: return last_pass<2>(plan, table, positions, x, out);
    case 3: return last_pass<3>(plan, table, positions, x, out);
    case 4: return last_pass<4>(plan, table, positions, x, out);
    case 5: return last_pass<5>(plan, table, positions, x, out);
    case 8: return last_pass<8>(plan, table, positions, x, out);
    default: return last_pass<16>(plan, table, positions, x, out);
  }
}

// Sample of a frame at any position: within the signal, or what the border gives.
struct Sampled {
  const Frames& f;
  const float* span;  // the samples from `begin` to `end` of a signal that is computed in parts
  int64_t begin, end;

  [[gnu::always_inline]] float operator[](int64_t position) const {
    const int64_t at = border_position<int64_t>(position, f.size, f.reflect ? Border::Reflect101 : Border::Constant);
    if (at < 0) return 0.0f;
    if (f.samples) return f.samples[at * f.element];
    if (at >= begin && at < end) return span[at - begin];
    float x;
    f.source.fill(f.source.context, at, 1, &x);
    return x;
  }
};

// Return the samples of a group's frames. Frames that the signal does not contain as they are, all of a group then, go to
// `copies`, kFrames * length floats. A signal that is computed in parts goes to `span`, of the same size. Lanes beyond the
// last frame repeat it.
inline Rows find_frames(const Frames& f, int64_t first, float* copies, float* span) {
  const int64_t count = f.count - first < kFrames ? f.count - first : kFrames;
  const bool overlap = f.step <= f.length;  // then the samples from the first frame to the last one fit into `span`
  const int64_t group = f.start + first * f.step, last = group + (count - 1) * f.step;
  const bool inside = group >= 0 && last + f.length <= f.size && count == kFrames;
  if (inside && f.samples && f.element == 1) return {f.samples + group, f.step};
  Sampled at{f, span, 0, 0};
  const auto fill = [&](int64_t begin, int64_t end) {
    at.begin = begin < 0 ? 0 : begin;
    at.end = end < f.size ? end : f.size;
    if (at.begin < at.end) f.source.fill(f.source.context, at.begin, at.end - at.begin, span);
  };
  if (!f.samples && overlap) fill(group, last + f.length);
  if (inside && !f.samples && overlap) return {span, f.step};
  for (int64_t l = 0; l < kFrames; ++l) {
    const int64_t begin = group + l * f.step;
    float* to = copies + l * f.length;
    if (l >= count) {
      std::memcpy(to, to - f.length, static_cast<size_t>(f.length) * sizeof(float));
      continue;
    }
    if (!f.samples && !overlap) fill(begin, begin + f.length);
    const int64_t low = begin < 0 ? (-begin < f.length ? -begin : f.length) : 0;  // samples before the signal
    const int64_t high = f.size - begin < f.length ? (f.size - begin > low ? f.size - begin : low) : f.length;
    for (int64_t i = 0; i < low; ++i) to[i] = at[begin + i];
    for (int64_t i = high; i < f.length; ++i) to[i] = at[begin + i];
    if (low >= high) continue;
    if (!f.samples || f.element == 1) {
      const float* const from = f.samples ? f.samples + (begin + low) : span + (begin + low - at.begin);
      std::memcpy(to + low, from, static_cast<size_t>(high - low) * sizeof(float));
    } else {
      for (int64_t i = low; i < high; ++i) to[i] = f.samples[(begin + i) * f.element];
    }
  }
  return {copies, f.length};
}

// Return the samples of the group after the one that begins with frame `first`.
inline Following find_following(const Frames& f, int64_t first) {
  const int64_t begin = f.start + (first + kFrames - 1) * f.step + f.length;
  if (!f.samples || f.element != 1 || begin < 0 || begin >= f.size) return {nullptr, 0};
  const int64_t left = f.size - begin, some = kFrames * f.step < left ? kFrames * f.step : left;
  return {reinterpret_cast<const char*>(f.samples + begin), some * static_cast<int64_t>(sizeof(float))};
}

// Memory of a transform of groups of frames. `y` is used by Bluestein's algorithm alone.
struct Memory {
  Points x, y;
  V<float>* powers;
  float *copies, *span;
  int32_t* positions;
  float* tile;  // of a group, by frame
};

inline Memory divided(const fft::Plan& plan, int64_t length, uint8_t* memory) {
  auto* at = reinterpret_cast<V<float>*>(memory);
  const int64_t n = plan.length;
  const Points x = {at, at + n};
  at += 2 * n;
  const Points y = plan.has_chirp() ? Points{at, at + n} : Points{};
  if (plan.has_chirp()) at += 2 * n;
  auto* copies = reinterpret_cast<float*>(at + plan.bins);
  float* span = copies + kFrames * length;
  auto* positions = reinterpret_cast<int32_t*>(span + kFrames * length);
  auto* tile = reinterpret_cast<float*>(memory + spectrum_bytes(plan, length) - tile_bytes(plan));
  return {x, y, at, copies, span, positions, tile};
}

void begin_spectrum(const fft::Plan& plan, int64_t length, uint8_t* memory) {
  fft::fill_positions(plan, divided(plan, length, memory).positions);
}

// Call put_four(i, x) and put(i, x) for the samples of a group's frames, times the window.
template <class PutFour, class Put>
[[gnu::always_inline]] inline void windowed(const Rows& rows, const Frames& f, PutFour put_four, Put put) {
  const float* const window = f.window;
  if (!window) return transposed(rows, f.length, put_four, put);
  transposed(
      rows, f.length,
      [&](int64_t i, V<float>(&x)[4]) __attribute__((always_inline)) {
        for (int j = 0; j < 4; ++j) x[j] *= window[i + j];
        put_four(i, x);
      },
      [&](int64_t i, V<float> x) __attribute__((always_inline)) { put(i, x * window[i]); });
}

// Write the powers of the frames from `first` on, one vector per bin.
void group_powers(const Frames& frames, int64_t first, const fft::Plan& plan, const float* table, bool magnitude,
                  const Memory& m, V<float>* out) {
  const Rows rows = find_frames(frames, first, m.copies, m.span);
  const Following following = find_following(frames, first);
  const int64_t begin = frames.offset, end = frames.offset + frames.length;
  const bool in_passes = !plan.is_odd() && !plan.has_chirp() && plan.passes >= 2;
  const FirstPass* const pass = in_passes ? &find_first_pass(plan, begin, end) : nullptr;
  if (!pass) prefetch(following);
  if (plan.is_odd()) {
    V<float>* const to = m.x.re + begin;
    for (int64_t i = 0; i < plan.points; ++i) m.x.set(i, kNone);
    windowed(
        rows, frames,
        [&](int64_t i, V<float>(&x)[4]) __attribute__((always_inline)) {
          for (int j = 0; j < 4; ++j) to[i + j] = x[j];
        },
        [&](int64_t i, V<float> x) __attribute__((always_inline)) { to[i] = x; });
  } else {
    V<float>* const halves[2] = {m.x.re, m.x.im};
    const int64_t part = pass ? 2 * (plan.length / plan.radix[0]) : 0;  // samples
    for (int64_t i = pass ? pass->first * part : 0; i < begin; ++i) halves[i & 1][i >> 1] = V<float>{};
    for (int64_t i = end; i < (pass ? pass->last * part : plan.samples); ++i) halves[i & 1][i >> 1] = V<float>{};
    V<float>* const even = halves[begin & 1] + (begin >> 1);  // for samples 0, 2.. of a frame
    V<float>* const odd = halves[~begin & 1] + ((begin + 1) >> 1);
    windowed(
        rows, frames,
        [&](int64_t i, V<float>(&x)[4]) __attribute__((always_inline)) {
          const int64_t at = i >> 1;
          even[at] = x[0];
          odd[at] = x[1];
          even[at + 1] = x[2];
          odd[at + 1] = x[3];
        },
        [&](int64_t i, V<float> x) __attribute__((always_inline)) {
          V<float>* const half = i & 1 ? odd : even;  // with sanitizers GCC 12 loses a store to (c ? odd : even)[i]
          half[i >> 1] = x;
        });
  }
  if (pass) {
    pass->run(m.x, plan.length, table + plan.twiddles[0], following);
    fft_points(plan, table, m.x, 1, plan.passes - 1);
    last_pass(plan, table, m.positions, m.x, out);
  } else if (plan.has_chirp()) {
    chirp_points(plan, table, m.positions, m.x, m.y);
    powers(plan, table, m.positions, m.y, out);
  } else {
    fft_points(plan, table, m.x);
    powers(plan, table, m.positions, m.x, out);
  }
  if (magnitude)
    for (int64_t k = 0; k < plan.bins; ++k) out[k] = root(out[k]);
}

void group_spectrum(const Frames& frames, int64_t first, const fft::Plan& plan, const float* table, bool magnitude,
                    float* out, uint8_t* memory) {
  const Memory m = divided(plan, frames.length, memory);
  group_powers(frames, first, plan, table, magnitude, m, reinterpret_cast<V<float>*>(out));
}

// Copy floats past the cache, where the instruction set can. The addresses are equal modulo a line.
inline void stream_floats(float* to, const float* from, int64_t count) {
#if STOKER_VECTOR_BYTES > 16
  constexpr auto kAlign = static_cast<uintptr_t>(kLine);
  int64_t i = 0;
  for (; i < count && reinterpret_cast<uintptr_t>(to + i) % kAlign != 0; ++i) to[i] = from[i];
  for (; i + kLine / 4 <= count; i += kLine / 4)
    for (int64_t j = 0; j < kLine / 4; j += 8) _mm256_stream_ps(to + i + j, _mm256_load_ps(from + i + j));
  for (; i < count; ++i) to[i] = from[i];
#else
  std::memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
#endif
}

// The bins of a frame are neighbours, and so are frames: a group is a part of memory, which goes through a tile and past
// the cache. A result this large would not be in the cache when it is read, and its lines would be read to be written.
void spectrum_by_time(const Frames& frames, const fft::Plan& plan, const float* table, bool magnitude, float* out,
                      const Memory& m) {
  for (int64_t first = 0; first < frames.count; first += kFrames) {
    group_powers(frames, first, plan, table, magnitude, m, m.powers);
    const int64_t left = frames.count - first, count = left < kFrames ? left : kFrames;
    float* const to = out + first * plan.bins;
    float* const tile = m.tile + reinterpret_cast<uintptr_t>(to) % static_cast<uintptr_t>(kLine) / sizeof(float);
    store_group(m.powers, plan.bins, 0, static_cast<int>(count), {tile, plan.bins, 1});
    stream_floats(to, tile, count * plan.bins);
  }
  fence();
}

void spectrum(const Frames& frames, const fft::Plan& plan, const float* table, bool magnitude, const Bins& out,
              uint8_t* memory) {
  const Memory m = divided(plan, frames.length, memory);
  fft::fill_positions(plan, m.positions);
  constexpr int64_t kLarge = 1 << 18;  // floats: 1 MiB
  const bool is_large = frames.count >= kLarge / plan.bins && out.bin == 1 && out.frame == plan.bins;
  if (STOKER_VECTOR_BYTES > 16 && is_large && tile_bytes(plan) > 0)
    return spectrum_by_time(frames, plan, table, magnitude, out.data, m);
  for (int64_t first = 0; first < frames.count; first += kFrames) {
    group_powers(frames, first, plan, table, magnitude, m, m.powers);
    const int64_t left = frames.count - first;
    store_group(m.powers, plan.bins, first, left < kFrames ? static_cast<int>(left) : kFrames, out);
  }
}
