# SPDX-License-Identifier: Apache-2.0
"""DALI Proxy: samples of PyTorch's worker processes, processed as batches by a pipeline of the main process.

Data flow: a data set calls the proxy in a worker and gets a reference per output. Collating joins the references of a
batch to one run, which holds the inputs of all rows. The run reaches the main process inside of the batch. There a
thread pulls batches from PyTorch's iterator, runs the pipeline, and puts tensors in the place of references.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any

import torch
import torch.utils.data
from torch.utils.data._utils.collate import default_collate_fn_map

from ..contract.errors import ArgumentError, DataError, did_you_mean
from ..contract.text import brief
from ..frontends.dali.pipelines import Pipeline
from ..frontends.endpoint import fed_sources
from ._torch import to_torch

_AHEAD = 2  # batches that are complete before they are asked for
_POLL_S = 0.1


class DALIPipelineRunRef:
    """A run of the pipeline: the inputs of its rows by the source's name."""

    def __init__(self, samples: Sequence[_Sample]) -> None:
        self._samples: Sequence[_Sample] | None = samples
        self.inputs = {name: [s.inputs[name] for s in samples] for name in samples[0].inputs}

    def __reduce__(self) -> Any:
        return _restored_run, (self.inputs,)

    def is_of(self, samples: Sequence[_Sample]) -> bool:
        """Return whether these samples are the rows of the run, in this order."""
        own = self._samples
        return own is not None and len(own) == len(samples) and all(a is b for a, b in zip(own, samples, strict=True))


def _restored_run(inputs: dict[str, list[Any]]) -> DALIPipelineRunRef:
    run = DALIPipelineRunRef.__new__(DALIPipelineRunRef)
    run._samples, run.inputs = None, inputs
    return run


class _Sample:
    """Inputs of one call of the proxy, and the run that it is part of."""

    def __init__(self, inputs: dict[str, Any]) -> None:
        self.inputs = inputs
        self.run: DALIPipelineRunRef | None = None


class DALIOutputSampleRef:
    """Place of one output for one sample, until it is collated."""

    def __init__(self, sample: _Sample, output_idx: int) -> None:
        self.sample = sample
        self.output_idx = output_idx

    def __reduce__(self) -> Any:
        raise DataError(
            "DALI Proxy: expected references in a batch, got one that was not collated. Let the loader make batches "
            "(`batch_size`), and collate them by `torch.utils.data.default_collate`"
        )

    def __repr__(self) -> str:
        return f"<DALIOutputSampleRef: output {self.output_idx}>"


class DALIOutputBatchRef:
    """Place of one output for the rows of a batch, until the pipeline has run."""

    def __init__(self, pipe_run_ref: DALIPipelineRunRef, output_idx: int) -> None:
        self.pipe_run_ref = pipe_run_ref
        self.output_idx = output_idx

    def __repr__(self) -> str:
        return f"<DALIOutputBatchRef: output {self.output_idx}>"


def _collated(batch: Sequence[DALIOutputSampleRef], *, collate_fn_map: Any = None) -> DALIOutputBatchRef:
    """Join references of samples to one of a batch. Outputs of the same samples share a run."""
    samples = [reference.sample for reference in batch]
    run = samples[0].run
    if run is None or not run.is_of(samples):
        run = DALIPipelineRunRef(samples)
        for sample in samples:
            sample.run = run
    return DALIOutputBatchRef(run, batch[0].output_idx)


default_collate_fn_map[DALIOutputSampleRef] = _collated


class _Proxy:
    """Callable that a data set uses in the place of a transform; it can be sent to worker processes."""

    def __init__(self, names: Sequence[str], outputs: int) -> None:
        self._names = tuple(names)
        self._outputs = outputs

    def __call__(self, *inputs: Any, **named_inputs: Any) -> Any:
        """Return the reference of a sample's output, or a tuple of them for several outputs.

        Args:
            *inputs: the value of the only source: an array, a tensor or bytes.
            **named_inputs: the values of all sources by name.

        Raises:
            ArgumentError: values are missing, or no source has the name.
        """
        if inputs and (named_inputs or len(inputs) > 1 or len(self._names) > 1):
            raise ArgumentError(
                f"DALI Proxy: expected one value, or values by the names {list(self._names)}, got {len(inputs)} "
                f"without and {len(named_inputs)} with a name"
            )
        values = dict(zip(self._names, inputs, strict=False)) if inputs else named_inputs
        odd = [name for name in values if name not in self._names]
        if odd:
            hint = did_you_mean(odd[0], list(self._names)) or f"there are {list(self._names)}"
            raise ArgumentError(f"DALI Proxy: there is no source called {brief(odd[0])}; {hint}")
        missing = [name for name in self._names if name not in values]
        if missing:
            raise ArgumentError(f"DALI Proxy: expected a value for {missing[0]!r}, got none")
        sample = _Sample(values)
        references = tuple(DALIOutputSampleRef(sample, i) for i in range(self._outputs))
        return references[0] if len(references) == 1 else references


class DALIServer:
    """Runs a pipeline on the samples that a data set gives to :attr:`proxy` (like DALI's class of this name).

    Batches are computed in the order of the loader, so that results are reproducible with any number of workers.

    Args:
        pipeline: a pipeline whose inputs are ``fn.external_source(name=...)`` without a ``source``. Its `batch_size`
            is at least the loader's.
        deterministic: accepted without effect, since results always are.

    Raises:
        ArgumentError: no pipeline, one without such a source, or one with a reader.
    """

    def __init__(self, pipeline: Pipeline, deterministic: bool = False) -> None:
        if not isinstance(pipeline, Pipeline):
            raise ArgumentError(f"`DALIServer`: expected a Pipeline of DALI's kind, got {type(pipeline).__name__}")
        pipeline.build()
        self._pipeline = pipeline
        self._proxy = _Proxy(list(fed_sources(pipeline.execution, "DALIServer")), pipeline.num_outputs)
        self._thread: ThreadPoolExecutor | None = None
        self._alone = threading.Lock()

    @property
    def proxy(self) -> Callable[..., Any]:
        """Return the callable for the data set."""
        return self._proxy

    def start_thread(self) -> None:
        """Start the thread that runs the pipeline; idempotent."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "stoker-proxy")

    def stop_thread(self) -> None:
        """Stop the thread after its current batch; idempotent."""
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.shutdown(cancel_futures=True)

    def __enter__(self) -> DALIServer:
        self.start_thread()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop_thread()

    def produce_data(self, obj: Any) -> Any:
        """Return a batch with tensors in the place of references, in lists, tuples and dictionaries at any depth.

        Raises:
            StokerError: the pipeline failed on these samples.
        """
        return self.schedule(obj)()

    def schedule(self, obj: Any) -> Callable[[], Any]:
        """Begin the runs of a batch. Return the function that waits for them and returns the batch with tensors."""
        runs: dict[int, Future[list[Any]]] = {}

        def begin(reference: DALIOutputBatchRef) -> Any:
            run = reference.pipe_run_ref
            if id(run) not in runs:
                runs[id(run)] = self._begin(run)
            return reference

        _replaced(obj, begin)
        return lambda: _replaced(obj, lambda r: runs[id(r.pipe_run_ref)].result()[r.output_idx])

    def _begin(self, run: DALIPipelineRunRef) -> Future[list[Any]]:
        if self._thread is not None:
            return self._thread.submit(self._run, run)
        done: Future[list[Any]] = Future()
        done.set_result(self._run(run))
        return done

    def _run(self, run: DALIPipelineRunRef) -> list[Any]:
        with self._alone:
            return [to_torch(output.batch) for output in self._pipeline.run(**run.inputs)]


def _replaced(obj: Any, replace: Callable[[DALIOutputBatchRef], Any]) -> Any:
    """Return the object with other values for its references."""
    if isinstance(obj, DALIOutputBatchRef):
        return replace(obj)
    if isinstance(obj, Mapping):
        return {key: _replaced(value, replace) for key, value in obj.items()}
    if isinstance(obj, tuple) and hasattr(obj, "_fields"):
        return type(obj)(*(_replaced(value, replace) for value in obj))
    if isinstance(obj, list | tuple):
        return type(obj)(_replaced(value, replace) for value in obj)
    return obj


class DataLoader(torch.utils.data.DataLoader[Any]):
    """PyTorch's DataLoader whose batches have the pipeline's outputs in the place of the proxy's references.

    The next batches are computed while the caller uses the last one.

    Args:
        dali_server: the server whose :attr:`~DALIServer.proxy` the data set calls.
        *args: arguments of ``torch.utils.data.DataLoader``.
        **kwargs: arguments of ``torch.utils.data.DataLoader``.
    """

    def __init__(self, dali_server: DALIServer, *args: Any, **kwargs: Any) -> None:
        if not isinstance(dali_server, DALIServer):
            raise ArgumentError(f"`DataLoader`: expected a DALIServer, got {type(dali_server).__name__}")
        super().__init__(*args, **kwargs)
        self.dali_server = dali_server

    def ensure_server_listening(self) -> None:
        """Start the server's thread if it does not run."""
        self.dali_server.start_thread()

    def __iter__(self) -> Any:
        self.ensure_server_listening()
        return _Batches(super().__iter__(), self.dali_server)


class _Batches:
    """Batches of an iterator with their data, computed ahead by a thread."""

    def __init__(self, batches: Iterator[Any], server: DALIServer) -> None:
        self._ready: queue.Queue[tuple[Callable[[], Any] | None, BaseException | None]] = queue.Queue(_AHEAD)
        self._stop = threading.Event()
        self._ended = False
        self._thread = threading.Thread(
            target=_pull, args=(batches, server, self._ready, self._stop), name="stoker-proxy-batches", daemon=True
        )
        self._thread.start()

    def __iter__(self) -> _Batches:
        return self

    def __next__(self) -> Any:
        if self._ended:
            raise StopIteration
        result, error = self._ready.get()
        if result is not None:
            try:
                return result()
            except BaseException:
                self.close()
                raise
        self.close()
        raise error or StopIteration

    def close(self) -> None:
        """Stop the thread; batches that were computed ahead are lost. Idempotent."""
        self._ended = True
        self._stop.set()
        self._thread.join()

    def __del__(self) -> None:
        self._stop.set()


def _pull(batches: Iterator[Any], server: DALIServer, ready: queue.Queue[Any], stop: threading.Event) -> None:
    """Put the waiting functions of batches into a queue; at the end None, with the error if there was one."""
    item: tuple[Callable[[], Any] | None, BaseException | None]
    last = False
    while not last and not stop.is_set():
        try:
            item = (server.schedule(next(batches)), None)
        except StopIteration:
            item, last = (None, None), True
        except BaseException as error:  # noqa: BLE001 - the consumer raises it
            item, last = (None, error), True
        while not stop.is_set():
            try:
                ready.put(item, timeout=_POLL_S)
                break
            except queue.Full:
                continue
