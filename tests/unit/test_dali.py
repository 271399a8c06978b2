# SPDX-License-Identifier: Apache-2.0
"""Modules and names of ``stoker.dali``. Missing ones are refused by name."""

from __future__ import annotations

import importlib
import operator
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stoker
import stoker.dali.experimental.dynamic as ndd
from stoker import ArgumentError, DataError, StateError, UnsupportedError, dali
from stoker.contract.errors import UnknownArgumentError
from stoker.contract.types import DType
from stoker.dali import fn, ops, pipeline_def, tfrecord, types
from stoker.frontends.dali.catalogue import ALIASES, NAMES, class_name
from stoker.ops._index import INDEX
from tests.idle_clock import HANG_S

MODULES = [
    "auto_aug", "auto_aug.augmentations", "auto_aug.auto_augment", "auto_aug.core", "auto_aug.rand_augment",
    "auto_aug.trivial_augment",
    "backend", "data_node", "experimental", "experimental.dynamic", "experimental.dynamic.capture",
    "experimental.dynamic.checkpoint", "experimental.dynamic.pytorch",
    "experimental.dynamic.math", "experimental.dynamic.random", "experimental.dynamic.readers",
    "external_source", "fn", "math", "ops", "pickling", "pipeline", "pipeline.experimental", "plugin",
    "plugin.base_iterator", "plugin.numba", "plugin.numba.fn", "plugin.numba.fn.experimental",
    "plugin.pytorch", "plugin.pytorch.experimental", "plugin.pytorch.experimental.proxy", "plugin.pytorch.fn",
    "plugin.pytorch.loader_evaluator", "plugin.pytorch.torch_utils", "plugin_manager", "tensors", "tfrecord", "types",
]  # fmt: skip
REFUSED = [
    "experimental.torchvision", "internal", "plugin.mxnet", "reducers", "sysconfig",
]  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_modules_are_real(name: str) -> None:
    module = importlib.import_module(f"stoker.dali.{name}")
    assert sys.modules[f"stoker.dali.{name}"] is module
    assert module.__doc__


@pytest.mark.parametrize("name", ["readers", "decoders", "random", "experimental.readers", "io.file", "transforms"])
def test_groups_of_operators_are_modules(name: str) -> None:
    functions = importlib.import_module(f"stoker.dali.fn.{name}")
    classes = importlib.import_module(f"stoker.dali.ops.{name}")
    found: Any = fn
    for part in name.split("."):
        found = getattr(found, part)
    assert functions is found and functions.__doc__ and classes.__doc__
    code = "from stoker.dali.fn.readers import file; import stoker.dali.ops.io.file as f; f.__name__"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=HANG_S)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("stoker.dali.fn.nothing")


@pytest.mark.parametrize("name", REFUSED)
def test_missing_modules_are_import_errors(name: str) -> None:
    with pytest.raises(
        UnsupportedError, match=r"the module `dali\..*` of DALI is not in Stoker \(yet\)\. [`\w]"
    ) as error:
        importlib.import_module(f"stoker.dali.{name}")
    assert isinstance(error.value, ImportError), "so that scripts can try"
    assert f"stoker.dali.{name}".startswith(str(error.value.name))
    parent, _, last = f"stoker.dali.{name}".rpartition(".")
    if parent in ("stoker.dali", "stoker.dali.plugin", "stoker.dali.plugin.pytorch"):
        with pytest.raises(ImportError, match=f"`dali.{name}`"):
            getattr(importlib.import_module(parent), last)


def test_import_is_light_and_brings_in_no_framework() -> None:
    code = "import sys, stoker.dali; print(' '.join(sorted({m.split('.')[0] for m in sys.modules})))"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=HANG_S
    ).stdout.split()
    assert not {"nvidia", "torch", "PIL", "multiprocessing"} & set(loaded)


def test_the_catalogue_covers_stokers_operators() -> None:
    assert len(NAMES | set(ALIASES)) == 172  # DALI 2.4 has the same number
    assert not NAMES & set(ALIASES)
    assert set(ALIASES.values()) <= NAMES
    own = {"boolean_mask", "shapes", "permute_batch", "per_frame", "readers.audio", "readers.concat", "readers.mix"}
    own |= {"autocontrast", "channel_shuffle", "coarse_dropout", "posterize", "sharpness", "solarize"}
    own |= {"elastic", "lens_distortion", "motion_blur", "optical_distortion"}
    own |= {"cutmix", "gather", "gpu_function", "mixup", "readers.partner"}
    own |= {"copy_paste", "geometry", "mosaic", "segmentation.polygon_masks"}
    own |= {"readers.array_record", "readers.lance", "readers.litdata"}
    own |= {"readers.bagz", "readers.dataset", "readers.huggingface", "readers.mds", "readers.parquet", "readers.zip"}
    own |= {"convolve", "griffin_lim", "istft", "loudness", "loudness_normalize", "mix_noise", "pitch_shift"}
    own |= {"random_speed", "spec_augment", "stft", "time_stretch", "trim_silence"}
    own |= {"features.kaldi_fbank", "features.nemo", "features.wav2vec2", "features.whisper"}
    own |= {"batched_nms", "box_iou", "nms", "nms_rotated", "roi_align", "roi_pool", "soft_nms"}
    assert {n for n in INDEX if not n.startswith("_")} - NAMES <= own


@pytest.mark.parametrize("name", sorted(NAMES | set(ALIASES)))
def test_every_name_of_dali_exists_or_is_refused_by_name(name: str) -> None:
    function: Any = fn
    for part in name.split("."):
        function = getattr(function, part)
    assert callable(function)
    group: Any = ops
    for part in name.split(".")[:-1]:
        group = getattr(group, part)
    if ALIASES.get(name, name) in INDEX:
        cls = getattr(group, class_name(name))
        assert cls.__name__ == class_name(name) and isinstance(cls, type)
    else:
        with pytest.raises(
            UnsupportedError, match=f"`fn.{name}`: this operator of DALI's .*is not in Stoker: .* — made at"
        ) as error:
            function()
        assert "test_dali.py" in str(error.value)
        with pytest.raises(UnsupportedError, match="is not in Stoker: "):
            getattr(group, class_name(name))


def test_the_page_says_which_operators_are_missing() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "migrating_from_dali.md").read_text(encoding="utf-8")
    section = page.split("## Operators of DALI that Stoker lacks")[1].split("\n## ")[0]
    listed = [set(re.findall(r"`([a-z_.0-9]+)`", line.split("|")[1])) for line in section.splitlines() if "`" in line]
    assert f"Of DALI's {len(NAMES)} operators" in section and f"{len(ALIASES)} former names" in section
    assert NAMES - set(INDEX) <= set().union(*listed)


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="there is no operator `resise`; did you mean `resize`"):
        fn.resise  # noqa: B018
    with pytest.raises(AttributeError, match=r"there is no class `ops\.Resise`; did you mean `Resize`"):
        ops.Resise  # noqa: B018
    with pytest.raises(AttributeError, match="has no attribute 'STRINGS'"):
        types.STRINGS  # noqa: B018
    assert "resize" in dir(fn) and "file" in dir(fn.readers) and "Resize" in dir(ops) and "File" in dir(ops.readers)
    assert "optical_flow" not in dir(fn)


ROWS = [np.full((4, 6, 3), 10 * i, np.uint8) for i in range(5)]


@pytest.fixture
def images() -> Any:
    return lambda info: ROWS[info.idx_in_epoch % 5]


def test_a_pipeline_function(images: Any) -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None, seed=3)
    def pipeline() -> Any:
        x = fn.external_source(source=images, batch=False, layout="HWC", dtype=types.UINT8)
        return x, fn.resize(x, resize_x=3, resize_y=2), fn.cast(x, dtype=types.FLOAT) * 2.0

    pipe = pipeline()
    assert isinstance(pipe, dali.Pipeline) and isinstance(pipe, stoker.Pipeline)
    pipe.build()
    same, small, doubled = pipe.run()
    assert isinstance(same, dali.tensors.TensorListCPU) and len(same) == 2
    assert small.shape() == [(2, 3, 3)] * 2 and small.dtype == types.UINT8 and small.ndim == 3
    assert same.layout() == "HWC" and same.is_dense_tensor()
    assert (same.at(1) == ROWS[1]).all() and (np.array(same[0]) == ROWS[0]).all()
    assert doubled.as_array().shape == (2, 4, 6, 3) and doubled.as_tensor().layout() == "NHWC"
    assert doubled.as_cpu() is doubled and doubled.as_reshaped_tensor([2, 72]).shape() == [2, 72]
    assert np.from_dlpack(doubled.as_tensor()).max() == 20.0
    with pytest.raises(IndexError):
        same[2]
    pipe.close()


def test_a_subclass_with_define_graph_and_operator_classes(images: Any) -> None:
    class Training(dali.Pipeline):
        def __init__(self, batch_size: int, num_threads: int, device_id: Any) -> None:
            super().__init__(batch_size, num_threads, device_id, seed=12)
            self.input = ops.ExternalSource(source=images, batch=False, layout="HWC")
            self.resize = ops.Resize(device="cpu", resize_x=3)
            self.normalize = ops.CropMirrorNormalize(dtype=types.FLOAT, crop=(2, 2), mean=[0.0], std=[1.0])
            self.coin = ops.random.CoinFlip(probability=0.5)

        def define_graph(self) -> Any:
            x = self.resize(self.input(), resize_y=4)
            return self.normalize(x, mirror=self.coin())

    pipe = Training(2, 1, None)
    pipe.build()
    assert pipe.run()[0].shape() == [(3, 2, 2)] * 2
    assert pipe.num_outputs == 1 and pipe.batch_size == pipe.max_batch_size == 2 and pipe.seed == 12
    pipe.close()
    with pytest.raises(ArgumentError, match="`size` is given to the class and to the call"):
        ops.Resize(size=3)(None, size=4)
    with pytest.raises(StateError, match="write `define_graph`"):
        dali.Pipeline(1, 1, None).build()


def test_a_definition_continues_after_its_with_block() -> None:
    pipe = dali.Pipeline(batch_size=2, num_threads=1, device_id=None, exec_dynamic=True)
    with pipe:
        assert dali.Pipeline.current() is pipe
        x = fn.external_source(name="x")
        half = ops.Compose([ops.Cast(dtype=types.FLOAT), lambda v: v / 2])(x)
        pipe.set_outputs(half, x)
    assert dali.Pipeline.current() is None
    pipe.feed_input("x", [np.int32([1]), np.int32([2])])
    assert [v.tolist() for v in pipe.run()[0].batch] == [[0.5], [1.0]]
    assert pipe.run(x=np.int32([[4], [6]]))[0].as_array().tolist() == [[2.0], [3.0]]
    fed = pipe.run(x=dali.backend.TensorListCPU(np.int32([[7], [9]])))[1]
    assert fed.as_array().tolist() == [[7], [9]]
    assert pipe.input_feed_count("x") == 1
    pipe.close()


def test_the_split_form_of_run() -> None:
    pipe = dali.Pipeline(2, 1, None)
    with pipe:
        pipe.set_outputs(fn.external_source(lambda i: np.full((2, 1), i)))
    with pytest.raises(StateError, match="expected `schedule_run"):
        pipe.share_outputs()
    pipe.schedule_run()
    pipe.schedule_run()
    assert not pipe.empty()
    first = pipe.share_outputs()[0].as_array().max()
    pipe.release_outputs()
    second = pipe.outputs()[0].as_array().max()
    assert (first, second) == (0, 1) and pipe.empty()
    pipe.close()


def test_iter_setup_feeds_every_batch() -> None:
    class Fed(dali.Pipeline):
        def define_graph(self) -> Any:
            self.x = fn.external_source()
            self.count = 0
            return self.x

        def iter_setup(self) -> None:
            self.count += 1
            self.feed_input(self.x, np.full((1, 1), self.count))

    pipe = Fed(1, 1, None)
    assert [int(pipe.run()[0].at(0)[0]) for _ in range(3)] == [1, 2, 3]
    pipe.close()


def test_a_checkpoint_has_the_seed_of_a_pipeline_without_one() -> None:
    @pipeline_def(batch_size=3, num_threads=1, device_id=None, seed=-1)
    def drawing() -> Any:
        return fn.random.uniform()

    pipe = drawing(enable_checkpointing=True)
    pipe.run()
    text, wanted = pipe.checkpoint(), pipe.run()[0].as_array().tolist()
    other = drawing(checkpoint=text)
    assert other.run()[0].as_array().tolist() == wanted and other.seed == pipe.seed
    other.close()
    pipe.close()


def test_readers_states_and_files(jpegs: Path, tmp_path: Path) -> None:
    @pipeline_def(batch_size=3, num_threads=1, seed=5)
    def reading() -> Any:
        encoded, label = fn.readers.file(file_root=str(jpegs), random_shuffle=True, name="Reader")
        return fn.decoders.image_random_crop(encoded, device="cpu"), label

    pipe = reading(enable_checkpointing=True)
    pipe.build()
    assert pipe.epoch_size("Reader") == pipe.reader_meta("Reader")["epoch_size"] > 9
    pipe.run()
    text = pipe.checkpoint(str(tmp_path / "state"))
    wanted = pipe.run()[1].as_array().tolist()
    other = reading(checkpoint=text)
    assert other.run()[1].as_array().tolist() == wanted and other.is_restored_from_checkpoint
    pipe.serialize(filename=str(tmp_path / "graph"))
    again = dali.Pipeline.deserialize(filename=str(tmp_path / "graph"), batch_size=3, num_threads=1, seed=5)
    again.run()
    assert again.run()[1].as_array().tolist() == wanted
    pipe.save_graph_to_dot_file(str(tmp_path / "graph.dot"))
    assert (tmp_path / "graph.dot").read_text().startswith("digraph")
    assert pipe.executor_statistics() == {} and pipe.report().to_dict()["batches"] == 2
    for p in (pipe, other, again):
        p.close()


def test_conditions_and_functions_that_are_not_rewritten() -> None:
    @dali.pipeline.do_not_convert
    def plain(x: Any) -> Any:
        return x + 1

    @pipeline_def(batch_size=4, num_threads=1, enable_conditionals=True)
    def conditional() -> Any:
        x = fn.external_source(source=lambda i: np.arange(4))
        if x > 1:  # noqa: SIM108 - the statement is what is tested
            y = plain(x) * 10
        else:
            y = x
        return y

    pipe = conditional()
    assert pipe.run()[0].as_array().tolist() == [0, 1, 30, 40]
    pipe.close()


def test_code_compiled_for_dali_is_refused() -> None:
    from stoker.dali import plugin_manager

    with pytest.raises(UnsupportedError, match=r"'lib\.so' was compiled for DALI"):
        plugin_manager.load_library("lib.so")
    with pytest.raises(UnsupportedError, match="'folder' holds operators that were compiled"):
        plugin_manager.load_directory("folder")
    with pytest.raises(ArgumentError, match="an object with DLPack or CUDA's array interface in a GPU's memory"):
        dali.backend.TensorListGPU([np.zeros(3)])


def test_names_of_types_that_no_tensor_has() -> None:
    listed = {"NO_TYPE": -1, "STRING": 12, "FEATURE": 17, "IMAGE_TYPE": 20, "DATA_TYPE": 21, "INTERP_TYPE": 22,
              "TENSOR_LAYOUT": 23, "PYTHON_OBJECT": 24}  # fmt: skip
    for name, value in listed.items():
        found = getattr(types, name)
        assert (found.name, found.value) == (name, value)
        assert (repr(found), str(found)) == (f"<DALIDataType.{name}: {value}>", f"DALIDataType.{name}")
        assert found is types.DALIDataType(value) is getattr(types.DALIDataType, name)
        with pytest.raises(TypeError, match="no element type for"):
            types.to_numpy_type(found)
    assert [x.name for x in types.PipelineAPIType] == ["BASIC", "ITERATOR", "SCHEDULED"]
    assert (types.CUDAStream().ptr, types.CUDAStream(7).ptr) == (0, 7)


def test_data_types_have_the_integers_of_dali() -> None:
    names = ("UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64",
             "FLOAT16", "FLOAT", "FLOAT64", "BOOL")  # fmt: skip
    for value, name in enumerate(names):
        found = getattr(types, name)
        own = DType[name]
        assert (int(found), operator.index(found), found.value, found.name) == (value, value, value, name)
        assert found is types.DALIDataType(value) and pickle.loads(pickle.dumps(found)) is found
        assert (repr(found), str(found)) == (f"<DALIDataType.{name}: {value}>", f"DALIDataType.{name}")
        assert types.to_dali_type(own.numpy) is found and types.to_numpy_type(found) is own.numpy.type
        assert (found.numpy, found.size, found.is_float, found.is_signed) == (
            own.numpy, own.size, own.is_float, own.is_signed,
        )  # fmt: skip
        # A member equals the type of its name, not the type of its integer.
        assert [x.name for x in DType if x == found] == [x.name for x in DType if found == x] == [name]
        assert {found: 1}[own] == {own: 1}[found] == 1 and DType.of(found) is own
    assert {x.name for x in DType} <= set(types.DALIDataType.__members__)
    assert types.UINT8 != 0 and types.UINT8 != "UINT8"
    with pytest.raises(ValueError, match="29 is not a valid DALIDataType"):
        types.DALIDataType(29)
    with pytest.raises(TypeError, match="no element type for"):
        _ = types.STRING.size


@pytest.mark.parametrize("dtype", [9, types.FLOAT, DType.FLOAT, np.float32])
def test_types_of_outputs_are_dalis(dtype: Any) -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def plain() -> Any:
        return fn.cast(fn.constant(idata=[3]), dtype=dtype), ops.Cast(dtype=dtype)(fn.constant(idata=[3]))

    pipe = plain()
    for out in pipe.run():
        assert int(out.dtype) == int(out[0].dtype) == 9
        assert isinstance(out.dtype, types.DALIDataType) and out.dtype == DType.FLOAT
    pipe.close()


def test_a_source_with_a_default_argument_receives_the_number() -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def plain() -> Any:
        given = ops.ExternalSource(source=lambda i=7: [np.int64(i)] * 2)
        return fn.external_source(lambda i=7: [np.int64(i)] * 2), given()

    pipe = plain()
    assert [[x.as_array().tolist() for x in pipe.run()] for _ in range(2)] == [[[0, 0], [0, 0]], [[1, 1], [1, 1]]]
    pipe.close()


def test_integers_that_are_no_type_are_refused() -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def plain() -> Any:
        return fn.cast(fn.constant(idata=[3]), dtype=29)

    with pytest.raises(TypeError, match="no element type for 29"):
        plain().build()


def test_no_type_is_an_argument_that_is_not_given() -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def plain() -> Any:
        x = fn.external_source(lambda: [np.ones((4, 6, 3), np.uint8)] * 2, dtype=types.NO_TYPE, layout="HWC")
        return fn.resize(x, size=[2, 2], dtype=types.NO_TYPE), fn.reductions.mean(x, dtype=types.NO_TYPE)

    pipe = plain()
    pipe.build()
    assert [x.dtype for x in pipe.run()] == [types.UINT8, types.FLOAT]
    pipe.close()

    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def texts() -> Any:
        return fn.cast(fn.random.uniform(), dtype=types.STRING)

    with pytest.raises(RuntimeError, match="no element type for"):
        texts().build()


def test_lists_without_rows() -> None:
    made = dali.backend.TensorListCPU(np.ones((2, 3), np.int16), "W")
    row = made[1]
    made.reset()
    for empty in (made, dali.backend.TensorListCPU([]), dali.backend.TensorListCPU(made)):
        assert (len(empty), empty.shape(), empty.dtype, empty.ndim, empty.layout()) == (0, [], types.NO_TYPE, 0, "")
        assert empty.is_dense_tensor() and list(empty) == [] and empty.data_ptr() == 0 and empty.as_array().size == 0
        assert str(empty) == (
            'TensorListCPU(\n    [],\n    dtype=DALIDataType.NO_TYPE,\n    device="cpu",\n    num_samples=0,\n'
            "    shape=[])"
        )
        for wrong in (empty.as_tensor, lambda empty=empty: empty.reinterpret(types.INT8)):
            with pytest.raises(RuntimeError, match="got an empty list without a type"):
                wrong()
        with pytest.raises(IndexError):
            empty[0]
        with pytest.raises(RuntimeError, match="expected a row from"):
            empty.at(0)
    np.testing.assert_array_equal(row, np.ones(3, np.int16))
    named = dali.backend.TensorListCPU([], "HW")
    assert (named.ndim, named.layout(), named.dtype) == (2, "HW", types.NO_TYPE)
    made.set_layout("HWC")
    assert (made.ndim, made.layout()) == (3, "HWC")
    typed = dali.backend.TensorListCPU(np.zeros((0, 3), np.float64), "W")
    assert (len(typed), typed.dtype, typed.ndim, typed.layout()) == (0, types.FLOAT64, 1, "W")
    assert typed.as_tensor().shape() == [0, 3]
    typed.reinterpret(types.INT64)
    assert (typed.dtype, typed.as_array().shape) == (types.INT64, (0, 3))


class Exported:
    """Object that exports a capsule."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


@pytest.mark.parametrize(
    ("owner", "name"),
    [(dali, "reducers"), (dali.backend, "GetSchema"),
     (dali.backend.TensorListCPU([np.zeros(2)]), "stream"), (dali.backend.TensorCPU(np.zeros(2)), "stream")],
    ids=lambda x: x if isinstance(x, str) else "",
)  # fmt: skip
def test_other_names_are_refused_too(owner: Any, name: str) -> None:
    with pytest.raises(UnsupportedError, match=f"{name}` of DALI is not in Stoker"):
        getattr(owner, name)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        owner.nothing  # noqa: B018


def test_functions_of_the_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    from stoker.dali import backend
    from stoker.frontends.dali import backend_calls

    capsule = np.zeros(3).__dlpack__()
    assert backend.CheckDLPackCapsule(capsule) == (True, False)
    np.from_dlpack(Exported(capsule))
    assert backend.CheckDLPackCapsule(capsule) == backend.CheckDLPackCapsule(3) == (False, False), "it was taken"
    absent = [backend.GetCufftVersion(), backend.GetNppVersion(), backend.GetNvjpegVersion()]
    assert [*absent, backend.GetNvimgcodecVersion()] == [-1] * 4 and backend.GetOpenCVVersion() == ""
    assert backend.LoadDefaultPlugins() is backend.check_cuda_runtime() is None
    assert backend.RestrictPinnedMemUsage() is False
    assert backend.IsDriverInitialized() == (backend.GetCUDADeviceCount() > 0)
    assert (backend.GetCudaVersion() >= 11000) >= backend.IsDriverInitialized()
    for call in (backend.LoadLibrary, backend.LoadDirectory):
        with pytest.raises(RuntimeError, match="compiled for DALI, which are not loaded"):
            call("/lib.so")
    monkeypatch.setattr(backend_calls._native.gpu, "count_cuda", lambda: 2)
    assert backend.GetCUDADeviceCount() == 2 and backend.IsDriverInitialized() is True


def test_missing_attributes_of_objects() -> None:
    from stoker.dali.backend import TensorCPU

    tensor = TensorCPU(np.zeros(3, np.float32))
    assert not hasattr(tensor, "device_id") and not hasattr(tensor, "nothing")
    with pytest.raises(UnsupportedError, match=r"`Tensor\.device_id` of DALI is not in Stoker"):
        _ = tensor.device_id


def test_modules_are_attributes_of_the_package() -> None:
    wanted = ["data_node", "experimental", "external_source", "fn", "math", "plugin_manager", "tfrecord", "types"]
    code = f"import stoker.dali as d; print(*(getattr(d, name).__name__ for name in {wanted}))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG_S / 2, check=True)
    assert found.stdout.split() == [f"stoker.dali.{name}" for name in wanted]


def test_outputs_are_compared_with_their_declarations() -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def numbers(declared: bool = True) -> Any:
        types_ = {"dtype": types.FLOAT, "ndim": 1} if declared else {}
        return fn.external_source(source=lambda: [np.zeros(3, np.float32)] * 2, **types_), types.Constant(3)

    for declared in (True, False):
        pipe = numbers(declared, output_dtype=[types.FLOAT, types.INT32], output_ndim=[1, 0], output_layout="")
        assert len(pipe.run()) == 2
        assert (pipe.output_dtype(), pipe.output_ndim()) == ([types.FLOAT, types.INT32], [1, 0])
        pipe.close()
        pipe = numbers(declared, output_dtype=types.UINT8)
        for _ in range(2):
            with pytest.raises(ArgumentError, match="expected output 0 with `output_dtype` uint8, got float32"):
                pipe.run()
        pipe.close()
    with pytest.raises(ArgumentError, match="expected output 1 with `output_ndim` 1, got 0"):
        numbers(output_ndim=[1, 1]).build()
    with pytest.raises(ArgumentError, match="expected 2 of `output_dtype`, got 1"):
        numbers(output_dtype=[types.FLOAT]).build()


def test_debug_mode_is_refused() -> None:
    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def numbers() -> Any:
        return fn.random.uniform()

    with pytest.raises(UnsupportedError, match=r"expected debug=False, got True: .*`stoker\.eager`"):
        numbers(debug=True)
    assert len(numbers(debug=False).run()[0]) == 2
    with pytest.raises(ArgumentError, match="`pipeline_def`: unknown argument `debgu`; did you mean `debug`"):
        pipeline_def(batch_size=1, debgu=True)


def test_new_axes() -> None:
    def run(index: Any, layout: str = "XY") -> tuple[tuple[int, ...], str]:
        pipe = dali.Pipeline(1, 1, None)
        with pipe:
            x = fn.external_source(source=lambda: [np.zeros((2, 3))], layout=layout)
            pipe.set_outputs(x[index])
        (out,) = pipe.run()
        pipe.close()
        return out.shape()[0], out.layout()

    new = dali.newaxis
    assert run(new)[0] == (1, 2, 3)
    assert run((slice(None), new))[0] == (2, 1, 3)
    assert run((0, new, slice(1, None), new))[0] == (1, 2, 1)
    assert run((new("C"), slice(None)))[0:2] == ((1, 2, 3), "CXY")
    with pytest.raises(ArgumentError, match="a name for every new axis"):
        run((new("C"), new))
    with pytest.raises(ArgumentError, match="one letter"):
        new("AB")


def test_refused_names_of_plugins_and_nodes() -> None:
    from stoker.dali import plugin

    with pytest.raises(UnsupportedError, match=r"`dali\.plugin\.mxnet` of DALI is not in Stoker"):
        plugin.mxnet  # noqa: B018
    with dali.Pipeline(1, 1, None), pytest.raises(UnsupportedError, match=r"expected the data of a reader") as error:
        fn.external_source(name="x").source_info()
    assert "test_dali.py" in str(error.value)


def test_single_tensors_for_torch() -> None:
    torch = pytest.importorskip("torch")
    from stoker.dali.plugin.pytorch import torch_utils

    assert torch_utils.to_torch_type[types.FLOAT16] is torch.float16
    tensor = dali.backend.TensorCPU(np.arange(3, dtype=np.int32))
    copied, shared = torch_utils.to_torch_tensor(tensor, True), torch_utils.to_torch_tensor(tensor, False)
    assert copied.tolist() == shared.tolist() == [0, 1, 2] and copied.data_ptr() != shared.data_ptr()


def test_types() -> None:
    assert types.to_numpy_type(types.FLOAT16) is np.float16 and types.to_dali_type("int64") == types.INT64
    assert types.INTERP_GAUSSIAN.name == "INTERP_GAUSSIAN" and types.INTERP_NN == 0
    assert types.NCHW == "CHW" and types.DALIImageType.BGR == types.BGR


def test_the_number_of_gpus() -> None:
    assert dali.backend.GetCUDADeviceCount() >= 0


def test_lists_of_classes_by_device() -> None:
    cpu, gpu, mixed = dali.ops.cpu_ops(), dali.ops.gpu_ops(), dali.ops.mixed_ops()
    assert {"Resize", "decoders__Image", "ExternalSource", "FileReader"} <= cpu and "OpticalFlow" not in cpu
    assert "Resize" in gpu and "FileReader" not in gpu and mixed >= {"ImageDecoder", "decoders__ImageCrop"}
    assert dali.backend.RegisteredCPUOps() == sorted(cpu) and dali.backend.RegisteredGPUOps() == sorted(gpu)
    assert dali.backend.RegisteredMixedOps() == sorted(mixed)


def test_settings_of_memory_pools() -> None:
    backend = dali.backend
    backend.ReleaseUnusedMemory()
    backend.PreallocatePinnedMemory(1 << 20)
    backend.PreallocateDeviceMemory(1 << 20, 0)
    before = backend.GetHostBufferGrowthFactor(), backend.GetHostBufferShrinkThreshold()
    backend.SetBufferGrowthFactor(2)
    backend.SetHostBufferShrinkThreshold(0.25)
    assert (backend.GetHostBufferGrowthFactor(), backend.GetDeviceBufferGrowthFactor()) == (2.0, 2.0)
    assert backend.GetHostBufferShrinkThreshold() == 0.25
    backend.SetBufferGrowthFactor(before[0])
    backend.SetHostBufferShrinkThreshold(before[1])
    with pytest.raises(ArgumentError, match=r"expected a factor of at least 1, got 0\.5"):
        backend.SetDeviceBufferGrowthFactor(0.5)
    with pytest.raises(ArgumentError, match="expected a share from 0 to 1, got 2"):
        backend.SetHostBufferShrinkThreshold(2)


def test_choices_between_executors_have_no_effect() -> None:
    @pipeline_def(
        batch_size=2, num_threads=1, stream_policy=dali.StreamPolicy.PER_BACKEND,
        concurrency=dali.pipeline.OperatorConcurrency.FULL,
    )  # fmt: skip
    def make() -> Any:
        x = fn.external_source(lambda: [np.zeros((2, 3), np.uint8)] * 2, layout=types.TensorLayout("HW"))
        return fn.reshape(x, layout=types.TensorLayout("AB"))

    with make() as pipe:
        pipe.enable_api_check(False)
        assert pipe.run()[0].layout() == types.TensorLayout("AB")
    pipe.close()
    with pytest.raises(ArgumentError, match="expected a text such as"):
        types.TensorLayout(5)  # type: ignore[arg-type]


def test_errors_are_of_the_classes_that_dali_raises_and_survive_pickling() -> None:
    with pytest.raises(ArgumentError) as error:
        fn.resize(3, sise=4)
    assert isinstance(error.value, RuntimeError) and isinstance(error.value, TypeError)
    assert isinstance(error.value, KeyError) and str(error.value).startswith("`resize`: unknown argument `sise`")
    again = pickle.loads(pickle.dumps(error.value))
    assert type(again) is UnknownArgumentError and str(again) == str(error.value)
    with pytest.raises(NotImplementedError, match=r"got `\.\.\.`: write `:` for each axis"):
        fn.external_source(name="x")[..., 0]
    with pytest.raises(ArgumentError) as other:
        fn.resize(3, size="x")
    assert not isinstance(other.value, (KeyError, NotImplementedError))
    for kind in (RuntimeError, ValueError, TypeError):
        with pytest.raises(kind, match="no outputs yet"):
            dali.Pipeline(1, 1, None).build()
        with pytest.raises(kind, match="expected `batch_size` >= 1"):
            dali.Pipeline(0, 1, None)
        with pytest.raises(kind, match="is not in Stoker: it needs the optical flow engine"):
            fn.optical_flow(3)
        with pytest.raises(kind, match="unknown argument `debgu`"):
            pipeline_def(batch_size=1, debgu=True)
        with pytest.raises(kind, match="expected a feature of numbers, got strings"):
            tfrecord.VarLenFeature(tfrecord.string, "")
        with pytest.raises(kind, match="expected a feature of one string"):
            tfrecord.FixedLenFeature([2], tfrecord.string)


def test_a_node_outside_is_one_node_of_each_pipeline() -> None:
    x = fn.external_source(name="x")
    y = x + 1
    pipe = dali.Pipeline(1, 1, None)
    with pipe:
        z = y * x
    pipe.set_outputs(z, x)
    assert [node.operator.name for node in pipe.graph.nodes].count("external_source") == 1
    for value in (3, 5):
        assert [int(o.at(0)) for o in pipe.run(x=[np.int32(value)])] == [(value + 1) * value, value]
    draws = fn.random.uniform(), fn.random.uniform()
    drawing = dali.Pipeline(4, 1, None, seed=1)
    drawing.set_outputs(*draws)
    first, second = drawing.run()
    assert first.as_array().tolist() != second.as_array().tolist(), "each has numbers of its own"
    pipe.close()
    drawing.close()


def test_numbers_of_elements_of_the_first_batch_are_required_of_all() -> None:
    shapes = [np.int32([1, 2]), np.int32([3, 1]), np.int32([2, 1, 1])]
    for declared in ({}, {"dtype": types.INT32, "ndim": 1}):
        pipe = dali.Pipeline(1, 1, None)
        with pipe:
            shape = fn.external_source(source=lambda i: [shapes[i]], **declared)
            pipe.set_outputs(fn.zeros(shape=shape), fn.random.uniform(shape=shape + 1))
        pipe.build()
        assert [x.shape() for x in pipe.run()] == [[(1, 2)], [(2, 3)]]
        assert [x.shape() for x in pipe.run()] == [[(3, 1)], [(4, 2)]]
        with pytest.raises(DataError, match="expected 2 numbers as `shape` in every row, as in the first batch, got 3"):
            pipe.run()
        pipe.close()


def test_a_first_batch_without_one_number_of_elements_is_refused() -> None:
    pipe = dali.Pipeline(2, 1, None)
    with pipe:
        pipe.set_outputs(fn.zeros(shape=fn.external_source(source=lambda i: [np.int32([1, 2]), np.int32([3])])))
    with pytest.raises(ArgumentError, match="`shape` with a number of elements that is the same for all rows"):
        pipe.run()
    pipe.close()


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("saturation", {"saturation": 0.5}), ("hue", {"hue": 20.0}), ("hsv", {"hue": 20.0, "value": 1.2}),
     ("color_twist", {"hue": 20.0, "brightness": 1.2}), ("color_twist", {"brightness": 1.2})],
)  # fmt: skip
@pytest.mark.parametrize("channels", [3, 4, 5])
def test_channels_beyond_colours_stay_as_they_are(name: str, arguments: dict[str, float], channels: int) -> None:
    image = (np.arange(4 * 5 * channels) * 7 % 251).astype(np.uint8).reshape(4, 5, channels)
    pipe = dali.Pipeline(1, 1, None)
    with pipe:
        whole = fn.external_source(source=lambda: [image], layout="HWC")
        colours = fn.external_source(source=lambda: [image[..., :3]], layout="HWC")
        pipe.set_outputs(getattr(fn, name)(whole, **arguments), getattr(fn, name)(colours, **arguments))
    whole, colours = (out.at(0) for out in pipe.run())
    assert (whole[..., :3] == colours).all() and (whole[..., 3:] == image[..., 3:]).all()
    with pytest.raises(ArgumentError, match="expected images with 3 to 16 channels, got 2"):
        getattr(stoker.eager, name)(image[..., :2], **arguments)
    pipe.close()


def test_rows_with_another_number_of_channels_are_refused() -> None:
    images = [np.zeros((2, 3, 4), np.uint8), np.zeros((2, 3, 3), np.uint8)]
    pipe = dali.Pipeline(1, 1, None)
    with pipe:
        pipe.set_outputs(fn.hue(fn.external_source(source=lambda i: [images[i]], layout="HWC"), hue=20.0))
    pipe.run()
    with pytest.raises(DataError, match="expected images with 4 channels in every row, got 3"):
        pipe.run()
    pipe.close()


@pytest.mark.parametrize(
    ("name", "arguments", "more"),
    [
        ("resize", {"resize_shorter": 7}, {"subpixel_scale": True}),
        ("experimental.resize", {"resize_x": 7}, {"subpixel_scale": True}),
        ("resize_crop_mirror", {"resize_longer": 7, "crop": (4, 4)}, {"subpixel_scale": True}),
        ("fast_resize_crop_mirror", {"size": (3, 4), "crop": (3, 4)}, {"subpixel_scale": True, "antialias": False}),
    ],
)
def test_defaults_are_dalis(name: str, arguments: dict[str, Any], more: dict[str, Any]) -> None:
    image = np.random.Generator(np.random.PCG64(7)).integers(0, 256, (9, 11, 3), np.uint8)

    def find(owner: Any) -> Any:
        for part in name.split("."):
            owner = getattr(owner, part)
        return owner

    def run(**given: Any) -> Any:
        pipe = dali.Pipeline(batch_size=1, num_threads=1, device_id=None)
        with pipe:
            pipe.set_outputs(find(fn)(types.Constant(image, layout="HWC"), **given))
        return np.asarray(pipe.run()[0][0])

    wanted, other = run(**arguments, **more), run(**arguments, **{k: not v for k, v in more.items()})
    assert (wanted != other).any()
    np.testing.assert_array_equal(run(**arguments), wanted)
    np.testing.assert_array_equal(np.asarray(find(ndd)(image, **arguments)), wanted)
