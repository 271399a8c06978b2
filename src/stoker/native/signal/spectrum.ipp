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

// Transform plan.length points in place. Point k of the result is at fft::positions.
void fft_points(const fft::Plan& plan, const float* table, const Points& x) {
  int64_t n = plan.length;
  for (int i = 0; i < plan.passes; ++i) {
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

template <bool kMagnitude>
[[gnu::always_inline]] inline V<float> power_of(Complex x, float factor) {
  const V<float> power = (x.re * x.re + x.im * x.im) * factor;
  return kMagnitude ? root(power) : power;
}

template <bool kMagnitude>
void powers(const fft::Plan& plan, const float* table, const int32_t* positions, const Points& z, V<float>* out) {
  if (plan.is_odd()) {
    for (int64_t k = 0; k < plan.bins; ++k) out[k] = power_of<kMagnitude>(z.at(positions[k]), 1.0f);
    return;
  }
  const float* w = table + plan.pair;
  const int64_t n = plan.points;
  const V<float> none = {};
  out[0] = power_of<kMagnitude>(Complex{z.re[0] + z.im[0], none}, 1.0f);
  out[n] = power_of<kMagnitude>(Complex{z.re[0] - z.im[0], none}, 1.0f);
  for (int64_t k = 1; 2 * k <= n; ++k) {
    Complex low, high;
    fft::real_pair(z.at(positions[k]), z.at(positions[n - k]), w[2 * k], w[2 * k + 1], low, high);
    out[k] = power_of<kMagnitude>(low, 0.25f);
    out[n - k] = power_of<kMagnitude>(high, 0.25f);
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
  if (inside && f.samples && f.element == 1) {
    // The next group's samples are prefetched: the processor does not follow the streams of all frames.
    constexpr int64_t kLine = 16;  // floats
    const float* const next = f.samples + last + f.length;
    const int64_t left = f.size - (last + f.length), some = kFrames * f.step < left ? kFrames * f.step : left;
    for (int64_t i = 0; i < some; i += kLine) __builtin_prefetch(next + i);
    return {f.samples + group, f.step};
  }
  Sampled at{f, span, 0, 0};
  const auto fill = [&](int64_t begin, int64_t end) {
    at.begin = begin < 0 ? 0 : begin;
    at.end = end < f.size ? end : f.size;
    if (at.begin < at.end) f.source.fill(f.source.context, at.begin, at.end - at.begin, span);
  };
  if (!f.samples && overlap) fill(group, last + f.length);
  if (inside && !f.samples && overlap) return {span, f.step};
  for (int64_t l = 0; l < kFrames; ++l) {
    const int64_t begin = group + (l < count ? l : count - 1) * f.step;
    float* to = copies + l * f.length;
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

// Memory of a transform of groups of frames. `y` is used by Bluestein's algorithm alone.
struct Memory {
  Points x, y;
  V<float>* powers;
  float *copies, *span;
  int32_t* positions;
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
  return {x, y, at, copies, span, reinterpret_cast<int32_t*>(span + kFrames * length)};
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
  const int64_t begin = frames.offset, end = frames.offset + frames.length;
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
    for (int64_t i = 0; i < begin; ++i) halves[i & 1][i >> 1] = V<float>{};
    for (int64_t i = end; i < plan.samples; ++i) halves[i & 1][i >> 1] = V<float>{};
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
  if (plan.has_chirp()) chirp_points(plan, table, m.positions, m.x, m.y);
  else fft_points(plan, table, m.x);
  const Points& z = plan.has_chirp() ? m.y : m.x;
  if (magnitude) powers<true>(plan, table, m.positions, z, out);
  else powers<false>(plan, table, m.positions, z, out);
}

void group_spectrum(const Frames& frames, int64_t first, const fft::Plan& plan, const float* table, bool magnitude,
                    float* out, uint8_t* memory) {
  const Memory m = divided(plan, frames.length, memory);
  group_powers(frames, first, plan, table, magnitude, m, reinterpret_cast<V<float>*>(out));
}

void spectrum(const Frames& frames, const fft::Plan& plan, const float* table, bool magnitude, const Bins& out,
              uint8_t* memory) {
  const Memory m = divided(plan, frames.length, memory);
  fft::fill_positions(plan, m.positions);
  for (int64_t first = 0; first < frames.count; first += kFrames) {
    group_powers(frames, first, plan, table, magnitude, m, m.powers);
    const int64_t left = frames.count - first;
    store_group(m.powers, plan.bins, first, left < kFrames ? static_cast<int>(left) : kFrames, out);
  }
}
