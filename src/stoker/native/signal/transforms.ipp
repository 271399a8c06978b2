// SPDX-License-Identifier: Apache-2.0
// Complex spectra of groups of frames, and back. The including file provides signal/spectrum.ipp.

// Memory of a transform and of its result, one complex vector per bin, and the samples of the frames.
struct Work {
  Memory memory;
  Points spectrum;
  V<float>* samples;
};

inline Work work_of(const fft::Plan& plan, int64_t length, uint8_t* memory) {
  auto* at = reinterpret_cast<V<float>*>(memory);
  const Points spectrum = {at, at + plan.bins};
  at += 2 * plan.bins;
  V<float>* samples = at;
  at += plan.samples;
  const Memory rest = divided(plan, length, reinterpret_cast<uint8_t*>(at));
  fft::fill_positions(plan, rest.positions);
  return {rest, spectrum, samples};
}

// Transform the points in `m.x`. Return the result, whose point k is at m.positions[k].
inline const Points& transform_points(const fft::Plan& plan, const float* table, const Memory& m) {
  if (plan.has_chirp()) {
    chirp_points(plan, table, m.positions, m.x, m.y);
    return m.y;
  }
  fft_points(plan, table, m.x);
  return m.x;
}

// Write the samples of frames, with the window, to the points of the transform.
inline void load_frames(const Frames& frames, int64_t first, const fft::Plan& plan, const Memory& m) {
  const Rows rows = find_frames(frames, first, m.copies, m.span);
  prefetch(find_following(frames, first));
  const int64_t begin = frames.offset, end = frames.offset + frames.length;
  const bool odd = plan.is_odd();
  V<float>* const halves[2] = {m.x.re, m.x.im};
  const auto put = [&](int64_t at, V<float> x) __attribute__((always_inline)) {
    if (odd) m.x.set(at, {x, V<float>{}});
    else halves[at & 1][at >> 1] = x;
  };
  for (int64_t i = 0; i < begin; ++i) put(i, V<float>{});
  for (int64_t i = end; i < plan.samples; ++i) put(i, V<float>{});
  windowed(
      rows, frames,
      [&](int64_t i, V<float>(&x)[4]) __attribute__((always_inline)) {
        for (int j = 0; j < 4; ++j) put(begin + i + j, x[j]);
      },
      [&](int64_t i, V<float> x) __attribute__((always_inline)) { put(begin + i, x); });
}

// Compute the spectrum of the samples in `m.x`.
inline void spectrum_of(const fft::Plan& plan, const float* table, const Memory& m, const Points& out) {
  const Points& z = transform_points(plan, table, m);
  if (plan.is_odd()) {
    for (int64_t k = 0; k < plan.bins; ++k) out.set(k, z.at(m.positions[k]));
    return;
  }
  const float* w = table + plan.pair;
  const int64_t n = plan.points;
  const Complex zero = z.at(0);
  out.set(0, {zero.re + zero.im, V<float>{}});
  out.set(n, {zero.re - zero.im, V<float>{}});
  for (int64_t k = 1; 2 * k <= n; ++k) {
    Complex low, high;
    fft::real_pair(z.at(m.positions[k]), z.at(m.positions[n - k]), w[2 * k], w[2 * k + 1], low, high);
    out.set(k, {low.re * 0.5f, low.im * 0.5f});
    out.set(n - k, {high.re * 0.5f, high.im * 0.5f});
  }
}

// Compute the samples whose spectrum is `in`. The inverse transform is the forward one with real and imaginary parts
// exchanged.
inline void samples_of(const fft::Plan& plan, const float* table, const Points& in, const Memory& m, V<float>* out) {
  const int64_t n = plan.points;
  const float scale = 1.0f / static_cast<float>(plan.samples);
  if (plan.is_odd()) {
    m.x.set(0, {V<float>{}, in.re[0]});
    for (int64_t k = 1; k < plan.bins; ++k) {
      const Complex a = in.at(k);
      m.x.set(k, {a.im, a.re});
      m.x.set(n - k, {-a.im, a.re});
    }
    const Points& z = transform_points(plan, table, m);
    for (int64_t i = 0; i < n; ++i) out[i] = z.im[m.positions[i]] * scale;
    return;
  }
  const float* w = table + plan.pair;
  m.x.set(0, {in.re[0] - in.re[n], in.re[0] + in.re[n]});
  // Twice the points k and n - k of the transform of even samples + i odd samples: even + i odd, with
  // even = a + conj(b) and odd = exp(i pi k / n) (a - conj(b)).
  for (int64_t k = 1; 2 * k <= n; ++k) {
    const Complex a = in.at(k), b = in.at(n - k);
    const Complex even = {a.re + b.re, a.im - b.im}, d = {a.re - b.re, a.im + b.im};
    const Complex odd = fft::times(d, w[2 * k], -w[2 * k + 1]);
    m.x.set(n - k, {odd.re - even.im, even.re + odd.im});
    m.x.set(k, {even.im + odd.re, even.re - odd.im});
  }
  const Points& z = transform_points(plan, table, m);
  for (int64_t i = 0; i < n; ++i) {
    const Complex a = z.at(m.positions[i]);
    out[2 * i] = a.im * scale;
    out[2 * i + 1] = a.re * scale;
  }
}

inline int lanes_of(int64_t left) { return left < kFrames ? static_cast<int>(left) : kFrames; }

void forward(const Frames& frames, const fft::Plan& plan, const float* table, const Spectra& out, uint8_t* memory) {
  const Work w = work_of(plan, frames.length, memory);
  for (int64_t first = 0; first < frames.count; first += kFrames) {
    load_frames(frames, first, plan, w.memory);
    spectrum_of(plan, table, w.memory, w.spectrum);
    const int count = lanes_of(frames.count - first);
    for (int64_t k = 0; k < plan.bins; ++k) {
      float* to = out.data + k * out.bin + first * out.frame;
      const Complex x = w.spectrum.at(k);
      for (int l = 0; l < count; ++l, to += out.frame) {
        to[0] = x.re[l];
        to[1] = x.im[l];
      }
    }
  }
}

void inverse(const Spectra& in, int64_t first, int64_t count, const fft::Plan& plan, const float* table, float* out,
             uint8_t* memory) {
  const Work w = work_of(plan, 0, memory);
  const int lanes = lanes_of(count);
  for (int64_t k = 0; k < plan.bins; ++k) {
    const float* from = in.data + k * in.bin + first * in.frame;
    Complex x = kNone;
    for (int l = 0; l < lanes; ++l, from += in.frame) {
      x.re[l] = from[0];
      x.im[l] = from[1];
    }
    w.spectrum.set(k, x);
  }
  samples_of(plan, table, w.spectrum, w.memory, w.samples);
  store_group(w.samples, plan.samples, 0, lanes, Bins{out, plan.samples, 1});
}

void convolve(const Frames& blocks, const float* filter, int64_t filter_size, const fft::Plan& plan, const float* table,
              float* out, uint8_t* memory) {
  const Work w = work_of(plan, blocks.length, memory);
  auto* response = reinterpret_cast<V<float>*>(memory + transform_bytes(plan, blocks.length));
  const Points h = {response, response + plan.bins};
  load_frames({filter, filter_size, 1, 1, filter_size, 0, filter_size, false, nullptr, 0}, 0, plan, w.memory);
  spectrum_of(plan, table, w.memory, h);
  const int64_t step = blocks.step, skip = plan.samples - step;
  for (int64_t first = 0; first < blocks.count; first += kFrames) {
    load_frames(blocks, first, plan, w.memory);
    spectrum_of(plan, table, w.memory, w.spectrum);
    for (int64_t k = 0; k < plan.bins; ++k) {
      const Complex x = w.spectrum.at(k), y = h.at(k);
      w.spectrum.set(k, {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re});
    }
    samples_of(plan, table, w.spectrum, w.memory, w.samples);
    store_group(w.samples + skip, step, first, lanes_of(blocks.count - first), Bins{out, step, 1});
  }
}
