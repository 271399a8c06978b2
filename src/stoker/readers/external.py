# SPDX-License-Identifier: Apache-2.0
"""``external_source``: data from the user's Python code, or fed by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..contract.argument import arg
from ..contract.errors import ArgumentError
from ..contract.lowering import Lowering
from ..contract.operator import Operator, Spec
from ..contract.step import Value
from ._choice import choose_feeder
from ._declared import Declared
from ._feeding import Feeder


class ExternalSource(Operator, name="external_source"):
    """Take data from Python: an iterable, a generator function, or a callback; or from ``pipe.feed_input``.

    A source gives a batch at a time: a list of arrays, DLPack tensors, bytes or numbers (one per row), or one array
    whose first axis runs along the rows; with ``num_outputs``, a tuple of batches. With ``batch=False`` it gives one
    row at a time. A callback may take one argument: the number of the batch in its epoch (a ``types.BatchInfo`` with
    ``batch_info=True``), or with ``batch=False`` a ``types.SampleInfo``; parameters with defaults are left alone. It
    ends an epoch by raising StopIteration. A batch may have fewer rows than the pipeline's ``batch_size``, but not
    none.

    With ``device="gpu"``, arrays may be in the memory of the pipeline's GPU: torch's, CuPy's, JAX's and all others that
    speak DLPack or CUDA's array interface, as a list or as one array. The run's work waits for what the array's library
    had issued to its current stream when the source returned (by CUDA's interface: for the stream that it names), and
    reads them in place, with any strides. By default they are copied first, by their own framework and on its current
    stream, whose later work may write them again. With ``no_copy=True`` they are not copied: whoever writes them, or
    gives them other memory, waits until ``run`` has returned their batch. Its work is done by then, so that nothing has
    to be waited for on a stream. Batches are made ahead (``prefetch_queue_depth``), so such a source needs an array of
    its own for each batch under way, or arrays that never change. The run keeps a reference until then. Arrays in host
    memory are sent; for them ``no_copy`` means the same.

    Types that are not declared are found with the first batch; they must not change after it. A sequence, and a
    callback that is told where it is, can be resumed from a state; other sources say that they cannot.

    With ``parallel=True`` the source runs in the pipeline's worker processes (``py_num_workers``,
    ``py_start_method="fork"`` or ``"spawn"``), ahead of the run, and its arrays come back in shared memory: the same
    batches in the same order, whatever the number of processes. A function has to take its one argument; the rows of a
    batch (``batch=False``), or whole batches, are shared out over the processes. An iterable or a generator function
    is gone through by one of them. What the source raises is raised here, with the process's traceback as its cause. A
    process that dies fails the batch it was at and is replaced. With ``"spawn"``, what cannot be pickled is refused
    when the pipeline is built, unless ``py_callback_pickler`` can do it.
    """

    inputs = (0, 0)
    positional = ("source", "num_outputs")
    kind = "source"
    pure = True
    incidental = ("cuda_stream", "no_copy", "parallel", "prefetch_queue_depth", "use_copy_kernel")
    source = arg("object", None, doc="Iterable, generator function or callback; None: fed by hand, by `name`.")
    num_outputs = arg("int", None, doc="Number of outputs; if given, a tuple of nodes is returned.")
    cycle = arg(
        "object", None, doc='Iterables: "quiet" begins again at the end, "raise" ends an epoch and begins again after '
        '`reset`, as by default; "no" ends for good.'
    )  # fmt: skip
    layout = arg("object", None, doc="Names of the axes of a row, one string or one per output.")
    dtype = arg("object", None, doc="Element type, one or one per output; data of other types are refused.")
    ndim = arg("object", None, doc="Number of axes of a row, one or one per output.")
    batch = arg("bool", None, doc="Whether the source gives batches (the default) or single rows.")
    batch_info = arg("bool", False, doc="Tell a batch callback a `types.BatchInfo` instead of a number.")
    repeat_last = arg("bool", False, doc="Fed by hand: use the last batch again when no other was fed.")
    blocking = arg("bool", False, doc="Fed by hand: wait for another thread to feed data.")
    no_copy = arg("bool", False, doc="Read arrays in place; they must not change until their batch is delivered.")
    parallel = arg("bool", False, doc="Run the source in the pipeline's `py_num_workers` processes.")
    prefetch_queue_depth = arg("int", None, doc="With `parallel`: batches that are made ahead there; 2 by default.")
    cuda_stream = arg("object", None, doc="Accepted without effect: arrays say which stream makes them.")
    use_copy_kernel = arg("bool", None, doc="Accepted without effect.")

    def validate(self, args: Mapping[str, Any]) -> None:
        """Check what does not depend on the data."""
        if args["num_outputs"] is not None and args["num_outputs"] < 1:
            raise ArgumentError(f"expected `num_outputs` >= 1, got {args['num_outputs']}")
        if args["source"] is not None and (args["repeat_last"] or args["blocking"]):
            raise ArgumentError("`repeat_last` and `blocking` are for sources fed by hand, got a `source` beside them")
        self._declared(args)
        choose_feeder(args, Declared(()))

    def _declared(self, args: Mapping[str, Any]) -> Declared:
        return Declared.of(self.count_outputs(args), args["dtype"], args["ndim"], args["layout"])

    def count_outputs(self, args: Mapping[str, Any]) -> int:
        return int(args["num_outputs"] or 1)

    def returns_tuple(self, args: Mapping[str, Any]) -> bool:
        return args["num_outputs"] is not None

    @classmethod
    def open(cls, args: Mapping[str, Any]) -> Feeder:
        """What takes data from the source."""
        return choose_feeder(args, cls()._declared(args))

    def lower(self, c: Lowering) -> tuple[Value, ...]:
        args = c.scope.args
        told = self._declared(args).specs()
        specs: tuple[Spec, ...] = c.found() if told is None else told
        return tuple(c.fed(spec, i) for i, spec in enumerate(specs))
