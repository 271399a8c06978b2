# SPDX-License-Identifier: Apache-2.0
"""Tables of automatic augmentations as JSON: ``python tools/dali_policies.py (nvidia.dali|stoker.dali)``.

The output has, for every suite and policy, its augmentations, probabilities, and parameters at some magnitudes.
``tools/dali_values.py`` records DALI's output in tests/compat/dali_policies.json.
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

import numpy as np

SUITE_BINS, POLICY_BINS = 31, 11


def parameters(one: Any, bins: int) -> Any:
    """Return the parameters of all bins, with both signs if there are two; None without a parameter."""
    if one.mag_range is None:
        return None
    if hasattr(one, "parameters"):
        return one.parameters(bins)
    magnitudes = one._get_magnitudes(bins)
    if one.randomly_negate:
        magnitudes = np.repeat(magnitudes, 2) * np.tile(np.array([1, -1], magnitudes.dtype), bins)
    return one._map_mags_to_params(magnitudes)


def described(one: Any, bins: int, chosen: list[int]) -> list[Any]:
    """Return the name, the parameters' type, and the parameters of the chosen bins to six digits."""
    found = parameters(one, bins)
    if found is None:
        return [one.name, None, None]
    rows = found.reshape(bins, -1)[chosen]
    return [one.name, str(found.dtype), [[float(f"{x + 0.0:.6g}") for x in row] for row in rows]]


def tables(module: str) -> dict[str, Any]:
    """Return all tables by the functions' names."""
    rand, trivial, auto = (
        importlib.import_module(f"{module}.auto_aug.{name}")
        for name in ("rand_augment", "trivial_augment", "auto_augment")
    )
    found: dict[str, Any] = {}
    for shape in (False, True):
        for suite in (
            rand.get_rand_augment_suite, rand.get_rand_augment_non_monotonic_suite,
            trivial.get_trivial_augment_wide_suite,
        ):  # fmt: skip
            ones = [described(one, SUITE_BINS, [0, 7, 30]) for one in suite(shape)]
            found[f"{suite.__name__} {shape}"] = ones
        for policy in (auto.get_image_net_policy, auto.get_reduced_cifar10_policy, auto.get_svhn_policy):
            found[f"{policy.__name__} {shape}"] = steps(policy(shape))
    found["get_reduced_image_net_policy"] = steps(auto.get_reduced_image_net_policy())
    return found


def steps(policy: Any) -> list[Any]:
    """Return a policy's sub-policies."""
    return [
        [[probability, *described(one, POLICY_BINS, [place or 0])] for one, probability, place in sub]
        for sub in policy.sub_policies
    ]


if __name__ == "__main__":
    print(json.dumps(tables(sys.argv[1]), indent=None, separators=(",", ":")).replace('],"', '],\n"'))
