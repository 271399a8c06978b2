# SPDX-License-Identifier: Apache-2.0
"""Growing random graphs: the values so far, their types, and random choices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..contract.argument import arg
from ..contract.errors import ArgumentError, UnsupportedError
from ..contract.feed import SampleInfo
from ..contract.lowering import Lowering
from ..contract.operator import Operator, RowContext, Spec
from ..contract.reader import Source
from ..contract.types import DType, InterpType
from ..executor.schedule import Schedule
from ..frontends import fn
from ..frontends.data_node import DataNode
from ..frontends.definition import GraphBuilder
from ..frontends.registry import find as find_public
from ..graph.node import Edge, Graph
from .position_mask import PositionMask
from .reference import Interpreter, RowRefused, plain_rows

ROWS = 6  # batch sizes 1, 2, 3 and 6 divide it
MAX_ELEMENTS = 3000  # of one row; a NumPy reference takes about a millisecond
PIXELS = (DType.UINT8, DType.UINT8, DType.UINT8, DType.FLOAT, DType.UINT16, DType.INT16, DType.INT32, DType.FLOAT16)
ANY = (*PIXELS, DType.INT8, DType.UINT32, DType.INT64, DType.UINT64, DType.BOOL, DType.FLOAT64)
SIZES = (1, 2, 3, 5, 7, 8, 11)
FILTERS = tuple(InterpType)
Move = Callable[["GraphGrower"], Any]


def move_registrar(moves: list[tuple[float, Move]]) -> Callable[[float], Callable[[Move], Move]]:
    """Return a decorator that adds moves to a list. ``move(2.0)`` adds one that is chosen twice as often as usual."""

    def move(weight: float) -> Callable[[Move], Move]:
        def declare(function: Move) -> Move:
            moves.append((weight, function))
            return function

        return declare

    return move


class RandomImage(Operator, name="testing.image"):
    """Noise of a random size, drawn in Python. Output: an array with the axes ``layout``."""

    inputs = (0, 0)
    draws = 1
    dtype = arg("dtype", DType.UINT8, doc="Element type.")
    layout = arg("str", "HWC", doc="Names of the axes.")
    low = arg("int", 3, many=True, doc="Smallest extent, for all axes or for each.")
    high = arg("int", 12, many=True, doc="Largest extent.")

    def infer(self, c: Lowering) -> Spec:
        low, high = self._limits(c.const("layout"), c.const("low")), self._limits(c.const("layout"), c.const("high"))
        shape = tuple(a if a == b else None for a, b in zip(low, high, strict=True))
        return Spec(c.const("dtype"), shape, c.const("layout"))

    @staticmethod
    def _limits(layout: str, limits: Sequence[int]) -> Sequence[int]:
        return limits if len(limits) > 1 else tuple(limits) * len(layout)

    def reference(self, row: RowContext) -> Any:
        rng, layout = row.stream.generator(), row["layout"]
        low, high = self._limits(layout, row["low"]), self._limits(layout, row["high"])
        return noise(rng, tuple(int(rng.integers(a, b + 1)) for a, b in zip(low, high, strict=True)), row["dtype"])


class RandomNumber(Operator, name="testing.number"):
    """Number drawn in Python. Output: a scalar, or ``(1,)``, float32 or int32."""

    inputs = (0, 0)
    draws = 1
    low = arg("float", doc="Smallest number.")
    high = arg("float", doc="Largest number.")
    whole = arg("bool", False, doc="Whether it is an integer.")
    shape = arg("int", (), many=True, doc="Shape of the output.")

    def infer(self, c: Lowering) -> Spec:
        return Spec(DType.INT32 if c.const("whole") else DType.FLOAT, c.const("shape"))

    def reference(self, row: RowContext) -> Any:
        low, high, rng = row["low"], row["high"], row.stream.generator()
        if row["whole"]:
            return rng.integers(int(low), int(high) + 1, size=row["shape"]).astype(np.int32)
        return rng.uniform(low, high, size=row["shape"]).astype(np.float32)


class Samples:
    """User's source: a callback that receives the sample to produce."""

    def __init__(self, seed: int, layout: str, dtype: DType) -> None:
        self.seed, self.layout, self.dtype = seed, layout, dtype

    def row(self, index: int) -> npt.NDArray[Any]:
        rng = np.random.default_rng((self.seed, index))
        shape = [3 if axis == "C" else int(rng.integers(3, 10)) for axis in self.layout]
        return noise(rng, shape, self.dtype)

    def __call__(self, info: SampleInfo) -> npt.NDArray[Any]:
        return self.row(info.idx_in_epoch)


def noise(rng: np.random.Generator, shape: Sequence[int], dtype: DType) -> npt.NDArray[Any]:
    """Return values of the whole range of a small type, or of a modest part of a large one."""
    if dtype.is_float:
        return rng.uniform(-2, 300, shape).astype(dtype.numpy)
    if dtype == DType.BOOL:
        return rng.random(shape) < 0.5
    info = np.iinfo(dtype.numpy)
    return rng.integers(max(info.min, -70_000), min(info.max, 70_000), shape, dtype=dtype.numpy, endpoint=True)


_OWN: dict[str, type[Operator]] = {op.name: op for op in (RandomImage, RandomNumber, PositionMask)}


def find(name: str) -> type[Operator]:
    """Return an operator by name, including those of random graphs."""
    return _OWN.get(name) or find_public(name)


class GraphGrower:
    """Generator of a random graph: holds its values and makes random choices.

    Args:
        rng: random generator of all choices.
        files: paths of small image files, for graphs with a reader.
    """

    def __init__(self, rng: np.random.Generator, files: Sequence[str] = ()) -> None:
        self.rng = rng
        self.builder = GraphBuilder(find)
        self.seed = int(rng.integers(1 << 62))
        self.pool: list[DataNode] = []
        self.labels: list[DataNode] = []
        self.refused: list[str] = []
        self.failing: list[tuple[Graph, int]] = []
        sources: dict[int, Any] = {}
        feeds: dict[tuple[int, int], Sequence[Any]] = {}
        with self.builder:
            if rng.random() < 0.1:
                feeds = self._add_samples()
            elif files and rng.random() < 0.35:
                chosen = [str(f) for f in rng.permutation(list(files))[: int(rng.integers(2, 7))]]
                data, label = fn.readers.file(files=chosen, random_shuffle=bool(rng.random() < 0.7))
                self.pool += [data, label]
                self.labels = [label]
                node = self.builder.nodes[-1]
                assert issubclass(node.operator, Source)
                sources = {node.id: node.operator.open(node.args)}
        rows = Schedule(sources, tuple(sources), self.seed).next(ROWS, "go_on") if sources else plain_rows(ROWS)
        assert rows is not None
        for source in sources.values():
            where = [source.describe(int(i)) for i in rows.indices[0]]
            feeds = {
                (0, 0): [np.fromfile(p, np.uint8) for p in where],
                (0, 1): [source.columns[1].row(int(i)) for i in rows.indices[0]],
            }
        self.rows = rows
        self.interpreter = Interpreter(rows, self.seed, feeds, sources, find)
        for node in self.builder.nodes:
            self.interpreter.add(node)

    def _add_samples(self) -> dict[tuple[int, int], Sequence[Any]]:
        """Add a source in Python, with types that are declared or taken from the first batch. Return its rows."""
        layout, dtype = self.pick(("HWC", "CHW", "HW", "")), self.pick(PIXELS)
        samples = Samples(self.whole(0, 1 << 30), layout or "HW", dtype)
        declared = {"dtype": dtype, "ndim": len(samples.layout)} if self.chance(0.5) else {}
        source = fn.external_source(source=samples, batch=False, layout=layout or None, **declared)
        self.pool.append(source)
        return {(0, 0): [samples.row(i) for i in range(ROWS)]}

    # ---- growing ----

    def grow(self, move: Move) -> bool:
        """Make a move. Return False if it was taken back."""
        start = len(self.builder.nodes)
        try:
            with self.builder:
                new = move(self)
            for node in self.builder.nodes[start:]:
                self.interpreter.add(node)
                if any(x is not None and x.size > MAX_ELEMENTS for x in self.interpreter.column(Edge(node.id))):
                    raise ArgumentError("larger than random graphs are meant to be")
        except (ArgumentError, UnsupportedError, RowRefused, NoSuitableValue) as error:
            if isinstance(error, RowRefused):
                self.failing.append((self._up_to(error.node), error.row))
            self.refused.append(f"{getattr(move, '__name__', move)}: {type(error).__name__} {error}")
            del self.builder.nodes[start:]
            return False
        except Exception as error:
            error.add_note("\n".join(f"{n.id} = {n.operator.name} {n.inputs} {n.edges}" for n in self.builder.nodes))
            raise
        self.pool += [x for x in (new if isinstance(new, (tuple, list)) else (new,)) if isinstance(x, DataNode)]
        return True

    def _up_to(self, node: int) -> Graph:
        """Return the graph so far with the outputs of ``node`` as its outputs."""
        own = self.builder.nodes[node]
        outputs = [Edge(node, i) for i in range(own.outputs)] + [x.edge for x in self.labels]
        return Graph(tuple(self.builder.nodes[: node + 1]), tuple(outputs), (None,) * len(outputs))

    # ---- choosing ----

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def pick(self, values: Sequence[Any]) -> Any:
        return values[int(self.rng.integers(len(values)))]

    def whole(self, low: int, high: int) -> int:
        """Return an integer from ``low`` to ``high``, both included."""
        return int(self.rng.integers(low, high + 1))

    def choose(self, fits: Callable[[DataNode], bool]) -> DataNode:
        """Return a value that fits. Later values are chosen more often, so that chains grow."""
        found = [x for x in self.pool if fits(x)]
        if not found:
            raise NoSuitableValue
        weights = np.arange(1, len(found) + 1) ** 1.5
        return found[int(self.rng.choice(len(found), p=weights / weights.sum()))]

    def image(self) -> DataNode:
        """Return a value with height, width and at least one element."""
        return self.choose(lambda x: {"H", "W"} <= set(self.layout(x)) and all(a.size for a in self.arrays(x)))

    def array(self) -> DataNode:
        """Return any value."""
        return self.choose(lambda x: True)

    def number(self, low: float, high: float, *, whole: bool = False) -> Any:
        """Return an argument: a constant, or a node with another number for every row."""
        if self.chance(0.45):
            return self.whole(int(low), int(high)) if whole else float(np.float32(self.rng.uniform(low, high)))
        if whole and (low, high) == (0, 1) and self.chance(0.7):
            return fn.random.coin_flip(probability=float(self.rng.random()))
        if not whole and self.chance(0.7):
            return fn.random.uniform(range=[low, high])
        shape = () if self.chance(0.7) else (1,)
        args = {"low": low, "high": high, "whole": whole, "shape": shape}
        return self.builder.add_operator(RandomNumber, RandomNumber.fill_defaults(args, {}))

    # ---- inspecting ----

    def arrays(self, x: DataNode) -> list[npt.NDArray[Any]]:
        return [a for a in self.interpreter.column(x.edge) if a is not None]

    def dtype(self, x: DataNode) -> DType:
        return self.interpreter.values[x.edge].dtype

    def layout(self, x: DataNode) -> str:
        value = self.interpreter.values[x.edge]
        return value.layout or {2: "HW", 3: "HWC", 4: "FHWC"}.get(value.rank, "?" * value.rank)

    def operator(self, x: DataNode) -> type[Operator]:
        return self.builder.nodes[x.edge.node].operator

    def least_shape(self, x: DataNode) -> tuple[int, ...]:
        """Return the smallest extent over all rows, for every axis."""
        return tuple(int(n) for n in np.min([a.shape for a in self.arrays(x)], axis=0))

    def least(self, x: DataNode, axis: str) -> int:
        """Return the smallest extent over all rows along an axis."""
        at = self.layout(x).index(axis)
        return min(int(a.shape[at]) for a in self.arrays(x))


class NoSuitableValue(Exception):
    """The graph has no value of the kind that a move needs."""


def source(g: GraphGrower) -> Any:
    """Add a source of pixels."""
    if g.labels and g.chance(0.9):
        return fn.decoders.image(g.pool[0], output_type=g.pick(("RGB", "RGB", "GRAY", "BGR", "YCbCr")))
    layout = g.pick(("HWC", "HWC", "HWC", "CHW", "HW", "FHWC", "FCHW"))
    dtype = g.pick(PIXELS)
    if g.chance(0.15):
        shape = [g.whole(2, 8) for _ in layout]
        return g.builder.call("_constant", (), {"value": noise(g.rng, shape, dtype), "layout": layout})
    low = [{"C": g.pick((1, 3, 3, 3, 4)), "F": 2}.get(a, 3) for a in layout]
    high = [{"C": n, "F": 3}.get(a, g.pick((3, 9, 12))) for a, n in zip(layout, low, strict=True)]
    args = {"dtype": dtype, "layout": layout, "low": tuple(low), "high": tuple(high)}
    return g.builder.add_operator(RandomImage, RandomImage.fill_defaults(args, {}))
