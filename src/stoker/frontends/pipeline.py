# SPDX-License-Identifier: Apache-2.0
"""Pipeline: a graph with the settings to run it. Names and meanings of arguments follow NVIDIA DALI."""

from __future__ import annotations

import inspect
import os
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .. import settings
from .._import_lock import IMPORT_LOCK
from ..contract.batch import Batch
from ..contract.config import OnError, PipelineConfig
from ..contract.errors import ArgumentError, StateError, UnknownArgumentError, UnsupportedError, did_you_mean
from ..contract.text import brief
from ..graph.node import Graph
from .checks import (
    ACCEPTED,
    MOST_THREADS,
    choose_without_gpu,
    require_action,
    require_batch_limit,
    require_bool,
    require_checkpoint,
    require_epoch,
    require_epoch_reader,
    require_error_limit,
    require_folder,
    require_fraction,
    require_gpu,
    require_index_size,
    require_load,
    require_memory_limit,
    require_passes,
    require_positive,
    require_seed,
    require_shards,
    require_workers,
    seed_of,
    split_depth,
)
from .data_node import DataNode
from .declared_outputs import DeclaredOutputs
from .definition import GraphBuilder, flattened
from .launcher import find_launch, require_same_launch
from .preparation import prepare
from .reader_facts import named, reader_facts
from .registry import find

# Planner and run loop are imported when the first pipeline is built, so that `import stoker` stays light.
if TYPE_CHECKING:
    from PIL.Image import Image

    from ..contract.failure import BadSample
    from ..contract.launch import Launch
    from ..executor.delivery import Delivered, Taken
    from ..executor.execution import Allocate, Execution
    from ..executor.report import Report
    from ..executor.schedule import AtEnd


class Pipeline:
    """Graph of operators with the settings to run it.

    Args:
        batch_size: maximum number of rows in a batch, 1 to 2**31 - 1.
        num_threads: worker threads, 1 to 32768. By default as many as the process may use; with a GPU and at least
            eight of them, one less, for the thread that requests batches.
        device_id: the GPU for nodes that are placed on one (`device="gpu"` or "mixed"). "auto": this process's GPU,
            which a launcher such as torchrun sets by LOCAL_RANK (or the only visible one), else GPU 0. None: no GPU. A
            pipeline without nodes on a GPU uses none.
        seed: decides all random numbers, together with epoch and sample; 0 to 2**64 - 1. None, or a negative number as
            in DALI: that of the `checkpoint`, else drawn (see :attr:`seed`).
        prefetch_queue_depth: number of prefetched batches, at least 1. In DALI's form with a depth for each side,
            {"cpu_size": c, "gpu_size": g}, a pipeline with a GPU prefetches c + g batches. At most g of them are on the
            GPU or have memory for their results there; the others wait with their files read. Without a GPU the depth
            is c.
        shards: "launcher": readers that set neither `num_shards` nor `shard_id` take this process's part of every
            epoch, according to the launcher's RANK and WORLD_SIZE, or the process group of torch.distributed. None:
            they take all, or the part that they set.
        epoch_reader: the `name` of the reader whose epochs count. Other readers then run through epochs of their own,
            independently. None: the first reader's, and readers with epochs of different sizes raise an error, because
            their rows would not belong together.
        exec_async: False runs every batch on the caller's thread when it is requested.
        exec_pipelined: False: the same.
        checkpoint: state to resume from (see :meth:`get_state`).
        gpu_memory_limit: maximum of GPU memory in bytes; by default no limit. Outputs in memory of the consumer's
            framework do not count.
        max_batch_bytes: maximum of memory in bytes that one batch takes for its files, intermediate values and outputs:
            of host memory, and as much of GPU memory. It is checked before the memory is taken. A row that exceeds it
            alone is a bad row (see `on_error`). If the rows exceed it together, the batch raises with the name of the
            largest one. 0: no limit. By default nine tenths of the host memory that is available when the first batch
            runs (within the cgroup's limit), divided by the prefetched batches and one more, but at least 256 MiB; and
            of GPU memory what is free then, unless `gpu_memory_limit` is given. Memory that the consumer's framework
            supplies does not count.
        gpu_jpeg_index: bytes of GPU memory, within `gpu_memory_limit`, for an index of positions in files at which JPEG
            decoding can begin (6688 bytes per file, from its first decoding on, and 6144 more for each further 128 KiB
            of the file, up to eight). Of indexed files, only the rows that the window needs are read, and only their
            surroundings are decoded. Files for which no room is left are decoded in the usual way. Entries are checked
            against the file's state, header and data. 0: no index.
        gpu_jpeg_index_path: folder in which the index is saved when the pipeline is closed (or the process ends), 7.9
            KB per file, and from which it is loaded when a pipeline is built, so that the first epoch of a new process
            knows the files. Processes may share it. Damaged parts are skipped with a warning. Anyone who can write to
            the folder can change pixels on purpose, as with the data set. None: the index ends with the pipeline.
        gpu_decoder_load: share of the images that the GPU decodes if the CPU can decode them too, 0 to 1. "auto":
            chosen by measured speed, so that the CPU decodes as many as make the whole faster. The results have the
            same bits in any case; :meth:`report` shows the split and its reason.
        gpu_utilization: with ``gpu_decoder_load="auto"``, the maximum share of the GPU's time that the pipeline should
            take, 0 to 1.
        without_gpu: policy for nodes on a GPU on machines without one: "error", or "cpu" as the fallback, with the same
            bits and a warning. By default the setting STOKER_WITHOUT_GPU, else "error".
        on_error: policy for rows that fail. "raise": the row's batch raises, and the next call goes on. "replace":
            another sample of the epoch, which the row key decides, replaces the whole row. "skip": the batch is
            shorter, and `Batch.skipped` lists the missing rows. Readers and decoders may have their own policies.
            :attr:`errors` lists all bad samples.
        error_limit: share of an epoch's rows, 0 to 1, that may be replaced or skipped; one more raises. By default 0.01
            with "replace", and 0.1 with "skip" (of a small data set 16 rows, at most half of it). Training on the rest
            of a data set that cannot be read would go unnoticed.
        uneven_ranks: allow "skip" with several shards. The shards then deliver the same number of batches, but not of
            rows.
        py_num_workers: worker processes for sources with ``parallel=True``, at least 1.
        py_start_method: start method of these processes: "fork" or "spawn".
        py_callback_pickler: serializer that sends a source to spawned processes: an object with ``dumps`` and ``loads``
            (such as the module cloudpickle), or a tuple of it and keyword arguments for each. By default pickle.
        passes: names of the passes (`graph.analysis.PASSES`); by default all. Results do not depend on them.
        **accepted: ``output_dtype``, ``output_ndim`` and ``output_layout`` (one, or one per output) are compared with
            the actual outputs. Other arguments of DALI's that choose between its executors (``exec_dynamic``,
            ``set_affinity``, ``max_streams`` and similar ones) have no effect, because Stoker has one executor.

    Raises:
        ArgumentError: an argument is unknown or invalid.
    """

    def __init__(
        self,
        batch_size: int = 1,
        num_threads: int | None = None,
        device_id: int | str | None = "auto",
        seed: int | None = None,
        *,
        shards: str | None = None,
        epoch_reader: str | None = None,
        prefetch_queue_depth: int | Mapping[str, int] = 2,
        exec_async: bool = True,
        exec_pipelined: bool = True,
        checkpoint: Mapping[str, Any] | None = None,
        on_error: str = "raise",
        error_limit: float | None = None,
        uneven_ranks: bool = False,
        py_num_workers: int = 1,
        py_start_method: str = "fork",
        py_callback_pickler: Any = None,
        passes: frozenset[str] | None = None,
        gpu_memory_limit: int | None = None,
        max_batch_bytes: int | None = None,
        gpu_jpeg_index: int = 0,
        gpu_jpeg_index_path: str | os.PathLike[str] | None = None,
        gpu_decoder_load: float | str = "auto",
        gpu_utilization: float = 1.0,
        without_gpu: str | None = None,
        **accepted: Any,
    ) -> None:
        for key in accepted:
            if key not in ACCEPTED:
                known = [*inspect.signature(Pipeline.__init__).parameters, *ACCEPTED]
                raise ArgumentError(f"`Pipeline`: unknown argument `{key}`; {did_you_mean(key, known)}".rstrip("; "))
        limit = require_memory_limit(gpu_memory_limit)
        index_size = require_index_size(gpu_jpeg_index, limit)
        if gpu_jpeg_index_path is not None and not index_size:
            raise ArgumentError("`Pipeline`: expected `gpu_jpeg_index` (bytes) with `gpu_jpeg_index_path`, got 0")
        index = {"index_bytes": index_size, "index_path": require_folder("gpu_jpeg_index_path", gpu_jpeg_index_path)}
        depth, gpu_depth = split_depth(prefetch_queue_depth)
        state, given_seed = require_checkpoint(checkpoint), require_seed(seed)
        if given_seed is None:
            given_seed = seed_of(state)
        is_async, is_pipelined = require_bool("exec_async", exec_async), require_bool("exec_pipelined", exec_pipelined)
        given_threads = None if num_threads is None else require_positive("num_threads", num_threads, MOST_THREADS)
        self._config = PipelineConfig(
            batch_size=require_positive("batch_size", batch_size),
            threads=given_threads or settings.default_threads(),
            threads_with_gpu=given_threads or settings.threads_with_gpu(),
            seed=int.from_bytes(os.urandom(8), "little") >> 1 if given_seed is None else given_seed,
            depth=depth if is_async and is_pipelined else 0,
            gpu_depth=gpu_depth,
            passes=require_passes(passes),
            device_id=require_gpu(device_id),
            without_gpu=choose_without_gpu(without_gpu),
            gpu_memory_limit=limit,
            max_batch_bytes=require_batch_limit(max_batch_bytes),
            codec_options={"jpeg": index} if index_size else {},
            gpu_load=require_load(gpu_decoder_load),
            gpu_utilization=require_fraction("gpu_utilization", gpu_utilization),
            on_error=OnError(
                require_action(on_error), require_error_limit(error_limit), require_bool("uneven_ranks", uneven_ranks)
            ),
            shards=require_shards(shards),
            epoch_reader=require_epoch_reader(epoch_reader),
            workers=require_workers(py_num_workers, py_start_method, py_callback_pickler),
            checkpoint=state,
        )
        self._name = ""  # of the function that defined the pipeline
        self._declared_outputs = DeclaredOutputs(accepted)
        self._builder = GraphBuilder()
        self._outputs: tuple[Any, ...] | None = None
        self._entered: list[bool] = []  # per `with` block: whether nodes are added in it
        self._execution: Execution | None = None
        self._launch: Launch | None = None  # at the time of building, if the launcher decides about shards
        self._launch_compared = False
        self._building = threading.Lock()

    # ---- definition ----

    def __enter__(self) -> Pipeline:
        self._entered.append(self._outputs is None)
        if self._outputs is None:
            self._builder.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._entered.pop():
            self._builder.__exit__()
        self.close()

    def set_outputs(self, *outputs: Any) -> None:
        """Set the pipeline's outputs: nodes, or constants.

        Args:
            *outputs: nodes, or constants that every row gets.
        """
        self._outputs = flattened(outputs)

    @property
    def graph(self) -> Graph:
        """Return the graph; StateError before outputs are set."""
        if self._outputs is None:
            raise StateError("the pipeline has no outputs yet: return them from the function, or call `set_outputs`")
        return self._builder.graph(self._outputs)

    def build(self) -> Pipeline:
        """Check the graph, open its data sets and plan it. Starts no thread; :meth:`run` calls it if needed.

        Raises:
            StokerError: the graph contradicts itself, needs something that is missing, or is not supported.
        """
        if self._execution is None:
            with self._building:
                if self._execution is None:
                    execution = prepare(self.graph, self._config)
                    self._launch = find_launch(self._config.shards)
                    self._execution = execution
        self._require_outputs()
        return self

    def _require_outputs(self) -> None:
        """Raise ArgumentError if outputs differ from their declared types, once these are known."""
        if not self._declared_outputs.is_satisfied and self._execution is not None:
            self._declared_outputs.require(self._execution.plan, self._count_outputs(self._execution))

    def _count_outputs(self, execution: Execution) -> int:
        """Return the number of outputs that the user sees."""
        return len(execution.graph.outputs)

    def start_py_workers(self) -> None:
        """Start the processes of sources with ``parallel=True`` now; otherwise they start with the first batch.

        With ``py_start_method="fork"`` they are copies of this process at that moment.
        """
        self.execution.start_workers()

    @property
    def execution(self) -> Execution:
        """Return the execution; builds the pipeline if needed."""
        if self._execution is None or not self._declared_outputs.is_satisfied:
            self.build()
            assert self._execution is not None
        return self._execution

    # ---- running ----

    def run(self, **inputs: Any) -> tuple[Batch, ...]:
        """Return the next batch: one :class:`Batch` per output. A reader's epochs are concatenated.

        ``inputs`` are first fed to the sources of these names, as with :meth:`feed_input`.

        Raises:
            DataError: a row failed, or the batch exceeds a limit of memory; the pipeline stays usable.
            ResourceError: the system has no memory for the batch; the pipeline stays usable.
            DeviceError: the GPU failed.
            StopIteration: a source has ended.
        """
        execution = self.execution
        for name, data in inputs.items():
            self.feed_input(name, data)
        return execution.batches(self._take())

    def _take(self) -> Delivered:
        """Return the next batch, or raise as :meth:`run` does."""
        execution = self.execution
        self._compare_launch()
        delivered = execution.next("go_on")
        self._require_outputs()
        if delivered is None:
            raise StopIteration("the pipeline's data have ended")
        return delivered

    outputs = run

    def feed_input(self, data_node: DataNode | str, data: Any, layout: str | None = None, cuda_stream: Any = None,
                   use_copy_kernel: bool = False) -> None:  # fmt: skip
        """Pass the next batch to an ``external_source`` without a ``source``, by its name or node.

        Args:
            data_node: the source.
            data: a list of arrays, bytes or numbers, or an array with the rows on its first axis.
            layout: names of the axes, if the source does not declare them.
            cuda_stream: accepted without effect: arrays on a GPU carry their stream.
            use_copy_kernel: accepted without effect.
        """
        fed = {n.name: n.id for n in self.graph.nodes if n.operator.is_source and n.name}
        if isinstance(data_node, DataNode):
            node = data_node.edge.node
        elif isinstance(data_node, str) and data_node in fed:
            node = fed[data_node]
        else:
            hint = did_you_mean(data_node, [str(n) for n in fed]) or f"there are {list(fed)}"
            raise UnknownArgumentError(f"`feed_input`: there is no source called {brief(data_node)}; {hint}")
        self.execution.feed(node, data, layout)

    def next(self, at_end: AtEnd = "stop", allocate: Allocate | None = None) -> Delivered | None:
        """Return the next batch of the epoch in memory that ``allocate`` supplies; None at the end. For framework
        adapters.

        ``at_end`` decides about an epoch's last batch: "stop" delivers the remaining rows, of which all shards have the
        same number; "exact" leaves out those that make shards equal, so that all shards together deliver every sample
        once; "fill" completes the batch with the next epoch's first rows; "go_on" continues seamlessly with the next
        epoch.
        """
        if not isinstance(at_end, str) or at_end not in ("stop", "exact", "fill", "go_on"):
            text = f"expected `at_end` stop, exact, fill or go_on, got {brief(at_end)}"
            raise ArgumentError(f"`Pipeline.next`: {text}")
        execution = self.execution
        self._compare_launch()
        delivered = execution.next(at_end, allocate)
        self._require_outputs()
        return delivered

    def take(self, course: int, at_end: AtEnd, allocate: Allocate | None) -> Taken:
        """Take the next batch ahead of its delivery, for loops with a thread of their own.

        ``course`` is the execution's at the beginning of the loop. Another one is a StateError, because the position
        has been changed since. ``at_end`` and ``allocate`` are those of :meth:`next`.
        """
        self._compare_launch()
        taken = self.execution.take(course, at_end, allocate)
        self._require_outputs()
        return taken

    def require_take(self) -> None:
        """Raise UnsupportedError if a thread other than the consumer's cannot take batches."""
        if self.execution.has_feeders:
            raise UnsupportedError(
                "`Loader`: expected a pipeline of readers for `background=True`, got a source of the caller's data, "
                "which is called on the thread of the loop. Leave `background` out"
            )

    @property
    def may_take_ahead(self) -> bool:
        """Return whether a loop may call :meth:`take` on a thread of its own although its caller has not asked for
        that: on a CPU, with readers that can return to a position, and without functions of the caller.
        """
        return self.execution.may_take_ahead

    def _compare_launch(self) -> None:
        """Raise StateError before the first batch of an epoch if the pipeline has the shards of another rank."""
        if not self._launch_compared:
            require_same_launch(self._launch)
            self._launch_compared = True

    def start_epoch(self, epoch: int) -> None:
        """Begin an epoch. Prefetched batches are dropped.

        Args:
            epoch: number of the epoch, from 0. It decides order and augmentation.
        """
        self._launch_compared = False
        self.execution.start_epoch(require_epoch("start_epoch", epoch))

    def reset(self) -> None:
        """Begin the epoch after that of the last batch."""
        self.start_epoch(self.execution.mark.epoch + 1)

    def close(self) -> None:
        """Stop the threads; idempotent. A closed pipeline cannot run again."""
        if self._execution is not None:
            self._execution.close()

    # ---- facts ----

    @property
    def batch_size(self) -> int:
        """Return the maximum number of rows in a batch."""
        return self._config.batch_size

    max_batch_size = batch_size

    @property
    def num_threads(self) -> int:
        """Return the number of worker threads. By default, building may reduce it by one for a GPU."""
        return self._execution.threads if self._execution is not None else self._config.threads

    @property
    def device_id(self) -> int | None:
        """Return the requested GPU, or None.

        With "auto", build the pipeline and return the GPU in use; None if none is.
        """
        asked = self._config.device_id
        if not isinstance(asked, str):
            return asked
        gpu = self.execution.gpu
        return int(gpu.device.number) if gpu else None

    @property
    def seed(self) -> int:
        """Return the seed in use; give it to another pipeline to get the same samples."""
        return self._config.seed

    @property
    def num_outputs(self) -> int:
        """Return the number of outputs of the definition."""
        return len(self.graph.outputs)

    @property
    def output_names(self) -> tuple[str | None, ...]:
        """Return the `name` of each output's node, or None."""
        return self.graph.names

    def epoch_size(self, name: str | None = None) -> Any:
        """Return the number of samples of the reader ``name``, or a dict of all readers by name."""
        facts = reader_facts(self.execution)
        return named({key: known["epoch_size"] for key, known in facts.items()}, name)

    def reader_meta(self, name: str | None = None) -> Any:
        """Return DALI's metadata of a reader: epoch_size, epoch_size_padded, number_of_shards, shard_id,
        pad_last_batch, stick_to_shard.

        Args:
            name: the reader's name; None: a dict of all readers by name.
        """
        return named(reader_facts(self.execution), name)

    @property
    def errors(self) -> list[BadSample]:
        """Return the bad samples found so far, each with its outcome, in the order of their rows."""
        return list(self.execution.errors)

    def get_state(self, *, elastic: bool = False) -> dict[str, Any]:
        """Return the position after the last delivered batch: JSON-able, restored with :meth:`set_state`.

        Args:
            elastic: require a state that restores with another number of shards too.

        Raises:
            StateError: a source or sampler cannot resume from a state.
        """
        return self.execution.get_state(elastic=elastic)

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continue from a state.

        The graph, data set and seed must be the same. Batch size, threads, prefetch depth and, unless shards are
        contiguous, their number may differ.

        Args:
            state: the result of :meth:`get_state`, or the same after a round trip through JSON.

        Raises:
            StateError: the state belongs to something else; the text names the difference.
        """
        self.execution.set_state(state)

    def report(self) -> Report:
        """Return run statistics and the bottleneck; prints, renders in a notebook, ``to_dict()``."""
        return self.execution.report()

    def show(self, form: str = "text") -> str:
        """Return the graph and its plan as text, or the graph in Graphviz's language ("dot") or as a picture ("svg").

        Args:
            form: "text", "dot" or "svg". Only "text" builds the pipeline.
        """
        if not isinstance(form, str) or form not in ("dot", "svg"):
            return self.execution.show(form)
        if form == "svg":
            from ..graph.picture import draw_graph

            return draw_graph(self.graph)
        from ..graph.show import show

        return show(self.graph, find, form)

    def preview(self, n: int = 8, **inputs: Any) -> Image:
        """Return a contact sheet of the next ``n`` samples as a Pillow image, for a notebook or ``.save("sheet.png")``.

        The samples come from a copy of the pipeline at its position, so the pipeline itself goes on unchanged, with
        the same samples. Python operators and sources are called for the copy too. The copy uses no JPEG index.

        Args:
            n: number of samples. There are fewer if the epoch ends before.
            inputs: data of sources that are fed by hand, by name, as in :meth:`run`.

        Raises:
            ArgumentError: ``n`` is no number from 1 to 256, or there is no source of that name.
            StateError: a source runs only forward, so that the pipeline would lose the samples.
            DataError: a row failed (see ``on_error``).
        """
        with IMPORT_LOCK:
            from .preview import preview, require_count

        count = require_count(n)
        state = self._config.checkpoint
        if self._execution is not None:
            state = None if inputs else self.get_state()
        shown = len(self.graph.outputs) if self._execution is None else self._count_outputs(self._execution)
        return preview(self._name, self.graph, replace(self._config, checkpoint=state), count, shown, inputs)

    def __repr__(self) -> str:
        if "_building" not in vars(self):  # an argument was refused
            return f"<{type(self).__name__}: not made>"
        from .description import describe

        kind, defined = type(self).__name__, self._outputs is not None
        return describe(kind, self._name, self._builder.nodes, self._config, self._execution, defined=defined)

    def _repr_html_(self) -> str:
        """Return the description with a picture of the graph, for notebooks."""
        from .description import as_html

        return as_html(repr(self), self.graph if self._outputs is not None else None)

    def serialize(self) -> str:
        """Return the graph as versioned JSON."""
        return self.graph.to_json()

    @staticmethod
    def deserialize(text: str, *, allow: Sequence[str] = (), **settings: Any) -> Pipeline:
        """Return a pipeline from :meth:`serialize`'s text.

        Args:
            text: the graph. Its operators read the files that it names; it runs no code but functions in ``allow``.
            allow: Python functions and classes of the graph that may be imported and called, by full name
                ("my_package.augment.mix") or by the module or package that holds them ("my_package.augment").
            **settings: arguments of :class:`Pipeline`.

        Raises:
            GraphError: the text is no graph, or it names a function that is not allowed.
            ArgumentError: an operator does not take its arguments.
        """
        from ..graph.verify import verify_graph

        pipe = Pipeline(**settings)
        graph = Graph.from_json(text, find, allow)
        verify_graph(graph)
        pipe._builder.nodes = list(graph.nodes)
        pipe._outputs = tuple(DataNode(pipe._builder, e) for e in graph.outputs)
        return pipe

    def __del__(self, _is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        execution = getattr(self, "_execution", None)
        # All runs are closed before the interpreter is finalized, and then modules may have no variables any more.
        if execution is not None and not _is_finalizing():
            execution.abandon()
