# SPDX-License-Identifier: Apache-2.0
"""DALI's ``Pipeline``: its arguments in its order, its methods, and lists of tensors as outputs."""

from __future__ import annotations

import contextlib
import json
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from ...contract.errors import ArgumentError, StateError, UnsupportedError
from ...contract.text import brief
from ..data_node import DataNode
from ..decorator import define_as
from ..definition import current
from ..pipeline import Pipeline as _Pipeline
from .by_value import ByValuePickler
from .catalogue import refuse
from .errors import error_class, raises_as_dali, raising_as_dali
from .nodes import DataNode as _DataNode
from .nodes import NodeBuilder
from .source_info import SampleLocations
from .tensors import TensorListCPU, TensorListGPU, tensor_list

if TYPE_CHECKING:
    from ...executor.delivery import Delivered
    from ...executor.execution import Allocate
    from ...executor.schedule import AtEnd

TensorList = TensorListCPU | TensorListGPU


_SERIALIZED = ("batch_size", "num_threads", "device_id", "seed")


class Pipeline(_Pipeline):
    """Pipeline with the arguments of NVIDIA DALI's, in their order; :class:`stoker.Pipeline` explains them.

    It is defined by a function under :func:`pipeline_def`, between ``with pipe:`` and ``set_outputs``, or by a subclass
    with ``define_graph``. ``exec_dynamic``, ``set_affinity``, ``bytes_per_sample``, ``stream_policy`` and similar
    arguments are accepted without effect: they choose between DALI's executors, and Stoker has one. ``output_dtype``,
    ``output_ndim`` and ``output_layout`` are compared with the actual outputs. Without a ``py_callback_pickler``,
    spawned processes get lambdas and functions inside of functions by value.

    Args:
        batch_size: maximum number of rows in a batch; required.
        default_cuda_stream_priority: accepted without effect.
        debug: only False: operators do not run while the pipeline is defined.
        **settings: other arguments of :class:`stoker.Pipeline`.
    """

    @raises_as_dali
    def __init__(
        self, batch_size: int = -1, num_threads: int = -1, device_id: int | None = None, seed: int | None = -1,
        exec_pipelined: bool = True, prefetch_queue_depth: Any = 2, exec_async: bool = True, bytes_per_sample: int = 0,
        set_affinity: bool = False, max_streams: int | None = None, default_cuda_stream_priority: int | None = None, *,
        checkpoint: Any = None, debug: bool = False, **settings: Any,
    ) -> None:  # fmt: skip
        if debug:
            raise UnsupportedError(
                "`Pipeline`: expected debug=False, got True: operators do not run while the pipeline is defined. To "
                "see what they make, call them on arrays with `stoker.eager`"
            )
        if batch_size == -1:
            raise ArgumentError("`Pipeline`: expected `batch_size`, got none. Pass it to `pipeline_def` or to the call")
        if batch_size < 1:
            raise ArgumentError(f"`Pipeline`: expected `batch_size` >= 1, got {brief(batch_size)}")
        self._asynchronous, self._pipelined = exec_async, exec_pipelined
        state = _read_state(checkpoint) if isinstance(checkpoint, (bytes, str)) else checkpoint
        self._has_checkpoints = bool(settings.get("enable_checkpointing", False))
        if settings.get("py_callback_pickler") is None:
            settings["py_callback_pickler"] = ByValuePickler
        super().__init__(
            batch_size, None if num_threads is None or num_threads < 1 else num_threads,
            None if device_id is None or device_id < 0 else device_id, seed,
            prefetch_queue_depth=prefetch_queue_depth, exec_async=exec_async, exec_pipelined=exec_pipelined,
            checkpoint=state, **settings,
        )  # fmt: skip
        # DALI's readers are independent, and its iterators' `reader_name` says which one ends an epoch.
        self._config = replace(self._config, uneven_readers="warn")
        self._builder: NodeBuilder = NodeBuilder(self)
        self._restored = state is not None
        self._scheduled = 0
        self._has_ended = False  # a source has raised StopIteration
        self._shared: deque[tuple[Any, ...]] = deque()
        self._sinks: list[Any] = []
        self._locations: SampleLocations | None = None

    # ---- definition ----

    def __getattr__(self, name: str) -> NoReturn:
        refuse("Pipeline", name)

    def define_graph(self) -> Any:
        """Return the outputs; for subclasses."""
        raise StateError(
            "the pipeline has no outputs yet: call `set_outputs`, or write `define_graph` in a subclass of Pipeline"
        )

    def iter_setup(self) -> None:
        """Feed inputs before every batch. Subclasses override this hook."""

    @raises_as_dali
    def build(self) -> Pipeline:
        """Plan the graph, after defining it if a subclass has ``define_graph``."""
        if self._outputs is None:
            with self:
                outputs = self.define_graph()
            self.set_outputs(*(outputs if isinstance(outputs, (tuple, list)) else (outputs,)))
        super().build()
        return self

    @staticmethod
    def current() -> Pipeline | None:
        """Return the pipeline that is being defined."""
        builder = current()
        return builder.pipeline if isinstance(builder, NodeBuilder) else None

    @staticmethod
    def push_current(pipeline: Pipeline) -> Pipeline | None:
        """Make this pipeline the one being defined, until :meth:`pop_current`.

        Args:
            pipeline: the pipeline. :meth:`pop_current` ends its definition.
        """
        before = Pipeline.current()
        pipeline.__enter__()
        return before

    @staticmethod
    def pop_current() -> None:
        """End the definition begun by :meth:`push_current`."""
        pipeline = Pipeline.current()
        if pipeline is None:
            raise error_class(StateError)("expected `push_current` before `pop_current`, got none")
        pipeline.__exit__(None, None, None)

    def __enter__(self) -> Pipeline:
        """Begin the definition, or continue it: nodes belong to this pipeline until the block ends."""
        self._builder.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        """End the definition.

        Unlike Stoker's own class, a running pipeline stays open: DALI's scripts go on using it.
        """
        self._builder.__exit__()

    @raises_as_dali
    def add_sink(self, edge: DataNode) -> None:
        """Keep a node that is not an output.

        Args:
            edge: the node; it runs for its effects.
        """
        if not isinstance(edge, DataNode):
            raise ArgumentError(f"`add_sink`: expected a node, got {type(edge).__name__}")
        self._sinks.append(edge)

    @raises_as_dali
    def set_outputs(self, *output_data_nodes: Any) -> None:
        """Set the pipeline's outputs: nodes, or constants.

        Args:
            *output_data_nodes: nodes, or constants that every row gets.
        """
        super().set_outputs(*output_data_nodes)
        self._visible = len(self._outputs or ())
        self._outputs = (*(self._outputs or ()), *self._sinks)

    # ---- running ----

    @raises_as_dali
    def run(self, cuda_stream: Any = None, /, **pipeline_inputs: Any) -> tuple[TensorList, ...]:  # type: ignore[override]
        """Return the next batch, one list of tensors per output. A reader's epochs are concatenated.

        Args:
            cuda_stream: accepted without effect.
            **pipeline_inputs: data for the sources of these names, as for :meth:`feed_input`.

        Raises:
            StopIteration: a source has ended; ``reset()`` begins its next epoch.
        """
        self.build()
        for name, data in pipeline_inputs.items():
            self.feed_input(name, data)
        self.iter_setup()
        try:
            delivered = self._take()
        except StopIteration:
            self._has_ended = True
            raise
        if self._locations is None:
            self._locations = SampleLocations(self.execution)
        batches = self.execution.batches(delivered)[: self._visible]
        return tuple(tensor_list(x, self._locations.of(delivered, i)) for i, x in enumerate(batches))

    @raises_as_dali
    def outputs(self, cuda_stream: Any = None) -> tuple[TensorList, ...]:  # type: ignore[override]
        """Return the batch that :meth:`schedule_run` requested.

        Args:
            cuda_stream: accepted without effect.
        """
        self._shared.clear()
        return self.share_outputs(cuda_stream)

    def schedule_run(self) -> None:
        """Request a batch; :meth:`share_outputs` or :meth:`outputs` returns it."""
        self.build()
        self._scheduled += 1

    @raises_as_dali
    def share_outputs(self, cuda_stream: Any = None) -> tuple[TensorList, ...]:
        """Return the next requested batch. It stays valid as long as it is referenced.

        Args:
            cuda_stream: accepted without effect.
        """
        if not self._scheduled:
            raise StateError("expected `schedule_run()` before `share_outputs()`, got none")
        self._scheduled -= 1
        batch = self.run()
        self._shared.append(batch)
        return batch

    def release_outputs(self) -> None:
        """Release the oldest shared batch."""
        if self._shared:
            self._shared.popleft()

    @raises_as_dali
    def feed_input(self, data_node: DataNode | str, data: Any, layout: str | None = None, cuda_stream: Any = None,
                   use_copy_kernel: bool = False) -> None:  # fmt: skip
        """Pass the next batch to an ``external_source`` without a ``source``, by its node or name."""
        self.build()
        if isinstance(data, TensorListCPU | TensorListGPU):
            layout, data = layout or data.layout() or None, data.batch
        if isinstance(data_node, DataNode):
            data_node = DataNode(self._builder, self._builder.edge_of(data_node, "feed_input"))
        super().feed_input(data_node, data, layout)

    def input_feed_count(self, input_name: str) -> int:
        """Return the number of batches to feed before the first :meth:`run`: one, whatever the depth of the queue.

        Args:
            input_name: the source.
        """
        return 1

    def empty(self) -> bool:
        """Return whether no requested batch is pending."""
        return self._scheduled == 0

    @raises_as_dali
    def reset(self) -> None:
        """Begin the next epoch after :meth:`run` has raised StopIteration; before it, the call has no effect."""
        self.build()
        if self._has_ended:
            self._has_ended = False
            super().reset()

    @raises_as_dali
    def next(self, at_end: AtEnd = "stop", allocate: Allocate | None = None) -> Delivered | None:
        """Return the next batch, as :meth:`stoker.Pipeline.next` does, for framework adapters."""
        return super().next(at_end, allocate)

    # ---- facts ----

    def enable_api_check(self, enable: bool) -> None:
        """Accept a setting without effect: calls of `run` and `schedule_run` may alternate.

        Args:
            enable: accepted without effect.
        """

    exec_async = property(lambda self: self._asynchronous)
    exec_pipelined = property(lambda self: self._pipelined)
    exec_dynamic = property(lambda self: True)
    exec_separated = property(lambda self: False)
    py_num_workers = property(lambda self: self._config.workers.count)
    py_start_method = property(lambda self: self._config.workers.start_method)
    prefetch_queue_depth = property(lambda self: self._config.depth or 1)
    cpu_queue_size = gpu_queue_size = prefetch_queue_depth
    set_affinity = enable_memory_stats = property(lambda self: False)
    stream_policy = concurrency = max_streams = default_cuda_stream_priority = property(lambda self: None)
    is_restored_from_checkpoint = property(lambda self: self._restored)

    def _count_outputs(self, execution: Any) -> int:
        return self._visible  # the remaining outputs are nodes that run only for their effects

    @property
    def num_outputs(self) -> int:
        self.build()
        return self._visible

    def output_dtype(self) -> list[Any]:
        """Return the declared element types, one per output, or None."""
        return self._declared_outputs.of("output_dtype", self.num_outputs)

    def output_ndim(self) -> list[Any]:
        """Return the declared numbers of axes, one per output, or None."""
        return self._declared_outputs.of("output_ndim", self.num_outputs)

    def output_stream(self) -> None:
        """Return None: batches are in host memory."""

    def executor_statistics(self) -> dict[str, Any]:
        """Return {}, as DALI's default executor does. :meth:`report` has this pipeline's measurements."""
        return {}

    def external_source_shm_statistics(self) -> dict[str, list[int]]:
        """Return the bytes of workers' shared memory: {"capacities": [...], "per_sample_capacities": [...]}."""
        sizes = self.execution.worker_memory()
        return {"capacities": sizes, "per_sample_capacities": [s // self.batch_size for s in sizes]}

    @raises_as_dali
    def save_graph_to_dot_file(self, filename: str, *, show_tensors: bool = False, show_ids: Any = None,
                               use_colors: bool = False) -> None:  # fmt: skip
        """Write the graph in Graphviz's language.

        Args:
            filename: the file.
            show_tensors: accepted without effect.
            show_ids: accepted without effect.
            use_colors: accepted without effect.
        """
        self.build()
        Path(filename).write_text(self.show("dot"), encoding="utf-8")

    # ---- states ----

    @raises_as_dali
    def checkpoint(self, filename: str | None = None) -> bytes:
        """Return the state after the last batch as JSON in UTF-8, for ``Pipeline(checkpoint=...)``, and write it to
        ``filename`` if given.

        Raises:
            StateError: the pipeline was made without ``enable_checkpointing=True``, as in DALI.
        """
        if not self._has_checkpoints:
            raise StateError(
                "`checkpoint`: expected a pipeline with `enable_checkpointing=True`, got one without; `get_state()` "
                "needs no such setting"
            )
        data = json.dumps(self.get_state()).encode()
        if filename is not None:
            Path(filename).write_bytes(data)
        return data

    @raises_as_dali
    def serialize(self, define_graph: Any = None, filename: str | None = None) -> bytes:  # type: ignore[override]
        """Return the graph and the settings as bytes of versioned JSON. Neither library reads the other's format.

        Args:
            define_graph: only None: define the graph with :func:`pipeline_def`.
            filename: a file that the text is also written to.
        """
        if define_graph is not None:
            raise UnsupportedError("`serialize`: expected no `define_graph`, got one: use pipeline_def")
        self.build()
        of = self._config
        settings = dict(zip(_SERIALIZED, (of.batch_size, of.threads, of.device_id, of.seed), strict=True))
        text = json.dumps({**json.loads(super().serialize()), "settings": settings})
        if filename is not None:
            Path(filename).write_text(text, encoding="utf-8")
        return text.encode()

    @staticmethod
    @raises_as_dali
    def deserialize(  # type: ignore[override]
        serialized_pipeline: bytes | str | None = None,
        filename: str | None = None,
        *,
        allow: Sequence[str] = (),
        **settings: Any,
    ) -> Pipeline:
        """Return a pipeline from what :meth:`serialize` returned.

        Args:
            serialized_pipeline: the graph.
            filename: the file with the graph, instead.
            allow: Python functions that may be imported, as for :meth:`stoker.Pipeline.deserialize`.
            **settings: arguments of :class:`Pipeline`, in place of the serialized pipeline's.
        """
        if (serialized_pipeline is None) == (filename is None):
            raise ArgumentError("`deserialize`: expected either `serialized_pipeline` or `filename`")
        text = Path(filename).read_text(encoding="utf-8") if filename is not None else serialized_pipeline
        text = _as_text(text)
        pipe = Pipeline(**{"batch_size": 1, **_read_settings(text), **settings})
        pipe._take_graph(text, allow)
        return pipe

    @raises_as_dali
    def deserialize_and_build(self, serialized_pipeline: bytes | str, *, allow: Sequence[str] = ()) -> None:
        """Take the graph that :meth:`serialize` returned, in place of a definition, and build the pipeline.

        Args:
            serialized_pipeline: the graph.
            allow: Python functions that may be imported, as for :meth:`stoker.Pipeline.deserialize`.

        Raises:
            StateError: the pipeline has outputs already.
        """
        if self._outputs is not None:
            raise StateError("`deserialize_and_build`: expected a pipeline without outputs, got one that is defined")
        self._take_graph(_as_text(serialized_pipeline), allow)
        self.build()

    def _take_graph(self, text: str, allow: Sequence[str]) -> None:
        read = _Pipeline.deserialize(text, allow=allow)
        self._builder.nodes = read._builder.nodes
        self._outputs = tuple(_DataNode(self._builder, x.edge) for x in read._outputs or ())
        self._visible = len(self._outputs)


def _as_text(graph: bytes | str | None) -> str:
    """Return a serialized pipeline as text; bytes of DALI's format are refused as a graph."""
    return graph.decode("utf-8", "replace") if isinstance(graph, bytes) else str(graph)


def _read_settings(text: str) -> dict[str, Any]:
    """Return the settings in a serialized pipeline; none in texts that :meth:`Pipeline._take_graph` will refuse."""
    with contextlib.suppress(ValueError, AttributeError, TypeError, KeyError):
        found = json.loads(text)["settings"]
        return {name: found[name] for name in _SERIALIZED if type(found.get(name)) is int}
    return {}


def _read_state(data: bytes | str) -> Any:
    """Return the state in a checkpoint's JSON."""
    text = f"`Pipeline`: expected as `checkpoint` a result of `checkpoint()`, got {brief(data)}"
    try:
        state = json.loads(data)
    except ValueError as error:
        raise StateError(text) from error
    if not isinstance(state, dict):
        raise StateError(text)
    return state


def pipeline_def(function: Any = None, *, enable_conditionals: bool = False, **settings: Any) -> Any:
    """Decorate a pipeline definition like :func:`stoker.pipeline_def`; the pipelines have DALI's methods.

    Args:
        function: the function that returns the outputs. Without it, the call returns a decorator.
        enable_conditionals: rewrite ``if``, ``and``, ``or`` and ``not`` in the function, so that they work on nodes.
        **settings: arguments of :class:`Pipeline`.
    """
    with raising_as_dali():
        made = define_as(Pipeline, function, enable_conditionals, settings)
    return raises_as_dali(made) if function is not None else lambda function: raises_as_dali(made(function))
