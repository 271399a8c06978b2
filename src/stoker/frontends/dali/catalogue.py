# SPDX-License-Identifier: Apache-2.0
"""Catalogue of the operator names of NVIDIA DALI 2.4, so that missing ones are refused by name."""

from __future__ import annotations

from typing import Any, NoReturn

from ...contract.errors import UnsupportedError
from .missing import is_module, refuse_module

# Operators by group.
_OPERATORS = {
    "": (
        "audio_resample batch_permutation bb_flip bbox_paste bbox_rotate box_encoder brightness "
        "brightness_contrast cast cast_like cat clahe color_space_conversion color_twist constant contrast "
        "coord_flip coord_transform copy crop crop_mirror_normalize debayer dl_tensor_python_function dump_image "
        "element_extract equalize erase expand_dims external_source filter flip full full_like gaussian_blur "
        "get_property grid_mask hsv hue jitter jpeg_compression_distortion laplacian lookup_table mel_filter_bank "
        "mfcc multi_paste nonsilent_region normalize one_hot ones ones_like optical_flow pad paste "
        "peek_image_shape per_frame permute_batch power_spectrum preemphasis_filter python_function "
        "random_bbox_crop random_crop_generator random_resized_crop reinterpret reshape resize resize_crop_mirror "
        "roi_random_crop rotate saturation sequence_rearrange shapes slice spectrogram sphere squeeze stack "
        "tensor_resize to_decibels transpose warp_affine water zeros zeros_like"
    ),
    "decoders": "audio image image_crop image_random_crop image_slice inflate numpy video",
    "experimental": "dilate erode median_blur remap resize warp_perspective",
    "experimental.inputs": "video",
    "experimental.readers": "fits video",
    "io.file": "read",
    "noise": "gaussian salt_and_pepper shot",
    "random": "beta choice coin_flip normal uniform",
    "readers": "caffe caffe2 coco file mxnet nemo_asr numpy sequence tfrecord video video_resize webdataset",
    "reductions": "max mean mean_square min rms std_dev sum variance",
    "segmentation": "random_mask_pixel random_object_bbox select_masks",
    "transforms": "combine crop rotation scale shear translation",
}
# Reasons for operators that Stoker lacks, with the way out.
REASONS = {
    "optical_flow": (
        "it needs the optical flow engine of NVIDIA's GPUs and its library, which Stoker does not call. "
        "`fn.python_function` can run another method on the CPU, for example OpenCV's `DISOpticalFlow`"
    ),
}
# Former names that DALI still accepts.
ALIASES = {
    "audio_decoder": "decoders.audio",
    "coco_reader": "readers.coco",
    "caffe2_reader": "readers.caffe2",
    "caffe_reader": "readers.caffe",
    "coin_flip": "random.coin_flip",
    "fast_resize_crop_mirror": "resize_crop_mirror",
    "file_reader": "readers.file",
    "image_decoder": "decoders.image",
    "image_decoder_crop": "decoders.image_crop",
    "image_decoder_random_crop": "decoders.image_random_crop",
    "image_decoder_slice": "decoders.image_slice",
    "mxnet_reader": "readers.mxnet",
    "nemo_asr_reader": "readers.nemo_asr",
    "normal_distribution": "random.normal",
    "numpy_reader": "readers.numpy",
    "ssd_random_crop": "random_bbox_crop",
    "sequence_reader": "readers.sequence",
    "tfrecord_reader": "readers.tfrecord",
    "transform_translation": "transforms.translation",
    "uniform": "random.uniform",
    "video_reader": "readers.video",
    "video_reader_resize": "readers.video_resize",
    "experimental.audio_resample": "audio_resample",
    "experimental.debayer": "debayer",
    "experimental.equalize": "equalize",
    "experimental.filter": "filter",
    "experimental.inflate": "decoders.inflate",
    "experimental.peek_image_shape": "peek_image_shape",
    "experimental.tensor_resize": "tensor_resize",
    "experimental.decoders.image": "decoders.image",
    "experimental.decoders.image_crop": "decoders.image_crop",
    "experimental.decoders.image_random_crop": "decoders.image_random_crop",
    "experimental.decoders.image_slice": "decoders.image_slice",
    "experimental.decoders.video": "decoders.video",
}
_FILE_FILTERS = (
    "*.jpg", "*.jpeg", "*.png", "*.bmp", "*.tif", "*.tiff", "*.pnm", "*.ppm", "*.pgm", "*.pbm", "*.jp2", "*.webp",
    "*.flac", "*.ogg", "*.wav",
)  # fmt: skip
# Arguments whose default gives another meaning than DALI's.
DEFAULTS: dict[str, dict[str, Any]] = {
    "audio_resample": {"filter": "dali"},
    "decoders.audio": {"filter": "dali"},
    "decoders.video": {"adjust_orientation": False},
    "external_source": {"pass_to_default": True},
    "readers.file": {"file_filters": _FILE_FILTERS},
    "readers.nemo_asr": {"filter": "dali", "base": ""},
    "experimental.inputs.video": {"adjust_orientation": False},
    "experimental.readers.video": {"adjust_orientation": False, "base": ""},
    "readers.video": {"adjust_orientation": False, "base": ""},
    "readers.video_resize": {"adjust_orientation": False, "base": "", "subpixel_scale": True},
    "experimental.resize": {"subpixel_scale": True, "allow_empty": True},
    "fast_resize_crop_mirror": {"subpixel_scale": True, "antialias": False},
    "resize": {"subpixel_scale": True, "allow_empty": True},
    "resize_crop_mirror": {"subpixel_scale": True},
}
# Classes in `ops` whose names differ from their operators' names.
_CLASSES = {
    "bbox_paste": "BBoxPaste",
    "bbox_rotate": "BBoxRotate",
    "coco_reader": "COCOReader",
    "dl_tensor_python_function": "DLTensorPythonFunction",
    "mfcc": "MFCC",
    "mxnet_reader": "MXNetReader",
    "roi_random_crop": "ROIRandomCrop",
    "random_bbox_crop": "RandomBBoxCrop",
    "ssd_random_crop": "SSDRandomCrop",
    "tfrecord_reader": "TFRecordReader",
    "readers.coco": "COCO",
    "readers.mxnet": "MXNet",
    "readers.tfrecord": "TFRecord",
    "reductions.rms": "RMS",
    "segmentation.random_object_bbox": "RandomObjectBBox",
}
# DALI's modules and classes that Stoker lacks, by the module that would contain them.
_REFUSED = {
    "dali": "",
    "dali.plugin": "",
    "dali.plugin.jax": "",
    "dali.plugin.paddle": "to_paddle_type recursive_length lod_tensor_clip",
    "dali.plugin.pytorch": "TorchPythonFunction",
    "dali.plugin.tf": "",
    "dali.backend": (
        "ExternalContextCheckpoint GetCxx11AbiFlag GetSchema GetSchemaAndTarget Init OpSchema OpSpec PipelineDebug "
        "SetCUDACurrentDevice SharedMem Stream TryGetSchema"
    ),
    "Tensor": "stream device_id",
    "TensorList": "stream device_id",
    "Pipeline": "",
}
_SCHEMA = "`help` and `inspect.signature` of an operator in `fn` show its declaration"
_INTERNAL = "It is a part of DALI's own executor"
_WAYS_OUT = {
    "ExternalContextCheckpoint": "Checkpoints are bytes of `Pipeline.checkpoint`",
    "GetCxx11AbiFlag": "It is for compiling operators for DALI, which are not loaded here",
    "GetSchema": _SCHEMA,
    "GetSchemaAndTarget": _SCHEMA,
    "Init": "There is nothing to initialize",
    "OpSchema": _SCHEMA,
    "OpSpec": _INTERNAL,
    "PipelineDebug": "Call operators on arrays with `stoker.eager`, or use `experimental.dynamic`",
    "SetCUDACurrentDevice": "Pipelines take a `device_id`; in the imperative mode use `with Device(...)`",
    "SharedMem": _INTERNAL,
    "Stream": "The imperative mode has `experimental.dynamic.Stream`",
    "TryGetSchema": _SCHEMA,
}
NAMES = frozenset(f"{group}.{name}".lstrip(".") for group, names in _OPERATORS.items() for name in names.split())


class _MissingAttributeError(UnsupportedError, AttributeError):
    """DALI's objects have the attribute, Stoker's have not: `hasattr` is false."""


def refuse(where: str, name: str) -> NoReturn:
    """Refuse a missing name, for the ``__getattr__`` of a module or a class.

    Raises:
        UnsupportedError: DALI has the name, Stoker has not. For attributes of objects it is an AttributeError, too; for
            names of modules it is not, because `from module import name` would replace its text.
        AttributeError: neither has it.
    """
    module = f"{where}.{name}".removeprefix("dali.")
    if is_module(module):
        refuse_module(module)
    if name in _REFUSED[where].split():
        kind = UnsupportedError if where.startswith("dali") else _MissingAttributeError
        way_out = f". {_WAYS_OUT[name]}" if where == "dali.backend" else ""
        raise kind(f"`{where}.{name}` of DALI is not in Stoker (yet){way_out}; see docs/migrating_from_dali.md")
    raise AttributeError(f"`{where}` has no attribute {name!r}")


def defaults(name: str) -> dict[str, Any]:
    """Return DALI's defaults of an operator, or of a former name, where they have another meaning than Stoker's."""
    return DEFAULTS.get(name, DEFAULTS.get(ALIASES.get(name, name), {}))


def class_name(operator: str) -> str:
    """Return the name of the class in `ops`: ``crop_mirror_normalize`` is CropMirrorNormalize, ``readers.coco`` is
    COCO.
    """
    last = operator.rsplit(".", 1)[-1]
    return _CLASSES.get(operator) or "".join(part[:1].upper() + part[1:] for part in last.split("_"))
