// SPDX-License-Identifier: Apache-2.0
// The steps of recipes (recipe.hpp), by their names: what the CPU and a GPU agree on.
#pragma once
#include <cstdint>

namespace stoker::recipe {

// A recipe is a list of steps; step i makes image i out of image `from` < i. As numbers: op, from, then parameters;
// -1: their number comes first.
// Images are bytes, or floats behind `Floats`: these Crop, Transpose, PadEdges, Spread, Correlate, TorchProducts, Channels, Store, Patch and
// TorchResizeFloats, TorchPick, TorchLuma, TorchSaturate, TorchHue, TorchSharpen (Products), TorchAutocontrast, TorchWarp and TorchGrid take as well, and give floats.
// The order is part of the Python side's contract (frontends/torchvision/recipe.py).
#define STOKER_RECIPE_OPS(X)                                                                               \
  X(Decode, 5)     /* channels, window x0 y0 x1 y1; from = -1: the recipe's file */                         \
  X(Pixels, 8)     /* height width channels of the recipe's bytes, 1 if [C,H,W]; window x0 y0 x1 y1; from = -1 */ \
  X(Crop, 4)       /* x0 y0 x1 y1, inside of the image */                                                   \
  X(Resize, 8)     /* height width, box y0 y1 x0 x1, filter, 1 if always horizontal first */                 \
  X(Transpose, 1)  /* Pillow's Transpose: 0 left-right, 1 top-bottom, 2 90, 3 180, 4 270, 5, 6 */           \
  X(Affine, 12)    /* height width, matrix of six, linear, fill of three */                                 \
  X(Pad, 7)        /* left top height width, fill of three */                                               \
  X(Map, 1)        /* a table of 8 bits */                                                                  \
  X(Luma, 0)       /* three channels to one, as Pillow's convert("L") */                                    \
  X(Spread, 0)     /* one channel to three */                                                               \
  X(Contrast, 1)   /* factor; Pillow's ImageEnhance.Contrast */                                             \
  X(Saturate, 1)   /* factor; Pillow's ImageEnhance.Color */                                                \
  X(Hue, 1)        /* what is added to the hue, 0 to 255, around */                                         \
  X(Autocontrast, 0) /* Pillow's ImageOps.autocontrast, without cutoff */                                   \
  X(Equalize, 0)   /* Pillow's ImageOps.equalize */                                                         \
  X(Sharpen, 1)    /* factor; Pillow's ImageEnhance.Sharpness */                                            \
  X(Project, 15)   /* height width, matrix of eight, projective, sampling (warp_project.hpp), fill of three */  \
  X(PadEdges, 5)   /* left top height width, border (border.hpp) */                                         \
  X(Correlate, -1) /* how many follow: height width, then weights; sums as torch's, edges reflected */      \
  X(TorchResize, 4)  /* height width, filter, smooth (torch_resize.hpp) */                                  \
  X(TorchPick, 3)  /* height width, exact */                                                                \
  X(TorchResizeFloats, 4)  /* height width, filter, way (torch_resize_float.hpp) */                         \
  X(TorchLuma, 1)  /* generation; three channels to one, as torchvision's rgb_to_grayscale of tensors */    \
  X(TorchContrast, 4)  /* generation (torch_color.hpp), factor, lanes and threads of the sum (torch_sum.hpp) */ \
  X(TorchSaturate, 2)  /* generation, factor */                                                             \
  X(TorchHue, 2)   /* generation, what is added to the hue, -0.5 to 0.5 */                                  \
  X(TorchSharpen, 2)  /* generation, factor */                                                              \
  X(TorchAutocontrast, 1)  /* generation */                                                                 \
  X(TorchEqualize, 0)                                                                                       \
  X(TorchWarp, 16) /* height width, grid of eight, projective, linear, fills (2: as the first generation), fill of three (torch_warp.hpp) */ \
  X(TorchGrid, 8)  /* height width, linear, fills, fill of three, a table: the grid's bytes */               \
  X(Channels, 3)   /* which channel comes first, second, third */                                           \
  X(Blur, 4)       /* radii across and down, passes, 1 if the radii are deviations of bells (box_blur.hpp) */ \
  X(Mix, -1)       /* how many follow: a table, then image and table of others; sums of floats, truncated */ \
  X(Blend, 2)     /* image, factor; Pillow's Image.blend of the two */                                   \
  X(Floats, 1)     /* a table of floats: the image's values through it. The steps behind it take floats */         \
  X(Pointwise, -1) /* how many follow: of each operation on floats its kind (recipe_floats.cpp), and a number per channel */ \
  X(FloatPad, 7)   /* left top height width, fill of three floats */                                         \
  X(FloatContrast, 6)  /* generation, factor, lanes and threads of the sum, blocks, 1 if by pixel (torch_float_color.hpp) */ \
  X(TorchProducts, -1) /* as Correlate, of one channel, in the order of a product of matrices (torch_products.hpp) */ \
  X(TorchSharpenProducts, 2)  /* as TorchSharpen, filtered in that order */                                  \
  X(StorePixels, 2)  /* output, first byte: [H,W,C] as they are */                                          \
  X(Store, 3)      /* output, first byte, table or -1: [C,H,W] of the output's type */                     \
  X(Patch, 13)     /* of what was stored: output, first byte, bytes of a value, height width, window c0 c1 y0 y1 x0 x1, \
                      1 if all get one value, a table: the values' bytes, [C,H,W] of the window */

enum class Op : int32_t {
#define STOKER_RECIPE_NAME(name, count) name,
  STOKER_RECIPE_OPS(STOKER_RECIPE_NAME)
#undef STOKER_RECIPE_NAME
  kCount
};

}  // namespace stoker::recipe
