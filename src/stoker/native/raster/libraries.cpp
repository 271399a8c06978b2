// SPDX-License-Identifier: Apache-2.0
#include "raster/libraries.hpp"

#include <dlfcn.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <type_traits>

namespace stoker::raster {
namespace {

// Libraries stay loaded, and their tables of functions stay: threads may be inside of their code.
std::atomic<const WebpLibrary*> webp_library{nullptr};
std::atomic<const Jpeg2000Library*> jpeg2000_library{nullptr};

class Symbols {
 public:
  explicit Symbols(const std::string& path) : handle_(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (!handle_) throw std::invalid_argument("expected a library, got " + std::string(::dlerror()));
  }
  template <class Function>
  void find(Function& function, const char* name) const {
    void* const symbol = ::dlsym(handle_, name);
    if (!symbol) throw std::invalid_argument("expected a library with the function `" + std::string(name) + "`");
    function = reinterpret_cast<Function>(symbol);
  }

 private:
  void* const handle_;
};

// Keep the table of the first caller.
template <class Library>
void publish(std::atomic<const Library*>& place, std::unique_ptr<Library> library) {
  const Library* none = nullptr;
  if (place.compare_exchange_strong(none, library.get(), std::memory_order_acq_rel))
    static_cast<void>(library.release());
}

}  // namespace

void use_libwebp(const std::string& path) {
  if (libwebp()) return;
  const Symbols symbols(path);
  auto library = std::make_unique<WebpLibrary>();
  symbols.find(library->get_features, "WebPGetFeaturesInternal");
  symbols.find(library->decode_rgb, "WebPDecodeRGBInto");
  symbols.find(library->decode_rgba, "WebPDecodeRGBAInto");
  publish(webp_library, std::move(library));
}

void use_openjpeg(const std::string& path) {
  if (openjpeg()) return;
  const Symbols symbols(path);
  auto library = std::make_unique<Jpeg2000Library>();
  symbols.find(library->create_decoder, "opj_create_decompress");
  symbols.find(library->destroy_decoder, "opj_destroy_codec");
  symbols.find(library->set_default_parameters, "opj_set_default_decoder_parameters");
  symbols.find(library->set_up, "opj_setup_decoder");
  symbols.find(library->create_stream, "opj_stream_create");
  symbols.find(library->destroy_stream, "opj_stream_destroy");
  symbols.find(library->set_read, "opj_stream_set_read_function");
  symbols.find(library->set_skip, "opj_stream_set_skip_function");
  symbols.find(library->set_seek, "opj_stream_set_seek_function");
  symbols.find(library->set_user_data, "opj_stream_set_user_data");
  symbols.find(library->set_user_bytes, "opj_stream_set_user_data_length");
  symbols.find(library->read_header, "opj_read_header");
  symbols.find(library->read_tile_header, "opj_read_tile_header");
  symbols.find(library->decode_tile, "opj_decode_tile_data");
  symbols.find(library->end, "opj_end_decompress");
  symbols.find(library->destroy_image, "opj_image_destroy");
  publish(jpeg2000_library, std::move(library));
}

const WebpLibrary* libwebp() { return webp_library.load(std::memory_order_acquire); }
const Jpeg2000Library* openjpeg() { return jpeg2000_library.load(std::memory_order_acquire); }

}  // namespace stoker::raster
