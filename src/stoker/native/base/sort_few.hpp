// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace stoker {

// Sort a few elements in place; equal ones keep their order. std::stable_sort allocates memory, even for two elements.
template <class T, class Before>
void sort_few(T* first, T* last, Before before) {
  for (T* next = first; next != last; ++next) {
    if (next == first || !before(*next, next[-1])) continue;
    const T moved = *next;
    T* to = next;
    for (; to != first && before(moved, to[-1]); --to) *to = to[-1];
    *to = moved;
  }
}

}  // namespace stoker
