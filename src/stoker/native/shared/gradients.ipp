// SPDX-License-Identifier: Apache-2.0
// Choice of directions by a variable number of gradients, written once for pixels and for vectors of pixels. The
// including namespace has `Lane`, a signed integer type of 16 bits or more, `Value`, a Lane or a vector of Lanes, and
// is_less(a, b), which is -1 or 0.

STOKER_INLINED inline Value twice(Value x) { return x + x; }
STOKER_INLINED inline Value lesser(Value a, Value b) { return a < b ? a : b; }
STOKER_INLINED inline Value greater(Value a, Value b) { return a > b ? a : b; }

// A pixel, or a vector of pixels, and their neighbours up to two rows and columns away.
struct Window {
  Value values[5][5];
  STOKER_INLINED Value at(int y, int x) const { return values[y + 2][x + 2]; }
  STOKER_INLINED Value apart(int y0, int x0, int y1, int x1) const {
    const Value difference = at(y0, x0) - at(y1, x1);
    return difference < 0 ? -difference : difference;
  }
};

// Sums over the chosen directions of twice the mean colours there. `own`: the pixel's colour; `first` and `second`: green
// and the third colour, or the row's colour and the column's one if the pixel is green.
struct GradientSums {
  Value own{}, first{}, second{}, count{};  // `count`: of directions
};

// One of eight directions.
template <int kY, int kX>
struct Toward {
  static constexpr bool kDiagonal = kY != 0 && kX != 0;

  // Twice the paper's gradient.
  template <bool kColored>
  STOKER_INLINED static Value gradient(const Window& w) {
    const Value both = w.apart(kY, kX, -kY, -kX) + w.apart(2 * kY, 2 * kX, 0, 0);
    if constexpr (!kDiagonal) {
      // The lines on both sides. (kX, kY) is one step to the side.
      return twice(both) + w.apart(kY + kX, kX + kY, kX - kY, kY - kX) + w.apart(kY - kX, kX - kY, -kY - kX, -kX - kY) +
             w.apart(2 * kY + kX, 2 * kX + kY, kX, kY) + w.apart(2 * kY - kX, 2 * kX - kY, -kX, -kY);
    } else if constexpr (kColored) {
      return twice(both) + w.apart(kY, 0, 0, -kX) + w.apart(0, kX, -kY, 0) + w.apart(2 * kY, kX, kY, 0) +
             w.apart(kY, 2 * kX, 0, kX);
    } else {
      return twice(both + w.apart(2 * kY, kX, 0, -kX) + w.apart(kY, 2 * kX, -kY, 0));
    }
  }

  // `chosen`: -1 or 0.
  template <bool kColored>
  STOKER_INLINED static void add(const Window& w, Value chosen, GradientSums& sums) {
    sums.count -= chosen;
    if constexpr (kDiagonal && !kColored) {
      sums.own += twice(w.at(kY, kX)) & chosen;
      sums.first += (w.at(2 * kY, kX) + w.at(0, kX)) & chosen;
      sums.second += (w.at(kY, 2 * kX) + w.at(kY, 0)) & chosen;
    } else if constexpr (kDiagonal) {
      sums.own += (w.at(2 * kY, 2 * kX) + w.at(0, 0)) & chosen;
      sums.first += ((w.at(2 * kY, kX) + w.at(kY, 0) + w.at(0, kX) + w.at(kY, 2 * kX)) >> 1) & chosen;
      sums.second += twice(w.at(kY, kX)) & chosen;
    } else {
      sums.own += (w.at(2 * kY, 2 * kX) + w.at(0, 0)) & chosen;
      const Value ahead = twice(w.at(kY, kX));
      if constexpr (kColored) {
        sums.first += ahead & chosen;
        sums.second += (w.at(kY + kX, kX + kY) + w.at(kY - kX, kX - kY)) & chosen;
      } else {
        const Value aside = w.at(2 * kY + kX, 2 * kX + kY) + w.at(2 * kY - kX, 2 * kX - kY);
        sums.first += (kY == 0 ? ahead : aside) & chosen;
        sums.second += (kY == 0 ? aside : ahead) & chosen;
      }
    }
  }
};

// Sums over the directions whose gradients are less than the threshold.
template <bool kColored>
STOKER_INLINED inline GradientSums gradient_sums(const Window& w) {
  const Value north = Toward<-1, 0>::gradient<kColored>(w), south = Toward<1, 0>::gradient<kColored>(w),
              west = Toward<0, -1>::gradient<kColored>(w), east = Toward<0, 1>::gradient<kColored>(w),
              north_west = Toward<-1, -1>::gradient<kColored>(w), north_east = Toward<-1, 1>::gradient<kColored>(w),
              south_west = Toward<1, -1>::gradient<kColored>(w), south_east = Toward<1, 1>::gradient<kColored>(w);
  const Value low = lesser(lesser(lesser(north, south), lesser(west, east)),
                           lesser(lesser(north_west, north_east), lesser(south_west, south_east)));
  const Value high = greater(greater(greater(north, south), greater(west, east)),
                             greater(greater(north_west, north_east), greater(south_west, south_east)));
  const Value threshold = greater(low + (high >> 1), (low ^ low) + static_cast<Lane>(1));
  GradientSums sums;
  Toward<-1, 0>::add<kColored>(w, is_less(north, threshold), sums);
  Toward<1, 0>::add<kColored>(w, is_less(south, threshold), sums);
  Toward<0, -1>::add<kColored>(w, is_less(west, threshold), sums);
  Toward<0, 1>::add<kColored>(w, is_less(east, threshold), sums);
  Toward<-1, -1>::add<kColored>(w, is_less(north_west, threshold), sums);
  Toward<-1, 1>::add<kColored>(w, is_less(north_east, threshold), sums);
  Toward<1, -1>::add<kColored>(w, is_less(south_west, threshold), sums);
  Toward<1, 1>::add<kColored>(w, is_less(south_east, threshold), sums);
  return sums;
}
