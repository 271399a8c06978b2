# SPDX-License-Identifier: Apache-2.0
"""Automatic augmentations as DALI has them: what one is, and how one of several is chosen per row."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

import numpy as np

from ...contract.errors import ArgumentError, UnsupportedError, message
from ..conditionals import Runtime
from ..definition import DataNode, index_node, user_line

Function = Callable[..., Any]
_RUNTIME = Runtime(lambda function: function)


class Augmentation:
    """A function ``(data, parameter, ...)`` and how its parameter follows from a magnitude.

    Args:
        function: takes the data and the parameter (a number per row) and perhaps arguments by name.
        mag_range: the magnitudes of the first and of the last bin; None: there is no parameter.
        randomly_negate: whether every other magnitude, by chance, is negative.
        mag_to_param: makes the parameter of a magnitude.
        needs: operators that are not here; calling it is refused then.
    """

    def __init__(
        self, function: Function, mag_range: tuple[float, float] | None = None, randomly_negate: bool = False,
        mag_to_param: Callable[[float], Any] | None = None, name: str | None = None, needs: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        self.op = function
        self.name = name or function.__name__
        self.mag_range = mag_range
        self.randomly_negate = randomly_negate
        self.mag_to_param = mag_to_param
        self.needs = needs
        self._takes = set(list(inspect.signature(function).parameters)[2:])
        self.__doc__ = function.__doc__

    def augmentation(self, mag_range: Any = None, randomly_negate: Any = None, mag_to_param: Any = None,
                     name: str | None = None) -> Augmentation:  # fmt: skip
        """The same function with other magnitudes."""
        return Augmentation(
            self.op, self.mag_range if mag_range is None else tuple(mag_range),
            self.randomly_negate if randomly_negate is None else bool(randomly_negate),
            self.mag_to_param if mag_to_param is None else mag_to_param, name or self.name, self.needs,
        )  # fmt: skip

    def __call__(self, data: Any, *, magnitude_bin: Any = None, num_magnitude_bins: int | None = None, seed: Any = None,
                 **arguments: Any) -> Any:  # fmt: skip
        """Add it to the pipeline; ``magnitude_bin`` is a number or a node, from 0 to ``num_magnitude_bins`` - 1.

        Raises:
            UnsupportedError: operators that it needs are not here.
        """
        require([self], "augmentation")
        if not isinstance(data, DataNode):
            raise ArgumentError(f"`{self.name}`: expected a node of a pipeline as data, got {type(data).__name__}")
        parameter = None if self.mag_range is None else self._parameter(data, magnitude_bin, num_magnitude_bins, seed)
        return self.op(data, parameter, **{k: v for k, v in arguments.items() if k in self._takes})

    def _parameter(self, data: DataNode, magnitude_bin: Any, bins: int | None, seed: Any) -> DataNode:
        if magnitude_bin is None or bins is None:
            raise ArgumentError(f"`{self.name}`: expected `magnitude_bin` and `num_magnitude_bins`, got none")
        assert self.mag_range is not None
        if isinstance(magnitude_bin, int) and not 0 <= magnitude_bin < bins:
            raise ArgumentError(f"`{self.name}`: expected a `magnitude_bin` from 0 to {bins - 1}, got {magnitude_bin}")
        signs = (1.0, -1.0) if self.randomly_negate else (1.0,)
        convert = self.mag_to_param or (lambda magnitude: np.float32(magnitude))
        table = np.asarray([convert(s * m) for m in np.linspace(*self.mag_range, bins) for s in signs])
        place = magnitude_bin * len(signs)
        if self.randomly_negate:
            place = data.builder.call("random.coin_flip", [], _seeded({"probability": 0.5}, seed)) + place
        return index_node(data.builder.constant(table), place)

    def __repr__(self) -> str:
        return f"Augmentation({self.name!r}, mag_range={self.mag_range}, randomly_negate={self.randomly_negate})"


@overload
def augmentation(function: Function) -> Augmentation: ...
@overload
def augmentation(
    *, mag_range: Any = None, randomly_negate: bool = False, mag_to_param: Any = None, param_device: str | None = None,
    name: str | None = None,
) -> Callable[[Function], Augmentation]: ...  # fmt: skip
def augmentation(
    function: Function | None = None, *, mag_range: Any = None, randomly_negate: bool = False, mag_to_param: Any = None,
    param_device: str | None = None, name: str | None = None,
) -> Any:  # fmt: skip
    """Make an :class:`Augmentation` of a function ``(data, parameter, ...)``; works as a decorator."""

    def decorate(function: Function) -> Augmentation:
        return Augmentation(function, mag_range, randomly_negate, mag_to_param, name)

    return decorate if function is None else decorate(function)


def require(augmentations: Sequence[Augmentation], subject: str) -> None:
    """UnsupportedError, by name, for augmentations whose operators are not here."""
    lacking = [a for a in augmentations if a.needs]
    if lacking:
        what = ", ".join(f"`{a.name}` (needs {', '.join(a.needs)})" for a in lacking)
        names = [a.name for a in lacking]
        raise UnsupportedError(
            message(subject, f"expected augmentations whose operators are in Stoker, got {what}", source=user_line(),
                    hint=f"Leave them out, for instance with excluded={names}")
        )  # fmt: skip


def _seeded(arguments: dict[str, Any], seed: Any) -> dict[str, Any]:
    return arguments if seed is None else {**arguments, "seed": seed}


def pick(data: DataNode, count: int, seed: Any) -> DataNode:
    """A whole number from 0 to ``count`` - 1 per row."""
    return data.builder.call("random.choice", [count], _seeded({}, seed))  # type: ignore[no-any-return]


def select(options: Sequence[Callable[[], Any]], number: DataNode) -> Any:
    """What option ``number`` gives; per row, only that one runs."""
    if len(options) == 1:
        return options[0]()
    half = len(options) // 2  # halves, so that a row passes few conditions
    return _RUNTIME.choose(number < half, lambda: select(options[:half], number),
                           lambda: select(options[half:], number - half))  # fmt: skip


def without(augmentations: Sequence[Augmentation], excluded: Sequence[str] | None) -> list[Augmentation]:
    """Those that are not excluded by name."""
    names = {a.name for a in augmentations}
    unknown = sorted(set(excluded or ()) - names)
    if unknown:
        raise ArgumentError(f"expected names out of {sorted(names)} in `excluded`, got {unknown}")
    return [a for a in augmentations if a.name not in (excluded or ())]


def apply_rand_augment(augmentations: Sequence[Augmentation], data: Any, n: int, m: int, num_magnitude_bins: int = 31,
                       seed: Any = None, **arguments: Any) -> Any:  # fmt: skip
    """``n`` times one of the augmentations, chosen per row, at magnitude ``m``."""
    require(augmentations, "apply_rand_augment")
    if not augmentations or n < 0:
        raise ArgumentError("`apply_rand_augment`: expected augmentations and n >= 0")
    for step in range(n):
        own = None if seed is None else seed + step
        data = _one_of(augmentations, data, m, num_magnitude_bins, own, arguments)
    return data


def apply_trivial_augment(augmentations: Sequence[Augmentation], data: Any, num_magnitude_bins: int = 31,
                          seed: Any = None, **arguments: Any) -> Any:  # fmt: skip
    """One of the augmentations at one of the magnitudes, both chosen per row."""
    require(augmentations, "apply_trivial_augment")
    if not augmentations:
        raise ArgumentError("`apply_trivial_augment`: expected augmentations, got none")
    return _one_of(augmentations, data, pick(data, num_magnitude_bins, seed), num_magnitude_bins, seed, arguments)


def _one_of(augmentations: Sequence[Augmentation], data: Any, magnitude: Any, bins: int, seed: Any,
            arguments: Mapping[str, Any]) -> Any:  # fmt: skip
    def option(chosen: Augmentation) -> Callable[[], Any]:
        return lambda: chosen(data, magnitude_bin=magnitude, num_magnitude_bins=bins, seed=seed, **arguments)

    return select([option(a) for a in augmentations], pick(data, len(augmentations), seed))


class Policy:
    """AutoAugment's policy: sub-policies, of which one is chosen per row.

    Args:
        name: for messages.
        num_magnitude_bins: of all magnitudes.
        sub_policies: sequences of (augmentation, probability, magnitude bin or None).
    """

    def __init__(
        self, name: str, num_magnitude_bins: int, sub_policies: Sequence[Sequence[tuple[Any, float, Any]]]
    ) -> None:
        self.name = name
        self.num_magnitude_bins = num_magnitude_bins
        self.sub_policies = [list(s) for s in sub_policies]
        for one, probability, _ in (step for sub in self.sub_policies for step in sub):
            if not isinstance(one, Augmentation) or not 0 <= probability <= 1:
                raise ArgumentError(f"`Policy`: expected (augmentation, probability, bin), got {(one, probability)}")


def apply_auto_augment(policy: Policy, data: Any, seed: Any = None, **arguments: Any) -> Any:
    """One of the policy's sub-policies, chosen per row; each of its steps with its probability."""
    if not policy.sub_policies:
        raise ArgumentError("`apply_auto_augment`: expected a policy with sub-policies, got none")
    require(list({a.name: a for sub in policy.sub_policies for a, _, _ in sub}.values()), policy.name)

    def run(steps: Sequence[tuple[Augmentation, float, Any]]) -> Any:
        x = data
        for one, probability, magnitude in steps:
            x = maybe(x, one, probability, magnitude)
        return x

    def maybe(x: Any, one: Augmentation, probability: float, magnitude: Any) -> Any:
        coin = x.builder.call("random.uniform", [], _seeded({"range": [0.0, 1.0]}, seed)) < probability
        bins = policy.num_magnitude_bins
        return _RUNTIME.choose(
            coin, lambda: one(x, magnitude_bin=magnitude, num_magnitude_bins=bins, seed=seed, **arguments), lambda: x
        )

    options = [functools.partial(run, steps) for steps in policy.sub_policies]
    return select(options, pick(data, len(options), seed))
