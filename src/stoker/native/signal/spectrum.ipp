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

// One pass: n points left of `blocks` transforms that earlier passes have separated.
template <int R>
void fft_pass(const Points& x, const Points& y, int64_t n, int64_t blocks, const float* twiddles) {
  const int64_t m = n / R, apart = blocks * m;
  for (int64_t p = 0; p < m; ++p) {
    const float* w = twiddles + 2 * (p - 1) * (R - 1);  // unused for p = 0
    for (int64_t q = 0; q < blocks; ++q) {
      Complex a[R];
      for (int k = 0; k < R; ++k) a[k] = x.at(q + blocks * p + apart * k);
      fft::butterfly(a);
      const int64_t to = q + blocks * R * p;
      y.set(to, a[fft::place<R>(0)]);
      if (p == 0) {
        for (int k = 1; k < R; ++k) y.set(to + blocks * k, a[fft::place<R>(k)]);
      } else {
        for (int k = 1; k < R; ++k)
          y.set(to + blocks * k, fft::times(a[fft::place<R>(k)], w[2 * (k - 1)], w[2 * (k - 1) + 1]));
      }
    }
  }
}

// Transform plan.length points of x, with y as other memory. Return the one with the result.
Points fft_points(const fft::Plan& plan, const float* table, Points x, Points y) {
  int64_t n = plan.length, blocks = 1;
  for (int i = 0; i < plan.passes; ++i) {
    const float* w = table + plan.twiddles[i];
    switch (plan.radix[i]) {
      case 2: fft_pass<2>(x, y, n, blocks, w); break;
      case 3: fft_pass<3>(x, y, n, blocks, w); break;
      case 4: fft_pass<4>(x, y, n, blocks, w); break;
      case 5: fft_pass<5>(x, y, n, blocks, w); break;
      case 8: fft_pass<8>(x, y, n, blocks, w); break;
      default: fft_pass<16>(x, y, n, blocks, w); break;
    }
    n /= plan.radix[i];
    blocks *= plan.radix[i];
    std::swap(x, y);
  }
  return x;
}

// Bluestein's algorithm: a transform of any size as a convolution with a chirp, of a size that has only small factors.
Points chirp_points(const fft::Plan& plan, const float* table, Points x, Points y) {
  const float *chirp = table + plan.chirp, *filter = table + plan.filter;
  for (int64_t i = 0; i < plan.points; ++i) x.set(i, fft::times(x.at(i), chirp[2 * i], chirp[2 * i + 1]));
  for (int64_t i = plan.points; i < plan.length; ++i) x.set(i, kNone);
  const Points z = fft_points(plan, table, x, y);
  // The inverse transform is the forward one with real and imaginary parts exchanged.
  for (int64_t i = 0; i < plan.length; ++i) {
    const Complex c = fft::times(z.at(i), filter[2 * i], filter[2 * i + 1]);
    z.set(i, {c.im, c.re});
  }
  const Points u = fft_points(plan, table, z, z.re == x.re ? y : x);
  for (int64_t i = 0; i < plan.points; ++i) {
    const Complex c = u.at(i);
    u.set(i, fft::times(Complex{c.im, c.re}, chirp[2 * i], chirp[2 * i + 1]));
  }
  return u;
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
void powers(const fft::Plan& plan, const float* table, const Points& z, V<float>* out) {
  if (plan.is_odd()) {
    for (int64_t k = 0; k < plan.bins; ++k) out[k] = power_of<kMagnitude>(z.at(k), 1.0f);
    return;
  }
  const float* w = table + plan.pair;
  const int64_t n = plan.points;
  const V<float> none = {};
  out[0] = power_of<kMagnitude>(Complex{z.re[0] + z.im[0], none}, 1.0f);
  out[n] = power_of<kMagnitude>(Complex{z.re[0] - z.im[0], none}, 1.0f);
  for (int64_t k = 1; 2 * k <= n; ++k) {
    Complex low, high;
    fft::real_pair(z.at(k), z.at(n - k), w[2 * k], w[2 * k + 1], low, high);
    out[k] = power_of<kMagnitude>(low, 0.25f);
    out[n - k] = power_of<kMagnitude>(high, 0.25f);
  }
}

// Return the addresses of the samples of a group's frames. Frames that the signal does not contain as they are go to
// `copies`, `length` floats each. Lanes beyond the last frame repeat it.
inline void find_frames(const Frames& f, int64_t first, float* copies, const float* (&from)[kFrames]) {
  for (int l = 0; l < kFrames; ++l) {
    if (l > 0 && first + l >= f.count) {
      from[l] = from[l - 1];
      continue;
    }
    const int64_t begin = f.start + (first + l) * f.step;
    if (f.element == 1 && begin >= 0 && begin + f.length <= f.size) {
      from[l] = f.samples + begin;
      continue;
    }
    float* to = copies + l * f.length;
    for (int64_t i = 0; i < f.length; ++i) {
      const int64_t at = border_position<int64_t>(begin + i, f.size, f.reflect ? Border::Reflect101 : Border::Constant);
      to[i] = at < 0 ? 0.0f : f.samples[at * f.element];
    }
    from[l] = to;
  }
}

struct Memory {
  Points x, y;
  V<float>* powers;
  float* copies;
};

inline Memory divided(const fft::Plan& plan, uint8_t* memory) {
  auto* at = reinterpret_cast<V<float>*>(memory);
  const int64_t n = plan.length;
  return {{at, at + n}, {at + 2 * n, at + 3 * n}, at + 4 * n, reinterpret_cast<float*>(at + 4 * n + plan.bins)};
}

void spectrum(const Frames& frames, const fft::Plan& plan, const float* table, bool magnitude, const Bins& out,
              uint8_t* memory) {
  const Memory m = divided(plan, memory);
  for (int64_t first = 0; first < frames.count; first += kFrames) {
    const float* from[kFrames];
    find_frames(frames, first, m.copies, from);
    const int64_t begin = frames.offset, end = frames.offset + frames.length;
    if (plan.is_odd()) {
      for (int64_t i = 0; i < plan.points; ++i) m.x.set(i, kNone);
      transposed(from, frames.length,
                 [&](int64_t i, V<float> x) { m.x.re[begin + i] = frames.window ? x * frames.window[i] : x; });
    } else {
      V<float>* const halves[2] = {m.x.re, m.x.im};
      for (int64_t i = 0; i < begin; ++i) halves[i & 1][i >> 1] = V<float>{};
      for (int64_t i = end; i < plan.samples; ++i) halves[i & 1][i >> 1] = V<float>{};
      transposed(from, frames.length, [&](int64_t i, V<float> x) {
        halves[(begin + i) & 1][(begin + i) >> 1] = frames.window ? x * frames.window[i] : x;
      });
    }
    const Points z = plan.has_chirp() ? chirp_points(plan, table, m.x, m.y) : fft_points(plan, table, m.x, m.y);
    if (magnitude) powers<true>(plan, table, z, m.powers);
    else powers<false>(plan, table, z, m.powers);
    const int64_t left = frames.count - first;
    store_group(m.powers, plan.bins, first, left < kFrames ? static_cast<int>(left) : kFrames, out);
  }
}
