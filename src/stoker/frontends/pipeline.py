# SPDX-License-Identifier: Apache-2.0
"""Pipelines: a graph with the settings to run it. Names and meanings of arguments follow NVIDIA DALI."""

from __future__ import annotations

import inspect
import os
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .. import settings
from ..contract.batch import Batch
from ..contract.errors import ArgumentError, StateError, did_you_mean
from ..graph.node import Graph
from .checks import (
    ACCEPTED,
    absence,
    action,
    chosen_seed,
    depths,
    division,
    gpu_number,
    memory_limit,
    part,
    positive,
    room,
    share,
)
from .data_node import DataNode
from .definition import GraphBuilder, flattened
from .expected import Expected
from .preparation import Chosen, prepare
from .reader_facts import named, reader_facts
from .registry import find

if TYPE_CHECKING:  # what plans and runs is imported when the first pipeline is built: `import stoker` stays light
    from ..contract.failure import BadSample
    from ..executor.delivery import Delivered
    from ..executor.execution import Allocate, Execution
    from ..executor.report import Report
    from ..executor.schedule import AtEnd


class Pipeline:
    """A pipeline.

    Args:
        batch_size: most rows of a batch.
        num_threads: worker threads; by default as many as the process may use, and with a GPU one less where these are
            eight or more, for the thread that asks for batches.
        device_id: the GPU for what is placed on one (`device="gpu"` or "mixed"). "auto": this process's, which a
            launcher such as torchrun tells by LOCAL_RANK (where a process sees one GPU alone, that one), else GPU 0.
            None: no GPU. Where nothing is placed on a GPU none is used.
        seed: decides all random numbers, together with epoch and sample; drawn if not given (see :attr:`seed`).
        prefetch_queue_depth: batches that are made ahead. In DALI's form with a depth for each side, {"cpu_size": c,
            "gpu_size": g}, a pipeline with a GPU makes c + g ahead, of which g at most are on the GPU or have memory
            for their results there: the others wait with their files read. Without a GPU it is c.
        shards: "launcher": the readers that say neither `num_shards` nor `shard_id` take this process's part of every
            epoch, which a launcher tells by RANK and WORLD_SIZE. None: they take what they say, by default all.
        exec_async, exec_pipelined: False (either) runs every batch on the caller's thread, when it is asked for.
        checkpoint: a state (see :meth:`get_state`) to go on from.
        gpu_memory_limit: the most bytes of the GPU's memory to take; by default what is there. Outputs in memory of the
            consumer's framework do not count.
        gpu_jpeg_index: bytes of the GPU's memory, within `gpu_memory_limit`, in which JPEG decoders keep where in a
            file decoding can begin (6688 bytes per file, from its first decoding on, and 6144 more for each 128 KiB
            that it has besides the first, up to eight). Of files that come again, no more is read than the rows that
            the window needs, and no more decoded than its surroundings. Those for which no room is left are decoded as
            without. What is kept is checked against the file's state, header and data. 0: nothing is kept.
        gpu_jpeg_index_path: a folder in which that is kept when the pipeline is closed (or the process ends), 7.9 KB
            per file, and from which it is taken when one is built, so that the first epoch of a new process knows the
            files. Processes may share it. Damaged parts are left out, with a warning; but who can write to it can, on
            purpose, change pixels, as with the data set. None: nothing outlives the pipeline.
        gpu_decoder_load: the part of the images that the GPU decodes where the CPU can do it as well, 0 to 1, or
            "auto": by measured speed, as many on the CPU's threads as make the whole faster, be it a training that the
            GPU is left to, or the pipeline where that is the limit. The results are the same bits in any case;
            :meth:`report` tells the split and its reason.
        gpu_utilization: with "auto", the most of the GPU's time that the pipeline should take, 0 to 1.
        without_gpu: "error", or "cpu": where there is no GPU, run on the CPU what is placed on one, with the same bits
            and a warning. By default what the setting STOKER_WITHOUT_GPU says, else "error".
        on_error: what becomes of a row that fails. "raise": its batch raises, the next call goes on. "replace": the
            whole row becomes that of another sample of the epoch, which its row key decides. "skip": the batch is
            shorter, and `Batch.skipped` says which rows are missing. Readers and decoders may say otherwise for
            themselves. :attr:`errors` lists all bad samples.
        error_limit: the share of an epoch's rows that may be replaced or skipped; one more raises. By default 0.01
            with "replace", and all with "skip".
        uneven_ranks: allows "skip" with several shards, whose batches then are equal in number but not in rows.
        py_num_workers: processes for sources with ``parallel=True``.
        py_start_method: "fork" or "spawn": how they start.
        py_callback_pickler: what sends a source to spawned processes: an object with ``dumps`` and ``loads`` (such as
            the module cloudpickle), or a tuple of it and keyword arguments for each. By default pickle.
        passes: names of the passes over the plan (`graph.plan.PASSES`); by default all. Results do not depend on them.
        accepted: ``output_dtype``, ``output_ndim`` and ``output_layout`` (one, or one per output) are held against what
            the outputs are. Other arguments of DALI's that choose between its ways to run (``exec_dynamic``,
            ``set_affinity``, ``max_streams`` and the like) change nothing: there is one here.

    Raises:
        ArgumentError: an argument is not known, or not one of these.
    """

    def __init__(
        self,
        batch_size: int = 1,
        num_threads: int | None = None,
        device_id: int | str | None = "auto",
        seed: int | None = None,
        *,
        shards: str | None = None,
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
        limit = memory_limit(gpu_memory_limit)
        jpeg_index = room(gpu_jpeg_index, limit)
        if gpu_jpeg_index_path is not None and not jpeg_index:
            raise ArgumentError("`Pipeline`: expected `gpu_jpeg_index` (bytes) beside `gpu_jpeg_index_path`, got 0")
        depth, gpu_depth = depths(prefetch_queue_depth)
        wanted = chosen_seed(seed)
        self._chosen = Chosen(
            batch_size=positive("batch_size", batch_size),
            threads=settings.default_threads() if num_threads is None else positive("num_threads", num_threads),
            threads_with_gpu=settings.threads_beside_a_gpu() if num_threads is None else int(num_threads),
            seed=int.from_bytes(os.urandom(8), "little") >> 1 if wanted is None else wanted,
            depth=depth if exec_async and exec_pipelined else 0,
            device_id=gpu_number(device_id),
            shards=division(shards),
            without_gpu=absence(without_gpu),
            gpu_depth=gpu_depth,
            memory_limit=limit,
            jpeg_index=jpeg_index,
            jpeg_index_path=gpu_jpeg_index_path,
            gpu_load=None if gpu_decoder_load == "auto" else part("gpu_decoder_load", gpu_decoder_load),
            gpu_utilization=part("gpu_utilization", gpu_utilization),
            on_error=(action(on_error), share(error_limit), bool(uneven_ranks)),
            workers=(py_num_workers, py_start_method, py_callback_pickler),
            passes=passes,
            checkpoint=checkpoint,
        )
        self._expected = Expected(accepted)
        self._builder = GraphBuilder()
        self._outputs: tuple[Any, ...] | None = None
        self._defining = False
        self._execution: Execution | None = None
        self._building = threading.Lock()

    # ---- definition ----

    def __enter__(self) -> Pipeline:
        self._defining = self._outputs is None
        if self._defining:
            self._builder.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self._defining:
            self._defining = False
            self._builder.__exit__()
        self.close()

    def set_outputs(self, *outputs: Any) -> None:
        """What the pipeline returns: nodes, or constants."""
        self._outputs = flattened(outputs)

    @property
    def graph(self) -> Graph:
        """The graph; StateError before outputs are set."""
        if self._outputs is None:
            raise StateError("the pipeline has no outputs yet: return them from the function, or call `set_outputs`")
        return self._builder.graph(self._outputs)

    def build(self) -> Pipeline:
        """Check the graph, open its data sets and plan it. Starts no thread; called by :meth:`run` if need be.

        Raises:
            StokerError: what the graph asks for does not fit together, is not there, or is not supported.
        """
        if self._execution is None:
            with self._building:
                self._execution = self._execution or prepare(self.graph, self._chosen)
        self._require_outputs()
        return self

    def _require_outputs(self) -> None:
        """ArgumentError if outputs are not of the types that were asked for, once these are known."""
        if not self._expected.met and self._execution is not None:
            self._expected.require(self._execution.plan, self._count_outputs(self._execution))

    def _count_outputs(self, execution: Execution) -> int:
        """How many outputs the user sees."""
        return len(execution.graph.outputs)

    def start_py_workers(self) -> None:
        """Start the processes of sources with ``parallel=True`` now; else they start with the first batch.

        With ``py_start_method="fork"`` they are copies of this process as it is at that moment.
        """
        self.execution.start_workers()

    @property
    def execution(self) -> Execution:
        """The running side; builds the pipeline."""
        self.build()
        assert self._execution is not None
        return self._execution

    # ---- running ----

    def run(self, **inputs: Any) -> tuple[Batch, ...]:
        """The next batch: one :class:`Batch` per output. A reader's epochs follow each other without a seam.

        ``inputs`` are fed to the sources of these names first, as by :meth:`feed_input`.

        Raises:
            DataError: a row failed, or there is no memory for the batch; the pipeline stays usable.
            DeviceError: the GPU failed.
            StopIteration: a source has ended.
        """
        execution = self.execution
        for name, data in inputs.items():
            self.feed_input(name, data)
        delivered = execution.next("go_on")
        self._require_outputs()
        if delivered is None:
            raise StopIteration("the pipeline's data have ended")
        return execution.batches(delivered)

    outputs = run

    def feed_input(self, data_node: DataNode | str, data: Any, layout: str | None = None, cuda_stream: Any = None,
                   use_copy_kernel: bool = False) -> None:  # fmt: skip
        """Give the next batch to an ``external_source`` without a ``source``, by its name or node.

        Args:
            data_node: the source.
            data: a list of arrays, bytes or numbers, or an array with the rows on its first axis.
            layout: names of the axes, if the source does not declare them.
            cuda_stream, use_copy_kernel: accepted without effect: arrays on a GPU say which stream makes them.
        """
        fed = {n.name: n.id for n in self.graph.nodes if n.operator.kind == "source" and n.name}
        if isinstance(data_node, DataNode):
            node = data_node.edge.node
        elif data_node in fed:
            node = fed[data_node]
        else:
            hint = did_you_mean(data_node, [str(n) for n in fed]) or f"there are {list(fed)}"
            raise ArgumentError(f"`feed_input`: there is no source called {data_node!r}; {hint}")
        self.execution.feed(node, data, layout)

    def next(self, at_end: AtEnd = "stop", allocate: Allocate | None = None) -> Delivered | None:
        """For adapters: the next batch of the epoch in memory that ``allocate`` gives; None at the end.

        ``at_end``: whether an epoch's last batch is what is left ("stop"), completed with the next epoch's first rows
        ("fill"), or whether the next epoch follows without a seam ("go_on").
        """
        delivered = self.execution.next(at_end, allocate)
        self._require_outputs()
        return delivered

    def start_epoch(self, epoch: int) -> None:
        """Begin an epoch; batches that were made ahead are dropped."""
        self.execution.start_epoch(epoch)

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
        """Most rows of a batch."""
        return self._chosen.batch_size

    max_batch_size = batch_size

    @property
    def num_threads(self) -> int:
        """Worker threads; where none were asked for, building may leave out one for a GPU."""
        return self._execution.settings.threads if self._execution is not None else self._chosen.threads

    @property
    def device_id(self) -> int | None:
        """The GPU that was asked for, or None. With "auto": the GPU in use, None if none is; builds the pipeline."""
        asked = self._chosen.device_id
        if not isinstance(asked, str):
            return asked
        gpu = self.execution.settings.gpu
        return int(gpu.device.number) if gpu else None

    @property
    def seed(self) -> int:
        """The seed in use; give it to another pipeline to get the same samples."""
        return self._chosen.seed

    @property
    def num_outputs(self) -> int:
        """How many outputs the function returned."""
        return len(self.graph.outputs)

    @property
    def output_names(self) -> tuple[str | None, ...]:
        """The `name` of each output's node, or None."""
        return self.graph.names

    def epoch_size(self, name: str | None = None) -> Any:
        """Samples of the data set: of the reader ``name``, or a dict of all readers by name."""
        facts = reader_facts(self.execution)
        return named({key: known["epoch_size"] for key, known in facts.items()}, name)

    def reader_meta(self, name: str | None = None) -> Any:
        """DALI's facts about a reader: epoch_size, epoch_size_padded, number_of_shards, shard_id, pad_last_batch,
        stick_to_shard."""
        return named(reader_facts(self.execution), name)

    @property
    def errors(self) -> list[BadSample]:
        """The bad samples met so far, each with what was done about it, in the order of their rows."""
        return list(self.execution.errors)

    def get_state(self, *, elastic: bool = False) -> dict[str, Any]:
        """Where the stream stands after the last delivered batch: JSON-able, restored with :meth:`set_state`.

        Args:
            elastic: insist on a state that restores with another number of shards too.

        Raises:
            StateError: a source or sampler cannot be taken up again.
        """
        return self.execution.get_state(elastic=elastic)

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go on from :meth:`get_state`'s token. The graph, data set and seed must be the same; batch size, threads,
        prefetch depth and, unless shards are contiguous, their number may differ.

        Raises:
            StateError: the state is of something else; the text says what differs.
        """
        self.execution.set_state(state)

    def report(self) -> Report:
        """What has run and what limits the rate; prints, renders in a notebook, ``to_dict()``."""
        return self.execution.report()

    def show(self, form: str = "text") -> str:
        """The graph and its plan as text, or the graph in Graphviz's language (``form="dot"``)."""
        from ..graph.show import show

        if form == "dot":
            return show(self.graph, find, form)
        execution = self.execution
        gpu, passes = execution.settings.gpu, execution.settings.passes
        knows = gpu.knows_files if gpu else False
        return show(self.graph, find, form, execution.sources, passes, gpu=gpu is not False, parts=knows)

    def serialize(self) -> str:
        """The graph as versioned JSON."""
        return self.graph.to_json()

    @staticmethod
    def deserialize(text: str, **settings: Any) -> Pipeline:
        """A pipeline from :meth:`serialize`'s text."""
        pipe = Pipeline(**settings)
        graph = Graph.from_json(text, find)
        pipe._builder.nodes = list(graph.nodes)
        pipe._outputs = tuple(DataNode(pipe._builder, e) for e in graph.outputs)
        return pipe

    def __del__(self) -> None:
        execution = getattr(self, "_execution", None)
        if execution is not None:
            execution.close()
