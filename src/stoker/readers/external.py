# SPDX-License-Identifier: Apache-2.0
"""``external_source``: data from the user's Python code, or fed by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..contract.argument import arg
from ..contract.errors import ArgumentError
from ..contract.feed import Feeder
from ..contract.lowering import Lowering
from ..contract.operator import Spec
from ..contract.reader import Source
from ..contract.step import Value
from ._declared import Declared
from ._feeder_choice import choose_feeder


class ExternalSource(Source, name="external_source"):
    """Take data from Python: an iterable, a generator function, or a callback; or from ``pipe.feed_input``.

    A source returns one batch at a time: a list of arrays, DLPack tensors, bytes or numbers (one per row), or one array
    whose first axis runs along the rows; with ``num_outputs``, a tuple of batches. With ``batch=False`` it returns one
    row at a time. A callback may take one argument: the number of the batch in its epoch (a ``types.BatchInfo`` with
    ``batch_info=True``), or with ``batch=False`` a ``types.SampleInfo``. Parameters with defaults are left
    alone, but with ``pass_to_default=True`` an only parameter receives it despite its default. A callback ends an epoch
    by raising StopIteration. A batch may have fewer rows than the pipeline's ``batch_size``, but at least one.

    With ``device="gpu"``, arrays may be in the memory of the pipeline's GPU, as a list or as one array: from torch,
    CuPy, JAX and all other libraries that support DLPack or CUDA's array interface. The run waits for the work that the
    array's library had issued to its current stream when the source returned (with CUDA's interface: to the stream that
    it names). It reads the arrays in place, with any strides. By default their own framework copies them first, on its
    current stream, so that later work on that stream may overwrite them. With ``no_copy=True`` there is no copy: do not
    overwrite or free the arrays until ``run`` has returned their batch. The run's work is complete then, so no stream
    has to wait. Batches are prefetched (``prefetch_queue_depth``), so such a source needs separate arrays for each
    batch in flight, or arrays that never change. The run holds references until then. Arrays in host memory are copied
    to the GPU; for them ``no_copy`` means the same.

    Types that are not declared are taken from the first batch and must not change after it. A sequence, and a callback
    with an argument, can be resumed from a state. Other sources raise an error that says that they cannot.

    With ``parallel=True`` the source runs in the pipeline's worker processes (``py_num_workers``,
    ``py_start_method="fork"`` or ``"spawn"``), ahead of the run, and its arrays return in shared memory. The batches
    and their order are the same for any number of processes. A function must take its one argument; the rows of a batch
    (``batch=False``), or whole batches, are distributed over the processes. One process iterates over an iterable or a
    generator function. An exception of the source is raised here, with the process's traceback as its cause. A process
    that dies fails its current batch and is replaced. With ``"spawn"``, objects that cannot be pickled are refused when
    the pipeline is built, unless ``py_callback_pickler`` supports them.
    """

    positional = ("source", "num_outputs")
    pure = True
    result_neutral = ("cuda_stream", "no_copy", "parallel", "prefetch_queue_depth", "use_copy_kernel")
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
    batch_info = arg("bool", False, doc="Pass a `types.BatchInfo` to a batch callback instead of a number.")
    pass_to_default = arg(
        "bool", False, doc="Pass the number or the information also to a callback whose only parameter has a default, "
        "as DALI does."
    )  # fmt: skip
    repeat_last = arg("bool", False, doc="Fed by hand: use the last batch again when no other was fed.")
    blocking = arg("bool", False, doc="Fed by hand: wait for another thread to feed data.")
    no_copy = arg("bool", False, doc="Read arrays in place; they must not change until their batch is delivered.")
    parallel = arg("bool", False, doc="Run the source in the pipeline's `py_num_workers` processes.")
    prefetch_queue_depth = arg(
        "int", None, doc="With `parallel`: number of batches that the workers prefetch; 2 by default."
    )
    cuda_stream = arg("object", None, doc="Accepted without effect: arrays say which stream makes them.")
    use_copy_kernel = arg("bool", None, doc="Accepted without effect.")

    def validate(self, args: Mapping[str, Any]) -> None:
        """Check everything that does not depend on the data."""
        if args["num_outputs"] is not None and args["num_outputs"] < 1:
            raise ArgumentError(f"expected `num_outputs` >= 1, got {args['num_outputs']}")
        if args["source"] is not None and (args["repeat_last"] or args["blocking"]):
            raise ArgumentError("`repeat_last` and `blocking` are for sources fed by hand, got a `source` with them")
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
        """Return the feeder for the source."""
        return choose_feeder(args, cls()._declared(args))

    def lower(self, c: Lowering) -> tuple[Value, ...]:
        args = c.scope.args
        specs: tuple[Spec, ...] = c.known_types() or self._declared(args).specs() or c.discovered_types()
        return tuple(c.fed(spec, i, is_discovered=True) for i, spec in enumerate(specs))
