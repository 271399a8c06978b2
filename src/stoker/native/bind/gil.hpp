// SPDX-License-Identifier: Apache-2.0
// Release of the GIL in bindings. nb::gil_scoped_release must not be used: see `take_gil`.
#pragma once
#include <nanobind/nanobind.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace stoker {

// Number of GIL acquisitions, for tests.
inline std::atomic<int64_t> gil_acquired{0};

// During the interpreter's shutdown, Python ends each thread that asks for the GIL by unwinding its stack. Unwinding
// through C++ frames that must not throw (a destructor, such as that of nb::gil_scoped_release) aborts the process.
// Such a thread sleeps here instead until the process is gone.
inline void take_gil(PyThreadState* state) {
  ++gil_acquired;
  try {
    PyEval_RestoreThread(state);
  } catch (...) {
    for (;;) ::pause();
  }
}

// Call `f` without the GIL and return its result. `f` must not touch Python objects. Exceptions pass through.
template <class F>
auto without_gil(F&& f) {
  PyThreadState* const state = PyEval_SaveThread();
  try {
    if constexpr (std::is_void_v<decltype(f())>) {
      f();
      take_gil(state);
    } else {
      auto result = f();
      take_gil(state);
      return result;
    }
  } catch (...) {
    take_gil(state);
    throw;
  }
}

// Holds the GIL in a thread of the engine. nb::gil_scoped_acquire must not be used: see `take_gil`.
class WithGil {
 public:
  WithGil() {
    ++gil_acquired;
    try {
      state_ = PyGILState_Ensure();
    } catch (...) {
      for (;;) ::pause();
    }
  }
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;
  ~WithGil() { PyGILState_Release(state_); }

 private:
  PyGILState_STATE state_;
};

// Own an object whose threads `close` joins. The GIL is released while they end: what a thread waits for may need it,
// such as a file system that this process serves. In a forked child there are no threads to join, and locks may be held
// for ever: nothing is destroyed.
template <class T>
std::shared_ptr<T> own_with_threads(T* object) {
  return std::shared_ptr<T>(object, [pid = ::getpid()](T* one) {
    if (::getpid() != pid) return;
    without_gil([&] { one->close(); });
    delete one;
  });
}

}  // namespace stoker
