# SPDX-License-Identifier: Apache-2.0
"""Where each operator is declared. Written by tools/index.py."""

INDEX: dict[str, str] = {
    "_arithmetic": "ops.generic.arithmetic:Arithmetic",
    "_constant": "ops.generic.constant:Constant",
    "_scale_pixels": "ops.generic.scale_pixels:ScalePixels",
    "cast": "ops.generic.cast:Cast",
    "crop": "ops.geometry.crop:Crop",
    "crop_mirror_normalize": "ops.image.crop_mirror_normalize:CropMirrorNormalize",
    "decoders.image": "ops.image.decode:DecodeImage",
    "decoders.image_crop": "ops.image.decode_crop:DecodeImageCrop",
    "decoders.image_random_crop": "ops.image.decode_random_crop:DecodeImageRandomCrop",
    "decoders.image_slice": "ops.image.decode_slice:DecodeImageSlice",
    "flip": "ops.geometry.flip:Flip",
    "peek_image_shape": "ops.image.peek_shape:PeekImageShape",
    "random.coin_flip": "ops.random.coin_flip:CoinFlip",
    "random_crop_generator": "ops.random.crop_window:RandomCropGenerator",
    "readers.file": "readers.file:FileReader",
    "resize": "ops.geometry.resize:Resize",
    "rotate": "ops.geometry.rotate:Rotate",
    "slice": "ops.geometry.slice:Slice",
}
