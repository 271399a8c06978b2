// SPDX-License-Identifier: Apache-2.0
// The current input of a fuzz program that runs without libFuzzer. An input that ends the run is saved.
#pragma once
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
extern "C" void __sanitizer_set_death_callback(void (*)());
#endif

namespace stoker::fuzz {

inline std::vector<uint8_t> current;
inline std::string crash_path;
inline void (*report_counts)() = nullptr;

inline void save_current() {
  std::ofstream(crash_path, std::ios::binary)
      .write(reinterpret_cast<const char*>(current.data()), static_cast<std::streamsize>(current.size()));
  std::fprintf(stderr, "the input is in %s\n", crash_path.c_str());
  report_counts();
}

// Save `current` in the file `path` and call `report` if a sanitizer or `abort` ends the process.
inline void save_on_failure(const char* path, void (*report)()) {
  crash_path = path;
  report_counts = report;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_set_death_callback(save_current);
#endif
  std::signal(SIGABRT, [](int) { save_current(), std::_Exit(1); });
}

}  // namespace stoker::fuzz
