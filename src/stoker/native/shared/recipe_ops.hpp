// SPDX-License-Identifier: Apache-2.0
// List of the recipe operations (recipe/recipe.hpp), which the CPU and the GPU share.
#pragma once
#include <cstdint>

namespace stoker::recipe {

// A recipe is a list of steps; step i makes image i from image `from` < i. A step is encoded as numbers: its op,
// `from`, then its parameters. A parameter count of -1 means that the number of parameters comes first. Images consist
// of bytes, or of floats after `Floats`. Crop, Transpose, PadEdges, Spread, Correlate, TorchProducts, Channels, Store,
// Patch, TorchResizeFloats, TorchPick, TorchLuma, TorchSaturate, TorchHue, TorchSharpen (Products), TorchAutocontrast,
// TorchWarp and TorchGrid accept floats as well and then return floats. Each entry has a name, the number of
// parameters, whether a GPU has a form of the step, and the names of the parameters: `name[n]` names n parameters
// and `name*` for all that follow; the type is int unless it is given. tools/steps.py generates the Python classes from
// this list (frontends/torchvision/ir/steps.py).
// clang-format off
#define STOKER_RECIPE_OPS(X) \
  X(Decode, 6, true, "channels window[4] is_lenient") \
    /* the recipe's file, of which a window x0 y0 x1 y1 is wanted; is_lenient: even if truncated; from = -1 */ \
  X(Pixels, 8, true, "height width channels planar window[4]")  /* the recipe's bytes, planar 1: [C,H,W], 2: [H,W] of four bytes; window x0 y0 x1 y1; from = -1 */ \
  X(Crop, 4, true, "x0 y0 x1 y1")  /* a window inside of the image */ \
  X(Resize, 8, true, "height width top:float bottom:float left:float right:float filter rows_first") \
    /* a box of the image in another size; rows_first: always horizontal first */ \
  X(Transpose, 1, true, "method")  /* Pillow's Transpose: 0 left-right, 1 top-bottom, 2 90, 3 180, 4 270, 5, 6 */ \
  X(Affine, 12, true, "height width matrix[6]:float linear fill[3]")  /* a sample of the image by a matrix of six */ \
  X(Pad, 7, true, "left top height width fill[3]")  /* a frame of one colour */ \
  X(Map, 1, true, "table:table")  /* a table of 8 bits */ \
  X(Luma, 0, true, "")  /* three channels to one, as Pillow's convert("L") */ \
  X(Spread, 0, true, "")  /* one channel to three */ \
  X(Contrast, 1, true, "factor:float")  /* Pillow's ImageEnhance.Contrast */ \
  X(Saturate, 1, true, "factor:float")  /* Pillow's ImageEnhance.Color */ \
  X(Hue, 1, true, "turn")  /* a turn of the hue, 0 to 255, around */ \
  X(Autocontrast, 0, true, "")  /* Pillow's ImageOps.autocontrast, without cutoff */ \
  X(Equalize, 0, true, "")  /* Pillow's ImageOps.equalize */ \
  X(Sharpen, 1, true, "factor:float")  /* Pillow's ImageEnhance.Sharpness */ \
  X(Project, 15, true, "height width matrix[8]:float projective sampling fill[3]") \
    /* a sample by a matrix of eight; sampling as in warp/project.hpp */ \
  X(PadEdges, 5, true, "left top height width border")  /* a frame of the edges, border as in shared/border.hpp */ \
  X(Correlate, -1, true, "height width weights*:float")  /* the count of weights comes first; sums as torch's, edges reflected */ \
  X(TorchResize, 4, true, "height width filter smooth")  /* torch/resize.hpp */ \
  X(TorchPick, 3, true, "height width exact")  /* the nearest values */ \
  X(TorchResizeFloats, 4, true, "height width filter way")  /* torch/resize_float.hpp */ \
  X(TorchLuma, 1, true, "generation")  /* three channels to one, as torchvision's rgb_to_grayscale of tensors */ \
  X(TorchContrast, 4, true, "generation factor:float lanes threads") \
    /* generation as in torch/color.hpp, lanes and threads of the sum as in shared/torch_sum.hpp */ \
  X(TorchSaturate, 2, true, "generation factor:float")  /* torchvision's adjust_saturation of tensors */ \
  X(TorchHue, 2, true, "generation turn:float")  /* torchvision's adjust_hue of tensors, turn: -0.5 to 0.5 */ \
  X(TorchSharpen, 2, true, "generation factor:float")  /* torchvision's adjust_sharpness of tensors */ \
  X(TorchAutocontrast, 1, true, "generation")  /* torchvision's autocontrast of tensors */ \
  X(TorchEqualize, 0, true, "")  /* torchvision's equalize of tensors */ \
  X(TorchWarp, 16, true, "height width grid[8]:float projective linear fills:float fill[3]:float") \
    /* fills: 2 as the first generation, 0 none; torch/warp.hpp */ \
  X(TorchGrid, 8, true, "height width linear fills:float fill[3]:float table:table")  /* the table is the grid's bytes */ \
  X(Channels, 3, true, "order[3]")  /* numbers of the first, second and third channel */ \
  X(Blur, 4, true, "radii[2]:float passes are_bells") \
    /* radii across and down; are_bells: the radii are deviations of bells (filter/box_blur.hpp) */ \
  X(Mix, -1, true, "table:table others*:image_and_table")  /* the count of images comes first; sums of floats, truncated */ \
  X(Blend, 2, true, "image:image factor:float")  /* Pillow's Image.blend of the two */ \
  X(Floats, 1, false, "table:table")  /* a table of floats: maps the image's values. The steps after it take floats */ \
  X(Pointwise, -1, false, "operations*:float") \
    /* the count comes first; of each operation on floats its kind (recipe/floats.cpp), a number per channel */ \
  X(FloatPad, 7, false, "left top height width fill[3]:float")  /* a frame of floats */ \
  X(FloatContrast, 6, false, "generation factor:float lanes threads blocks by_pixel") \
    /* torchvision's adjust_contrast of floats (torch/float_color.hpp) */ \
  X(TorchProducts, -1, false, "height width weights*:float") \
    /* Correlate of one channel, in the order of a product of matrices (torch/products.hpp) */ \
  X(TorchSharpenProducts, 2, false, "generation factor:float")  /* TorchSharpen, filtered in that order */ \
  X(Arrange, -1, false, "axes*:int") \
    /* the floats in another order; the count comes first, then axis, extent, unit of each (recipe/arrange.hpp) */ \
  X(StorePixels, 2, false, "output first_byte")  /* [H,W,C] as they are */ \
  X(Store, 3, true, "output first_byte table:table")  /* [C,H,W] of the output's type, through a table or -1 */ \
  X(Patch, 13, true, "output first_byte item height width window[6] single table:table") \
    /* values over what was stored: window c0 c1 y0 y1 x0 x1; the table has their bytes, [C,H,W] */
// clang-format on

enum class Op : int32_t {
#define STOKER_RECIPE_NAME(name, count, on_gpu, fields) name,
  STOKER_RECIPE_OPS(STOKER_RECIPE_NAME)
#undef STOKER_RECIPE_NAME
      kCount
};

}  // namespace stoker::recipe
