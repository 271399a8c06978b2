# SPDX-License-Identifier: Apache-2.0
"""Automatic augmentations as in DALI: their definition, and the choice of one per row."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from ...contract.errors import ArgumentError, message
from ...contract.text import brief
from ...contract.whole_number import as_whole_number
from ..conditionals import BranchRuntime
from ..data_node import DataNode, index_node
from ..definition import current
from ..source_line import user_line
from .errors import error_class

Function = Callable[..., Any]
_RUNTIME = BranchRuntime(lambda function: function)
_KEPT: Any = object()  # default that keeps an augmentation's own setting
_OPTIONAL = ("fill_value", "interp_type")  # suites pass these to all augmentations, whether they take them or not


class SignedBin:
    """Magnitude bin (a number or a node) with a sign per row, for calls whose rows share the bin."""

    def __init__(self, bin: Any, random_sign: Any) -> None:
        self.bin = bin
        self.random_sign = random_sign

    def __getitem__(self, index: int) -> SignedBin:
        """Return the bin at ``index`` if nodes hold several per row."""
        return SignedBin(
            self.bin if as_whole_number(self.bin) is not None else self.bin[index], self.random_sign[index]
        )


def signed_bin(magnitude_bin: Any, random_sign: Any = None, seed: Any = None, shape: Any = None) -> SignedBin:
    """Add signs to magnitude bins.

    Args:
        magnitude_bin: the bin, a number or a node.
        random_sign: 0 or 1 (negative) per row, a node; None: drawn.
        seed: seed of the drawn signs; by default it follows from the pipeline's.
        shape: number of signs per row; None: one.
    """
    if random_sign is None:
        builder = magnitude_bin.builder if isinstance(magnitude_bin, DataNode) else current()
        if builder is None:
            raise ArgumentError("`signed_bin`: expected to be called in a pipeline's definition")
        drawn = {"probability": 0.5, **({} if shape is None else {"shape": list(shape)})}
        random_sign = builder.call("random.coin_flip", [], _seeded(drawn, seed))
    elif seed is not None or shape is not None:
        raise ArgumentError("`signed_bin`: expected no `seed` or `shape` with `random_sign`")
    return SignedBin(magnitude_bin, random_sign)


class Augmentation:
    """Function ``(data, parameter, ...)`` with a rule that maps a magnitude to its parameter.

    Args:
        function: takes the data, the parameter (a number or array per row) and optionally named arguments.
        mag_range: magnitudes of the first and last bin, or an array with one per bin; None: no parameter.
        randomly_negate: negate the magnitude with a probability of one half.
        mag_to_param: function from magnitude to parameter; None: identity.
        name: name in messages and policies; by default the function's.
    """

    def __init__(
        self, function: Function, mag_range: Any = None, randomly_negate: bool | None = None,
        mag_to_param: Callable[[Any], Any] | None = None, name: str | None = None,
    ) -> None:  # fmt: skip
        self.op = function
        self.name = name or function.__name__
        self.mag_range = mag_range
        self.randomly_negate = bool(randomly_negate)
        self.mag_to_param = mag_to_param
        named = list(inspect.signature(function).parameters.values())[2:]
        self._takes = {p.name for p in named}
        self._needs = [p.name for p in named if p.default is p.empty]
        self.__doc__ = function.__doc__

    def augmentation(
        self, mag_range: Any = _KEPT, randomly_negate: Any = _KEPT, mag_to_param: Any = _KEPT,
        param_device: Any = _KEPT, name: Any = _KEPT,
    ) -> Augmentation:  # fmt: skip
        """Return the same function with other settings; by default its own.

        Args:
            mag_range: magnitudes of the first and last bin, or an array with one per bin; None: no parameter.
            randomly_negate: negate the magnitude with a probability of one half.
            mag_to_param: function from magnitude to parameter; None: identity.
            param_device: accepted without effect: parameters follow the data's device.
            name: name in messages and policies.
        """
        settings = (mag_range, randomly_negate, mag_to_param, name)
        own = (self.mag_range, self.randomly_negate, self.mag_to_param, self.name)
        return Augmentation(self.op, *(o if g is _KEPT else g for g, o in zip(settings, own, strict=True)))

    def __call__(self, data: Any, *, magnitude_bin: Any = None, num_magnitude_bins: int | None = None, seed: Any = None,
                 **arguments: Any) -> Any:  # fmt: skip
        """Add the augmentation to the pipeline.

        Args:
            data: images or videos, a node.
            magnitude_bin: a number or a node, from 0 to ``num_magnitude_bins`` - 1, or a :func:`signed_bin`.
            num_magnitude_bins: number of bins.
            seed: seed of the drawn signs; by default it follows from the pipeline's.
            **arguments: named arguments of the function.
        """
        if not isinstance(data, DataNode):
            raise ArgumentError(f"`{self.name}`: expected a node of a pipeline as data, got {type(data).__name__}")
        missing = [name for name in self._needs if name not in arguments]
        if missing:
            raise ArgumentError(
                message(self.name, f"expected the argument `{missing[0]}`, got none", source=user_line())
            )
        parameter = None if self.mag_range is None else self._parameter(data, magnitude_bin, num_magnitude_bins, seed)
        return self.op(data, parameter, **{k: v for k, v in arguments.items() if k in self._takes})

    def takes(self, name: str) -> bool:
        """Return whether the function has an argument of this name.

        Args:
            name: the argument.
        """
        return name in self._takes

    def parameters(self, bins: int | None) -> npt.NDArray[Any]:
        """Return the parameters of all bins. With random signs, each bin has two, the positive one first.

        Args:
            bins: number of bins; None if an array has one magnitude per bin.
        """
        if isinstance(self.mag_range, np.ndarray):
            magnitudes = self.mag_range
            if bins is not None and len(magnitudes) != bins:
                raise ArgumentError(
                    f"`{self.name}`: expected {len(magnitudes)} `num_magnitude_bins`, got {brief(bins)}"
                )
        else:
            if bins is None:
                raise ArgumentError(f"`{self.name}`: expected `magnitude_bin` and `num_magnitude_bins`, got none")
            low, high = self.mag_range
            magnitudes = np.linspace(low, high, bins, dtype=np.float32)
        signs = (1, -1) if self.randomly_negate else (1,)
        convert = self.mag_to_param or (lambda magnitude: magnitude)
        return np.asarray([convert(m if sign > 0 else -m) for m in magnitudes for sign in signs])

    def _parameter(self, data: DataNode, magnitude_bin: Any, bins: int | None, seed: Any) -> DataNode:
        sign = magnitude_bin.random_sign if isinstance(magnitude_bin, SignedBin) else None
        place = magnitude_bin.bin if isinstance(magnitude_bin, SignedBin) else magnitude_bin
        if place is None:
            raise ArgumentError(f"`{self.name}`: expected `magnitude_bin` and `num_magnitude_bins`, got none")
        table = self.parameters(bins)
        count = len(table) // 2 if self.randomly_negate else len(table)
        number = as_whole_number(place)
        if number is not None and not 0 <= number < count:
            raise ArgumentError(f"`{self.name}`: expected a `magnitude_bin` from 0 to {count - 1}, got {brief(number)}")
        if self.randomly_negate:
            if sign is None:
                sign = data.builder.call("random.coin_flip", [], _seeded({"probability": 0.5}, seed))
            place = sign + 2 * place
        return index_node(data.builder.constant(table), place)

    def __repr__(self) -> str:
        return f"Augmentation({self.name!r}, mag_range={self.mag_range}, randomly_negate={self.randomly_negate})"


@overload
def augmentation(function: Function) -> Augmentation: ...
@overload
def augmentation(
    *, mag_range: Any = None, randomly_negate: bool | None = None, mag_to_param: Any = None,
    param_device: str | None = None, name: str | None = None,
) -> Callable[[Function], Augmentation]: ...  # fmt: skip
def augmentation(
    function: Function | None = None, *, mag_range: Any = None, randomly_negate: bool | None = None,
    mag_to_param: Any = None, param_device: str | None = None, name: str | None = None,
) -> Any:  # fmt: skip
    """Create an :class:`Augmentation` from a function ``(data, parameter, ...)``; works as a decorator.

    Args:
        function: takes the data, the parameter (a number or array per row) and optionally named arguments.
        mag_range: magnitudes of the first and last bin, or an array with one per bin; None: no parameter.
        randomly_negate: negate the magnitude with a probability of one half.
        mag_to_param: function from magnitude to parameter; None: identity.
        param_device: accepted without effect: parameters follow the data's device.
        name: name in messages and policies; by default the function's.
    """

    def decorate(function: Function) -> Augmentation:
        return Augmentation(function, mag_range, randomly_negate, mag_to_param, name)

    return decorate if function is None else decorate(function)


def _check(augmentations: Sequence[Augmentation], arguments: Mapping[str, Any], subject: str) -> None:
    """Raise ArgumentError for an argument that no augmentation takes."""
    for name in arguments:
        if not any(one.takes(name) for one in augmentations) and name not in _OPTIONAL:
            raise ArgumentError(f"`{subject}`: no augmentation takes `{name}`")


def _seeded(arguments: dict[str, Any], seed: Any) -> dict[str, Any]:
    return arguments if seed is None else {**arguments, "seed": seed}


def pick(data: DataNode, count: int, seed: Any) -> DataNode:
    """Draw a whole number from 0 to ``count`` - 1 per row."""
    return data.builder.call("random.choice", [count], _seeded({}, seed))  # type: ignore[no-any-return]


def select_one(options: Sequence[Callable[[], Any]], number: DataNode) -> Any:
    """Return the result of option ``number``. For each row only that option runs."""
    if len(options) == 1:
        return options[0]()
    half = len(options) // 2  # binary search, so that a row evaluates few conditions
    return _RUNTIME.choose(number < half, lambda: select_one(options[:half], number),
                           lambda: select_one(options[half:], number - half))  # fmt: skip


def select(ops: Sequence[Callable[..., Any]], selected_op_idx: DataNode, *args: Any, **arguments: Any) -> Any:
    """Call ``ops[selected_op_idx](*args, **arguments)``. For each row only that operator runs.

    Args:
        ops: functions that add nodes.
        selected_op_idx: number of the function, a node with one value per row.
        *args: arguments of the functions by position.
        **arguments: arguments of the functions by name.
    """
    return select_one([functools.partial(op, *args, **arguments) for op in ops], selected_op_idx)


def without(augmentations: Sequence[Augmentation], excluded: Sequence[str] | None) -> list[Augmentation]:
    """Return the augmentations whose names are not excluded."""
    names = {a.name for a in augmentations}
    unknown = sorted(set(excluded or ()) - names)
    if unknown:
        raise ArgumentError(f"expected names out of {sorted(names)} in `excluded`, got {unknown}")
    return [a for a in augmentations if a.name not in (excluded or ())]


def apply_rand_augment(augmentations: Sequence[Augmentation], data: Any, n: int, m: int, num_magnitude_bins: int = 31,
                       seed: Any = None, **arguments: Any) -> Any:  # fmt: skip
    """Apply ``n`` augmentations in sequence, each chosen per row, at magnitude ``m``.

    Args:
        augmentations: the augmentations to choose from.
        data: images or videos, uint8 HWC or FHWC.
        n: number of augmentations per row.
        m: magnitude bin, from 0 to ``num_magnitude_bins`` - 1.
        num_magnitude_bins: number of bins.
        seed: seed of the draws; by default it follows from the pipeline's.
        **arguments: arguments of the augmentations, such as ``fill_value`` and ``interp_type``.
    """
    if not augmentations or (times := as_whole_number(n)) is None or times < 0:
        raise ArgumentError("`apply_rand_augment`: expected augmentations and n >= 0")
    if not 0 <= m < num_magnitude_bins:
        raise ArgumentError(f"`apply_rand_augment`: expected m from 0 to {num_magnitude_bins - 1}, got {brief(m)}")
    _check(augmentations, arguments, "apply_rand_augment")
    for step in range(times):
        own = None if seed is None else seed + step
        data = _one_of(augmentations, data, m, num_magnitude_bins, own, arguments)
    return data


def apply_trivial_augment(augmentations: Sequence[Augmentation], data: Any, num_magnitude_bins: int = 31,
                          seed: Any = None, **arguments: Any) -> Any:  # fmt: skip
    """Apply one of the augmentations at one of the magnitudes, both chosen per row.

    Args:
        augmentations: the augmentations to choose from.
        data: images or videos, uint8 HWC or FHWC.
        num_magnitude_bins: number of magnitude bins.
        seed: seed of the draws; by default it follows from the pipeline's.
        **arguments: arguments of the augmentations, such as ``fill_value`` and ``interp_type``.
    """
    if not augmentations:
        raise ArgumentError("`apply_trivial_augment`: expected augmentations, got none")
    _check(augmentations, arguments, "apply_trivial_augment")
    return _one_of(augmentations, data, pick(data, num_magnitude_bins, seed), num_magnitude_bins, seed, arguments)


def _one_of(augmentations: Sequence[Augmentation], data: Any, magnitude: Any, bins: int, seed: Any,
            arguments: Mapping[str, Any]) -> Any:  # fmt: skip
    def option(chosen: Augmentation) -> Callable[[], Any]:
        return lambda: chosen(data, magnitude_bin=magnitude, num_magnitude_bins=bins, seed=seed, **arguments)

    return select_one([option(a) for a in augmentations], pick(data, len(augmentations), seed))


class Policy:
    """AutoAugment policy: sub-policies, of which one is chosen per row.

    Args:
        name: name in messages.
        num_magnitude_bins: number of bins of all magnitudes.
        sub_policies: sequences of (augmentation, probability, magnitude bin or None).
    """

    def __init__(
        self, name: str, num_magnitude_bins: int, sub_policies: Sequence[Sequence[tuple[Any, float, Any]]]
    ) -> None:
        self.name = name
        self.num_magnitude_bins = num_magnitude_bins
        self.sub_policies = [list(s) for s in sub_policies]
        for one, probability, at in (step for sub in self.sub_policies for step in sub):
            if not isinstance(one, Augmentation) or not 0 <= probability <= 1:
                raise error_class(ArgumentError)(
                    f"`Policy`: expected (augmentation, probability from 0 to 1, bin), got {brief((one, probability))}"
                )
            if at is not None and not 0 <= at < num_magnitude_bins:
                raise error_class(ArgumentError)(
                    f"`Policy`: expected a bin from 0 to {num_magnitude_bins - 1} for `{one.name}`, got {brief(at)}"
                )


def apply_auto_augment(policy: Policy, data: Any, seed: Any = None, **arguments: Any) -> Any:
    """Apply one of the policy's sub-policies, chosen per row; each of its steps with its probability.

    Args:
        policy: the policy.
        data: images or videos, uint8 HWC or FHWC.
        seed: seed of the draws; by default it follows from the pipeline's.
        **arguments: arguments of the augmentations, such as ``fill_value`` and ``interp_type``.
    """
    if not policy.sub_policies:
        raise ArgumentError("`apply_auto_augment`: expected a policy with sub-policies, got none")
    _check([a for sub in policy.sub_policies for a, _, _ in sub], arguments, policy.name)

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
    return select_one(options, pick(data, len(options), seed))
